/* SPDX-License-Identifier: MIT */
#ifndef BEL_CLI_DOCTOR_H
#define BEL_CLI_DOCTOR_H

/*
 * doctor - belfry doctor: checks a data directory that no server uses. The check itself is passed
 * in as a function, because this layer does not depend on the store.
 */

#include "core/why.h"

#include <stddef.h>
#include <stdint.h>

enum {
    CLI_FACTS_MAX = 12,
};

/* The result of a check. */
struct cli_diagnosis {
    struct bel_why why; /* the problem, if the check fails */
    struct {
        const char *name;
        uint64_t number;
    } facts[CLI_FACTS_MAX];
    size_t facts_count;
};

/* Checks a folder. Returns 0 and sets the facts, or returns a BEL_E* and sets the text. */
typedef int cli_check(const char *folder, struct cli_diagnosis *out);

/* Runs the verb; argv[0] is its name. Returns the exit status. */
int bel__cli_doctor(int argc, char **argv, cli_check *check);

#endif
