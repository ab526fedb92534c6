/* SPDX-License-Identifier: MIT */

/* Uses system calls directly: the disk is measured, not the store. The file is written once before
 * the measurement, so that overwriting is timed, which is what the log does. It has no name, so
 * that nothing stays behind if the process is killed, and nothing appears among foreign files. */
#include "server/embedded/probe.h"

#include "belfry/clock.h"
#include "core/units.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    BLOCK_BYTES = 4096,
};

static int write_and_sync(int fd, uint64_t *out_us)
{
    static const char block[BLOCK_BYTES];
    struct bel_mono start = bel_clock_mono(bel_clock_system());
    if (pwrite(fd, block, sizeof block, 0) != (ssize_t)sizeof block) return BEL_EIO;
    if (fdatasync(fd) != 0) return BEL_EIO;
    struct bel_mono end = bel_clock_mono(bel_clock_system());
    *out_us = (end.ns - start.ns) / NS_PER_US;
    return 0;
}

static int compare(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

static int measure(int fd, uint64_t *out_us)
{
    uint64_t times[BEL_PROBE_SYNCS];
    int err = write_and_sync(fd, &times[0]);
    for (unsigned i = 0; i < BEL_PROBE_SYNCS && err == 0; i++) {
        err = write_and_sync(fd, &times[i]);
    }
    if (err) return err;
    qsort(times, BEL_PROBE_SYNCS, sizeof times[0], compare);
    *out_us = times[BEL_PROBE_SYNCS / 2];
    return 0;
}

/* Opens a file with a name, for file systems without nameless files: only in a new folder or beside
 * a store. Removes the name at once. Returns -1 on failure. */
static int open_named(const char *folder, bool is_new)
{
    char path[1100];
    int bytes = snprintf(path, sizeof path, "%s/superblock", folder);
    if (bytes < 0 || (size_t)bytes >= sizeof path) return -1;
    if (!is_new && access(path, F_OK) != 0) return -1;
    bytes = snprintf(path, sizeof path, "%s/.probe-%ld", folder, (long)getpid());
    if (bytes < 0 || (size_t)bytes >= sizeof path) return -1;
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd >= 0) (void)unlink(path);
    return fd;
}

int bel__probe_sync(const char *folder, uint64_t *out_us)
{
    bool is_new = mkdir(folder, 0700) == 0;
    if (!is_new && errno != EEXIST) return BEL_EIO;
    int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0) fd = open_named(folder, is_new);
    if (fd < 0) return BEL_EIO;
    int err = measure(fd, out_us);
    (void)close(fd);
    return err;
}
