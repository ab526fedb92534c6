/* SPDX-License-Identifier: MIT */
#ifndef BEL_TESTS_MEMORY_H
#define BEL_TESTS_MEMORY_H

/*
 * Memory that runs out on demand. A test includes this file and then the source under test, whose
 * allocations are counted from there on:
 *
 *     memory_left = 3;     the fourth and all later allocations fail
 */

#include <stdint.h>
#include <stdlib.h>

static uint64_t memory_left = UINT64_MAX; /* allocations that still succeed */

static inline void *scarce_malloc(size_t bytes)
{
    if (memory_left == 0) return NULL;
    memory_left--;
    return malloc(bytes);
}

static inline void *scarce_realloc(void *old, size_t bytes)
{
    if (memory_left == 0) return NULL;
    memory_left--;
    return realloc(old, bytes);
}

#define malloc  scarce_malloc
#define realloc scarce_realloc

#endif
