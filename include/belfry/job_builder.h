/* SPDX-License-Identifier: MIT */
#ifndef BEL_JOB_BUILDER_H
#define BEL_JOB_BUILDER_H

/*
 * job_builder - writes the JSON text of a job, for BEL_VERB_JOB_SUBMIT or JOB SUBMIT.
 *
 *     bel_job_builder_create(&(struct bel_job_spec){.id = "nightly"}, &builder);
 *     bel_job_builder_task(builder, &(struct bel_task_spec){.id = "fetch", .topic = "etl"});
 *     bel_job_builder_task(builder, &(struct bel_task_spec){.id = "load", .topic = "etl"});
 *     bel_job_builder_after(builder, "fetch", BEL_EDGE_SUCCESS);
 *     err = bel_job_builder_end(builder, &text);
 *     ...
 *     bel_job_builder_destroy(builder);
 *
 * Texts are in UTF-8 and end in 0; NULL means that a field is absent. The first error is kept, and
 * bel_job_builder_end() returns it, so that a program checks once. The builder escapes and encodes;
 * the values themselves, ids, cycles and limits are checked by the backend that gets the job.
 *
 * Threads: a builder belongs to one thread.
 */

#include "belfry/clock.h"
#include "belfry/declare.h"
#include "belfry/error.h"
#include "belfry/job.h"
#include "belfry/view.h"

#include <stdbool.h>
#include <stdint.h>

BEL_BEGIN_DECLARATIONS

struct bel_job_builder; /* opaque */

/* The fields of a job. Those that are 0 are left out. */
struct bel_job_spec {
    const char *id;
    unsigned priority; /* 1 to 10 */
    uint64_t timeout_ms, pace_ms;
    bool has_cooldown;
    uint64_t cooldown_ms;
    const char *retry;
    const char *every, *cron, *rrule; /* at most one: a recurring job */
    const char *tz, *at, *until;      /* of a recurring job, as are the following */
    const char *misfire, *overlap, *gap, *fold;
    uint64_t count, spread_ms;
};

/* The fields of a task. `id` and `topic` are required. */
struct bel_task_spec {
    const char *id, *topic;
    struct bel_view payload; /* any bytes */
    bool is_json;            /* the payload is a JSON value: it becomes part of the text as it is */
    const char *resource, *retry, *correlation;
    uint32_t cost;
    bool has_priority;
    uint8_t priority;
    uint64_t idle_ms;  /* lease of the task */
    uint64_t delay_ms; /* from when the task is unblocked */
    bool has_at;
    struct bel_wall at;
};

/* Creates a builder; NULL: a job with no fields but its tasks. Returns 0 and sets `*out`, or
 * returns BEL_ENOMEM. */
BEL_CHECKED int bel_job_builder_create(const struct bel_job_spec *job,
                                       struct bel_job_builder **out);

/* Frees a builder and its text; NULL is allowed. */
void bel_job_builder_destroy(struct bel_job_builder *builder);

/* Adds a task. */
void bel_job_builder_task(struct bel_job_builder *builder, const struct bel_task_spec *task);

/* Adds a dependency, or a header, to the last task; without a task: BEL_EINVAL. */
void bel_job_builder_after(struct bel_job_builder *builder, const char *task,
                           enum bel_edge_policy on);
void bel_job_builder_header(struct bel_job_builder *builder, const char *name, const char *value);

/* Adds a job that follows this one: the text that another builder has made. */
void bel_job_builder_then(struct bel_job_builder *builder, struct bel_view job,
                          enum bel_edge_policy on);

/*
 * Adds a task for each name in a text of lines like those of make(1), in `topic`:
 *
 *     # what comes before, after the colon
 *     load: fetch clean
 *     report: load?          ? also after a failure (always), ! only after a failure
 *
 * A task without a line of its own comes after nothing. A name has one line at most. On a wrong
 * line the error is BEL_EINVAL, and bel_job_builder_line() returns its number.
 */
void bel_job_builder_rules(struct bel_job_builder *builder, struct bel_view text,
                           const char *topic);

/* Returns the number of the line that bel_job_builder_rules() has refused, from 1; 0: none. */
unsigned bel_job_builder_line(const struct bel_job_builder *builder);

/* Completes the text, which is valid until the builder is destroyed. Nothing can be added after
 * that. Returns 0 and sets `*out`, or returns the first error: BEL_ENOMEM, BEL_EFULL for more than
 * 1 GiB, or BEL_EINVAL for a call in the wrong order or text that is not UTF-8. */
BEL_CHECKED int bel_job_builder_end(struct bel_job_builder *builder, struct bel_view *out);

BEL_END_DECLARATIONS
#endif
