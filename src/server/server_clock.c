/* SPDX-License-Identifier: MIT */

/*
 * Virtual boot time starts at 1 h, so that no time is negative, and advances with the wall clock in
 * whole milliseconds. The file is written under a temporary name, synced and renamed, so that it
 * always has the old or the new time.
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
    SLICE_MS = 10, /* of real time; other clients may be waiting */
    CLOSE_READS_MAX = 100,
    CLOSE_NS_MAX = 20 * 1000, /* longest time between the first read of a clock and the last */
};

void bel__server_clock_init(struct bel_server_clock *clock, const struct bel_clock *system)
{
    *clock = (struct bel_server_clock){.system = system, .now = bel_clock_now(system)};
}

void bel__server_clock_read(struct bel_server_clock *clock)
{
    if (clock->is_virtual) {
        clock->now.real = bel_clock_mono(clock->system);
    } else {
        clock->now = bel_clock_now(clock->system);
    }
}

void bel__server_clock_read_closely(struct bel_server_clock *clock)
{
    for (int i = 0; i < CLOSE_READS_MAX; i++) {
        bel__server_clock_read(clock);
        if (clock->is_virtual) return;
        if (bel_clock_boot(clock->system).ns - clock->now.boot.ns <= CLOSE_NS_MAX) return;
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

static int save_as(const struct bel_server_clock *clock, const char *path)
{
    char text[BEL_PRINT_BYTES_MAX + 1], beside[sizeof clock->path + 4];
    size_t bytes = bel__print_i64(text, clock->now.wall.ms);
    text[bytes++] = '\n';
    (void)snprintf(beside, sizeof beside, "%s.new", path);
    int fd = open(beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0) return BEL_EIO;
    int err = write_synced(fd, text, bytes);
    (void)close(fd);
    if (err == 0 && rename(beside, path) != 0) err = BEL_EIO;
    return err;
}

static void note_waiting(struct bel_server_clock *clock)
{
    clock->is_waiting = clock->is_settled != NULL && !clock->is_settled(clock->context);
}

static int save(struct bel_server_clock *clock)
{
    if (clock->store != NULL && clock->stored.ms != clock->now.wall.ms) {
        clock->stored = clock->now.wall;
        clock->store(clock->store_context, clock->stored);
        note_waiting(clock);
        if (clock->is_waiting) return BEL_EBUSY;
    }
    return clock->path[0] == 0 ? 0 : save_as(clock, clock->path);
}

static void place(const char *folder, char path[BEL_SERVER_CLOCK_PATH_BYTES])
{
    int bytes = snprintf(path, BEL_SERVER_CLOCK_PATH_BYTES, "%s/virtual-clock", folder);
    assert(bytes > 0 && bytes < BEL_SERVER_CLOCK_PATH_BYTES);
    (void)bytes;
}

int bel__server_clock_copy(const struct bel_server_clock *clock, const char *folder)
{
    char path[BEL_SERVER_CLOCK_PATH_BYTES];
    if (!clock->is_virtual) return 0;
    place(folder, path);
    return save_as(clock, path);
}

int bel__server_clock_init_virtual(struct bel_server_clock *clock, const struct bel_clock *system,
                                   const char *folder)
{
    bel__server_clock_init(clock, system);
    clock->is_virtual = true;
    clock->now.boot.ns = (uint64_t)BOOT_START_MS * NS_PER_MS;
    clock->now.wall_rest_ns = 0;
    if (folder == NULL) return 0;
    place(folder, clock->path);
    int err = load(clock->path, &clock->now.wall);
    return err == BEL_ENOTFOUND ? 0 : err;
}

/* --- advancing --- */

static void move(struct bel_server_clock *clock, uint64_t ms)
{
    assert(clock->is_virtual);
    clock->now.boot.ns += ms * NS_PER_MS;
    clock->now.wall.ms += (int64_t)ms;
}

/* Returns the ms until `due`, rounded up; more than `left_ms` if it is later. */
static uint64_t ms_until(struct bel_boot due, struct bel_boot now, uint64_t left_ms)
{
    if (due.ns <= now.ns) return 0;
    uint64_t ns = due.ns - now.ns;
    uint64_t ms = ns / NS_PER_MS + (ns % NS_PER_MS != 0);
    return ms <= left_ms ? ms : left_ms + 1;
}

static bool is_slice_over(const struct bel_server_clock *clock, struct bel_mono start)
{
    return bel_clock_mono(clock->system).ns - start.ns >= (uint64_t)SLICE_MS * NS_PER_MS;
}

int bel__server_clock_advance(struct bel_server_clock *clock, struct bel_request_tracker *tracker,
                              struct bel_wall to, uint64_t *turns, struct bel_next *next)
{
    struct bel_boot end;
    struct bel_mono start = bel_clock_mono(clock->system);
    uint64_t turns_max = *turns;
    assert(clock->is_virtual);
    *turns = 0;
    if (to.ms < clock->now.wall.ms) return BEL_EINVAL;
    uint64_t left_ms = (uint64_t)to.ms - (uint64_t)clock->now.wall.ms;
    if (left_ms > UINT64_MAX / NS_PER_MS) return BEL_EINVAL;
    if (bel_boot_add(clock->now.boot, left_ms * NS_PER_MS, &end) != 0) return BEL_EINVAL;
    while (*turns < turns_max && !is_slice_over(clock, start)) {
        *next = bel__request_tracker_turn(tracker, clock->now);
        ++*turns;
        note_waiting(clock);
        if (clock->is_waiting) break;
        uint64_t ms = ms_until(next->due, clock->now.boot, left_ms);
        if (ms > left_ms && left_ms == 0) return save(clock);
        if (ms > left_ms) ms = left_ms;
        move(clock, ms);
        left_ms -= ms;
    }
    int err = save(clock); /* clients have seen this time; a restart must not repeat it */
    return err ? err : BEL_EBUSY;
}
