/* SPDX-License-Identifier: MIT */

/*
 * A B+ tree in which all nodes have the same layout: up to 63 entries, each a key and a slot, and
 * links to the neighbours on the same level. The slot of a leaf is a value. The slot of an inner
 * node is a child, and its key is the child's lower bound: the child holds the keys from its bound
 * up to the next one.
 *
 *     level 2                   [0 ......... 40]
 *                                |            |
 *     level 1             [0 .. 20] <------> [40 .. 60]
 *                          |     |            |      |
 *     level 0       [3 7 11] <-> [20 31] <-> [44] <-> [60 61 70]
 *
 * The first bound of a level is 0, and the first bound of a node is also its bound in the level
 * above. So entries can move between any two neighbours, even if their parents differ: this changes
 * only one bound, in the parent and, if it is the first there, in the levels above.
 *
 * Full nodes. A key for the end of a full node goes to the front of the next node or, if that is
 * full too, into a new node of its own. A key before all others also leaves a full node as it is.
 * So keys that come in order, rising or falling, leave full nodes. A key for the middle first moves
 * entries to the next node, if that has room. Otherwise a third of both nodes moves to a new one
 * between them, so that with random keys nodes are four fifths full.
 *
 * Empty nodes. The invariant is that two neighbours have at least 32 entries together. Removing
 * merges neighbours that would violate it. A merge leaves at most 31 entries, or an unchanged
 * neighbour, so a split needs many puts after it. The invariant bounds the memory: n entries are in
 * at most n / 16 + 1 leaves, their parents are at most a 16th of that, and so on. The invariant
 * also bounds what `puts` puts can need: each of them splits at most one node per level, and no
 * level can grow beyond what the invariant allows for the resulting entries.
 *
 * Moving entries. The entries of a node need not begin at its start: an insertion moves either the
 * entries before it or those after it, and removing the first entry moves nothing. Removing the
 * first key and appending after the last one need no search for the leaf.
 *
 * Searching. A search compares every eighth key of a node, and then the seven keys between two of
 * them. The comparisons of a step do not depend on each other, unlike those of a binary search, and
 * have no unpredictable branches. Each compares two words as one number. If all keys of the node
 * have the same first word as the wanted key, as in most nodes, these are the last two words.
 * Otherwise they are the first two, and keys that differ only in the last word are compared one by
 * one.
 */
#include "core/sorted.h"

#include "core/memory_use.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    NODE_MAX = 63,        /* entries in a node */
    STRIDE = 8,           /* distance of the keys compared first */
    PAIR_MIN = 32,        /* entries in two neighbours together, at least */
    SHIFT_MAX = 56,       /* a node with at most this many takes entries from its neighbour */
    BLOCK_NODES_MAX = 32, /* nodes per allocation, unless more are needed */
    HEIGHT_MAX = BEL_SORTED_HEIGHT_MAX,
};

union slot {
    uint64_t value;
    struct bel_sorted_node *child;
};

struct bel_sorted_node {
    struct bel_sorted_node *next, *prev; /* on the level; a spare node has only `next` */
    uint32_t start, count;
    struct bel_key keys[NODE_MAX];
    union slot slots[NODE_MAX];
};

struct bel_sorted_block {
    struct bel_sorted_block *next;
    struct bel_sorted_node nodes[];
};

static_assert(sizeof(struct bel_sorted_node) == 2040, "as the header says: 2 KiB with the block");

static struct bel_key *keys_of(struct bel_sorted_node *node)
{
    return node->keys + node->start;
}

static union slot *slots_of(struct bel_sorted_node *node)
{
    return node->slots + node->start;
}

/* Search */

__extension__ typedef unsigned __int128 wide;

/* Returns two words of a key as one number. */
static inline wide pair_of(const uint64_t words[2])
{
    return (wide)words[0] << 64 | words[1];
}

/* Counts the keys at `i`, `i + step` and so on, before `end`, whose two words from `word` on are
 * less than `wanted`. */
static inline size_t count_below(const struct bel_key *keys, size_t i, size_t end, size_t step,
                                 size_t word, wide wanted)
{
    size_t below = 0;
    for (; i < end; i += step) {
        below += pair_of(&keys[i].words[word]) < wanted;
    }
    return below;
}

