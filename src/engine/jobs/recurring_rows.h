/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_JOBS_RECURRING_ROWS_H
#define BEL_ENGINE_JOBS_RECURRING_ROWS_H

/*
 * recurring_rows - a recurring job in the store: its row and text, its plan, its occurrences.
 */

#include "belfry/backend.h"
#include "engine/jobs/job_topics.h"
#include "engine/state/timer.h"
#include "jobs/graph.h"

/* What a recurring job is written of, besides its graph. */
struct bel_recurring_parts {
    uint64_t number;
    struct bel_view text;
    const struct bel_job_topics *topics; /* all made */
    struct bel_job_found *old;           /* the job that it replaces, or NULL */
};

/* Checks that a recurring job can be written: its rule has a time. Returns 0, or an error with its
 * text in the reply. */
BEL_CHECKED int bel__recurring_check(struct bel_engine *engine, const struct bel_job_graph *graph,
                                     struct bel_reply *reply);

/* Reserves rows and writes a recurring job. Begins to remove the old one, in the same batch.
 * Returns 0, or an error with its text in the reply. */
BEL_CHECKED int bel__recurring_write(struct bel_engine *engine, struct bel_job_graph *graph,
                                     const struct bel_recurring_parts *parts,
                                     struct bel_reply *reply);

/* Reserves rows and ends the occurrences with this id that have made no job and are not of the plan
 * that has it now: REPLACE has dropped them. At once, not when each is due: after a clock was set
 * back the times of the new plan would come before that, and OVERLAP looks at unfinished ones only.
 * After an error, those that are left end when this is called again. */
BEL_CHECKED int bel__recurring_drop(struct bel_engine *engine, struct bel_view id);

/* Reserves rows and deletes the plan with the id of a recurring job that is replaced or removed.
 * The jobs that it has made go on. */
BEL_CHECKED int bel__recurring_forget(struct bel_engine *engine, struct bel_view id);

/* Sets `*out` to whether an occurrence has a job of its own, and `*out_job` to the job with its id,
 * whose key is 0 if there is none that is complete. */
BEL_CHECKED int bel__occurrence_job(struct bel_engine *engine, const struct bel_found *found,
                                    struct bel_job_found *out_job, bool *out);

/* Reserves rows and ends an occurrence that has made no job: its plan, if that is still there,
 * counts it as skipped. */
BEL_CHECKED int bel__occurrence_skip(struct bel_engine *engine, struct bel_found *found);

/* An occurrence of the recurring job with this id has ended, or its plan: if it has no more times
 * and no unfinished occurrence, the job ends soon. Reserves rows. */
BEL_CHECKED int bel__recurring_settle(struct bel_engine *engine, struct bel_view id);

/* Sets `*out` to whether a recurring job has no more times and no unfinished occurrence. */
BEL_CHECKED int bel__recurring_is_over(struct bel_engine *engine, const struct bel_job_found *job,
                                       bool *out);

/* The plan of a recurring job rings: sets `*out_makes` unless the job is paused or ends. */
BEL_CHECKED int bel__recurring_rings(struct bel_engine *engine, const struct bel_found *plan,
                                     bool *out_makes);

/* The plan of a recurring job has rung: counts the times in a row that overlap has skipped, and
 * lets the job end after the last time. BEL_RANG_ROWS are reserved. */
void bel__recurring_rang(struct bel_engine *engine, const struct bel_found *plan, bool is_skipped);

/* Finds the plan of a recurring job, also one without further times. Returns 0, BEL_ENOTFOUND if
 * the job does not recur or its plan was ended by an older version, or an error of the lookup. */
BEL_CHECKED int bel__recurring_plan(struct bel_engine *engine, const struct bel_job_found *job,
                                    struct bel_found *out);

/* Reserves rows and ends the occurrence that a job was made for, so that the plan can go on. */
BEL_CHECKED int bel__recurring_report(struct bel_engine *engine, const struct bel_job_row *row);

/* Reserves rows and ends an occurrence. */
BEL_CHECKED int bel__occurrence_finish(struct bel_engine *engine, struct bel_found *found);

/* Reserves rows and lets the first time that has waited while the job was paused make its job. */
BEL_CHECKED int bel__recurring_resume(struct bel_engine *engine, const struct bel_job_found *job);

/* Reserves rows and ends a plan and its occurrences: those without a job count as skipped. */
BEL_CHECKED int bel__recurring_end(struct bel_engine *engine, const struct bel_job_found *job);

#endif
