/* SPDX-License-Identifier: MIT */

/*
 * The tables are walked one after the other: free pages, tables, then state and rows, whose records
 * are in the table of tables. A walk has a stack of pages, from the root to the current page:
 *
 *     stack[0]  branch  . . X . .          places[0]: the next child
 *     stack[1]  branch  . X . .
 *     stack[2]  leaf    . . . X            places[2]: the next node
 */
#include "store/tree/pages.h"

#include "store/tree/map_fault.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    TABLES = 4,
    STEP_PAGES = 1 << 16,   /* of a check in one go */
    EXCESS_PAGES = 1 << 16, /* free pages that LMDB never wrote, after the end of the file */
};

static const uint32_t magic = 0xbeefc0de;

/* The walk through one table. */
struct walk {
    enum bel_page_table table;
    unsigned levels, depth;
    uint64_t branches, leaves, overflows, entries;
    struct bel_page_want stack[BEL_PAGE_LEVELS_MAX];
    unsigned places[BEL_PAGE_LEVELS_MAX];
    uint64_t transaction; /* in the table of free pages: the last transaction seen */
};

struct bel_pages {
    struct bel_page_file file;
    uint8_t *met;         /* 1 for each page visited */
    uint64_t left;        /* number of pages not visited */
    uint64_t transaction; /* of the snapshot */
    unsigned char records[TABLES][BEL_RECORD_BYTES];
    bool has_record[TABLES];
    struct walk walk;
    bool is_walking, is_whole;
    unsigned table; /* the table of the walk */
    struct bel_key from, next;
    unsigned char from_bytes[BEL_KEY_BYTES];
    struct bel_tree_state state;
    size_t state_offset;
    uint64_t rows, sum;
};

/* Marks a page as visited. It must exist and not be visited yet. */
static int meet(struct bel_pages *pages, uint64_t page, struct bel_why *why)
{
    if (page < BEL_PAGE_FIRST || page >= pages->file.count) {
        return bel__page_damaged(page, "does not exist", why);
    }
    if (pages->met[page]) return bel__page_damaged(page, "is used twice", why);
    pages->met[page] = 1;
    pages->left--;
    return 0;
}

/* --- nodes of leaves --- */

static int meet_overflows(struct bel_pages *pages, const struct bel_page_data *data,
                          struct bel_why *why)
{
    for (uint64_t i = 0; i < data->overflow_count; i++) {
        int err = meet(pages, data->overflow + i, why);
        if (err) return err;
    }
    pages->walk.overflows += data->overflow_count;
    return 0;
}

/* Visits the pages of a list of free pages. */
static int meet_free(struct bel_pages *pages, uint64_t page, struct bel_view key,
                     struct bel_view list, struct bel_why *why)
{
    uint64_t transaction, count = UINT64_MAX, before = UINT64_MAX, number;
    const unsigned char *bytes = list.data;
    memcpy(&transaction, key.data, sizeof transaction);
    if (transaction > pages->transaction) {
        return bel__page_damaged(page, "has free pages of an invalid transaction", why);
    }
    if (list.bytes >= sizeof count) memcpy(&count, bytes, sizeof count);
    if (list.bytes % sizeof count != 0 || count > list.bytes / sizeof count - 1) {
        return bel__page_damaged(page, "has an invalid list of free pages", why);
    }
    for (uint64_t i = 1; i <= count; i++) {
        memcpy(&number, bytes + (size_t)i * sizeof number, sizeof number);
        if (number >= before) return bel__page_damaged(page, "has free pages out of order", why);
        before = number;
        int err = meet(pages, number, why);
        if (err) return err;
    }
    return 0;
}

static bool is_named(struct bel_view key, const char *name)
{
    return key.bytes == strlen(name) && memcmp(key.data, name, key.bytes) == 0;
}

/* Takes the record of a table, or the state. */
static int take_named(struct bel_pages *pages, uint64_t page, struct bel_view name,
                      struct bel_view data, struct bel_why *why)
{
    bool is_rows = is_named(name, "rows"), is_state = is_named(name, "state");
    if (pages->walk.table == BEL_PAGES_STATE) {
        pages->state_offset = (size_t)((const unsigned char *)data.data - pages->file.map);
        int err = is_state ? bel__tree_state_read(data, &pages->state) : BEL_ECORRUPT;
        if (err == BEL_EUNSUPPORTED) {
            return bel__why_say(why, err, "tree/data.mdb has an unknown version");
        }
        return err ? bel__page_damaged(page, "has an invalid state", why) : 0;
    }
    enum bel_page_table table = is_rows ? BEL_PAGES_ROWS : BEL_PAGES_STATE;
    if (data.bytes != BEL_RECORD_BYTES || (!is_rows && !is_state)) {
        return bel__page_damaged(page, "has an invalid table", why);
    }
    memcpy(pages->records[table], data.data, BEL_RECORD_BYTES);
    pages->has_record[table] = true;
    return 0;
}