/* Returns the number of keys of a node that are less than `key`, and sets `*out` to whether the
 * next one equals it. */
static inline unsigned search(struct bel_sorted_node *node, const struct bel_key *key, bool *out)
{
    const struct bel_key *keys = keys_of(node);
    size_t count = node->count;
    assert(count > 0);
    uint64_t first = key->words[0];
    size_t word = (keys[0].words[0] == first) & (keys[count - 1].words[0] == first);
    wide wanted = pair_of(&key->words[word]);

    size_t low = STRIDE * count_below(keys, STRIDE - 1, count, STRIDE, word, wanted);
    size_t end = low + STRIDE - 1 < count ? low + STRIDE - 1 : count;
    low += count_below(keys, low, end, 1, word, wanted);

    int order = -1; /* skips keys that differ only in the last word */
    while (low < count && (order = bel__key_compare(&keys[low], key)) < 0) {
        low++;
    }
    *out = order == 0;
    return (unsigned)low;
}

/* Returns the index of the child of an inner node whose bounds contain `key`. */
static inline unsigned child_index(struct bel_sorted_node *node, const struct bel_key *key)
{
    bool is_bound;
    unsigned index = search(node, key, &is_bound);
    return is_bound ? index : index - 1;
}

/* Prefetches all cache lines of a leaf's keys. Inner nodes are few and usually in the cache. */
static inline void fetch_keys(const struct bel_sorted_node *leaf)
{
    const char *bytes = (const char *)leaf;
#pragma GCC unroll 24
    for (size_t at = 0; at < offsetof(struct bel_sorted_node, slots); at += 64) {
        __builtin_prefetch(bytes + at);
    }
}

/* Finds the path to a key, or to where it would be. Returns whether it exists. The map is not
 * empty. */
static bool find_way(const struct bel_sorted *sorted, const struct bel_key *key,
                     struct bel_sorted_way *out)
{
    bool is_there;
    struct bel_sorted_node *node = sorted->root;
    assert(sorted->height > 0 && sorted->height <= HEIGHT_MAX);
    for (unsigned level = sorted->height - 1; level > 0; level--) {
        unsigned index = child_index(node, key);
        out->steps[level].node = node;
        out->steps[level].index = index;
        node = slots_of(node)[index].child;
        if (level == 1) fetch_keys(node);
    }
    out->steps[0].node = node;
    out->steps[0].index = search(node, key, &is_there);
    return is_there;
}

/* Nodes */

static struct bel_sorted_node *take_node(struct bel_sorted *sorted)
{
    struct bel_sorted_node *node = sorted->spare;
    assert(node != NULL); /* otherwise the caller did not reserve */
    sorted->spare = node->next;
    sorted->spare_count--;
    node->next = node->prev = NULL;
    node->start = node->count = 0;
    return node;
}

static void give_node(struct bel_sorted *sorted, struct bel_sorted_node *node)
{
    node->next = sorted->spare;
    sorted->spare = node;
    sorted->spare_count++;
}

static void link_after(struct bel_sorted *sorted, struct bel_sorted_node *node,
                       struct bel_sorted_node *added)
{
    added->prev = node;
    added->next = node->next;
    if (node->next != NULL) node->next->prev = added;
    node->next = added;
    if (sorted->last == node) sorted->last = added;
}

static void unlink_node(struct bel_sorted *sorted, struct bel_sorted_node *node)
{
    assert(node->prev != NULL); /* the first node of a level is never removed */
    node->prev->next = node->next;
    if (node->next != NULL) node->next->prev = node->prev;
    if (sorted->last == node) sorted->last = node->prev;
}

/* Moves `count` entries; the ranges may overlap. */
static void move_entries(struct bel_sorted_node *to, unsigned to_index,
                         struct bel_sorted_node *from, unsigned from_index, unsigned count)
{
    if (count == 0) return;
    assert(to_index + count <= NODE_MAX && from_index + count <= NODE_MAX);
    memmove(&to->keys[to_index], &from->keys[from_index], count * sizeof to->keys[0]);
    memmove(&to->slots[to_index], &from->slots[from_index], count * sizeof to->slots[0]);
}

/* Moves the entries so that they begin at `start`. */
static void slide(struct bel_sorted_node *node, unsigned start)
{
    move_entries(node, start, node, node->start, node->count);
    node->start = start;
}

