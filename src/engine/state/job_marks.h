/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_STATE_JOB_MARKS_H
#define BEL_ENGINE_STATE_JOB_MARKS_H

/*
 * job_marks - the jobs that are in memory: those that are hidden or held, or have leased tasks. All
 * others are only in the store.
 *
 * A hidden job is being submitted or removed: no command sees its tasks. The tasks of a held job
 * are not delivered, because the job is being started, is paused, paces itself, or is being
 * cancelled.
 */

#include "belfry/error.h"
#include "core/map.h"

#include <stdbool.h>
#include <stdint.h>

enum bel_job_hold {
    BEL_HOLD_PAUSED = 1, /* bits */
    BEL_HOLD_ENDING = 2,
    BEL_HOLD_PACING = 4,
    BEL_HOLD_STARTING = 8,
};

struct bel_job_marks {
    struct bel_map map; /* number -> struct bel_job_mark * */
    uint64_t hidden;    /* jobs */
};

void bel__job_marks_init(struct bel_job_marks *marks, struct bel_siphash_key secret);
void bel__job_marks_finish(struct bel_job_marks *marks);

/* Return whether a request is submitting a job; whether it is hidden; for which reasons it is held:
 * bits of enum bel_job_hold, or 0; and how many of its tasks are leased. Number 0, of timers
 * without a job, has no marks. */
bool bel__job_is_submitted(const struct bel_job_marks *marks, uint64_t job);
bool bel__job_is_hidden(const struct bel_job_marks *marks, uint64_t job);
unsigned bel__job_holds(const struct bel_job_marks *marks, uint64_t job);
uint32_t bel__job_leases(const struct bel_job_marks *marks, uint64_t job);

/* Sets whether a job is hidden; whether a request is submitting it, which hides it, too. Hiding may
 * return BEL_ENOMEM. */
BEL_CHECKED int bel__job_hide(struct bel_job_marks *marks, uint64_t job);
BEL_CHECKED int bel__job_hide_submitted(struct bel_job_marks *marks, uint64_t job);
void bel__job_leave_submitted(struct bel_job_marks *marks, uint64_t job);
void bel__job_show(struct bel_job_marks *marks, uint64_t job);

/* Keeps a mark for a job, so that holding the job later cannot fail; gives it up. The first may
 * return BEL_ENOMEM. */
BEL_CHECKED int bel__job_keep_mark(struct bel_job_marks *marks, uint64_t job);
void bel__job_drop_mark(struct bel_job_marks *marks, uint64_t job);

/* Notes that the share of a held job is held in a topic. Returns 0 or BEL_ENOMEM. */
BEL_CHECKED int bel__job_note_topic(struct bel_job_marks *marks, uint64_t job, uint32_t topic);

/* Takes back a topic that was noted. Returns false if there is none. */
bool bel__job_take_topic(struct bel_job_marks *marks, uint64_t job, uint32_t *out);

/* Holds a job for one more reason; or ends one. Returns 0, or BEL_ENOMEM from the first. */
BEL_CHECKED int bel__job_hold(struct bel_job_marks *marks, uint64_t job, enum bel_job_hold why);
void bel__job_unhold(struct bel_job_marks *marks, uint64_t job, enum bel_job_hold why);

/* Counts a lease of a task, or its end. Returns 0, or BEL_ENOMEM from the first. */
BEL_CHECKED int bel__job_lease(struct bel_job_marks *marks, uint64_t job);
void bel__job_unlease(struct bel_job_marks *marks, uint64_t job);

#endif
