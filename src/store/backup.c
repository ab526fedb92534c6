/* SPDX-License-Identifier: MIT */

/*
 * Copies a store while it is in use.
 *
 *     begin ----> a checkpoint writes all batches so far to the tree ----> between checkpoints:
 *        |            open a second reader of the tree, which sees a snapshot
 *        v
 *     placeholder    rows ---> a new tree      log: empty, continues after the tree's last batch
 *     in the target                            superblock, last, replaces the placeholder
 *
 * The snapshot is taken between two checkpoints: during one, the tree has parts of batches that are
 * complete only with the log. If the checkpoint fails because the disk is full, the batches that
 * the tree lacks are read from the log, and the copy gets the rows of both. No segment of the log
 * is released meanwhile.
 *
 * A target that does not exist is made under another name, and gets its own when the placeholder is
 * in it: an empty directory would be taken for a new store.
 *
 * The rows that are read from the old tree and their sum are counted. If they differ from what the
 * old tree says, it has lost rows, and the backup fails. Before its superblock is written, the copy
 * cannot be opened, and a later backup may replace it. The log of the copy does not begin with
 * batch 1, so recovery notices if the tree of the copy is lost later.
 *
 * The copy is written through struct bel_io and never mapped, so whatever its disk does is an error
 * code. It is written in slices, by a thread or by bel__store_work().
 *
 * LMDB does not reuse pages that the second reader may read, so the old tree's file grows during
 * the backup by what changes.
 */
#include "store/directory.h"
#include "store/io/row.h"
#include "store/replay.h"
#include "store/state.h"
#include "store/tree/build.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

enum {
    SLICE_ROWS = 1000,
};

/* What the next slice does. */
enum stage {
    STAGE_BEGIN, /* syncs the placeholder and creates the tree's file */
    STAGE_ROWS,
    STAGE_END, /* completes the tree and compares it with the old one */
    STAGE_LOG, /* creates the log, and with it the superblock */
};

struct bel_backup {
    uint64_t batch; /* the last batch that the copy must have */
    char *path, *tree_path;
    struct bel_io *io;
    struct bel_log_options log_options;
    bool has_thread, is_copying; /* a snapshot was taken, and the thread started */
    struct bel_tree *source;
    pthread_t thread;

    bool has_log;       /* rows of the log are merged */
    struct bel_log log; /* the struct of the store's log when the snapshot was taken */

    /* Owned by what copies. */
    enum stage stage;
    struct bel_io *tree_io;
    struct bel_tree_build *build;
    struct bel_key key;     /* of the next row, or before it */
    struct bel_delta delta; /* the rows of the log */
    uint64_t rows, sum;     /* of the source so far */

    pthread_mutex_t mutex; /* protects all below */
    bool must_stop, is_done;
    int err;
    struct bel_why why;
};

/* --- copying --- */

static bool must_stop(struct bel_backup *backup)
{
    (void)pthread_mutex_lock(&backup->mutex);
    bool stops = backup->must_stop;
    (void)pthread_mutex_unlock(&backup->mutex);
    return stops;
}

/* Adds the path of the copy to a message that begins with a file name. */
static int say_where(struct bel_backup *backup, int err, const struct bel_why *found)
{
    if (found->text[0] == 0) return err;
    return bel__why_say(&backup->why, err, "%s/%s", backup->path, found->text);
}

static int replay_row(void *context, const struct bel_frame_row *row)
{
    return bel__replay_add(context, row);
}

/* Reads the batches that the source lacks from the log. */
static int read_log(struct bel_backup *backup)
{
    struct bel_replay replay;
    uint64_t epoch = backup->source->epoch(backup->source);
    bel__replay_init(&replay, &backup->delta);
    int err =
        bel__log_reread(&backup->log, epoch, backup->batch, replay_row, &replay, &backup->why);
    if (!err) err = bel__replay_end(&replay);
    bel__replay_finish(&replay);
    return err;
}

