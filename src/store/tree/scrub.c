/* SPDX-License-Identifier: MIT */

/*
 * LMDB is used only to register the reader and to learn its transaction; the pages are read through
 * a map of our own. A snapshot is taken in this order, so that its pages cannot be reused:
 *
 *     register the reader  ->  its transaction T  ->  map the file  ->  copy the meta page of T
 *
 * The meta page of T is replaced by T + 2. If that happens before it is copied, a new snapshot is
 * taken.
 */
#include "store/tree/scrub.h"

#include "store/tree/pages.h"

#include <assert.h>
#include <errno.h>
#include <lmdb.h>

enum {
    FILE_MODE = 0600,
    ATTEMPTS_MAX = 100, /* to take a snapshot, while the writer commits very often */
};

#define MAP_BYTES_MAX (UINT64_C(1) << 40)
#define MAP_BYTES_MIN (UINT64_C(1) << 24)

struct scrub {
    const struct bel_scrub_options *options;
    struct bel_scrub_progress progress;
    MDB_env *env;
    MDB_txn *reader;
    struct bel_pages *pages;
    uint64_t last; /* the last page of the file when the snapshot was taken */
    size_t page_bytes;
    uint64_t rows_before; /* of earlier snapshots */
};

static int error_of(int answer)
{
    switch (answer) {
    case 0:
        return 0;
    case ENOENT:
        return BEL_ENOTFOUND;
    case ENOMEM:
        return BEL_ENOMEM;
    case MDB_READERS_FULL:
        return BEL_EFULL;
    case MDB_INVALID:
    case MDB_CORRUPTED:
        return BEL_ECORRUPT;
    default:
        return BEL_EIO;
    }
}

static int open_env(struct scrub *scrub, uint64_t map_bytes)
{
    int answer = mdb_env_create(&scrub->env);
    if (!answer) answer = mdb_env_set_mapsize(scrub->env, map_bytes);
    if (!answer) {
        answer = mdb_env_open(scrub->env, scrub->options->path, MDB_RDONLY | MDB_NOTLS, FILE_MODE);
    }
    if (answer && scrub->env != NULL) {
        mdb_env_close(scrub->env);
        scrub->env = NULL;
    }
    return answer;
}

static int open_env_mapped(struct scrub *scrub)
{
    MDB_stat stat;
    int answer = ENOMEM;
    for (uint64_t bytes = MAP_BYTES_MAX; answer == ENOMEM && bytes >= MAP_BYTES_MIN; bytes /= 2) {
        answer = open_env(scrub, bytes);
    }
    if (!answer) answer = mdb_env_stat(scrub->env, &stat);
    if (!answer) scrub->page_bytes = stat.ms_psize;
    return error_of(answer);
}

static int last_page(const struct scrub *scrub, uint64_t *out)
{
    MDB_envinfo info;
    int err = error_of(mdb_env_info(scrub->env, &info));
    if (!err) *out = info.me_last_pgno;
    return err;
}

static void release(struct scrub *scrub)
{
    bel__pages_close(scrub->pages);
    scrub->pages = NULL;
    if (scrub->reader != NULL) mdb_txn_abort(scrub->reader);
    scrub->reader = NULL;
}

/* Takes a snapshot and begins to check it, from a row on unless `from` is NULL. */
static int take(struct scrub *scrub, const struct bel_key *from, struct bel_why *why)
{
    int err = BEL_ESTALE;
    for (unsigned i = 0; err == BEL_ESTALE && i < ATTEMPTS_MAX; i++) {
        mdb_filehandle_t file = -1;
        release(scrub);
        err = error_of(mdb_txn_begin(scrub->env, NULL, MDB_RDONLY, &scrub->reader));
        if (!err) err = error_of(mdb_env_get_fd(scrub->env, &file));
        if (!err) err = bel__pages_open(file, &scrub->pages, why);
        if (!err) err = last_page(scrub, &scrub->last);
        if (!err) err = bel__pages_begin(scrub->pages, mdb_txn_id(scrub->reader), from, why);
    }
    scrub->progress.snapshots++;
    return err == BEL_ESTALE ? BEL_EIO : err;
}

/* Updates the progress, and takes a new snapshot if the file has grown too much. */
static int look(struct scrub *scrub, struct bel_why *why)
{
    struct bel_scrub_progress *progress = &scrub->progress;
    struct bel_pages_progress now;
    uint64_t last;
    int err = last_page(scrub, &last);
    if (err) return err;
    bel__pages_progress(scrub->pages, &now);
    progress->pages_done = now.pages_done;
    progress->pages = now.pages;
    progress->rows = scrub->rows_before + now.rows;
    progress->growth_bytes = last > scrub->last ? (last - scrub->last) * scrub->page_bytes : 0;
    if (progress->growth_bytes > progress->growth_bytes_max) {
        progress->growth_bytes_max = progress->growth_bytes;
    }
    err = scrub->options->report(scrub->options->context, progress);
    if (err || progress->growth_bytes <= scrub->options->growth_bytes_max) return err;
    scrub->rows_before = progress->rows;
    return take(scrub, now.rows > 0 || !now.is_whole ? &now.next : NULL, why);
}

static int run(struct scrub *scrub, struct bel_why *why)
{
    int err = open_env_mapped(scrub);
    if (!err) err = take(scrub, NULL, why);
    while (!err) {
        int step = bel__pages_step(scrub->pages, scrub->options->step_pages, why);
        if (step != 0 && step != BEL_EBUSY) return step;
        if (step == BEL_EBUSY) {
            err = look(scrub, why);
            continue;
        }
        struct bel_pages_progress now;
        bel__pages_progress(scrub->pages, &now);
        scrub->progress.pages_done = scrub->progress.pages = now.pages;
        scrub->progress.rows = scrub->rows_before + now.rows;
        return scrub->options->report(scrub->options->context, &scrub->progress);
    }
    return err;
}

int bel__tree_scrub(const struct bel_scrub_options *options, struct bel_why *why)
{
    struct scrub scrub = {.options = options};
    assert(options->report != NULL && options->step_pages > 0);
    int err = run(&scrub, why);
    release(&scrub);
    if (scrub.env != NULL) mdb_env_close(scrub.env);
    return err;
}
