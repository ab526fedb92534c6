/* SPDX-License-Identifier: MIT */

/* A walk through a whole tree, which is how damage is found before it is met. */
#include "store/tree/tree.h"

#include "store/io/row.h"

#include <assert.h>

/* The key right behind. False if there is none. */
static bool step_behind(struct bel_key *key)
{
    for (int i = 2; i >= 0; i--) {
        if (++key->words[i] != 0) return true;
    }
    return false;
}

/* Whether a row that was met on the way from the one before is also found by its key alone: a
 * signpost may be wrong that only who comes from afar looks at. */
static int find_again(struct bel_tree *tree, const struct bel_key *key, struct bel_view value)
{
    struct bel_view found;
    int err = tree->get(tree, key, &found);
    if (err == BEL_ENOTFOUND) return BEL_ECORRUPT;
    if (err) return err;
    return found.data == value.data && found.bytes == value.bytes ? 0 : BEL_ECORRUPT;
}

int bel__tree_check(struct bel_tree *tree, struct bel_tree_stats *out)
{
    struct bel_tree_stats kept;
    struct bel_key key = {{0, 0, 0}};
    struct bel_view value;
    uint64_t rows = 0, sum = 0;
    int err;
    assert(tree != NULL);
    tree->stats(tree, &kept);
    do {
        struct bel_key before = key;
        err = tree->seek(tree, &key, &value);
        if (err) break;
        if (bel__key_compare(&key, &before) < 0) return BEL_ECORRUPT;
        err = find_again(tree, &key, value);
        if (err) return err;
        rows++;
        sum += bel__row_sum(&key, bel__row_checksum(&key, value), value.bytes);
    } while (step_behind(&key));
    if (err && err != BEL_ENOTFOUND) return err;

    *out = (struct bel_tree_stats){.rows = rows, .sum = sum, .bytes = kept.bytes};
    return rows == kept.rows && sum == kept.sum ? 0 : BEL_ECORRUPT;
}
