/* SPDX-License-Identifier: MIT */

/*
 * Copies a store while it is in use.
 *
 *     begin ----> a checkpoint writes all batches so far to the tree ----> between checkpoints:
 *                     open a second reader of the tree, which sees a snapshot
 *     thread:     rows ---> a new tree      log: empty, continues after the tree's last batch
 *                                           superblock, last
 *
 * The snapshot is taken between two checkpoints: during one, the tree has parts of batches that are
 * complete only with the log.
 *
 * The new tree counts its rows and their sum as they are put. If they differ from those of the old
 * tree, the old one has lost rows, and the backup fails. A directory without a superblock is not a
 * store, so an interrupted copy cannot be opened. The log of the copy does not begin with batch 1,
 * so recovery notices if the tree of the copy is lost later.
 *
 * LMDB does not reuse pages that the second reader may read, so the old tree's file grows during
 * the backup by what changes.
 */
#include "store/state.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

enum {
    TRANSACTION_ROWS = 20000,
};

struct bel_backup {
    uint64_t batch; /* the last batch that the copy must have */
    char *path, *tree_path;
    struct bel_io *io;
    struct bel_log_options log_options;
    bool is_copying; /* the thread was started */
    struct bel_tree *source;
    pthread_t thread;

    pthread_mutex_t mutex; /* protects all below */
    bool must_stop, is_done;
    int err;
    struct bel_why why;
};

/* --- the thread --- */

static bool must_stop(struct bel_backup *backup)
{
    (void)pthread_mutex_lock(&backup->mutex);
    bool stops = backup->must_stop;
    (void)pthread_mutex_unlock(&backup->mutex);
    return stops;
}

/* Copies one transaction of rows from `*key` on. Returns 0 after a commit; BEL_ENOTFOUND after the
 * last row, without a commit; or an error. */
static int copy_some(struct bel_backup *backup, struct bel_tree *target, struct bel_key *key)
{
    int err = target->begin(target);
    for (unsigned i = 0; i < TRANSACTION_ROWS && !err; i++) {
        struct bel_view value;
        err = backup->source->seek(backup->source, key, &value);
        if (!err) err = target->put(target, key, value);
        for (int word = 2; !err && word >= 0 && ++key->words[word] == 0; word--) {}
    }
    return err ? err : target->commit(target, 0);
}

static int copy_rows(struct bel_backup *backup, struct bel_tree *target)
{
    struct bel_tree_stats want, got;
    struct bel_key key = {{0, 0, 0}};
    int err = 0;
    while (!err) {
        err = must_stop(backup) ? BEL_ECLOSED : copy_some(backup, target, &key);
    }
    if (err == BEL_ENOTFOUND) err = target->commit(target, backup->source->epoch(backup->source));
    if (err) {
        target->abort(target);
        return bel__why_say(&backup->why, err, "cannot copy the tree: %s", bel_error_text(err));
    }
    err = target->refresh(target);
    if (err) return err;
    backup->source->stats(backup->source, &want);
    target->stats(target, &got);
    if (want.rows == got.rows && want.sum == got.sum) return 0;
    return bel__why_say(&backup->why, BEL_ECORRUPT,
                        "tree is damaged: its rows do not match its counts");
}

static int copy_tree(struct bel_backup *backup)
{
    struct bel_tree_options options = {.path = backup->tree_path, .mode = BEL_TREE_CREATE};
    struct bel_tree *target;
    int err = bel__tree_lmdb_open(&options, &target);
    if (err) {
        return bel__why_say(&backup->why, err, "cannot create %s: %s", backup->tree_path,
                            bel_error_text(err));
    }
    err = copy_rows(backup, target);
    target->close(target);
    return err;
}

/* Creates an empty log that continues after the tree. Its superblock is written last. */
static int make_log(struct bel_backup *backup)
{
    struct bel_log *log;
    backup->log_options.first_batch = backup->source->epoch(backup->source) + 1;
    int err = bel__log_open(&backup->log_options, &log, &backup->why);
    if (err) return err;
    bel__log_close(log);
    return 0;
}

static void *copy_all(void *context)
{
    struct bel_backup *backup = context;
    int err = copy_tree(backup);
    if (!err) err = make_log(backup);
    (void)pthread_mutex_lock(&backup->mutex);
    backup->err = err;
    backup->is_done = true;
    (void)pthread_mutex_unlock(&backup->mutex);
    return NULL;
}

/* --- the store's thread --- */

