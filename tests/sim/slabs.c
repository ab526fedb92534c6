/* SPDX-License-Identifier: MIT */

/*
 * Each opening of an engine reserves addresses for a dozen slabs, which a crash gives back: most of
 * what a short history costs. The linker sends both here (--wrap). The ranges of a slab that is
 * finished are kept, and the next slab of the same size gets them, zeroed as far as they were used.
 */
#include "core/memory_use.h"
#include "core/slab.h"

#include <string.h>

enum {
    KEPT_MAX = 64,
    ITEMS_OF_WORD = 64,
};

int __real_bel__slab_init(struct bel__slab *slab, uint32_t item_bytes, uint32_t max);
int __wrap_bel__slab_init(struct bel__slab *slab, uint32_t item_bytes, uint32_t max);
void __real_bel__slab_finish(struct bel__slab *slab);
void __wrap_bel__slab_finish(struct bel__slab *slab);

static struct bel__slab kept[KEPT_MAX];
static size_t kept_count;

int __wrap_bel__slab_init(struct bel__slab *slab, uint32_t item_bytes, uint32_t max)
{
    for (size_t i = 0; i < kept_count; i++) {
        if (kept[i].item_bytes != item_bytes || kept[i].max != max) continue;
        *slab = kept[i];
        kept[i] = kept[--kept_count];
        return 0;
    }
    return __real_bel__slab_init(slab, item_bytes, max);
}

void __wrap_bel__slab_finish(struct bel__slab *slab)
{
    if (slab->base == NULL || slab->map == NULL || kept_count == KEPT_MAX) {
        __real_bel__slab_finish(slab);
        return;
    }
    size_t words = (size_t)slab->used / ITEMS_OF_WORD + 1;
    memset(slab->base, 0, (size_t)slab->used * slab->item_bytes);
    memset(slab->map, 0, words * sizeof *slab->map);
    memset(slab->summary, 0, (words / ITEMS_OF_WORD + 1) * sizeof *slab->summary);
    bel__memory_shrink(slab->ready_bytes);
    kept[kept_count++] = (struct bel__slab){.item_bytes = slab->item_bytes,
                                            .max = slab->max,
                                            .base = slab->base,
                                            .reserved_bytes = slab->reserved_bytes,
                                            .map = slab->map,
                                            .map_bytes = slab->map_bytes,
                                            .summary = slab->summary};
    *slab = (struct bel__slab){0};
}
