/* SPDX-License-Identifier: MIT */

/*
 * The store compared with an array that has a place for every key. Rows are put and deleted in
 * batches, deltas freeze at a random size, and writing them to the tree is cut into slices that
 * fall between any two steps. Cursors walk while rows before them, after them and under them
 * change. Every value that was returned is read again before the commit that invalidates it.
 */
#include "property.h"
#include "store/state.h"

#include <string.h>

enum {
    KEYS = 600,
    VALUE_BYTES_MAX = 40,
    BATCHES = 120,
    STEPS_MAX = 80,
    CURSORS = 3,
    HELD_MAX = 64,
    CASES = 50,
};

struct row {
    bool present;
    size_t bytes;
    uint8_t value[VALUE_BYTES_MAX];
};

struct walk {
    struct bel_store_cursor cursor;
    unsigned next; /* the first key that has not been passed */
    bool is_on;
};

struct held {
    struct bel_view view;
    struct row row;
};

static struct bel_key keys[KEYS]; /* in order */
static struct row rows[KEYS];
static struct walk walks[CURSORS];
static struct held held[HELD_MAX];
static unsigned held_count;

static int compare_keys(const void *a, const void *b)
{
    return bel__key_compare(a, b);
}

/* Keys that differ in any of their words, some by one. */
static void make_keys(uint64_t *random_state)
{
    for (unsigned i = 0; i < KEYS; i++) {
        for (int word = 0; word < 3; word++) {
            uint64_t high = random_below(random_state, 4) == 0 ? UINT64_MAX : 0;
            keys[i].words[word] = high ^ random_below(random_state, 6);
        }
        for (unsigned other = 0; other < i; other++) {
            if (bel__key_compare(&keys[other], &keys[i]) != 0) continue;
            i--; /* another try */
            break;
        }
    }
    qsort(keys, KEYS, sizeof keys[0], compare_keys);
    memset(rows, 0, sizeof rows);
}

static unsigned find_key(const struct bel_key *key)
{
    for (unsigned i = 0; i < KEYS; i++) {
        if (bel__key_compare(key, &keys[i]) == 0) return i;
    }
    fprintf(stderr, "a key that was never put\n");
    abort();
}

static bool is_row(struct bel_view view, const struct row *row)
{
    return view.bytes == row->bytes && memcmp(view.data, row->value, row->bytes) == 0;
}

/* Remembers a returned value, to read it again later. */
static void hold(struct bel_view view, const struct row *row)
{
    CHECK(is_row(view, row));
    if (held_count < HELD_MAX) held[held_count++] = (struct held){view, *row};
}

static void put(struct bel_store *store, unsigned i, uint64_t *random_state)
{
    struct row *row = &rows[i];
    enum bel_row what =
        !row->present && random_below(random_state, 4) > 0 ? BEL_ROW_NEW : BEL_ROW_ANY;
    row->present = true;
    row->bytes = random_below(random_state, VALUE_BYTES_MAX + 1);
    random_fill(random_state, row->value, row->bytes);
    CHECK(bel__store_reserve(store, 1, row->bytes, BEL_STORE_ADD) == 0);
    bel__store_put(store, &keys[i], (struct bel_view){row->value, row->bytes}, what);
}

static void take_out(struct bel_store *store, unsigned i)
{
    rows[i].present = false;
    CHECK(bel__store_reserve(store, 1, 0, BEL_STORE_END) == 0);
    bel__store_delete(store, &keys[i]);
}

static void get(struct bel_store *store, unsigned i)
{
    struct bel_view view;
    int err = bel__store_get(store, &keys[i], &view);
    CHECK(err == (rows[i].present ? 0 : BEL_ENOTFOUND));
    if (err == 0) hold(view, &rows[i]);
}

/* Checks that a walk is at the next existing row, or at the end. */
static void check_walk(struct walk *walk, int err)
{
    unsigned want = walk->next;
    while (want < KEYS && !rows[want].present) {
        want++;
    }
    CHECK(err == (want < KEYS ? 0 : BEL_ENOTFOUND));
    walk->is_on = err == 0;
    if (err != 0) return;
    CHECK_EQ(find_key(&walk->cursor.key), want);
    hold(walk->cursor.value, &rows[want]);
    walk->next = want + 1;
}

static void advance(struct bel_store *store, struct walk *walk, uint64_t *random_state)
{
    if (walk->is_on) {
        check_walk(walk, bel__store_next(store, &walk->cursor));
    } else {
        walk->next = (unsigned)random_below(random_state, KEYS);
        check_walk(walk, bel__store_seek(store, &keys[walk->next], &walk->cursor));
    }
}

static void check_all(struct bel_store *store)
{
    struct walk walk = {.next = 0};
    check_walk(&walk, bel__store_seek(store, &keys[0], &walk.cursor));
    while (walk.is_on) {
        check_walk(&walk, bel__store_next(store, &walk.cursor));
    }
    for (unsigned i = 0; i < KEYS; i++) {
        get(store, i);
    }
}

static void step(struct bel_store *store, uint64_t puts_in_8, uint64_t *random_state)
{
    unsigned i = (unsigned)random_below(random_state, KEYS);
    switch (random_below(random_state, 8)) {
    case 0:
        get(store, i);
        break;
    case 1:
        (void)bel__store_work(store);
        break;
    case 2:
    case 3:
        advance(store, &walks[random_below(random_state, CURSORS)], random_state);
        break;
    default:
        if (random_below(random_state, 8) < puts_in_8) {
            put(store, i, random_state);
        } else {
            take_out(store, i);
        }
    }
}

static void commit(struct bel_store *store)
{
    for (unsigned i = 0; i < held_count; i++) {
        CHECK(is_row(held[i].view, &held[i].row));
    }
    held_count = 0;
    uint64_t batch = bel__store_commit(store);
    CHECK(bel__store_synced(store) == batch);
    for (unsigned i = 0; i < CURSORS; i++) {
        walks[i].is_on = false;
    }
}

static void run_case(uint64_t seed)
{
    struct bel_store *store;
    uint64_t random_state = seed, puts_in_8 = 4;
    make_keys(&random_state);
    held_count = 0;
    CHECK(bel__store_open_memory(&store) == 0);
    if (seed % 2 == 0) bel__delta_init(store->active); /* with layers, as on disk */
    for (int batch = 0; batch < BATCHES; batch++) {
        store->delta_bytes_max = random_magnitude(&random_state) % 100000;
        if (random_below(&random_state, 10) == 0) puts_in_8 = random_below(&random_state, 9);
        uint64_t steps = random_below(&random_state, STEPS_MAX);
        for (uint64_t i = 0; i < steps; i++) {
            step(store, puts_in_8, &random_state);
        }
        if (batch % 8 == 0) check_all(store);
        commit(store);
        if (batch % 8 == 0) check_all(store);
    }
    commit(store);
    while (bel__store_work(store)) {}
    commit(store);
    check_all(store);
    held_count = 0;
    bel__store_close(store);
}

int main(int argc, char **argv)
{
    return run_cases(argc, argv, CASES, run_case, "histories");
}
