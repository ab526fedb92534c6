/* SPDX-License-Identifier: MIT */

/*
 * A tree in memory. A change goes through three maps:
 *
 *     put ---> CHANGED ---commit---> COMMITTED ---refresh---> SEEN ---> get, seek
 *                 |                      |
 *               abort                  close, of a tree that lasts
 *                 v                      v
 *               freed                  SEEN
 *
 * CHANGED and COMMITTED map a key to its new row, or to 0 if it is removed. A replaced row is freed
 * when it leaves SEEN, so it stays valid until the next refresh. A put reserves memory in all three
 * maps, so that a commit or a refresh cannot fail.
 *
 * A commit makes CHANGED the new COMMITTED if that is empty, as it is if each commit is followed by
 * a refresh. A refresh takes time in proportion to the rows committed since the last one.
 */
#include "core/memory_use.h"
#include "store/io/row.h"
#include "store/tree/tree.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct row {
    uint32_t checksum;
    uint32_t bytes;
    unsigned char data[];
};

struct memory_tree {
    struct bel_tree tree;
    struct bel_sorted seen, committed, changed; /* to rows; in the last two 0 is a removal */
    uint64_t seen_epoch, committed_epoch;
    uint64_t sum, row_bytes; /* of `seen` */
    bool in_transaction;
    bool lasts; /* close() keeps the committed rows */
};

static_assert(offsetof(struct memory_tree, tree) == 0, "a bel_tree can be cast to a memory_tree");

static struct memory_tree *of(struct bel_tree *tree)
{
    assert(tree != NULL);
    return (struct memory_tree *)tree;
}

static struct row *row_of(uint64_t number)
{
    return (struct row *)(uintptr_t)number; /* NOLINT(performance-no-int-to-ptr) */
}

static struct bel_view value_of(const struct row *row)
{
    return (struct bel_view){row->data, row->bytes};
}

/* Removes the first entry of a map and returns it in `*out`. Returns false if the map is empty. */
static bool take_first(struct bel_sorted *map, struct bel_sorted_place *out)
{
    static const struct bel_key zero = {{0, 0, 0}};
    if (!bel__sorted_seek(map, &zero, out)) return false;
    bool removed = bel__sorted_remove(map, &out->key, NULL);
    assert(removed);
    (void)removed;
    return true;
}

/* Frees a row; NULL is allowed. */
static void row_free(struct row *row)
{
    if (row == NULL) return;
    bel__memory_shrink(sizeof *row + row->bytes);
    free(row);
}

/* Empties a map and frees its rows. */
static void drop(struct bel_sorted *map)
{
    struct bel_sorted_place place;
    while (take_first(map, &place)) {
        row_free(row_of(place.value));
    }
}

/* Adds a row to the sums of `seen` (by = 1), or subtracts it (by = -1). */
static void count_row(struct memory_tree *memory, const struct bel_key *key, const struct row *row,
                      int by)
{
    uint64_t sum = bel__row_sum(key, row->checksum, row->bytes);
    uint64_t bytes = sizeof *row + row->bytes;
    memory->sum = by > 0 ? memory->sum + sum : memory->sum - sum;
    memory->row_bytes = by > 0 ? memory->row_bytes + bytes : memory->row_bytes - bytes;
}

/* Applies a change to `seen`. */
static void show(struct memory_tree *memory, const struct bel_sorted_place *change)
{
    uint64_t old = 0;
    if (change->value != 0) {
        bel__sorted_put(&memory->seen, &change->key, change->value, &old);
        count_row(memory, &change->key, row_of(change->value), 1);
    } else {
        bel__sorted_remove(&memory->seen, &change->key, &old);
    }
    if (old == 0) return;
    count_row(memory, &change->key, row_of(old), -1);
    row_free(row_of(old));
}

/* Checks the row and returns its value. */
static int give(const struct bel_key *key, const struct row *row, struct bel_view *out)
{
    struct bel_view value = value_of(row);
    if (bel__row_checksum(key, value) != row->checksum) return BEL_ECORRUPT;
    *out = value;
    return 0;
}

static int memory_get(struct bel_tree *tree, const struct bel_key *key, struct bel_view *out)
{
    const uint64_t *found = bel__sorted_find(&of(tree)->seen, key);
    return found == NULL ? BEL_ENOTFOUND : give(key, row_of(*found), out);
}

static int memory_seek(struct bel_tree *tree, struct bel_key *key, struct bel_view *out)
{
    struct bel_sorted_place place;
    if (!bel__sorted_seek(&of(tree)->seen, key, &place)) return BEL_ENOTFOUND;
    int err = give(&place.key, row_of(place.value), out);
    if (!err) *key = place.key;
    return err;
}

static int memory_refresh(struct bel_tree *tree)
{
    struct memory_tree *memory = of(tree);
    struct bel_sorted_place change;
    static const struct bel_key zero = {{0, 0, 0}};
    bool has_more = bel__sorted_seek(&memory->committed, &zero, &change);
    while (has_more) {
        show(memory, &change);
        has_more = bel__sorted_next(&memory->committed, &change);
    }
    bel__sorted_clear(&memory->committed);
    memory->seen_epoch = memory->committed_epoch;
    return 0;
}

static uint64_t memory_epoch(const struct bel_tree *tree)
{
    assert(tree != NULL);
    return ((const struct memory_tree *)tree)->seen_epoch;
}

static int memory_begin(struct bel_tree *tree)
{
    assert(!of(tree)->in_transaction);
    assert(bel__sorted_count(&of(tree)->changed) == 0);
    of(tree)->in_transaction = true;
    return 0;
}

