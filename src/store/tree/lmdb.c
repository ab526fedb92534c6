/* SPDX-License-Identifier: MIT */

/*
 * A tree on LMDB: a B+ tree in one file, mapped for reading. Writes copy pages, and a transaction
 * is committed when the meta page with its root is written.
 *
 *     table "rows"     key, 24 bytes    ->  checksum u32 | value
 *     table "state"    "state"          ->  epoch, rows, sum: see state.h
 *
 * Numbers are little-endian, except in keys, which are big-endian so that they sort. A row has a
 * checksum because LMDB's pages have none. The count and the sum of the rows are stored in the same
 * transaction as the rows, because a damaged page can lose rows.
 *
 * LMDB does not validate pages, and damaged ones may crash it or give wrong answers. So LMDB finds
 * no rows here: lookup.h does. The pages that LMDB will use for a write are checked before, in each
 * transaction; see path_check.h and bel__pages_read_head(). Only in the mode BEL_TREE_READ, in
 * which another process may write, LMDB reads by itself.
 *
 * The reader is one long-lived read transaction. A refresh renews it, without a system call. LMDB
 * does not reuse the pages that it may read, so the file grows if the store does not refresh.
 *
 * The map is as large as the process may have, because it cannot grow during a read transaction. It
 * takes address space, but neither memory nor disk.
 *
 * LMDB does its own I/O, not through struct bel_io. The simulator uses the tree in memory.
 */
#include "store/io/row.h"
#include "store/tree/lookup.h"
#include "store/tree/map_fault.h"
#include "store/tree/pages.h"
#include "store/tree/path_check.h"
#include "store/tree/prefetch.h"
#include "store/tree/state.h"
#include "store/tree/tree.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <lmdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum {
    CHECKSUM_BYTES = 4,
    FILE_MODE = 0600,
    FOLDER_MODE = 0700,
    PAGE_HEADER_BYTES = 16, /* in LMDB's format */
    PAGE_BYTES_MIN = 4096,
    META_PAGES = 2,
    LOCKS_BYTES = 8192, /* of LMDB's file of locks, with its default number of readers */
    FREE_TABLE = 0,     /* LMDB's handle of the table of free pages */
    RENEWALS_MAX = 5,   /* of a reader whose meta page is overwritten meanwhile */
};

#define MAP_BYTES_MAX  (UINT64_C(1) << 40)
#define MAP_BYTES_MIN  (UINT64_C(1) << 24)
#define SPACE_LEFT_MIN (UINT64_C(1) << 24) /* if less is free, EIO means a full disk */

static_assert((int)CHECKSUM_BYTES == (int)BEL_ROW_CHECKSUM_BYTES, "one format");
static_assert(BEL_STORE_VALUE_BYTES_MAX + CHECKSUM_BYTES <= PAGE_BYTES_MIN - PAGE_HEADER_BYTES,
              "a value in an overflow page needs only one, so LMDB need not find adjacent pages");

struct lmdb_tree {
    struct bel_tree tree;
    MDB_env *env;
    bool is_twin;                 /* `env` belongs to another tree */
    MDB_dbi tables, rows, states; /* `tables` has the records of the other two */

    const unsigned char *map;          /* NULL: not known, in the mode BEL_TREE_READ */
    struct bel_path_check *read_check; /* of pages not yet checked; or NULL */
    struct bel_path_check *write_check;
    struct bel_lookup lookup;              /* of the reader, if the map is known */
    struct bel_why damage, writing_damage; /* found beside the checks */

    MDB_txn *reader;
    MDB_cursor *read_cursor;
    struct bel_tree_state seen;
    size_t seen_transaction; /* the one that `seen` and `lookup` belong to */
    uint64_t written_epoch;  /* of the last transaction committed here */

    MDB_txn *writer; /* NULL outside a transaction, and after a commit that failed */
    MDB_cursor *write_cursor;
    struct bel_tree_state next; /* the state that the transaction will commit */
    struct bel_prefetch prefetch;
    unsigned char value[CHECKSUM_BYTES + BEL_STORE_VALUE_BYTES_MAX];
};

static_assert(offsetof(struct lmdb_tree, tree) == 0, "a bel_tree can be cast to an lmdb_tree");

static struct lmdb_tree *of(struct bel_tree *tree)
{
    assert(tree != NULL);
    return (struct lmdb_tree *)tree;
}

