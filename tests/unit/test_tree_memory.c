/* SPDX-License-Identifier: MIT */

/* A tree in memory when memory runs out: each allocation of a transaction fails in turn. */
#include "store/tree/tree.h"

#include "../check.h"

#include <string.h>

enum {
    ROWS = 200,
};

static uint64_t memory_left = UINT64_MAX; /* allocations that still succeed */

void *__real_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes);

void *__wrap_malloc(size_t bytes)
{
    if (memory_left == 0) return NULL;
    memory_left--;
    return __real_malloc(bytes);
}

static struct bel_key key_of(uint64_t number)
{
    return (struct bel_key){{number % 3, number, 0}};
}

/* Puts every row and removes every tenth, as long as memory lasts. */
static int change(struct bel_tree *tree, const char *text)
{
    int err = tree->begin(tree);
    for (uint64_t i = 0; i < ROWS && !err; i++) {
        struct bel_key key = key_of(i);
        err = tree->put(tree, &key, (struct bel_view){text, strlen(text)});
        if (!err && i % 10 == 0) err = tree->remove(tree, &key);
    }
    return err;
}

static void check_rows(struct bel_tree *tree, const char *text)
{
    struct bel_tree_stats stats;
    CHECK(bel__tree_check(tree, &stats) == 0);
    CHECK_EQ(stats.rows, ROWS - ROWS / 10);
    for (uint64_t i = 0; i < ROWS; i++) {
        struct bel_key key = key_of(i);
        struct bel_view value;
        int err = tree->get(tree, &key, &value);
        CHECK(err == (i % 10 == 0 ? BEL_ENOTFOUND : 0));
        if (!err) CHECK(value.bytes == strlen(text) && memcmp(value.data, text, value.bytes) == 0);
    }
}

static void a_tree_is_not_made_without_memory(void)
{
    struct bel_tree *tree = NULL;
    memory_left = 0;
    CHECK(bel__tree_memory_create(&tree) == BEL_ENOMEM);
    CHECK(bel__tree_memory_create_lasting(&tree) == BEL_ENOMEM);
    CHECK(tree == NULL);
    memory_left = UINT64_MAX;
}

/* Committing and reading need no memory. */
static void a_change_fails_before_it_is_committed_or_not_at_all(void)
{
    struct bel_tree *tree;
    uint64_t allocations = 0;
    CHECK(bel__tree_memory_create(&tree) == 0);
    CHECK(change(tree, "old") == 0);
    CHECK(tree->commit(tree, 1) == 0);
    CHECK(tree->refresh(tree) == 0);
    for (bool fails = true; fails; allocations++) {
        CHECK_NOTE("after %" PRIu64 " allocations", allocations);
        memory_left = allocations;
        int err = change(tree, "new");
        CHECK(err == 0 || err == BEL_ENOMEM);
        fails = err != 0;
        if (fails) {
            tree->abort(tree);
            CHECK(tree->refresh(tree) == 0);
            check_rows(tree, "old");
            continue;
        }
        memory_left = 0;
        CHECK(tree->commit(tree, 2) == 0);
        CHECK(tree->refresh(tree) == 0);
        check_rows(tree, "new");
    }
    memory_left = UINT64_MAX;
    CHECK(allocations > ROWS);
    tree->close(tree);
}

static void a_commit_that_was_not_seen_needs_no_memory_to_be_seen(void)
{
    struct bel_tree *tree;
    CHECK(bel__tree_memory_create(&tree) == 0);
    for (uint64_t epoch = 1; epoch < 4; epoch++) { /* the last one counts */
        CHECK(change(tree, epoch == 3 ? "last" : "before") == 0);
        memory_left = 0;
        CHECK(tree->commit(tree, epoch) == 0);
        memory_left = UINT64_MAX;
    }
    memory_left = 0;
    CHECK(tree->refresh(tree) == 0);
    memory_left = UINT64_MAX;
    check_rows(tree, "last");
    tree->close(tree);
}

int main(void)
{
    RUN(a_tree_is_not_made_without_memory);
    RUN(a_change_fails_before_it_is_committed_or_not_at_all);
    RUN(a_commit_that_was_not_seen_needs_no_memory_to_be_seen);
    return 0;
}
