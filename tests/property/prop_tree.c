/* SPDX-License-Identifier: MIT */

/*
 * Random transactions on a tree, compared with arrays that hold, for each of a set of sorted keys,
 * the value that the reader sees, the committed value and that of the open transaction. A value is
 * identified by the number that it is made of; 0 means none.
 */
#include "property.h"
#include "store/io/row.h"
#include "store/store.h"
#include "store/tree/tree.h"

#include "../trees.h"

enum {
    KEYS = 400,
    STEPS = 60,
    CHANGES_MAX = 200,
    CASES = 12,
};

struct model {
    struct bel_key keys[KEYS]; /* in order, no two the same */
    uint64_t seen[KEYS], committed[KEYS], open[KEYS];
    uint64_t seen_epoch, committed_epoch;
    bool in_transaction;
};

static struct model model;
static struct fixture fixture;
static struct bel_tree *tree;

static int compare_keys(const void *a, const void *b)
{
    return bel__key_compare(a, b);
}

/* Returns a word with all bits set, none, or few, so that keys share prefixes. */
static uint64_t random_word(uint64_t *random_state)
{
    switch (random_below(random_state, 4)) {
    case 0:
        return 0;
    case 1:
        return UINT64_MAX;
    case 2:
        return random_below(random_state, 3) << 8 * random_below(random_state, 8);
    default:
        return random_magnitude(random_state);
    }
}

static void make_keys(uint64_t *random_state)
{
    for (int i = 0; i < KEYS; i++) {
        for (int word = 0; word < 3; word++) {
            model.keys[i].words[word] = random_word(random_state);
        }
        model.keys[i].words[0] /= 2; /* so that there is room after it */
    }
    qsort(model.keys, KEYS, sizeof model.keys[0], compare_keys);
    for (int i = 1; i < KEYS; i++) { /* duplicates move to the end */
        if (bel__key_compare(&model.keys[i], &model.keys[i - 1]) > 0) continue;
        model.keys[i] = model.keys[i - 1];
        for (int word = 2; word >= 0 && ++model.keys[i].words[word] == 0; word--) {}
    }
}

static struct bel_view value_of(uint64_t number)
{
    static unsigned char bytes[BEL_STORE_VALUE_BYTES_MAX];
    uint64_t random_state = number;
    uint64_t range = random_below(&random_state, 8) == 0 ? sizeof bytes + 1 : 200;
    size_t count = (size_t)random_below(&random_state, range);
    random_fill(&random_state, bytes, count);
    return (struct bel_view){bytes, count};
}

static void check_value(struct bel_view got, uint64_t number)
{
    struct bel_view want = value_of(number);
    CHECK_EQ(got.bytes, want.bytes);
    CHECK(want.bytes == 0 || memcmp(got.data, want.data, want.bytes) == 0);
}

static void check_get(uint64_t *random_state)
{
    size_t i = (size_t)random_below(random_state, KEYS);
    struct bel_view value;
    int err = tree->get(tree, &model.keys[i], &value);
    CHECK(err == (model.seen[i] != 0 ? 0 : BEL_ENOTFOUND));
    if (!err) check_value(value, model.seen[i]);
}

static void check_seek(uint64_t *random_state)
{
    size_t i = (size_t)random_below(random_state, KEYS);
    struct bel_key key = model.keys[i];
    struct bel_view value;
    int err = tree->seek(tree, &key, &value);
    while (i < KEYS && model.seen[i] == 0) {
        i++;
    }
    CHECK(err == (i < KEYS ? 0 : BEL_ENOTFOUND));
    if (err) return;
    CHECK(bel__key_compare(&key, &model.keys[i]) == 0);
    check_value(value, model.seen[i]);
}

static void check_all(void)
{
    struct bel_tree_stats kept, counted;
    uint64_t rows = 0, sum = 0;
    for (int i = 0; i < KEYS; i++) {
        if (model.seen[i] == 0) continue;
        struct bel_view value = value_of(model.seen[i]);
        uint32_t checksum = bel__row_checksum(&model.keys[i], value);
        rows++;
        sum += bel__row_sum(&model.keys[i], checksum, value.bytes);
    }
    tree->stats(tree, &kept);
    CHECK_EQ(kept.rows, rows);
    CHECK_EQ(kept.sum, sum);
    CHECK(bel__tree_check(tree, &counted) == 0);
    CHECK_EQ(tree->epoch(tree), model.seen_epoch);
}

/* Changes rows in key order, as a checkpoint does, or in any order. */
static void change(uint64_t *random_state)
{
    uint64_t count = random_below(random_state, CHANGES_MAX);
    uint64_t puts_in_8 = random_below(random_state, 9);
    bool sorted = random_below(random_state, 2) == 0;
    if (!model.in_transaction) {
        CHECK(tree->begin(tree) == 0);
        memcpy(model.open, model.committed, sizeof model.open);
        model.in_transaction = true;
    }
    size_t i = 0;
    while (count-- > 0 && i < KEYS) {
        i = sorted ? i + (size_t)random_below(random_state, 4)
                   : (size_t)random_below(random_state, KEYS);
        if (i >= KEYS) break;
        if (random_below(random_state, 8) < puts_in_8) {
            model.open[i] = 1 + random_u64(random_state) / 2;
            CHECK(tree->put(tree, &model.keys[i], value_of(model.open[i])) == 0);
        } else {
            model.open[i] = 0;
            CHECK(tree->remove(tree, &model.keys[i]) == 0);
        }
        i += sorted;
    }
}

static void refresh(void)
{
    CHECK(tree->refresh(tree) == 0);
    memcpy(model.seen, model.committed, sizeof model.seen);
    model.seen_epoch = model.committed_epoch;
}

static void end_transaction(uint64_t *random_state)
{
    if (!model.in_transaction) return;
    model.in_transaction = false;
    if (random_below(random_state, 4) == 0) {
        tree->abort(tree);
        return;
    }
    model.committed_epoch += random_below(random_state, 2);
    CHECK(tree->commit(tree, model.committed_epoch) == 0);
    memcpy(model.committed, model.open, sizeof model.committed);
}

static void reopen(void)
{
    fixture_reopen(&fixture);
    tree = fixture.tree;
    model.in_transaction = false;
    memcpy(model.seen, model.committed, sizeof model.seen);
    model.seen_epoch = model.committed_epoch;
}

static void run_case(uint64_t seed, int kind)
{
    uint64_t random_state = seed;
    model = (struct model){.seen_epoch = 0};
    make_keys(&random_state);
    fixture_init(&fixture, kind);
    tree = fixture.tree;
    for (int step = 0; step < STEPS; step++) {
        switch (random_below(&random_state, 16)) {
        case 0:
            reopen();
            break;
        case 1:
        case 2:
        case 3:
            end_transaction(&random_state);
            break;
        case 4:
        case 5:
        case 6:
            refresh();
            break;
        case 7:
            check_all();
            break;
        case 8:
        case 9:
        case 10:
            change(&random_state);
            break;
        default:
            check_get(&random_state);
            check_seek(&random_state);
        }
    }
    refresh();
    check_all();
    fixture_finish(&fixture);
}

static void run_both(uint64_t seed)
{
    for (int kind = 0; kind < TREE_KINDS; kind++) {
        run_case(seed, kind);
    }
}

int main(int argc, char **argv)
{
    return run_cases(argc, argv, CASES, run_both, "histories of two trees");
}
