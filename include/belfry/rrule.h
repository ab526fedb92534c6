/* SPDX-License-Identifier: MIT */
#ifndef BEL_RRULE_H
#define BEL_RRULE_H

/*
 * rrule - recurrence rules of RFC 5545, with exceptions, and their next time.
 *
 *     FREQ=WEEKLY;BYDAY=MO,WE
 *     RRULE:FREQ=MONTHLY;BYDAY=-1FR;UNTIL=20271231T235959Z
 *     EXDATE:20260130T090000,20260227T080000Z
 *
 * A text is a rule, optionally prefixed with RRULE:, followed by any number of lists of exceptions,
 * each prefixed with EXDATE:. Line ends or spaces separate them. The parts of a rule come in any
 * order, each at most once, in upper or lower case.
 *
 * Every rule has a start, a local time, which replaces DTSTART: no time is before it, intervals are
 * counted from it, and it supplies what the rule leaves open (FREQ=MONTHLY alone means the start's
 * day of the month, at its time of day). The start itself is a time only if the rule matches it.
 * Times in UNTIL and EXDATE are local, or UTC with a Z, and are exact; UNTIL may be a date, whose
 * last second is the end. In a plan, EXDATE;TZID=zone: with the plan's zone is EXDATE:. Invalid
 * are: other dates without a time, RDATE, EXRULE and the RSCALE of RFC 7529.
 *
 *     FREQ                              by
 *     SECONDLY MINUTELY HOURLY DAILY    BYHOUR BYMINUTE BYSECOND BYMONTH BYMONTHDAY BYDAY
 *     WEEKLY                            without BYMONTHDAY
 *     MONTHLY                           and numbers in BYDAY (1MO, -1FR)
 *     YEARLY                            and BYYEARDAY or BYWEEKNO instead of BYMONTH, BYMONTHDAY
 *
 * BYSETPOS, with any of them, chooses from all times of one period of FREQ, a week from WKST on;
 * the first period counts as a whole, also before the start. The other combinations that the RFC
 * allows are invalid. Also invalid are second 60 (no clock of Belfry shows it), a rule without a
 * time within 400 years, and values above the limits below. With BYWEEKNO, INTERVAL counts years of
 * whole weeks.
 *
 * COUNT counts the local times that the rule matches, including those that EXDATE removes or that
 * fall into a gap, so that the last one is the same in every zone.
 *
 * Clock changes: SECONDLY, MINUTELY and HOURLY without BYHOUR follow real time. Any other local
 * time that is skipped moves to the end of the gap or is left out (enum bel_gap), and a local time
 * that occurs twice is used the first time, the second time, or both (enum bel_fold). Times that a
 * gap moves to the same instant count once.
 *
 * libical computes the dates of monthly and yearly rules. Without libical these functions can be
 * linked, but every rule is invalid.
 */

#include "belfry/declare.h"
#include "belfry/error.h"
#include "belfry/text.h"
#include "belfry/view.h"
#include "belfry/zone.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

BEL_BEGIN_DECLARATIONS

enum {
    BEL_RRULE_TEXT_MAX = 8192,   /* bytes */
    BEL_RRULE_COUNT_MAX = 10000, /* the last one within 400 years and 12,000 dates of months */
    BEL_RRULE_EXDATES_MAX = 256,
    BEL_RRULE_INTERVAL_MAX = 100000, /* and at most a hundred years */
};

struct bel_rrule; /* opaque, immutable */

/* Returns whether this library was built with libical. */
bool bel_rrule_is_supported(void);

/* Parses a rule that starts at a local time. Returns 0 and sets `*out`; or returns BEL_ENOMEM; or
 * returns BEL_EINVAL and sets `*why`, unless `why` is NULL. */
BEL_CHECKED int bel_rrule_parse(const char *text, size_t bytes, const struct bel_civil *start,
                                struct bel_rrule **out, struct bel_text_error *why);

/* Frees a rule; NULL is allowed. */
void bel_rrule_destroy(struct bel_rrule *rrule);

/* Returns the text that the rule was parsed from. */
const char *bel_rrule_text(const struct bel_rrule *rrule);

/* Finds the first instant after `utc` that matches the rule, in seconds since 1970. Any thread may
 * call it. Takes bounded time, but may allocate memory. Returns 0 and sets `*out`; or returns
 * BEL_ERANGE if there is none within 400 years; or BEL_ENOMEM. */
BEL_CHECKED int bel_rrule_next(const struct bel_rrule *rrule, const struct bel_zone_when *when,
                               int64_t utc, int64_t *out);

/* Finds the zone in DTSTART;TZID=ZONE:20260131T090000, which may come before the rule of a plan
 * (bel_plan_create()). Returns whether there is one. */
bool bel_rrule_zone(struct bel_view text, struct bel_view *zone);

BEL_END_DECLARATIONS
#endif
