/* SPDX-License-Identifier: MIT */
#ifndef BEL_JOBS_DRAFT_H
#define BEL_JOBS_DRAFT_H

/*
 * draft - a job while its text is read: arrays that grow. When the text of the job has ended,
 * bel__job_check() resolves names, finds cycles and makes the arrays of the graph.
 */

#include "core/map.h"
#include "jobs/graph.h"

struct bel_text_error;

enum {
    BEL_JOB_MORE = 1, /* the work is not finished: call again */
};

/* What is wrong, and where in the job: "tasks[3].after[0]"; empty: in the value being read. */
struct bel_job_fault {
    char place[64];
    char text[BEL_WHY_BYTES];
};

/* Sets what is wrong and returns `err`. */
int bel__job_fault(struct bel_job_fault *fault, int err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Sets where a fault is and returns `err`. */
int bel__job_fault_at(struct bel_job_fault *fault, int err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* A dependency by name. */
struct bel_job_wish {
    struct bel_view name;
    uint32_t task;  /* that comes after it */
    uint32_t place; /* in the `after` of the task */
    enum bel_edge_policy on;
};

struct bel_job_draft {
    struct bel_job_graph *graph; /* owns all texts */
    struct bel_job_node *tasks;
    struct bel_job_wish *wishes; /* in the order of tasks */
    struct bel_job_topic *topics;
    struct bel_job_then *then;
    uint32_t tasks_count, tasks_room, wishes_count, wishes_room;
    uint32_t topics_count, topics_room, then_count, then_room;
    uint32_t longest;     /* the task with the longest id */
    bool is_stored;       /* see bel_job_parser_options */
    struct bel_map names; /* of topics, then of tasks: index */
    struct {              /* private to check.c */
        int phase;
        uint32_t at;
        uint32_t ordered; /* tasks in `order` */
        struct bel_job_edge *after, *dependents;
        uint32_t *order, *stamps;
    } check;
};

/* Initialises an empty draft. Returns 0 or BEL_ENOMEM. */
BEL_CHECKED int bel__job_draft_init(struct bel_job_draft *draft, struct bel_siphash_key secret);

/* Frees the draft, and its graph unless that has been taken away. */
void bel__job_draft_finish(struct bel_job_draft *draft);

/* Allocates memory that lives as long as the graph. Returns NULL if memory has run out. */
void *bel__job_draft_take(struct bel_job_draft *draft, size_t bytes);

/* Add an element and return it, zeroed, or return NULL if memory has run out. */
struct bel_job_node *bel__job_draft_add_task(struct bel_job_draft *draft);
struct bel_job_wish *bel__job_draft_add_wish(struct bel_job_draft *draft);
struct bel_job_then *bel__job_draft_add_then(struct bel_job_draft *draft);

/* Counts a task in its topic and sets its topic_index. Returns 0 or BEL_ENOMEM. */
BEL_CHECKED int bel__job_draft_count_topic(struct bel_job_draft *draft, struct bel_job_node *task);

/* Checks the tasks and their dependencies and completes the graph, about `*work` units at a time.
 * Returns 0, BEL_JOB_MORE, BEL_EINVAL or BEL_ENOMEM. */
BEL_CHECKED int bel__job_check(struct bel_job_draft *draft, uint32_t *work,
                               struct bel_job_fault *fault);

#endif
