/* SPDX-License-Identifier: MIT */
#ifndef BEL_CORE_ARENA_H
#define BEL_CORE_ARENA_H

/*
 * arena - memory that is taken piece by piece and given back all at once: what the answers of
 * a batch point to.
 */

#include "belfry/view.h"

#include <stddef.h>

struct bel_arena_block; /* private */

struct bel_arena {
    struct bel_arena_block *blocks; /* private: the first is the one in use */
    size_t used;                    /* bytes of it */
};

/* An arena that is zeroed is empty. */
void bel__arena_finish(struct bel_arena *arena);

/* Gives all back but one block, for the next time. */
void bel__arena_reset(struct bel_arena *arena);

/* So many bytes, aligned for anything; NULL if there is no memory. */
void *bel__arena_take(struct bel_arena *arena, size_t bytes);

/* A copy of bytes; its pointer is NULL if there is no memory, and only then. */
struct bel_view bel__arena_copy(struct bel_arena *arena, struct bel_view view);

#endif
