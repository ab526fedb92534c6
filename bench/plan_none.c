/* SPDX-License-Identifier: MIT */

/* There is no libical to compare with. */
#include "plan.h"

void bench_libical(const char *what, const char *rule, uint32_t count)
{
    (void)what;
    (void)rule;
    (void)count;
}