/* Inserts an entry at `index`, moving the entries before it or those after it, whichever are
 * fewer. */
static void insert_entry(struct bel_sorted_node *node, unsigned index, const struct bel_key *key,
                         union slot slot)
{
    assert(node->count < NODE_MAX && index <= node->count);
    if (node->start > 0 && index <= node->count / 2) {
        move_entries(node, node->start - 1, node, node->start, index);
        node->start--;
    } else {
        if (node->start + node->count == NODE_MAX) slide(node, 0);
        unsigned place = node->start + index;
        move_entries(node, place + 1, node, place, node->count - index);
    }
    node->count++;
    keys_of(node)[index] = *key;
    slots_of(node)[index] = slot;
}

static void remove_entry(struct bel_sorted_node *node, unsigned index)
{
    assert(index < node->count);
    node->count--;
    if (index < node->count / 2 + 1) {
        move_entries(node, node->start + 1, node, node->start, index);
        node->start = node->count == 0 ? 0 : node->start + 1;
    } else {
        unsigned place = node->start + index;
        move_entries(node, place, node, place + 1, node->count - index);
    }
}

/* Moves the last `count` entries of a node to the front of the next node. */
static void move_to_next(struct bel_sorted_node *node, struct bel_sorted_node *next, unsigned count)
{
    assert(count <= node->count && next->count + count <= NODE_MAX);
    slide(next, count);
    node->count -= count;
    move_entries(next, 0, node, node->start + node->count, count);
    next->start = 0;
    next->count += count;
}

/* Moves the first `count` entries of a node to the end of the previous node. */
static void move_to_prev(struct bel_sorted_node *prev, struct bel_sorted_node *node, unsigned count)
{
    assert(count <= node->count && prev->count + count <= NODE_MAX);
    if (prev->start + prev->count + count > NODE_MAX) slide(prev, 0);
    move_entries(prev, prev->start + prev->count, node, node->start, count);
    prev->count += count;
    node->start += count;
    node->count -= count;
}

/* Paths */

/* Sets the lower bound of the path's node on `level`, which is not the first of its level. */
static void set_bound(const struct bel_sorted *sorted, struct bel_sorted_way *way, unsigned level,
                      struct bel_key bound)
{
    unsigned above = level;
    do {
        above++;
        assert(above < sorted->height);
        keys_of(way->steps[above].node)[way->steps[above].index] = bound;
    } while (way->steps[above].index == 0);
}

/* Moves the path to the next node on `level`, which must exist. */
static void advance(const struct bel_sorted *sorted, struct bel_sorted_way *way, unsigned level)
{
    unsigned above = level;
    do {
        above++;
        assert(above < sorted->height);
        assert(way->steps[above].node != NULL);
    } while (way->steps[above].index + 1 == way->steps[above].node->count);
    way->steps[above].index++;
    for (; above > level; above--) {
        struct bel_sorted_node *node = way->steps[above].node;
        way->steps[above - 1].node = slots_of(node)[way->steps[above].index].child;
        way->steps[above - 1].index = 0;
    }
}

/* Put */

static void grow_root(struct bel_sorted *sorted, struct bel_sorted_way *way)
{
    static const struct bel_key lowest = {{0, 0, 0}};
    struct bel_sorted_node *root = take_node(sorted);
    assert(sorted->height < HEIGHT_MAX);
    insert_entry(root, 0, &lowest, (union slot){.child = sorted->root});
    way->steps[sorted->height].node = root;
    way->steps[sorted->height].index = 0;
    sorted->root = root;
    sorted->height++;
}

/* Makes room in or after a full node, for an entry at `index`. Returns the node added after it, or
 * NULL. */
static struct bel_sorted_node *make_room(struct bel_sorted *sorted, struct bel_sorted_node *node,
                                         unsigned index)
{
    struct bel_sorted_node *next = node->next, *added = NULL;
    bool is_end = index == NODE_MAX;
    assert(node->count == NODE_MAX);
    if (next != NULL && next->count <= (is_end ? NODE_MAX - 1 : SHIFT_MAX)) {
        if (!is_end) move_to_next(node, next, (NODE_MAX - next->count) / 2);
        return NULL;
    }

    added = take_node(sorted);
    link_after(sorted, node, added);
    if (is_end) return added;
    if (index == 0 && node->prev == NULL) {
        move_to_next(node, added, NODE_MAX);
        return added;
    }
    move_to_next(node, added, next == NULL ? NODE_MAX / 2 : NODE_MAX / 3);
    if (next != NULL) move_to_prev(added, next, next->count / 3);
    return added;
}