/* Converts a return code of LMDB to a BEL_E*. */
static int error_of(int answer)
{
    switch (answer) {
    case 0:
        return 0;
    case MDB_NOTFOUND:
        return BEL_ENOTFOUND;
    case MDB_MAP_FULL:
    case MDB_TXN_FULL:
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
        return BEL_EFULL;
    case ENOMEM:
    case EAGAIN:
        return BEL_ENOMEM;
    case MDB_PAGE_NOTFOUND:
    case MDB_CORRUPTED:
    case MDB_INVALID:
    case MDB_CURSOR_FULL:
    case MDB_INCOMPATIBLE:
    case MDB_BAD_VALSIZE:
    case MDB_BAD_DBI:
    case MDB_MAP_RESIZED: /* only this process writes, within its map */
        return BEL_ECORRUPT;
    case MDB_VERSION_MISMATCH:
        return BEL_EUNSUPPORTED;
    default:
        return BEL_EIO;
    }
}

/* Converts a return code of a write. LMDB returns EIO for a short write, which is what happens to a
 * large write when the disk becomes full. */
static int error_of_writing(struct lmdb_tree *lmdb, int answer)
{
    struct statvfs disk;
    mdb_filehandle_t file;
    if (answer != EIO || mdb_env_get_fd(lmdb->env, &file) != 0) return error_of(answer);
    if (fstatvfs(file, &disk) != 0) return BEL_EIO;
    return (uint64_t)disk.f_bavail * disk.f_frsize < SPACE_LEFT_MIN ? BEL_EFULL : BEL_EIO;
}

static MDB_val val_of(void *data, size_t bytes)
{
    return (MDB_val){.mv_size = bytes, .mv_data = data};
}

static int read_state(struct lmdb_tree *lmdb, MDB_txn *txn, struct bel_tree_state *out)
{
    char name[] = "state";
    MDB_val key = val_of(name, sizeof name - 1), data;
    int err = error_of(mdb_get(txn, lmdb->states, &key, &data));
    if (err == BEL_ENOTFOUND) return BEL_ECORRUPT; /* the state is created with the tables */
    if (err) return err;
    return bel__tree_state_read((struct bel_view){data.mv_data, data.mv_size}, out);
}

static int write_state(struct lmdb_tree *lmdb, MDB_txn *txn, const struct bel_tree_state *state)
{
    char name[] = "state";
    unsigned char bytes[BEL_TREE_STATE_BYTES];
    MDB_val key = val_of(name, sizeof name - 1), data = val_of(bytes, sizeof bytes);
    bel__tree_state_write(state, bytes);
    return mdb_put(txn, lmdb->states, &key, &data, 0);
}

/* Splits stored data into checksum and value. Returns 0, or BEL_ECORRUPT if it is too short. */
static int row_of(MDB_val data, uint32_t *out_checksum, struct bel_view *out)
{
    uint32_t checksum;
    if (data.mv_size < CHECKSUM_BYTES) return BEL_ECORRUPT;
    if (data.mv_size > CHECKSUM_BYTES + BEL_STORE_VALUE_BYTES_MAX) return BEL_ECORRUPT;
    memcpy(&checksum, data.mv_data, sizeof checksum);
    *out_checksum = le32toh(checksum);
    *out = (struct bel_view){(const unsigned char *)data.mv_data + CHECKSUM_BYTES,
                             data.mv_size - CHECKSUM_BYTES};
    return 0;
}

/* Checks the row and returns its value. */
static int give(struct lmdb_tree *lmdb, const struct bel_key *key, MDB_val data,
                struct bel_view *out)
{
    uint32_t checksum;
    struct bel_view value;
    int err = row_of(data, &checksum, &value);
    if (!err && bel__row_checksum(key, value) != checksum) err = BEL_ECORRUPT;
    if (err) {
        return bel__why_say(&lmdb->damage, err,
                            "tree/data.mdb is damaged: row %016llx%016llx%016llx is not as it was "
                            "stored",
                            (unsigned long long)key->words[0], (unsigned long long)key->words[1],
                            (unsigned long long)key->words[2]);
    }
    *out = value;
    return 0;
}

/* Checks the pages that a read of a key will use, unless all pages have been checked. */
static int check_read(struct lmdb_tree *lmdb, const struct bel_key *key)
{
    if (lmdb->read_check == NULL) return 0;
    return bel__path_check_key(lmdb->read_check, key, BEL_PATH_READ);
}

