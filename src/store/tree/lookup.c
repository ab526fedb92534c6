/* SPDX-License-Identifier: MIT */

/*
 * Why one changed bit cannot give a wrong answer. A search ends between two nodes next to each
 * other, both of which it has compared with the key. A node that misleads it is one of the two.
 *
 *     a key in a leaf       the row has a wrong checksum
 *     a key in a branch     the row of the neighbouring leaf is on the wrong side
 *     an offset of a node   leads to another node, which is out of order; or to none
 *     the number of nodes   the nodes do not fill the page
 *     a page number         the page has another number or kind, or keys of another range
 *
 * So a row that is found needs only its own checksum, and the other checks are done before "not
 * found" alone. A seek of the key after the last one, as a scan does it, looks at the next row of
 * the same leaf first.
 */
#include "store/tree/lookup.h"

#include <assert.h>
#include <endian.h>
#include <sys/stat.h>

enum {
    BRANCH_NODE_BYTES = BEL_NODE_KEY + BEL_KEY_BYTES,
};

void bel__lookup_init(struct bel_lookup *lookup, const unsigned char *map, int fd,
                      size_t page_bytes)
{
    assert(map != NULL && page_bytes >= BEL_PAGE_BYTES_MIN && page_bytes <= BEL_PAGE_BYTES_MAX);
    *lookup =
        (struct bel_lookup){.file = {.map = map, .page_bytes = page_bytes}, .fd = fd, .levels = 0};
}

int bel__lookup_start(struct bel_lookup *lookup, struct bel_view record, uint64_t page_count)
{
    const unsigned char *bytes = record.data;
    struct stat info;
    uint16_t levels;
    if (record.bytes != BEL_RECORD_BYTES) return BEL_ECORRUPT;
    if (fstat(lookup->fd, &info) != 0) return BEL_EIO;
    memcpy(&levels, bytes + BEL_RECORD_LEVELS, sizeof levels);
    memcpy(&lookup->root, bytes + BEL_RECORD_ROOT, sizeof lookup->root);
    if (levels > BEL_PAGE_LEVELS_MAX) return BEL_ECORRUPT;
    lookup->levels = levels;
    lookup->file.map_bytes = (size_t)info.st_size;
    lookup->file.count = page_count;
    lookup->has_last = false;
    return 0;
}

/* --- pages --- */

/* A page whose number, kind and list of nodes are right. */
struct page {
    const unsigned char *bytes;
    uint64_t number;
    unsigned count, nodes_start;
};

static int damaged(struct bel_lookup *lookup, uint64_t page, const char *what)
{
    (void)!bel__page_damaged(page, what, &lookup->why);
    return BEL_ECORRUPT;
}

static inline unsigned u16_of(const unsigned char *bytes)
{
    uint16_t number;
    memcpy(&number, bytes, sizeof number);
    return number;
}

/* The offset of a node in its page; not checked. */
static inline unsigned offset_at(const struct page *page, unsigned index)
{
    return u16_of(page->bytes + BEL_PAGE_LIST + 2 * (size_t)index);
}

/* Returns the node `index` of a page, header and key of which are inside the page; or NULL. */
static inline const unsigned char *node_at(const struct bel_lookup *lookup, const struct page *page,
                                           unsigned index)
{
    unsigned offset = offset_at(page, index);
    bool fits = offset >= page->nodes_start && offset % 2 == 0 &&
                offset + BRANCH_NODE_BYTES <= lookup->file.page_bytes;
    if (!fits) return NULL;
    const unsigned char *node = page->bytes + offset;
    return u16_of(node + BEL_NODE_KEY_BYTES) == BEL_KEY_BYTES ? node : NULL;
}

/* All nodes of a branch have keys of one size, except the first, which may have none. */
static bool fills_branch(const struct bel_lookup *lookup, const struct page *page)
{
    unsigned offset = offset_at(page, 0);
    if (offset < page->nodes_start || offset + BEL_NODE_KEY > lookup->file.page_bytes) return false;
    unsigned key_bytes = u16_of(page->bytes + offset + BEL_NODE_KEY_BYTES);
    size_t first = (BEL_NODE_KEY + (size_t)key_bytes + 1) & ~(size_t)1;
    return first + (size_t)(page->count - 1) * BRANCH_NODE_BYTES ==
           lookup->file.page_bytes - page->nodes_start;
}