static int visit_node(struct bel_pages *pages, uint64_t page, unsigned index, struct bel_why *why)
{
    size_t node = bel__page_node(&pages->file, page, index);
    struct bel_view key = bel__page_key(&pages->file, node);
    struct bel_page_data data;
    int err = bel__page_data(&pages->file, node, &data, why);
    if (!err) err = meet_overflows(pages, &data, why);
    if (err) return err;
    pages->walk.entries++;
    switch (pages->walk.table) {
    case BEL_PAGES_FREE:
        return meet_free(pages, page, key, data.view, why);
    case BEL_PAGES_ROWS:
        bel__page_add_sum(key, data.view, &pages->sum);
        pages->rows++;
        pages->next = bel__key_read(key.data);
        return 0;
    default:
        return take_named(pages, page, key, data.view, why);
    }
}

/* --- tables --- */

/* Returns the first node of a page to visit: not 0 only if the walk begins at a key. */
static unsigned first_place(const struct bel_pages *pages, const struct bel_page_want *want)
{
    struct bel_view from = {pages->from_bytes, sizeof pages->from_bytes};
    if (pages->is_whole || want->table != BEL_PAGES_ROWS) return 0;
    return bel__page_find(&pages->file, want->page, from);
}

static int push(struct bel_pages *pages, const struct bel_page_want *want, struct bel_why *why)
{
    struct walk *walk = &pages->walk;
    int err = meet(pages, want->page, why);
    if (!err) err = bel__page_check(&pages->file, want, why);
    if (err) return err;
    *(want->kind == BEL_PAGE_LEAF ? &walk->leaves : &walk->branches) += 1;
    walk->stack[walk->depth] = *want;
    walk->places[walk->depth++] = first_place(pages, want);
    return 0;
}

static unsigned kind_at(const struct walk *walk, unsigned depth)
{
    return depth + 1 == walk->levels ? BEL_PAGE_LEAF : BEL_PAGE_BRANCH;
}

/* Checks the record of a table, and sets its root and its levels, which are 0 if it is empty. */
static int read_record(const struct bel_pages *pages, enum bel_page_table table, uint64_t *out_root,
                       unsigned *out_levels, struct bel_why *why)
{
    static const char *const names[] = {"free pages", "tables", "state", "rows"};
    const unsigned char *record = pages->records[table];
    uint16_t flags, levels;
    if (!pages->has_record[table]) {
        return bel__why_say(why, BEL_ECORRUPT, "tree/data.mdb is damaged: it has no table of %s",
                            names[table]);
    }
    memcpy(&flags, record + BEL_RECORD_FLAGS, sizeof flags);
    memcpy(&levels, record + BEL_RECORD_LEVELS, sizeof levels);
    memcpy(out_root, record + BEL_RECORD_ROOT, sizeof *out_root);
    *out_levels = levels;
    bool is_empty = *out_root == UINT64_MAX;
    if (levels <= BEL_PAGE_LEVELS_MAX && is_empty == (levels == 0) &&
        flags == (table == BEL_PAGES_FREE ? BEL_RECORD_U64_KEYS : 0)) {
        return 0;
    }
    return bel__why_say(why, BEL_ECORRUPT,
                        "tree/data.mdb is damaged: the record of its table of %s is invalid",
                        names[table]);
}

static int begin_table(struct bel_pages *pages, enum bel_page_table table, struct bel_why *why)
{
    struct walk *walk = &pages->walk;
    uint64_t root;
    *walk = (struct walk){.table = table};
    int err = read_record(pages, table, &root, &walk->levels, why);
    if (err || walk->levels == 0) return err;
    struct bel_page_want want = {.page = root, .kind = kind_at(walk, 0), .table = table};
    return push(pages, &want, why);
}

