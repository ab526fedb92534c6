/* SPDX-License-Identifier: MIT */
#ifndef BEL_INSTANT_H
#define BEL_INSTANT_H

/*
 * instant - instants as people and programs write them, in milliseconds since 1970.
 *
 *     2026-06-01T09:00:00+07:00                  RFC 3339; Z is +00:00
 *     2026-03-29T02:30[Europe/Berlin]            RFC 9557: a local time in a zone
 *     2026-10-25T02:30+01:00[Europe/Berlin]      the offset selects one of two instants
 *     1780279200000                              milliseconds, negative before 1970
 *
 * Where the standards leave a choice:
 *
 *   - T and Z may be lower case; a space instead of T is invalid.
 *   - A fraction of a second may have any number of digits; those after the third are cut off.
 *   - There are no leap seconds: second 60 is invalid, because no clock of Belfry shows it.
 *   - Seconds are optional only if a zone is given.
 *   - -00:00 means Z. Neither says anything about local time, so neither contradicts a zone. Any
 *     other offset that the zone does not have at that time is invalid, with or without a `!`.
 *   - A zone may be an offset, [+07:00]. Suffixes with a key, [u-ca=gregory], are ignored;
 *     with a `!` they are invalid, because Belfry knows none.
 *   - A local time without offset and zone is invalid, because it names no instant.
 */

#include "belfry/clock.h"
#include "belfry/declare.h"
#include "belfry/error.h"
#include "belfry/text.h"
#include "belfry/zone.h"

#include <stddef.h>

BEL_BEGIN_DECLARATIONS

enum {
    BEL_INSTANT_BYTES = 160, /* enough for any printed instant, including the final 0 */
};

struct bel_instant_options {
    struct bel_zones *zones; /* borrowed; NULL: names of zones are invalid */
    enum bel_gap gap;        /* BEL_GAP_SKIP: a time in a gap is invalid */
    enum bel_fold fold;      /* BEL_FOLD_BOTH means the first, because the result is one instant */
};

/* Parses a whole text. NULL options: all fields 0. Returns 0 and sets `*out`. On failure leaves
 * `*out` unchanged and returns BEL_EINVAL with `*why` set, unless `why` is NULL; or an error of
 * bel_zones_find(): BEL_ENOMEM, BEL_EIO, BEL_ECORRUPT. */
BEL_CHECKED int bel_instant_parse(const char *text, size_t bytes,
                                  const struct bel_instant_options *options, struct bel_wall *out,
                                  struct bel_text_error *why);

/*
 * Print an instant in a form that parses back to the same instant: whole seconds without a
 * fraction, others with three digits, and a year that does not have four digits as milliseconds.
 * Like snprintf, write what fits into `room` bytes and return the full length.
 */

/* Prints in UTC: 2026-06-01T02:00:00Z */
size_t bel_instant_print(struct bel_wall instant, char *out, size_t room);

/* Prints in a zone: 2026-06-01T09:00:00+07:00[Asia/Bangkok] */
size_t bel_instant_print_zoned(struct bel_wall instant, const struct bel_zone *zone, char *out,
                               size_t room);

BEL_END_DECLARATIONS
#endif
