/* SPDX-License-Identifier: MIT */
#ifndef BEL_CLI_DURATION_H
#define BEL_CLI_DURATION_H

/*
 * duration - durations as people type them. On the wire a bare number is milliseconds; people who
 * type one mean seconds, minutes or a count, so the command line requires a unit.
 */

#include "belfry/text.h"

#include <stdint.h>

/* Parses a duration like bel_duration_parse(), but a number other than 0 needs a unit. */
int bel__cli_duration(const char *text, uint64_t *out_ms, struct bel_text_error *why);

/* Checks a retry policy like bel_backoff_parse(), and that each delay of a list has a unit. */
int bel__cli_policy(const char *text, struct bel_text_error *why);

#endif