/* Inserts an entry at the path's place on `level`, in a full node. Returns the node added after it,
 * or NULL. */
static struct bel_sorted_node *overflow(struct bel_sorted *sorted, const struct bel_sorted_way *way,
                                        unsigned level, const struct bel_key *key, union slot slot)
{
    struct bel_sorted_node *node = way->steps[level].node, *next = node->next;
    unsigned index = way->steps[level].index;
    struct bel_sorted_node *added = make_room(sorted, node, index);
    if (node->count < NODE_MAX && index <= node->count) {
        insert_entry(node, index, key, slot);
    } else {
        insert_entry(node->next, index - node->count, key, slot);
    }

    if (next != NULL) {
        struct bel_sorted_way ahead = *way;
        advance(sorted, &ahead, level);
        set_bound(sorted, &ahead, level, keys_of(next)[0]);
    }
    return added;
}

/* Inserts an entry at the end of the path. */
static void insert(struct bel_sorted *sorted, struct bel_sorted_way *way, const struct bel_key *key,
                   union slot slot)
{
    struct bel_key bound = *key;
    unsigned height = sorted->height;
    for (unsigned level = 0;; level++) {
        struct bel_sorted_node *node = way->steps[level].node;
        assert(node != NULL);
        if (node->count < NODE_MAX) {
            insert_entry(node, way->steps[level].index, &bound, slot);
            return;
        }
        struct bel_sorted_node *added = overflow(sorted, way, level, &bound, slot);
        if (added == NULL) return;
        if (level + 1 == height) {
            grow_root(sorted, way);
            height++;
        }
        /* NOLINTNEXTLINE(clang-analyzer-core.uninitialized.Assign): each level has a step */
        way->steps[level + 1].index++;
        bound = keys_of(added)[0];
        slot.child = added;
    }
}

bool bel__sorted_append(struct bel_sorted *sorted, const struct bel_key *key, uint64_t value)
{
    struct bel_sorted_node *last = sorted->last;
    if (last == NULL || last->count == NODE_MAX) return false;
    if (bel__key_compare(&keys_of(last)[last->count - 1], key) >= 0) return false;
    insert_entry(last, last->count, key, (union slot){.value = value});
    sorted->count++;
    sorted->changes++;
    return true;
}

bool bel__sorted_put(struct bel_sorted *sorted, const struct bel_key *key, uint64_t value,
                     uint64_t *out)
{
    struct bel_sorted_way way;
    if (bel__sorted_append(sorted, key, value)) return false;
    uint64_t *old = bel__sorted_look(sorted, key, &way);
    if (old == NULL) {
        bel__sorted_add(sorted, &way, key, value);
        return false;
    }
    if (out != NULL) *out = *old;
    *old = value;
    return true;
}

void bel__sorted_add(struct bel_sorted *sorted, struct bel_sorted_way *way,
                     const struct bel_key *key, uint64_t value)
{
    assert(way->changes == sorted->changes);
    if (sorted->height == 0) {
        sorted->root = sorted->first = sorted->last = take_node(sorted);
        sorted->height = 1;
        way->steps[0].node = sorted->root;
        way->steps[0].index = 0;
    }
    insert(sorted, way, key, (union slot){.value = value});
    sorted->count++;
    sorted->changes++;
}

/* Remove */

static bool must_merge(const struct bel_sorted_node *node, const struct bel_sorted_node *next)
{
    return node->count == 0 || next->count == 0 || node->count + next->count < PAIR_MIN;
}

static void shrink_root(struct bel_sorted *sorted)
{
    struct bel_sorted_node *root = sorted->root;
    while (sorted->height > 1 && root->count == 1) {
        sorted->root = slots_of(root)[0].child;
        sorted->height--;
        give_node(sorted, root);
        root = sorted->root;
    }
    if (root->count > 0) return;
    assert(sorted->height == 1 && sorted->count == 0);
    sorted->root = sorted->first = sorted->last = NULL;
    sorted->height = 0;
    give_node(sorted, root);
}

