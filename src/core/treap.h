/* SPDX-License-Identifier: MIT */
#ifndef BEL_CORE_TREAP_H
#define BEL_CORE_TREAP_H

/*
 * treap - an intrusive ordered tree: nodes are part of the caller's items, so putting and removing
 * need no memory and cannot fail.
 *
 * The caller's comparison orders the nodes; no two nodes in a tree may be equal. The tree is a heap
 * by weight, which the caller draws at random: with random weights the expected depth is
 * logarithmic, whatever the order of the keys.
 *
 *     struct seat { struct bel_treap_node node; ... };
 *
 *     seat->node.weight = random;
 *     bel__treap_put(&root, &seat->node, compare_seats);
 *     first = bel__treap_first(root);
 *     bel__treap_remove(&root, &seat->node, compare_seats);
 *
 * The fields that are compared must not change while a node is in a tree.
 *
 * Threads: a tree belongs to one thread.
 */

#include <stdbool.h>
#include <stdint.h>

struct bel_treap_node {
    struct bel_treap_node *left, *right; /* private */
    uint32_t weight;                     /* set by the caller before the put */
};

/* Returns a negative number, 0 or a positive number, like memcmp(). */
typedef int bel_treap_compare_fn(const struct bel_treap_node *a, const struct bel_treap_node *b);

/* Returns whether a node comes before what is looked for. */
typedef bool bel_treap_before_fn(const struct bel_treap_node *node, const void *wanted);

/* Adds a node that is in no tree. `*root` is NULL for an empty tree. */
void bel__treap_put(struct bel_treap_node **root, struct bel_treap_node *node,
                    bel_treap_compare_fn *compare);

/* Removes a node of the tree. */
void bel__treap_remove(struct bel_treap_node **root, struct bel_treap_node *node,
                       bel_treap_compare_fn *compare);

/* Returns the first node, or NULL. */
struct bel_treap_node *bel__treap_first(struct bel_treap_node *root);

/* Returns the first node that does not come before `wanted`, or NULL. Nodes for which `before` is
 * true must precede all others. */
struct bel_treap_node *bel__treap_seek(struct bel_treap_node *root, bel_treap_before_fn *before,
                                       const void *wanted);

/* Returns whether nodes are in order and weights form a heap, and sets `*out_count` to the number
 * of nodes. For tests: takes linear time, and recurses to the depth of the tree. */
bool bel__treap_valid(const struct bel_treap_node *root, bel_treap_compare_fn *compare,
                      uint64_t *out_count);

#endif
