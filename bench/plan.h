/* SPDX-License-Identifier: MIT */
#ifndef BENCH_PLAN_H
#define BENCH_PLAN_H

/* What bench/plan.c shares with the file that knows libical. */

#include <stdint.h>

double bench_plan_cpu_ns(void);
void bench_plan_report(const char *what, const char *engine, double ns);

/* Measures a recurrence rule by libical; nothing if there is none. */
void bench_libical(const char *what, const char *rule, uint32_t count);

#endif
