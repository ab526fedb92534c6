/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_JOBS_SUBMISSION_H
#define BEL_ENGINE_JOBS_SUBMISSION_H

/*
 * submission - a job on its way from a JSON text into the store.
 */

#include "belfry/backend.h"
#include "belfry/error.h"

struct bel_engine;
struct bel_submission; /* opaque */

enum {
    BEL_SUBMISSION_MORE = 1, /* call bel__submission_step() again, in the next turn */
};

/* Begins to submit a job. `*submit` and what it points to must stay as they are. Returns 0 and sets
 * `*out`, or returns BEL_ENOMEM. */
BEL_CHECKED int bel__submission_create(struct bel_engine *engine,
                                       const struct bel_job_submit *submit,
                                       struct bel_submission **out);

/* A job of `then`, or one that a recurring job makes. The views need not last. */
struct bel_follower {
    uint64_t parent, chain;
    uint64_t plan;    /* number of the recurring job, or 0 */
    bool has_nominal; /* made by a recurring job, or follows such a job: */
    struct bel_wall nominal;
    struct bel_view parent_id, plan_id;
    struct bel_view id, text; /* with a nominal time: the id without it */
};

/* The same for such a job, which neither a depth nor pressure refuses. */
BEL_CHECKED int bel__submission_create_follower(struct bel_engine *engine,
                                                const struct bel_follower *follower,
                                                struct bel_submission **out);

/* Does a slice. Returns BEL_SUBMISSION_MORE; 0 if the job is complete, and sets reply->submitted;
 * BEL_EBUSY if the batch is full; or another error: what was written is removed in later turns. */
BEL_CHECKED int bel__submission_step(struct bel_engine *engine, struct bel_submission *submission,
                                     struct bel_reply *reply);

/* Returns whether a job that replaces the one with this id is being written. Its tasks get their
 * ids at the end, so nobody else may take such an id meanwhile. */
bool bel__submission_replaces(const struct bel_engine *engine, struct bel_view id);

/* Frees a submission. A job that is not complete is removed in later turns. */
void bel__submission_destroy(struct bel_engine *engine, struct bel_submission *submission);

/* Frees all submissions, when the engine is closed. */
void bel__submissions_destroy(struct bel_engine *engine);

#endif
