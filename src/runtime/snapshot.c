/* SPDX-License-Identifier: MIT */

/*
 * A snapshot is the pending timers, serialized for another process at a later time:
 *
 *     offset  bytes   header
 *          0      8   "BELSNAP" and a zero
 *          8      4   version: 1
 *         12      4   number of entries
 *         16      8   wall clock when it was taken, in ms, signed: for information only
 *         24      8   checksum of all bytes except these
 *         32          entries, in the order in which they are due
 *
 *     offset  bytes   entry
 *          0      2   kind
 *          2      1   priority
 *          3      1   repeat: enum bel_repeat
 *          4      1   when: enum when, the meaning of `time`
 *          5      3   zeros
 *          8      8   time: remaining ns; or ns overdue; or an instant of the wall clock, in ms,
 *                     signed
 *         16      8   the caller's word
 *         24      8   period in ns
 *
 * Numbers are little-endian. The checksum is CRC-64/XZ: it detects damage, but not deliberate
 * changes. The fields at 0, 8 and 24, and the bytes that the checksum covers, are the same in every
 * version, so that a newer snapshot is not mistaken for a damaged one.
 */
#include "runtime/found.h"
#include "runtime/frame.h"
#include "runtime/runtime.h"

#include <stdlib.h>
#include <string.h>

enum {
    VERSION = 1,
    ENTRY_BYTES = 32,
};

enum when {
    WHEN_REMAINS,
    WHEN_OVERDUE,
    WHEN_INSTANT,
};

#define LAST_INSTANT (BEL_NEVER - 1)

struct entry {
    uint8_t kind[2];
    uint8_t priority;
    uint8_t repeat;
    uint8_t when;
    uint8_t zeros[3];
    uint8_t time[8];
    uint8_t user[8];
    uint8_t period_ns[8];
};

static_assert(sizeof(struct entry) == ENTRY_BYTES, "as in the table");
static_assert(offsetof(struct entry, when) == 4, "as in the table");
static_assert(offsetof(struct entry, time) == 8, "as in the table");
static_assert(offsetof(struct entry, period_ns) == 24, "as in the table");
static_assert(BEL_ONCE == 0 && BEL_RATE_SKIP == 1 && BEL_RATE_BURST == 2 && BEL_RATE_DELAY == 3 &&
                  BEL_DELAY == 4,
              "written down, so these numbers stay");

static const uint8_t magic[8] = "BELSNAP";

/*
 * Writing.
 */

static void write_entry(struct entry *out, const struct found *timer, uint64_t now)
{
    *out =
        (struct entry){.priority = what_priority(timer->what), .repeat = what_repeat(timer->what)};
    put(out->kind, what_kind(timer->what), sizeof out->kind);
    put(out->user, timer->user, sizeof out->user);
    put(out->period_ns, timer->period_ns, sizeof out->period_ns);
    uint64_t time;
    if (timer->wall_ms != WALL_NONE) {
        out->when = WHEN_INSTANT;
        time = (uint64_t)timer->wall_ms;
    } else if (timer->due < now) {
        out->when = WHEN_OVERDUE;
        time = now - timer->due;
    } else {
        out->when = WHEN_REMAINS;
        time = timer->due - now;
    }
    put(out->time, time, sizeof out->time);
}

static int write_all(const struct findings *all, struct bel_boot now, struct bel_wall wall,
                     void **out, size_t *out_bytes)
{
    size_t bytes = HEADER_BYTES + (size_t)all->count * ENTRY_BYTES;
    uint8_t *snapshot = malloc(bytes);
    if (snapshot == NULL) return BEL_ENOMEM;
    frame_begin(&(struct frame){magic, VERSION, ENTRY_BYTES}, snapshot, all->count, wall);
    struct entry *entries = (struct entry *)(void *)(snapshot + HEADER_BYTES);
    for (uint32_t i = 0; i < all->count; i++) {
        write_entry(&entries[i], &all->timers[i], now.ns);
    }
    frame_seal(snapshot, bytes);
    *out = snapshot;
    *out_bytes = bytes;
    return 0;
}

int bel_runtime_snapshot(const struct bel_runtime *runtime, void **out, size_t *out_bytes)
{
    if (runtime_is_forked(runtime)) return BEL_ECLOSED;
    struct findings all = {0};
    struct bel_boot now = bel_clock_boot(runtime->clock);
    struct bel_wall wall = bel_clock_wall(runtime->clock);
    int err = bel__found_all(&runtime->pool, &all);
    if (err == 0) err = write_all(&all, now, wall, out, out_bytes);
    free(all.timers);
    return err;
}

/*
 * Reading.
 */

static int check_header(const uint8_t *snapshot, size_t bytes)
{
    return frame_check(&(struct frame){magic, VERSION, ENTRY_BYTES}, snapshot, bytes);
}

