/* SPDX-License-Identifier: MIT */

/*
 * The parts of LMDB's file format that are used here. Numbers have the machine's byte order:
 *
 *     page                   0   u64   page number
 *                           10   u16   flags: 1 branch, 2 leaf, 4 overflow, 8 meta
 *                           12   u16   end of the list of nodes; of an overflow: u32, pages
 *                           14   u16   start of the nodes
 *                           16   u16[] offset of each node in the page
 *     page 0 and 1: meta    16   u32   0xbeefc0de, and the version, 1
 *                           40         record of the table of free pages; 40: u32, page size
 *                           88         record of the table of tables
 *                          136   u64   number of the last page
 *                          144   u64   transaction: the meta page with the higher one is valid
 *     record of a table      6   u16   levels
 *                            8   u64   branches, leaves, overflows, entries
 *                           40   u64   root page; all bits set if the table is empty
 *     node of a branch       0   u48   child page
 *     node of a leaf         0   u32   bytes of the data
 *                            4   u16   flags: 1 data is the number of an overflow page, 2 a record
 *                            6   u16   bytes of the key, which follows, then the data
 *     free pages           key u64: transaction; data u64[]: a count, then pages, descending
 *
 * Every offset is checked before it is followed. A page that is visited twice is damage, so the
 * check cannot loop. The nodes of a page must be contiguous: LMDB moves them by their sizes.
 */
#include "store/tree/pages.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    PAGE_FLAGS = 10,
    PAGE_LIST_END = 12,
    PAGE_NODES = 14,
    PAGE_LIST = 16,
    IS_BRANCH = 1,
    IS_LEAF = 2,
    IS_OVERFLOW = 4,
    IS_META = 8,
    META_MAGIC = 16,
    META_VERSION = 20,
    META_FREE = 40,
    META_TABLES = 88,
    META_LAST = 136,
    META_TRANSACTION = 144,
    RECORD_LEVELS = 6,
    RECORD_NUMBERS = 8,
    RECORD_ROOT = 40,
    RECORD_BYTES = 48,
    NODE_FLAGS = 4,
    NODE_KEY_BYTES = 6,
    NODE_KEY = 8,
    NODE_IS_BIG = 1,
    NODE_IS_TABLE = 2,
    LEVELS_MAX = 32,
    TABLES_MAX = 8,
    FIRST_PAGE = 2, /* after the two meta pages */
    PAGE_BYTES_MIN = 512,
    PAGE_BYTES_MAX = 32768,
};

static const uint32_t magic = 0xbeefc0de;

enum table {
    TABLE_FREE,
    TABLE_TABLES,
    TABLE_OTHER,
};

struct pages {
    const unsigned char *map;
    size_t map_bytes, page_bytes;
    uint64_t count;
    uint8_t *met;              /* 1 for each page visited */
    uint64_t left;             /* number of pages not visited */
    uint64_t transaction;      /* the last transaction */
    size_t tables[TABLES_MAX]; /* offsets of their records in the map */
    unsigned tables_count;
    struct bel_why *why;
};

/* The state of the check of one table. */
struct walk {
    struct pages *pages;
    enum table table;
    unsigned levels;
    uint64_t branches, leaves, overflows, entries;
    size_t stack[LEVELS_MAX]; /* offsets of pages */
    unsigned places[LEVELS_MAX], depth;
    uint64_t transaction; /* in the table of free pages: the last transaction seen */
};

static unsigned u16_at(const struct pages *pages, size_t offset)
{
    uint16_t number;
    memcpy(&number, pages->map + offset, sizeof number);
    return number;
}

static uint32_t u32_at(const struct pages *pages, size_t offset)
{
    uint32_t number;
    memcpy(&number, pages->map + offset, sizeof number);
    return number;
}

static uint64_t u64_at(const struct pages *pages, size_t offset)
{
    uint64_t number;
    memcpy(&number, pages->map + offset, sizeof number);
    return number;
}

static int damaged(const struct pages *pages, uint64_t page, const char *what)
{
    return bel__why_say(pages->why, BEL_ECORRUPT, "tree/data.mdb is damaged: page %llu %s",
                        (unsigned long long)page, what);
}

static uint64_t number_of(const struct pages *pages, size_t offset)
{
    return offset / pages->page_bytes;
}

/* Marks a page as visited. It must exist and not be visited yet. */
static int meet(struct pages *pages, uint64_t page)
{
    if (page < FIRST_PAGE || page >= pages->count) return damaged(pages, page, "does not exist");
    if (pages->met[page]) return damaged(pages, page, "is used twice");
    pages->met[page] = 1;
    pages->left--;
    return 0;
}