/* Restores the invariant after an entry of the path's leaf was removed. */
static void rebalance(struct bel_sorted *sorted, struct bel_sorted_way *way)
{
    for (unsigned level = 0; level + 1 < sorted->height; level++) {
        struct bel_sorted_node *node = way->steps[level].node;
        if (node->prev == NULL || !must_merge(node->prev, node)) {
            if (node->next == NULL || !must_merge(node, node->next)) return;
            assert(node->count > 0 || level == 0); /* its bounds now belong to its prev */
            advance(sorted, way, level);
            node = node->next;
        }
        move_to_prev(node->prev, node, node->count);
        unlink_node(sorted, node);
        give_node(sorted, node);
        struct bel_sorted_node *parent = way->steps[level + 1].node;
        unsigned index = way->steps[level + 1].index;
        remove_entry(parent, index);
        if (index == 0 && parent->count > 0) {
            set_bound(sorted, way, level + 1, keys_of(parent)[0]);
        }
    }
    shrink_root(sorted);
}

/* Removes `key` without a search if it is the first key and the invariant stays true. */
static bool take_first(struct bel_sorted *sorted, const struct bel_key *key, uint64_t *out)
{
    struct bel_sorted_node *first = sorted->first;
    if (first == NULL || first->count == 1) return false;
    if (bel__key_compare(&keys_of(first)[0], key) != 0) return false;
    if (first->next != NULL && first->count + first->next->count == PAIR_MIN) return false;
    if (out != NULL) *out = slots_of(first)[0].value;
    remove_entry(first, 0);
    sorted->count--;
    sorted->changes++;
    return true;
}

bool bel__sorted_remove(struct bel_sorted *sorted, const struct bel_key *key, uint64_t *out)
{
    struct bel_sorted_way way;
    if (take_first(sorted, key, out)) return true;
    const uint64_t *value = bel__sorted_look(sorted, key, &way);
    if (value == NULL) return false;
    if (out != NULL) *out = *value;
    bel__sorted_drop(sorted, &way);
    return true;
}

void bel__sorted_drop(struct bel_sorted *sorted, struct bel_sorted_way *way)
{
    assert(way->changes == sorted->changes);
    remove_entry(way->steps[0].node, way->steps[0].index);
    sorted->count--;
    sorted->changes++;
    rebalance(sorted, way);
}

/* Find */

uint64_t *bel__sorted_find(const struct bel_sorted *sorted, const struct bel_key *key)
{
    struct bel_sorted_way way;
    return bel__sorted_look(sorted, key, &way);
}

uint64_t *bel__sorted_look(const struct bel_sorted *sorted, const struct bel_key *key,
                           struct bel_sorted_way *out)
{
    out->changes = sorted->changes;
    if (sorted->height == 0 || !find_way(sorted, key, out)) return NULL;
    return &slots_of(out->steps[0].node)[out->steps[0].index].value;
}

/* Sets `*out` to entry `index` of a leaf, or to the first of the next leaf if `index` is the
 * end. */
static bool place_at(const struct bel_sorted *sorted, struct bel_sorted_node *leaf, unsigned index,
                     struct bel_sorted_place *out)
{
    if (index == leaf->count) {
        leaf = leaf->next;
        index = 0;
        if (leaf == NULL) return false;
    }
    assert(index < leaf->count);
    *out = (struct bel_sorted_place){
        .key = keys_of(leaf)[index],
        .value = slots_of(leaf)[index].value,
        .leaf = leaf,
        .index = index,
        .changes = sorted->changes,
    };
    return true;
}

bool bel__sorted_seek(const struct bel_sorted *sorted, const struct bel_key *from,
                      struct bel_sorted_place *out)
{
    struct bel_sorted_way way;
    struct bel_sorted_node *first = sorted->first;
    if (first == NULL) return false;
    if (bel__key_compare(&keys_of(first)[0], from) >= 0) return place_at(sorted, first, 0, out);
    (void)find_way(sorted, from, &way);
    return place_at(sorted, way.steps[0].node, way.steps[0].index, out);
}