static int check_write(struct lmdb_tree *lmdb, const struct bel_key *key)
{
    bool is_checked = lmdb->write_check->skips_rows;
    return bel__path_check_key(lmdb->write_check, key,
                               is_checked ? BEL_PATH_TOUCH : BEL_PATH_WRITE);
}

/* Reads with LMDB, which does not check pages. */
static int get_unchecked(struct lmdb_tree *lmdb, const struct bel_key *key, struct bel_view *out)
{
    unsigned char bytes[BEL_KEY_BYTES];
    MDB_val name = val_of(bytes, sizeof bytes), data = {0};
    bel__key_write(key, bytes);
    int err = error_of(mdb_get(lmdb->reader, lmdb->rows, &name, &data));
    return err ? err : give(lmdb, key, data, out);
}

static int lmdb_get(struct bel_tree *tree, const struct bel_key *key, struct bel_view *out)
{
    struct lmdb_tree *lmdb = of(tree);
    if (lmdb->map == NULL) return get_unchecked(lmdb, key, out);
    int err = check_read(lmdb, key);
    return err ? err : bel__lookup_get(&lmdb->lookup, key, out);
}

static int seek_unchecked(struct lmdb_tree *lmdb, struct bel_key *key, struct bel_view *out)
{
    unsigned char bytes[BEL_KEY_BYTES];
    MDB_val name = val_of(bytes, sizeof bytes), data = {0};
    bel__key_write(key, bytes);
    int err = error_of(mdb_cursor_get(lmdb->read_cursor, &name, &data, MDB_SET_RANGE));
    if (err) return err;
    if (name.mv_size != BEL_KEY_BYTES) return BEL_ECORRUPT;
    struct bel_key found = bel__key_read(name.mv_data);
    err = give(lmdb, &found, data, out);
    if (!err) *key = found;
    return err;
}

static int lmdb_seek(struct bel_tree *tree, struct bel_key *key, struct bel_view *out)
{
    struct lmdb_tree *lmdb = of(tree);
    if (lmdb->map == NULL) return seek_unchecked(lmdb, key, out);
    int err = check_read(lmdb, key);
    return err ? err : bel__lookup_seek(&lmdb->lookup, key, out);
}

/* Checks what LMDB needs of a transaction's snapshot before it can use the rows. */
static int read_head(struct lmdb_tree *lmdb, uint64_t transaction, bool writes,
                     struct bel_pages_head *out)
{
    mdb_filehandle_t file;
    struct bel_why *why = writes ? &lmdb->writing_damage : &lmdb->damage;
    uint64_t epoch = writes ? lmdb->written_epoch : lmdb->seen.epoch;
    struct stat info;
    int err = error_of(mdb_env_get_fd(lmdb->env, &file));
    if (!err && writes && fstat(file, &info) == 0 && info.st_nlink == 0) {
        return bel__why_say(why, BEL_ECORRUPT, "tree/data.mdb was deleted by another process");
    }
    if (!err) err = bel__pages_read_head(file, transaction, writes, out, why);
    if (err || out->state.epoch >= epoch) return err;
    return bel__why_say(why, BEL_ECORRUPT, "tree/data.mdb is damaged: its state is an older one");
}

static struct bel_view record_of(const struct bel_pages_head *head)
{
    return (struct bel_view){head->rows, sizeof head->rows};
}

/* Sets the state that the reader sees and where its lookups start. Returns BEL_ESTALE if a writer
 * has overwritten the meta page meanwhile. */
static int see(struct lmdb_tree *lmdb)
{
    struct bel_pages_head head;
    size_t transaction = mdb_txn_id(lmdb->reader);
    if (lmdb->map == NULL) return read_state(lmdb, lmdb->reader, &lmdb->seen);
    if (transaction == lmdb->seen_transaction) return 0;
    int err = read_head(lmdb, transaction, false, &head);
    if (!err) err = bel__lookup_start(&lmdb->lookup, record_of(&head), head.page_count);
    if (!err && lmdb->read_check != NULL) {
        err = bel__path_check_start(lmdb->read_check, record_of(&head), head.page_count);
    }
    if (err) return err;
    lmdb->seen = head.state;
    lmdb->seen_transaction = transaction;
    return 0;
}

