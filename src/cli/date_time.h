/* SPDX-License-Identifier: MIT */
#ifndef BEL_CLI_DATE_TIME_H
#define BEL_CLI_DATE_TIME_H

/*
 * date_time - a date and a time of day with an offset or a zone, as people write them:
 *
 *     2026-12-24T18:00Z   2026-12-24 18:00+01:00   2026-12-24 9:00 Europe/Berlin
 *
 * Only the server's form has a T, seconds, and a zone in brackets.
 */

#include <stdbool.h>

enum {
    CLI_DATE_TIME_BYTES = 256,
};

/* Rewrites such a text for the server. Returns false if the text is none, or is in that form
 * already. */
bool bel__date_time_rewrite(const char *text, char out[CLI_DATE_TIME_BYTES]);

/* Returns whether a text is a time that is the same in every zone: a date and time of day with an
 * offset, or a number of milliseconds. */
bool bel__date_time_is_instant(const char *text);

#endif