static void memory_expect(struct bel_tree *tree, const struct bel_key *key)
{
    assert(of(tree)->in_transaction);
    (void)key; /* rows are in memory */
}

/* Reserves memory for one more change in all three maps. */
static int reserve(struct memory_tree *memory)
{
    size_t changes = bel__sorted_count(&memory->changed) + 1;
    size_t commits = bel__sorted_count(&memory->committed) + changes;
    int err = bel__sorted_reserve(&memory->changed, 1);
    if (!err) err = bel__sorted_reserve(&memory->committed, changes);
    if (!err) err = bel__sorted_reserve(&memory->seen, commits);
    return err;
}

/* Sets the row of a key in `changed` or `committed`, and frees the old one. */
static void replace(struct bel_sorted *map, const struct bel_key *key, uint64_t number)
{
    uint64_t old = 0;
    bel__sorted_put(map, key, number, &old);
    row_free(row_of(old));
}

static int memory_put(struct bel_tree *tree, const struct bel_key *key, struct bel_view value)
{
    struct memory_tree *memory = of(tree);
    assert(memory->in_transaction);
    assert(value.bytes <= UINT32_MAX);
    int err = reserve(memory);
    if (err) return err;
    struct row *row = malloc(sizeof *row + value.bytes);
    if (row == NULL) return BEL_ENOMEM;

    bel__memory_grow(sizeof *row + value.bytes);
    row->checksum = bel__row_checksum(key, value);
    row->bytes = (uint32_t)value.bytes;
    if (value.bytes > 0) memcpy(row->data, value.data, value.bytes);
    replace(&memory->changed, key, (uintptr_t)row);
    return 0;
}

static int memory_remove(struct bel_tree *tree, const struct bel_key *key)
{
    assert(of(tree)->in_transaction);
    int err = reserve(of(tree));
    if (err) return err;
    replace(&of(tree)->changed, key, 0);
    return 0;
}

static int memory_commit(struct bel_tree *tree, uint64_t epoch)
{
    struct memory_tree *memory = of(tree);
    struct bel_sorted_place change;
    assert(memory->in_transaction);
    assert(epoch >= memory->committed_epoch);
    if (bel__sorted_count(&memory->committed) == 0) {
        struct bel_sorted empty = memory->committed;
        memory->committed = memory->changed;
        memory->changed = empty;
    }
    while (take_first(&memory->changed, &change)) {
        replace(&memory->committed, &change.key, change.value);
    }
    memory->committed_epoch = epoch;
    memory->in_transaction = false;
    return 0;
}

static void memory_abort(struct bel_tree *tree)
{
    drop(&of(tree)->changed);
    of(tree)->in_transaction = false;
}

static void memory_stats(struct bel_tree *tree, struct bel_tree_stats *out)
{
    const struct memory_tree *memory = of(tree);
    size_t maps = bel__sorted_bytes(&memory->seen) + bel__sorted_bytes(&memory->committed) +
                  bel__sorted_bytes(&memory->changed);
    *out = (struct bel_tree_stats){
        .rows = bel__sorted_count(&memory->seen),
        .sum = memory->sum,
        .bytes = memory->row_bytes + maps,
    };
}

void bel__tree_memory_destroy(struct bel_tree *tree)
{
    if (tree == NULL) return;
    struct memory_tree *memory = of(tree);
    drop(&memory->changed);
    drop(&memory->committed);
    drop(&memory->seen);
    bel__sorted_finish(&memory->changed);
    bel__sorted_finish(&memory->committed);
    bel__sorted_finish(&memory->seen);
    free(memory);
}

static void memory_close(struct bel_tree *tree)
{
    if (!of(tree)->lasts) {
        bel__tree_memory_destroy(tree);
        return;
    }
    memory_abort(tree);
    int err = memory_refresh(tree);
    assert(!err);
    (void)err;
}

/* Opens a snapshot: a copy of the visible rows. */
static int memory_twin(struct bel_tree *tree, struct bel_tree **out)
{
    struct bel_tree *twin;
    struct bel_key key = {{0, 0, 0}};
    struct bel_view value;
    int err = bel__tree_memory_create(&twin);
    if (err) return err;
    err = memory_begin(twin);
    while (!err && (err = memory_seek(tree, &key, &value)) == 0) {
        err = memory_put(twin, &key, value);
        for (int word = 2; word >= 0 && ++key.words[word] == 0; word--) {}
    }
    if (err == BEL_ENOTFOUND) err = memory_commit(twin, memory_epoch(tree));
    if (!err) err = memory_refresh(twin);
    if (err) {
        bel__tree_memory_destroy(twin);
        return err;
    }
    *out = twin;
    return 0;
}

int bel__tree_memory_create(struct bel_tree **out)
{
    struct memory_tree *memory = malloc(sizeof *memory);
    if (memory == NULL) return BEL_ENOMEM;
    *memory = (struct memory_tree){
        .tree = {.get = memory_get,
                 .seek = memory_seek,
                 .refresh = memory_refresh,
                 .epoch = memory_epoch,
                 .begin = memory_begin,
                 .expect = memory_expect,
                 .put = memory_put,
                 .remove = memory_remove,
                 .commit = memory_commit,
                 .abort = memory_abort,
                 .twin = memory_twin,
                 .stats = memory_stats,
                 .close = memory_close},
    };
    bel__sorted_init(&memory->seen);
    bel__sorted_init(&memory->committed);
    bel__sorted_init(&memory->changed);
    *out = &memory->tree;
    return 0;
}

int bel__tree_memory_create_lasting(struct bel_tree **out)
{
    int err = bel__tree_memory_create(out);
    if (!err) of(*out)->lasts = true;
    return err;
}