/* Adds up the sizes alone, because a search checks the nodes that it compares. */
static bool fills_leaf(const struct bel_lookup *lookup, const struct page *page)
{
    size_t last = lookup->file.page_bytes - BEL_NODE_KEY;
    size_t bytes = (size_t)page->count * BRANCH_NODE_BYTES;
    for (unsigned i = 0; i < page->count; i++) {
        unsigned offset = offset_at(page, i);
        if (offset > last) return false;
        const unsigned char *node = page->bytes + offset;
        uint32_t data_bytes;
        memcpy(&data_bytes, node, sizeof data_bytes);
        bool is_big = (node[BEL_NODE_FLAGS] & BEL_NODE_IS_BIG) != 0;
        bytes += is_big ? sizeof(uint64_t) : ((size_t)data_bytes + 1) & ~(size_t)1;
    }
    return bytes == lookup->file.page_bytes - page->nodes_start;
}

static int open_page(struct bel_lookup *lookup, uint64_t number, unsigned kind, struct page *out)
{
    const struct bel_page_file *file = &lookup->file;
    if (number < BEL_PAGE_FIRST || number >= file->count ||
        number >= file->map_bytes / file->page_bytes) {
        return damaged(lookup, number, "does not exist");
    }
    const unsigned char *bytes = file->map + (size_t)number * file->page_bytes;
    uint64_t own;
    memcpy(&own, bytes, sizeof own);
    if (own != number) return damaged(lookup, number, "has a wrong number");
    if (u16_of(bytes + BEL_PAGE_FLAGS) != kind) return damaged(lookup, number, "has a wrong kind");
    unsigned end = u16_of(bytes + BEL_PAGE_LIST_END), nodes = u16_of(bytes + BEL_PAGE_NODES);
    if (end <= BEL_PAGE_LIST || end % 2 != 0 || end > nodes || nodes > file->page_bytes) {
        return damaged(lookup, number, "has an invalid list of nodes");
    }
    *out = (struct page){bytes, number, (end - BEL_PAGE_LIST) / 2, nodes};
    return 0;
}

/* --- searches --- */

static inline int compare(const unsigned char *a, const unsigned char *b)
{
    for (unsigned i = 0; i < BEL_KEY_BYTES; i += 8) {
        uint64_t first, second;
        memcpy(&first, a + i, sizeof first);
        memcpy(&second, b + i, sizeof second);
        if (first != second) return be64toh(first) < be64toh(second) ? -1 : 1;
    }
    return 0;
}

/* Sets `*out` to the number of nodes from `first` on whose keys are at most `key`, plus `first`. */
static int search(struct bel_lookup *lookup, const struct page *page, unsigned first,
                  const unsigned char *key, unsigned *out)
{
    unsigned behind = page->count;
    while (first < behind) { /* nodes before `first` <= key < nodes from `behind` on */
        unsigned middle = first + (behind - first) / 2;
        const unsigned char *node = node_at(lookup, page, middle);
        if (node == NULL) return damaged(lookup, page->number, "has an invalid node");
        if (compare(node + BEL_NODE_KEY, key) <= 0) {
            first = middle + 1;
        } else {
            behind = middle;
        }
    }
    *out = first;
    return 0;
}

/* The path of a key. In a branch the place is that of the child; in the leaf it is the number of
 * rows with keys of at most the key. */
struct path {
    struct page pages[BEL_PAGE_LEVELS_MAX];
    unsigned places[BEL_PAGE_LEVELS_MAX];
};

static unsigned kind_at(const struct bel_lookup *lookup, unsigned level)
{
    return level + 1 == lookup->levels ? BEL_PAGE_LEAF : BEL_PAGE_BRANCH;
}

/* Opens the child `index` of a branch of a level. */
static int open_child(struct bel_lookup *lookup, const struct page *branch, unsigned level,
                      unsigned index, struct page *out)
{
    unsigned offset = offset_at(branch, index);
    if (offset < branch->nodes_start || offset + BEL_NODE_KEY > lookup->file.page_bytes) {
        return damaged(lookup, branch->number, "has an invalid node");
    }
    uint64_t number = bel__page_child(
        &lookup->file, (size_t)branch->number * lookup->file.page_bytes + (size_t)offset);
    return open_page(lookup, number, kind_at(lookup, level + 1), out);
}

