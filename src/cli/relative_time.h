/* SPDX-License-Identifier: MIT */
#ifndef BEL_CLI_RELATIVE_TIME_H
#define BEL_CLI_RELATIVE_TIME_H

/*
 * relative_time - times as people type them, by their distance from now:
 *
 *     now
 *     +2h, in 2 hours       later
 *     -30m, 30 minutes ago  earlier
 */

#include "belfry/clock.h"

#include <stdbool.h>

/* Returns whether a text is such a time. */
bool bel__relative_time_is(const char *text);

/* Finds the time of such a text. Returns 0; or BEL_EINVAL if the text is none, or BEL_ERANGE if the
 * time is out of range. */
BEL_CHECKED int bel__relative_time(const char *text, struct bel_wall now, struct bel_wall *out);

#endif