static int renew(struct lmdb_tree *lmdb)
{
    mdb_txn_reset(lmdb->reader);
    int err = error_of(mdb_txn_renew(lmdb->reader));
    if (!err) err = error_of(mdb_cursor_renew(lmdb->reader, lmdb->read_cursor));
    return err ? err : see(lmdb);
}

/* The meta page of a reader is overwritten by the second commit after it, so several renewals in
 * turn that come too late mean that no meta page has the number of the transaction. */
static int lmdb_refresh(struct bel_tree *tree)
{
    int err = BEL_ESTALE;
    for (int i = 0; i < RENEWALS_MAX && err == BEL_ESTALE; i++) {
        err = renew(of(tree));
    }
    if (err != BEL_ESTALE) return err;
    return bel__why_say(&of(tree)->damage, BEL_ECORRUPT,
                        "tree/data.mdb is damaged: no meta page has the last transaction");
}

static uint64_t lmdb_epoch(const struct bel_tree *tree)
{
    assert(tree != NULL);
    return ((const struct lmdb_tree *)tree)->seen.epoch;
}

static void lmdb_abort(struct bel_tree *tree)
{
    struct lmdb_tree *lmdb = of(tree);
    if (lmdb->writer == NULL) return;
    mdb_txn_abort(lmdb->writer); /* closes the cursor, too */
    lmdb->writer = NULL;
}

/* Checks what a transaction will use, and starts the prefetch and the check of its pages. */
static int start_writer(struct lmdb_tree *lmdb)
{
    struct bel_pages_head head;
    int err = read_head(lmdb, (uint64_t)mdb_txn_id(lmdb->writer) - 1, true, &head);
    if (err == BEL_ESTALE) {
        return bel__why_say(&lmdb->writing_damage, BEL_ECORRUPT,
                            "tree/data.mdb is damaged: no meta page has the last transaction");
    }
    if (err) return err;
    lmdb->next = head.state;
    bel__prefetch_start(&lmdb->prefetch, record_of(&head));
    err = bel__path_check_start(lmdb->write_check, record_of(&head), head.page_count);
    if (!err) bel__path_check_forget(lmdb->write_check);
    return err;
}

static int lmdb_begin(struct bel_tree *tree)
{
    struct lmdb_tree *lmdb = of(tree);
    assert(lmdb->writer == NULL && lmdb->write_check != NULL);
    int dead_readers; /* of processes that were killed: they would keep pages from being reused */
    int err = error_of(mdb_reader_check(lmdb->env, &dead_readers));
    if (!err) err = error_of(mdb_txn_begin(lmdb->env, NULL, 0, &lmdb->writer));
    if (err) return err;
    err = start_writer(lmdb);
    if (!err) err = error_of(mdb_cursor_open(lmdb->writer, lmdb->rows, &lmdb->write_cursor));
    if (err) lmdb_abort(tree);
    return err;
}

static void lmdb_expect(struct bel_tree *tree, const struct bel_key *key)
{
    assert(of(tree)->writer != NULL);
    bel__prefetch_expect(&of(tree)->prefetch, key);
}

/* Subtracts a row that is replaced or removed from the counts. */
static int uncount(struct lmdb_tree *lmdb, const struct bel_key *key, MDB_val data)
{
    uint32_t checksum;
    struct bel_view value;
    int err = row_of(data, &checksum, &value);
    if (err) return err;
    lmdb->next.rows--;
    lmdb->next.sum -= bel__row_sum(key, checksum, value.bytes);
    return 0;
}

static int lmdb_put(struct bel_tree *tree, const struct bel_key *key, struct bel_view value)
{
    struct lmdb_tree *lmdb = of(tree);
    unsigned char bytes[BEL_KEY_BYTES];
    uint32_t checksum = bel__row_checksum(key, value), stored = htole32(checksum);
    assert(lmdb->writer != NULL);
    assert(value.bytes <= BEL_STORE_VALUE_BYTES_MAX);
    int err = check_write(lmdb, key);
    if (err) return err;
    bel__key_write(key, bytes);
    memcpy(lmdb->value, &stored, sizeof stored);
    if (value.bytes > 0) memcpy(lmdb->value + CHECKSUM_BYTES, value.data, value.bytes);

    MDB_val name = val_of(bytes, sizeof bytes);
    MDB_val ours = val_of(lmdb->value, CHECKSUM_BYTES + value.bytes), data = ours;
    int answer = mdb_cursor_put(lmdb->write_cursor, &name, &data, MDB_NOOVERWRITE);
    if (answer == MDB_KEYEXIST) {
        err = uncount(lmdb, key, data);
        if (err) return err;
        data = ours;
        answer = mdb_cursor_put(lmdb->write_cursor, &name, &data, MDB_CURRENT);
    }
    if (answer) return error_of_writing(lmdb, answer);
    lmdb->next.rows++;
    lmdb->next.sum += bel__row_sum(key, checksum, value.bytes);
    return 0;
}

