/* SPDX-License-Identifier: MIT */

/*
 * A tree of three levels with one flipped bit, and lookups in it. Before each lookup the path check
 * looks at the pages. Either it reports damage, or the lookup gives the row that the tree has: the
 * first one whose key is at least the one asked for. The lookup is done as LMDB does it, but on a
 * copy of the file in memory.
 *
 *     prop_path_check 4711        runs only that seed
 */
#include "store/tree/path_check.h"

#include "flipped_tree.h"

#include <inttypes.h>

enum {
    SEEDS = 3000,
    LOOKUPS = 60,
    LOOKUPS_NEAR = 30, /* around the flipped bit */
};

/* --- lookups --- */

/* Finds the leaf of a key, as LMDB does. The pages have been checked. */
static uint64_t find_leaf(struct bel_view key)
{
    uint64_t page;
    memcpy(&page, record + BEL_RECORD_ROOT, sizeof page);
    for (unsigned level = 0; level < 2; level++) {
        page = bel__page_child(&pages,
                               bel__page_node(&pages, page, bel__page_find(&pages, page, key)));
    }
    return page;
}

/* Looks a key up. Returns whether its leaf has it with the right checksum. */
static bool find(struct bel_view key)
{
    uint64_t leaf = find_leaf(key);
    for (unsigned i = 0; i < bel__page_count(&pages, leaf); i++) {
        struct bel_view found = bel__page_key(&pages, bel__page_node(&pages, leaf, i));
        if (found.bytes == key.bytes && memcmp(found.data, key.data, key.bytes) == 0) return true;
    }
    return false;
}

/* Looks a key up after a path check. Returns false if that has found damage. */
static bool look(struct bel_path_check *check, uint64_t number, enum bel_path_use use)
{
    unsigned char bytes[BEL_KEY_BYTES];
    struct bel_key key = key_of(number);
    bel__key_write(&key, bytes);
    int err = bel__path_check_key(check, &key, use);
    if (err) {
        CHECK(err == BEL_ECORRUPT && check->why.text[0] != 0);
        return false;
    }
    bool has = number % STEP == 0 && number / STEP < ROWS;
    CHECK_EQ(find((struct bel_view){bytes, sizeof bytes}), has);
    return true;
}

static bool run_seed(uint64_t seed)
{
    uint64_t chance = seed;
    uint64_t near;
    size_t at = choose_byte(&chance, &near);
    uint8_t bit = (uint8_t)(1U << random_below(&chance, 8));
    enum bel_path_use use = random_below(&chance, 2) == 0 ? BEL_PATH_READ : BEL_PATH_WRITE;
    struct bel_path_check *check;
    bool is_well = true;
    CHECK_NOTE("again with: prop_path_check %" PRIu64, seed);
    CHECK(bel__path_check_create(data, file, PAGE_BYTES, &check) == 0);
    CHECK(bel__path_check_start(check, (struct bel_view){record, sizeof record}, pages.count) == 0);
    data[at] ^= bit;
    for (unsigned i = 0; i < LOOKUPS && is_well; i++) {
        is_well = look(check, random_below(&chance, (uint64_t)ROWS * STEP + STEP), use);
    }
    for (unsigned i = 0; i < LOOKUPS_NEAR && is_well; i++) {
        uint64_t number = near + random_below(&chance, 160);
        is_well = look(check, number > 80 ? number - 80 : number, use);
    }
    data[at] ^= bit;
    bel__path_check_destroy(check);
    return !is_well;
}

int main(int argc, char **argv)
{
    struct cases cases = cases_of(argc, argv, SEEDS);
    uint64_t named = 0;
    make();
    for (uint64_t seed = cases.first; seed <= cases.last; seed++) {
        named += run_seed(seed);
    }
    printf("ok   a_lookup_is_right_or_damage_is_named (%" PRIu64 " named)\n", named);
    free(data);
    CHECK(close(file) == 0);
    return 0;
}
