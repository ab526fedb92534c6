/* SPDX-License-Identifier: MIT */
#ifndef BEL_CLI_COPY_H
#define BEL_CLI_COPY_H

/*
 * copy - belfry copy: copies all timers from one store to another. The copying is passed in as a
 * function, because this layer does not depend on the stores.
 */

#include "core/why.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CLI_COPY_FACTS_MAX = 16,
};

struct cli_copy {
    const char *from, *to;
    bool merges, moves, is_dry, is_forced;
    bool without_jobs, without_groups, without_resources, without_concurrency;
    /* Tells how far a step is; `total` 0: unknown. */
    void (*progress)(struct cli_copy *copy, const char *step, uint64_t done, uint64_t total);
    struct bel_why why; /* the problem, if the copy fails */
    struct {            /* set by the copy, as far as they are known */
        const char *name;
        uint64_t number;
    } facts[CLI_COPY_FACTS_MAX];
    size_t facts_count;
    uint64_t digest;
};

/* Copies. Returns 0, or a BEL_E* and sets copy->why. */
typedef int cli_copier(struct cli_copy *copy);

/* Runs the verb; argv[0] is its name. Returns the exit status. */
int bel__cli_copy(int argc, char **argv, cli_copier *copier);

#endif