static int lmdb_remove(struct bel_tree *tree, const struct bel_key *key)
{
    struct lmdb_tree *lmdb = of(tree);
    unsigned char bytes[BEL_KEY_BYTES];
    MDB_val name = val_of(bytes, sizeof bytes), data;
    assert(lmdb->writer != NULL);
    int err = check_write(lmdb, key);
    if (err) return err;
    bel__key_write(key, bytes);
    int answer = mdb_cursor_get(lmdb->write_cursor, &name, &data, MDB_SET);
    if (answer == MDB_NOTFOUND) return 0;
    if (answer) return error_of(answer);
    err = uncount(lmdb, key, data);
    if (!err) err = bel__path_check_shrink(lmdb->write_check, key, data.mv_size);
    return err ? err : error_of_writing(lmdb, mdb_cursor_del(lmdb->write_cursor, 0));
}

static int lmdb_commit(struct bel_tree *tree, uint64_t epoch)
{
    struct lmdb_tree *lmdb = of(tree);
    assert(lmdb->writer != NULL);
    assert(epoch >= lmdb->next.epoch);
    lmdb->next.epoch = epoch;
    mdb_cursor_close(lmdb->write_cursor);
    int answer = write_state(lmdb, lmdb->writer, &lmdb->next);
    if (answer) return error_of_writing(lmdb, answer);
    answer = mdb_txn_commit(lmdb->writer);
    lmdb->writer = NULL; /* LMDB has freed it, even on failure */
    if (!answer) lmdb->written_epoch = epoch;
    return error_of_writing(lmdb, answer);
}

/* Returns the number of pages in use, as the reader sees the tree. */
static uint64_t count_pages(const struct lmdb_tree *lmdb)
{
    const MDB_dbi tables[] = {FREE_TABLE, lmdb->tables, lmdb->rows, lmdb->states};
    uint64_t pages = META_PAGES;
    MDB_stat stat;
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        if (mdb_stat(lmdb->reader, tables[i], &stat) != 0) return UINT64_MAX;
        pages += stat.ms_branch_pages + stat.ms_leaf_pages + stat.ms_overflow_pages;
    }
    return pages;
}

static void lmdb_stats(struct bel_tree *tree, struct bel_tree_stats *out)
{
    const struct lmdb_tree *lmdb = of(tree);
    MDB_stat stat;
    MDB_envinfo info;
    *out = (struct bel_tree_stats){.rows = lmdb->seen.rows, .sum = lmdb->seen.sum};
    if (mdb_env_stat(lmdb->env, &stat) != 0 || mdb_env_info(lmdb->env, &info) != 0) return;
    uint64_t pages = info.me_last_pgno + 1, used = count_pages(lmdb);
    out->bytes = pages * stat.ms_psize;
    out->free_bytes = used < pages ? (pages - used) * stat.ms_psize : 0;
}

static void lmdb_trust(struct bel_tree *tree)
{
    struct lmdb_tree *lmdb = of(tree);
    assert(lmdb->writer == NULL);
    bel__path_check_destroy(lmdb->read_check);
    lmdb->read_check = NULL;
    if (lmdb->write_check != NULL) lmdb->write_check->skips_rows = true;
}

static const char *lmdb_damage(const struct bel_tree *tree)
{
    const struct lmdb_tree *lmdb = (const struct lmdb_tree *)tree;
    const struct bel_path_check *read = lmdb->read_check, *write = lmdb->write_check;
    if (read != NULL && read->why.text[0] != 0) return read->why.text;
    if (write != NULL && write->why.text[0] != 0) return write->why.text;
    if (lmdb->lookup.why.text[0] != 0) return lmdb->lookup.why.text;
    return lmdb->damage.text[0] != 0 ? lmdb->damage.text : lmdb->writing_damage.text;
}

