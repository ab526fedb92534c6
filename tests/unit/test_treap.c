/* SPDX-License-Identifier: MIT */
#include "core/treap.h"

#include "../check.h"
#include "../random.h"
#include "core/list.h"

enum {
    ITEMS = 400,
    STEPS = 20000,
};

struct item {
    struct bel_treap_node node;
    uint64_t key;
    bool is_there;
};

static struct item items[ITEMS];

static const struct item *item_of(const struct bel_treap_node *node)
{
    return BEL_CONTAINER_OF_CONST(node, struct item, node);
}

static int compare(const struct bel_treap_node *a, const struct bel_treap_node *b)
{
    uint64_t x = item_of(a)->key, y = item_of(b)->key;
    return x < y ? -1 : x > y;
}

static bool is_before(const struct bel_treap_node *node, const void *key)
{
    return item_of(node)->key < *(const uint64_t *)key;
}

/* Returns the smallest key that is there and not less than `from`, or UINT64_MAX. */
static uint64_t model_seek(uint64_t from)
{
    uint64_t best = UINT64_MAX;
    for (unsigned i = 0; i < ITEMS; i++) {
        if (items[i].is_there && items[i].key >= from && items[i].key < best) best = items[i].key;
    }
    return best;
}

static void a_random_history_agrees_with_an_array(void)
{
    struct bel_treap_node *root = NULL;
    uint64_t random = 7, count = 0, counted;
    for (unsigned i = 0; i < ITEMS; i++) {
        items[i].key = UINT64_C(3) * i;
    }
    for (int step = 0; step < STEPS; step++) {
        struct item *item = &items[random_below(&random, ITEMS)];
        if (item->is_there) {
            bel__treap_remove(&root, &item->node, compare);
            count--;
        } else {
            item->node.weight = (uint32_t)random_below(&random, 50); /* equal weights, too */
            bel__treap_put(&root, &item->node, compare);
            count++;
        }
        item->is_there = !item->is_there;
        uint64_t from = random_below(&random, UINT64_C(3) * ITEMS);
        struct bel_treap_node *node = bel__treap_seek(root, is_before, &from);
        CHECK_EQ(node == NULL ? UINT64_MAX : item_of(node)->key, model_seek(from));
        node = bel__treap_first(root);
        CHECK_EQ(node == NULL ? UINT64_MAX : item_of(node)->key, model_seek(0));
        if (step % 100 == 0) CHECK(bel__treap_valid(root, compare, &counted) && counted == count);
    }
}

static void an_empty_tree_has_nothing(void)
{
    uint64_t from = 0, count = 1;
    CHECK(bel__treap_first(NULL) == NULL);
    CHECK(bel__treap_seek(NULL, is_before, &from) == NULL);
    CHECK(bel__treap_valid(NULL, compare, &count) && count == 0);
}

int main(void)
{
    RUN(an_empty_tree_has_nothing);
    RUN(a_random_history_agrees_with_an_array);
    return 0;
}
