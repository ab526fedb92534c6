/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_JOBS_THEN_H
#define BEL_ENGINE_JOBS_THEN_H

/*
 * then - the rows of jobs that are to follow another one, and the ids that are reserved for them.
 */

#include "engine/jobs/job.h"
#include "jobs/graph.h"

/* Who has an id of a job: nobody; a job; or a chain of jobs, for one that is to follow. */
enum bel_id_use {
    BEL_ID_FREE,
    BEL_ID_JOB,
    BEL_ID_RESERVED,
};

/* Sets `*out`, and `*out_chain` if the id is reserved: the number of the chain's first job. */
BEL_CHECKED int bel__id_look(struct bel_engine *engine, struct bel_view id, enum bel_id_use *out,
                             uint64_t *out_chain);

/* Looks for an id in the jobs of `then`, also inner ones, that is in use, unless one of these two
 * chains has reserved it. Sets `*out` to the first, or to an empty view. */
BEL_CHECKED int bel__then_look(struct bel_engine *engine, const struct bel_job_graph *graph,
                               const uint64_t chains[2], struct bel_view *out);

/* Writes job number `index` of `then`. Reserves the ids in it for the chain, unless they are
 * reserved already. Does not write the row of the job. */
void bel__then_put(struct bel_engine *engine, struct bel_job_found *job,
                   const struct bel_job_then *then, uint32_t index);

/* Reserves rows and writes job number `index` of `then`. Reserves the ids in it for the chain,
 * unless they are reserved already. */
BEL_CHECKED int bel__then_write(struct bel_engine *engine, struct bel_job_found *job,
                                const struct bel_job_then *then, uint32_t index);

/* Reserves rows and deletes a row of `then` of a job, or of an id that it has reserved. Returns 0;
 * BEL_ENOTFOUND if there is none; or an error. */
BEL_CHECKED int bel__then_remove_one(struct bel_engine *engine, const struct bel_job_found *job);

/* Reserves rows and ends the reservation of the ids of job number `index` of `then`, which will not
 * begin. Ids inside it stay reserved if `job` follows another one. Can be repeated. */
BEL_CHECKED int bel__then_release(struct bel_engine *engine, const struct bel_job_found *job,
                                  uint32_t index);

BEL_CHECKED int bel__then_load(struct bel_engine *engine, uint64_t job, uint32_t index,
                               struct bel_then_row *out);

#endif
