/* SPDX-License-Identifier: MIT */
#ifndef BEL_CLI_LOCAL_TIME_H
#define BEL_CLI_LOCAL_TIME_H

/*
 * local_time - local times as people type them, without an offset or a zone:
 *
 *     18:00                 the next 18:00
 *     today 18:00           may be past
 *     tomorrow 09:00
 *     friday 09:00, fri 9:00   the next Friday 09:00
 *     2026-12-24 18:00      or with a T; seconds are optional everywhere
 *     9am, 9:30 pm, noon    instead of a time of day; "at" may come before it
 *     9am tomorrow          in either order
 *
 * The zone is that of --tz, or on a terminal that of the machine. The wire has no local times: they
 * are rewritten as RFC 9557, 2026-12-24T18:00:00[Europe/Berlin], and the server decides about gaps
 * and folds.
 */

#include "belfry/clock.h"
#include "belfry/zone.h"

#include <stdbool.h>

enum {
    CLI_LOCAL_TIME_BYTES = 160, /* enough for any rewritten time, including the final 0 */
};

/* Returns whether a text is a local time. */
bool bel__local_time_is(const char *text);

/* Returns whether a text is a day without a time of day. */
bool bel__local_time_is_day(const char *text);

/* Returns whether a text is a local time that depends on the present day. */
bool bel__local_time_needs_now(const char *text);

/* Rewrites a local time in a zone. A time of day alone, or with a weekday, is later than `now`.
 * Returns 0; or BEL_EINVAL if the date does not exist, or the text is not a local time. */
BEL_CHECKED int bel__local_time_rewrite(const char *text, const struct bel_zone *zone,
                                        struct bel_wall now, char out[CLI_LOCAL_TIME_BYTES]);

/* Writes the name of the machine's zone: that of TZ, or of /etc/localtime, or UTC. */
void bel__local_time_zone(char out[BEL_ZONE_NAME_MAX + 1]);

#endif
