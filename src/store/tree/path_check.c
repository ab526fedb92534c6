/* SPDX-License-Identifier: MIT */

/* A leaf is marked as settled when its neighbours, too, have been checked. */
#include "store/tree/path_check.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/stat.h>

enum {
    CHECKED = 1,       /* the page was checked */
    SETTLED_READ = 2,  /* and all that a read of its keys needs */
    SETTLED_WRITE = 4, /* and all that a write needs */
};

int bel__path_check_create(const unsigned char *map, int fd, size_t page_bytes,
                           struct bel_path_check **out)
{
    struct bel_path_check *check = calloc(1, sizeof *check);
    if (check == NULL) return BEL_ENOMEM;
    check->file = (struct bel_page_file){.map = map, .page_bytes = page_bytes};
    check->fd = fd;
    *out = check;
    return 0;
}

void bel__path_check_destroy(struct bel_path_check *check)
{
    if (check == NULL) return;
    free(check->marks);
    free(check);
}

/* Makes room for the marks of more pages. */
static int grow(struct bel_path_check *check, uint64_t count)
{
    if (count <= check->file.count) return 0;
    uint8_t *marks = realloc(check->marks, count);
    if (marks == NULL) return BEL_ENOMEM;
    memset(marks + check->file.count, 0, count - check->file.count);
    check->marks = marks;
    check->file.count = count;
    return 0;
}

int bel__path_check_start(struct bel_path_check *check, struct bel_view record, uint64_t page_count)
{
    const unsigned char *bytes = record.data;
    struct stat info;
    uint16_t levels;
    if (record.bytes != BEL_RECORD_BYTES) return BEL_ECORRUPT;
    if (fstat(check->fd, &info) != 0) return BEL_EIO;
    memcpy(&levels, bytes + BEL_RECORD_LEVELS, sizeof levels);
    memcpy(&check->root, bytes + BEL_RECORD_ROOT, sizeof check->root);
    if (levels > BEL_PAGE_LEVELS_MAX) return BEL_ECORRUPT;
    check->levels = levels;
    check->file.map_bytes = (size_t)info.st_size;
    check->has_leaf = false;
    return grow(check, page_count);
}

void bel__path_check_forget(struct bel_path_check *check)
{
    if (check->file.count > 0) memset(check->marks, 0, check->file.count);
    check->has_leaf = false;
}

/* --- pages --- */

static bool has_mark(const struct bel_path_check *check, uint64_t page, unsigned mark)
{
    return page < check->file.count && (check->marks[page] & mark) != 0;
}

static int check_page(struct bel_path_check *check, const struct bel_page_want *want)
{
    if (has_mark(check, want->page, CHECKED)) {
        return bel__page_check_again(&check->file, want, &check->why);
    }
    int err = bel__page_check(&check->file, want, &check->why);
    if (err) return err;
    check->marks[want->page] |= CHECKED;
    return 0;
}

static unsigned kind_at(const struct bel_path_check *check, unsigned level)
{
    return level + 1 == check->levels ? BEL_PAGE_LEAF : BEL_PAGE_BRANCH;
}

static struct bel_page_want child_at(const struct bel_path_check *check,
                                     const struct bel_page_want *branch, unsigned level,
                                     unsigned index)
{
    return bel__page_want_child(&check->file, branch, index, kind_at(check, level + 1));
}

enum side {
    FIRST,
    LAST,
};

/* Checks a page and the pages below it on one side, down to a leaf. */
static int check_edge(struct bel_path_check *check, struct bel_page_want want, unsigned level,
                      enum side side)
{
    int err = check_page(check, &want);
    for (; !err && level + 1 < check->levels; level++) {
        unsigned count = bel__page_count(&check->file, want.page);
        want = child_at(check, &want, level, side == FIRST ? 0 : count - 1);
        err = check_page(check, &want);
    }
    return err;
}

/* --- paths --- */

/* The path of a key: what each page must be, and which child leads on. */
struct path {
    struct bel_page_want pages[BEL_PAGE_LEVELS_MAX];
    unsigned places[BEL_PAGE_LEVELS_MAX];
};

/* Checks the pages of the path. */
static int descend(struct bel_path_check *check, struct bel_view key, struct path *path)
{
    struct bel_page_want want = {.page = check->root,
                                 .kind = kind_at(check, 0),
                                 .table = BEL_PAGES_ROWS,
                                 .skips_rows = check->skips_rows};
    for (unsigned level = 0;; level++) {
        int err = check_page(check, &want);
        path->pages[level] = want;
        if (err || level + 1 == check->levels) return err;
        path->places[level] = bel__page_find(&check->file, want.page, key);
        want = child_at(check, &want, level, path->places[level]);
    }
}

