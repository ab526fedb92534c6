/* SPDX-License-Identifier: MIT */

/*
 * Backups, onto a disk of their own, which is cut off, full or fails at any of its operations:
 *
 *     begin ---- turns, each with the digest of its batch ---- done, failed, or the engine dies
 *                                                              |
 *              what the disk has, perhaps after a power cut <--'  becomes files, and is opened
 *
 * A copy that can be opened has the rows of one batch, from that of the beginning on. A copy that
 * is not complete is called an unfinished backup. What becomes of a copy never harms the engine,
 * and a copy onto a good disk succeeds.
 */
#include "world.h"

#include "core/units.h"
#include "engine/engine.h"
#include "store/state.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    TURNS_MAX = 2000,            /* of one backup */
    BATCHES_MAX = 8 * TURNS_MAX, /* and of turns in which it waits */
    PATH_BYTES = 200,
    DELAY_NS_MAX = 500 * NS_PER_MS,
};

struct copy {
    struct world *world;
    struct disk *disk;          /* NULL: no backup runs */
    uint64_t turns, operations; /* of this one, and of the longest so far */
    bool is_good;               /* nothing breaks */
    bool is_durable;            /* the engine has said so */
    size_t count;
    struct {
        uint64_t batch, digest;
    } batches[BATCHES_MAX];
};

struct copy *copy_create(struct world *world)
{
    struct copy *copy = calloc(1, sizeof *copy);
    if (copy == NULL) abort();
    copy->world = world;
    copy->operations = 60;
    return copy;
}

void copy_destroy(struct copy *copy)
{
    disk_destroy(copy->disk);
    free(copy);
}

/* --- the files of a copy --- */

struct export
{
    struct bel_io *io;
    const char *path;
    size_t count;
    bool has_failed;
};

static void write_all(struct export *export, const char *name, const void *data, size_t bytes)
{
    char path[PATH_BYTES];
    (void)snprintf(path, sizeof path, "%s/%s", export->path, name);
    FILE *file = fopen(path, "wb");
    bool is_written = file != NULL && fwrite(data, 1, bytes, file) == bytes;
    if (file != NULL && fclose(file) != 0) is_written = false;
    if (!is_written) export->has_failed = true;
    export->count++;
}

static void export_file(void *context, const char *name)
{
    struct export *export = context;
    struct bel_io_file *file;
    uint64_t bytes = 0;
    if (strncmp(name, "tree/", 5) == 0) {
        char path[PATH_BYTES];
        (void)snprintf(path, sizeof path, "%s/tree", export->path);
        if (mkdir(path, 0700) != 0 && errno != EEXIST) export->has_failed = true;
    }
    if (export->io->open(export->io, name, BEL_IO_READ, &file) != 0) {
        export->has_failed = true;
        return;
    }
    (void)export->io->size(export->io, file, &bytes);
    void *data = malloc(bytes + 1);
    if (data == NULL) abort();
    if (export->io->read(export->io, file, 0, data, bytes) != 0) export->has_failed = true;
    export->io->close(export->io, file);
    write_all(export, name, data, bytes);
    free(data);
}

/* NOLINTNEXTLINE(misc-no-recursion): two folders deep */
static void remove_all(const char *path)
{
    DIR *folder = opendir(path);
    struct dirent *entry;
    while (folder != NULL &&
           (entry = readdir(folder)) != NULL) { /* NOLINT(concurrency-mt-unsafe) */
        char name[2 * PATH_BYTES];
        if (entry->d_name[0] == '.') continue;
        (void)snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
        if (unlink(name) != 0) remove_all(name);
    }
    if (folder != NULL) (void)closedir(folder);
    (void)rmdir(path);
}

/* --- what is opened --- */

static bool has_batch(const struct copy *copy, uint64_t batch, uint64_t digest)
{
    for (size_t i = 0; i < copy->count; i++) {
        if (copy->batches[i].batch == batch) return copy->batches[i].digest == digest;
    }
    return false;
}

static void check_opened(struct copy *copy, struct bel_store *store)
{
    uint64_t digest = store_digest(copy->world, store);
    if (has_batch(copy, store->batch, digest)) return;
    world_fail(copy->world, "backup", "a copy has other rows than batch %" PRIu64 " had",
               store->batch);
}

static void check_refused(struct copy *copy, int err, const char *why)
{
    if (copy->is_durable) {
        world_fail(copy->world, "backup", "a complete copy cannot be opened: %s (%s)",
                   bel_error_text(err), why);
    } else if (strstr(why, "unfinished backup") == NULL) {
        world_fail(copy->world, "backup", "an unfinished copy is not called so: %s (%s)",
                   bel_error_text(err), why);
    }
}

