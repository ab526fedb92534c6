/* SPDX-License-Identifier: MIT */

/* Uses system calls directly: the disk is measured, not the store. The file is written once before
 * the measurement, so that overwriting is timed, which is what the log does. */
#include "server/probe.h"

#include "belfry/clock.h"
#include "core/units.h"

#include <errno.h>
#include <fcntl.h>
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

int bel__probe_sync(const char *folder, uint64_t *out_us)
{
    char path[1100];
    if (mkdir(folder, 0700) != 0 && errno != EEXIST) return BEL_EIO;
    int bytes = snprintf(path, sizeof path, "%s/.probe-%ld", folder, (long)getpid());
    if (bytes < 0 || (size_t)bytes >= sizeof path) return BEL_EIO;
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) return BEL_EIO;
    int err = measure(fd, out_us);
    (void)close(fd);
    (void)unlink(path);
    return err;
}
