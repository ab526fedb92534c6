/* SPDX-License-Identifier: MIT */

/*
 * A put goes down while the nodes are heavier than the new one, and splits the subtree that it
 * meets into what comes before and after the new node. A removal merges the two subtrees of the
 * node, heavier nodes first.
 */
#include "core/treap.h"

#include <assert.h>
#include <stddef.h>

void bel__treap_put(struct bel_treap_node **root, struct bel_treap_node *node,
                    bel_treap_compare_fn *compare)
{
    struct bel_treap_node **link = root;
    while (*link != NULL && (*link)->weight >= node->weight) {
        int order = compare(node, *link);
        assert(order != 0);
        link = order < 0 ? &(*link)->left : &(*link)->right;
    }
    struct bel_treap_node *rest = *link, **left = &node->left, **right = &node->right;
    *link = node;
    while (rest != NULL) {
        int order = compare(node, rest);
        assert(order != 0);
        if (order < 0) {
            *right = rest;
            right = &rest->left;
            rest = rest->left;
        } else {
            *left = rest;
            left = &rest->right;
            rest = rest->right;
        }
    }
    *left = *right = NULL;
}

void bel__treap_remove(struct bel_treap_node **root, struct bel_treap_node *node,
                       bel_treap_compare_fn *compare)
{
    struct bel_treap_node **link = root;
    while (*link != node) {
        assert(*link != NULL); /* otherwise the node is not in the tree */
        link = compare(node, *link) < 0 ? &(*link)->left : &(*link)->right;
    }
    struct bel_treap_node *left = node->left, *right = node->right;
    while (left != NULL && right != NULL) {
        if (left->weight >= right->weight) {
            *link = left;
            link = &left->right;
            left = left->right;
        } else {
            *link = right;
            link = &right->left;
            right = right->left;
        }
    }
    *link = left != NULL ? left : right;
    node->left = node->right = NULL;
}

struct bel_treap_node *bel__treap_first(struct bel_treap_node *root)
{
    while (root != NULL && root->left != NULL) {
        root = root->left;
    }
    return root;
}

struct bel_treap_node *bel__treap_seek(struct bel_treap_node *root, bel_treap_before_fn *before,
                                       const void *wanted)
{
    struct bel_treap_node *found = NULL;
    while (root != NULL) {
        if (before(root, wanted)) {
            root = root->right;
        } else {
            found = root;
            root = root->left;
        }
    }
    return found;
}

/* NOLINTNEXTLINE(misc-no-recursion): for tests */
bool bel__treap_valid(const struct bel_treap_node *root, bel_treap_compare_fn *compare,
                      uint64_t *out_count)
{
    const struct bel_treap_node *last;
    uint64_t left = 0, right = 0;
    *out_count = 0;
    if (root == NULL) return true;
    if (!bel__treap_valid(root->left, compare, &left)) return false;
    if (!bel__treap_valid(root->right, compare, &right)) return false;
    for (last = root->left; last != NULL && last->right != NULL; last = last->right) {}
    if (last != NULL && compare(last, root) >= 0) return false;
    for (last = root->right; last != NULL && last->left != NULL; last = last->left) {}
    if (last != NULL && compare(root, last) >= 0) return false;
    if (root->left != NULL && root->left->weight > root->weight) return false;
    if (root->right != NULL && root->right->weight > root->weight) return false;
    *out_count = left + 1 + right;
    return true;
}
