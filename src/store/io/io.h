/* SPDX-License-Identifier: MIT */
#ifndef BEL_STORE_IO_IO_H
#define BEL_STORE_IO_IO_H

/*
 * io - the interface through which the store uses files. All files are in one directory.
 *
 * system.c implements it with system calls; the tests have one that simulates crashes. A file name
 * has no slash.
 *
 *     err = bel__io_system_open("/var/lib/belfry", &io);
 *     err = io->lock(io);
 *     err = io->sign(io);
 *     err = io->open(io, "log-0", BEL_IO_DIRECT, &file);
 *     err = io->write(io, file, 4096, frame, bytes);
 *     err = io->sync(io, file);
 *
 * Each function returns 0; BEL_ENOTFOUND if the file does not exist; BEL_EFULL if the disk is full;
 * BEL_ENOMEM; or BEL_EIO for any other error, with details in errno. After a failed write or sync
 * the content of the file is undefined.
 *
 * Threads: one thread at a time uses a file, except that another may sync it meanwhile. Any thread
 * may use the interface.
 */

#include "belfry/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    BEL_IO_BLOCK = 4096, /* direct reads and writes are multiples of this */
};

/* How a file is opened. */
enum bel_io_how {
    BEL_IO_READ = 0,   /* an existing file, for reading and writing */
    BEL_IO_CREATE = 1, /* create the file, or truncate it */
    BEL_IO_DIRECT = 2, /* O_DIRECT; BEL_EUNSUPPORTED if the file system does not support it */
};

struct bel_io_file; /* opaque */

/* Is called with the name of each file. */
typedef void bel_io_see(void *context, const char *name);

/* The interface. An implementation has this struct as its first member and sets all functions that
 * are not said to be optional. */
struct bel_io {
    /* Locks the directory, and the file LOCK if it exists. Creates no file. BEL_EBUSY if it is
     * locked, be it by this process. */
    int (*lock)(struct bel_io *io);
    void (*unlock)(struct bel_io *io);

    /* Creates and locks the file LOCK, for versions that know no other lock, and writes the process
     * id into it. BEL_EBUSY if LOCK is locked. Optional. */
    int (*sign)(struct bel_io *io);
    /* Returns the id of the process that has the lock; 0 if it is unknown. Optional. */
    uint64_t (*holder)(struct bel_io *io);

    int (*open)(struct bel_io *io, const char *name, unsigned how, struct bel_io_file **out);
    void (*close)(struct bel_io *io, struct bel_io_file *file);
    int (*size)(struct bel_io *io, struct bel_io_file *file, uint64_t *out);

    /* Read or write all `bytes`, or fail. With BEL_IO_DIRECT, offset, address and bytes are
     * multiples of BEL_IO_BLOCK. */
    int (*read)(struct bel_io *io, struct bel_io_file *file, uint64_t offset, void *out,
                size_t bytes);
    int (*write)(struct bel_io *io, struct bel_io_file *file, uint64_t offset, const void *data,
                 size_t bytes);

    /* Writes `bytes` zeros from `offset` on, as allocated blocks, not as a hole. */
    int (*fill)(struct bel_io *io, struct bel_io_file *file, uint64_t offset, uint64_t bytes);

    /* Makes everything written durable, if it returns 0. BEL_EIO also if somebody else has deleted
     * the file or made it shorter. */
    int (*sync)(struct bel_io *io, struct bel_io_file *file);

    /* Become durable with the next sync_directory(), as does the creation of a file. */
    int (*rename)(struct bel_io *io, const char *from, const char *to);
    int (*remove)(struct bel_io *io, const char *name);
    int (*sync_directory)(struct bel_io *io);

    int (*list)(struct bel_io *io, bel_io_see *see, void *context);
    int (*free_bytes)(struct bel_io *io, uint64_t *out); /* free disk space for this user */

    uint64_t (*mono_ns)(struct bel_io *io);        /* monotonic time, to measure checkpoints */
    void (*pause)(struct bel_io *io, uint64_t ns); /* sleeps */

    /* Returns a sentence about the first write or sync that failed with BEL_EIO: "log-1 cannot be
     * synced: Input/output error"; or "". Valid until destroy(). Optional. */
    const char *(*failure)(struct bel_io *io);

    /* Opens another directory by its path, and creates it if it does not exist: the target of a
     * backup. destroy() removes a directory that was created, if it is empty. Optional. */
    int (*open_other)(struct bel_io *io, const char *path, struct bel_io **out);
    /* The same, but a directory that is created is called PATH.unfinished until appear() gives it
     * its name: nobody takes it for an empty one meanwhile. appear() does nothing for other
     * directories, and returns BEL_EIO if something else has the name by now. Optional. */
    int (*open_hidden)(struct bel_io *io, const char *path, struct bel_io **out);
    int (*appear)(struct bel_io *io);

    void (*destroy)(struct bel_io *io); /* unlocks, too */
};

/* Opens a directory, which is created if it does not exist. Returns 0 and sets `*out`, or BEL_EIO,
 * BEL_EFULL, BEL_ENOMEM. */
BEL_CHECKED int bel__io_system_open(const char *path, struct bel_io **out);

/* Opens a directory read-only: writes, syncs, renames and removals return 0 and do nothing. Fails
 * with BEL_ENOTFOUND if the directory does not exist. */
BEL_CHECKED int bel__io_view_open(const char *path, struct bel_io **out);

#endif
