/* SPDX-License-Identifier: MIT */

/*
 * A slab is one reserved range of addresses; memory is added from its start:
 *
 *     base                 ready             max
 *     | 64 KiB | 64 KiB |..| 2 MiB | 2 MiB | - - - no memory yet - - - |
 *
 * The first two megabytes are added in small steps on ordinary pages, so that a small slab stays
 * small. Later steps are huge pages: random access to millions of items is limited by address
 * translation, and one large fault costs a quarter of the 512 small ones that it replaces.
 *
 * Items given back go on a short stack. If the stack is full, its older half moves to a bit map; if
 * it is empty, a word of the bit map refills it. So items that were given back in any order are
 * taken in the order of their addresses, and the bit map takes one bit per item.
 */
#include "core/slab.h"

#include "core/memory_use.h"

#include <errno.h>
#include <sys/mman.h>

enum {
    SMALL_STEP = 64 << 10,
    LARGE_STEP = 2 << 20,
    PAGE = 4096,
};

enum {
    WORD = 64,
    FRESH = 32, /* new items that are put on the stack at once */
};

static size_t round_up(size_t bytes, size_t step)
{
    return (bytes + step - 1) / step * step;
}

/* Reserves addresses without memory, aligned for huge pages; NULL if there are none. */
static unsigned char *reserve(size_t bytes, int protection)
{
    size_t slack = LARGE_STEP;
    unsigned char *range =
        mmap(NULL, bytes + slack, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (range == MAP_FAILED) return NULL;
    size_t before = round_up((uintptr_t)range, slack) - (uintptr_t)range;
    if (before > 0) (void)munmap(range, before);
    if (before < slack) (void)munmap(range + before + bytes, slack - before);
    return range + before;
}

int bel__slab_init(struct bel__slab *slab, uint32_t item_bytes, uint32_t max)
{
    assert(item_bytes > 0 && item_bytes <= SMALL_STEP);
    assert(max > 0 && max < BEL__SLAB_NONE);

    size_t bytes = round_up((size_t)max * item_bytes, SMALL_STEP);
    if (bytes > LARGE_STEP) bytes = round_up(bytes, LARGE_STEP);
    size_t words = round_up((size_t)max / WORD + 1, WORD);
    size_t map_bytes = round_up((words + words / WORD) * sizeof(uint64_t), SMALL_STEP);
    *slab = (struct bel__slab){.item_bytes = item_bytes, .max = max};
    slab->base = reserve(bytes, PROT_NONE);
    if (slab->base == NULL) return BEL_ENOMEM;
    slab->reserved_bytes = bytes;
    slab->map = (uint64_t *)(void *)reserve(map_bytes, PROT_READ | PROT_WRITE);
    if (slab->map == NULL) {
        bel__slab_finish(slab);
        return BEL_ENOMEM;
    }
    slab->map_bytes = map_bytes;
    slab->summary = slab->map + words;
    if (bytes > LARGE_STEP) {
        (void)madvise(slab->base + LARGE_STEP, bytes - LARGE_STEP, MADV_HUGEPAGE);
    }
    return 0;
}

void bel__slab_finish(struct bel__slab *slab)
{
    if (slab->base != NULL) (void)munmap(slab->base, slab->reserved_bytes);
    if (slab->map != NULL) (void)munmap(slab->map, slab->map_bytes);
    bel__memory_shrink(slab->ready_bytes);
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
    /* One call for 16 pages costs less than 16 page faults. */
    if (have > 0 && want <= LARGE_STEP) {
        (void)madvise(slab->base + have, want - have, MADV_POPULATE_WRITE);
    }
    size_t ready = want / slab->item_bytes;
    slab->ready_bytes = want;
    bel__memory_grow(want - have);
    slab->ready = ready < slab->max ? (uint32_t)ready : slab->max;
    assert(slab->ready >= count);
    return 0;
}

/* Faults the pages in now. */
static int populate(unsigned char *start, size_t bytes)
{
    if (madvise(start, bytes, MADV_POPULATE_WRITE) == 0) return 0;
    if (errno == ENOMEM) return BEL_ENOMEM;
    /* Kernels before 5.14: writing one byte of each page has the same effect. */
    for (size_t at = 0; at < bytes; at += PAGE) {
        volatile unsigned char *byte = start + at;
        *byte = *byte; /* cppcheck-suppress selfAssignment */
    }
    return 0;
}

int bel__slab_prefault(struct bel__slab *slab, uint32_t count)
{
    int err = bel__slab_grow(slab, count);
    if (err) return err;
    err = populate(slab->base, slab->ready_bytes);
    if (err) return err;
    size_t words = slab->ready / WORD + 1, groups = words / WORD + 1;
    size_t summary = (size_t)(slab->summary - slab->map) * sizeof(uint64_t);
    size_t before = summary / PAGE * PAGE;
    unsigned char *map = (unsigned char *)slab->map;
    err = populate(map, round_up(words * sizeof(uint64_t), PAGE));
    if (err) return err;
    size_t after = round_up(summary + groups * sizeof(uint64_t), PAGE);
    return populate(map + before, after - before);
}

void bel__slab_unload(struct bel__slab *slab)
{
    uint32_t half = BEL__SLAB_STACK / 2;
    for (uint32_t i = 0; i < half; i++) {
        uint32_t index = slab->stack[i];
        slab->map[index / WORD] |= UINT64_C(1) << index % WORD;
        slab->summary[index / WORD / WORD] |= UINT64_C(1) << index / WORD % WORD;
        slab->stack[i] = slab->stack[i + half];
    }
    slab->stacked = half;
    slab->mapped += half;
}

/* Moves the free items of the next word of the map to the stack, lowest on top. */
static void reload(struct bel__slab *slab)
{
    uint32_t words = slab->used / WORD / WORD + 1;
    while (slab->summary[slab->cursor % words] == 0) {
        slab->cursor++;
    }
    slab->cursor %= words;
    uint64_t *summary = &slab->summary[slab->cursor];
    uint32_t word = slab->cursor * WORD + (uint32_t)__builtin_ctzll(*summary);
    uint64_t bits = slab->map[word];
    slab->map[word] = 0;
    *summary &= *summary - 1;
    while (bits != 0) {
        uint32_t top = WORD - 1 - (uint32_t)__builtin_clzll(bits);
        slab->stack[slab->stacked++] = word * WORD + top;
        slab->mapped--;
        bits &= ~(UINT64_C(1) << top);
    }
}

uint32_t bel__slab_take_more(struct bel__slab *slab)
{
    assert(slab->stacked == 0);
    if (slab->mapped > 0) {
        reload(slab);
        return bel__slab_take(slab);
    }
    if (slab->used == slab->ready && bel__slab_grow(slab, slab->used + 1) != 0) {
        return BEL__SLAB_NONE;
    }
    uint32_t fresh = slab->ready - slab->used;
    if (fresh > FRESH) fresh = FRESH;
    for (uint32_t i = fresh; i > 0; i--) {
        slab->stack[slab->stacked++] = slab->used + i - 1;
    }
    slab->used += fresh;
    return bel__slab_take(slab);
}
