/* SPDX-License-Identifier: MIT */

/*
 * Counts are in a map by key; changed counts are also in a linked list. A row stores only the
 * numbers that are not 0, after a word with a bit for each of them:
 *
 *     1 << 0 | 1 << 5 | 1 << 6    number 0    number 5    number 6
 */
#include "engine/rows/counts.h"

#include "engine/rows/key.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    KEPT_BYTES_MAX = 8 << 20, /* bytes of memory; with more, counts are freed */
    TRIM_MAX = 20 * 1000,     /* more than a turn can load, and a millisecond or two */
    WHICH_BYTES = BEL_ENCODED_NUMBER_BYTES_MAX,
};

static_assert((int)BEL_COUNT_ROW_BYTES_MAX <= (int)BEL_STORE_VALUE_BYTES_MAX, "one row");

void bel__counts_init(struct bel_counts *counts, struct bel_siphash_key secret)
{
    *counts = (struct bel_counts){0};
    bel__map_init_words(&counts->map, secret);
}

void bel__counts_finish(struct bel_counts *counts)
{
    for (uint32_t i = bel__map_count(&counts->map); i-- > 0;) {
        free((struct bel_count *)(uintptr_t)bel__map_at(&counts->map, i)->value);
    }
    bel__map_finish(&counts->map);
    *counts = (struct bel_counts){0};
}

bool bel__count_read(struct bel_view row, unsigned count, uint64_t *numbers, uint64_t *out_which)
{
    struct bel_row_reader reader = bel__reader_of(row);
    uint64_t which = bel__read_number(&reader);
    assert(count <= BEL_COUNT_NUMBERS_MAX);
    if (count < 64 && which >> count != 0) return false;
    *out_which = which;
    for (; which != 0; which &= which - 1) {
        uint64_t number = bel__read_number(&reader);
        numbers[__builtin_ctzll(which)] = number;
        if (number == 0) return false;
    }
    return !reader.bad && reader.at == reader.end;
}

static size_t write_row(const struct bel_count *count, uint8_t out[BEL_COUNT_ROW_BYTES_MAX])
{
    struct bel_row_writer writer = {.at = out, .end = out + BEL_COUNT_ROW_BYTES_MAX};
    if (count->which == 0) return 0;
    bel__write_number(&writer, count->which);
    for (uint64_t which = count->which; which != 0; which &= which - 1) {
        bel__write_number(&writer, count->numbers[__builtin_ctzll(which)]);
    }
    return (size_t)(writer.at - out);
}

static int load(struct bel_store *store, struct bel_count *count)
{
    struct bel_view row;
    int err = bel__store_get(store, &count->key, &row);
    count->is_new = err == BEL_ENOTFOUND;
    count->row_bytes = WHICH_BYTES;
    if (count->is_new) return 0;
    if (err) return err;
    count->row_bytes += (unsigned)row.bytes;
    bool is_good = bel__count_read(row, count->numbers_count, count->numbers, &count->which);
    return is_good ? 0 : BEL_ECORRUPT;
}

/* Returns the memory of a count, about. */
static size_t bytes_of_count(unsigned numbers_count)
{
    return sizeof(struct bel_count) + numbers_count * sizeof(uint64_t) +
           sizeof(struct bel_map_entry);
}

/* Loads a count that is not in memory yet. */
static int fetch(struct bel_counts *counts, struct bel_store *store, const struct bel_key *key,
                 struct bel_count **out)
{
    bool is_hours = bel__place_of(key).lane == BEL_COUNT_HOURS;
    unsigned numbers_count = is_hours ? BEL_COUNT_NUMBERS_MAX : 1;
    struct bel_count *count =
        calloc(1, sizeof(struct bel_count) + numbers_count * sizeof(uint64_t));
    if (count == NULL) return BEL_ENOMEM;
    count->key = *key;
    count->numbers_count = numbers_count;
    int err = load(store, count);
    if (err == 0) {
        err = bel__map_put(&counts->map, &count->key, sizeof count->key, (uintptr_t)count);
    }
    if (err) {
        free(count);
        return err;
    }
    counts->bytes += bytes_of_count(numbers_count);
    if (count->row_bytes > counts->row_bytes_max) counts->row_bytes_max = count->row_bytes;
    *out = count;
    return 0;
}