/* Rejects everything that bel_runtime_snapshot() never writes. */
static int check_entry(const struct entry *entry)
{
    if (get(entry->zeros, sizeof entry->zeros) != 0) return BEL_ECORRUPT;
    if (entry->when > WHEN_INSTANT || entry->repeat > BEL_DELAY) return BEL_ECORRUPT;
    uint64_t time = get(entry->time, sizeof entry->time);
    if (entry->when == WHEN_INSTANT && (int64_t)time == WALL_NONE) return BEL_ECORRUPT;
    uint64_t period_ns = get(entry->period_ns, sizeof entry->period_ns);
    return entry->repeat != BEL_ONCE && period_ns == 0 ? BEL_ECORRUPT : 0;
}

/* Checks that the kind of an entry is registered here. */
static int check_kind(const struct bel_runtime *runtime, const struct entry *entry)
{
    unsigned kind = (unsigned)get(entry->kind, sizeof entry->kind);
    return runtime_knows(runtime, kind) ? 0 : BEL_EINVAL;
}

static const struct entry *entries_in(const void *snapshot)
{
    return (const struct entry *)snapshot + HEADER_BYTES / ENTRY_BYTES;
}

int bel_snapshot_open(const void *snapshot, size_t bytes, struct bel_wall *out_taken,
                      size_t *out_count)
{
    const struct header *header = snapshot;
    int err = check_header(snapshot, bytes);
    size_t count = err == 0 ? (bytes - HEADER_BYTES) / ENTRY_BYTES : 0;
    for (size_t i = 0; err == 0 && i < count; i++) {
        err = check_entry(&entries_in(snapshot)[i]);
    }
    if (err) return err;
    *out_taken = (struct bel_wall){(int64_t)get(header->wall_ms, sizeof header->wall_ms)};
    *out_count = count;
    return 0;
}

void bel_snapshot_read(const void *snapshot, size_t index, struct bel_snapshot_timer *out)
{
    const struct entry *entry = &entries_in(snapshot)[index];
    uint64_t time = get(entry->time, sizeof entry->time);
    *out = (struct bel_snapshot_timer){
        .user = get(entry->user, sizeof entry->user),
        .remaining_ns = entry->when == WHEN_REMAINS ? time : 0,
        .overdue_ns = entry->when == WHEN_OVERDUE ? time : 0,
        .period_ns = entry->repeat != BEL_ONCE ? get(entry->period_ns, sizeof entry->period_ns) : 0,
        .wall = {entry->when == WHEN_INSTANT ? (int64_t)time : 0},
        .is_wall = entry->when == WHEN_INSTANT,
        .kind = (bel_kind_t)get(entry->kind, sizeof entry->kind),
        .priority = entry->priority,
        .repeat = entry->repeat,
    };
}

/* Schedules an entry; a time too far ahead to represent becomes the last instant. */
static int schedule(struct bel_runtime *runtime, const struct entry *entry, uint64_t now,
                    bel_timer_t *out)
{
    uint64_t time = get(entry->time, sizeof entry->time);
    struct bel_schedule timer = {
        .due = {LAST_INSTANT},
        .user = get(entry->user, sizeof entry->user),
        .period_ns = get(entry->period_ns, sizeof entry->period_ns),
        .wall_ms = (int64_t)time,
        .kind = (bel_kind_t)get(entry->kind, sizeof entry->kind),
        .priority = entry->priority,
        .repeat = entry->repeat,
    };
    if (entry->when == WHEN_INSTANT) {
        int err = bel_runtime_schedule_wall(runtime, &timer, out);
        if (err != BEL_ERANGE) return err;
    } else if (entry->when == WHEN_OVERDUE) {
        timer.due.ns = time < now ? now - time : 0;
    } else if (time < LAST_INSTANT - now) {
        timer.due.ns = now + time;
    }
    return bel_runtime_schedule(runtime, &timer, out);
}

int bel_runtime_restore(struct bel_runtime *runtime, const void *snapshot, size_t bytes)
{
    if (runtime_is_forked(runtime)) return BEL_ECLOSED;
    struct bel_wall taken;
    size_t count, done = 0;
    int err = bel_snapshot_open(snapshot, bytes, &taken, &count);
    if (err) return err;
    const struct entry *entries = entries_in(snapshot);
    for (size_t i = 0; i < count; i++) {
        err = check_kind(runtime, &entries[i]);
        if (err) return err;
    }
    bel_timer_t *timers = malloc((count + 1) * sizeof *timers);
    if (timers == NULL) return BEL_ENOMEM;
    uint64_t now = runtime_now(runtime);
    while (err == 0 && done < count) {
        err = schedule(runtime, &entries[done], now, &timers[done]);
        if (err == 0) done++;
    }
    while (err != 0 && done > 0) {
        (void)bel_runtime_cancel(runtime, timers[--done]);
    }
    free(timers);
    return err;
}
