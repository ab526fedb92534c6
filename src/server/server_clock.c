/* SPDX-License-Identifier: MIT */

/*
 * Virtual boot time starts at 1 h, so that nothing is before it, and moves together with the wall
 * in whole milliseconds. The file is written beside its place, synced and renamed, so that it is
 * the old or the new time and never half of one.
 */
#include "server/server_clock.h"

#include "core/parse.h"
#include "core/units.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    BOOT_START_MS = 3600 * 1000,
    SLICE_MS = 10, /* of real time; others may be waiting */
};

void bel__server_clock_init(struct bel_server_clock *moment, const struct bel_clock *clock)
{
    *moment = (struct bel_server_clock){.clock = clock, .now = bel_clock_now(clock)};
}

void bel__server_clock_read(struct bel_server_clock *moment)
{
    if (moment->is_virtual) {
        moment->now.real = bel_clock_mono(moment->clock);
    } else {
        moment->now = bel_clock_now(moment->clock);
    }
}

/* --- the file --- */

static int load(const char *path, struct bel_wall *out)
{
    char text[BEL_PRINT_BYTES_MAX + 2];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return errno == ENOENT ? BEL_ENOTFOUND : BEL_EIO;
    ssize_t bytes = read(fd, text, sizeof text);
    (void)close(fd);
    if (bytes < 0) return BEL_EIO;
    if (bytes == 0 || text[bytes - 1] != '\n') return BEL_ECORRUPT;
    int err = bel__parse_i64(text, (size_t)bytes - 1, INT64_MIN, INT64_MAX - 1, &out->ms);
    return err ? BEL_ECORRUPT : 0;
}

static int write_synced(int fd, const char *text, size_t bytes)
{
    if (write(fd, text, bytes) != (ssize_t)bytes) return BEL_EIO;
    return fsync(fd) == 0 ? 0 : BEL_EIO;
}

static int save_as(const struct bel_server_clock *moment, const char *path)
{
    char text[BEL_PRINT_BYTES_MAX + 1], beside[sizeof moment->path + 4];
    size_t bytes = bel__print_i64(text, moment->now.wall.ms);
    text[bytes++] = '\n';
    (void)snprintf(beside, sizeof beside, "%s.new", path);
    int fd = open(beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0) return BEL_EIO;
    int err = write_synced(fd, text, bytes);
    (void)close(fd);
    if (err == 0 && rename(beside, path) != 0) err = BEL_EIO;
    return err;
}

static int save(const struct bel_server_clock *moment)
{
    return moment->path[0] == 0 ? 0 : save_as(moment, moment->path);
}

static void place(const char *folder, char path[BEL_SERVER_CLOCK_PATH_BYTES])
{
    int bytes = snprintf(path, BEL_SERVER_CLOCK_PATH_BYTES, "%s/virtual-clock", folder);
    assert(bytes > 0 && bytes < BEL_SERVER_CLOCK_PATH_BYTES);
    (void)bytes;
}

int bel__server_clock_copy(const struct bel_server_clock *moment, const char *folder)
{
    char path[BEL_SERVER_CLOCK_PATH_BYTES];
    if (!moment->is_virtual) return 0;
    place(folder, path);
    return save_as(moment, path);
}

int bel__server_clock_init_virtual(struct bel_server_clock *moment, const struct bel_clock *clock,
                                   const char *folder)
{
    bel__server_clock_init(moment, clock);
    moment->is_virtual = true;
    moment->now.boot.ns = (uint64_t)BOOT_START_MS * NS_PER_MS;
    moment->now.wall_rest_ns = 0;
    if (folder == NULL) return 0;
    place(folder, moment->path);
    int err = load(moment->path, &moment->now.wall);
    return err == BEL_ENOTFOUND ? 0 : err;
}

/* --- advancing --- */

static void move(struct bel_server_clock *moment, uint64_t ms)
{
    moment->now.boot.ns += ms * NS_PER_MS;
    moment->now.wall.ms += (int64_t)ms;
}

/* How many ms until something is due, rounded up; more than `left_ms` if it is later. */
static uint64_t ms_until(struct bel_boot due, struct bel_boot now, uint64_t left_ms)
{
    if (due.ns <= now.ns) return 0;
    uint64_t ns = due.ns - now.ns;
    uint64_t ms = ns / NS_PER_MS + (ns % NS_PER_MS != 0);
    return ms <= left_ms ? ms : left_ms + 1;
}

static bool is_slice_over(const struct bel_server_clock *moment, struct bel_mono start)
{
    return bel_clock_mono(moment->clock).ns - start.ns >= (uint64_t)SLICE_MS * NS_PER_MS;
}

int bel__server_clock_advance(struct bel_server_clock *moment, struct bel_request_tracker *tracker,
                              struct bel_wall to, uint64_t *turns, struct bel_next *next)
{
    struct bel_boot end;
    struct bel_mono start = bel_clock_mono(moment->clock);
    uint64_t turns_max = *turns;
    assert(moment->is_virtual);
    *turns = 0;
    if (to.ms < moment->now.wall.ms) return BEL_EINVAL;
    uint64_t left_ms = (uint64_t)to.ms - (uint64_t)moment->now.wall.ms;
    if (left_ms > UINT64_MAX / NS_PER_MS) return BEL_EINVAL;
    if (bel_boot_add(moment->now.boot, left_ms * NS_PER_MS, &end) != 0) return BEL_EINVAL;
    while (*turns < turns_max && !is_slice_over(moment, start)) {
        *next = bel__request_tracker_turn(tracker, moment->now);
        ++*turns;
        uint64_t ms = ms_until(next->due, moment->now.boot, left_ms);
        if (ms > left_ms && left_ms == 0) return save(moment);
        if (ms > left_ms) ms = left_ms;
        move(moment, ms);
        left_ms -= ms;
    }
    int err = save(moment); /* those who are served now must not see it again */
    return err ? err : BEL_EBUSY;
}
