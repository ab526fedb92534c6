/* SPDX-License-Identifier: MIT */

/*
 * An ordered map from keys to entries. The entries are allocated one after the other in blocks:
 *
 *     rows:   key --> entry        blocks:  [entry entry entry.....] -> [entry entry]
 *                                                           ^ next
 *
 * A put never changes an entry. It adds another and makes the map point there; the old one is
 * wasted until the delta is cleared. Then all blocks are freed together, which is fast, or kept for
 * reuse: the kernel zeroes fresh memory page by page on first touch, and a delta that fills in a
 * second touches twenty thousand pages.
 *
 * The map stores the flags of an entry in the low bits of its address, which alignment leaves 0. A
 * change then knows the flags of the previous entry without touching that entry, which is no longer
 * in the CPU cache.
 *
 * Some uses look up many rows that only the tree has. A filter of two bits per key answers them
 * from one cache line, where a search in the map would touch a dozen. It is made when a delta has
 * some rows and many lookups were in vain, and is used until the delta has so many rows that most
 * bits are set.
 *
 * An entry is marked new only if the map had no entry for the key. Over a tombstone it is not new:
 * the tombstone may hide a row below, which would reappear if put and delete cancelled out.
 *
 * A whole delta is never cleared while it is used, so its entries are allocated and freed one by
 * one. Some free entries of each small size are kept for reuse, as many as a usual batch takes: an
 * allocator keeps fewer at hand. The blocks are then a reserve: an entry lies in a block only if
 * the allocator had no memory for it, so that a reserved put cannot fail.
 */
#include "store/delta.h"

#include "core/memory_use.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    ALIGNMENT = 8,
    BLOCK_BYTES = 256 * 1024, /* or more, for a larger reservation */
    FIRST_BLOCK_BYTES = 4096,
    TREE_ROW_BYTES = 64, /* of a row in a tree, without its value: key, checksum, node */
    EXPECTED_KEYS = 8,   /* how many keys ahead an entry is prefetched */
    FORMER_KEPT = 4096,  /* a larger array of former entries is freed when it is empty */
    SPARES_KEPT = 256,   /* of a size */
    LINE_BYTES = 64,
    FILTER_BITS = 19,             /* of the number of bits: 64 KiB */
    FILTER_MISSES_MIN = 256,      /* lookups in vain that make it */
    FILTER_ROWS_MIN = 512,        /* fewer are found as fast without */
    FILTER_ROWS_FIRST = 4096,     /* bounds the time to make it */
    FILTER_ROWS_MAX = 128 * 1024, /* of more, a third is not told apart */
};

enum {
    FILTER_WORDS = 1 << (FILTER_BITS - 6),
};

struct bel_delta_block {
    struct bel_delta_block *next;
    size_t room; /* bytes of data */
    uint64_t data[];
};

static_assert(sizeof(struct bel_delta_entry) == ALIGNMENT, "entries lie side by side");
static_assert(sizeof(struct bel_delta_entry) >= sizeof(void *), "a spare entry holds a link");
static_assert((BEL_DELTA_GONE | BEL_DELTA_NEW | BEL_DELTA_ALONE) < ALIGNMENT,
              "flags fit beside an address");

void bel__delta_init(struct bel_delta *delta)
{
    *delta = (struct bel_delta){0};
    bel__sorted_init(&delta->rows);
}

void bel__delta_init_whole(struct bel_delta *delta)
{
    bel__delta_init(delta);
    delta->is_whole = true;
}

/* Returns the word of the filter for a key, and sets `*out` to its two bits. */
static size_t filter_place(const struct bel_key *key, uint64_t *out)
{
    uint64_t hash = key->words[0] * UINT64_C(0x9e3779b97f4a7c15) +
                    key->words[1] * UINT64_C(0xbf58476d1ce4e5b9) +
                    key->words[2] * UINT64_C(0x94d049bb133111eb);
    hash = (hash ^ hash >> 32) * UINT64_C(0xd6e8feb86659fd93);
    *out = UINT64_C(1) << (hash >> 20 & 63) | UINT64_C(1) << (hash >> 26 & 63);
    return (size_t)(hash >> (64 - (FILTER_BITS - 6)));
}

