/* SPDX-License-Identifier: MIT */

/*
 * Rows in any order, with repeated keys, compared with the same rows put and deleted one by one:
 * both deltas must return the same for every key, in the same order.
 */

#include "property.h"
#include "store/replay.h"

#include <string.h>

enum {
    SEEDS = 400,
    ROWS_MAX = 400,
};

/* Few words, so that keys collide; sometimes in order, as under light load. */
static struct bel_key draw_key(uint64_t *chance, uint64_t keys, uint64_t number, bool is_sorted)
{
    uint64_t word = is_sorted ? number : random_below(chance, keys);
    return (struct bel_key){{word % 3, word / 3, word % 5}};
}

static void put_alike(struct bel_delta *delta, const struct bel_frame_row *row)
{
    CHECK(bel__delta_reserve(delta, 1, row->value.bytes) == 0);
    if (row->is_gone) {
        bel__delta_delete(delta, &row->key);
    } else {
        bel__delta_put(delta, &row->key, row->value, false);
    }
}

static void compare(const struct bel_delta *one, const struct bel_delta *other)
{
    struct bel_key first = {{0, 0, 0}};
    struct bel_delta_place a, b;
    CHECK_EQ(bel__delta_count(one), bel__delta_count(other));
    bool has_a = bel__delta_seek(one, &first, &a), has_b = bel__delta_seek(other, &first, &b);
    while (has_a && has_b) {
        CHECK(bel__key_compare(&a.key, &b.key) == 0);
        CHECK_EQ(a.entry->flags, b.entry->flags);
        CHECK_EQ(a.entry->bytes, b.entry->bytes);
        CHECK(memcmp(a.entry->data, b.entry->data, a.entry->bytes) == 0);
        has_a = bel__delta_next(one, &a);
        has_b = bel__delta_next(other, &b);
    }
    CHECK(!has_a && !has_b);
}

static void run_case(uint64_t seed)
{
    uint64_t chance = seed, count = random_below(&chance, ROWS_MAX + 1);
    uint64_t keys = 1 + random_below(&chance, ROWS_MAX);
    bool is_sorted = random_below(&chance, 4) == 0;
    struct bel_delta one, other;
    struct bel_replay replay;
    bel__delta_init(&one);
    bel__delta_init(&other);
    bel__replay_init(&replay, &one);
    for (uint64_t i = 0; i < count; i++) {
        struct bel_frame_row row = {.key = draw_key(&chance, keys, i, is_sorted),
                                    .is_gone = random_below(&chance, 3) == 0};
        if (!row.is_gone) row.value = (struct bel_view){&i, random_below(&chance, sizeof i + 1)};
        CHECK(bel__replay_add(&replay, &row) == 0);
        put_alike(&other, &row);
    }
    CHECK(bel__replay_end(&replay) == 0);
    bel__replay_finish(&replay);
    compare(&one, &other);
    bel__delta_finish(&one);
    bel__delta_finish(&other);
}

int main(int argc, char **argv)
{
    return run_cases(argc, argv, SEEDS, run_case, "files");
}
