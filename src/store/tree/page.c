/* SPDX-License-Identifier: MIT */

/*
 * Every offset is checked before it is followed. The nodes of a page must fill it from their start
 * to its end: LMDB moves them by their sizes.
 */
#include "store/tree/page.h"

#include <assert.h>
#include <endian.h>

int bel__page_damaged(uint64_t page, const char *what, struct bel_why *why)
{
    return bel__why_say(why, BEL_ECORRUPT, "tree/data.mdb is damaged: page %llu %s",
                        (unsigned long long)page, what);
}

static size_t offset_of(const struct bel_page_file *file, uint64_t page)
{
    return (size_t)page * file->page_bytes;
}

/* Checks number and kind of a page. */
static int check_head(const struct bel_page_file *file, uint64_t page, unsigned kind,
                      struct bel_why *why)
{
    if (page < BEL_PAGE_FIRST || page >= file->count ||
        page >= file->map_bytes / file->page_bytes) {
        return bel__page_damaged(page, "does not exist", why);
    }
    size_t offset = offset_of(file, page);
    if (bel__page_u64(file, offset) != page) {
        return bel__page_damaged(page, "has a wrong number", why);
    }
    if (bel__page_u16(file, offset + BEL_PAGE_FLAGS) != kind) {
        return bel__page_damaged(page, "has a wrong kind", why);
    }
    return 0;
}

/* Checks that the list of nodes is inside the page. */
static int check_list(const struct bel_page_file *file, uint64_t page, struct bel_why *why)
{
    size_t offset = offset_of(file, page);
    unsigned end = bel__page_u16(file, offset + BEL_PAGE_LIST_END);
    unsigned nodes = bel__page_u16(file, offset + BEL_PAGE_NODES);
    if (end > BEL_PAGE_LIST && end % 2 == 0 && end <= nodes && nodes <= file->page_bytes) return 0;
    return bel__page_damaged(page, "has an invalid list of nodes", why);
}

unsigned bel__page_count(const struct bel_page_file *file, uint64_t page)
{
    unsigned end = bel__page_u16(file, offset_of(file, page) + BEL_PAGE_LIST_END);
    assert(end > BEL_PAGE_LIST);
    return (end - BEL_PAGE_LIST) / 2;
}

size_t bel__page_node(const struct bel_page_file *file, uint64_t page, unsigned index)
{
    size_t offset = offset_of(file, page);
    return offset + bel__page_u16(file, offset + BEL_PAGE_LIST + 2 * (size_t)index);
}

struct bel_view bel__page_key(const struct bel_page_file *file, size_t node)
{
    return (struct bel_view){file->map + node + BEL_NODE_KEY,
                             bel__page_u16(file, node + BEL_NODE_KEY_BYTES)};
}

uint64_t bel__page_child(const struct bel_page_file *file, size_t node)
{
    return bel__page_u32(file, node) | (uint64_t)bel__page_u16(file, node + BEL_NODE_FLAGS) << 32;
}

/* --- nodes --- */

/* Sets `*out` to the offset in the page of a node, whose header and key must be inside the page. */
static bool find_node(const struct bel_page_file *file, uint64_t page, unsigned index, size_t *out)
{
    size_t start = offset_of(file, page);
    size_t offset = bel__page_u16(file, start + BEL_PAGE_LIST + 2 * (size_t)index);
    if (offset < bel__page_u16(file, start + BEL_PAGE_NODES) || offset % 2 != 0) return false;
    if (offset + BEL_NODE_KEY > file->page_bytes) return false;
    size_t key_bytes = bel__page_u16(file, start + offset + BEL_NODE_KEY_BYTES);
    *out = offset;
    return offset + BEL_NODE_KEY + key_bytes <= file->page_bytes;
}

/* Returns the size of a node in its page: header, key, and data unless it is in overflow pages. */
static size_t node_bytes(const struct bel_page_file *file, size_t node, bool is_leaf)
{
    size_t bytes = (size_t)BEL_NODE_KEY + bel__page_u16(file, node + BEL_NODE_KEY_BYTES);
    bool is_big = is_leaf && (bel__page_u16(file, node + BEL_NODE_FLAGS) & BEL_NODE_IS_BIG) != 0;
    if (is_leaf) bytes += is_big ? sizeof(uint64_t) : bel__page_u32(file, node);
    return (bytes + 1) & ~(size_t)1;
}