bool bel__sorted_next(const struct bel_sorted *sorted, struct bel_sorted_place *place)
{
    struct bel_sorted_way way;
    assert(place->changes <= sorted->changes);
    if (place->changes == sorted->changes) {
        return place_at(sorted, place->leaf, place->index + 1, place);
    }
    if (sorted->height == 0) return false;
    unsigned passed = find_way(sorted, &place->key, &way) ? 1 : 0;
    return place_at(sorted, way.steps[0].node, way.steps[0].index + passed, place);
}

uint64_t bel__sorted_peek(const struct bel_sorted_place *place, unsigned count)
{
    struct bel_sorted_node *leaf = place->leaf;
    unsigned index = place->index + count;
    if (index >= leaf->count) {
        index -= leaf->count;
        leaf = leaf->next;
    }
    return leaf == NULL || index >= leaf->count ? 0 : slots_of(leaf)[index].value;
}

uint64_t bel__sorted_count(const struct bel_sorted *sorted)
{
    assert((sorted->count == 0) == (sorted->root == NULL));
    return sorted->count;
}

/* Memory */

void bel__sorted_init(struct bel_sorted *sorted)
{
    assert(sorted != NULL);
    *sorted = (struct bel_sorted){.root = NULL};
}

void bel__sorted_finish(struct bel_sorted *sorted)
{
    assert(sorted != NULL);
    struct bel_sorted_block *next;
    bel__memory_shrink(bel__sorted_bytes(sorted));
    for (struct bel_sorted_block *block = sorted->blocks; block != NULL; block = next) {
        next = block->next;
        free(block);
    }
    *sorted = (struct bel_sorted){.changes = sorted->changes + 1};
}