/* Finds the path of a key. */
static int descend(struct bel_lookup *lookup, const unsigned char *key, struct path *path)
{
    int err = open_page(lookup, lookup->root, kind_at(lookup, 0), &path->pages[0]);
    for (unsigned level = 0; !err; level++) {
        struct page *page = &path->pages[level];
        bool is_leaf = level + 1 == lookup->levels;
        err = search(lookup, page, is_leaf ? 0 : 1, key, &path->places[level]);
        if (err || is_leaf) return err;
        path->places[level]--;
        err = open_child(lookup, page, level, path->places[level], page + 1);
    }
    return err;
}

/* --- rows --- */

/* Checks the row `index` of a leaf, and sets `*out` to its value. */
static int read_row(struct bel_lookup *lookup, const struct page *leaf, unsigned index,
                    struct bel_key *out_key, struct bel_view *out)
{
    const unsigned char *node = node_at(lookup, leaf, index);
    struct bel_page_data data = {0};
    if (node == NULL) return damaged(lookup, leaf->number, "has an invalid node");
    *out_key = bel__key_read(node + BEL_NODE_KEY);
    size_t room = (size_t)(leaf->bytes + lookup->file.page_bytes - node) - BRANCH_NODE_BYTES;
    unsigned flags = u16_of(node + BEL_NODE_FLAGS);
    uint32_t bytes;
    memcpy(&bytes, node, sizeof bytes);
    bool is_big = flags == BEL_NODE_IS_BIG;
    if (flags > BEL_NODE_IS_BIG || (is_big ? sizeof(uint64_t) : (size_t)bytes) > room) {
        return damaged(lookup, leaf->number, "has a node of an unknown kind");
    }
    int err = bel__page_data(&lookup->file, (size_t)(node - lookup->file.map), &data, &lookup->why);
    if (err) return err;
    if (bel__page_row(*out_key, data.view, out)) return 0;
    return bel__why_say(&lookup->why, BEL_ECORRUPT,
                        "tree/data.mdb is damaged: row %016llx%016llx%016llx in page %llu is not "
                        "as it was stored",
                        (unsigned long long)out_key->words[0],
                        (unsigned long long)out_key->words[1],
                        (unsigned long long)out_key->words[2], (unsigned long long)leaf->number);
}

/* --- "not found" --- */

/* Returns the key of a node, which is inside the page; or NULL: no such node, or an invalid one. */
static const unsigned char *key_at(const struct bel_lookup *lookup, const struct page *page,
                                   unsigned index)
{
    const unsigned char *node = index < page->count ? node_at(lookup, page, index) : NULL;
    return node == NULL ? NULL : node + BEL_NODE_KEY;
}

/* Checks the order of the nodes around a place: of `before`, the next one, and one more on each
 * side. `first` is the first node that has a key. */
static bool is_ordered(const struct bel_lookup *lookup, const struct page *page, unsigned first,
                       unsigned before)
{
    unsigned from = before > first ? before - 1 : first;
    unsigned until = before + 3 < page->count ? before + 3 : page->count;
    const unsigned char *last = NULL;
    for (unsigned i = from; i < until; i++) {
        const unsigned char *node = node_at(lookup, page, i);
        if (node == NULL) return false;
        if (last != NULL && compare(last, node + BEL_NODE_KEY) >= 0) return false;
        last = node + BEL_NODE_KEY;
    }
    return true;
}

/* The range of keys that the branches above give to a page; no limit if NULL. */
struct range {
    const unsigned char *low, *high;
};

static bool is_inside(const struct range *range, const unsigned char *key)
{
    return (range->low == NULL || compare(range->low, key) <= 0) &&
           (range->high == NULL || compare(key, range->high) < 0);
}

