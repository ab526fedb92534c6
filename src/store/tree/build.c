/* SPDX-License-Identifier: MIT */

/*
 * Builds a B+ tree from the left to the right. Each level has one page in memory, the last one:
 *
 *     level 2                [a....]                   the root, in the end
 *     level 1    (written)   [g..m..]                  first key and number of each child
 *     level 0    (written) (written) (written) [p..t]  rows
 *
 * A full page gets the next number and is written, and the level above gets an entry for it. So the
 * pages are written in the order of their numbers. The two meta pages, which come first, are
 * written last.
 *
 * LMDB wants two entries or more in each branch. When a full branch is written, its last entry
 * therefore becomes the first of the next branch, which another entry follows at once.
 *
 * pages.c describes the format, and prop_tree_build.c has LMDB read and change the files.
 */
#include "store/tree/build.h"

#include "store/io/row.h"
#include "store/tree/state.h"

#include <assert.h>
#include <endian.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum {
    PAGE_BYTES = 4096,
    PAGE_HEADER_BYTES = 16,
    FIRST_PAGE = 2, /* after the two meta pages */
    LEVELS_MAX = 12,
    BUFFER_BYTES = 64 * PAGE_BYTES, /* written at once */
    CHECKSUM_BYTES = 4,
    NODE_HEADER_BYTES = 8,
    NODE_BYTES_MAX = 2038, /* a larger node has its data in an overflow page */
    RECORD_BYTES = 48,
    MAP_SHIFT = 30, /* the map size in the meta pages; LMDB replaces it at its first commit */
};

enum {
    IS_BRANCH = 1,
    IS_LEAF = 2,
    IS_OVERFLOW = 4,
    IS_META = 8,
    NODE_IS_BIG = 1,
    NODE_IS_TABLE = 2,
    TABLE_HAS_NUMBERS = 8, /* keys are numbers: the table of free pages */
};

#define NO_PAGE UINT64_MAX
#define MAGIC   UINT32_C(0xbeefc0de)

static_assert(BEL_STORE_VALUE_BYTES_MAX + CHECKSUM_BYTES <= PAGE_BYTES - PAGE_HEADER_BYTES,
              "large data needs one overflow page");

struct header {
    uint64_t number;
    uint16_t pad, flags;
    uint16_t list_end, nodes; /* of an overflow page: u32, the number of pages */
};

struct node {
    uint16_t words[2]; /* of a leaf: bytes of the data; of a branch: the child, with `flags` */
    uint16_t flags;
    uint16_t key_bytes;
};

/* The record of a table. */
struct record {
    uint32_t page_bytes; /* in the table of free pages; otherwise 0 */
    uint16_t flags, levels;
    uint64_t branches, leaves, overflows, entries, root;
};

struct meta {
    uint32_t magic, version;
    uint64_t address, map_bytes;
    struct record free_pages, tables;
    uint64_t last_page, transaction;
};

static_assert(sizeof(struct header) == PAGE_HEADER_BYTES, "the format in pages.c");
static_assert(sizeof(struct node) == NODE_HEADER_BYTES, "the format in pages.c");
static_assert(sizeof(struct record) == RECORD_BYTES, "the format in pages.c");
static_assert(offsetof(struct meta, tables) == 88 - PAGE_HEADER_BYTES, "the format in pages.c");
static_assert(sizeof(struct meta) == 152 - PAGE_HEADER_BYTES, "the format in pages.c");

/* A page in memory. */
struct page {
    unsigned char bytes[PAGE_BYTES];
    unsigned count; /* of nodes */
    size_t start;   /* of the nodes, which grow down from the end */
    struct bel_key first, last;
    uint64_t last_child; /* of a branch */
};

struct bel_tree_build {
    struct bel_io *io;
    struct bel_io_file *file;
    uint64_t next;   /* the next page number */
    uint64_t offset; /* of the buffer in the file */
    size_t buffered; /* bytes */
    unsigned char *buffer;
    struct record rows;
    uint64_t sum;
    unsigned levels; /* in use */
    struct page pages[LEVELS_MAX];
};

/* --- pages --- */

