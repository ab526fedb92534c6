/* SPDX-License-Identifier: MIT */
#ifndef BEL_CLI_PROGRESS_H
#define BEL_CLI_PROGRESS_H

/*
 * progress - a progress bar on one line of standard error. Draws nothing if standard error is not a
 * terminal.
 *
 *     schedule [#############.............]  52 %   182,344/s
 *
 * It reads no clock: the caller passes the elapsed time.
 */

#include <stdbool.h>
#include <stdint.h>

struct cli_progress {
    const char *name;
    uint64_t total; /* 0: unknown; only the count and the rate are drawn */
    bool is_shown;
};

enum {
    CLI_PROGRESS_MS = 100, /* a good interval between draws */
};

/* Initializes a progress bar. `name` is borrowed. */
void bel__progress_start(struct cli_progress *progress, const char *name, uint64_t total);

/* Draws the line: `done` of `total`, and the rate. */
void bel__progress_draw(const struct cli_progress *progress, uint64_t done, uint64_t elapsed_ms);

/* Clears the line. */
void bel__progress_end(struct cli_progress *progress);

/* Prints a number as "1,234,567". Returns `out`. */
enum {
    CLI_GROUPED_BYTES = 28,
};
const char *bel__cli_grouped(uint64_t number, char out[CLI_GROUPED_BYTES]);

#endif
