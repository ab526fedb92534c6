/* SPDX-License-Identifier: MIT */
#ifndef BEL_CLI_DURATION_H
#define BEL_CLI_DURATION_H

/*
 * duration - durations as people type them: 5m, 5min, '5 minutes', '1 hour 30 min'. On the wire a
 * bare number is milliseconds; people who type one mean seconds, minutes or a count, so the command
 * line requires a unit.
 */

#include "belfry/text.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    CLI_DURATION_BYTES = 64, /* enough for any rewritten duration, including the final 0 */
};

/* Parses a duration like bel_duration_parse(), or with units in words; a number other than 0 needs
 * a unit. */
int bel__cli_duration(const char *text, uint64_t *out_ms, struct bel_text_error *why);

/* Rewrites a duration whose units are words, or that has spaces, to the form that
 * bel_duration_parse() reads. Returns false if the text has another form, or needs no rewriting. */
bool bel__cli_duration_rewrite(const char *text, char out[CLI_DURATION_BYTES]);

/* Checks a retry policy like bel_backoff_parse(), and that each delay of a list has a unit. */
int bel__cli_policy(const char *text, struct bel_text_error *why);

#endif