/* Checks the leaf before or after that of the path, if there is one. */
static int check_neighbour(struct bel_path_check *check, const struct path *path, enum side side)
{
    for (unsigned level = check->levels - 1; level-- > 0;) {
        const struct bel_page_want *branch = &path->pages[level];
        unsigned place = path->places[level];
        if (side == FIRST && place == 0) continue;
        if (side == LAST && place + 1 == bel__page_count(&check->file, branch->page)) continue;
        unsigned index = side == FIRST ? place - 1 : place + 1;
        return check_edge(check, child_at(check, branch, level, index), level + 1,
                          side == FIRST ? LAST : FIRST);
    }
    return 0;
}

/* Checks the siblings of each page of the path, and the first leaf below each. */
static int check_siblings(struct bel_path_check *check, const struct path *path)
{
    for (unsigned level = 0; level + 1 < check->levels; level++) {
        const struct bel_page_want *branch = &path->pages[level];
        unsigned place = path->places[level], count = bel__page_count(&check->file, branch->page);
        unsigned first = place > 0 ? place - 1 : 0, end = place + 2 < count ? place + 2 : count;
        for (unsigned i = first; i < end; i++) {
            int err = check_edge(check, child_at(check, branch, level, i), level + 1, FIRST);
            if (err) return err;
        }
    }
    return 0;
}

/* Remembers the range of a leaf, because the next key is often in the same one. */
static void remember(struct bel_path_check *check, const struct bel_page_want *leaf)
{
    check->has_leaf = true;
    check->has_from = leaf->low.data != NULL;
    check->has_until = leaf->high.data != NULL;
    check->shrunk_bytes = 0;
    check->leaf_bytes =
        check->file.page_bytes -
        bel__page_u16(&check->file, (size_t)leaf->page * check->file.page_bytes + BEL_PAGE_NODES);
    if (check->has_from) memcpy(check->from, leaf->low.data, BEL_KEY_BYTES);
    if (check->has_until) memcpy(check->until, leaf->high.data, BEL_KEY_BYTES);
}

static bool is_remembered(const struct bel_path_check *check, const unsigned char *key)
{
    return check->has_leaf && (!check->has_from || memcmp(check->from, key, BEL_KEY_BYTES) <= 0) &&
           (!check->has_until || memcmp(key, check->until, BEL_KEY_BYTES) < 0);
}

int bel__path_check_key(struct bel_path_check *check, const struct bel_key *key,
                        enum bel_path_use use)
{
    unsigned char bytes[BEL_KEY_BYTES];
    struct path path;
    unsigned mark = use == BEL_PATH_WRITE ? SETTLED_WRITE : SETTLED_READ;
    bel__key_write(key, bytes);
    if (check->levels == 0 || is_remembered(check, bytes)) return 0;
    int err = descend(check, (struct bel_view){bytes, sizeof bytes}, &path);
    if (err) return err;
    const struct bel_page_want *leaf = &path.pages[check->levels - 1];
    if (use != BEL_PATH_TOUCH && !has_mark(check, leaf->page, mark)) {
        err = check_neighbour(check, &path, FIRST);
        if (!err) err = check_neighbour(check, &path, LAST);
        if (!err && use == BEL_PATH_WRITE) err = check_siblings(check, &path);
        if (err) return err;
        check->marks[leaf->page] |= (uint8_t)mark;
    }
    remember(check, leaf);
    return 0;
}

/* LMDB merges a page that is less than a quarter full. A leaf that was split meanwhile has at least
 * two fifths in each half. */
int bel__path_check_shrink(struct bel_path_check *check, const struct bel_key *key, size_t bytes)
{
    size_t page_bytes = check->file.page_bytes;
    if (check->levels < 2 || check->shrunk_bytes >= page_bytes) return 0;
    check->shrunk_bytes += bytes + BEL_NODE_KEY + BEL_KEY_BYTES + 2 * sizeof(uint16_t);
    bool is_far = check->shrunk_bytes < page_bytes / 8 &&
                  check->leaf_bytes > check->shrunk_bytes + page_bytes * 2 / 5;
    if (is_far) return 0;
    check->has_leaf = false;
    int err = bel__path_check_key(check, key, BEL_PATH_WRITE);
    check->shrunk_bytes = page_bytes; /* the siblings of this leaf have been checked */
    return err;
}
