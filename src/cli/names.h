/* SPDX-License-Identifier: MIT */
#ifndef BEL_CLI_NAMES_H
#define BEL_CLI_NAMES_H

/*
 * names - the names of a reply to TOPICS, copied because the next reply overwrites the last one.
 */

#include "belfry/client.h"
#include "belfry/error.h"

struct cli_names {
    char *memory;
    struct bel_view *items;
    size_t count;
};

/* Copies the names. Returns 0 or BEL_ENOMEM. Call bel__names_finish() in either case. */
BEL_CHECKED int bel__names_copy(const struct bel_value *reply, struct cli_names *out);
void bel__names_finish(struct cli_names *names);

#endif
