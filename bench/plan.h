/* SPDX-License-Identifier: MIT */
#ifndef BENCH_PLAN_H
#define BENCH_PLAN_H

/* Shared by bench/plan.c and plan_libical.c. */

#include <stdint.h>

double bench_plan_cpu_ns(void);
void bench_plan_report(const char *what, const char *engine, double ns);

/* Measures a recurrence rule with libical; does nothing without libical. */
void bench_libical(const char *what, const char *rule, uint32_t count);

#endif