/* Compares a table with the counts of its record, and the rows with the state. */
static int end_table(const struct bel_pages *pages, struct bel_why *why)
{
    const struct walk *walk = &pages->walk;
    const uint64_t found[] = {walk->branches, walk->leaves, walk->overflows, walk->entries};
    uint64_t want[sizeof found / sizeof found[0]];
    bool is_rows = walk->table == BEL_PAGES_ROWS;
    if (is_rows && !pages->is_whole) return 0;
    memcpy(want, pages->records[walk->table] + BEL_RECORD_NUMBERS, sizeof want);
    if (memcmp(want, found, sizeof want) != 0) {
        return bel__why_say(why, BEL_ECORRUPT,
                            "tree/data.mdb is damaged: the counts of a table are wrong");
    }
    if (!is_rows || (pages->rows == pages->state.rows && pages->sum == pages->state.sum)) return 0;
    return bel__why_say(why, BEL_ECORRUPT, "tree is damaged: its rows do not match its counts");
}

/* Handles the next child, or all nodes, of the page on top of the stack, or pops the page. */
static int visit(struct bel_pages *pages, struct bel_why *why)
{
    struct walk *walk = &pages->walk;
    unsigned top = walk->depth - 1;
    const struct bel_page_want *want = &walk->stack[top];
    unsigned count = bel__page_count(&pages->file, want->page);
    if (want->kind == BEL_PAGE_BRANCH && walk->places[top] < count) {
        struct bel_page_want child = bel__page_want_child(&pages->file, want, walk->places[top]++,
                                                          kind_at(walk, walk->depth));
        return push(pages, &child, why);
    }
    int err = 0;
    for (unsigned i = walk->places[top]; want->kind == BEL_PAGE_LEAF && i < count && !err; i++) {
        err = visit_node(pages, want->page, i, why);
    }
    walk->depth--;
    return err;
}

/* Checks that every page was visited. */
static int check_left(const struct bel_pages *pages, struct bel_why *why)
{
    uint64_t page = BEL_PAGE_FIRST;
    if (!pages->is_whole || pages->left == 0) return 0;
    while (pages->met[page]) {
        page++;
    }
    return bel__page_damaged(page, "is neither used nor free", why);
}

int bel__pages_step(struct bel_pages *pages, size_t pages_max, struct bel_why *why)
{
    uint64_t left = pages->left;
    int err = 0;
    for (size_t i = 0; i < pages_max; i++) {
        if (!pages->is_walking) {
            if (pages->table == TABLES) return check_left(pages, why);
            err = begin_table(pages, pages->table, why);
            pages->is_walking = true;
        } else if (pages->walk.depth > 0) {
            err = visit(pages, why);
        } else {
            err = end_table(pages, why);
            pages->is_walking = false;
            pages->table++;
        }
        if (err) return err;
        if (left - pages->left >= pages_max) break; /* long lists of free pages */
    }
    return BEL_EBUSY;
}

/* Walks one table to its end. */
static int walk_table(struct bel_pages *pages, enum bel_page_table table, struct bel_why *why)
{
    int err = begin_table(pages, table, why);
    while (!err && pages->walk.depth > 0) {
        err = visit(pages, why);
    }
    return err ? err : end_table(pages, why);
}

/* --- the file --- */

static int check_meta(const struct bel_pages *pages, uint64_t page, struct bel_why *why)
{
    const struct bel_page_file *file = &pages->file;
    size_t offset = (size_t)page * file->page_bytes;
    if (bel__page_u16(file, offset + BEL_PAGE_FLAGS) != BEL_PAGE_META ||
        bel__page_u32(file, offset + BEL_META_MAGIC) != magic) {
        return bel__page_damaged(page, "is not a meta page", why);
    }
    if (bel__page_u32(file, offset + BEL_META_FREE) != file->page_bytes) {
        return bel__page_damaged(page, "has an invalid page size", why);
    }
    uint64_t transaction = bel__page_u64(file, offset + BEL_META_TRANSACTION);
    if (transaction != 0 && transaction % 2 != page) {
        return bel__page_damaged(page, "has an invalid transaction", why);
    }
    if (bel__page_u32(file, offset + BEL_META_VERSION) == 1) return 0;
    return bel__why_say(why, BEL_EUNSUPPORTED, "tree/data.mdb has an unknown version");
}

/* Copies the meta page of a transaction, 0 for the last one. A writer may replace the page
 * meanwhile, which changes its transaction. */