/* Notes in the filter that a key has an entry. */
static void filter_add(struct bel_delta *delta, const struct bel_key *key)
{
    uint64_t bits;
    if (delta->filter == NULL) return;
    size_t word = filter_place(key, &bits);
    delta->filter[word] |= bits;
}

/* Returns whether a key may have an entry. */
static bool filter_has(const struct bel_delta *delta, const struct bel_key *key)
{
    uint64_t bits;
    if (delta->filter == NULL || bel__sorted_count(&delta->rows) > FILTER_ROWS_MAX) return true;
    size_t word = filter_place(key, &bits);
    return (delta->filter[word] & bits) == bits;
}

static void filter_free(struct bel_delta *delta)
{
    if (delta->filter == NULL) return;
    bel__memory_shrink(FILTER_WORDS * sizeof delta->filter[0]);
    free(delta->filter);
    delta->filter = NULL;
}

/* Makes the filter of a delta that needs one. Without memory there is none. */
static void filter_make(struct bel_delta *delta)
{
    static const struct bel_key zero = {{0, 0, 0}};
    struct bel_sorted_place place;
    uint64_t count = bel__sorted_count(&delta->rows);
    if (count < FILTER_ROWS_MIN || count > FILTER_ROWS_FIRST) return;
    delta->filter = calloc(FILTER_WORDS, sizeof delta->filter[0]);
    if (delta->filter == NULL) return;
    bel__memory_grow(FILTER_WORDS * sizeof delta->filter[0]);
    bool has_more = bel__sorted_seek(&delta->rows, &zero, &place);
    while (has_more) {
        filter_add(delta, &place.key);
        has_more = bel__sorted_next(&delta->rows, &place);
    }
}

/* Keeps blocks of the usual size for reuse, up to `*bytes` bytes, and frees the others. */
static void give_blocks(struct bel_delta *delta, struct bel_delta_block *blocks, size_t *bytes)
{
    struct bel_delta_block *next;
    for (struct bel_delta_block *block = blocks; block != NULL; block = next) {
        next = block->next;
        if (block->room == BLOCK_BYTES && *bytes >= BLOCK_BYTES) {
            *bytes -= BLOCK_BYTES;
            block->next = delta->kept;
            delta->kept = block;
        } else {
            bel__memory_shrink(sizeof *block + block->room);
            free(block);
        }
    }
}

static size_t rounded_up(size_t bytes)
{
    return (bytes + (ALIGNMENT - 1)) & ~(size_t)(ALIGNMENT - 1);
}

/* Convert an entry to a value of the map (address and flags), and back. */
static uint64_t row_of(const struct bel_delta_entry *entry)
{
    assert(((uintptr_t)entry & (ALIGNMENT - 1)) == 0 && entry->flags < ALIGNMENT);
    return (uintptr_t)entry | entry->flags;
}

static struct bel_delta_entry *entry_of(uint64_t row)
{
    uintptr_t address = (uintptr_t)row & ~(uintptr_t)(ALIGNMENT - 1);
    return (struct bel_delta_entry *)address; /* NOLINT(performance-no-int-to-ptr) */
}

static void free_alone(struct bel_delta *delta, void *entry, size_t bytes)
{
    assert(delta->alone_bytes >= bytes);
    delta->alone_bytes -= bytes;
    bel__memory_shrink(bytes);
    free(entry);
}

/* Gives back an entry that was allocated alone. */
static void give_alone(struct bel_delta *delta, struct bel_delta_entry *entry)
{
    size_t bytes = rounded_up(sizeof *entry + entry->bytes), size = bytes / ALIGNMENT;
    assert((entry->flags & BEL_DELTA_ALONE) != 0);
    if (size >= BEL_DELTA_SPARES || delta->spares[size].count == SPARES_KEPT) {
        free_alone(delta, entry, bytes);
        return;
    }
    struct bel_delta_spare *spare = &delta->spares[size];
    memcpy(entry, &spare->first, sizeof spare->first);
    spare->first = entry;
    spare->count++;
}

