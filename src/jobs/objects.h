/* SPDX-License-Identifier: MIT */
#ifndef BEL_JOBS_OBJECTS_H
#define BEL_JOBS_OBJECTS_H

/*
 * objects - from the values of a JSON object to a job, a task or a dependency of a draft. Checks
 * what a single value cannot tell: required fields, fields that exclude or need each other, names.
 */

#include "jobs/values.h"

struct bel_zones;

/* What values are checked against. */
struct bel_job_context {
    struct bel_zones *zones; /* NULL: only UTC */
    struct bel_wall now;
    bool is_then;       /* the job belongs to a `then`: it may not recur */
    bool is_occurrence; /* the rule is left out */
};

/* The payload and the headers of a task, which are not among its values. */
struct bel_job_body {
    struct bel_view payload;
    bool is_json; /* the payload is a JSON value other than a string */
    const struct bel_header *headers;
    size_t headers_count;
};

/* Returns what is wrong with the id of a job or a task; NULL if nothing is. */
const char *bel__job_id_fault(struct bel_view id);

/* Completes the last task of the draft. Returns 0, BEL_EINVAL or BEL_ENOMEM. */
BEL_CHECKED int bel__job_build_task(struct bel_job_draft *draft,
                                    const struct bel_job_values *values,
                                    const struct bel_job_body *body,
                                    const struct bel_job_context *context,
                                    struct bel_job_fault *fault);

/* Sets the fields of the job. The rule of a recurring job is checked by making a plan of it. */
BEL_CHECKED int bel__job_build_job(struct bel_job_draft *draft, const struct bel_job_values *values,
                                   const struct bel_job_context *context,
                                   struct bel_job_fault *fault);

/* Adds a dependency of the last task. */
BEL_CHECKED int bel__job_build_after(struct bel_job_draft *draft, struct bel_view name,
                                     enum bel_edge_policy on, struct bel_job_fault *fault);

/* Checks a header that follows `count` headers with `bytes` bytes. */
BEL_CHECKED int bel__job_check_header(const struct bel_header *header, size_t count, size_t bytes,
                                      struct bel_job_fault *fault);

#endif
