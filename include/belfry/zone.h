/* SPDX-License-Identifier: MIT */
#ifndef BEL_ZONE_H
#define BEL_ZONE_H

/*
 * zone - what the clocks on the wall show, anywhere, at any time.
 *
 * Rules come from the system's zoneinfo files (TZif), the rule for the years after the last
 * entry included; before the first entry the clocks show what the file says first, which is
 * mostly local mean time. A zone is immutable and may be used by any number of threads;
 * nothing depends on TZ, TZDIR, the locale or any other state of the process.
 *
 * A local time is not always one instant: clocks that are put forward skip some (a gap),
 * clocks that are put back show some twice (a fold). bel_zone_at() says which it is:
 *
 *     exact   one instant:          first == second
 *     fold    two instants:         first < second
 *     gap     none:                 first == second: the end of the gap, the instant at which
 *                                   the clocks were put forward
 *
 * Where changes are so close together that a local time is shown three times or more, which
 * no zone of this world has done, they are the first and the last.
 */

#include "belfry/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(default)

enum {
    BEL_ZONE_NAME_MAX = 127, /* bytes */
};

struct bel_zones; /* opaque: a folder of zones, those in use kept in memory */
struct bel_zone;  /* opaque, immutable; lives as long as the bel_zones it came from */

/* A date and time of day in the proleptic Gregorian calendar; no leap seconds. */
struct bel_civil {
    int32_t year;   /* -9999 .. 9999; 0 is 1 BC */
    uint8_t month;  /* 1 .. 12 */
    uint8_t day;    /* 1 .. 31 */
    uint8_t hour;   /* 0 .. 23 */
    uint8_t minute; /* 0 .. 59 */
    uint8_t second; /* 0 .. 59 */
};

enum bel_zone_answer {
    BEL_ZONE_EXACT,
    BEL_ZONE_FOLD,
    BEL_ZONE_GAP,
};

/* What becomes of a local time in a gap, and which instant is meant by one in a fold. */
enum bel_gap {
    BEL_GAP_NEXT, /* the end of the gap */
    BEL_GAP_SKIP, /* none */
};

enum bel_fold {
    BEL_FOLD_FIRST,
    BEL_FOLD_SECOND,
    BEL_FOLD_BOTH,
};

/* Where and how a rule that names local times is followed. */
struct bel_zone_when {
    const struct bel_zone *zone;
    enum bel_gap gap;
    enum bel_fold fold;
};

/* A local time as instants, in seconds since 1970-01-01T00:00:00Z; see above. */
struct bel_zone_instants {
    int64_t first, second;
    enum bel_zone_answer answer;
};

/* Opens a folder of TZif files; NULL: the system's. Returns 0 and sets `*out`, or returns
 * BEL_ENOMEM, or BEL_EIO if there is no such folder. */
BEL_CHECKED int bel_zones_open(const char *folder, struct bel_zones **out);

/* Frees it and every zone that came from it; NULL is allowed. */
void bel_zones_close(struct bel_zones *zones);

/* Finds a zone by its name, which need not end in 0: "Europe/Berlin". "UTC" needs no file
 * and is bel_zone_utc(). Any thread. Returns 0 and sets `*out`; or BEL_EINVAL if there is no
 * such zone (or the name could be a path out of the folder), BEL_ECORRUPT if its file does
 * not check out or counts leap seconds, as those in right/ do, BEL_ENOMEM, BEL_EIO. */
BEL_CHECKED int bel_zones_find(struct bel_zones *zones, const char *name, size_t bytes,
                               const struct bel_zone **out);

/* Looks whether files have changed since they were read, and reads those again: from here
 * on bel_zones_find() answers with the new ones; the old ones stay valid. A zone whose file
 * is gone is found no more; one whose file makes the same zone has not changed. Any thread.
 * Returns how many have changed; or BEL_ECORRUPT, once, if a new file does not check out, or
 * BEL_ENOMEM or BEL_EIO. Then the zones concerned are as they were, the others have been
 * read, and the next call counts them. */
BEL_CHECKED int bel_zones_reload(struct bel_zones *zones);

/* UTC, for when no zone is needed. It lives as long as the program. */
const struct bel_zone *bel_zone_utc(void);

const char *bel_zone_name(const struct bel_zone *zone);

/* What is to be added to UTC to get the local time, in seconds, at an instant. */
int32_t bel_zone_offset(const struct bel_zone *zone, int64_t utc);

/* What the clocks show. Returns 0, or BEL_ERANGE outside of the years -9999 to 9999. */
BEL_CHECKED int bel_zone_civil(const struct bel_zone *zone, int64_t utc, struct bel_civil *out);

/* When the clocks show it. Returns 0, or BEL_EINVAL for what is no date and time. */
BEL_CHECKED int bel_zone_at(const struct bel_zone *zone, const struct bel_civil *civil,
                            struct bel_zone_instants *out);

/* The first instant after `utc` at which the offset changes. False if there is none. */
bool bel_zone_next_change(const struct bel_zone *zone, int64_t utc, int64_t *out);

#pragma GCC visibility pop
#endif