static int begin_tree(struct bel_backup *backup)
{
    struct bel_why found = {0};
    bel__log_abandon_copy(backup->io); /* of an earlier backup that is replaced */
    int err = bel__log_sync_copy(backup->io, &found);
    if (err) return say_where(backup, err, &found);
    err = backup->has_log ? read_log(backup) : 0;
    if (err) return err;
    err = backup->io->open_other(backup->io, backup->tree_path, &backup->tree_io);
    if (!err) err = bel__tree_build_open(backup->tree_io, &backup->build);
    return err ? bel__why_system(&backup->why, err, backup->tree_path, "made") : 0;
}

/* Finds the next row of source and log, whose rows replace those of the source. Returns 0;
 * BEL_ENOTFOUND after the last row; or an error. */
static int find_row(struct bel_backup *backup, struct bel_view *out, bool *is_gone)
{
    struct bel_tree *source = backup->source;
    struct bel_delta_place place;
    struct bel_key key = backup->key;
    bool is_changed = backup->has_log && bel__delta_seek(&backup->delta, &key, &place);
    *is_gone = false;
    int err = source->seek(source, &key, out);
    if (err != 0 && err != BEL_ENOTFOUND) {
        return bel__why_say(&backup->why, err, "tree is damaged: a row cannot be read");
    }
    int order = err || !is_changed ? -1 : bel__key_compare(&key, &place.key);
    if (err == 0 && order <= 0) {
        backup->rows++;
        backup->sum += bel__row_sum(&key, bel__row_checksum(&key, *out), out->bytes);
    }
    if (is_changed && (err || order >= 0)) {
        key = place.key;
        *out = bel__entry_value(place.entry);
        *is_gone = bel__entry_is_gone(place.entry);
        err = 0;
    }
    backup->key = key;
    return err;
}

/* Copies the rows of a slice. Returns 0; BEL_ENOTFOUND after the last row; or an error. */
static int copy_rows(struct bel_backup *backup)
{
    struct bel_key *key = &backup->key;
    for (unsigned i = 0; i < SLICE_ROWS; i++) {
        struct bel_view value;
        bool is_gone;
        int err = find_row(backup, &value, &is_gone);
        if (err) return err;
        if (!is_gone) err = bel__tree_build_put(backup->build, key, value);
        if (err) return bel__why_system(&backup->why, err, backup->tree_path, "written");
        for (int word = 2; word >= 0 && ++key->words[word] == 0; word--) {}
    }
    return 0;
}

/* Returns the last batch of the copy. */
static uint64_t epoch_of(const struct bel_backup *backup)
{
    return backup->has_log ? backup->batch : backup->source->epoch(backup->source);
}

static int end_tree(struct bel_backup *backup)
{
    struct bel_tree_stats want, got;
    int err = bel__tree_build_end(backup->build, epoch_of(backup), &got);
    if (err) return bel__why_system(&backup->why, err, backup->tree_path, "written");
    backup->source->stats(backup->source, &want);
    bool is_whole = want.rows == backup->rows && want.sum == backup->sum;
    bool is_same = got.rows == backup->rows && got.sum == backup->sum;
    if (is_whole && (is_same || backup->has_log)) return 0;
    return bel__why_say(&backup->why, BEL_ECORRUPT,
                        "tree is damaged: its rows do not match its counts");
}

/* Creates an empty log that continues after the tree. */
static int make_log(struct bel_backup *backup)
{
    struct bel_log *log;
    struct bel_why found = {0};
    backup->log_options.first_batch = epoch_of(backup) + 1;
    int err = bel__log_open(&backup->log_options, &log, &found);
    if (err) return say_where(backup, err, &found);
    bel__log_close(log);
    return 0;
}

/* Copies a slice. Returns BEL_EBUSY if there is more to do; 0 if the copy is complete; or an
 * error. */
static int copy_slice(struct bel_backup *backup)
{
    int err = 0;
    if (must_stop(backup)) return bel__why_say(&backup->why, BEL_ECLOSED, "the backup was stopped");
    switch (backup->stage) {
    case STAGE_BEGIN:
        err = begin_tree(backup);
        break;
    case STAGE_ROWS:
        err = copy_rows(backup);
        if (err == 0) return BEL_EBUSY;
        if (err == BEL_ENOTFOUND) err = 0;
        break;
    case STAGE_END:
        err = end_tree(backup);
        break;
    case STAGE_LOG:
        return make_log(backup);
    }
    if (err) return err;
    backup->stage++;
    return BEL_EBUSY;
}

