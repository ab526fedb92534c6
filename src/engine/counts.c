/* SPDX-License-Identifier: MIT */

/* Counts in a map by their key, and those that have changed in a list through them. */
#include "engine/counts.h"

#include "engine/wire.h"

#include <assert.h>
#include <stdlib.h>

enum {
    KEPT_MAX = 1 << 16 /* counts in memory, beyond which all are forgotten */
};

void bel__counts_init(struct bel_counts *counts, struct bel_siphash_key secret)
{
    *counts = (struct bel_counts){0};
    bel__map_init_words(&counts->map, secret);
}

static void forget_all(struct bel_counts *counts)
{
    for (uint32_t i = bel__map_count(&counts->map); i-- > 0;) {
        free((struct bel_count *)(uintptr_t)bel__map_at(&counts->map, i)->value);
    }
    bel__map_finish(&counts->map);
    counts->last = NULL;
}

void bel__counts_finish(struct bel_counts *counts)
{
    forget_all(counts);
    *counts = (struct bel_counts){0};
}

static int load(struct bel_store *store, struct bel_count *count)
{
    struct bel_view row;
    int err = bel__store_get(store, &count->key, &row);
    if (err == BEL_ENOTFOUND) {
        count->is_new = true;
        return 0;
    }
    if (err) return err;
    struct bel_reader reader = bel__reader_of(row);
    count->value = bel__read_number(&reader);
    return reader.bad || reader.at != reader.end ? BEL_ECORRUPT : 0;
}

int bel__count_hold(struct bel_counts *counts, struct bel_store *store, const struct bel_key *key,
                    struct bel_count **out)
{
    if (counts->last != NULL && bel__key_compare(&counts->last->key, key) == 0) {
        *out = counts->last;
        return 0;
    }
    uint64_t *known = bel__map_find(&counts->map, key, sizeof *key);
    if (known != NULL) {
        *out = counts->last = (struct bel_count *)(uintptr_t)*known;
        return 0;
    }
    struct bel_count *count = calloc(1, sizeof *count);
    if (count == NULL) return BEL_ENOMEM;
    count->key = *key;
    int err = load(store, count);
    if (err == 0) {
        err = bel__map_put(&counts->map, &count->key, sizeof count->key, (uintptr_t)count);
    }
    if (err) {
        free(count);
        return err;
    }
    *out = counts->last = count;
    return 0;
}

void bel__count_add(struct bel_counts *counts, struct bel_count *count, int64_t delta)
{
    assert(delta >= 0 || count->value >= (uint64_t)-delta);
    count->value += (uint64_t)delta;
    if (count->is_dirty) return;
    count->is_dirty = true;
    count->next_dirty = counts->dirty;
    counts->dirty = count;
    counts->dirty_count++;
}

void bel__counts_flush(struct bel_counts *counts, struct bel_store *store)
{
    while (counts->dirty != NULL) {
        struct bel_count *count = counts->dirty;
        uint8_t row[BEL_WIRE_NUMBER_BYTES_MAX];
        struct bel_writer writer = {.at = row, .end = row + sizeof row};
        bel__write_number(&writer, count->value);
        if (count->value > 0) {
            struct bel_view value = {.data = row, .bytes = (size_t)(writer.at - row)};
            bel__store_put(store, &count->key, value, count->is_new ? BEL_ROW_NEW : BEL_ROW_ANY);
            count->is_new = false;
        } else if (!count->is_new) {
            bel__store_delete(store, &count->key);
            count->is_new = true;
        }
        counts->dirty = count->next_dirty;
        count->is_dirty = false;
        counts->dirty_count--;
    }
    assert(counts->dirty_count == 0);
}

void bel__counts_trim(struct bel_counts *counts)
{
    assert(counts->dirty == NULL);
    if (bel__map_count(&counts->map) <= KEPT_MAX) return;
    struct bel_siphash_key secret = counts->map.secret;
    forget_all(counts);
    bel__map_init_words(&counts->map, secret);
}
