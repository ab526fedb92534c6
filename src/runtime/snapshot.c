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
#include "runtime/runtime.h"

#include <stdlib.h>
#include <string.h>

enum {
    VERSION = 1,
    HEADER_BYTES = 32,
    ENTRY_BYTES = 32,
};

enum when {
    WHEN_REMAINS,
    WHEN_OVERDUE,
    WHEN_INSTANT,
};

#define LAST_INSTANT (BEL_NEVER - 1)

struct header {
    uint8_t magic[8];
    uint8_t version[4];
    uint8_t count[4];
    uint8_t wall_ms[8];
    uint8_t checksum[8];
};

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

static_assert(sizeof(struct header) == HEADER_BYTES, "as in the table");
static_assert(offsetof(struct header, version) == 8, "as in the table, in every version");
static_assert(offsetof(struct header, checksum) == 24, "as in the table, in every version");
static_assert(sizeof(struct entry) == ENTRY_BYTES, "as in the table");
static_assert(offsetof(struct entry, when) == 4, "as in the table");
static_assert(offsetof(struct entry, time) == 8, "as in the table");
static_assert(offsetof(struct entry, period_ns) == 24, "as in the table");
static_assert(BEL_ONCE == 0 && BEL_RATE_SKIP == 1 && BEL_RATE_BURST == 2 && BEL_RATE_DELAY == 3 &&
                  BEL_DELAY == 4,
              "written down, so these numbers stay");

static const uint8_t magic[8] = "BELSNAP";

static void put(uint8_t *out, uint64_t number, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++) {
        out[i] = (uint8_t)(number >> 8 * i);
    }
}

static uint64_t get(const uint8_t *in, unsigned bytes)
{
    uint64_t number = 0;
    for (unsigned i = 0; i < bytes; i++) {
        number |= (uint64_t)in[i] << 8 * i;
    }
    return number;
}

static uint64_t crc64(uint64_t crc, const uint8_t *in, size_t bytes)
{
    static const uint64_t by_nibble[16] = {
        UINT64_C(0x0000000000000000), UINT64_C(0x7d9ba13851336649), UINT64_C(0xfb374270a266cc92),
        UINT64_C(0x86ace348f355aadb), UINT64_C(0x64b62bcaebc387a1), UINT64_C(0x192d8af2baf0e1e8),
        UINT64_C(0x9f8169ba49a54b33), UINT64_C(0xe21ac88218962d7a), UINT64_C(0xc96c5795d7870f42),
        UINT64_C(0xb4f7f6ad86b4690b), UINT64_C(0x325b15e575e1c3d0), UINT64_C(0x4fc0b4dd24d2a599),
        UINT64_C(0xadda7c5f3c4488e3), UINT64_C(0xd041dd676d77eeaa), UINT64_C(0x56ed3e2f9e224471),
        UINT64_C(0x2b769f17cf112238),
    };
    crc = ~crc;
    for (size_t i = 0; i < bytes; i++) {
        crc ^= in[i];
        crc = crc >> 4 ^ by_nibble[crc & 15];
        crc = crc >> 4 ^ by_nibble[crc & 15];
    }
    return ~crc;
}

static uint64_t checksum(const uint8_t *snapshot, size_t bytes)
{
    uint64_t crc = crc64(0, snapshot, offsetof(struct header, checksum));
    return crc64(crc, snapshot + HEADER_BYTES, bytes - HEADER_BYTES);
}

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

/* Sets the checksum of an otherwise complete snapshot. */
static void seal(uint8_t *snapshot, size_t bytes)
{
    uint64_t sum = checksum(snapshot, bytes);
    put(snapshot + offsetof(struct header, checksum), sum, sizeof sum);
}

static int write_all(const struct findings *all, struct bel_boot now, struct bel_wall wall,
                     void **out, size_t *out_bytes)
{
    size_t bytes = HEADER_BYTES + (size_t)all->count * ENTRY_BYTES;
    uint8_t *snapshot = malloc(bytes);
    if (snapshot == NULL) return BEL_ENOMEM;
    struct header *header = (struct header *)(void *)snapshot;
    *header = (struct header){0};
    memcpy(header->magic, magic, sizeof magic);
    put(header->version, VERSION, sizeof header->version);
    put(header->count, all->count, sizeof header->count);
    put(header->wall_ms, (uint64_t)wall.ms, sizeof header->wall_ms);
    struct entry *entries = (struct entry *)(void *)(snapshot + HEADER_BYTES);
    for (uint32_t i = 0; i < all->count; i++) {
        write_entry(&entries[i], &all->timers[i], now.ns);
    }
    seal(snapshot, bytes);
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
    const struct header *header = (const struct header *)(const void *)snapshot;
    if (bytes < HEADER_BYTES) return BEL_ECORRUPT;
    if (memcmp(header->magic, magic, sizeof magic) != 0) return BEL_ECORRUPT;
    uint64_t sum = get(header->checksum, sizeof header->checksum);
    if (sum != checksum(snapshot, bytes)) return BEL_ECORRUPT;
    uint64_t version = get(header->version, sizeof header->version);
    if (version > VERSION) return BEL_EINVAL;
    if (version < VERSION) return BEL_ECORRUPT;
    if ((bytes - HEADER_BYTES) % ENTRY_BYTES != 0) return BEL_ECORRUPT;
    uint64_t count = get(header->count, sizeof header->count);
    return count == (bytes - HEADER_BYTES) / ENTRY_BYTES ? 0 : BEL_ECORRUPT;
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
