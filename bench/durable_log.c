/* SPDX-License-Identifier: MIT */

/*
 * The upper limit: only a log and a hash table. Writes the same rows as the engine, byte for byte,
 * in a frame with a checksum: one direct write into preallocated files that are used in turn, and
 * one sync. The state is only in memory: pending timers in a table by number, ready ones in a ring
 * buffer. No counts, no order by due time, no lease expiry, and no recovery after a restart.
 */
#include "durable.h"

#include "engine/rows/key.h"
#include "engine/rows/record.h"
#include "store/io/io.h"
#include "store/log/batch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SEGMENTS = 4,
    SEGMENT_BYTES = 64 << 20,
    READY_MAX = 1 << 16,
    TABLE_BITS_MIN = 16,
};

const struct engine_traits engine_traits = {.name = "log"};

/* A timer in the table. */
struct item {
    uint64_t number; /* 0: none */
    struct bel_key key;
    uint8_t payload[DURABLE_PAYLOAD_BYTES];
};

static struct bel_io *io;
static struct bel_io_file *files[SEGMENTS];
static unsigned current;
static uint64_t end;
static struct bel_batch batch;
static struct bel_frame last;
static bool ids;

static uint32_t *table; /* index in `items`, plus 1 */
static unsigned table_bits;
static struct item *items;
static size_t items_count, items_max;
static uint32_t free_first; /* index plus 1; linked through the first word of the payload */
static uint32_t pending_count;

static uint64_t ready[READY_MAX];
static size_t ready_first, ready_last;
static uint64_t claimed[DURABLE_BATCH_MAX];
static size_t claimed_count;

static void must(int err)
{
    if (err) bench_fail(bel_error_text(err));
}

/* --- the table --- */

static size_t slot_of(uint64_t number)
{
    return (size_t)(number * UINT64_C(0x9e3779b97f4a7c15) >> (64 - table_bits));
}

static size_t find(uint64_t number)
{
    size_t mask = ((size_t)1 << table_bits) - 1;
    size_t slot = slot_of(number);
    while (table[slot] != 0 && items[table[slot] - 1].number != number) {
        slot = (slot + 1) & mask;
    }
    return slot;
}

static void grow(void)
{
    free(table);
    table_bits = table_bits == 0 ? TABLE_BITS_MIN : table_bits + 1;
    table = calloc((size_t)1 << table_bits, sizeof *table);
    if (table == NULL) bench_fail("out of memory");
    for (size_t i = 0; i < items_count; i++) {
        if (items[i].number != 0) table[find(items[i].number)] = (uint32_t)i + 1;
    }
}

static uint32_t take_place(void)
{
    uint32_t place = free_first;
    if (place != 0) {
        memcpy(&free_first, items[place - 1].payload, sizeof free_first);
        return place;
    }
    if (items_count == items_max) {
        items_max = items_max == 0 ? 1 << 12 : items_max * 2;
        items = realloc(items, items_max * sizeof *items);
        if (items == NULL) bench_fail("out of memory");
    }
    return (uint32_t)++items_count;
}

static void insert(uint64_t number, const struct bel_key *key)
{
    if (table_bits == 0 || pending_count >= (size_t)1 << (table_bits - 1)) grow();
    uint32_t place = take_place();
    struct item *item = &items[place - 1];
    item->number = number;
    item->key = *key;
    memcpy(item->payload, durable_payload, sizeof item->payload);
    table[find(number)] = place;
    pending_count++;
}

/* Removes a timer from the table and closes the gap. */
static void erase(uint64_t number)
{
    size_t mask = ((size_t)1 << table_bits) - 1;
    size_t hole = find(number), slot = hole;
    uint32_t place = table[hole];
    items[place - 1].number = 0;
    memcpy(items[place - 1].payload, &free_first, sizeof free_first);
    free_first = place;
    pending_count--;
    for (;;) {
        slot = (slot + 1) & mask;
        if (table[slot] == 0) break;
        size_t home = slot_of(items[table[slot] - 1].number);
        if (((slot - home) & mask) < ((slot - hole) & mask)) continue;
        table[hole] = table[slot];
        hole = slot;
    }
    table[hole] = 0;
}

/* --- the log --- */

static void put(const struct bel_key *key, const uint8_t *value, size_t bytes)
{
    must(bel__batch_reserve(&batch, bel__batch_bytes_with(&batch, 1, bytes)));
    struct bel_frame_row row = {.key = *key, .value = {value, bytes}, .is_gone = value == NULL};
    bel__batch_add(&batch, &row);
}