/* Opens what the disk has, as a server would do. */
static void judge(struct copy *copy)
{
    char path[] = "/dev/shm/belfry-sim-XXXXXX";
    if (mkdtemp(path) == NULL) return; /* nowhere to look at it */
    struct export export = {.io = disk_io(copy->disk), .path = path};
    (void)export.io->list(export.io, export_file, &export);
    if (!export.has_failed && export.count > 0) {
        struct bel_store_options options = {.path = path, .is_buffered = true};
        struct bel_store *store;
        struct bel_why why = {0};
        int err = bel__store_open(&options, &store, &why);
        if (err == 0) {
            check_opened(copy, store);
            bel__store_close(store);
        } else {
            check_refused(copy, err, why.text);
        }
    } else if (!export.has_failed && copy->is_durable) {
        world_fail(copy->world, "backup", "a complete copy is gone");
    }
    remove_all(path);
}

/* --- the life of a copy --- */

/* The end of a copy: nobody writes to it any more. */
static void end(struct copy *copy)
{
    struct world *world = copy->world;
    uint64_t operations = disk_operation_count(copy->disk);
    if (operations > copy->operations) copy->operations = operations;
    disk_set_other(world->disk, NULL);
    if (chance(world, 50)) {
        disk_cut_power(copy->disk);
    } else {
        disk_kill(copy->disk);
    }
    judge(copy);
    disk_destroy(copy->disk);
    copy->disk = NULL;
}

static void arm(struct copy *copy)
{
    struct world *world = copy->world;
    struct disk_plan *plan = disk_plan(copy->disk);
    uint64_t at = 1 + below(world, copy->operations);
    switch (below(world, 5)) {
    case 0:
        plan->crash_in = at;
        break;
    case 1:
        plan->free_bytes = below(world, world->config.segment_bytes * 4);
        break;
    case 2:
        plan->fail_write_in = at;
        break;
    case 3:
        plan->fail_sync_in = 1 + below(world, 8);
        break;
    default:
        break;
    }
    const struct disk_plan none = {.free_bytes = UINT64_C(1) << 40};
    /* NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): what is between is 0 */
    copy->is_good = memcmp(plan, &none, sizeof none) == 0 && !has_fault(world, FAULT_SPACE) &&
                    !has_fault(world, FAULT_MEMORY);
}

static void check_result(struct copy *copy, int err, const char *why)
{
    say(copy->world, "      the backup ends: %s (%s)\n", bel_error_text(err), why);
    copy->is_durable = err == 0;
    if (err == 0 || !copy->is_good || run_is_down(copy->world)) return;
    world_fail(copy->world, "backup", "a backup onto a good disk fails: %s (%s)",
               bel_error_text(err), why);
}

void copy_note(struct copy *copy)
{
    const struct bel_store *store = copy->world->engine->store;
    if (copy->disk == NULL || copy->count == BATCHES_MAX) return;
    if (copy->count > 0 && copy->batches[copy->count - 1].batch == store->batch) return;
    copy->batches[copy->count].batch = store->batch;
    copy->batches[copy->count++].digest = world_digest(copy->world);
}

static void begin(struct copy *copy)
{
    struct world *world = copy->world;
    struct bel_engine_why why = {0};
    copy->disk = disk_create(random_u64(&world->random));
    copy->count = copy->turns = 0;
    copy->is_durable = false;
    arm(copy);
    disk_set_other(world->disk, copy->disk);
    if (has_fault(world, FAULT_SPACE) && chance(world, 70)) { /* the rows come from the log, too */
        world->tree.is_full = true;
    }
    copy_note(copy);
    memory_enter(true);
    int err = bel_engine_backup_begin(world->engine, "copy", &why);
    memory_enter(false);
    say(world, "      a backup begins\n");
    if (err == 0) return;
    check_result(copy, err, why.text);
    end(copy);
}

void copy_draw(struct copy *copy)
{
    struct world *world = copy->world;
    bool may_begin = has_feature(world, FEATURE_BACKUP) && copy->disk == NULL;
    if (may_begin && !run_is_down(world) && chance(world, 3)) begin(copy);
}

/* Whether the backup waits for the clock: a checkpoint without room is tried again later, and turns
 * in between do nothing for it. */
static bool is_delayed(const struct bel_store *store)
{
    uint64_t now_ns = store->io->mono_ns(store->io);
    if (store->freeze != BEL_FREEZE_FROZEN || store->retry_at_ns <= now_ns) return false;
    return store->retry_at_ns - now_ns <= DELAY_NS_MAX;
}

void copy_poll(struct copy *copy)
{
    struct world *world = copy->world;
    struct bel_engine_why why = {0};
    if (copy->disk == NULL) return;
    memory_enter(true);
    int err = bel_engine_backup_poll(world->engine, &why);
    memory_enter(false);
    if (err == BEL_EBUSY) {
        if (is_delayed(world->engine->store) || ++copy->turns < TURNS_MAX) return;
        world_fail(world, "backup", "a backup does not end");
        return;
    }
    check_result(copy, err, why.text);
    end(copy);
}

void copy_stop(struct copy *copy)
{
    if (copy->disk != NULL) disk_stop(copy->disk);
}

void copy_end(struct copy *copy)
{
    if (copy->disk != NULL) end(copy);
}