void bel__sorted_clear(struct bel_sorted *sorted)
{
    struct bel_sorted_node *first = sorted->root, *last;
    for (unsigned level = sorted->height;
         level-- > 0;) { /* a level is a list: append it to the spare nodes */
        struct bel_sorted_node *below = level > 0 ? slots_of(first)[0].child : NULL;
        for (last = level > 0 ? first : sorted->last; last->next != NULL;) {
            last = last->next;
        }
        last->next = sorted->spare;
        sorted->spare = first;
        first = below;
    }
    sorted->root = sorted->first = sorted->last = NULL;
    sorted->spare_count = sorted->node_count;
    sorted->height = 0;
    sorted->count = 0;
    sorted->changes++;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Returns the most nodes that the invariant allows for `entries` entries, or nodes of the level
 * below. */
static uint64_t nodes_max(uint64_t entries)
{
    return entries / PAIR_MIN * 2 + 1;
}

/* Returns the most new nodes that `puts` puts can need. */
static uint64_t nodes_needed(const struct bel_sorted *sorted, uint64_t puts)
{
    uint64_t used = sorted->node_count - sorted->spare_count, count = sorted->count + puts;
    if (sorted->height <= 1 && count <= NODE_MAX) return sorted->height == 0 && puts > 0;
    uint64_t level_max = smaller(used + puts, nodes_max(count));
    uint64_t needed = smaller(puts, level_max);
    while (level_max > 1) {
        level_max = nodes_max(level_max);
        needed += smaller(puts, level_max);
    }
    return needed;
}

/* Allocates at least `nodes` spare nodes. */
static int add_nodes(struct bel_sorted *sorted, uint64_t nodes)
{
    uint64_t usual = smaller(sorted->node_count / 2, BLOCK_NODES_MAX);
    if (nodes < usual) nodes = usual;
    if (nodes > UINT32_MAX - sorted->node_count) return BEL_ENOMEM;
    struct bel_sorted_block *block = malloc(sizeof *block + nodes * sizeof block->nodes[0]);
    if (block == NULL) return BEL_ENOMEM;

    bel__memory_grow(sizeof *block + nodes * sizeof block->nodes[0]);
    block->next = sorted->blocks;
    sorted->blocks = block;
    sorted->block_count++;
    sorted->node_count += (uint32_t)nodes;
    for (uint64_t i = nodes; i-- > 0;) {
        give_node(sorted, &block->nodes[i]);
    }
    return 0;
}

int bel__sorted_reserve(struct bel_sorted *sorted, size_t puts)
{
    if (puts == 1 && sorted->spare_count > sorted->height) return 0;
    if (puts > UINT32_MAX) return BEL_ENOMEM;
    uint64_t needed = nodes_needed(sorted, puts);
    if (needed <= sorted->spare_count) return 0;
    return add_nodes(sorted, needed - sorted->spare_count);
}

int bel__sorted_provide(struct bel_sorted *sorted, uint64_t keys)
{
    if (keys == 0) return 0;
    uint64_t level_max = nodes_max(keys), needed = level_max;
    while (level_max > 1) {
        level_max = nodes_max(level_max);
        needed += level_max;
    }
    if (needed <= sorted->node_count) return 0;
    return add_nodes(sorted, needed - sorted->node_count);
}

size_t bel__sorted_bytes(const struct bel_sorted *sorted)
{
    assert(sorted->node_count >= sorted->spare_count);
    return sorted->node_count * sizeof(struct bel_sorted_node) +
           sorted->block_count * sizeof(struct bel_sorted_block);
}

/* Checks */

/* Returns whether a node is sorted, keeps the invariant and is linked correctly. */
static bool is_node_valid(struct bel_sorted_node *node)
{
    struct bel_sorted_node *next = node->next;
    if (node->count == 0 || node->start + node->count > NODE_MAX) return false;
    for (unsigned i = 1; i < node->count; i++) {
        if (bel__key_compare(&keys_of(node)[i - 1], &keys_of(node)[i]) >= 0) return false;
    }
    if (next == NULL) return true;
    if (next->prev != node || must_merge(node, next)) return false;
    return bel__key_compare(&keys_of(node)[node->count - 1], &keys_of(next)[0]) < 0;
}

/* Returns whether the children of `node` are those from `*child` on, and within their bounds. */
static bool are_children_valid(struct bel_sorted_node *node, bool are_leaves,
                               struct bel_sorted_node **child)
{
    for (unsigned i = 0; i < node->count; i++) {
        struct bel_sorted_node *at = *child;
        if (at == NULL || slots_of(node)[i].child != at || at->count == 0) return false;
        int order = bel__key_compare(&keys_of(node)[i], &keys_of(at)[0]);
        if (are_leaves ? order > 0 : order != 0) return false;
        const struct bel_sorted_node *before = at->prev;
        if (before != NULL &&
            bel__key_compare(&keys_of(at->prev)[before->count - 1], &keys_of(node)[i]) >= 0) {
            return false;
        }
        *child = at->next;
    }
    return true;
}

/* Returns whether a level is valid and matches the level below. Counts its nodes and entries. */
static bool is_level_valid(struct bel_sorted_node *first, unsigned level, uint64_t *nodes,
                           uint64_t *entries)
{
    static const struct bel_key lowest = {{0, 0, 0}};
    struct bel_sorted_node *child = level > 0 ? slots_of(first)[0].child : NULL;
    if (first->prev != NULL) return false;
    if (level > 0 && bel__key_compare(&keys_of(first)[0], &lowest) != 0) return false;
    *entries = 0;
    for (struct bel_sorted_node *node = first; node != NULL; node = node->next) {
        if (!is_node_valid(node)) return false;
        if (level > 0 && !are_children_valid(node, level == 1, &child)) return false;
        ++*nodes;
        *entries += node->count;
    }
    return child == NULL;
}

bool bel__sorted_valid(const struct bel_sorted *sorted)
{
    uint64_t nodes = 0, entries = 0;
    struct bel_sorted_node *first = sorted->root, *last = sorted->last;
    if ((sorted->height == 0) != (first == NULL) || sorted->height > HEIGHT_MAX) return false;
    if (first != NULL && (first->next != NULL || (sorted->height > 1 && first->count < 2))) {
        return false;
    }
    for (unsigned level = sorted->height; level-- > 0;) {
        if (!is_level_valid(first, level, &nodes, &entries)) return false;
        if (level > 0) first = slots_of(first)[0].child;
    }
    if (sorted->first != first || entries != sorted->count) return false;
    if ((last == NULL) != (first == NULL) || (last != NULL && last->next != NULL)) return false;
    for (const struct bel_sorted_node *spare = sorted->spare; spare != NULL; spare = spare->next) {
        if (++nodes > sorted->node_count) return false;
    }
    return nodes == sorted->node_count;
}
