/* SPDX-License-Identifier: MIT */
#ifndef BEL_JOBS_GRAPH_H
#define BEL_JOBS_GRAPH_H

/*
 * graph - a submitted job in memory, parsed and checked: its fields, its tasks in the order of the
 * text, and its edges in both directions. jobs/parser.h makes a graph from a JSON text.
 *
 *     tasks      0 fetch      1 load       2 alarm
 *     after                   [0 success]  [1 always]        edges of task i:
 *     dependents [1 success]  [2 always]                     bel__job_after(graph, i) and so on
 *
 * A graph is immutable and owns all memory that it points to, except `then[i].text`, which points
 * into the JSON text. Every value has been checked: ids and topics are valid, the graph has no
 * cycle, retry policies and rules parse, limits hold. What only the engine knows has not been
 * checked: ids that are in use, the depth limits of topics.
 */

#include "belfry/job.h"
#include "core/arena.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bel_job_graph;

/* One end of an edge as the task at the other end sees it. */
struct bel_job_edge {
    uint32_t task; /* index of the task at the far end */
    enum bel_edge_policy on;
};

struct bel_job_node {
    struct bel_view id, topic, payload;           /* the id without that of the job */
    struct bel_view resource, retry, correlation; /* empty: none; retry: that of the job or topic */
    const struct bel_header *headers; /* include content-type for a payload that is a JSON value */
    size_t headers_count;
    uint32_t topic_index;                        /* in `topics` */
    uint32_t depth;                              /* longest path from a task without dependencies */
    uint32_t cost;                               /* 0 to BEL_JOB_COST_MAX; default 0 */
    uint8_t priority;                            /* default BEL_TASK_PRIORITY_DEFAULT */
    enum bel_when when;                          /* BEL_WHEN_NOW: due when unblocked */
    uint64_t delay_ms;                           /* BEL_WHEN_IN: from when the task is unblocked */
    struct bel_wall at;                          /* BEL_WHEN_AT: not before */
    uint64_t idle_ms;                            /* lease of the task; 0: that of the topic */
    uint32_t after_start, after_count;           /* in `after`, in the order of the text */
    uint32_t dependents_start, dependents_count; /* in `dependents`, in the order of tasks */
};

/* A topic of the job, and how many of its tasks are in it. Topics are distinct, in the order in
 * which the text names them. */
struct bel_job_topic {
    struct bel_view name;
    uint32_t tasks_count;
};

/* A job that begins when this one has ended. Its graph has an id: the one in the text, or
 * "<parent>.<n>" with n from 1, the place in `then`. */
struct bel_job_then {
    enum bel_edge_policy on;     /* success: the parent is done; failure: it has failed; always: one
                                    of these. Nothing follows a cancelled job */
    struct bel_view text;        /* the JSON text of the job */
    struct bel_job_graph *graph; /* it has no rule */
};

struct bel_job_graph {
    struct bel_view id;
    uint8_t priority;
    uint64_t timeout_ms;   /* 0: none */
    uint64_t pace_ms;      /* 0: none */
    uint64_t cooldown_ms;  /* before a job of `then` begins */
    struct bel_view retry; /* of tasks without their own; empty: that of the topic */
    bool is_recurring;
    struct bel_recurrence plan; /* if is_recurring; mode rate */
    bool has_start;             /* if is_recurring: `start` is the first nominal time */
    struct bel_wall start;
    const struct bel_job_node *tasks;
    uint32_t tasks_count;
    uint32_t edges_count;
    const struct bel_job_edge *after, *dependents; /* edges_count each */
    const uint32_t *order; /* task indices, each after those that it depends on */
    const struct bel_job_topic *topics;
    uint32_t topics_count;
    const struct bel_job_then *then;
    uint32_t then_count;
    struct bel_arena memory; /* private: all that the graph points to */
    size_t bytes;            /* private: of `memory` */
};

/* Returns the edges of a task: to what it comes after, and to what comes after it. */
static inline const struct bel_job_edge *bel__job_after(const struct bel_job_graph *graph,
                                                        uint32_t task)
{
    return graph->after + graph->tasks[task].after_start;
}

static inline const struct bel_job_edge *bel__job_dependents(const struct bel_job_graph *graph,
                                                             uint32_t task)
{
    return graph->dependents + graph->tasks[task].dependents_start;
}

/* Returns whether a scope has every topic of the job and of its `then`. */
bool bel__job_graph_in_scope(const struct bel_job_graph *graph, const struct bel_job_scope *scope);

/* Returns how many topics the job and its `then` name; a topic of two jobs counts twice. Writes
 * their names to `out`, unless it is NULL: those of the job first, in the order of `topics`. */
size_t bel__job_graph_topics(const struct bel_job_graph *graph, struct bel_view *out);

/* Returns the bytes that the graph and its `then` occupy. */
size_t bel__job_graph_bytes(const struct bel_job_graph *graph);

/* Returns whether every invariant holds. Takes time linear in the size. For tests. */
bool bel__job_graph_valid(const struct bel_job_graph *graph);

/* Frees a graph and those of its `then`; NULL is allowed. */
void bel__job_graph_destroy(struct bel_job_graph *graph);

#endif
