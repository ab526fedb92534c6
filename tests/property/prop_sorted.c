/* SPDX-License-Identifier: MIT */

/*
 * The sorted map compared with a sorted array. A history has phases, and a phase has a pattern:
 * keys that only rise, only fall, are random, or rise within many ranges; and removals from the
 * front, from the back, at random, of whole ranges, or of all keys. So leaves fill, split, empty
 * and merge in every combination, at heights of up to three. Walks continue while keys around them
 * change, and every put follows a reserve of just that put, or of the puts of a phase.
 */
#include "core/sorted.h"
#include "property.h"

#include <string.h>

enum {
    COUNT_MAX = 20000,
    PHASES = 16,
    CASES = 24,
    RANGES = 50,
};

enum pattern {
    RISING,
    FALLING,
    SCATTERED,
    CLUSTERED,
    PATTERNS,
};

struct entry {
    struct bel_key key;
    uint64_t value;
};

static struct entry entries[COUNT_MAX]; /* the model */
static size_t entry_count;
static struct bel_sorted sorted;
static struct bel_sorted_place walker;
static bool is_walking;
static uint64_t random_state, clock_word, range_words[RANGES];

/* Returns how many entries of the model are before `key`. */
static size_t model_before(const struct bel_key *key)
{
    size_t low = 0, high = entry_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (bel__key_compare(&entries[middle].key, key) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static bool model_has(size_t index, const struct bel_key *key)
{
    return index < entry_count && bel__key_compare(&entries[index].key, key) == 0;
}

static struct bel_key make_key(enum pattern pattern)
{
    uint64_t range = random_below(&random_state, RANGES), word = random_u64(&random_state);
    switch (pattern) {
    case RISING:
        return (struct bel_key){{UINT64_MAX, clock_word++, word}};
    case FALLING:
        return (struct bel_key){{0, UINT64_MAX - clock_word++, word}};
    case CLUSTERED:
        return (struct bel_key){{1000, range, range_words[range]++}};
    default:
        break;
    }
    /* Few bits per word: every word decides sometimes, and some keys are the lowest of all. */
    return (struct bel_key){{word & 7, word >> 8 & 7, word >> 16 & 1023}};
}

/* A put and a remove in two steps. */
static bool look_and_put(const struct bel_key *key, uint64_t value, uint64_t *out)
{
    struct bel_sorted_way way;
    uint64_t *old = bel__sorted_look(&sorted, key, &way);
    if (old == NULL) {
        bel__sorted_add(&sorted, &way, key, value);
        return false;
    }
    *out = *old;
    *old = value;
    return true;
}

static bool look_and_remove(const struct bel_key *key, uint64_t *out)
{
    struct bel_sorted_way way;
    const uint64_t *value = bel__sorted_look(&sorted, key, &way);
    if (value == NULL) return false;
    *out = *value;
    bel__sorted_drop(&sorted, &way);
    return true;
}

static void put(const struct bel_key *key)
{
    uint64_t value = random_u64(&random_state) | 1, old = 0;
    size_t index = model_before(key);
    bool is_there = model_has(index, key);
    if (!is_there && entry_count == COUNT_MAX) return;
    bool was_there = random_below(&random_state, 2) == 0
                         ? look_and_put(key, value, &old)
                         : bel__sorted_put(&sorted, key, value, &old);
    CHECK(was_there == is_there);
    if (is_there) {
        CHECK_EQ(old, entries[index].value);
    } else {
        memmove(&entries[index + 1], &entries[index], (entry_count++ - index) * sizeof entries[0]);
    }
    entries[index] = (struct entry){*key, value};
}

static void drop(const struct bel_key *key)
{
    uint64_t value = 0;
    size_t index = model_before(key);
    bool is_there = model_has(index, key);
    bool was_there = random_below(&random_state, 2) == 0 ? look_and_remove(key, &value)
                                                         : bel__sorted_remove(&sorted, key, &value);
    CHECK(was_there == is_there);
    if (!is_there) return;
    CHECK_EQ(value, entries[index].value);
    memmove(&entries[index], &entries[index + 1], (--entry_count - index) * sizeof entries[0]);
}

static void check_place(bool is_found, const struct bel_sorted_place *place, size_t index)
{
    CHECK(is_found == (index < entry_count));
    if (!is_found) return;
    CHECK(bel__key_compare(&place->key, &entries[index].key) == 0);
    CHECK_EQ(place->value, entries[index].value);
}

static void look(const struct bel_key *key)
{
    struct bel_sorted_place place;
    size_t index = model_before(key);
    const uint64_t *found = bel__sorted_find(&sorted, key);
    CHECK((found != NULL) == model_has(index, key));
    if (found != NULL) CHECK_EQ(*found, entries[index].value);
    check_place(bel__sorted_seek(&sorted, key, &place), &place, index);
}

/* Continues a walk for a few steps, after any changes. */
static void walk(void)
{
    for (uint64_t steps = random_below(&random_state, 100); steps > 0; steps--) {
        if (!is_walking) {
            struct bel_key from = make_key(SCATTERED);
            is_walking = bel__sorted_seek(&sorted, &from, &walker);
            check_place(is_walking, &walker, model_before(&from));
        } else {
            size_t index = model_before(&walker.key);
            if (model_has(index, &walker.key)) index++;
            is_walking = bel__sorted_next(&sorted, &walker);
            check_place(is_walking, &walker, index);
        }
    }
}

/* bel__sorted_peek() returns the value that is there, and always sees a few keys ahead. */
static void check_peek(const struct bel_sorted_place *place, size_t index)
{
    unsigned ahead = (unsigned)random_below(&random_state, 100);
    uint64_t value = bel__sorted_peek(place, ahead);
    CHECK_EQ(bel__sorted_peek(place, 0), entries[index].value);
    if (ahead == 1) CHECK((value != 0) == (index + 1 < entry_count));
    if (value != 0) CHECK_EQ(value, entries[index + ahead].value);
}

static void check_all(void)
{
    struct bel_sorted_place place;
    size_t index = 0;
    CHECK(bel__sorted_valid(&sorted));
    CHECK_EQ(bel__sorted_count(&sorted), entry_count);
    bool is_there = bel__sorted_seek(&sorted, &(struct bel_key){{0, 0, 0}}, &place);
    while (is_there) {
        check_place(true, &place, index);
        check_peek(&place, index++);
        is_there = bel__sorted_next(&sorted, &place);
    }
    CHECK_EQ(index, entry_count);
}

/* Occasional checks in every phase. */
static void glance(uint64_t step)
{
    struct bel_key key = make_key(SCATTERED);
    look(&key);
    if (entry_count > 0) look(&entries[random_below(&random_state, entry_count)].key);
    if (step % 8 == 0) walk();
    if (step % (entry_count / 4 + 1) == 0) CHECK(bel__sorted_valid(&sorted));
}

static void fill(uint64_t steps)
{
    enum pattern pattern = (enum pattern)random_below(&random_state, PATTERNS);
    bool at_once = random_below(&random_state, 2) == 0;
    if (at_once) CHECK(bel__sorted_reserve(&sorted, steps) == 0);
    for (; steps > 0; steps--) {
        struct bel_key key = make_key(pattern);
        if (!at_once) CHECK(bel__sorted_reserve(&sorted, 1) == 0);
        put(&key);
        glance(steps);
    }
}

static void empty(uint64_t steps)
{
    enum pattern pattern = (enum pattern)random_below(&random_state, PATTERNS);
    for (; steps > 0 && entry_count > 0; steps--) {
        size_t index = random_below(&random_state, entry_count);
        if (pattern == RISING) index = 0;
        if (pattern == FALLING) index = entry_count - 1;
        uint64_t stretch = pattern == CLUSTERED ? random_below(&random_state, 200) : 1;
        for (; stretch > 0 && index < entry_count; stretch--) {
            struct bel_key key = entries[index].key;
            drop(&key);
        }
        struct bel_key key = make_key(SCATTERED);
        drop(&key);
        glance(steps);
    }
}

/* Alternates puts and removals, all reserved or provided for beforehand. */
static void churn(uint64_t steps)
{
    if (random_below(&random_state, 2) == 0) {
        CHECK(bel__sorted_reserve(&sorted, steps) == 0);
    } else {
        CHECK(bel__sorted_provide(&sorted, entry_count + steps) == 0);
    }
    for (; steps > 0; steps--) {
        struct bel_key key = make_key((enum pattern)random_below(&random_state, PATTERNS));
        put(&key);
        if (random_below(&random_state, 2) == 0 && entry_count > 0) {
            key = entries[random_below(&random_state, entry_count)].key;
            drop(&key);
        }
        glance(steps);
    }
}

/* Removes all at once, which frees no memory. */
static void clear(void)
{
    size_t bytes = bel__sorted_bytes(&sorted);
    bel__sorted_clear(&sorted);
    entry_count = 0;
    CHECK_EQ(bel__sorted_bytes(&sorted), bytes);
}

static void run_case(uint64_t seed)
{
    random_state = seed;
    clock_word = entry_count = 0;
    is_walking = false;
    memset(range_words, 0, sizeof range_words);
    bel__sorted_init(&sorted);
    for (int phase = 0; phase < PHASES; phase++) {
        uint64_t kind = random_below(&random_state, 8);
        uint64_t steps = random_below(&random_state, seed % 4 == 0 ? 5000 : 500);
        if (kind < 4) fill(steps);
        if (kind >= 4 && kind < 7) empty(steps);
        if (kind == 7) churn(steps);
        if (random_below(&random_state, PHASES) == 0) clear();
        check_all();
    }
    empty(COUNT_MAX);
    check_all();
    bel__sorted_finish(&sorted);
    CHECK_EQ(bel__sorted_bytes(&sorted), 0);
}

int main(int argc, char **argv)
{
    return run_cases(argc, argv, CASES, run_case, "histories");
}
