/* SPDX-License-Identifier: MIT */
#ifndef BEL_JOB_H
#define BEL_JOB_H

/*
 * job - jobs are directed acyclic graphs of tasks. A task is a durable timer that waits, in state
 * blocked, until the tasks that it comes after have ended.
 *
 *     fetch --success--> load --always--> alarm
 *
 * A job is submitted as a JSON text and is found by its id. Its tasks have the timer ids
 * "<job>/<task>" and are claimed from their topics like any timer.
 *
 *     running <--resume/pause--> paused          scheduled: a recurring job, which makes a job
 *        |                          |            "<id>@<nominal ms>" at each nominal time
 *        '--> done, failed, cancelled
 *
 * This header has the words of jobs and the requests and replies of the verbs BEL_VERB_JOB_...;
 * belfry/backend.h has the verbs.
 */

#include "belfry/clock.h"
#include "belfry/declare.h"
#include "belfry/stats.h"
#include "belfry/timer.h"
#include "belfry/view.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

BEL_BEGIN_DECLARATIONS

enum {
    BEL_JOB_IDS_BYTES_MAX = 100, /* of the ids of a job and of a task, together */
    BEL_JOB_PRIORITY_MIN = 1,    /* runs first */
    BEL_JOB_PRIORITY_MAX = 10,
    BEL_JOB_PRIORITY_DEFAULT = 5,
    BEL_JOB_COST_MAX = 1000 * 1000,
    BEL_TASK_PRIORITY_DEFAULT = 128,     /* 0 to 255, lower goes first among equal scores */
    BEL_JOB_COOLDOWN_MS = 5000,          /* default delay before a job of `then` */
    BEL_JOB_THEN_DEPTH_DEFAULT = 5,      /* `then` inside `then` */
    BEL_JOB_THEN_DEPTH_MAX = 20,         /* to which this limit can be raised */
    BEL_JOB_THEN_MAX = 100,              /* jobs of `then` in a text, inner ones included */
    BEL_JOB_GET_COUNT_MAX = 1000,        /* tasks in a reply of JOB GET */
    BEL_JOB_RESULTS_BYTES_MAX = 1 << 20, /* of dependencies, in a delivery */
};

enum bel_job_state {
    BEL_JOB_RUNNING,
    BEL_JOB_PAUSED,
    BEL_JOB_DONE, /* this state and the next two are final */
    BEL_JOB_FAILED,
    BEL_JOB_CANCELLED,
    BEL_JOB_SCHEDULED, /* the plan of a recurring job */
    BEL_JOB_STATES,
};

/* The end of a dependency that a task waits for. All dependencies of a task must end as their edges
 * demand; otherwise the task is skipped. */
enum bel_edge_policy {
    BEL_EDGE_SUCCESS, /* done */
    BEL_EDGE_ALWAYS,  /* any terminal state */
    BEL_EDGE_FAILURE, /* dead, expired or cancelled */
    BEL_EDGE_POLICIES,
};

/* Return the name of a state or a policy in lower case: "running", "success". */
const char *bel_job_state_name(enum bel_job_state state);
const char *bel_edge_policy_name(enum bel_edge_policy policy);

/* Find a state or a policy by its name in lower case. Return false for an unknown name. */
bool bel_job_state_find(struct bel_view name, enum bel_job_state *out);
bool bel_edge_policy_find(struct bel_view name, enum bel_edge_policy *out);

/* Returns whether a job or task id has only valid characters: those of a timer's id without the
 * slash. Its length is limited together with that of the other id (BEL_JOB_IDS_BYTES_MAX). */
bool bel_job_id_is_valid(struct bel_view id);

/* The limits of a submitted job. A value of 0 is the default. A job beyond them fails with
 * BEL_EFULL. */
struct bel_job_limits {
    uint64_t text_bytes_max;    /* of the JSON text; default 16 MiB */
    uint64_t payload_bytes_max; /* of a task; default BEL_PAYLOAD_BYTES_DEFAULT */
    uint32_t tasks_max;         /* default 10,000; including the tasks of `then` */
    uint32_t edges_max;         /* default 100,000; including the edges of `then` */
    uint32_t depth_max;         /* arrays and objects inside each other; default 128 */
    uint32_t then_depth_max;    /* `then` inside `then`; default BEL_JOB_THEN_DEPTH_DEFAULT, at most
                                   BEL_JOB_THEN_DEPTH_MAX */
};

/* The topics that the sender of a request may use. A job with another topic is unknown to the
 * sender: BEL_ENOTFOUND, and JOB LIST leaves it out. `has` NULL: all topics. */
