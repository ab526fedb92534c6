/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_JOBS_TASK_H
#define BEL_ENGINE_JOBS_TASK_H

/*
 * task - the tasks of a job: their rows, and the changes of their timers.
 */

#include "engine/jobs/job.h"
#include "engine/state/timer.h"

struct bel_job_edge;

/* What a change of a task's timer does to its job, looked up before the change. */
struct bel_task_end {
    struct bel_job_found job;
    struct bel_task_row row;
    bool has_run; /* it is leased, by a claim of this engine: */
    uint64_t waited_ms, ran_ms;
};

/* Read and write the row of a task. A missing row is BEL_ECORRUPT. */
BEL_CHECKED int bel__task_load(struct bel_engine *engine, uint64_t job, uint32_t task,
                               struct bel_task_row *out);
void bel__task_put(struct bel_engine *engine, uint64_t job, uint32_t task,
                   const struct bel_task_row *row);

/* A list of a task's edges. */
struct bel_edge_list {
    uint64_t job;
    enum bel_edges_kind kind;
    uint32_t task;
    uint64_t count; /* of the whole list */
};

/* Writes the rows of a new list; they must be reserved. */
void bel__edges_put(struct bel_engine *engine, const struct bel_edge_list *list,
                    const struct bel_job_edge *edges);

/* Reads the edges of a list from number `from` on, as far as they are in one row. Sets
 * `*out_count`. */
BEL_CHECKED int bel__edges_get(struct bel_engine *engine, const struct bel_edge_list *list,
                               uint64_t from, struct bel_edge out[BEL_EDGES_OF_ROW],
                               size_t *out_count);

/* Returns whether a dependency that ended in `state` is as an edge demands. */
bool bel__edge_holds(enum bel_edge_policy on, enum bel_state state);

/* Returns whether a task has failed, as edges see it: dead, expired or cancelled. */
bool bel__task_has_failed(enum bel_state state);

/* Reserves rows and makes a blocked task due, now or when it says. */
BEL_CHECKED int bel__task_unblock(struct bel_engine *engine, const struct bel_task_row *row);

/* Reserves rows and ends an unfinished task. */
BEL_CHECKED int bel__task_finish(struct bel_engine *engine, const struct bel_task_row *row,
                                 enum bel_state state, struct bel_view reason);

/* For engine->events: look up what the change of a task does to its job; and do it. */
BEL_CHECKED int bel__task_look(struct bel_engine *engine, struct bel_found *found);
void bel__task_moved(struct bel_engine *engine, struct bel_found *found,
                     const struct bel_key *from);
void bel__task_ended(struct bel_engine *engine, struct bel_found *found);

#endif
