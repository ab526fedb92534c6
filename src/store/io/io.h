/* SPDX-License-Identifier: MIT */
#ifndef BEL_STORE_IO_IO_H
#define BEL_STORE_IO_IO_H

/*
 * io - the door through which the store touches files: those of one directory.
 *
 * The system's is in io_system.c; the tests have one that crashes. A name has no slash in it.
 *
 *     err = bel__io_system_open("/var/lib/belfry", &io);
 *     err = io->lock(io);
 *     err = io->open(io, "log-0", BEL_IO_DIRECT, &file);
 *     err = io->write(io, file, 4096, frame, bytes);
 *     err = io->sync(io, file);
 *
 * Each function returns 0; or BEL_ENOTFOUND for a file that is not there, BEL_EFULL for no space
 * on the disk, BEL_ENOMEM, or BEL_EIO for the rest, and then errno says more. What a write or a
 * sync that failed has left behind, nobody knows.
 *
 * Threads: a file is used by one at a time, but for a sync, which another may make meanwhile; the
 * door by any.
 */

#include "belfry/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    BEL_IO_BLOCK = 4096, /* what direct reads and writes are in multiples of */
};

/* How a file is opened. */
enum bel_io_how {
    BEL_IO_READ = 0,   /* and write, if it may be written */
    BEL_IO_CREATE = 1, /* empty, whatever was there */
    BEL_IO_DIRECT = 2, /* past the page cache; BEL_EUNSUPPORTED if that cannot be */
};

struct bel_io_file; /* opaque */

/* Called with the name of a file. */
typedef void bel_io_see(void *context, const char *name);

/* A door. To make one, put this first in it and fill in all of it. */
struct bel_io {
    /* Claims the directory. BEL_EBUSY if somebody has it, this process included. */
    int (*lock)(struct bel_io *io);
    void (*unlock)(struct bel_io *io);

    int (*open)(struct bel_io *io, const char *name, unsigned how, struct bel_io_file **out);
    void (*close)(struct bel_io *io, struct bel_io_file *file);
    int (*size)(struct bel_io *io, struct bel_io_file *file, uint64_t *out);

    /* All of it, or it has failed. With BEL_IO_DIRECT, offset, address and bytes are multiples
     * of BEL_IO_BLOCK. */
    int (*read)(struct bel_io *io, struct bel_io_file *file, uint64_t offset, void *out,
                size_t bytes);
    int (*write)(struct bel_io *io, struct bel_io_file *file, uint64_t offset, const void *data,
                 size_t bytes);

    /* Writes zeros from `offset` on, `bytes` of them: blocks that are there, not a hole. */
    int (*fill)(struct bel_io *io, struct bel_io_file *file, uint64_t offset, uint64_t bytes);

    /* What was written is durable, if this returns 0. */
    int (*sync)(struct bel_io *io, struct bel_io_file *file);

    /* Durable with the next sync_directory(), as are the names of files created. */
    int (*rename)(struct bel_io *io, const char *from, const char *to);
    int (*remove)(struct bel_io *io, const char *name);
    int (*sync_directory)(struct bel_io *io);

    int (*list)(struct bel_io *io, bel_io_see *see, void *context);
    int (*free_bytes)(struct bel_io *io, uint64_t *out); /* of the disk, for this user */

    uint64_t (*mono_ns)(struct bel_io *io);        /* a clock, to see how fast files are */
    void (*pause)(struct bel_io *io, uint64_t ns); /* lets so much time pass */

    void (*destroy)(struct bel_io *io); /* unlocks, too */
};

/* Opens the door to a directory, which is made if it is not there. Returns 0 and sets `*out`,
 * or BEL_EIO, BEL_EFULL, BEL_ENOMEM. */
BEL_CHECKED int bel__io_system_open(const char *path, struct bel_io **out);

/* The same to a directory that is there, and nothing in it is changed: what would be says that it
 * is done. BEL_ENOTFOUND. */
BEL_CHECKED int bel__io_view_open(const char *path, struct bel_io **out);

#endif