struct bel_job_scope {
    bool (*has)(const void *context, struct bel_view topic);
    const void *context;
};

/* --- requests --- */

struct bel_job_submit {
    struct bel_view text; /* JSON */
    struct bel_view id;   /* of the job, if the text has none or the same; else BEL_EINVAL */
    bool is_replacement;  /* a job with this id is replaced; otherwise BEL_ECONFLICT */
    struct bel_job_scope scope;
};

/* JOB CANCEL, JOB PAUSE and JOB RESUME. */
struct bel_job_target {
    struct bel_view id;
    struct bel_job_scope scope;
};

struct bel_job_get {
    struct bel_view id;
    struct bel_view cursor; /* from the previous reply; empty: the first tasks */
    uint32_t count;         /* tasks in the reply, at most; 0: BEL_JOB_GET_COUNT_MAX */
    struct bel_job_scope scope;
};

struct bel_job_list {
    bool has_state;
    enum bel_job_state state;
    uint32_t count;         /* jobs in the reply, at most; 0: 100; at most BEL_LIST_COUNT_MAX */
    struct bel_view cursor; /* from the previous reply; empty: start at the beginning */
    struct bel_job_scope scope;
};

/* --- replies --- */

struct bel_job_submitted {
    struct bel_view id;
    uint64_t tasks, edges; /* of the job itself, without those of `then` */
};

struct bel_job_after {
    struct bel_view task; /* id */
    enum bel_edge_policy on;
};

struct bel_job_task {
    struct bel_view id, topic; /* the id without that of the job */
    enum bel_state state;
    bool has_due;      /* otherwise blocked, or skipped before it was due */
    bool has_finished; /* the state is terminal */
    uint64_t attempts, crashes;
    uint64_t depth;           /* longest path from a task without dependencies */
    struct bel_wall due;      /* if has_due */
    struct bel_wall finished; /* if has_finished */
    struct bel_view reason;   /* why the task is dead, expired or skipped */
    const struct bel_job_after *after;
    size_t after_count;
};

/* A job. JOB LIST leaves `tasks` empty. */
struct bel_job {
    struct bel_view id;
    enum bel_job_state state;
    struct bel_view reason; /* why the job has failed, "timeout" for example */
    uint8_t priority;
    struct bel_wall created;
    bool has_finished, has_deadline, has_estimate, has_next;
    struct bel_wall finished;    /* if has_finished: the state is final */
    struct bel_wall deadline;    /* if has_deadline: when its timeout ends it */
    uint64_t estimate_ms;        /* if has_estimate: time until the job is done, at the rate of its
                                    finished tasks */
    uint64_t counts[BEL_STATES]; /* of tasks, by state */
    uint64_t tasks_total, edges_total;
    struct bel_view parent;  /* of a job of `then`: the job that it follows */
    struct bel_view clash;   /* the first job of `then` that could not be made: its id is in use */
    struct bel_view plan_id; /* of an occurrence: the recurring job, and its nominal time */
    struct bel_wall nominal;
    struct bel_recurrence plan;     /* of a recurring job; an empty rule: the job does not recur */
    struct bel_wall next;           /* if has_next: the next nominal time of a recurring job */
    uint64_t made, skipped, missed; /* of a recurring job: jobs made, skipped by overlap, missed */
    const struct bel_job_task *tasks;
    size_t tasks_count;
    struct bel_view cursor; /* for the next tasks; empty: these were the last */
    /* What workers did with the tasks that have ended. It is kept with the job. Tasks whose lease
     * began before a restart and are done after it have no times. */
    uint64_t failures, crashes;      /* FAILs, and leases that expired */
    uint64_t completions_per_minute; /* tasks done in the last minute, about */
    uint64_t waited_ms_p50, waited_ms_p99, ran_ms_p50, ran_ms_p99; /* upper bounds: powers of 2 */
    struct bel_spans
        waited;           /* from due to claim, of the tasks that are done; of their last claim */
    struct bel_spans ran; /* from that claim to the acknowledgement */
};

/* --- copies, whose holder owns them --- */

/* Jobs of a list. */
struct bel_job_page {
    const struct bel_job *jobs;
    size_t count;
    struct bel_view cursor; /* for the next page; empty: this is the last */
};

/* Free the copies of bel_driver_job_get() and bel_driver_job_list(); NULL is allowed. */
void bel_job_destroy(struct bel_job *job);
void bel_job_page_destroy(struct bel_job_page *page);

BEL_END_DECLARATIONS
#endif