static void *take_spare(struct bel_delta_spare *spare)
{
    void *entry = spare->first;
    assert(spare->count > 0);
    memcpy(&spare->first, entry, sizeof spare->first);
    spare->count--;
    return entry;
}

static void free_spares(struct bel_delta *delta)
{
    for (size_t size = 0; size < BEL_DELTA_SPARES; size++) {
        struct bel_delta_spare *spare = &delta->spares[size];
        while (spare->count > 0) {
            free_alone(delta, take_spare(spare), size * ALIGNMENT);
        }
    }
}

void bel__delta_settle(struct bel_delta *delta)
{
    for (size_t i = 0; i < delta->former_count; i++) {
        give_alone(delta, delta->former[i]);
    }
    delta->former_count = 0;
    if (delta->former_max <= FORMER_KEPT) return;
    free(delta->former);
    delta->former = NULL;
    delta->former_max = 0;
}

/* Frees all entries of a whole delta that were allocated alone. */
static void free_all_alone(struct bel_delta *delta)
{
    static const struct bel_key zero = {{0, 0, 0}};
    struct bel_sorted_place place;
    bel__delta_settle(delta);
    bool has_more = bel__sorted_seek(&delta->rows, &zero, &place);
    while (has_more) {
        if ((place.value & BEL_DELTA_ALONE) != 0) give_alone(delta, entry_of(place.value));
        has_more = bel__sorted_next(&delta->rows, &place);
    }
    free_spares(delta);
    assert(delta->alone_bytes == 0);
    free(delta->former);
    delta->former = NULL;
}

void bel__delta_clear(struct bel_delta *delta, size_t bytes_max)
{
    if (delta->is_whole) free_all_alone(delta);
    struct bel_delta_block *blocks = delta->blocks, *kept = delta->kept;
    size_t row_bytes = bel__sorted_bytes(&delta->rows);
    filter_free(delta);
    if (row_bytes <= bytes_max) {
        bel__sorted_clear(&delta->rows);
        bytes_max -= row_bytes;
    } else {
        bel__sorted_finish(&delta->rows);
    }
    *delta = (struct bel_delta){.rows = delta->rows, .is_whole = delta->is_whole};
    give_blocks(delta, blocks, &bytes_max);
    give_blocks(delta, kept, &bytes_max);
    assert(bel__delta_count(delta) == 0 && delta->left_bytes == 0);
}

void bel__delta_finish(struct bel_delta *delta)
{
    bel__delta_clear(delta, 0);
}

/* Adds a block with room for `need` bytes. */
static int add_block(struct bel_delta *delta, size_t need)
{
    struct bel_delta_block *block = delta->kept;
    if (block != NULL && need <= BLOCK_BYTES) {
        delta->kept = block->next;
    } else {
        size_t usual = delta->blocks == NULL ? FIRST_BLOCK_BYTES : BLOCK_BYTES;
        size_t room = need > usual ? rounded_up(need) : usual;
        block = malloc(sizeof *block + room);
        if (block == NULL) return BEL_ENOMEM;
        bel__memory_grow(sizeof *block + room);
        block->room = room;
    }
    assert(block->room >= need);
    block->next = delta->blocks;
    delta->blocks = block;
    delta->next = (uint8_t *)block->data;
    delta->left_bytes = block->room;
    delta->block_bytes += sizeof *block + block->room;
    return 0;
}

