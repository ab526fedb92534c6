/* SPDX-License-Identifier: MIT */
#ifndef BEL_PLAN_EXPLAIN_H
#define BEL_PLAN_EXPLAIN_H

/*
 * explain - describes a rule as an English sentence; explain.c.
 */

#include "plan/cron.h"
#include "plan/writer.h"

/* Writes "At 09:00 on Monday to Friday", without a full stop. */
void bel__explain_cron(struct writer *writer, const struct bel_cron *cron);

#endif
