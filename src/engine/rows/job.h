/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_ROWS_JOB_H
#define BEL_ENGINE_ROWS_JOB_H

/*
 * job - the rows of jobs as structs, and how they are encoded.
 *
 *     JOBS      lane, when it ended, number      the job
 *     JOB_IDS   a hash of the id                 the key in JOBS
 *     TASKS     number, index                    a task: where its timer is, what it waits for
 *     EDGES     number, kind, task, chunk        the tasks before and after it; topics of the job
 *     JOB_WORK  number, kind, task               what is to be done for the job, and how far it is
 *     JOB_TIMES lane, time, kind, number         when something is to be done for the job
 *
 * Tasks have no other place in memory: all that the end of a task does is found by number and
 * index.
 */

#include "belfry/job.h"
#include "belfry/stats.h"
#include "belfry/timer.h"
#include "engine/rows/key.h"
#include "engine/rows/record.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    BEL_JOB_ROW_BYTES_MAX = 2400,
    BEL_TASK_ROW_BYTES_MAX = 120,
    BEL_EDGES_OF_ROW = 500, /* in all rows of a list but the last */
    BEL_EDGES_ROW_BYTES_MAX = BEL_EDGES_OF_ROW * 5,
    BEL_WORK_ROW_BYTES_MAX = 10,
    BEL_THEN_ROW_BYTES_MAX = 300,
};

/* The lane of a key in BEL_TABLE_JOBS. */
enum bel_job_lane {
    BEL_JOB_LANE_LIVE,
    BEL_JOB_LANE_ENDED, /* time: when the job ended, wall ms */
};

enum bel_job_phase {
    BEL_JOB_PHASE_SUBMITTING, /* its tasks are being written: nobody sees it */
    BEL_JOB_PHASE_LIVE,
    BEL_JOB_PHASE_ENDING, /* its unfinished tasks are being cancelled */
    BEL_JOB_PHASE_ENDED,
    BEL_JOB_PHASE_REMOVING,  /* its rows are being deleted: nobody sees it */
    BEL_JOB_PHASE_REPLACING, /* all its tasks are written, the job before it is being removed */
    BEL_JOB_PHASE_PLAN,      /* a recurring job: makes jobs, has no tasks */
    BEL_JOB_PHASES,
};

struct bel_job_row {
    uint64_t number;
    uint64_t phase;    /* enum bel_job_phase */
    uint64_t state;    /* enum bel_job_state in which it has ended or will end */
    uint64_t priority; /* BEL_JOB_PRIORITY_MIN to BEL_JOB_PRIORITY_MAX */
    uint64_t is_paused;
    uint64_t created;     /* wall ms */
    uint64_t deadline;    /* of the timeout, engine ms; 0: none */
    uint64_t pace_ms;     /* 0: none */
    uint64_t paced_until; /* no task starts before, engine ms */
    uint64_t tasks, edges, topics;
    uint64_t works;             /* rows in BEL_TABLE_JOB_WORK */
    uint64_t unhandled;         /* failed tasks without a dependent that has handled the failure; of
                                   a recurring job: times in a row that overlap has skipped */
    uint64_t result_bytes;      /* of all results */
    uint64_t replaces;          /* number of the job with the same id that it replaces; 0: none */
    uint64_t cooldown_ms;       /* before the jobs of `then` */
    uint64_t thens;             /* jobs of `then` */
    uint64_t reserved;          /* ids that are reserved for them */
    uint64_t followed;          /* jobs of `then` that were made or passed over */
    uint64_t follow_at;         /* when they begin, engine ms; 0: not now */
    uint64_t parent;            /* number of the job that it follows; 0: none */
    uint64_t chain;             /* number of the first job of the chain, if it is in one */
    uint64_t plan;              /* number of the recurring job that made it; 0: none */
    uint64_t nominal;           /* if it was made: for which time, wall ms */
    uint64_t is_reported;       /* if it was made: its occurrence has ended */
    uint64_t failures, crashes; /* of the tasks that have ended */
    uint64_t minute; /* number of the last minute, in engine time, in which one was done */
    uint64_t dones, dones_before; /* in that minute; in the minute before it */
    uint64_t counts[BEL_STATES];  /* of tasks; those that are ready or leased count as scheduled */
    struct bel_spans waited, ran; /* of the tasks that are done: see struct bel_job */
    struct bel_view id, reason;
    struct bel_view parent_id, plan_id;
    struct bel_view clash; /* the first job of `then` that could not be made */
};