static void lmdb_close(struct bel_tree *tree)
{
    struct lmdb_tree *lmdb = of(tree);
    lmdb_abort(tree);
    bel__path_check_destroy(lmdb->read_check);
    bel__path_check_destroy(lmdb->write_check);
    if (lmdb->map != NULL && !lmdb->is_twin) bel__map_fault_remove(lmdb->map);
    if (lmdb->read_cursor != NULL) mdb_cursor_close(lmdb->read_cursor);
    if (lmdb->reader != NULL) mdb_txn_abort(lmdb->reader);
    if (lmdb->env != NULL && !lmdb->is_twin) mdb_env_close(lmdb->env);
    bel__prefetch_finish(&lmdb->prefetch);
    free(lmdb);
}

/* Returns the largest map size to try: at most half of the process's limit of address space. */
static uint64_t map_bytes_first(uint64_t wanted)
{
    struct rlimit limit;
    uint64_t bytes = wanted > 0 ? wanted : MAP_BYTES_MAX;
    if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return bytes;
    while (bytes > MAP_BYTES_MIN && bytes > limit.rlim_cur / 2) {
        bytes /= 2;
    }
    return bytes;
}

/* Gives the file of LMDB's locks its blocks. LMDB maps the file, and a process that touches
 * a mapped page for which the disk has no room is killed. Returns 0 or BEL_EFULL; other errors are
 * LMDB's to report. */
static int fill_locks(const char *path)
{
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) return 0;
    int file = openat(folder, "lock.mdb", O_RDWR | O_CREAT | O_CLOEXEC, FILE_MODE);
    int failed = file < 0 ? errno : 0;
    if (file >= 0 && fallocate(file, 0, 0, LOCKS_BYTES) != 0) failed = errno;
    if (file >= 0) close(file);
    close(folder);
    return failed == ENOSPC || failed == EDQUOT ? BEL_EFULL : 0;
}

static int open_env_mapped(struct lmdb_tree *lmdb, const struct bel_tree_options *options,
                           uint64_t map_bytes)
{
    unsigned flags = MDB_NOTLS | MDB_NORDAHEAD;
    int err = fill_locks(options->path);
    if (options->mode == BEL_TREE_READ) flags |= MDB_RDONLY;
    if (err && options->mode != BEL_TREE_READ) return ENOSPC;
    if (err) flags |= MDB_NOLOCK; /* who only reads, on a full disk, has locked the directory */
    int answer = mdb_env_create(&lmdb->env);
    if (!answer) answer = mdb_env_set_maxdbs(lmdb->env, 2);
    if (!answer) answer = mdb_env_set_mapsize(lmdb->env, map_bytes);
    if (!answer) answer = mdb_env_open(lmdb->env, options->path, flags, FILE_MODE);
    if (!answer) return 0;
    if (lmdb->env != NULL) mdb_env_close(lmdb->env);
    lmdb->env = NULL;
    return answer;
}

static int open_env(struct lmdb_tree *lmdb, const struct bel_tree_options *options)
{
    uint64_t map_bytes = map_bytes_first(options->map_bytes);
    int answer = open_env_mapped(lmdb, options, map_bytes);
    while (answer == ENOMEM && map_bytes > MAP_BYTES_MIN) {
        map_bytes /= 2;
        answer = open_env_mapped(lmdb, options, map_bytes);
    }
    return answer == ENOENT ? BEL_ENOTFOUND : error_of(answer);
}

/* Opens the tables. In the mode BEL_TREE_CREATE creates them and their state if necessary. */
static int open_tables(struct lmdb_tree *lmdb, enum bel_tree_mode mode)
{
    MDB_txn *txn;
    unsigned create = mode == BEL_TREE_CREATE ? MDB_CREATE : 0;
    int err =
        error_of(mdb_txn_begin(lmdb->env, NULL, mode == BEL_TREE_READ ? MDB_RDONLY : 0, &txn));
    if (err) return err;
    int answer = mdb_dbi_open(txn, NULL, 0, &lmdb->tables);
    if (!answer) answer = mdb_dbi_open(txn, "rows", create, &lmdb->rows);
    if (!answer) answer = mdb_dbi_open(txn, "state", create, &lmdb->states);
    err = answer == MDB_NOTFOUND ? BEL_ECORRUPT : error_of_writing(lmdb, answer);
    if (!err && create != 0) {
        MDB_stat stat;
        err = error_of(mdb_stat(txn, lmdb->states, &stat));
        if (!err && stat.ms_entries == 0) {
            err = error_of_writing(lmdb, write_state(lmdb, txn, &(struct bel_tree_state){0}));
        }
    }
    if (err) {
        mdb_txn_abort(txn);
        return err;
    }
    return error_of_writing(lmdb, mdb_txn_commit(txn));
}