static void destroy(struct bel_backup *backup)
{
    if (backup->source != NULL) backup->source->close(backup->source);
    if (backup->io != NULL) backup->io->destroy(backup->io);
    (void)pthread_mutex_destroy(&backup->mutex);
    free(backup->path);
    free(backup->tree_path);
    free(backup);
}

static char *join(const char *path, const char *name)
{
    size_t bytes = strlen(path) + strlen(name) + 1;
    char *joined = malloc(bytes);
    if (joined != NULL) (void)snprintf(joined, bytes, "%s%s", path, name);
    return joined;
}

/* Sets `context` if there is a file other than LOCK, which lock() has just created. */
static void see(void *context, const char *name)
{
    if (strcmp(name, "LOCK") != 0) *(bool *)context = true;
}

static int take_directory(struct bel_backup *backup, const char *path, struct bel_why *why)
{
    bool is_taken = false;
    int err = bel__io_system_open(path, &backup->io);
    if (err && errno == ENOTDIR) {
        return bel__why_say(why, BEL_ECONFLICT, "%s exists and is not a folder", path);
    }
    if (err) return bel__why_system(why, err, path, "made");
    err = backup->io->lock(backup->io);
    if (err == BEL_EBUSY) return bel__why_say(why, BEL_ECONFLICT, "%s is in use", path);
    if (!err) err = backup->io->list(backup->io, see, &is_taken);
    if (err) return bel__why_system(why, err, path, "read");
    return is_taken ? bel__why_say(why, BEL_ECONFLICT, "%s is not empty", path) : 0;
}

int bel__store_backup_begin(struct bel_store *store, const char *path, struct bel_why *why)
{
    if (why != NULL) why->text[0] = 0;
    if (store->log == NULL || store->tree->twin == NULL) return BEL_EUNSUPPORTED;
    if (store->backup != NULL) return bel__why_say(why, BEL_EBUSY, "another backup is running");
    int err = bel__store_error(store);
    if (err) return err;
    struct bel_backup *backup = calloc(1, sizeof *backup);
    if (backup == NULL) return BEL_ENOMEM;
    (void)pthread_mutex_init(&backup->mutex, NULL);
    backup->path = join(path, "");
    backup->tree_path = join(path, "/tree");
    err = backup->path == NULL || backup->tree_path == NULL ? BEL_ENOMEM : 0;
    if (!err) err = take_directory(backup, path, why);
    if (err) {
        destroy(backup);
        return err;
    }
    backup->log_options = (struct bel_log_options){
        .io = backup->io,
        .entropy = bel__entropy_system(),
        .segment_bytes = store->log->superblock.segment_bytes,
        .segment_count = store->log->superblock.segment_count,
    };
    backup->batch = store->batch + store->has_rows;
    store->backup = backup;
    store->is_freeze_due = true;
    return 0;
}

void bel__store_backup_on(struct bel_store *store)
{
    struct bel_backup *backup = store->backup;
    if (backup == NULL || backup->is_copying || backup->is_done) return;
    if (store->freeze >= BEL_FREEZE_BEGUN) return;
    if (store->tree->epoch(store->tree) < backup->batch) {
        if (store->freeze == BEL_FREEZE_NONE) store->is_freeze_due = true;
        return;
    }
    int err = store->tree->twin(store->tree, &backup->source);
    if (!err && pthread_create(&backup->thread, NULL, copy_all, backup) != 0) err = BEL_ENOMEM;
    backup->is_copying = err == 0;
    backup->is_done = err != 0;
    backup->err = err;
}

void bel__store_backup_end(struct bel_store *store)
{
    struct bel_backup *backup = store->backup;
    if (backup == NULL) return;
    (void)pthread_mutex_lock(&backup->mutex);
    backup->must_stop = true;
    (void)pthread_mutex_unlock(&backup->mutex);
    if (backup->is_copying) (void)pthread_join(backup->thread, NULL);
    destroy(backup);
    store->backup = NULL;
}

int bel__store_backup_poll(struct bel_store *store, struct bel_why *why)
{
    struct bel_backup *backup = store->backup;
    if (why != NULL) why->text[0] = 0;
    if (backup == NULL) return BEL_ENOTFOUND;
    (void)pthread_mutex_lock(&backup->mutex);
    bool is_done = backup->is_done;
    (void)pthread_mutex_unlock(&backup->mutex);
    int err = bel__store_error(store);
    if (!is_done && !err) return BEL_EBUSY;
    if (is_done) {
        err = backup->err;
        if (why != NULL) *why = backup->why;
    }
    bel__store_backup_end(store);
    return err;
}
