/* SPDX-License-Identifier: MIT */
#ifndef BEL_INSTANT_H
#define BEL_INSTANT_H

/*
 * instant - when, as people and programs write it, in milliseconds since 1970.
 *
 *     2026-06-01T09:00:00+07:00                  RFC 3339; Z is +00:00
 *     2026-03-29T02:30[Europe/Berlin]            RFC 9557: a local time in a zone
 *     2026-10-25T02:30+01:00[Europe/Berlin]      which of the two
 *     1780279200000                              milliseconds, negative before 1970
 *
 * What the standards leave open:
 *
 *   - T and Z may be small letters; a space is no T.
 *   - A fraction of a second may have any number of digits; those after the third are cut off.
 *   - There are no leap seconds: a second 60 is refused, because no clock here shows it.
 *   - Seconds may be left out only if there is a zone.
 *   - -00:00 is Z. Both say nothing about the local time, so that they never contradict a zone;
 *     any other offset that the zone does not have then is refused, with or without a `!`.
 *   - A zone may be an offset, [+07:00]. Suffixes with a key, [u-ca=gregory], are passed over;
 *     with a `!` they are refused, since none is known.
 *   - A local time without offset and zone is refused: nobody knows when it is.
 */

#include "belfry/clock.h"
#include "belfry/error.h"
#include "belfry/text.h"
#include "belfry/zone.h"

#include <stddef.h>

#pragma GCC visibility push(default)

enum {
    BEL_INSTANT_BYTES = 160, /* enough for any time that is printed, with the 0 */
};

struct bel_instant_options {
    struct bel_zones *zones; /* borrowed; NULL: names of zones are refused */
    enum bel_gap gap;        /* SKIP: a time in a gap is refused */
    enum bel_fold fold;      /* BOTH: one instant is needed, so it is the first */
};

/* Reads all of a text. Returns 0 and sets `*out`; or leaves it alone and returns BEL_EINVAL,
 * having said why, or what bel_zones_find() could not do: BEL_ENOMEM, BEL_EIO, BEL_ECORRUPT.
 * `options` may be NULL, which is all of it 0, and `why` too. */
BEL_CHECKED int bel_instant_parse(const char *text, size_t bytes,
                                  const struct bel_instant_options *options, struct bel_wall *out,
                                  struct bel_text_error *why);

/*
 * Both print a time that parses as the same one: whole seconds without a fraction, others with
 * three digits, and a year that has no four digits as milliseconds. They return the length
 * they need, and write what fits, as snprintf does.
 */

/* 2026-06-01T02:00:00Z */
size_t bel_instant_print(struct bel_wall instant, char *out, size_t room);

/* 2026-06-01T09:00:00+07:00[Asia/Bangkok] */
size_t bel_instant_print_zoned(struct bel_wall instant, const struct bel_zone *zone, char *out,
                               size_t room);

#pragma GCC visibility pop
#endif
