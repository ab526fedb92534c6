/* SPDX-License-Identifier: MIT */
#ifndef BEL_TELLING_TIMER_H
#define BEL_TELLING_TIMER_H

/*
 * timer - the lines of EXPLAIN that are the same in every backend.
 */

#include "telling/telling.h"

#include "belfry/plan.h"

/* Tell how often the timer has failed; of which plan it is an occurrence, if it is one; that its
 * topic is paused; when it expires, if it does. */
void bel__tell_outcomes(struct bel_telling *telling);
void bel__tell_occurrence(struct bel_telling *telling);
void bel__tell_paused(struct bel_telling *telling);
void bel__tell_expiry(struct bel_telling *telling);

/* Tell of a ready timer how many of the topic are ahead of it. */
void bel__tell_ahead(struct bel_telling *telling, uint64_t ahead);

/* Tell of a ready timer that the topic has workers that wait, or none, and how many leases. */
void bel__tell_workers(struct bel_telling *telling, bool has_waiting, uint64_t leased);

/* Tell the state, and its reason: scheduled; leased, for `length_ms`, and `crashes` lost leases
 * make it dead; blocked by earlier occurrences; ended. */
void bel__tell_scheduled(struct bel_telling *telling);
void bel__tell_leased(struct bel_telling *telling, uint64_t length_ms, uint64_t crashes);
void bel__tell_blocked(struct bel_telling *telling);
void bel__tell_ended(struct bel_telling *telling);

/* Tell how many unfinished occurrences of the plan are blocked; and how long an ended timer is
 * kept, UINT64_MAX: until it is purged. */
void bel__tell_unfinished(struct bel_telling *telling, uint64_t blocked);
void bel__tell_retention(struct bel_telling *telling, uint64_t retention_ms);

/* Tell of a plan, which rings `place_ms` after each time: its next time, with the reason; its rule,
 * NULL: it is not valid any more; its place in the spread window; its policies and numbers; its
 * numbers alone. */
void bel__tell_next(struct bel_telling *telling, int64_t place_ms);
void bel__tell_rule(struct bel_telling *telling, const struct bel_plan *plan, int64_t place_ms);
void bel__tell_spread(struct bel_telling *telling, int64_t place_ms);
void bel__tell_policies(struct bel_telling *telling);
void bel__tell_numbers(struct bel_telling *telling);

#endif
