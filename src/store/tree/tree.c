/* SPDX-License-Identifier: MIT */

/* Checks a whole tree, to find damage before a reader meets it. */
#include "store/tree/tree.h"

#include "store/io/row.h"

#include <assert.h>

/* Changes a key to the next possible key. Returns false if there is none. */
static bool increase(struct bel_key *key)
{
    for (int i = 2; i >= 0; i--) {
        if (++key->words[i] != 0) return true;
    }
    return false;
}

/* Checks that a row found by iteration is also found by its key: a lookup uses the keys of branch
 * pages, which an iteration does not. */
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
    } while (increase(&key));
    if (err && err != BEL_ENOTFOUND) return err;

    *out = (struct bel_tree_stats){.rows = rows, .sum = sum, .bytes = kept.bytes};
    return rows == kept.rows && sum == kept.sum ? 0 : BEL_ECORRUPT;
}
