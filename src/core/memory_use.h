/* SPDX-License-Identifier: MIT */
#ifndef BEL_CORE_MEMORY_USE_H
#define BEL_CORE_MEMORY_USE_H

/*
 * memory_use - how many bytes this process has allocated for what grows with its data.
 *
 *     block = malloc(bytes);
 *     bel__memory_grow(bytes);
 *     ...
 *     bel__memory_shrink(bytes);
 *     free(block);
 *
 * The parts that can become large count the blocks that they hold: slabs, maps, sorted maps,
 * arenas, buffers, deltas, rows of a tree in memory, topics. Unlike the resident set, the count
 * falls when a block is freed, although the allocator may keep the memory; and pages of mapped
 * files are not in it. Memory of libraries, stacks and small fixed parts is not counted.
 *
 * Threads: any.
 */

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

extern _Atomic uint64_t bel__memory_bytes; /* private */

/* Relaxed: the number stands alone, and orders nothing. */
static inline void bel__memory_grow(size_t bytes)
{
    atomic_fetch_add_explicit(&bel__memory_bytes, bytes, memory_order_relaxed);
}

static inline void bel__memory_shrink(size_t bytes)
{
    atomic_fetch_sub_explicit(&bel__memory_bytes, bytes, memory_order_relaxed);
}

/* Returns the number of bytes held now. */
uint64_t bel__memory_used(void);

#endif