int bel__count_hold(struct bel_counts *counts, struct bel_store *store, const struct bel_key *key,
                    struct bel_count **out)
{
    uint8_t kind = bel__place_of(key).lane;
    if (kind >= BEL_COUNT_KINDS) return BEL_ECORRUPT;
    struct bel_count *count = counts->last[kind];
    if (count == NULL || bel__key_compare(&count->key, key) != 0) {
        const uint64_t *known = bel__map_find(&counts->map, key, sizeof *key);
        if (known != NULL) count = (struct bel_count *)(uintptr_t)*known;
        int err = known != NULL ? 0 : fetch(counts, store, key, &count);
        if (err) return err;
        counts->last[kind] = count;
    }
    *out = count;
    return 0;
}

/* Returns the bytes that a number takes in a row. */
static unsigned bytes_of(uint64_t number)
{
    return number == 0 ? 0 : (70 - (unsigned)__builtin_clzll(number)) / 7;
}

void bel__count_add(struct bel_counts *counts, struct bel_count *count, unsigned index,
                    int64_t delta)
{
    assert(index < count->numbers_count);
    assert(delta >= 0 || count->numbers[index] >= (uint64_t)-delta);
    if (count->is_dirty) counts->dirty_bytes -= count->row_bytes;
    count->row_bytes -= bytes_of(count->numbers[index]);
    count->numbers[index] += (uint64_t)delta;
    count->row_bytes += bytes_of(count->numbers[index]);
    if (count->row_bytes > counts->row_bytes_max) counts->row_bytes_max = count->row_bytes;
    counts->dirty_bytes += count->row_bytes;
    count->which &= ~(UINT64_C(1) << index);
    count->which |= (uint64_t)(count->numbers[index] != 0) << index;
    if (count->is_dirty) return;
    count->is_dirty = true;
    count->next_dirty = counts->dirty;
    counts->dirty = count;
    counts->dirty_count++;
}

size_t bel__counts_row_bytes(const struct bel_counts *counts, size_t more)
{
    return counts->dirty_bytes + more * (counts->row_bytes_max + BEL_ENCODED_NUMBER_BYTES_MAX);
}

void bel__counts_flush(struct bel_counts *counts, struct bel_store *store)
{
    while (counts->dirty != NULL) {
        struct bel_count *count = counts->dirty;
        uint8_t row[BEL_COUNT_ROW_BYTES_MAX];
        struct bel_view value = {.data = row, .bytes = write_row(count, row)};
        assert(value.bytes <= count->row_bytes);
        if (value.bytes > 0) {
            bel__store_put(store, &count->key, value, count->is_new ? BEL_ROW_NEW : BEL_ROW_ANY);
        } else if (!count->is_new) {
            bel__store_delete(store, &count->key);
        }
        count->is_new = value.bytes == 0;
        counts->dirty = count->next_dirty;
        count->is_dirty = false;
        counts->dirty_count--;
        counts->dirty_bytes -= count->row_bytes;
    }
    assert(counts->dirty_count == 0 && counts->dirty_bytes == 0);
}

void bel__counts_trim(struct bel_counts *counts)
{
    assert(counts->dirty == NULL);
    if (counts->bytes <= KEPT_BYTES_MAX) return;
    memset(counts->last, 0, sizeof counts->last);
    for (int i = 0; i < TRIM_MAX && counts->bytes > KEPT_BYTES_MAX; i++) {
        uint32_t at = counts->trimmed++ % bel__map_count(&counts->map);
        struct bel_count *count = (void *)(uintptr_t)bel__map_at(&counts->map, at)->value;
        counts->bytes -= bytes_of_count(count->numbers_count);
        bel__map_remove(&counts->map, &count->key, sizeof count->key, NULL);
        free(count);
    }
}
