/* SPDX-License-Identifier: MIT */

/*
 * Trees that are built without LMDB, from random rows: few or many, small or large. The check of
 * pages finds nothing, LMDB reads the rows that were put, and can change them. In every case one
 * write fails with a full disk: the build returns that error.
 */
#include "property.h"
#include "store/io/row.h"
#include "store/tree/build.h"
#include "store/tree/pages.h"

#include "../trees.h"

#include <errno.h>

enum {
    CASES = 30,
    ROWS_MAX = 30000,
    CHANGES = 400,
};

static struct fixture fixture;
static struct bel_io *disk; /* the folder of the tree */
static uint64_t writes_left;
static int (*write_real)(struct bel_io *io, struct bel_io_file *file, uint64_t offset,
                         const void *data, size_t bytes);

static int write_some(struct bel_io *io, struct bel_io_file *file, uint64_t offset,
                      const void *data, size_t bytes)
{
    if (writes_left == 0) {
        errno = ENOSPC;
        return BEL_EFULL;
    }
    writes_left--;
    return write_real(io, file, offset, data, bytes);
}

static struct bel_key key_of(uint64_t i)
{
    return (struct bel_key){{i / 1000, i << 20, i * UINT64_C(0x9e3779b97f4a7c15)}};
}

/* The value of row `i` in a case: short ones, empty ones, ones for overflow pages. */
static struct bel_view value_of(uint64_t seed, uint64_t i)
{
    static unsigned char bytes[BEL_STORE_VALUE_BYTES_MAX];
    static const uint64_t ranges[] = {1, 60, 300, 2100, sizeof bytes + 1};
    uint64_t random_state = seed * 1000003 + i;
    uint64_t range = ranges[random_below(&random_state, random_below(&random_state, 5) + 1)];
    size_t count = (size_t)random_below(&random_state, range);
    random_fill(&random_state, bytes, count);
    return (struct bel_view){bytes, count};
}

static int build(uint64_t seed, uint64_t rows, struct bel_tree_stats *out)
{
    struct bel_tree_build *build = NULL;
    int err = bel__tree_build_open(disk, &build);
    for (uint64_t i = 0; i < rows && !err; i++) {
        struct bel_key key = key_of(i);
        err = bel__tree_build_put(build, &key, value_of(seed, i));
    }
    if (!err) err = bel__tree_build_end(build, seed, out);
    bel__tree_build_close(build);
    return err;
}

static void check_rows(uint64_t seed, uint64_t rows)
{
    struct bel_tree *tree = fixture.tree;
    struct bel_key key = {{0, 0, 0}};
    struct bel_view value;
    for (uint64_t i = 0; i < rows; i++) {
        struct bel_key want = key_of(i);
        struct bel_view data = value_of(seed, i);
        CHECK(tree->seek(tree, &key, &value) == 0);
        CHECK(bel__key_compare(&key, &want) == 0);
        CHECK(value.bytes == data.bytes);
        CHECK(value.bytes == 0 || memcmp(value.data, data.data, data.bytes) == 0);
        CHECK(tree->get(tree, &want, &value) == 0);
        for (int word = 2; word >= 0 && ++key.words[word] == 0; word--) {}
    }
    CHECK(tree->seek(tree, &key, &value) == BEL_ENOTFOUND);
}

/* Puts and removes rows with LMDB, which splits and merges the pages that were built. */
static void change_rows(uint64_t seed, uint64_t *random_state, uint64_t rows)
{
    struct bel_tree *tree = fixture.tree;
    struct bel_tree_stats stats;
    struct bel_why why = {0};
    CHECK(tree->begin(tree) == 0);
    for (uint64_t i = 0; i < CHANGES; i++) {
        uint64_t row = random_below(random_state, rows + 10);
        struct bel_key key = key_of(row);
        key.words[2] ^= random_below(random_state, 2); /* another row, next to it */
        bool is_put = random_below(random_state, 2) == 0;
        CHECK((is_put ? tree->put(tree, &key, value_of(seed, row + i))
                      : tree->remove(tree, &key)) == 0);
    }
    CHECK(tree->commit(tree, seed + 1) == 0);
    CHECK(tree->refresh(tree) == 0);
    CHECK(bel__tree_check(tree, &stats) == 0);
    CHECK(bel__tree_pages_check(fixture.path, &why) == 0);
}

static void run_case(uint64_t seed)
{
    uint64_t random_state = seed;
    static const uint64_t ranges[] = {4, 200, 5000, ROWS_MAX};
    uint64_t rows = random_below(&random_state, ranges[random_below(&random_state, 4)]);
    struct bel_tree_stats built, read;
    struct bel_why why = {0};
    fixture = (struct fixture){.kind = TREE_LMDB};
    (void)snprintf(fixture.folder, sizeof fixture.folder, "/tmp/belfry-tree-XXXXXX");
    CHECK(mkdtemp(fixture.folder) != NULL);
    (void)snprintf(fixture.path, sizeof fixture.path, "%s/tree", fixture.folder);
    CHECK(bel__io_system_open(fixture.path, &disk) == 0);
    write_real = disk->write;
    disk->write = write_some;

    writes_left = UINT64_MAX / 2;
    CHECK(build(seed, rows, &built) == 0);
    uint64_t writes = UINT64_MAX / 2 - writes_left;
    writes_left = random_below(&random_state, writes);
    CHECK(build(seed, rows, &built) == BEL_EFULL);
    writes_left = writes;
    CHECK(build(seed, rows, &built) == 0);
    disk->destroy(disk);

    int err = bel__tree_pages_check(fixture.path, &why);
    CHECK_NOTE("seed %" PRIu64 ", %" PRIu64 " rows: %.150s", seed, rows, why.text);
    CHECK(err == 0);
    fixture_open(&fixture, BEL_TREE_OPEN);
    CHECK_EQ(fixture.tree->epoch(fixture.tree), seed);
    CHECK(bel__tree_check(fixture.tree, &read) == 0);
    CHECK_EQ(read.rows, rows);
    CHECK_EQ(read.sum, built.sum);
    CHECK_EQ(read.bytes, built.bytes);
    check_rows(seed, rows);
    change_rows(seed, &random_state, rows);
    fixture_reopen(&fixture);
    CHECK(bel__tree_check(fixture.tree, &read) == 0);
    fixture_finish(&fixture);
}

int main(int argc, char **argv)
{
    return run_cases(argc, argv, CASES, run_case, "trees built without LMDB");
}
