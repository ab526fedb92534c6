/* SPDX-License-Identifier: MIT */
#ifndef BEL_ZONE_H
#define BEL_ZONE_H

/*
 * zone - time zones: converts between instants and local times.
 *
 * Rules come from the system's zoneinfo files (TZif), including the rule for the years after the
 * last entry. Before the first entry, the first offset of the file applies, usually local mean
 * time. A zone is immutable and may be used by any number of threads. Nothing depends on TZ, TZDIR,
 * the locale or other state of the process.
 *
 * A local time is not always one instant: clocks that are set forward skip some local times (a
 * gap), clocks that are set back show some twice (a fold). bel_zone_at() tells them apart:
 *
 *     exact   one instant:          first == second
 *     fold    two instants:         first < second
 *     gap     none:                 first == second: the end of the gap, the instant at which
 *                                   the clocks are set forward
 *
 * If changes are so close together that a local time occurs three times or more, which no real zone
 * has done, `first` and `second` are the first and the last of these instants.
 */

#include "belfry/declare.h"
#include "belfry/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

BEL_BEGIN_DECLARATIONS

enum {
    BEL_ZONE_NAME_MAX = 127, /* bytes */
};

struct bel_zones; /* opaque: a directory of zones, with a cache of those in use */
struct bel_zone;  /* opaque, immutable; valid as long as its bel_zones */

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

/* What a local time in a gap means, and a local time in a fold. */
enum bel_gap {
    BEL_GAP_NEXT, /* the end of the gap */
    BEL_GAP_SKIP, /* no instant */
};

enum bel_fold {
    BEL_FOLD_FIRST,
    BEL_FOLD_SECOND,
    BEL_FOLD_BOTH,
};

/* The zone of a rule with local times, and what the rule does in gaps and folds. */
struct bel_zone_when {
    const struct bel_zone *zone;
    enum bel_gap gap;
    enum bel_fold fold;
};

/* The instants of a local time, in seconds since 1970-01-01T00:00:00Z; see above. */
struct bel_zone_instants {
    int64_t first, second;
    enum bel_zone_answer answer;
};

/* Opens a directory of TZif files; NULL: the system's. Returns 0 and sets `*out`, or returns
 * BEL_ENOMEM, or BEL_EIO if the directory does not exist. */
BEL_CHECKED int bel_zones_open(const char *folder, struct bel_zones **out);

/* Frees the zones and every bel_zone found in them; NULL is allowed. */
void bel_zones_close(struct bel_zones *zones);

/* Finds a zone by its name, for example "Europe/Berlin"; the name need not end in 0. "UTC" needs no
 * file and gives bel_zone_utc(). Any thread may call it. Returns 0 and sets `*out`; or returns
 * BEL_EINVAL for an unknown zone or a name that could be a path out of the directory, BEL_ECORRUPT
 * if the file is damaged or counts leap seconds, as those in right/ do, BEL_ENOMEM, BEL_EIO. */
BEL_CHECKED int bel_zones_find(struct bel_zones *zones, const char *name, size_t bytes,
                               const struct bel_zone **out);

/* Rereads files that have changed: later calls of bel_zones_find() return the new zones; the old
 * ones stay valid. A zone whose file was removed is no longer found; a file that yields the same
 * zone does not count as changed. Any thread may call it. Returns the number of changed zones; or
 * BEL_ECORRUPT, once, if a new file is damaged, or BEL_ENOMEM or BEL_EIO. After an error the
 * affected zones are as before, the others have been reread, and the next call counts them. */
BEL_CHECKED int bel_zones_reload(struct bel_zones *zones);

/* Returns UTC, which is valid until the program ends. */
const struct bel_zone *bel_zone_utc(void);

const char *bel_zone_name(const struct bel_zone *zone);

/* Returns the offset of local time from UTC at an instant, in seconds; positive in the east. */
int32_t bel_zone_offset(const struct bel_zone *zone, int64_t utc);

/* Converts an instant to local time. Returns 0, or BEL_ERANGE outside of the years -9999 to
 * 9999. */
BEL_CHECKED int bel_zone_civil(const struct bel_zone *zone, int64_t utc, struct bel_civil *out);

/* Converts a local time to instants. Returns 0, or BEL_EINVAL for an invalid date or time. */
BEL_CHECKED int bel_zone_at(const struct bel_zone *zone, const struct bel_civil *civil,
                            struct bel_zone_instants *out);

/* Finds the first instant after `utc` at which the offset changes. Returns false if there is
 * none. */
bool bel_zone_next_change(const struct bel_zone *zone, int64_t utc, int64_t *out);

BEL_END_DECLARATIONS
#endif