/* Makes sure that `rows` more entries of a whole delta can lose their keys. */
static int reserve_former(struct bel_delta *delta, size_t rows)
{
    if (rows <= delta->former_max - delta->former_count) return 0;
    size_t max = 2 * delta->former_max;
    if (rows > SIZE_MAX / 4 / sizeof(void *)) return BEL_ENOMEM;
    if (max < delta->former_count + rows) max = delta->former_count + rows;
    void *former = realloc(delta->former, max * sizeof(void *));
    if (former == NULL) return BEL_ENOMEM;
    delta->former = former;
    delta->former_max = max;
    return 0;
}

int bel__delta_reserve(struct bel_delta *delta, size_t rows, size_t bytes)
{
    int err = bel__sorted_reserve(&delta->rows, rows);
    if (err) return err;
    if (delta->is_whole) {
        err = reserve_former(delta, rows);
        if (err) return err;
    } else if (delta->misses >= FILTER_MISSES_MIN && delta->filter == NULL) {
        filter_make(delta);
    }
    size_t row_bytes = sizeof(struct bel_delta_entry) + ALIGNMENT - 1;
    if (rows > SIZE_MAX / 4 / row_bytes || bytes > SIZE_MAX / 4) return BEL_ENOMEM;

    size_t need = rows * row_bytes + bytes;
    return need <= delta->left_bytes ? 0 : add_block(delta, need);
}

/* Allocates an entry alone, if there is memory. */
static struct bel_delta_entry *take_alone(struct bel_delta *delta, size_t bytes)
{
    size_t size = bytes / ALIGNMENT;
    if (size < BEL_DELTA_SPARES && delta->spares[size].count > 0) {
        return take_spare(&delta->spares[size]);
    }
    struct bel_delta_entry *entry = malloc(bytes);
    if (entry == NULL) return NULL;
    bel__memory_grow(bytes);
    delta->alone_bytes += bytes;
    return entry;
}

static struct bel_delta_entry *take(struct bel_delta *delta, size_t value_bytes)
{
    assert(value_bytes <= UINT32_MAX);
    size_t bytes = rounded_up(sizeof(struct bel_delta_entry) + value_bytes);
    if (delta->is_whole) {
        struct bel_delta_entry *alone = take_alone(delta, bytes);
        if (alone != NULL) {
            alone->bytes = (uint32_t)value_bytes;
            alone->flags = BEL_DELTA_ALONE;
            return alone;
        }
    }
    assert(bytes <= delta->left_bytes); /* fails if the memory was not reserved */
    struct bel_delta_entry *entry = (struct bel_delta_entry *)(void *)delta->next;
    delta->next += bytes;
    delta->left_bytes -= bytes;
    entry->bytes = (uint32_t)value_bytes;
    entry->flags = 0;
    return entry;
}

/* Takes the key from an entry of a whole delta. */
static void retire(struct bel_delta *delta, uint64_t row)
{
    if ((row & BEL_DELTA_ALONE) == 0) return;
    assert(delta->former_count < delta->former_max);
    delta->former[delta->former_count++] = entry_of(row);
}

static void put_whole(struct bel_delta *delta, const struct bel_key *key, struct bel_view value)
{
    struct bel_delta_entry *entry = bel__delta_make(delta, value, 0);
    struct bel_sorted_way way;
    if (bel__sorted_append(&delta->rows, key, row_of(entry))) return;
    uint64_t *row = bel__sorted_look(&delta->rows, key, &way);
    if (row != NULL) {
        retire(delta, *row);
        *row = row_of(entry);
    } else {
        bel__sorted_add(&delta->rows, &way, key, row_of(entry));
    }
}

static void delete_whole(struct bel_delta *delta, const struct bel_key *key)
{
    struct bel_sorted_way way;
    const uint64_t *row = bel__sorted_look(&delta->rows, key, &way);
    if (row == NULL) return;
    retire(delta, *row);
    bel__sorted_drop(&delta->rows, &way);
}