/* Visits a page with a header, checks its number and kind, and sets `*out` to its offset. */
static int enter(struct pages *pages, uint64_t page, unsigned kind, size_t *out)
{
    int err = meet(pages, page);
    if (err) return err;
    size_t offset = (size_t)page * pages->page_bytes;
    if (u64_at(pages, offset) != page) return damaged(pages, page, "has a wrong number");
    if (u16_at(pages, offset + PAGE_FLAGS) != kind) return damaged(pages, page, "has a wrong kind");
    *out = offset;
    return 0;
}

/* --- nodes --- */

/* Checks that the list of nodes of a page is inside the page. Sets the number of nodes. */
static int check_list(const struct pages *pages, size_t page, unsigned *out_count)
{
    unsigned end = u16_at(pages, page + PAGE_LIST_END), nodes = u16_at(pages, page + PAGE_NODES);
    if (end <= PAGE_LIST || end % 2 != 0 || end > nodes || nodes > pages->page_bytes) {
        return damaged(pages, number_of(pages, page), "has an invalid list of nodes");
    }
    *out_count = (end - PAGE_LIST) / 2;
    return 0;
}

/* Sets `*out` to the offset of a node, whose header and key must be inside the page. */
static int node_at(const struct pages *pages, size_t page, unsigned index, size_t *out)
{
    unsigned offset = u16_at(pages, page + PAGE_LIST + 2 * (size_t)index);
    bool is_inside = offset >= u16_at(pages, page + PAGE_NODES) && offset % 2 == 0 &&
                     offset + NODE_KEY <= pages->page_bytes;
    if (is_inside) {
        size_t key_bytes = u16_at(pages, page + offset + NODE_KEY_BYTES);
        is_inside = offset + NODE_KEY + key_bytes <= pages->page_bytes;
    }
    if (!is_inside) return damaged(pages, number_of(pages, page), "has a node outside the page");
    *out = page + offset;
    return 0;
}

/* Returns the size of a node in its page: header, key, and data unless it is in overflow pages. */
static size_t node_bytes(const struct pages *pages, size_t node, bool is_leaf)
{
    size_t bytes = (size_t)NODE_KEY + u16_at(pages, node + NODE_KEY_BYTES);
    bool is_big = is_leaf && (u16_at(pages, node + NODE_FLAGS) & NODE_IS_BIG) != 0;
    if (is_leaf) bytes += is_big ? sizeof(uint64_t) : u32_at(pages, node);
    return (bytes + 1) & ~(size_t)1;
}

/* Checks that the nodes fill the page up to its end, without overlaps and gaps. */
static int check_nodes(const struct pages *pages, size_t page, unsigned count, bool is_leaf)
{
    uint8_t taken[PAGE_BYTES_MAX / 2] = {0};
    size_t left = pages->page_bytes - u16_at(pages, page + PAGE_NODES), node = 0;
    for (unsigned i = 0; i < count; i++) {
        int err = node_at(pages, page, i, &node);
        if (err) return err;
        size_t bytes = node_bytes(pages, node, is_leaf), offset = node - page;
        bool fits = bytes <= left && offset + bytes <= pages->page_bytes;
        fits = fits && memchr(taken + offset / 2, 1, bytes / 2) == NULL;
        if (!fits) return damaged(pages, number_of(pages, page), "has nodes that overlap");
        memset(taken + offset / 2, 1, bytes / 2);
        left -= bytes;
    }
    return left == 0 ? 0 : damaged(pages, number_of(pages, page), "has a gap between nodes");
}

static uint64_t child_of(const struct pages *pages, size_t node)
{
    return u32_at(pages, node) | (uint64_t)u16_at(pages, node + NODE_FLAGS) << 32;
}

/* Visits the overflow pages of large data. Sets `*out` to the offset of the data. */
static int check_big(struct walk *walk, uint64_t first, size_t bytes, size_t *out)
{
    struct pages *pages = walk->pages;
    uint64_t count = (PAGE_LIST + (uint64_t)bytes + pages->page_bytes - 1) / pages->page_bytes;
    size_t offset = 0;
    int err = enter(pages, first, IS_OVERFLOW, &offset);
    if (err) return err;
    if (u32_at(pages, offset + PAGE_LIST_END) != count) {
        return damaged(pages, first, "has a wrong number of overflow pages");
    }
    for (uint64_t i = 1; i < count; i++) {
        err = meet(pages, first + i);
        if (err) return err;
    }
    walk->overflows += count;
    *out = offset + PAGE_LIST;
    return 0;
}

