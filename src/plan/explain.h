/* SPDX-License-Identifier: MIT */
#ifndef BEL_PLAN_EXPLAIN_H
#define BEL_PLAN_EXPLAIN_H

/*
 * explain - describes a rule as an English sentence; explain.c and explain_rrule.c.
 */

#include "plan/cron.h"
#include "plan/writer.h"

/* Writes "At 09:00 on Monday to Friday", without a full stop. */
void bel__explain_cron(struct writer *writer, const struct bel_cron *cron);

struct bel_rrule;

/* Writes "Every 2 weeks on Monday and Friday at 09:00", without a full stop. */
void bel__explain_rrule(struct writer *writer, const struct bel_rrule *rrule);

/* Returns the first local time after `local` that the rule matches; CRON_NONE if there is none, or
 * if memory has run out. */
int64_t bel__rrule_local_after(const struct bel_rrule *rrule, int64_t local);

/* Returns whether the rule follows real time: SECONDLY, MINUTELY, and HOURLY without BYHOUR. */
bool bel__rrule_is_real_time(const struct bel_rrule *rrule);

/* Writes the values that are set, from `min` to `max`: "Friday to Sunday", "1, 3 and 5". A range
 * may wrap. Numbers, if `names` is NULL. */
void bel__explain_values(struct writer *writer, uint64_t bits, unsigned min, unsigned max,
                         const char *const *names);

/* Writes "hours 9 to 17", "every 2nd hour from 1 to 23". */
void bel__explain_listed(struct writer *writer, uint64_t bits, unsigned min, unsigned max,
                         const char *unit);
void bel__explain_ordinal(struct writer *writer, unsigned number);

extern const char *const bel__month_names[13], *const bel__weekday_names[7];

#endif