void bel__delta_put(struct bel_delta *delta, const struct bel_key *key, struct bel_view value,
                    bool is_new)
{
    struct bel_sorted_way way;
    if (delta->is_whole) {
        put_whole(delta, key, value);
        return;
    }
    struct bel_delta_entry *entry = bel__delta_make(delta, value, is_new ? BEL_DELTA_NEW : 0);
    filter_add(delta, key);
    if (bel__sorted_append(&delta->rows, key, row_of(entry))) return;
    uint64_t *row = bel__sorted_look(&delta->rows, key, &way);
    if (row != NULL) {
        entry->flags = (uint32_t)*row & BEL_DELTA_NEW;
        *row = row_of(entry);
    } else {
        bel__sorted_add(&delta->rows, &way, key, row_of(entry));
    }
}

void bel__delta_delete(struct bel_delta *delta, const struct bel_key *key)
{
    struct bel_sorted_way way;
    if (delta->is_whole) {
        delete_whole(delta, key);
        return;
    }
    uint64_t *row = bel__sorted_look(&delta->rows, key, &way);
    if (row != NULL && (*row & BEL_DELTA_NEW) != 0) {
        bel__sorted_drop(&delta->rows, &way);
        return;
    }
    if (row != NULL && (*row & BEL_DELTA_GONE) != 0) return;

    struct bel_delta_entry *entry = take(delta, 0);
    entry->flags = BEL_DELTA_GONE;
    if (row != NULL) {
        *row = row_of(entry);
    } else {
        bel__sorted_add(&delta->rows, &way, key, row_of(entry));
        filter_add(delta, key);
    }
}

struct bel_delta_entry *bel__delta_make(struct bel_delta *delta, struct bel_view value,
                                        unsigned flags)
{
    struct bel_delta_entry *entry = take(delta, value.bytes);
    assert((flags & BEL_DELTA_GONE) == 0 || value.bytes == 0);
    if (value.bytes > 0) memcpy(entry->data, value.data, value.bytes);
    entry->flags |= flags;
    return entry;
}

void bel__delta_place(struct bel_delta *delta, const struct bel_key *key,
                      struct bel_delta_entry *entry)
{
    bool replaced = bel__sorted_put(&delta->rows, key, row_of(entry), NULL);
    assert(!replaced);
    (void)replaced;
    filter_add(delta, key);
}

const struct bel_delta_entry *bel__delta_find(const struct bel_delta *delta,
                                              const struct bel_key *key)
{
    if (!filter_has(delta, key)) return NULL;
    const uint64_t *row = bel__sorted_find(&delta->rows, key);
    if (row == NULL) return NULL;
    const struct bel_delta_entry *entry = entry_of(*row);
    assert(row_of(entry) == *row);
    return entry;
}

static void show(struct bel_delta_place *place)
{
    place->key = place->place.key;
    place->entry = entry_of(place->place.value);
}

bool bel__delta_seek(const struct bel_delta *delta, const struct bel_key *from,
                     struct bel_delta_place *out)
{
    struct bel_delta_place place;
    if (!bel__sorted_seek(&delta->rows, from, &place.place)) return false;
    show(&place);
    *out = place;
    return true;
}

bool bel__delta_next(const struct bel_delta *delta, struct bel_delta_place *place)
{
    if (!bel__sorted_next(&delta->rows, &place->place)) return false;
    show(place);
    return true;
}

void bel__delta_expect(const struct bel_delta_place *place)
{
    uint64_t value = bel__sorted_peek(&place->place, EXPECTED_KEYS);
    if (value == 0) return;
    const char *entry = (const char *)entry_of(value);
    __builtin_prefetch(entry);
    __builtin_prefetch(entry + LINE_BYTES);
}

uint64_t bel__delta_count(const struct bel_delta *delta)
{
    return bel__sorted_count(&delta->rows);
}

size_t bel__delta_bytes(const struct bel_delta *delta)
{
    return delta->block_bytes + delta->alone_bytes + bel__sorted_bytes(&delta->rows);
}

size_t bel__delta_row_bytes(const struct bel_delta *delta)
{
    size_t bytes = delta->block_bytes - delta->left_bytes;
    return 2 * (bytes + bel__delta_count(delta) * TREE_ROW_BYTES);
}