/* A task. Its state and topic are in the key of its timer. */
struct bel_task_row {
    struct bel_key key; /* of its timer, in TIMERS or ENDED */
    uint64_t open;      /* dependencies that have not ended */
    uint64_t depth;
    uint64_t after_count, dependents_count;
    bool handles;    /* one of its dependencies may fail, as far as the task is concerned */
    bool is_handled; /* has failed, and a dependent that handles this is done */
    enum bel_when when;
    uint64_t time; /* BEL_WHEN_IN: ms from when it is unblocked; BEL_WHEN_AT: wall ms */
};

/* The lists in BEL_TABLE_EDGES: the priority of a key. */
enum bel_edges_kind {
    BEL_EDGES_AFTER,
    BEL_EDGES_DEPENDENTS,
    BEL_EDGES_TOPICS,   /* of the job: numbers of topics */
    BEL_EDGES_THEN,     /* of the job: one row each */
    BEL_EDGES_RESERVED, /* of the job: one id each */
};

/* A job of `then`. */
struct bel_then_row {
    enum bel_edge_policy on;
    struct bel_view id;
    struct bel_blob text; /* JSON, in chunks */
};

/* What is to be done for a job: the priority of a key in BEL_TABLE_JOB_WORK. The value of a row is
 * a position: how many edges or tasks have been seen. */
enum bel_work_kind {
    BEL_WORK_REMOVE,     /* delete all rows of the job */
    BEL_WORK_END,        /* end its unfinished tasks */
    BEL_WORK_START,      /* unblock the tasks without dependencies */
    BEL_WORK_HANDLED,    /* a task is done: mark the failures that it has handled */
    BEL_WORK_DEPENDENTS, /* a task has ended: tell its dependents */
    BEL_WORK_ADOPT,      /* give the tasks their ids, when the job before it is removed */
    BEL_WORK_REPORT,     /* the job has ended: tell the plan that made it */
    BEL_WORK_END_MADE,   /* end the jobs that a recurring job has made, then itself */
    BEL_WORK_KINDS,
};

/* Of a key in BEL_TABLE_JOB_TIMES. */
enum bel_job_time_kind {
    BEL_JOB_TIME_DEADLINE,
    BEL_JOB_TIME_PACE,
    BEL_JOB_TIME_FOLLOW, /* the value is the key of the ended job */
};

struct bel_key bel__job_key(uint64_t number);
struct bel_key bel__job_ended_key(uint64_t ended, uint64_t number);
struct bel_key bel__job_id_key(const struct bel_siphash_key secrets[2], struct bel_view id);
struct bel_key bel__task_key(uint64_t job, uint32_t task);
struct bel_key bel__edges_key(uint64_t job, enum bel_edges_kind kind, uint32_t task,
                              uint32_t chunk);
struct bel_key bel__work_key(uint64_t job, enum bel_work_kind kind, uint32_t task);
struct bel_key bel__job_time_key(uint8_t lane, uint64_t time, enum bel_job_time_kind kind,
                                 uint64_t job);

size_t bel__job_row_write(const struct bel_job_row *row, uint8_t out[BEL_JOB_ROW_BYTES_MAX]);
BEL_CHECKED int bel__job_row_read(struct bel_view bytes, struct bel_job_row *out);

size_t bel__task_row_write(const struct bel_task_row *row, uint8_t out[BEL_TASK_ROW_BYTES_MAX]);
BEL_CHECKED int bel__task_row_read(struct bel_view bytes, struct bel_task_row *out);

/* Returns the state of a task: a terminal state, BEL_BLOCKED, or BEL_SCHEDULED for all others. */
enum bel_state bel__task_row_state(const struct bel_task_row *row);

/* An edge of a task: the task at the other end, and the policy. */
struct bel_edge {
    uint32_t task;
    enum bel_edge_policy on;
};

/* Encodes and decodes a row of edges; a topic's number is encoded as a task with policy 0. Reading
 * returns BEL_ECORRUPT unless the row has exactly `count` edges. */
size_t bel__edges_write(const struct bel_edge *edges, size_t count,
                        uint8_t out[BEL_EDGES_ROW_BYTES_MAX]);
BEL_CHECKED int bel__edges_read(struct bel_view bytes, size_t count,
                                struct bel_edge out[BEL_EDGES_OF_ROW]);

/* Returns how many rows a list takes; how many of its `count` edges are in row `chunk`. */
uint32_t bel__edges_rows(uint64_t count);
size_t bel__edges_in_row(uint64_t count, uint32_t chunk);

size_t bel__then_row_write(const struct bel_then_row *row, uint8_t out[BEL_THEN_ROW_BYTES_MAX]);
BEL_CHECKED int bel__then_row_read(struct bel_view bytes, struct bel_then_row *out);

size_t bel__position_write(uint64_t position, uint8_t out[BEL_WORK_ROW_BYTES_MAX]);
BEL_CHECKED int bel__position_read(struct bel_view bytes, uint64_t *out);

#endif