/* Checks a branch of the path, and narrows the range to that of the child. */
static int confirm_branch(struct bel_lookup *lookup, const struct page *page, unsigned place,
                          struct range *range)
{
    const unsigned char *low = place > 0 ? key_at(lookup, page, place) : NULL;
    const unsigned char *high = key_at(lookup, page, place + 1);
    bool is_whole = fills_branch(lookup, page) && is_ordered(lookup, page, 1, place) &&
                    (place != 1 || offset_at(page, 0) != offset_at(page, 1)) &&
                    (place == 0 || low != NULL) && (place + 1 == page->count || high != NULL);
    if (!is_whole) return damaged(lookup, page->number, "has nodes that do not fit together");
    if ((low != NULL && !is_inside(range, low)) || (high != NULL && !is_inside(range, high))) {
        return damaged(lookup, page->number, "has keys of another page");
    }
    if (low != NULL) range->low = low;
    if (high != NULL) range->high = high;
    return 0;
}

/* Checks the leaf of the path: its nodes, and that its rows are in the range. */
static int confirm_leaf(struct bel_lookup *lookup, const struct page *leaf, unsigned place,
                        const struct range *range)
{
    unsigned before = place > 0 ? place - 1 : 0;
    if (!fills_leaf(lookup, leaf) || !is_ordered(lookup, leaf, 0, before)) {
        return damaged(lookup, leaf->number, "has nodes that do not fit together");
    }
    const unsigned char *first = key_at(lookup, leaf, 0);
    const unsigned char *last = key_at(lookup, leaf, leaf->count - 1);
    if (first != NULL && last != NULL && is_inside(range, first) && is_inside(range, last)) {
        return 0;
    }
    return damaged(lookup, leaf->number, "has keys of another page");
}

static int confirm_path(struct bel_lookup *lookup, const struct path *path)
{
    struct range range = {NULL, NULL};
    unsigned level = 0;
    for (; level + 1 < lookup->levels; level++) {
        int err = confirm_branch(lookup, &path->pages[level], path->places[level], &range);
        if (err) return err;
    }
    return confirm_leaf(lookup, &path->pages[level], path->places[level], &range);
}

enum side {
    BEFORE,
    AFTER,
};

/* A branch, its range, and which child to go down to. */
struct step {
    struct page page;
    struct range range;
    unsigned level, place;
};

/* Goes down from a step along the side that is next to the path, and checks the pages. */
static int open_edge(struct bel_lookup *lookup, struct step step, enum side side, struct page *out)
{
    for (;; step.level++) {
        int err = confirm_branch(lookup, &step.page, step.place, &step.range);
        if (!err) err = open_child(lookup, &step.page, step.level, step.place, out);
        if (err) return err;
        step.place = side == BEFORE ? out->count - 1 : 0;
        if (step.level + 2 == lookup->levels) {
            return confirm_leaf(lookup, out, step.place, &step.range);
        }
        step.page = *out;
    }
}

/* Opens the leaf before or after that of the path. Returns BEL_ENOTFOUND if there is none. */
static int open_neighbour(struct bel_lookup *lookup, const struct path *path, enum side side,
                          struct page *out)
{
    struct range ranges[BEL_PAGE_LEVELS_MAX] = {{NULL, NULL}};
    for (unsigned level = 0; level + 1 < lookup->levels; level++) {
        ranges[level + 1] = ranges[level];
        int err =
            confirm_branch(lookup, &path->pages[level], path->places[level], &ranges[level + 1]);
        if (err) return err;
    }
    for (unsigned level = lookup->levels - 1; level-- > 0;) {
        const struct page *branch = &path->pages[level];
        unsigned place = path->places[level];
        if (side == BEFORE ? place == 0 : place + 1 == branch->count) continue;
        struct step step = {*branch, ranges[level], level, side == BEFORE ? place - 1 : place + 1};
        return open_edge(lookup, step, side, out);
    }
    return BEL_ENOTFOUND;
}

/* Where a row is, and the row. */
struct found {
    struct page leaf;
    unsigned index;
    struct bel_key key;
    struct bel_view value;
};

