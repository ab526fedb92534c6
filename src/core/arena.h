/* SPDX-License-Identifier: MIT */
#ifndef BEL_CORE_ARENA_H
#define BEL_CORE_ARENA_H

/*
 * arena - memory that is allocated piece by piece and freed all at once, for example the replies of
 * a batch.
 */

#include "belfry/view.h"

#include <stddef.h>

struct bel_arena_block; /* private */

struct bel_arena {
    struct bel_arena_block *blocks; /* private: the first block is the one in use */
    size_t used;                    /* bytes of the first block */
};

/* Frees all blocks. An arena that is zeroed is empty. */
void bel__arena_finish(struct bel_arena *arena);

/* Frees all memory except one block, which is kept for reuse. */
void bel__arena_reset(struct bel_arena *arena);

/* Allocates `bytes` bytes, aligned for any type. Returns NULL if memory has run out. */
void *bel__arena_take(struct bel_arena *arena, size_t bytes);

/* Copies bytes. The pointer of the result is NULL only if memory has run out. */
struct bel_view bel__arena_copy(struct bel_arena *arena, struct bel_view view);

#endif
