/* SPDX-License-Identifier: MIT */

/*
 * A folder of a disk, as a struct bel_io of its own: its names have a prefix. All folders of a disk
 * break together.
 */
#include "disk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    NAME_BYTES = 64,
};

struct folder {
    struct bel_io io; /* first */
    struct bel_io *disk;
    const char *prefix; /* "", or "tree/" */
    bool is_locked;
};

/* A name on the disk. */
struct name {
    char text[NAME_BYTES];
};

static struct folder *of(struct bel_io *io)
{
    return (struct folder *)io;
}

static struct name name_of(struct bel_io *io, const char *name)
{
    struct name full;
    (void)snprintf(full.text, sizeof full.text, "%s%s", of(io)->prefix, name);
    return full;
}

static int lock(struct bel_io *io)
{
    int err = of(io)->disk->lock(of(io)->disk);
    of(io)->is_locked = err == 0;
    return err;
}

static void unlock(struct bel_io *io)
{
    if (of(io)->is_locked) of(io)->disk->unlock(of(io)->disk);
    of(io)->is_locked = false;
}

static int open_file(struct bel_io *io, const char *name, unsigned how, struct bel_io_file **out)
{
    struct name full = name_of(io, name);
    return of(io)->disk->open(of(io)->disk, full.text, how, out);
}

static void close_file(struct bel_io *io, struct bel_io_file *file)
{
    of(io)->disk->close(of(io)->disk, file);
}

static int size_of(struct bel_io *io, struct bel_io_file *file, uint64_t *out)
{
    return of(io)->disk->size(of(io)->disk, file, out);
}

static int read_file(struct bel_io *io, struct bel_io_file *file, uint64_t offset, void *out,
                     size_t bytes)
{
    return of(io)->disk->read(of(io)->disk, file, offset, out, bytes);
}

static int write_file(struct bel_io *io, struct bel_io_file *file, uint64_t offset,
                      const void *data, size_t bytes)
{
    return of(io)->disk->write(of(io)->disk, file, offset, data, bytes);
}

static int fill(struct bel_io *io, struct bel_io_file *file, uint64_t offset, uint64_t bytes)
{
    return of(io)->disk->fill(of(io)->disk, file, offset, bytes);
}

static int sync_file(struct bel_io *io, struct bel_io_file *file)
{
    return of(io)->disk->sync(of(io)->disk, file);
}

static int rename_file(struct bel_io *io, const char *from, const char *to)
{
    struct name old = name_of(io, from), new = name_of(io, to);
    return of(io)->disk->rename(of(io)->disk, old.text, new.text);
}

static int remove_file(struct bel_io *io, const char *name)
{
    struct name full = name_of(io, name);
    return of(io)->disk->remove(of(io)->disk, full.text);
}

static int sync_directory(struct bel_io *io)
{
    return of(io)->disk->sync_directory(of(io)->disk);
}

struct seeing {
    bel_io_see *see;
    void *context;
    const char *prefix;
};

/* Files of a folder below are seen as the folder. */
static void see_name(void *context, const char *name)
{
    const struct seeing *seeing = context;
    struct name found;
    size_t bytes = strlen(seeing->prefix);
    if (strncmp(name, seeing->prefix, bytes) != 0) return;
    (void)snprintf(found.text, sizeof found.text, "%s", name + bytes);
    found.text[strcspn(found.text, "/")] = 0;
    seeing->see(seeing->context, found.text);
}

static int list(struct bel_io *io, bel_io_see *see, void *context)
{
    struct seeing seeing = {see, context, of(io)->prefix};
    return of(io)->disk->list(of(io)->disk, see_name, &seeing);
}

static int free_bytes(struct bel_io *io, uint64_t *out)
{
    return of(io)->disk->free_bytes(of(io)->disk, out);
}

static uint64_t mono_ns(struct bel_io *io)
{
    return of(io)->disk->mono_ns(of(io)->disk);
}

static void pause_for(struct bel_io *io, uint64_t ns)
{
    of(io)->disk->pause(of(io)->disk, ns);
}

static int open_below(struct bel_io *io, const char *path, struct bel_io **out)
{
    return disk_folder(of(io)->disk, path, out);
}

static void destroy(struct bel_io *io)
{
    unlock(io);
    free(io);
}

int disk_folder(struct bel_io *disk, const char *path, struct bel_io **out)
{
    struct folder *folder = malloc(sizeof *folder);
    if (folder == NULL) return BEL_ENOMEM;
    const char *last = strrchr(path, '/');
    *folder = (struct folder){
        .io = {.lock = lock,
               .unlock = unlock,
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
               .open_other = open_below,
               .destroy = destroy},
        .disk = disk,
        .prefix = last != NULL && strcmp(last, "/tree") == 0 ? "tree/" : "",
    };
    *out = &folder->io;
    return 0;
}
