/* SPDX-License-Identifier: MIT */
#ifndef BEL_JOBS_RULES_H
#define BEL_JOBS_RULES_H

/*
 * rules - what the reader of make-like lines needs of a builder.
 */

#include "belfry/job_builder.h"

/* Keeps an error, and the number of the line if it is BEL_EINVAL, unless there is one already. */
void bel__job_builder_refuse(struct bel_job_builder *builder, int err, unsigned line);

bool bel__job_builder_has_failed(const struct bel_job_builder *builder);

#endif