static void sync_batch(void)
{
    struct bel_frame frame = {.bytes = (uint32_t)batch.bytes,
                              .row_count = batch.row_count,
                              .batch = last.batch + 1,
                              .synced_bytes = end,
                              .previous_checksum = last.checksum};
    size_t bytes = bel__batch_pad(&batch, BEL_IO_BLOCK);
    bel__frame_seal(&frame, batch.memory);
    if (end + bytes > SEGMENT_BYTES) {
        current = (current + 1) % SEGMENTS;
        end = 0;
    }
    must(io->write(io, files[current], end, batch.memory, bytes));
    must(io->sync(io, files[current]));
    end += bytes;
    last = frame;
    bel__batch_clear(&batch);
}

void durable_open(const char *folder, bool has_ids)
{
    ids = has_ids;
    must(bel__io_system_open(folder, &io));
    bel__batch_init(&batch);
    for (unsigned i = 0; i < SEGMENTS; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "bare-%u", i);
        must(io->open(io, name, BEL_IO_CREATE | BEL_IO_DIRECT, &files[i]));
        must(io->fill(io, files[i], 0, SEGMENT_BYTES));
        must(io->sync(io, files[i]));
    }
}

void durable_close(void)
{
    for (unsigned i = 0; i < SEGMENTS; i++) {
        io->close(io, files[i]);
    }
    io->destroy(io);
    bel__batch_finish(&batch);
    free(table);
    free(items);
}

void durable_load_begin(void)
{
}
void durable_load_end(void)
{
}
void durable_rest(void)
{
}

/* Writes a record like that of bel__do_schedule(). */
static size_t write_record(uint64_t number, const struct bel_place *place, uint8_t *out)
{
    char id[BEL_MADE_ID_BYTES];
    struct bel_schedule_spec spec = {.payload = {durable_payload, sizeof durable_payload}};
    uint8_t body[DURABLE_PAYLOAD_BYTES + 16];
    bel__body_write(&spec, body);
    struct bel_record record = {.created = durable_now_ms()};
    record.body.here = (struct bel_view){body, bel__body_bytes(&spec)};
    record.body.bytes = record.body.here.bytes;
    if (ids) {
        durable_print_id(number, id);
    } else {
        bel__made_id(place, id);
    }
    record.id = (struct bel_view){id, ids ? DURABLE_ID_BYTES : BEL_MADE_ID_BYTES};
    return bel__record_write(&record, out);
}

/* Returns the key of an alias row. The real key has a hash of the id, which is not measured
 * here. */
static struct bel_key alias_key(uint64_t number)
{
    return (struct bel_key){{(uint64_t)BEL_TABLE_ALIASES << 56, number, 0}};
}

void durable_schedule(const struct durable_timer *timers, size_t count)
{
    int64_t now = durable_now_ms();
    uint8_t value[BEL_RECORD_BYTES_MAX];
    for (size_t i = 0; i < count; i++) {
        uint64_t number = timers[i].number;
        struct bel_place place = {.table = BEL_TABLE_TIMERS,
                                  .lane = timers[i].due_ms > 0 ? BEL_LANE_WALL : BEL_LANE_ENGINE,
                                  .priority = 128,
                                  .time = (uint64_t)(timers[i].due_ms > 0 ? timers[i].due_ms : now),
                                  .sequence = number & BEL_SEQUENCE_MAX};
        struct bel_key key = bel__key_of(&place);
        put(&key, value, write_record(number, &place, value));
        if (ids) {
            struct bel_key alias = alias_key(number);
            put(&alias, (const uint8_t *)key.words, sizeof key.words);
        }
        insert(number, &key);
        if (timers[i].due_ms == 0) ready[ready_last++ % READY_MAX] = number;
    }
    sync_batch();
}

size_t durable_claim(size_t count)
{
    uint8_t value[BEL_RECORD_BYTES_MAX];
    claimed_count = 0;
    for (; claimed_count < count && ready_first < ready_last; claimed_count++) {
        uint64_t number = ready[ready_first++ % READY_MAX];
        const struct item *item = &items[table[find(number)] - 1];
        struct bel_lease_row lease = {.end =
                                          (uint64_t)durable_now_ms() % 1000000 + DURABLE_LEASE_MS,
                                      .lease_ms = DURABLE_LEASE_MS,
                                      .due = (uint64_t)durable_now_ms()};
        memcpy(lease.secret, &number, sizeof number);
        struct bel_key key = bel__key_in(&item->key, BEL_TABLE_LEASES);
        put(&key, value, bel__lease_write(&lease, value));
        claimed[claimed_count] = number;
    }
    sync_batch();
    return claimed_count;
}

void durable_ack(void)
{
    for (size_t i = 0; i < claimed_count; i++) {
        const struct item *item = &items[table[find(claimed[i])] - 1];
        struct bel_key lease = bel__key_in(&item->key, BEL_TABLE_LEASES);
        put(&lease, NULL, 0);
        put(&item->key, NULL, 0);
        if (ids) {
            struct bel_key alias = alias_key(claimed[i]);
            put(&alias, NULL, 0);
        }
        erase(claimed[i]);
    }
    sync_batch();
}
