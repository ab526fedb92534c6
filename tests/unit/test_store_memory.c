/* SPDX-License-Identifier: MIT */

/*
 * The store when memory runs out: at each allocation in turn, while opening, reserving and writing
 * a checkpoint. A failed call returns an error, changes nothing, and succeeds later.
 */
#include "store/state.h"

#include "../check.h"
#include "../sim/disk.h"

#include <string.h>

enum {
    BATCHES = 60,
    VALUE_BYTES = 700,
};

static uint64_t memory_left = UINT64_MAX; /* allocations that still succeed */
static uint64_t refused_count;

static bool is_refused(void)
{
    if (memory_left == 0) {
        refused_count++;
        return true;
    }
    memory_left--;
    return false;
}

void *__real_malloc(size_t bytes);               /* NOLINT(bugprone-reserved-identifier) */
void *__wrap_malloc(size_t bytes);               /* NOLINT(bugprone-reserved-identifier) */
void *__real_calloc(size_t count, size_t bytes); /* NOLINT(bugprone-reserved-identifier) */
void *__wrap_calloc(size_t count, size_t bytes); /* NOLINT(bugprone-reserved-identifier) */
void *__real_aligned_alloc(size_t alignment,
                           size_t bytes); /* NOLINT(bugprone-reserved-identifier) */
void *__wrap_aligned_alloc(size_t alignment,
                           size_t bytes); /* NOLINT(bugprone-reserved-identifier) */

void *__wrap_malloc(size_t bytes) /* NOLINT(bugprone-reserved-identifier) */
{
    return is_refused() ? NULL : __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes) /* NOLINT(bugprone-reserved-identifier) */
{
    return is_refused() ? NULL : __real_calloc(count, bytes);
}

void *__wrap_aligned_alloc(size_t alignment,
                           size_t bytes) /* NOLINT(bugprone-reserved-identifier) */
{
    return is_refused() ? NULL : __real_aligned_alloc(alignment, bytes);
}

static struct disk *disk;
static struct bel_tree *tree;
static struct bel_store_options options;
static struct bel_store *store;

/* A clock that advances by a second each time it is read, so that nothing is retried later. */
static uint64_t mono_ns(struct bel_io *io)
{
    static uint64_t ns;
    (void)io;
    return ns += 1000000000;
}

static void setup(void)
{
    memory_left = UINT64_MAX;
    refused_count = 0;
    disk = disk_create(1);
    disk_io(disk)->mono_ns = mono_ns;
    CHECK(bel__tree_memory_create_lasting(&tree) == 0);
    options = (struct bel_store_options){
        .io = disk_io(disk), .tree = tree, .segment_bytes = 8192, .segment_count = 3};
}

static void teardown(void)
{
    memory_left = UINT64_MAX;
    bel__store_close(store);
    store = NULL;
    bel__tree_memory_destroy(tree);
    disk_destroy(disk);
}

/* Opens with ever more memory, until it succeeds. Returns how often it failed. */
static uint64_t open_store(void)
{
    for (uint64_t count = 0;; count++) {
        struct bel_why why;
        CHECK_NOTE("with %d allocations", (int)count);
        CHECK(count < 1000);
        memory_left = count;
        int err = bel__store_open(&options, &store, &why);
        memory_left = UINT64_MAX;
        if (err == 0) return count;
        CHECK(err == BEL_ENOMEM);
    }
}

static int put(uint64_t i)
{
    struct bel_key key = {{i, 0, 0}};
    uint8_t value[VALUE_BYTES] = {0};
    memcpy(value, &i, sizeof i);
    int err = bel__store_reserve(store, 1, sizeof value, BEL_STORE_END);
    if (err) return err;
    memory_left = 0; /* it was reserved */
    bel__store_put(store, &key, (struct bel_view){value, sizeof value}, BEL_ROW_NEW);
    CHECK_EQ(bel__store_commit(store), i);
    return 0;
}

static void check_rows(uint64_t last)
{
    CHECK_EQ(store->batch, last);
    for (uint64_t i = 1; i <= last + 1; i++) {
        struct bel_key key = {{i, 0, 0}};
        struct bel_view value;
        int err = bel__store_get(store, &key, &value);
        CHECK(err == (i <= last ? 0 : BEL_ENOTFOUND));
        if (err == 0) CHECK(memcmp(value.data, &i, sizeof i) == 0);
    }
}

/* Each batch, and the work after it, with ever more memory until it succeeds. */
static void what_fails_without_memory_changes_nothing_and_works_later(void)
{
    setup();
    CHECK(open_store() >= 3);
    for (uint64_t i = 1; i <= BATCHES; i++) {
        for (uint64_t count = 0;; count++) {
            CHECK_NOTE("batch %d with %d allocations", (int)i, (int)count);
            CHECK(count < 1000);
            memory_left = count;
            int err = put(i);
            if (err == 0) break;
            CHECK(err == BEL_ENOMEM);
            CHECK(bel__store_error(store) == 0);
            check_rows(i - 1);
        }
        for (uint64_t count = 0; count < 3; count++) {
            memory_left = count;
            (void)bel__store_work(store);
            check_rows(i);
        }
    }
    CHECK(store->log->use > 6);
    CHECK(refused_count > 30);
    memory_left = UINT64_MAX;
    bel__store_close(store);
    CHECK(open_store() > 3);
    check_rows(BATCHES);
    teardown();
}

static void a_store_in_memory_opens_with_memory_alone(void)
{
    uint64_t count = 0;
    for (;; count++) {
        memory_left = count;
        int err = bel__store_open_memory(&store);
        memory_left = UINT64_MAX;
        if (err == 0) break;
        CHECK(err == BEL_ENOMEM && store == NULL);
    }
    CHECK(count >= 2);
    bel__store_close(store);
    store = NULL;
}

int main(void)
{
    RUN(what_fails_without_memory_changes_nothing_and_works_later);
    RUN(a_store_in_memory_opens_with_memory_alone);
    return 0;
}
