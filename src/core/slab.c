/* SPDX-License-Identifier: MIT */

/*
 * One reserved range of addresses, made usable from its start:
 *
 *     base                 ready             max
 *     | 64 KiB | 64 KiB |..| 2 MiB | 2 MiB | - - - no memory yet - - - |
 *
 * The first two megabytes come in small steps on ordinary pages, so that a small
 * slab stays small. What follows comes in steps of a huge page: random access to
 * millions of items is bound by address translation, and one large fault costs a
 * quarter of the 512 small ones it replaces.
 */
#include "core/slab.h"

#include <errno.h>
#include <sys/mman.h>

enum {
    SMALL_STEP = 64 << 10,
    LARGE_STEP = 2 << 20,
};

static size_t round_up(size_t bytes, size_t step)
{
    return (bytes + step - 1) / step * step;
}

int bel__slab_init(struct bel__slab *slab, uint32_t item_bytes, uint32_t link_offset, uint32_t max)
{
    assert(item_bytes > 0 && item_bytes <= SMALL_STEP);
    assert(link_offset + sizeof(uint32_t) <= item_bytes);
    assert(max > 0 && max < BEL__SLAB_NONE);

    size_t bytes = round_up((size_t)max * item_bytes, SMALL_STEP);
    if (bytes > LARGE_STEP) bytes = round_up(bytes, LARGE_STEP);
    size_t slack = LARGE_STEP; /* so that huge pages line up */
    unsigned char *range =
        mmap(NULL, bytes + slack, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (range == MAP_FAILED) return BEL_ENOMEM;

    size_t before = round_up((uintptr_t)range, slack) - (uintptr_t)range;
    if (before > 0) (void)munmap(range, before);
    if (before < slack) (void)munmap(range + before + bytes, slack - before);
    unsigned char *base = range + before;
    if (bytes > LARGE_STEP) {
        (void)madvise(base + LARGE_STEP, bytes - LARGE_STEP, MADV_HUGEPAGE);
    }
    *slab = (struct bel__slab){
        .base = base,
        .reserved_bytes = bytes,
        .item_bytes = item_bytes,
        .link_offset = link_offset,
        .max = max,
        .free = BEL__SLAB_NONE,
    };
    return 0;
}

void bel__slab_finish(struct bel__slab *slab)
{
    if (slab->base == NULL) return;
    (void)munmap(slab->base, slab->reserved_bytes);
    *slab = (struct bel__slab){0};
}

int bel__slab_grow(struct bel__slab *slab, uint32_t count)
{
    if (count > slab->max) return BEL_EFULL;
    if (count <= slab->ready) return 0;

    size_t have = slab->ready_bytes;
    size_t want = round_up((size_t)count * slab->item_bytes, SMALL_STEP);
    if (want > LARGE_STEP) want = round_up(want, LARGE_STEP);
    if (want > slab->reserved_bytes) want = slab->reserved_bytes;
    if (want > have && mprotect(slab->base + have, want - have, PROT_READ | PROT_WRITE) != 0) {
        return BEL_ENOMEM;
    }
    size_t ready = want / slab->item_bytes;
    slab->ready_bytes = want;
    slab->ready = ready < slab->max ? (uint32_t)ready : slab->max;
    assert(slab->ready >= count);
    return 0;
}

int bel__slab_prefault(struct bel__slab *slab, uint32_t count)
{
    int err = bel__slab_grow(slab, count);
    if (err) return err;

    size_t bytes = slab->ready_bytes;
    if (madvise(slab->base, bytes, MADV_POPULATE_WRITE) == 0) return 0;
    if (errno == ENOMEM) return BEL_ENOMEM;
    /* A kernel before 5.14: writing a byte of each page back does the same. */
    for (size_t at = 0; at < bytes; at += 4096) {
        volatile unsigned char *byte = slab->base + at;
        *byte = *byte;
    }
    return 0;
}