static int copy_meta(const struct bel_pages *pages, uint64_t transaction,
                     unsigned char out[BEL_META_BYTES])
{
    const struct bel_page_file *file = &pages->file;
    size_t second = file->page_bytes + BEL_META_TRANSACTION;
    uint64_t last[2] = {bel__page_u64(file, BEL_META_TRANSACTION), bel__page_u64(file, second)};
    if (transaction == 0) transaction = last[1] > last[0] ? last[1] : last[0];
    unsigned which = last[1] == transaction ? 1 : 0;
    memcpy(out, file->map + which * file->page_bytes, BEL_META_BYTES);
    uint64_t copied, after = bel__page_u64(file, which == 1 ? second : BEL_META_TRANSACTION);
    memcpy(&copied, out + BEL_META_TRANSACTION, sizeof copied);
    return copied == transaction && after == transaction ? 0 : BEL_ESTALE;
}

int bel__pages_begin(struct bel_pages *pages, uint64_t transaction, const struct bel_key *from,
                     struct bel_why *why)
{
    unsigned char meta[BEL_META_BYTES];
    uint64_t last;
    assert(pages->file.page_bytes >= BEL_PAGE_BYTES_MIN);
    int err = check_meta(pages, 0, why);
    if (!err) err = check_meta(pages, 1, why);
    if (!err) err = copy_meta(pages, transaction, meta);
    if (err) return err;
    memcpy(&pages->transaction, meta + BEL_META_TRANSACTION, sizeof pages->transaction);
    memcpy(&last, meta + BEL_META_LAST, sizeof last);
    if (last < BEL_PAGE_FIRST - 1 ||
        last >= pages->file.map_bytes / pages->file.page_bytes + EXCESS_PAGES) {
        return bel__page_damaged(last, "is the last page and does not exist", why);
    }
    memcpy(pages->records[BEL_PAGES_FREE], meta + BEL_META_FREE, BEL_RECORD_BYTES);
    memcpy(pages->records[BEL_PAGES_TABLES], meta + BEL_META_TABLES, BEL_RECORD_BYTES);
    pages->has_record[BEL_PAGES_FREE] = pages->has_record[BEL_PAGES_TABLES] = true;
    pages->has_record[BEL_PAGES_STATE] = pages->has_record[BEL_PAGES_ROWS] = false;
    uint64_t root;
    unsigned levels;
    err = read_record(pages, BEL_PAGES_FREE, &root, &levels, why);
    if (err) return err;
    pages->is_walking = false;
    pages->is_whole = from == NULL;
    pages->from = pages->next = from != NULL ? *from : (struct bel_key){{0, 0, 0}};
    bel__key_write(&pages->from, pages->from_bytes);
    pages->table = 0;
    pages->rows = pages->sum = 0;
    pages->state_offset = 0;
    pages->file.count = last + 1;
    pages->left = pages->file.count - BEL_PAGE_FIRST;
    free(pages->met);
    pages->met = calloc(pages->file.count + 1, 1);
    return pages->met == NULL ? BEL_ENOMEM : 0;
}

void bel__pages_progress(const struct bel_pages *pages, struct bel_pages_progress *out)
{
    *out = (struct bel_pages_progress){.pages = pages->file.count,
                                       .pages_done = pages->file.count - pages->left,
                                       .rows = pages->rows,
                                       .is_whole = pages->is_whole,
                                       .next = pages->next};
}

/* Reads the page size, which both meta pages have. */
static int find_page_size(struct bel_pages *pages, struct bel_why *why)
{
    size_t meta_bytes = BEL_PAGE_BYTES_MIN;
    if (pages->file.map_bytes < 2 * meta_bytes) return bel__page_damaged(0, "does not exist", why);
    uint64_t page_bytes = bel__page_u32(&pages->file, BEL_META_FREE);
    bool is_power = page_bytes != 0 && (page_bytes & (page_bytes - 1)) == 0;
    if (!is_power || page_bytes < BEL_PAGE_BYTES_MIN || page_bytes > BEL_PAGE_BYTES_MAX ||
        pages->file.map_bytes < 2 * page_bytes) {
        return bel__page_damaged(0, "has an invalid page size", why);
    }
    pages->file.page_bytes = (size_t)page_bytes;
    return 0;
}

