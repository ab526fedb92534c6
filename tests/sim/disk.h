/* SPDX-License-Identifier: MIT */
#ifndef BEL_TESTS_SIM_DISK_H
#define BEL_TESTS_SIM_DISK_H

/*
 * disk - files in memory behind the door of store/io/io.h, on a disk that breaks when it is told.
 *
 *     write ---> CACHE, and a list of sectors that are not yet on the platter
 *     sync ----> PLATTER has them
 *     power cut: of the list, any sectors get there, in any mixture of old and new; the cache is
 *                what the platter has
 *     kill:      the cache stays, and the list
 *
 * A sync that fails loses the list, of which some may have got there, and leaves the cache: from
 * then on a reader sees what the platter does not have. Names of files are durable with the sync
 * of the directory; a power cut keeps the first few changes since.
 *
 * Chance comes from a seed: the same calls on the same seed make the same history.
 */

#include "store/io/io.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    DISK_SECTOR = 512,
};

struct disk; /* opaque */

/* What is to break; change it at any time. A count of 1 is the next one; 0 is never. */
struct disk_plan {
    bool has_direct;       /* files can be opened past the cache */
    uint64_t free_bytes;   /* what is left for files to grow */
    uint64_t mono_ns;      /* the clock; only syncs take time: */
    uint64_t sync_ns;      /* how long each of them takes */
    uint64_t crash_in;     /* operations until everything stops, in the middle of one */
    uint64_t fail_sync_in; /* syncs until one fails */
    uint64_t fail_write_in;
};

struct disk *disk_create(uint64_t seed);
struct disk *disk_clone(const struct disk *disk);
void disk_destroy(struct disk *disk);

struct bel_io *disk_io(struct disk *disk);
struct disk_plan *disk_plan(struct disk *disk);

/* Where a backup goes that a store on this disk makes: a disk, borrowed; or NULL. */
void disk_set_other(struct disk *disk, struct disk *other);

/* Opens a folder of a disk: the one with all files or, if the path ends in "/tree", the one with
 * those of the tree, whose names begin with "tree/". */
BEL_CHECKED int disk_folder(struct bel_io *disk, const char *path, struct bel_io **out);

/* Counts an operation that is not the disk's own. False if the power is off: then it is off
 * before the operation or, by chance, after it, which is what `*out_is_done` says. */
bool disk_step(struct disk *disk, bool *out_is_done);

/* Operations so far: writes, syncs, and changes of names. */
uint64_t disk_operation_count(const struct disk *disk);

/* Lets every operation fail from now on, without an effect: what still runs is dead. */
void disk_stop(struct disk *disk);

/* True after that, or a crash that was planned, until one of the next two. */
bool disk_is_down(const struct disk *disk);

/* The process has died, and perhaps the power with it. Files are closed and the lock is free. */
void disk_kill(struct disk *disk);
void disk_cut_power(struct disk *disk);

/* The size of a file, or 0; and its byte at an offset, xored in cache and on the platter. */
size_t disk_size(const struct disk *disk, const char *name);
void disk_flip(struct disk *disk, const char *name, size_t offset, uint8_t bits);
uint8_t disk_byte(const struct disk *disk, const char *name, size_t offset);

#endif