/* Checks a key of the table of free pages: the transaction that freed them, in ascending order. */
static int check_transaction(struct walk *walk, size_t node, uint64_t page)
{
    const struct pages *pages = walk->pages;
    uint64_t before = walk->transaction;
    bool is_key = u16_at(pages, node + NODE_KEY_BYTES) == sizeof before;
    if (is_key) walk->transaction = u64_at(pages, node + NODE_KEY);
    if (is_key && walk->transaction > before && walk->transaction <= pages->transaction) return 0;
    return damaged(pages, page, "has free pages of an invalid transaction");
}

/* Visits the pages of a list of free pages. */
static int check_free(const struct walk *walk, size_t data, size_t bytes, uint64_t page)
{
    struct pages *pages = walk->pages;
    uint64_t count = bytes >= sizeof count ? u64_at(pages, data) : UINT64_MAX;
    uint64_t before = UINT64_MAX;
    if (bytes % sizeof count != 0 || count > bytes / sizeof count - 1) {
        return damaged(pages, page, "has an invalid list of free pages");
    }
    for (uint64_t i = 1; i <= count; i++) {
        uint64_t free_page = u64_at(pages, data + (size_t)i * sizeof count);
        if (free_page >= before) return damaged(pages, page, "has free pages out of order");
        before = free_page;
        int err = meet(pages, free_page);
        if (err) return err;
    }
    return 0;
}

static int check_leaf_node(struct walk *walk, size_t page, size_t node)
{
    struct pages *pages = walk->pages;
    unsigned flags = u16_at(pages, node + NODE_FLAGS);
    size_t bytes = u32_at(pages, node), number = number_of(pages, page);
    size_t data = node + NODE_KEY + u16_at(pages, node + NODE_KEY_BYTES);
    bool is_big = (flags & NODE_IS_BIG) != 0, is_table = (flags & NODE_IS_TABLE) != 0;
    size_t here = is_big ? sizeof(uint64_t) : bytes;
    walk->entries++;
    if (flags > NODE_IS_TABLE || is_table != (walk->table == TABLE_TABLES)) {
        return damaged(pages, number, "has a node of an unknown kind");
    }
    if (data + here > page + pages->page_bytes) {
        return damaged(pages, number, "has a node outside the page");
    }
    if (is_big) {
        int err = check_big(walk, u64_at(pages, data), bytes, &data);
        if (err) return err;
    }
    if (walk->table == TABLE_FREE) {
        int err = check_transaction(walk, node, number);
        return err ? err : check_free(walk, data, bytes, number);
    }
    if (!is_table) return 0;
    if (bytes != RECORD_BYTES || pages->tables_count == TABLES_MAX) {
        return damaged(pages, number, "has an invalid table");
    }
    pages->tables[pages->tables_count++] = data;
    return 0;
}

/* --- tables --- */

static int push(struct walk *walk, uint64_t page)
{
    bool is_leaf = walk->depth + 1 == walk->levels;
    int err = enter(walk->pages, page, is_leaf ? IS_LEAF : IS_BRANCH, &walk->stack[walk->depth]);
    if (err) return err;
    *(is_leaf ? &walk->leaves : &walk->branches) += 1;
    walk->places[walk->depth++] = 0;
    return 0;
}

/* Handles the next node of the page on top of the stack, or pops the page. */
static int step(struct walk *walk)
{
    unsigned top = walk->depth - 1, count = 0;
    size_t page = walk->stack[top], node = 0;
    bool is_leaf = walk->depth == walk->levels;
    int err = check_list(walk->pages, page, &count);
    if (err == 0 && walk->places[top] == 0) err = check_nodes(walk->pages, page, count, is_leaf);
    if (err) return err;
    if (walk->places[top] == count) {
        walk->depth--;
        return 0;
    }
    err = node_at(walk->pages, page, walk->places[top]++, &node);
    if (err) return err;
    if (is_leaf) return check_leaf_node(walk, page, node);
    return push(walk, child_of(walk->pages, node));
}

static int check_table(struct pages *pages, size_t record, enum table table)
{
    struct walk walk = {
        .pages = pages, .table = table, .levels = u16_at(pages, record + RECORD_LEVELS)};
    uint64_t root = u64_at(pages, record + RECORD_ROOT), page = number_of(pages, record);
    bool is_empty = root == UINT64_MAX;
    if (walk.levels > LEVELS_MAX || is_empty != (walk.levels == 0)) {
        return damaged(pages, page, "has a table with an invalid depth");
    }
    int err = is_empty ? 0 : push(&walk, root);
    while (err == 0 && walk.depth > 0) {
        err = step(&walk);
    }
    if (err) return err;
    const uint64_t found[] = {walk.branches, walk.leaves, walk.overflows, walk.entries};
    for (size_t i = 0; i < sizeof found / sizeof found[0]; i++) {
        if (u64_at(pages, record + RECORD_NUMBERS + i * sizeof found[0]) != found[i]) {
            return damaged(pages, page, "has a table with wrong counts");
        }
    }
    return 0;
}

