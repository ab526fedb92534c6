/* SPDX-License-Identifier: MIT */

/*
 * A read-only struct bel_io. It reads through system.c; writes, syncs, renames and removals return
 * 0 and do nothing, so that log recovery can run on a store without changing it. Creating a file
 * fails with BEL_ENOTFOUND.
 */
#include "store/io/io.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/stat.h>

struct view_io {
    struct bel_io io;
    struct bel_io *system;
    bool is_locked; /* a second lock() succeeds: the store locks what its caller has locked */
};

static_assert(offsetof(struct view_io, io) == 0, "a bel_io can be cast to a view_io");

static struct bel_io *system_of(struct bel_io *io)
{
    return ((struct view_io *)io)->system;
}

static int lock(struct bel_io *io)
{
    struct view_io *view = (struct view_io *)io;
    if (view->is_locked) return 0;
    int err = view->system->lock(view->system);
    view->is_locked = err == 0;
    return err;
}

static void unlock(struct bel_io *io)
{
    ((struct view_io *)io)->is_locked = false;
    system_of(io)->unlock(system_of(io));
}

static uint64_t holder(struct bel_io *io)
{
    return system_of(io)->holder(system_of(io));
}

static int open_file(struct bel_io *io, const char *name, unsigned how, struct bel_io_file **out)
{
    if (how & BEL_IO_CREATE) return BEL_ENOTFOUND;
    return system_of(io)->open(system_of(io), name, how, out);
}

static void close_file(struct bel_io *io, struct bel_io_file *file)
{
    system_of(io)->close(system_of(io), file);
}

static int size_of(struct bel_io *io, struct bel_io_file *file, uint64_t *out)
{
    return system_of(io)->size(system_of(io), file, out);
}

static int read_file(struct bel_io *io, struct bel_io_file *file, uint64_t offset, void *out,
                     size_t bytes)
{
    return system_of(io)->read(system_of(io), file, offset, out, bytes);
}

static int write_file(struct bel_io *io, struct bel_io_file *file, uint64_t offset,
                      const void *data, size_t bytes)
{
    (void)io, (void)file, (void)offset, (void)data, (void)bytes;
    return 0;
}

static int fill(struct bel_io *io, struct bel_io_file *file, uint64_t offset, uint64_t bytes)
{
    (void)io, (void)file, (void)offset, (void)bytes;
    return 0;
}

static int sync_file(struct bel_io *io, struct bel_io_file *file)
{
    (void)io, (void)file;
    return 0;
}

static int rename_file(struct bel_io *io, const char *from, const char *to)
{
    (void)io, (void)from, (void)to;
    return 0;
}

static int remove_file(struct bel_io *io, const char *name)
{
    (void)io, (void)name;
    return 0;
}

static int sync_directory(struct bel_io *io)
{
    (void)io;
    return 0;
}

static int list(struct bel_io *io, bel_io_see *see, void *context)
{
    return system_of(io)->list(system_of(io), see, context);
}

static int free_bytes(struct bel_io *io, uint64_t *out)
{
    return system_of(io)->free_bytes(system_of(io), out);
}

static uint64_t mono_ns(struct bel_io *io)
{
    return system_of(io)->mono_ns(system_of(io));
}

static void pause_for(struct bel_io *io, uint64_t ns)
{
    system_of(io)->pause(system_of(io), ns);
}

static void destroy(struct bel_io *io)
{
    system_of(io)->destroy(system_of(io));
    free(io);
}

int bel__io_view_open(const char *path, struct bel_io **out)
{
    static const struct bel_io door = {
        .lock = lock,
        .unlock = unlock,
        .holder = holder,
        .open = open_file,
        .close = close_file,
        .size = size_of,
        .read = read_file,
        .write = write_file,
        .fill = fill,
        .sync = sync_file,
        .rename = rename_file,
        .remove = remove_file,
        .sync_directory = sync_directory,
        .list = list,
        .free_bytes = free_bytes,
        .mono_ns = mono_ns,
        .pause = pause_for,
        .destroy = destroy,
    };
    struct stat info;
    if (stat(path, &info) != 0 || !S_ISDIR(info.st_mode)) return BEL_ENOTFOUND;
    struct view_io *view = malloc(sizeof *view);
    if (view == NULL) return BEL_ENOMEM;
    *view = (struct view_io){.io = door};
    int err = bel__io_system_open(path, &view->system);
    if (err) {
        free(view);
        return err;
    }
    *out = &view->io;
    return 0;
}
