/* SPDX-License-Identifier: MIT */
#ifndef BEL_RRULE_H
#define BEL_RRULE_H

/*
 * rrule - recurrence rules of RFC 5545, with exceptions, and when they say next.
 *
 *     FREQ=WEEKLY;BYDAY=MO,WE
 *     RRULE:FREQ=MONTHLY;BYDAY=-1FR;UNTIL=20271231T235959Z
 *     EXDATE:20260130T090000,20260227T080000Z
 *
 * A text is a rule, with or without RRULE: in front, and then any number of lists of
 * exceptions, each with EXDATE: in front. Between them are line ends or spaces. The parts of
 * a rule come in any order, each once; upper and lower case are the same.
 *
 * A rule has a start, a local time, which takes the place of DTSTART: nothing comes before
 * it, intervals are counted from it, and what a rule leaves open is as there (FREQ=MONTHLY
 * alone is that day of the month, at that time). It is not a time of its own: it comes only
 * if the rule names it. Times in UNTIL and EXDATE are local, or UTC with a Z; both exclude or
 * include exactly that time. Dates without a time, TZID, RDATE, EXRULE and the RSCALE of
 * RFC 7529 are refused.
 *
 *     FREQ                         by
 *     SECONDLY MINUTELY HOURLY     BYHOUR BYMINUTE BYSECOND
 *     DAILY                        and BYMONTH BYMONTHDAY BYDAY
 *     WEEKLY                       and BYMONTH BYDAY
 *     MONTHLY                      and BYMONTH BYMONTHDAY BYDAY (1MO, -1FR) BYSETPOS
 *     YEARLY                       and BYYEARDAY or BYWEEKNO instead of BYMONTH, BYMONTHDAY
 *
 * What else the RFC allows is refused, since it would be searched for without end or would
 * not be what it says: days and months with a frequency of less than a day; BYSETPOS if there
 * are several times a day, or in YEARLY, several months. So are second 60 (no clock here
 * shows it), a rule that names no time within 400 years, and what is above the limits below.
 * With BYWEEKNO, the INTERVAL counts years of whole weeks.
 *
 * COUNT counts the local times that the rule names, also those that EXDATE takes out or that
 * a gap swallows, so that the last one is the same in every zone.
 *
 * When clocks change: SECONDLY, MINUTELY and HOURLY without BYHOUR follow real time. Any
 * other time that is skipped comes at the end of the gap, or not at all (enum bel_gap), and
 * one that comes twice is taken the first time, the second, or both (enum bel_fold). Times
 * that a gap moves onto one instant are one.
 *
 * Dates of months and years come from libical. Without it this part of the library can be
 * linked, but refuses every rule.
 */

#include "belfry/error.h"
#include "belfry/text.h"
#include "belfry/zone.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(default)

enum {
    BEL_RRULE_TEXT_MAX = 8192,   /* bytes */
    BEL_RRULE_COUNT_MAX = 10000, /* reached within 400 years and 12,000 dates of months */
    BEL_RRULE_EXDATES_MAX = 256,
    BEL_RRULE_INTERVAL_MAX = 100000, /* and not more than a hundred years */
};

struct bel_rrule; /* opaque, immutable */

/* Whether this library was built with libical. */
bool bel_rrule_is_supported(void);

/* Reads a rule that starts at a local time. Returns 0 and sets `*out`; or BEL_ENOMEM; or
 * BEL_EINVAL, and `*why`, unless it is NULL, says where and what was expected. */
BEL_CHECKED int bel_rrule_parse(const char *text, size_t bytes, const struct bel_civil *start,
                                struct bel_rrule **out, struct bel_text_error *why);

/* Frees a rule; NULL is allowed. */
void bel_rrule_destroy(struct bel_rrule *rrule);

/* The text that it was read from. */
const char *bel_rrule_text(const struct bel_rrule *rrule);

/* The first instant after `utc` that the rule names, in seconds since 1970. Any thread; the
 * time it takes is bounded, but it may take memory. Returns 0 and sets `*out`; or BEL_ERANGE
 * if there is none, or none within 400 years; or BEL_ENOMEM. */
BEL_CHECKED int bel_rrule_next(const struct bel_rrule *rrule, const struct bel_zone_when *when,
                               int64_t utc, int64_t *out);

#pragma GCC visibility pop
#endif
