/* SPDX-License-Identifier: MIT */
#ifndef BEL_CLI_PROGRESS_H
#define BEL_CLI_PROGRESS_H

/*
 * progress - how far it has come, on one line of standard error that is drawn again and again; not
 * at all if that is no terminal.
 *
 *     schedule [#############.............]  52 %   182,344/s
 *
 * It reads no clock: who draws says how long it has taken.
 */

#include <stdbool.h>
#include <stdint.h>

struct cli_progress {
    const char *name;
    uint64_t total; /* 0: nobody knows; then there is no bar */
    bool is_shown;
};

enum {
    CLI_PROGRESS_MS = 100, /* how often it is worth drawing */
};

/* Begins. `name` is borrowed. */
void bel__progress_start(struct cli_progress *progress, const char *name, uint64_t total);

/* Draws it. */
void bel__progress_draw(const struct cli_progress *progress, uint64_t done, uint64_t elapsed_ms);

/* Leaves the line as it was before. */
void bel__progress_end(struct cli_progress *progress);

/* "1,234,567". Returns `out`. */
enum {
    CLI_GROUPED_BYTES = 28,
};
const char *bel__cli_grouped(uint64_t number, char out[CLI_GROUPED_BYTES]);

#endif
