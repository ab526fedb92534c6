/* SPDX-License-Identifier: MIT */

/*
 * A tree of three levels with one flipped bit, and lookups in it without any check before: the row
 * of a key, the first row from a key on, and scans. Either damage is reported, or the answer is
 * what the tree has. Half of the flips come in the middle of a scan, as in a tree that is in use.
 *
 *     prop_lookup 4711        runs only that seed
 */
#include "store/tree/lookup.h"

#include "flipped_tree.h"

#include <inttypes.h>

enum {
    SEEDS = 40000,
    LOOKUPS = 40,
    LOOKUPS_NEAR = 60, /* around the flipped bit */
    SCAN_ROWS = 40,
};

static bool has_row(uint64_t number)
{
    return number % STEP == 0 && number / STEP < ROWS;
}

static void check_value(uint64_t number, struct bel_view value)
{
    CHECK_EQ(value.bytes, 20 + number / STEP % 160);
    CHECK(((const char *)value.data)[0] == 'v');
}

/* Returns whether no damage was reported. */
static bool is_well(const struct bel_lookup *lookup, int err)
{
    CHECK(err == 0 || err == BEL_ENOTFOUND || err == BEL_ECORRUPT);
    CHECK((err == BEL_ECORRUPT) == (lookup->why.text[0] != 0));
    return err != BEL_ECORRUPT;
}

static bool get(struct bel_lookup *lookup, uint64_t number)
{
    struct bel_key key = key_of(number);
    struct bel_view value;
    int err = bel__lookup_get(lookup, &key, &value);
    if (!is_well(lookup, err)) return false;
    CHECK(err == (has_row(number) ? 0 : BEL_ENOTFOUND));
    if (err == 0) check_value(number, value);
    return true;
}

/* Seeks from a number on, and sets `*out` to the number after that of the row. */
static bool seek(struct bel_lookup *lookup, uint64_t number, uint64_t *out)
{
    uint64_t want = (number + STEP - 1) / STEP * STEP;
    struct bel_key key = key_of(number), wanted = key_of(want);
    struct bel_view value;
    int err = bel__lookup_seek(lookup, &key, &value);
    if (!is_well(lookup, err)) return false;
    CHECK(err == (has_row(want) ? 0 : BEL_ENOTFOUND));
    if (err == 0) CHECK(bel__key_compare(&key, &wanted) == 0);
    if (err == 0) check_value(want, value);
    *out = want + 1;
    return true;
}

static bool scan(struct bel_lookup *lookup, uint64_t number, unsigned rows)
{
    bool is_right = true;
    for (unsigned i = 0; i < rows && is_right; i++) {
        is_right = seek(lookup, number, &number);
    }
    return is_right;
}

static bool look_around(struct bel_lookup *lookup, uint64_t *chance, uint64_t near)
{
    uint64_t next;
    bool is_right = true;
    for (unsigned i = 0; i < LOOKUPS && is_right; i++) {
        is_right = get(lookup, random_below(chance, (uint64_t)ROWS * STEP + STEP));
    }
    for (unsigned i = 0; i < LOOKUPS_NEAR && is_right; i++) {
        uint64_t number = near + random_below(chance, 160);
        number = number > 80 ? number - 80 : number;
        is_right = random_below(chance, 2) == 0 ? get(lookup, number) : seek(lookup, number, &next);
    }
    return is_right && scan(lookup, near > 80 ? near - 80 : 0, SCAN_ROWS);
}

static bool run_seed(uint64_t seed)
{
    uint64_t chance = seed, near;
    size_t at = choose_byte(&chance, &near);
    uint8_t bit = (uint8_t)(1U << random_below(&chance, 8));
    struct bel_lookup lookup;
    CHECK_NOTE("again with: prop_lookup %" PRIu64, seed);
    bel__lookup_init(&lookup, data, file, PAGE_BYTES);
    CHECK(bel__lookup_start(&lookup, (struct bel_view){record, sizeof record}, pages.count) == 0);
    uint64_t start = near > 40 ? near - 40 : 0;
    unsigned rows = (unsigned)random_below(&chance, 20);
    if (random_below(&chance, 2) == 0) CHECK(scan(&lookup, start, rows)); /* before the flip */
    data[at] ^= bit;
    bool is_right = scan(&lookup, start + (uint64_t)rows * STEP, SCAN_ROWS) &&
                    look_around(&lookup, &chance, near);
    data[at] ^= bit;
    return !is_right;
}

int main(int argc, char **argv)
{
    struct cases cases = cases_of(argc, argv, SEEDS);
    uint64_t named = 0;
    make();
    for (uint64_t seed = cases.first; seed <= cases.last; seed++) {
        named += run_seed(seed);
    }
    printf("ok   a_lookup_is_right_or_names_damage (%" PRIu64 " named)\n", named);
    free(data);
    CHECK(close(file) == 0);
    return 0;
}