static void reset(struct page *page)
{
    page->count = 0;
    page->start = PAGE_BYTES;
}

static size_t even(size_t bytes)
{
    return (bytes + 1) & ~(size_t)1;
}

static bool has_room(const struct page *page, size_t node_bytes)
{
    size_t list_end = PAGE_HEADER_BYTES + (page->count + 1) * sizeof(uint16_t);
    return list_end + even(node_bytes) <= page->start;
}

/* Adds a node with a key and room for `bytes` bytes of data, and returns the data. */
static unsigned char *add_node(struct page *page, const struct node *node, const void *key,
                               size_t bytes)
{
    size_t node_bytes = NODE_HEADER_BYTES + (size_t)node->key_bytes + bytes;
    assert(has_room(page, node_bytes));
    page->start -= even(node_bytes);
    unsigned char *at = page->bytes + page->start;
    uint16_t offset = (uint16_t)page->start;
    memcpy(page->bytes + PAGE_HEADER_BYTES + page->count * sizeof offset, &offset, sizeof offset);
    memset(at, 0, even(node_bytes));
    memcpy(at, node, sizeof *node);
    if (node->key_bytes > 0) memcpy(at + NODE_HEADER_BYTES, key, node->key_bytes);
    page->count++;
    return at + NODE_HEADER_BYTES + node->key_bytes;
}

static int flush(struct bel_tree_build *build)
{
    struct bel_io *io = build->io;
    if (build->buffered == 0) return 0;
    int err = io->write(io, build->file, build->offset, build->buffer, build->buffered);
    build->offset += build->buffered;
    build->buffered = 0;
    return err;
}

/* Gives a page the next number and writes it. */
static int write_page(struct bel_tree_build *build, unsigned char *page, struct header header)
{
    header.number = build->next++;
    memcpy(page, &header, sizeof header);
    memcpy(build->buffer + build->buffered, page, PAGE_BYTES);
    build->buffered += PAGE_BYTES;
    return build->buffered < BUFFER_BYTES ? 0 : flush(build);
}

/* Writes a page of nodes. The bytes between list and nodes become zeros. */
static int write_nodes(struct bel_tree_build *build, struct page *page, uint16_t flags)
{
    size_t list_end = PAGE_HEADER_BYTES + page->count * sizeof(uint16_t);
    struct header header = {
        .flags = flags, .list_end = (uint16_t)list_end, .nodes = (uint16_t)page->start};
    assert(page->count > 0 && list_end <= page->start);
    memset(page->bytes + list_end, 0, page->start - list_end);
    return write_page(build, page->bytes, header);
}

/* --- levels --- */

/* Adds an entry to a branch. The first entry of a branch has no key. */
static void add_entry(struct page *page, const struct bel_key *key, uint64_t child)
{
    unsigned char bytes[BEL_KEY_BYTES];
    struct node node = {.words = {(uint16_t)child, (uint16_t)(child >> 16)},
                        .flags = (uint16_t)(child >> 32),
                        .key_bytes = page->count == 0 ? 0 : sizeof bytes};
    bel__key_write(key, bytes);
    (void)add_node(page, &node, bytes, 0);
    if (page->count == 1) page->first = *key;
    page->last = *key;
    page->last_child = child;
}

/* Removes the last entry of a branch. */
static void drop_entry(struct page *page)
{
    assert(page->count > 2);
    page->count--;
    page->start += NODE_HEADER_BYTES + BEL_KEY_BYTES;
}

/* Writes a page of the tree. Its number is build->next before the call. */
static int write_level(struct bel_tree_build *build, unsigned level)
{
    *(level == 0 ? &build->rows.leaves : &build->rows.branches) += 1;
    return write_nodes(build, &build->pages[level], level == 0 ? IS_LEAF : IS_BRANCH);
}

