/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_JOBS_JOB_H
#define BEL_ENGINE_JOBS_JOB_H

/*
 * job - finds jobs, and changes their rows.
 *
 * A change of a job is part of the batch of the change that caused it. Rows must be reserved:
 * BEL_JOB_ROWS and BEL_JOB_BYTES are enough for one call of any function here.
 */

#include "engine/rows/job.h"
#include "engine/state/job_marks.h"

struct bel_engine;
struct bel_reply;

enum {
    BEL_JOB_ROWS = 9,
    BEL_JOB_BYTES = 2 * BEL_JOB_ROW_BYTES_MAX + 48, /* two keys */
};

/* Which jobs of a recurring job BEL_WORK_END_MADE ends: the task in the key of the work. */
enum {
    BEL_END_MADE_ALL = 0, /* also those of the recurring jobs before it with the same id */
    BEL_END_MADE_OWN = 1,
};

/* A job that was found: its key and its row. */
struct bel_job_found {
    struct bel_key key;
    struct bel_job_row row; /* views into the store's row, valid until the batch ends */
};

/* Finds a job by id, also one that is hidden. Returns 0, BEL_ENOTFOUND, or an error of the
 * lookup. */
BEL_CHECKED int bel__job_find_any(struct bel_engine *engine, struct bel_view id,
                                  struct bel_job_found *out);

/* Finds a job that commands can see, and whose topics, also those of `then`, are all in the
 * scope. */
BEL_CHECKED int bel__job_find(struct bel_engine *engine, struct bel_view id,
                              const struct bel_job_scope *scope, struct bel_job_found *out);

/* Sets the text of a reply to a request for a job that does not exist. Returns BEL_ENOTFOUND. */
int bel__job_refuse_unknown(struct bel_reply *reply, struct bel_view id);

/* Reads a job that has not ended, by its number; reads the row under a key in JOBS. A row that is
 * missing is BEL_ENOTFOUND. */
BEL_CHECKED int bel__job_load(struct bel_engine *engine, uint64_t number,
                              struct bel_job_found *out);
BEL_CHECKED int bel__job_load_key(struct bel_engine *engine, const struct bel_key *key,
                                  struct bel_job_found *out);

/* Returns whether a job has been written to the last slice, and is not being removed. It may be
 * hidden: bel__job_begin(). */
bool bel__job_is_complete(const struct bel_job_found *job);

/* Returns the state that commands show. */
enum bel_job_state bel__job_state(const struct bel_job_found *job);

/* Returns the number of tasks that have not ended. */
uint64_t bel__job_unfinished(const struct bel_job_found *job);

/* Write the row of a job, and that of its id, which has the job's key. */
void bel__job_put(struct bel_engine *engine, const struct bel_job_found *job);
void bel__job_put_id(struct bel_engine *engine, const struct bel_job_found *job);

/* Adds work to a job, without writing its row. */
void bel__job_add_work(struct bel_engine *engine, struct bel_job_found *job,
                       enum bel_work_kind kind, uint32_t task, uint64_t position);

/* Writes the row of a job. Ends the job instead, if all its tasks have ended and there is no more
 * work. */
void bel__job_settle(struct bel_engine *engine, struct bel_job_found *job);

/* Starts a hidden job whose tasks are all written and counted: those without dependencies are
 * unblocked in slices. It stays hidden until then, and no task is delivered. */
void bel__job_begin(struct bel_engine *engine, struct bel_job_found *job);

/* The last of these slices is done: lets everyone see the job, and claims take its tasks. */
void bel__job_started(struct bel_engine *engine, const struct bel_job_found *job);

/* Sets `*out` to whether the job with this id has replaced another one, and its tasks may have no
 * ids yet. */
BEL_CHECKED int bel__job_is_replacing(struct bel_engine *engine, struct bel_view id, bool *out);

/* Begins to end a job: no task starts from now on, unfinished ones are cancelled in slices. The job
 * ends in `state`. Returns 0, BEL_ENOMEM, or an error of reserving. */
BEL_CHECKED int bel__job_begin_end(struct bel_engine *engine, struct bel_job_found *job,
                                   enum bel_job_state state, struct bel_view reason);

/* Begins to cancel a job, for a key with this scope. The jobs of a recurring one are cancelled with
 * it: with a scope only those of its current text, since others may have topics out of reach. */
BEL_CHECKED int bel__job_begin_cancel(struct bel_engine *engine, struct bel_job_found *job,
                                      const struct bel_job_scope *scope);

/* Lets no task of a job start before `until`, in engine ms, without writing the job's row. A mark
 * of the job must be kept: bel__job_keep_mark(). */
void bel__job_pace(struct bel_engine *engine, struct bel_job_found *job, uint64_t until);

/* Ends one reason for which a job is held. */
void bel__job_release(struct bel_engine *engine, const struct bel_job_found *job,
                      enum bel_job_hold why);

/* Moves the row in JOB_TIMES of an ended job from `time_key` to the end of the cooldown. */
void bel__job_cool_down(struct bel_engine *engine, const struct bel_job_found *job,
                        const struct bel_key *time_key);

/* Begins to remove a job: nobody sees it from now on, none of its tasks is delivered, and its rows
 * are deleted in slices. */
BEL_CHECKED int bel__job_begin_removal(struct bel_engine *engine, struct bel_job_found *job);

#endif
