/* SPDX-License-Identifier: MIT */

/* One counter for the process: two servers in one process share one memory. */
#include "core/memory_use.h"

_Atomic uint64_t bel__memory_bytes;

uint64_t bel__memory_used(void)
{
    return atomic_load_explicit(&bel__memory_bytes, memory_order_relaxed);
}
