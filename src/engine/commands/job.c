/* SPDX-License-Identifier: MIT */

/*
 * JOB SUBMIT, CANCEL, PAUSE and RESUME. The first two take many turns for a large job: the request
 * waits, and is called again in each turn, until the last slice is written.
 */
#include "engine/jobs/job.h"
#include "engine/commands/commands.h"
#include "engine/jobs/recurring_rows.h"
#include "engine/jobs/submission.h"
#include "engine/state/state.h"

#include <assert.h>

enum {
    SUBMIT_ROWS = 50, /* what the memory of a submission takes as long as, about */
};

enum {
    OWN_SUBMISSION = BEL_OWN_FREE, /* SUBMIT: the submission */
    OWN_NUMBER = BEL_OWN_FREE,     /* CANCEL: the number of the job that ends */
};

/* --- SUBMIT --- */

int bel__do_job_submit(struct bel_engine *engine, struct bel_request *request)
{
    uint64_t *words = request->own.words;
    struct bel_submission *submission = NULL;
    if (words[BEL_OWN_STAGE] == BEL_STAGE_BULK) {
        submission = (struct bel_submission *)(uintptr_t)words[OWN_SUBMISSION];
    } else {
        int err = bel__submission_create(engine, &request->command.job_submit, &submission);
        if (err) return err;
        bel__count_rows(engine, SUBMIT_ROWS);
        words[OWN_SUBMISSION] = (uintptr_t)submission;
    }
    int err = bel__submission_step(engine, submission, &request->own.reply);
    if (err == BEL_EBUSY && !engine->rows.has_changed) err = BEL_EFULL;
    if (err == BEL_SUBMISSION_MORE || err == BEL_EBUSY) return BEL_DO_LATER;
    bel__submission_destroy(engine, submission);
    return err;
}

/* --- the others --- */

/* Finds the job of a request. On an error, sets the reply's text. */
static int find(struct bel_engine *engine, struct bel_request *request, struct bel_job_found *out)
{
    const struct bel_job_target *target = &request->command.job_target;
    int err = bel__job_find(engine, target->id, &target->scope, out);
    if (err == BEL_ENOTFOUND) return bel__job_refuse_unknown(&request->own.reply, target->id);
    return err;
}

/* Returns whether the job of a request that waits has ended. */
static int wait_for_end(struct bel_engine *engine, struct bel_request *request)
{
    struct bel_job_found job;
    int err = bel__job_load(engine, request->own.words[OWN_NUMBER], &job);
    if (err == 0) return BEL_DO_LATER;
    if (err != BEL_ENOTFOUND) return err;
    request->own.reply.count = 1;
    return 0;
}

int bel__do_job_cancel(struct bel_engine *engine, struct bel_request *request)
{
    struct bel_job_found job;
    if (request->own.words[BEL_OWN_STAGE] == BEL_STAGE_BULK) return wait_for_end(engine, request);
    int err = find(engine, request, &job);
    if (err) return err;
    if (job.row.phase == BEL_JOB_PHASE_ENDED) return 0;
    if (job.row.phase != BEL_JOB_PHASE_ENDING) {
        err = bel__job_begin_cancel(engine, &job, &request->command.job_target.scope);
        if (err) return err;
    }
    request->own.words[OWN_NUMBER] = job.row.number;
    return BEL_DO_LATER;
}

int bel__do_job_pause(struct bel_engine *engine, struct bel_request *request)
{
    struct bel_job_found job;
    int err = find(engine, request, &job);
    if (err) return err;
    if (job.row.phase == BEL_JOB_PHASE_ENDED || job.row.is_paused) return 0;
    bool is_plan = job.row.phase == BEL_JOB_PHASE_PLAN; /* has no tasks to hold */
    err = bel__rows_reserve(&engine->rows, BEL_JOB_ROWS, BEL_JOB_BYTES, BEL_STORE_END);
    if (err == 0 && !is_plan) {
        err = bel__job_hold(&engine->job_marks, job.row.number, BEL_HOLD_PAUSED);
    }
    if (err) return err;
    job.row.is_paused = true;
    bel__job_put(engine, &job);
    request->own.reply.count = 1;
    return 0;
}

int bel__do_job_resume(struct bel_engine *engine, struct bel_request *request)
{
    struct bel_job_found job;
    int err = find(engine, request, &job);
    if (err) return err;
    if (job.row.phase == BEL_JOB_PHASE_ENDED || !job.row.is_paused) return 0;
    err = bel__rows_reserve(&engine->rows, BEL_JOB_ROWS + BEL_TIMER_ROWS,
                            BEL_JOB_BYTES + BEL_TIMER_BYTES, BEL_STORE_END);
    if (err == 0 && job.row.phase == BEL_JOB_PHASE_PLAN) err = bel__recurring_resume(engine, &job);
    if (err) return err;
    job.row.is_paused = false;
    bel__job_put(engine, &job);
    bel__job_release(engine, &job, BEL_HOLD_PAUSED);
    request->own.reply.count = 1;
    return 0;
}