int bel__pages_open(int file, struct bel_pages **out, struct bel_why *why)
{
    struct stat info;
    if (fstat(file, &info) != 0) return BEL_EIO;
    if (info.st_size == 0) return bel__page_damaged(0, "does not exist", why);
    struct bel_pages *pages = calloc(1, sizeof *pages);
    if (pages == NULL) return BEL_ENOMEM;
    pages->file.map_bytes = (size_t)info.st_size;
    void *map = mmap(NULL, pages->file.map_bytes, PROT_READ, MAP_SHARED, file, 0);
    if (map == MAP_FAILED) {
        free(pages);
        return errno == ENOMEM ? BEL_ENOMEM : BEL_EIO;
    }
    pages->file.map = map;
    int err = find_page_size(pages, why);
    if (!err) bel__map_fault_add(map, pages->file.map_bytes, pages->file.page_bytes);
    if (err) {
        bel__pages_close(pages);
        return err;
    }
    *out = pages;
    return 0;
}

void bel__pages_close(struct bel_pages *pages)
{
    if (pages == NULL) return;
    bel__map_fault_remove(pages->file.map);
    (void)munmap((void *)(uintptr_t)pages->file.map, pages->file.map_bytes);
    free(pages->met);
    free(pages);
}

static int walk_head(struct bel_pages *pages, bool writes, struct bel_why *why)
{
    int err = writes ? walk_table(pages, BEL_PAGES_FREE, why) : 0;
    if (!err) err = walk_table(pages, BEL_PAGES_TABLES, why);
    if (!err) err = walk_table(pages, BEL_PAGES_STATE, why);
    if (err || (pages->state_offset != 0 && pages->has_record[BEL_PAGES_ROWS])) return err;
    return bel__page_damaged(0, "leads to no state", why);
}

int bel__pages_read_head(int file, uint64_t transaction, bool writes, struct bel_pages_head *out,
                         struct bel_why *why)
{
    struct bel_pages *pages = NULL;
    uint64_t root;
    unsigned levels;
    int err = bel__pages_open(file, &pages, why);
    if (err) return err;
    assert(pages != NULL);
    err = bel__pages_begin(pages, transaction, NULL, why);
    if (!err) err = walk_head(pages, writes, why);
    if (!err) err = read_record(pages, BEL_PAGES_ROWS, &root, &levels, why);
    if (!err) {
        out->state = pages->state;
        out->state_offset = pages->state_offset;
        out->page_count = pages->file.count;
        memcpy(out->rows, pages->records[BEL_PAGES_ROWS], sizeof out->rows);
    }
    bel__pages_close(pages);
    return err;
}

static int check_file(int file, struct bel_why *why)
{
    struct bel_pages *pages = NULL;
    int err = bel__pages_open(file, &pages, why);
    if (err) return err;
    assert(pages != NULL);
    err = bel__pages_begin(pages, 0, NULL, why);
    if (!err) err = BEL_EBUSY;
    while (err == BEL_EBUSY) {
        err = bel__pages_step(pages, STEP_PAGES, why);
    }
    bel__pages_close(pages);
    return err;
}

/* Returns whether an open folder has any entry. Takes the descriptor. */
static bool has_entries(int folder)
{
    DIR *entries = fdopendir(folder);
    bool found = false;
    if (entries == NULL) {
        (void)close(folder);
        return true;
    }
    while (!found) {
        const struct dirent *entry = readdir(entries); /* NOLINT(concurrency-mt-unsafe): ours */
        if (entry == NULL) break;
        found = strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    }
    (void)closedir(entries);
    return found;
}

int bel__tree_open_file(const char *path, int *out, struct bel_why *why)
{
    struct stat info;
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) return errno == ENOENT ? BEL_ENOTFOUND : BEL_EIO;
    int file = openat(folder, "data.mdb", O_RDONLY | O_CLOEXEC);
    if (file < 0 && errno == ENOENT) {
        if (!has_entries(folder)) return BEL_ENOTFOUND;
        return bel__why_say(why, BEL_ECORRUPT, "tree/data.mdb is missing");
    }
    (void)close(folder);
    if (file < 0) return BEL_EIO;
    int failed = fstat(file, &info);
    if (!failed && info.st_size > 0) {
        *out = file;
        return 0;
    }
    (void)close(file);
    return failed ? BEL_EIO : bel__why_say(why, BEL_ECORRUPT, "tree/data.mdb is empty");
}

int bel__tree_pages_check(const char *path, struct bel_why *why)
{
    int file = -1;
    int err = bel__tree_open_file(path, &file, why);
    if (err) return err;
    assert(file >= 0);
    err = check_file(file, why);
    (void)close(file);
    return err;
}
