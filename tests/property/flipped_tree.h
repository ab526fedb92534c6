/* SPDX-License-Identifier: MIT */
#ifndef BEL_TESTS_PROPERTY_FLIPPED_TREE_H
#define BEL_TESTS_PROPERTY_FLIPPED_TREE_H

/*
 * A tree of three levels, as a copy of its file in memory, for tests that flip bits of its pages.
 * Its rows have the numbers 0, STEP, 2 * STEP ...
 */

#include "store/tree/page.h"

#include "../random.h"
#include "../trees.h"

enum {
    ROWS = 9000,
    STEP = 4, /* between two keys; the keys between them do not exist */
    PAGE_BYTES = 4096,
    PAGES_MAX = 4096,
};

static uint8_t *data;
static size_t data_bytes;
static int file;
static struct bel_page_file pages;
static unsigned char record[BEL_RECORD_BYTES];
static uint64_t branches[PAGES_MAX], leaves[PAGES_MAX];
static size_t branches_count, leaves_count;

static struct bel_key key_of(uint64_t number)
{
    return (struct bel_key){{7, number / 1000, number % 1000 * 1000003}};
}

static void fill(struct bel_tree *tree)
{
    char value[200];
    memset(value, 'v', sizeof value);
    CHECK(tree->begin(tree) == 0);
    for (uint64_t i = 0; i < ROWS; i++) {
        struct bel_key key = key_of(i * STEP);
        struct bel_view view = {value, 20 + i % 160};
        CHECK(tree->put(tree, &key, view) == 0);
    }
    CHECK(tree->commit(tree, 1) == 0);
}

/* Collects the pages below a page of the table of rows. */
static void collect(uint64_t page)
{
    if (bel__page_u16(&pages, page * PAGE_BYTES + BEL_PAGE_FLAGS) == BEL_PAGE_LEAF) {
        leaves[leaves_count++] = page;
        return;
    }
    branches[branches_count++] = page;
    for (unsigned i = 0; i < bel__page_count(&pages, page); i++) {
        collect(bel__page_child(&pages, bel__page_node(&pages, page, i)));
    }
}

static void find_record(void)
{
    size_t meta = bel__page_u64(&pages, BEL_META_TRANSACTION) >
                          bel__page_u64(&pages, PAGE_BYTES + BEL_META_TRANSACTION)
                      ? 0
                      : PAGE_BYTES;
    uint64_t root = bel__page_u64(&pages, meta + BEL_META_TABLES + BEL_RECORD_ROOT);
    pages.count = bel__page_u64(&pages, meta + BEL_META_LAST) + 1;
    struct bel_page_data found = {0};
    size_t node = bel__page_node(&pages, root, 0);
    CHECK(memcmp(bel__page_key(&pages, node).data, "rows", 4) == 0);
    CHECK(bel__page_data(&pages, node, &found, NULL) == 0);
    memcpy(record, found.view.data, sizeof record);
    uint64_t rows_root;
    memcpy(&rows_root, record + BEL_RECORD_ROOT, sizeof rows_root);
    collect(rows_root);
    CHECK(record[BEL_RECORD_LEVELS] == 3 && branches_count >= 3 && leaves_count > 100);
}

static void make(void)
{
    struct fixture fixture;
    char path[96];
    fixture_init(&fixture, TREE_LMDB);
    fill(fixture.tree);
    (void)snprintf(path, sizeof path, "%s/data.mdb", fixture.path);
    file = open(path, O_RDONLY | O_CLOEXEC);
    struct stat info;
    CHECK(file >= 0 && fstat(file, &info) == 0);
    data_bytes = (size_t)info.st_size;
    data = malloc(data_bytes);
    CHECK(data != NULL && pread(file, data, data_bytes, 0) == (ssize_t)data_bytes);
    pages = (struct bel_page_file){.map = data, .map_bytes = data_bytes, .page_bytes = PAGE_BYTES};
    find_record();
    fixture_finish(&fixture);
}

/* Returns the number of a key that a lookup finds by the node at an offset of a page, or by its
 * first node. */
static uint64_t number_near(uint64_t page, size_t at)
{
    size_t node = bel__page_node(&pages, page, 0);
    for (unsigned i = 0; i < bel__page_count(&pages, page); i++) {
        size_t other = bel__page_node(&pages, page, i);
        if (other <= at && at < other + BEL_NODE_KEY + BEL_KEY_BYTES) node = other;
    }
    while (bel__page_u16(&pages, page * PAGE_BYTES + BEL_PAGE_FLAGS) == BEL_PAGE_BRANCH) {
        page = bel__page_child(&pages, node);
        node = bel__page_node(&pages, page, 0);
    }
    struct bel_key key = bel__key_read(bel__page_key(&pages, node).data);
    return key.words[1] * 1000 + key.words[2] / 1000003;
}

/* Chooses a byte of a branch or of a leaf, and sets `*near` to the number of a key beside it. */
static size_t choose_byte(uint64_t *chance, uint64_t *near)
{
    bool is_branch = random_below(chance, 2) == 0;
    uint64_t page = is_branch ? branches[random_below(chance, branches_count)]
                              : leaves[random_below(chance, leaves_count)];
    size_t at = (size_t)page * PAGE_BYTES + random_below(chance, PAGE_BYTES);
    *near = number_near(page, at);
    return at;
}

#endif