/* Finds the row before or after the place of the path. Returns BEL_ENOTFOUND if there is none. */
static int find_beside(struct bel_lookup *lookup, const struct path *path, enum side side,
                       struct found *out)
{
    const struct page *leaf = &path->pages[lookup->levels - 1];
    unsigned place = path->places[lookup->levels - 1];
    bool is_inside_leaf = side == BEFORE ? place > 0 : place < leaf->count;
    if (is_inside_leaf) {
        out->leaf = *leaf;
        out->index = side == BEFORE ? place - 1 : place;
    } else {
        int err = open_neighbour(lookup, path, side, &out->leaf);
        if (err) return err;
        out->index = side == BEFORE ? out->leaf.count - 1 : 0;
    }
    return read_row(lookup, &out->leaf, out->index, &out->key, &out->value);
}

/* Checks that no row has the key: the rows on both sides are right, and the key is between them.
 * Sets `*out` to the row after the key, and returns 0, or BEL_ENOTFOUND if there is none. */
static int confirm(struct bel_lookup *lookup, const struct path *path, const struct bel_key *key,
                   struct found *out)
{
    struct found before;
    int err = confirm_path(lookup, path);
    if (err) return err;
    err = find_beside(lookup, path, BEFORE, &before);
    if (err != 0 && err != BEL_ENOTFOUND) return err;
    if (err == 0 && bel__key_compare(&before.key, key) >= 0) {
        return damaged(lookup, before.leaf.number, "has keys of the page after it");
    }
    err = find_beside(lookup, path, AFTER, out);
    if (err == 0 && bel__key_compare(key, &out->key) >= 0) {
        return damaged(lookup, out->leaf.number, "has keys of the page before it");
    }
    return err;
}

/* --- lookups --- */

/* Finds the row of a key, or checks that there is none and finds the row after the key. */
static int find(struct bel_lookup *lookup, const struct bel_key *key, bool *out_is_same,
                struct found *out)
{
    unsigned char bytes[BEL_KEY_BYTES];
    struct path path;
    if (lookup->levels == 0) return BEL_ENOTFOUND;
    bel__key_write(key, bytes);
    int err = descend(lookup, bytes, &path);
    if (err) return err;
    const struct page *leaf = &path.pages[lookup->levels - 1];
    unsigned place = path.places[lookup->levels - 1];
    const unsigned char *last = place > 0 ? key_at(lookup, leaf, place - 1) : NULL;
    *out_is_same = last != NULL && compare(last, bytes) == 0;
    if (!*out_is_same) return confirm(lookup, &path, key, out);
    out->leaf = *leaf;
    out->index = place - 1;
    return read_row(lookup, leaf, place - 1, &out->key, &out->value);
}

int bel__lookup_get(struct bel_lookup *lookup, const struct bel_key *key, struct bel_view *out)
{
    struct found found;
    bool is_same = false;
    int err = find(lookup, key, &is_same, &found);
    if (err) return err;
    if (!is_same) return BEL_ENOTFOUND;
    *out = found.value;
    return 0;
}

/* Looks whether the row after the one that was found last is the first from a key on. */
static int find_next(struct bel_lookup *lookup, const struct bel_key *key, struct found *out)
{
    unsigned char bytes[BEL_KEY_BYTES];
    if (!lookup->has_last || lookup->index + 1 == lookup->count) return BEL_ENOTFOUND;
    bel__key_write(key, bytes);
    if (compare(lookup->last, bytes) >= 0) return BEL_ENOTFOUND;
    int err = open_page(lookup, lookup->leaf, BEL_PAGE_LEAF, &out->leaf);
    if (err) return err;
    out->index = lookup->index + 1;
    const unsigned char *next = key_at(lookup, &out->leaf, out->index);
    if (out->leaf.count != lookup->count || next == NULL || compare(bytes, next) > 0 ||
        !is_ordered(lookup, &out->leaf, 0, out->index)) {
        return BEL_ENOTFOUND;
    }
    return read_row(lookup, &out->leaf, out->index, &out->key, &out->value);
}

int bel__lookup_seek(struct bel_lookup *lookup, struct bel_key *key, struct bel_view *out)
{
    struct found found;
    bool is_same = false;
    int err = find_next(lookup, key, &found);
    if (err == BEL_ENOTFOUND) err = find(lookup, key, &is_same, &found);
    if (err) return err;
    lookup->has_last = true;
    lookup->leaf = found.leaf.number;
    lookup->index = found.index;
    lookup->count = found.leaf.count;
    bel__key_write(&found.key, lookup->last);
    *key = found.key;
    *out = found.value;
    return 0;
}
