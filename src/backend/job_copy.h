/* SPDX-License-Identifier: MIT */
#ifndef BEL_BACKEND_JOB_COPY_H
#define BEL_BACKEND_JOB_COPY_H

/*
 * job_copy - copies of jobs that their holder owns. The views of a reply are valid only until
 * `done` returns.
 */

#include "belfry/job.h"

/* Copies jobs of a reply and everything that they point to into one block of memory. Each text of
 * the copy is followed by a 0 byte. Returns NULL if memory is out; bel_job_page_destroy() frees the
 * copy. */
struct bel_job_page *bel__job_page_copy(const struct bel_job *jobs, size_t count,
                                        struct bel_view cursor);

/* Copies one job in the same way; bel_job_destroy() frees the copy. */
struct bel_job *bel__job_copy(const struct bel_job *job);

#endif