static int open_reader(struct lmdb_tree *lmdb)
{
    int err = error_of(mdb_txn_begin(lmdb->env, NULL, MDB_RDONLY, &lmdb->reader));
    return err ? err : error_of(mdb_cursor_open(lmdb->reader, lmdb->rows, &lmdb->read_cursor));
}

/* Initialises the lookup, and creates the path checks: `reads` for the reader, too. */
static int open_checks(struct lmdb_tree *lmdb, bool reads)
{
    mdb_filehandle_t file;
    MDB_stat stat;
    int err = error_of(mdb_env_get_fd(lmdb->env, &file));
    if (!err) err = error_of(mdb_env_stat(lmdb->env, &stat));
    if (err) return err;
    bel__lookup_init(&lmdb->lookup, lmdb->map, file, stat.ms_psize);
    if (reads) err = bel__path_check_create(lmdb->map, file, stat.ms_psize, &lmdb->read_check);
    if (!err && !lmdb->is_twin) {
        err = bel__path_check_create(lmdb->map, file, stat.ms_psize, &lmdb->write_check);
        if (!err) lmdb->write_check->skips_rows = !reads;
    }
    return err;
}

static int lmdb_twin(struct bel_tree *tree, struct bel_tree **out)
{
    struct lmdb_tree *lmdb = of(tree), *twin = malloc(sizeof *twin);
    if (twin == NULL) return BEL_ENOMEM;
    *twin = (struct lmdb_tree){.tree = lmdb->tree,
                               .env = lmdb->env,
                               .is_twin = true,
                               .map = lmdb->map,
                               .tables = lmdb->tables,
                               .rows = lmdb->rows,
                               .states = lmdb->states};
    int err = open_reader(twin);
    if (!err && twin->map != NULL) err = open_checks(twin, lmdb->read_check != NULL);
    if (!err) err = lmdb_refresh(&twin->tree);
    if (err) {
        lmdb_close(&twin->tree);
        return err;
    }
    *out = &twin->tree;
    return 0;
}

static int open_prefetch(struct lmdb_tree *lmdb)
{
    mdb_filehandle_t file;
    MDB_stat stat;
    int err = error_of(mdb_env_get_fd(lmdb->env, &file));
    if (!err) err = error_of(mdb_env_stat(lmdb->env, &stat));
    return err ? err : bel__prefetch_init(&lmdb->prefetch, file, stat.ms_psize);
}

/* Syncs the folder `path` (`below` is ".") or its parent (".."). */
static int sync_folder(const char *path, const char *below)
{
    int outer = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (outer < 0) return BEL_EIO;
    int folder = openat(outer, below, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int failed = folder < 0 || fsync(folder) != 0;
    if (folder >= 0) close(folder);
    close(outer);
    return failed ? BEL_EIO : 0;
}

static int make_folder(const char *path)
{
    if (mkdir(path, FOLDER_MODE) == 0 || errno == EEXIST) return 0;
    if (errno == ENOENT) return BEL_ENOTFOUND;
    return error_of(errno);
}

static int remove_files(const char *path)
{
    static const char *const names[] = {"data.mdb", "lock.mdb"};
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) return error_of(errno);
    int err = 0;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (unlinkat(folder, names[i], 0) != 0 && errno != ENOENT) err = BEL_EIO;
    }
    close(folder);
    return err;
}

/* Creates an empty tree in a temporary folder, after removing what an earlier attempt has left. */
static int make_in(const char *path, uint64_t map_bytes)
{
    struct lmdb_tree made = {0};
    struct bel_tree_options options = {.path = path, .map_bytes = map_bytes};
    int err = make_folder(path);
    if (!err) err = remove_files(path);
    if (!err) err = open_env(&made, &options);
    if (!err) err = open_tables(&made, BEL_TREE_CREATE);
    if (made.env != NULL) mdb_env_close(made.env);
    return err ? err : sync_folder(path, ".");
}

