/* SPDX-License-Identifier: MIT */
#ifndef BEL_JOBS_HINTS_H
#define BEL_JOBS_HINTS_H

/*
 * hints - what was meant by a name in a job's text that does not exist: the field of another
 * scheduler, a field of another object, or a typing error.
 */

#include "jobs/draft.h"
#include "jobs/values.h"

/* Sets the text of the fault of an unknown field: "unknown field; did you mean 'after'?". Returns
 * BEL_EINVAL. */
int bel__job_refuse_field(enum bel_job_object object, const struct bel_json_token *name,
                          struct bel_job_fault *fault);

/* Sets the text of the fault of a dependency that names no task. Compares the name with at most
 * 200 ids. Returns BEL_EINVAL. */
int bel__job_refuse_task(const struct bel_job_draft *draft, struct bel_view name,
                         struct bel_job_fault *fault);

#endif