/* Adds an entry for a written page to the level above it, and to those above as they fill up. */
static int add_above(struct bel_tree_build *build, unsigned level, struct bel_key key,
                     uint64_t child)
{
    for (;;) {
        level++;
        assert(level < LEVELS_MAX);
        struct page *page = &build->pages[level];
        if (level == build->levels) {
            build->levels++;
            reset(page);
        }
        if (has_room(page, NODE_HEADER_BYTES + BEL_KEY_BYTES)) {
            add_entry(page, &key, child);
            return 0;
        }
        struct bel_key first = page->first, last = page->last;
        uint64_t last_child = page->last_child, number = build->next;
        drop_entry(page);
        int err = write_level(build, level);
        if (err) return err;
        reset(page);
        add_entry(page, &last, last_child);
        add_entry(page, &key, child);
        key = first;
        child = number;
    }
}

/* Writes what is left of each level. Sets the root of the table. */
static int finish_levels(struct bel_tree_build *build)
{
    struct record *rows = &build->rows;
    rows->root = NO_PAGE;
    if (rows->entries == 0) return 0;
    for (unsigned level = 0; level < build->levels; level++) {
        uint64_t number = build->next;
        int err = write_level(build, level);
        if (err) return err;
        rows->levels = (uint16_t)(level + 1);
        rows->root = number;
        if (level + 1 == build->levels) break;
        err = add_above(build, level, build->pages[level].first, number);
        if (err) return err;
    }
    return 0;
}

/* --- rows --- */

static void write_row(unsigned char *out, uint32_t checksum, struct bel_view value)
{
    uint32_t stored = htole32(checksum);
    memcpy(out, &stored, sizeof stored);
    if (value.bytes > 0) memcpy(out + sizeof stored, value.data, value.bytes);
}

/* Writes the data of a row to an overflow page. */
static int write_overflow(struct bel_tree_build *build, uint32_t checksum, struct bel_view value)
{
    unsigned char page[PAGE_BYTES] = {0};
    struct header header = {.flags = IS_OVERFLOW};
    uint32_t pages = 1;
    memcpy(&header.list_end, &pages, sizeof pages);
    write_row(page + PAGE_HEADER_BYTES, checksum, value);
    build->rows.overflows++;
    return write_page(build, page, header);
}

/* Makes sure that the leaf has room for a node. */
static int make_room(struct bel_tree_build *build, size_t node_bytes)
{
    struct page *leaf = &build->pages[0];
    if (has_room(leaf, node_bytes)) return 0;
    uint64_t number = build->next;
    int err = write_level(build, 0);
    if (!err) err = add_above(build, 0, leaf->first, number);
    reset(leaf);
    return err;
}

int bel__tree_build_put(struct bel_tree_build *build, const struct bel_key *key,
                        struct bel_view value)
{
    struct page *leaf = &build->pages[0];
    unsigned char bytes[BEL_KEY_BYTES];
    size_t data_bytes = CHECKSUM_BYTES + value.bytes, here = data_bytes;
    uint32_t checksum = bel__row_checksum(key, value);
    uint64_t overflow = build->next;
    assert(value.bytes <= BEL_STORE_VALUE_BYTES_MAX);
    assert(build->rows.entries == 0 || bel__key_compare(&leaf->last, key) < 0);

    bool is_big = NODE_HEADER_BYTES + sizeof bytes + data_bytes > NODE_BYTES_MAX;
    if (is_big) {
        here = sizeof overflow;
        int err = write_overflow(build, checksum, value);
        if (err) return err;
    }
    int err = make_room(build, NODE_HEADER_BYTES + sizeof bytes + here);
    if (err) return err;
    struct node node = {.words = {(uint16_t)data_bytes, (uint16_t)(data_bytes >> 16)},
                        .flags = is_big ? NODE_IS_BIG : 0,
                        .key_bytes = sizeof bytes};
    bel__key_write(key, bytes);
    unsigned char *data = add_node(leaf, &node, bytes, here);
    if (is_big) {
        memcpy(data, &overflow, sizeof overflow);
    } else {
        write_row(data, checksum, value);
    }
    if (leaf->count == 1) leaf->first = *key;
    leaf->last = *key;
    build->rows.entries++;
    build->sum += bel__row_sum(key, checksum, value.bytes);
    return 0;
}

/* --- the other tables, and the meta pages --- */