/* Creates a tree. A crash during LMDB's creation would leave a damaged file, so the tree is created
 * in a temporary folder and renamed when it is complete and durable. */
static int make_tree(const struct bel_tree_options *options)
{
    size_t bytes = strlen(options->path) + sizeof ".new";
    char *path = malloc(bytes);
    if (path == NULL) return BEL_ENOMEM;
    (void)snprintf(path, bytes, "%s.new", options->path);
    int err = make_in(path, options->map_bytes);
    if (!err && rename(path, options->path) != 0) err = error_of(errno);
    free(path);
    return err;
}

/* Checks that the file exists; and if `checks`, the pages that LMDB uses to open the tables. Then
 * sets `*out_offset` to the offset of the state in the file. */
static int check_file(const struct bel_tree_options *options, bool checks, size_t *out_offset)
{
    struct bel_why found = {0}, *why = options->why != NULL ? options->why : &found;
    struct bel_pages_head head = {0};
    int file = -1;
    int err = bel__tree_open_file(options->path, &file, why);
    if (err) return err;
    assert(file >= 0);
    if (checks) err = bel__pages_read_head(file, 0, false, &head, why);
    close(file);
    *out_offset = head.state_offset;
    return err;
}

/* Finds out where LMDB has mapped the file, which it does not tell. */
static int find_map(struct lmdb_tree *lmdb, size_t state_offset)
{
    char name[] = "state";
    MDB_val key = val_of(name, sizeof name - 1), data;
    MDB_envinfo info;
    MDB_stat stat;
    int err = error_of(mdb_get(lmdb->reader, lmdb->states, &key, &data));
    if (!err) err = error_of(mdb_env_info(lmdb->env, &info));
    if (!err) err = error_of(mdb_env_stat(lmdb->env, &stat));
    if (err) return err;
    lmdb->map = (const unsigned char *)data.mv_data - state_offset;
    bel__map_fault_add(lmdb->map, info.me_mapsize, stat.ms_psize);
    return 0;
}

static int open_all(struct lmdb_tree *lmdb, const struct bel_tree_options *given)
{
    struct bel_tree_options own = *given, *options = &own;
    bool creates = options->mode == BEL_TREE_CREATE, checks = options->mode != BEL_TREE_READ;
    size_t state_offset = 0;
    int err = check_file(options, checks, &state_offset);
    if (err == BEL_ENOTFOUND && creates) {
        err = make_tree(options);
        own.is_checked = true;
        if (!err) err = check_file(options, checks, &state_offset);
    }
    if (!err) err = open_env(lmdb, options);
    if (!err) err = open_tables(lmdb, creates ? BEL_TREE_OPEN : options->mode);
    if (!err) err = open_reader(lmdb);
    if (!err) err = open_prefetch(lmdb);
    if (!err && checks) err = find_map(lmdb, state_offset);
    if (!err && checks) err = open_checks(lmdb, !options->is_checked);
    if (!err) err = lmdb_refresh(&lmdb->tree);
    if (!err && creates) err = sync_folder(options->path, ".");
    if (!err && creates) err = sync_folder(options->path, "..");
    return err;
}

int bel__tree_lmdb_open(const struct bel_tree_options *options, struct bel_tree **out)
{
    assert(options->path != NULL);
    struct lmdb_tree *lmdb = malloc(sizeof *lmdb);
    if (lmdb == NULL) return BEL_ENOMEM;
    *lmdb = (struct lmdb_tree){
        .tree = {.get = lmdb_get,
                 .seek = lmdb_seek,
                 .refresh = lmdb_refresh,
                 .epoch = lmdb_epoch,
                 .begin = lmdb_begin,
                 .expect = lmdb_expect,
                 .put = lmdb_put,
                 .remove = lmdb_remove,
                 .commit = lmdb_commit,
                 .abort = lmdb_abort,
                 .twin = lmdb_twin,
                 .stats = lmdb_stats,
                 .trust = lmdb_trust,
                 .damage = lmdb_damage,
                 .close = lmdb_close},
    };
    int err = open_all(lmdb, options);
    if (err) {
        lmdb_close(&lmdb->tree);
        return err;
    }
    *out = &lmdb->tree;
    return 0;
}
