/* SPDX-License-Identifier: MIT */

/* Used if libical is not installed. */
#include "plan.h"

void bench_libical(const char *what, const char *rule, uint32_t count)
{
    (void)what;
    (void)rule;
    (void)count;
}