/* Checks that the nodes fill the page up to its end, without overlaps and gaps. */
static int check_nodes(const struct bel_page_file *file, uint64_t page, bool is_leaf,
                       struct bel_why *why)
{
    uint8_t taken[BEL_PAGE_BYTES_MAX / 2];
    size_t start = offset_of(file, page), offset = 0;
    size_t left = file->page_bytes - bel__page_u16(file, start + BEL_PAGE_NODES);
    unsigned count = bel__page_count(file, page);
    assert(file->page_bytes <= BEL_PAGE_BYTES_MAX);
    memset(taken, 0, file->page_bytes / 2);
    for (unsigned i = 0; i < count; i++) {
        if (!find_node(file, page, i, &offset)) {
            return bel__page_damaged(page, "has a node outside the page", why);
        }
        size_t bytes = node_bytes(file, start + offset, is_leaf);
        bool fits = bytes <= left && offset + bytes <= file->page_bytes;
        fits = fits && memchr(taken + offset / 2, 1, bytes / 2) == NULL;
        if (!fits) return bel__page_damaged(page, "has nodes that overlap", why);
        memset(taken + offset / 2, 1, bytes / 2);
        left -= bytes;
    }
    return left == 0 ? 0 : bel__page_damaged(page, "has a gap between nodes", why);
}

/* --- keys --- */

/* Compares two keys of rows; a lookup in a tree that is not trusted does so some thirty times. */
static inline int compare_rows(const unsigned char *a, const unsigned char *b)
{
    for (unsigned i = 0; i < BEL_KEY_BYTES; i += 8) {
        uint64_t first, second;
        memcpy(&first, a + i, sizeof first);
        memcpy(&second, b + i, sizeof second);
        if (first != second) return be64toh(first) < be64toh(second) ? -1 : 1;
    }
    return 0;
}

static int compare(enum bel_page_table table, struct bel_view a, struct bel_view b)
{
    if (table == BEL_PAGES_FREE) {
        uint64_t first, second;
        memcpy(&first, a.data, sizeof first);
        memcpy(&second, b.data, sizeof second);
        return (first > second) - (first < second);
    }
    if (table == BEL_PAGES_ROWS) return compare_rows(a.data, b.data);
    size_t bytes = a.bytes < b.bytes ? a.bytes : b.bytes;
    int order = memcmp(a.data, b.data, bytes);
    return order != 0 ? order : (a.bytes > b.bytes) - (a.bytes < b.bytes);
}

static bool has_right_size(enum bel_page_table table, struct bel_view key)
{
    if (table == BEL_PAGES_FREE) return key.bytes == sizeof(uint64_t);
    return table == BEL_PAGES_ROWS ? key.bytes == BEL_KEY_BYTES : key.bytes > 0;
}

/* Checks that the keys are in order and in the range of the page. */
static int check_keys(const struct bel_page_file *file, const struct bel_page_want *want,
                      struct bel_why *why)
{
    unsigned count = bel__page_count(file, want->page);
    bool is_leaf = want->kind == BEL_PAGE_LEAF;
    struct bel_view before = {NULL, 0};
    for (unsigned i = is_leaf ? 0 : 1; i < count; i++) {
        struct bel_view key = bel__page_key(file, bel__page_node(file, want->page, i));
        if (!has_right_size(want->table, key)) {
            return bel__page_damaged(want->page, "has a key of a wrong size", why);
        }
        if (before.data != NULL && compare(want->table, before, key) >= 0) {
            return bel__page_damaged(want->page, "has keys out of order", why);
        }
        if (before.data == NULL && want->low.data != NULL &&
            compare(want->table, key, want->low) < 0) {
            return bel__page_damaged(want->page, "has keys of the page before it", why);
        }
        before = key;
    }
    if (before.data == NULL || want->high.data == NULL) return 0;
    if (compare(want->table, before, want->high) < 0) return 0;
    return bel__page_damaged(want->page, "has keys of the page after it", why);
}

