/* SPDX-License-Identifier: MIT */

/* Virtual time for engines that take the time as an argument: a variable. For the others see
 * virtual.c. */
#include "engine.h"

void bench_set_now(uint64_t now)
{
    bench_now = now;
}