/* Closes the files of the copy. Removes them if it has failed, except for the placeholder. */
static void end_copy(struct bel_backup *backup, int err)
{
    bel__tree_build_close(backup->build);
    backup->build = NULL;
    if (err && backup->tree_io != NULL) {
        (void)!backup->tree_io->remove(backup->tree_io, BEL_TREE_FILE);
    }
    if (backup->tree_io != NULL) backup->tree_io->destroy(backup->tree_io);
    backup->tree_io = NULL;
    if (err) bel__log_abandon_copy(backup->io);
    (void)pthread_mutex_lock(&backup->mutex);
    backup->err = err;
    backup->is_done = true;
    (void)pthread_mutex_unlock(&backup->mutex);
}

static void *copy_all(void *context)
{
    struct bel_backup *backup = context;
    int err = BEL_EBUSY;
    while (err == BEL_EBUSY) {
        err = copy_slice(backup);
    }
    end_copy(backup, err);
    return NULL;
}

/* --- the store's thread --- */

static void destroy(struct bel_backup *backup)
{
    if (backup->source != NULL) backup->source->close(backup->source);
    if (backup->io != NULL) backup->io->destroy(backup->io);
    bel__delta_finish(&backup->delta);
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

/* Sets `context` if there is a file other than LOCK, which means nothing, and "lost+found" of
 * a file system. */
static void see(void *context, const char *name)
{
    if (strcmp(name, "LOCK") != 0 && strcmp(name, "lost+found") != 0) *(bool *)context = true;
}

/* Writes the placeholder, and lets a new target appear. */
static int begin_target(struct bel_io *io, const char *path, struct bel_why *why)
{
    struct bel_why found = {0};
    int begun = bel__log_begin_copy(io, &found);
    bool has_name = bel__log_look(io, NULL) != BEL_ENOTFOUND; /* maybe of an empty file */
    int err = has_name && io->appear != NULL ? io->appear(io) : 0;
    if (begun) return bel__why_say(why, begun, "%s/%s", path, found.text);
    return err ? bel__why_system(why, err, path, "made") : 0;
}

/* Locks the target, which must be empty or an unfinished backup, and writes the placeholder. */
static int take_directory(struct bel_store *store, struct bel_backup *backup, struct bel_why *why)
{
    const char *path = backup->path;
    bool is_taken = false;
    bool may_hide = store->io->open_hidden != NULL;
    int err = may_hide ? store->io->open_hidden(store->io, path, &backup->io)
                       : store->io->open_other(store->io, path, &backup->io);
    if (err && errno == ENOTDIR) {
        return bel__why_say(why, BEL_ECONFLICT, "%s exists and is not a folder", path);
    }
    if (err) return bel__why_system(why, err, path, "made");
    struct bel_io *io = backup->io;
    err = bel__directory_lock(io, path, why);
    if (err) return err == BEL_EBUSY ? BEL_ECONFLICT : err;
    if (bel__log_look(io, NULL) != BEL_ECORRUPT) err = io->list(io, see, &is_taken);
    if (err) return bel__why_system(why, err, path, "read");
    if (is_taken) return bel__why_say(why, BEL_ECONFLICT, "%s is not empty", path);
    err = begin_target(io, path, why);
    if (err) return err;
    return bel__directory_sign(io, path, why);
}

static int make(struct bel_store *store, const char *path, struct bel_backup **out,
                struct bel_why *why)
{
    struct bel_backup *backup = calloc(1, sizeof *backup);
    if (backup == NULL) return BEL_ENOMEM;
    (void)pthread_mutex_init(&backup->mutex, NULL);
    bel__delta_init(&backup->delta);
    backup->path = join(path, "");
    backup->tree_path = join(path, "/tree");
    int err = backup->path == NULL || backup->tree_path == NULL ? BEL_ENOMEM : 0;
    if (!err) err = take_directory(store, backup, why);
    if (err) {
        destroy(backup);
        return err;
    }
    backup->log_options = (struct bel_log_options){
        .io = backup->io,
        .entropy = store->has_thread ? bel__entropy_system() : store->log->entropy,
        .segment_bytes = store->log->superblock.segment_bytes,
        .segment_count = store->log->superblock.segment_count,
    };
    backup->has_thread = store->has_thread;
    backup->batch = store->batch + store->has_rows;
    *out = backup;
    return 0;
}

int bel__store_backup_begin(struct bel_store *store, const char *path, struct bel_why *why)
{
    if (why != NULL) why->text[0] = 0;
    if (store->log == NULL || store->tree->twin == NULL) return BEL_EUNSUPPORTED;
    if (store->io->open_other == NULL) return BEL_EUNSUPPORTED;
    if (store->backup != NULL) {
        return bel__why_say(why, BEL_EBUSY, "another backup is running, to %.200s",
                            store->backup->path);
    }
    int err = bel__store_error(store);
    if (!err) err = make(store, path, &store->backup, why);
    if (err) return err;
    store->is_freeze_due = true;
    store->retry_at_ns = 0; /* whether the disk has room is found out now */
    return 0;
}

/* Ends a backup before its first slice. */
static void give_up(struct bel_backup *backup, int err)
{
    assert(!backup->is_copying);
    backup->err = err;
    backup->is_done = true;
}

/* Takes the snapshot, and begins to copy. */
static void start_copy(struct bel_store *store)
{
    struct bel_backup *backup = store->backup;
    int err = store->tree->twin(store->tree, &backup->source);
    if (!err && backup->has_thread) {
        err = pthread_create(&backup->thread, NULL, copy_all, backup) == 0 ? 0 : BEL_ENOMEM;
    }
    if (err) {
        give_up(backup, err);
    } else {
        backup->is_copying = true;
    }
}

void bel__store_backup_on(struct bel_store *store)
{
    struct bel_backup *backup = store->backup;
    if (backup == NULL || backup->is_copying || backup->is_done) return;
    if (store->freeze >= BEL_FREEZE_BEGUN) return;
    if (store->tree->epoch(store->tree) >= backup->batch) {
        start_copy(store);
    } else if (store->freeze == BEL_FREEZE_NONE) {
        store->is_freeze_due = true;
    }
}

/* The tree may have rows of all batches of the frozen delta. Batches that are not synced wait for
 * the next try. */
void bel__store_backup_fail(struct bel_store *store, int err)
{
    struct bel_backup *backup = store->backup;
    assert(store->freeze == BEL_FREEZE_FROZEN);
    if (backup == NULL || backup->is_copying || backup->is_done) return;
    if (err != BEL_EFULL) {
        give_up(backup, err);
        return;
    }
    if (backup->batch < store->frozen_epoch) backup->batch = store->frozen_epoch;
    if (bel__store_synced(store) < backup->batch) return;
    backup->has_log = true;
    backup->log = *store->log;
    start_copy(store);
}

bool bel__store_backup_holds_log(const struct bel_store *store)
{
    const struct bel_backup *backup = store->backup;
    return backup != NULL && backup->is_copying && backup->has_log;
}

bool bel__store_backup_step(struct bel_store *store)
{
    struct bel_backup *backup = store->backup;
    if (backup == NULL || backup->has_thread) return false;
    if (!backup->is_copying || backup->is_done) return false;
    int err = copy_slice(backup);
    if (err == BEL_EBUSY) return true;
    end_copy(backup, err);
    return false;
}

void bel__store_backup_end(struct bel_store *store)
{
    struct bel_backup *backup = store->backup;
    if (backup == NULL) return;
    (void)pthread_mutex_lock(&backup->mutex);
    backup->must_stop = true;
    (void)pthread_mutex_unlock(&backup->mutex);
    if (backup->is_copying && backup->has_thread) (void)pthread_join(backup->thread, NULL);
    if (!backup->is_done) end_copy(backup, BEL_ECLOSED);
    bool held_log = bel__store_backup_holds_log(store);
    destroy(backup);
    store->backup = NULL;
    if (held_log) bel__log_release(store->log, store->tree->epoch(store->tree));
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