unsigned bel__page_find(const struct bel_page_file *file, uint64_t page, struct bel_view key)
{
    unsigned first = 0, behind = bel__page_count(file, page);
    size_t start = offset_of(file, page);
    assert(key.bytes == BEL_KEY_BYTES);
    while (behind - first > 1) { /* node `first` <= key < node `behind` */
        unsigned middle = first + (behind - first) / 2;
        size_t node = start + bel__page_u16(file, start + BEL_PAGE_LIST + 2 * (size_t)middle);
        if (compare_rows(file->map + node + BEL_NODE_KEY, key.data) <= 0) {
            first = middle;
        } else {
            behind = middle;
        }
    }
    return first;
}

struct bel_page_want bel__page_want_child(const struct bel_page_file *file,
                                          const struct bel_page_want *branch, unsigned index,
                                          unsigned kind)
{
    size_t node = bel__page_node(file, branch->page, index);
    struct bel_page_want want = {
        .page = bel__page_child(file, node),
        .kind = kind,
        .table = branch->table,
        .low = index > 0 ? bel__page_key(file, node) : branch->low,
        .high = branch->high,
        .skips_rows = branch->skips_rows,
    };
    if (index + 1 < bel__page_count(file, branch->page)) {
        want.high = bel__page_key(file, bel__page_node(file, branch->page, index + 1));
    }
    return want;
}

/* --- data --- */

/* Finds data in overflow pages, which must exist and have the right number. */
static int find_big(const struct bel_page_file *file, struct bel_page_data *out,
                    struct bel_why *why)
{
    size_t bytes = out->view.bytes;
    uint64_t count = (BEL_PAGE_LIST + (uint64_t)bytes + file->page_bytes - 1) / file->page_bytes;
    int err = check_head(file, out->overflow, BEL_PAGE_OVERFLOW, why);
    if (err) return err;
    size_t offset = offset_of(file, out->overflow);
    if (bel__page_u32(file, offset + BEL_PAGE_LIST_END) != count ||
        count > file->count - out->overflow || bytes > file->map_bytes - offset - BEL_PAGE_LIST) {
        return bel__page_damaged(out->overflow, "has a wrong number of overflow pages", why);
    }
    out->overflow_count = count;
    out->view.data = file->map + offset + BEL_PAGE_LIST;
    return 0;
}

int bel__page_data(const struct bel_page_file *file, size_t node, struct bel_page_data *out,
                   struct bel_why *why)
{
    size_t data = node + BEL_NODE_KEY + bel__page_u16(file, node + BEL_NODE_KEY_BYTES);
    *out = (struct bel_page_data){.view = {file->map + data, bel__page_u32(file, node)}};
    if ((bel__page_u16(file, node + BEL_NODE_FLAGS) & BEL_NODE_IS_BIG) == 0) return 0;
    out->overflow = bel__page_u64(file, data);
    return find_big(file, out, why);
}

/* Reads the checksum that is stored before the value of a row. */
static uint32_t checksum_of(struct bel_view data)
{
    uint32_t checksum;
    memcpy(&checksum, data.data, sizeof checksum);
    return le32toh(checksum);
}

static struct bel_view value_of(struct bel_view data)
{
    return (struct bel_view){(const unsigned char *)data.data + BEL_ROW_CHECKSUM_BYTES,
                             data.bytes - BEL_ROW_CHECKSUM_BYTES};
}

void bel__page_add_sum(struct bel_view key, struct bel_view data, uint64_t *sum)
{
    struct bel_key row = bel__key_read(key.data);
    assert(data.bytes >= BEL_ROW_CHECKSUM_BYTES);
    *sum += bel__row_sum(&row, checksum_of(data), data.bytes - BEL_ROW_CHECKSUM_BYTES);
}

bool bel__page_row(struct bel_key key, struct bel_view data, struct bel_view *out)
{
    if (data.bytes < BEL_ROW_CHECKSUM_BYTES) return false;
    if (data.bytes > BEL_ROW_CHECKSUM_BYTES + BEL_STORE_VALUE_BYTES_MAX) return false;
    *out = value_of(data);
    return bel__row_checksum(&key, *out) == checksum_of(data);
}

static bool is_row_right(struct bel_view key, struct bel_view data)
{
    struct bel_view value;
    return bel__page_row(bel__key_read(key.data), data, &value);
}

