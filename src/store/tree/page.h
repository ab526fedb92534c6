/* SPDX-License-Identifier: MIT */
#ifndef BEL_STORE_TREE_PAGE_H
#define BEL_STORE_TREE_PAGE_H

/*
 * page - reads and checks single pages of an LMDB file without LMDB, which validates nothing.
 *
 *     err = bel__page_check(&file, &(struct bel_page_want){.page = 7, .kind = BEL_PAGE_LEAF, ...},
 *                           &why);
 *     for (i = 0; i < bel__page_count(&file, 7); i++) node = bel__page_node(&file, 7, i) ...
 *
 * A page that was checked can be read with the other functions, which then stay inside the file:
 * number and kind are right, nodes fill the page without overlaps, keys are in order and in the
 * range that the branch above gives the page. In the table of rows, every row of a leaf has the
 * checksum that was stored with it.
 */

#include "core/why.h"
#include "store/io/row.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The parts of LMDB's file format that are used here. Numbers have the machine's byte order:
 *
 *     page                   0   u64   page number
 *                           10   u16   flags: 1 branch, 2 leaf, 4 overflow, 8 meta
 *                           12   u16   end of the list of nodes; of an overflow: u32, pages
 *                           14   u16   start of the nodes
 *                           16   u16[] offset of each node in the page, in the order of keys
 *     page 0 and 1: meta    16   u32   0xbeefc0de, and the version, 1
 *                           40         record of the table of free pages; 40: u32, page size
 *                           88         record of the table of tables
 *                          136   u64   number of the last page
 *                          144   u64   transaction, which writes the meta page of its parity
 *     record of a table      4   u16   flags: 8 if keys are u64, in the table of free pages
 *                            6   u16   levels
 *                            8   u64   branches, leaves, overflows, entries
 *                           40   u64   root page; all bits set if the table is empty
 *     node of a branch       0   u48   child page
 *     node of a leaf         0   u32   bytes of the data
 *                            4   u16   flags: 1 data is the number of an overflow page, 2 a record
 *     node                   6   u16   bytes of the key, which follows, then the data
 *     free pages           key u64: transaction; data u64[]: a count, then pages, descending
 *
 * The key of a branch's first node is not used: its child has all keys before the second. */
enum {
    BEL_PAGE_FLAGS = 10,
    BEL_PAGE_LIST_END = 12,
    BEL_PAGE_NODES = 14,
    BEL_PAGE_LIST = 16,
    BEL_PAGE_BRANCH = 1,
    BEL_PAGE_LEAF = 2,
    BEL_PAGE_OVERFLOW = 4,
    BEL_PAGE_META = 8,
    BEL_META_MAGIC = 16,
    BEL_META_VERSION = 20,
    BEL_META_FREE = 40,
    BEL_META_TABLES = 88,
    BEL_META_LAST = 136,
    BEL_META_TRANSACTION = 144,
    BEL_META_BYTES = 152,
    BEL_RECORD_FLAGS = 4,
    BEL_RECORD_LEVELS = 6,
    BEL_RECORD_NUMBERS = 8,
    BEL_RECORD_ROOT = 40,
    BEL_RECORD_BYTES = 48,
    BEL_RECORD_U64_KEYS = 8,
    BEL_NODE_FLAGS = 4,
    BEL_NODE_KEY_BYTES = 6,
    BEL_NODE_KEY = 8,
    BEL_NODE_IS_BIG = 1,
    BEL_NODE_IS_TABLE = 2,
    BEL_PAGE_LEVELS_MAX = 32,
    BEL_PAGE_FIRST = 2, /* after the two meta pages */
    BEL_PAGE_BYTES_MIN = 512,
    BEL_PAGE_BYTES_MAX = 32768,
    BEL_ROW_CHECKSUM_BYTES = 4, /* before the value of a row */
};

/* The pages of a file, mapped. */
struct bel_page_file {
    const unsigned char *map;
    size_t map_bytes, page_bytes;
    uint64_t count; /* of pages; those that no table uses may be missing at the end of the map */
};

enum bel_page_table {
    BEL_PAGES_FREE,   /* keys are numbers of transactions */
    BEL_PAGES_TABLES, /* keys are names of tables */
    BEL_PAGES_STATE,
    BEL_PAGES_ROWS,
};

/* What a page must be. */
struct bel_page_want {
    uint64_t page;
    unsigned kind; /* BEL_PAGE_BRANCH or BEL_PAGE_LEAF */
    enum bel_page_table table;
    struct bel_view low, high; /* low <= keys < high; no limit if the data is NULL */
    bool skips_rows;           /* in the table of rows: do not check the checksums of rows */
};

/* Returns the number at an offset of the map. */
static inline unsigned bel__page_u16(const struct bel_page_file *file, size_t offset)
{
    uint16_t number;
    memcpy(&number, file->map + offset, sizeof number);
    return number;
}

static inline uint32_t bel__page_u32(const struct bel_page_file *file, size_t offset)
{
    uint32_t number;
    memcpy(&number, file->map + offset, sizeof number);
    return number;
}

static inline uint64_t bel__page_u64(const struct bel_page_file *file, size_t offset)
{
    uint64_t number;
    memcpy(&number, file->map + offset, sizeof number);
    return number;
}

/* Sets `*why` and returns BEL_ECORRUPT. */
BEL_CHECKED int bel__page_damaged(uint64_t page, const char *what, struct bel_why *why);

/* Checks a branch or a leaf. Returns 0, or BEL_ECORRUPT and sets `*why`. */
BEL_CHECKED int bel__page_check(const struct bel_page_file *file, const struct bel_page_want *want,
                                struct bel_why *why);

/* Checks that a page that was checked before is what `want` says: a damaged branch may lead to a
 * page of another part of the tree. */
BEL_CHECKED int bel__page_check_again(const struct bel_page_file *file,
                                      const struct bel_page_want *want, struct bel_why *why);

/* Returns the number of nodes of a checked page. */
unsigned bel__page_count(const struct bel_page_file *file, uint64_t page);

/* Returns the offset in the map of a node of a checked page. */
size_t bel__page_node(const struct bel_page_file *file, uint64_t page, unsigned index);

/* Returns the key of a node. */
struct bel_view bel__page_key(const struct bel_page_file *file, size_t node);

/* Returns the child page of a node of a branch. */
uint64_t bel__page_child(const struct bel_page_file *file, size_t node);

/* Returns what the child `index` of a checked branch must be, given what the branch must be. */
struct bel_page_want bel__page_want_child(const struct bel_page_file *file,
                                          const struct bel_page_want *branch, unsigned index,
                                          unsigned kind);

/* Returns the index of the last node of a checked page whose key is at most `key`; 0 if there is
 * none. In a branch it is the node whose child has the key. */
unsigned bel__page_find(const struct bel_page_file *file, uint64_t page, struct bel_view key);

/* Data of a node of a leaf. */
struct bel_page_data {
    struct bel_view view;
    uint64_t overflow, overflow_count; /* the overflow pages that hold it; 0: none */
};

/* Finds the data of a node of a leaf, and checks its overflow pages. */
BEL_CHECKED int bel__page_data(const struct bel_page_file *file, size_t node,
                               struct bel_page_data *out, struct bel_why *why);

/* Sets `*out` to the value in the data of a row. Returns whether the row has the checksum that was
 * stored with it. */
bool bel__page_row(struct bel_key key, struct bel_view data, struct bel_view *out);

/* Adds the sum of a row, as in struct bel_tree_stats, to `*sum`; see row.h. */
void bel__page_add_sum(struct bel_view key, struct bel_view data, uint64_t *sum);

#endif