/* --- the file --- */

static int check_meta(struct pages *pages, uint64_t page)
{
    size_t offset = (size_t)page * pages->page_bytes;
    if (u16_at(pages, offset + PAGE_FLAGS) != IS_META ||
        u32_at(pages, offset + META_MAGIC) != magic) {
        return damaged(pages, page, "is not a meta page");
    }
    if (u32_at(pages, offset + META_VERSION) == 1) return 0;
    return bel__why_say(pages->why, BEL_EUNSUPPORTED, "tree/data.mdb has an unknown version");
}

/* Finds the valid meta page, 0 or 1. */
static int find_meta(struct pages *pages, size_t *out)
{
    uint64_t page_bytes = u32_at(pages, META_FREE);
    bool is_power = page_bytes != 0 && (page_bytes & (page_bytes - 1)) == 0;
    if (!is_power || page_bytes < PAGE_BYTES_MIN || page_bytes > PAGE_BYTES_MAX ||
        pages->map_bytes < 2 * page_bytes) {
        return damaged(pages, 0, "has an invalid page size");
    }
    pages->page_bytes = (size_t)page_bytes;
    int err = check_meta(pages, 0);
    if (!err) err = check_meta(pages, 1);
    if (err) return err;
    uint64_t first = u64_at(pages, META_TRANSACTION);
    uint64_t second = u64_at(pages, pages->page_bytes + META_TRANSACTION);
    *out = second > first ? pages->page_bytes : 0;
    pages->transaction = second > first ? second : first;
    return 0;
}

static int check_tables(struct pages *pages, size_t meta)
{
    int err = check_table(pages, meta + META_FREE, TABLE_FREE);
    if (!err) err = check_table(pages, meta + META_TABLES, TABLE_TABLES);
    for (unsigned i = 0; i < pages->tables_count && !err; i++) {
        err = check_table(pages, pages->tables[i], TABLE_OTHER);
    }
    if (err || pages->left == 0) return err;
    uint64_t page = FIRST_PAGE;
    while (pages->met[page]) {
        page++;
    }
    return damaged(pages, page, "is neither used nor free");
}

static int check_map(struct pages *pages)
{
    size_t meta = 0;
    if (pages->map_bytes < 2 * (size_t)PAGE_BYTES_MIN) return damaged(pages, 0, "does not exist");
    int err = find_meta(pages, &meta);
    if (err) return err;
    assert(pages->page_bytes >= PAGE_BYTES_MIN);
    uint64_t last = u64_at(pages, meta + META_LAST);
    if (last < FIRST_PAGE - 1 || last >= pages->map_bytes / pages->page_bytes) {
        return damaged(pages, last, "is the last page and does not exist");
    }
    pages->count = last + 1;
    pages->left = pages->count - FIRST_PAGE;
    pages->met = calloc(pages->count + 1, 1);
    if (pages->met == NULL) return BEL_ENOMEM;
    err = check_tables(pages, meta);
    free(pages->met);
    return err;
}

static int check_file(int file, struct bel_why *why)
{
    struct pages pages = {.why = why};
    struct stat info;
    if (fstat(file, &info) != 0) return BEL_EIO;
    if (info.st_size == 0) return damaged(&pages, 0, "does not exist");
    pages.map_bytes = (size_t)info.st_size;
    void *map = mmap(NULL, pages.map_bytes, PROT_READ, MAP_SHARED, file, 0);
    if (map == MAP_FAILED) return errno == ENOMEM ? BEL_ENOMEM : BEL_EIO;
    pages.map = map;
    int err = check_map(&pages);
    (void)munmap(map, pages.map_bytes);
    return err;
}

int bel__tree_pages_check(const char *path, struct bel_why *why)
{
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) return errno == ENOENT ? BEL_ENOTFOUND : BEL_EIO;
    int file = openat(folder, "data.mdb", O_RDONLY | O_CLOEXEC);
    int err = file >= 0 ? check_file(file, why) : errno == ENOENT ? BEL_ENOTFOUND : BEL_EIO;
    if (file >= 0) (void)close(file);
    (void)close(folder);
    return err;
}