/* Checks the kind of each node of a leaf, and in the table of rows its data. */
static int check_leaf(const struct bel_page_file *file, const struct bel_page_want *want,
                      struct bel_why *why)
{
    unsigned count = bel__page_count(file, want->page);
    for (unsigned i = 0; i < count; i++) {
        size_t node = bel__page_node(file, want->page, i);
        unsigned flags = bel__page_u16(file, node + BEL_NODE_FLAGS);
        bool is_table = (flags & BEL_NODE_IS_TABLE) != 0;
        if (flags > BEL_NODE_IS_TABLE || is_table != (want->table == BEL_PAGES_TABLES)) {
            return bel__page_damaged(want->page, "has a node of an unknown kind", why);
        }
        struct bel_page_data data;
        int err = bel__page_data(file, node, &data, why);
        if (err) return err;
        if (want->table == BEL_PAGES_ROWS && !is_row_right(bel__page_key(file, node), data.view)) {
            return bel__page_damaged(want->page, "has a row with a wrong checksum", why);
        }
    }
    return 0;
}

/* Checks a page of the table of rows, without the checksums: a pass over the nodes that adds up
 * their sizes. Nodes in the order of their keys are different ones, so that those of the right
 * total size fill the page. */
static int check_light(const struct bel_page_file *file, const struct bel_page_want *want,
                       struct bel_why *why)
{
    bool is_leaf = want->kind == BEL_PAGE_LEAF;
    size_t start = offset_of(file, want->page), offset = 0;
    size_t left = file->page_bytes - bel__page_u16(file, start + BEL_PAGE_NODES);
    const unsigned char *before = want->low.data;
    unsigned count = bel__page_count(file, want->page);
    for (unsigned i = 0; i < count; i++) {
        if (!find_node(file, want->page, i, &offset)) {
            return bel__page_damaged(want->page, "has a node outside the page", why);
        }
        size_t node = start + offset, bytes = node_bytes(file, node, is_leaf);
        if (bytes > left || offset + bytes > file->page_bytes) {
            return bel__page_damaged(want->page, "has nodes that overlap", why);
        }
        left -= bytes;
        if (!is_leaf && i == 0) continue; /* its key is not used */
        struct bel_page_data data;
        unsigned flags = is_leaf ? bel__page_u16(file, node + BEL_NODE_FLAGS) : 0;
        int err = flags == 0 ? 0 : bel__page_data(file, node, &data, why);
        if (err) return err;
        const unsigned char *key = file->map + node + BEL_NODE_KEY;
        int order = before == NULL ? -1 : compare_rows(before, key);
        bool is_next = order < 0 || (order == 0 && before == want->low.data);
        if (flags > BEL_NODE_IS_BIG || !is_next ||
            bel__page_u16(file, node + BEL_NODE_KEY_BYTES) != BEL_KEY_BYTES) {
            return bel__page_damaged(want->page, "has keys out of order", why);
        }
        before = key;
    }
    if (left != 0) return bel__page_damaged(want->page, "has a gap between nodes", why);
    if (want->high.data == NULL || before == NULL) return 0;
    if (compare_rows(before, want->high.data) < 0) return 0;
    return bel__page_damaged(want->page, "has keys of the page after it", why);
}

int bel__page_check(const struct bel_page_file *file, const struct bel_page_want *want,
                    struct bel_why *why)
{
    bool is_leaf = want->kind == BEL_PAGE_LEAF;
    int err = check_head(file, want->page, want->kind, why);
    if (!err) err = check_list(file, want->page, why);
    if (!err && want->skips_rows) return check_light(file, want, why);
    if (!err) err = check_nodes(file, want->page, is_leaf, why);
    if (!err) err = check_keys(file, want, why);
    if (!err && is_leaf) err = check_leaf(file, want, why);
    return err;
}

int bel__page_check_again(const struct bel_page_file *file, const struct bel_page_want *want,
                          struct bel_why *why)
{
    int err = check_head(file, want->page, want->kind, why);
    if (err) return err;
    unsigned first = want->kind == BEL_PAGE_LEAF ? 0 : 1, count = bel__page_count(file, want->page);
    if (first >= count) return 0;
    struct bel_view low = bel__page_key(file, bel__page_node(file, want->page, first));
    struct bel_view high = bel__page_key(file, bel__page_node(file, want->page, count - 1));
    bool fits = has_right_size(want->table, low) && has_right_size(want->table, high) &&
                (want->low.data == NULL || compare(want->table, low, want->low) >= 0) &&
                (want->high.data == NULL || compare(want->table, high, want->high) < 0);
    return fits ? 0 : bel__page_damaged(want->page, "has keys of another page", why);
}