/* Adds a node of the table of tables or of the table of states. */
static void add_named(struct page *page, const char *name, uint16_t flags, const void *data,
                      size_t bytes)
{
    struct node node = {.words = {(uint16_t)bytes, (uint16_t)(bytes >> 16)},
                        .flags = flags,
                        .key_bytes = (uint16_t)strlen(name)};
    memcpy(add_node(page, &node, name, bytes), data, bytes);
}

/* Writes the tables "state" and "tables", a page each. Returns the record of the latter. */
static int write_tables(struct bel_tree_build *build, uint64_t epoch, struct record *out)
{
    struct page *page = &build->pages[0];
    unsigned char state[BEL_TREE_STATE_BYTES];
    bel__tree_state_write(
        &(struct bel_tree_state){.epoch = epoch, .rows = build->rows.entries, .sum = build->sum},
        state);
    struct record states = {.levels = 1, .leaves = 1, .entries = 1, .root = build->next};
    reset(page);
    add_named(page, "state", 0, state, sizeof state);
    int err = write_nodes(build, page, IS_LEAF);
    if (err) return err;

    *out = (struct record){.levels = 1, .leaves = 1, .entries = 2, .root = build->next};
    reset(page);
    add_named(page, "rows", NODE_IS_TABLE, &build->rows, sizeof build->rows);
    add_named(page, "state", NODE_IS_TABLE, &states, sizeof states);
    return write_nodes(build, page, IS_LEAF);
}

/* Writes both meta pages. The second one, with the higher transaction, is valid; the first one is
 * of an empty file, as in a file that LMDB has just created. */
static int write_metas(struct bel_tree_build *build, const struct record *tables)
{
    unsigned char pages[FIRST_PAGE * PAGE_BYTES] = {0};
    for (uint64_t i = 0; i < FIRST_PAGE; i++) {
        struct header header = {.number = i, .flags = IS_META};
        struct meta meta = {
            .magic = MAGIC,
            .version = 1,
            .map_bytes = UINT64_C(1) << MAP_SHIFT,
            .free_pages = {.page_bytes = PAGE_BYTES, .flags = TABLE_HAS_NUMBERS, .root = NO_PAGE},
            .tables = {.root = NO_PAGE},
            .last_page = FIRST_PAGE - 1,
            .transaction = i};
        if (i == 1) {
            meta.tables = *tables;
            meta.last_page = build->next - 1;
        }
        memcpy(pages + i * PAGE_BYTES, &header, sizeof header);
        memcpy(pages + i * PAGE_BYTES + sizeof header, &meta, sizeof meta);
    }
    return build->io->write(build->io, build->file, 0, pages, sizeof pages);
}

int bel__tree_build_end(struct bel_tree_build *build, uint64_t epoch, struct bel_tree_stats *out)
{
    struct bel_io *io = build->io;
    struct record tables;
    int err = finish_levels(build);
    if (!err) err = write_tables(build, epoch, &tables);
    if (!err) err = flush(build);
    if (!err) err = write_metas(build, &tables);
    if (!err) err = io->sync(io, build->file);
    if (!err) err = io->sync_directory(io);
    if (err) return err;
    *out = (struct bel_tree_stats){
        .rows = build->rows.entries, .sum = build->sum, .bytes = build->next * PAGE_BYTES};
    return 0;
}

int bel__tree_build_open(struct bel_io *io, struct bel_tree_build **out)
{
    struct bel_tree_build *build = calloc(1, sizeof *build);
    unsigned char *buffer = malloc(BUFFER_BYTES);
    int err = build == NULL || buffer == NULL ? BEL_ENOMEM : 0;
    struct bel_io_file *file = NULL;
    if (!err) err = io->open(io, BEL_TREE_FILE, BEL_IO_CREATE, &file);
    if (err) {
        free(buffer);
        free(build);
        return err;
    }
    build->io = io;
    build->file = file;
    build->buffer = buffer;
    build->next = FIRST_PAGE;
    build->offset = (uint64_t)FIRST_PAGE * PAGE_BYTES;
    build->levels = 1;
    reset(&build->pages[0]);
    *out = build;
    return 0;
}

void bel__tree_build_close(struct bel_tree_build *build)
{
    if (build == NULL) return;
    build->io->close(build->io, build->file);
    free(build->buffer);
    free(build);
}
