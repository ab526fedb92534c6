/* SPDX-License-Identifier: MIT */

/*
 * A tree of three levels with one flipped bit, and lookups in it. Before each lookup the path check
 * looks at the pages. Either it reports damage, or the lookup gives the row that the tree has: the
 * first one whose key is at least the one asked for. The lookup is done as LMDB does it, but on a
 * copy of the file in memory.
 *
 *     prop_path_check 4711        runs only that seed
 */
#include "store/tree/path_check.h"

#include "../random.h"
#include "../trees.h"

#include <inttypes.h>

enum {
    SEEDS = 3000,
    ROWS = 9000,
    STEP = 4, /* between two keys; the keys between them do not exist */
    LOOKUPS = 60,
    LOOKUPS_NEAR = 30, /* around the flipped bit */
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

/* --- lookups --- */

/* Finds the leaf of a key, as LMDB does. The pages have been checked. */
static uint64_t find_leaf(struct bel_view key)
{
    uint64_t page;
    memcpy(&page, record + BEL_RECORD_ROOT, sizeof page);
    for (unsigned level = 0; level < 2; level++) {
        page = bel__page_child(&pages,
                               bel__page_node(&pages, page, bel__page_find(&pages, page, key)));
    }
    return page;
}

/* Looks a key up. Returns whether its leaf has it with the right checksum. */
static bool find(struct bel_view key)
{
    uint64_t leaf = find_leaf(key);
    for (unsigned i = 0; i < bel__page_count(&pages, leaf); i++) {
        struct bel_view found = bel__page_key(&pages, bel__page_node(&pages, leaf, i));
        if (found.bytes == key.bytes && memcmp(found.data, key.data, key.bytes) == 0) return true;
    }
    return false;
}

/* Looks a key up after a path check. Returns false if that has found damage. */
static bool look(struct bel_path_check *check, uint64_t number, enum bel_path_use use)
{
    unsigned char bytes[BEL_KEY_BYTES];
    struct bel_key key = key_of(number);
    bel__key_write(&key, bytes);
    int err = bel__path_check_key(check, &key, use);
    if (err) {
        CHECK(err == BEL_ECORRUPT && check->why.text[0] != 0);
        return false;
    }
    bool has = number % STEP == 0 && number / STEP < ROWS;
    CHECK_EQ(find((struct bel_view){bytes, sizeof bytes}), has);
    return true;
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

static bool run_seed(uint64_t seed)
{
    uint64_t chance = seed;
    bool is_branch = random_below(&chance, 2) == 0;
    uint64_t page = is_branch ? branches[random_below(&chance, branches_count)]
                              : leaves[random_below(&chance, leaves_count)];
    size_t at = (size_t)page * PAGE_BYTES + random_below(&chance, PAGE_BYTES);
    uint64_t near = number_near(page, at);
    uint8_t bit = (uint8_t)(1U << random_below(&chance, 8));
    enum bel_path_use use = random_below(&chance, 2) == 0 ? BEL_PATH_READ : BEL_PATH_WRITE;
    struct bel_path_check *check;
    bool is_well = true;
    CHECK_NOTE("again with: prop_path_check %" PRIu64, seed);
    CHECK(bel__path_check_create(data, file, PAGE_BYTES, &check) == 0);
    CHECK(bel__path_check_start(check, (struct bel_view){record, sizeof record}, pages.count) == 0);
    data[at] ^= bit;
    for (unsigned i = 0; i < LOOKUPS && is_well; i++) {
        is_well = look(check, random_below(&chance, (uint64_t)ROWS * STEP + STEP), use);
    }
    for (unsigned i = 0; i < LOOKUPS_NEAR && is_well; i++) {
        uint64_t number = near + random_below(&chance, 160);
        is_well = look(check, number > 80 ? number - 80 : number, use);
    }
    data[at] ^= bit;
    bel__path_check_destroy(check);
    return !is_well;
}

int main(int argc, char **argv)
{
    struct cases cases = cases_of(argc, argv, SEEDS);
    uint64_t named = 0;
    make();
    for (uint64_t seed = cases.first; seed <= cases.last; seed++) {
        named += run_seed(seed);
    }
    printf("ok   a_lookup_is_right_or_damage_is_named (%" PRIu64 " named)\n", named);
    free(data);
    CHECK(close(file) == 0);
    return 0;
}
