/* SPDX-License-Identifier: MIT */

/* Virtual time for engines that are told it: a variable. The others get virtual.c. */
#include "engine.h"

void bench_set_now(uint64_t now)
{
    bench_now = now;
}
