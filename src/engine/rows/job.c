/* SPDX-License-Identifier: MIT */

/*
 * The row of a job is a version and fields: each a tag and its value. Fields that are zero or empty
 * are left out.
 *
 *     version | tag value | tag value | ...
 *
 * A row of a task is a version and all its fields in order, with the key of its timer in parts. An
 * edge is one number: the task's index, and the policy in the lowest two bits.
 */
#include "engine/rows/job.h"

#include "engine/rows/encoding.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

enum {
    VERSION = 1,
    TAG_COUNTS = 64, /* the first of BEL_STATES */
    TAG_ID = 96,
    TAG_REASON,
    TAG_PARENT_ID,
    TAG_CLASH,
    TAG_PLAN_ID,
    TAG_WAITED = 128, /* the first of BEL_SPAN_BUCKETS */
    TAG_RAN = 160,    /* the first of BEL_SPAN_BUCKETS */
    TASK_BITS = 24,   /* of the sequence of a key: chunks of a task's list */
    FLAG_HANDLES = 1,
    FLAG_HANDLED = 2,
    POLICY_BITS = 2,
};

static_assert(BEL_EDGE_POLICIES <= 1 << POLICY_BITS, "a policy fits");
static_assert((int)BEL_STATES <= TAG_ID - TAG_COUNTS, "tags are distinct");
static_assert((int)BEL_SPAN_BUCKETS <= TAG_RAN - TAG_WAITED, "tags are distinct");

#define NUMBER(field) offsetof(struct bel_job_row, field)

/* The numbers of a job's row. The tag of a number is its index and 1. */
static const size_t numbers[] = {
    NUMBER(number),      NUMBER(phase),       NUMBER(state),        NUMBER(priority),
    NUMBER(created),     NUMBER(is_paused),   NUMBER(deadline),     NUMBER(pace_ms),
    NUMBER(tasks),       NUMBER(edges),       NUMBER(topics),       NUMBER(paced_until),
    NUMBER(replaces),    NUMBER(works),       NUMBER(result_bytes), NUMBER(unhandled),
    NUMBER(cooldown_ms), NUMBER(thens),       NUMBER(reserved),     NUMBER(followed),
    NUMBER(follow_at),   NUMBER(parent),      NUMBER(chain),        NUMBER(plan),
    NUMBER(nominal),     NUMBER(is_reported), NUMBER(failures),     NUMBER(crashes),
    NUMBER(minute),      NUMBER(dones),       NUMBER(dones_before), NUMBER(waited.sum_ms),
    NUMBER(ran.sum_ms),
};

enum {
    NUMBERS = sizeof numbers / sizeof numbers[0],
};

static_assert((int)NUMBERS < (int)TAG_COUNTS, "tags are distinct");

/* --- keys --- */

struct bel_key bel__job_key(uint64_t number)
{
    return bel__key_of(&(struct bel_place){
        .table = BEL_TABLE_JOBS, .lane = BEL_JOB_LANE_LIVE, .sequence = number});
}

struct bel_key bel__job_ended_key(uint64_t ended, uint64_t number)
{
    return bel__key_of(&(struct bel_place){
        .table = BEL_TABLE_JOBS, .lane = BEL_JOB_LANE_ENDED, .time = ended, .sequence = number});
}

struct bel_key bel__job_id_key(const struct bel_siphash_key secrets[2], struct bel_view id)
{
    struct bel_key key = bel__key_alias(secrets, UINT32_MAX, id); /* no topic has this number */
    return bel__key_in(&key, BEL_TABLE_JOB_IDS);
}

struct bel_key bel__task_key(uint64_t job, uint32_t task)
{
    return bel__key_of(
        &(struct bel_place){.table = BEL_TABLE_TASKS, .time = job, .sequence = task});
}

struct bel_key bel__edges_key(uint64_t job, enum bel_edges_kind kind, uint32_t task, uint32_t chunk)
{
    assert(chunk >> TASK_BITS == 0);
    return bel__key_of(&(struct bel_place){.table = BEL_TABLE_EDGES,
                                           .time = job,
                                           .priority = (uint8_t)kind,
                                           .sequence = (uint64_t)task << TASK_BITS | chunk});
}

struct bel_key bel__work_key(uint64_t job, enum bel_work_kind kind, uint32_t task)
{
    return bel__key_of(&(struct bel_place){
        .table = BEL_TABLE_JOB_WORK, .time = job, .priority = (uint8_t)kind, .sequence = task});
}

struct bel_key bel__job_time_key(uint8_t lane, uint64_t time, enum bel_job_time_kind kind,
                                 uint64_t job)
{
    return bel__key_of(&(struct bel_place){.table = BEL_TABLE_JOB_TIMES,
                                           .lane = lane,
                                           .time = time,
                                           .priority = (uint8_t)kind,
                                           .sequence = job});
}

/* --- jobs --- */

static uint64_t number_at(const struct bel_job_row *row, size_t offset)
{
    uint64_t number;
    memcpy(&number, (const unsigned char *)row + offset, sizeof number);
    return number;
}

static void put_number(struct bel_row_writer *writer, unsigned tag, uint64_t number)
{
    if (number == 0) return;
    bel__write_number(writer, tag);
    bel__write_number(writer, number);
}

static void put_view(struct bel_row_writer *writer, unsigned tag, struct bel_view view)
{
    if (view.bytes == 0) return;
    bel__write_number(writer, tag);
    bel__write_view(writer, view);
}

size_t bel__job_row_write(const struct bel_job_row *row, uint8_t out[BEL_JOB_ROW_BYTES_MAX])
{
    struct bel_row_writer writer = {.at = out, .end = out + BEL_JOB_ROW_BYTES_MAX};
    assert(row->phase < BEL_JOB_PHASES && row->state < BEL_JOB_STATES);
    bel__write_number(&writer, VERSION);
    for (unsigned i = 0; i < NUMBERS; i++) {
        put_number(&writer, i + 1, number_at(row, numbers[i]));
    }
    for (unsigned i = 0; i < BEL_STATES; i++) {
        put_number(&writer, TAG_COUNTS + i, row->counts[i]);
    }
    put_view(&writer, TAG_ID, row->id);
    put_view(&writer, TAG_REASON, row->reason);
    put_view(&writer, TAG_PARENT_ID, row->parent_id);
    put_view(&writer, TAG_CLASH, row->clash);
    put_view(&writer, TAG_PLAN_ID, row->plan_id);
    for (unsigned i = 0; i < BEL_SPAN_BUCKETS; i++) {
        put_number(&writer, TAG_WAITED + i, row->waited.counts[i]);
        put_number(&writer, TAG_RAN + i, row->ran.counts[i]);
    }
    return (size_t)(writer.at - out);
}

static void get_field(struct bel_row_reader *reader, uint64_t tag, struct bel_job_row *out)
{
    if (tag >= 1 && tag <= NUMBERS) {
        uint64_t number = bel__read_number(reader);
        memcpy((unsigned char *)out + numbers[tag - 1], &number, sizeof number);
    } else if (tag >= TAG_COUNTS && tag < TAG_COUNTS + BEL_STATES) {
        out->counts[tag - TAG_COUNTS] = bel__read_number(reader);
    } else if (tag >= TAG_WAITED && tag < TAG_WAITED + BEL_SPAN_BUCKETS) {
        out->waited.counts[tag - TAG_WAITED] = bel__read_number(reader);
    } else if (tag >= TAG_RAN && tag < TAG_RAN + BEL_SPAN_BUCKETS) {
        out->ran.counts[tag - TAG_RAN] = bel__read_number(reader);
    } else if (tag == TAG_ID) {
        out->id = bel__read_view(reader);
    } else if (tag == TAG_REASON) {
        out->reason = bel__read_view(reader);
    } else if (tag == TAG_PARENT_ID) {
        out->parent_id = bel__read_view(reader);
    } else if (tag == TAG_CLASH) {
        out->clash = bel__read_view(reader);
    } else if (tag == TAG_PLAN_ID) {
        out->plan_id = bel__read_view(reader);
    } else {
        reader->bad = true;
    }
}

int bel__job_row_read(struct bel_view bytes, struct bel_job_row *out)
{
    struct bel_row_reader reader = bel__reader_of(bytes);
    *out = (struct bel_job_row){0};
    if (bel__read_number(&reader) != VERSION) return BEL_ECORRUPT;
    while (reader.at < reader.end && !reader.bad) {
        uint64_t tag = bel__read_number(&reader);
        get_field(&reader, tag, out);
    }
    bool is_known = out->phase < BEL_JOB_PHASES && out->state < BEL_JOB_STATES;
    bool is_sound = out->id.bytes > 0 && out->id.bytes <= BEL_ID_BYTES && out->priority > 0 &&
                    out->priority <= BEL_JOB_PRIORITY_MAX;
    return !reader.bad && is_known && is_sound ? 0 : BEL_ECORRUPT;
}

/* --- tasks --- */

enum bel_state bel__task_row_state(const struct bel_task_row *row)
{
    struct bel_place place = bel__place_of(&row->key);
    if (place.table == BEL_TABLE_ENDED) return (enum bel_state)bel__ended_state(place.lane);
    return place.lane == BEL_LANE_NONE ? BEL_BLOCKED : BEL_SCHEDULED;
}

size_t bel__task_row_write(const struct bel_task_row *row, uint8_t out[BEL_TASK_ROW_BYTES_MAX])
{
    struct bel_row_writer writer = {.at = out, .end = out + BEL_TASK_ROW_BYTES_MAX};
    struct bel_place place = bel__place_of(&row->key);
    assert(place.table == BEL_TABLE_TIMERS || place.table == BEL_TABLE_ENDED);
    bel__write_number(&writer, VERSION);
    bel__write_number(&writer, place.table);
    bel__write_number(&writer, place.topic);
    bel__write_number(&writer, place.lane);
    bel__write_number(&writer, place.time);
    bel__write_number(&writer, place.priority);
    bel__write_number(&writer, place.sequence);
    bel__write_number(&writer, row->open);
    bel__write_number(&writer, row->depth);
    bel__write_number(&writer, row->after_count);
    bel__write_number(&writer, row->dependents_count);
    bel__write_number(&writer, (row->handles ? FLAG_HANDLES : 0U) |
                                   (row->is_handled ? FLAG_HANDLED : 0U) | row->when << 2U);
    if (row->when != BEL_WHEN_NOW) bel__write_number(&writer, row->time);
    return (size_t)(writer.at - out);
}

static bool is_timer(const struct bel_place *place)
{
    if (place->table == BEL_TABLE_TIMERS) return place->lane <= BEL_LANE_NONE;
    return place->table == BEL_TABLE_ENDED && bel__is_task_lane(place->lane) &&
           bel__ended_state(place->lane) >= BEL_DONE && bel__ended_state(place->lane) < BEL_STATES;
}

int bel__task_row_read(struct bel_view bytes, struct bel_task_row *out)
{
    struct bel_row_reader reader = bel__reader_of(bytes);
    struct bel_task_row row = {0};
    struct bel_place place = {0};
    if (bel__read_number(&reader) != VERSION) return BEL_ECORRUPT;
    place.table = (enum bel_table)(bel__read_number(&reader) & 0xff);
    place.topic = (uint32_t)bel__read_number(&reader);
    place.lane = (uint8_t)bel__read_number(&reader);
    place.time = bel__read_number(&reader);
    place.priority = (uint8_t)bel__read_number(&reader);
    place.sequence = bel__read_number(&reader) & BEL_SEQUENCE_MAX;
    row.open = bel__read_number(&reader);
    row.depth = bel__read_number(&reader);
    row.after_count = bel__read_number(&reader);
    row.dependents_count = bel__read_number(&reader);
    uint64_t flags = bel__read_number(&reader);
    row.handles = (flags & FLAG_HANDLES) != 0;
    row.is_handled = (flags & FLAG_HANDLED) != 0;
    row.when = (enum bel_when)(flags >> 2 & 3);
    if (row.when != BEL_WHEN_NOW) row.time = bel__read_number(&reader);
    if (reader.bad || reader.at != reader.end || !is_timer(&place)) return BEL_ECORRUPT;
    if (row.open > row.after_count || row.when > BEL_WHEN_AT) return BEL_ECORRUPT;
    row.key = bel__key_of(&place);
    *out = row;
    return 0;
}

/* --- edges --- */

uint32_t bel__edges_rows(uint64_t count)
{
    return (uint32_t)((count + BEL_EDGES_OF_ROW - 1) / BEL_EDGES_OF_ROW);
}

size_t bel__edges_in_row(uint64_t count, uint32_t chunk)
{
    uint64_t start = (uint64_t)chunk * BEL_EDGES_OF_ROW;
    assert(start < count);
    return count - start < BEL_EDGES_OF_ROW ? (size_t)(count - start) : BEL_EDGES_OF_ROW;
}

size_t bel__edges_write(const struct bel_edge *edges, size_t count,
                        uint8_t out[BEL_EDGES_ROW_BYTES_MAX])
{
    uint8_t *at = out;
    assert(count > 0 && count <= BEL_EDGES_OF_ROW);
    for (size_t i = 0; i < count; i++) {
        uint64_t number = (uint64_t)edges[i].task << POLICY_BITS | edges[i].on;
        for (; number >= 0x80; number >>= 7) {
            *at++ = (uint8_t)(number | 0x80);
        }
        *at++ = (uint8_t)number;
    }
    assert(at <= out + BEL_EDGES_ROW_BYTES_MAX);
    return (size_t)(at - out);
}

int bel__edges_read(struct bel_view bytes, size_t count, struct bel_edge out[BEL_EDGES_OF_ROW])
{
    struct bel_row_reader reader = bel__reader_of(bytes);
    assert(count <= BEL_EDGES_OF_ROW);
    for (size_t i = 0; i < count; i++) {
        uint64_t number = bel__read_number(&reader);
        unsigned on = number & ((1U << POLICY_BITS) - 1);
        if (on >= BEL_EDGE_POLICIES || number >> POLICY_BITS > UINT32_MAX) return BEL_ECORRUPT;
        out[i] = (struct bel_edge){(uint32_t)(number >> POLICY_BITS), (enum bel_edge_policy)on};
    }
    return reader.bad || reader.at != reader.end ? BEL_ECORRUPT : 0;
}

size_t bel__then_row_write(const struct bel_then_row *row, uint8_t out[BEL_THEN_ROW_BYTES_MAX])
{
    struct bel_row_writer writer = {.at = out, .end = out + BEL_THEN_ROW_BYTES_MAX};
    bel__write_number(&writer, VERSION);
    bel__write_number(&writer, row->on);
    bel__write_number(&writer, row->text.number);
    bel__write_number(&writer, row->text.bytes);
    bel__write_view(&writer, row->id);
    return (size_t)(writer.at - out);
}

int bel__then_row_read(struct bel_view bytes, struct bel_then_row *out)
{
    struct bel_row_reader reader = bel__reader_of(bytes);
    uint64_t version = bel__read_number(&reader), on = bel__read_number(&reader);
    *out = (struct bel_then_row){.text = {.number = bel__read_number(&reader)}};
    out->text.bytes = bel__read_number(&reader);
    out->id = bel__read_view(&reader);
    if (reader.bad || reader.at != reader.end || version != VERSION) return BEL_ECORRUPT;
    if (on >= BEL_EDGE_POLICIES || out->id.bytes == 0) return BEL_ECORRUPT;
    out->on = (enum bel_edge_policy)on;
    return 0;
}

size_t bel__position_write(uint64_t position, uint8_t out[BEL_WORK_ROW_BYTES_MAX])
{
    struct bel_row_writer writer = {.at = out, .end = out + BEL_WORK_ROW_BYTES_MAX};
    bel__write_number(&writer, position);
    return (size_t)(writer.at - out);
}

int bel__position_read(struct bel_view bytes, uint64_t *out)
{
    struct bel_row_reader reader = bel__reader_of(bytes);
    uint64_t position = bel__read_number(&reader);
    if (reader.bad || reader.at != reader.end) return BEL_ECORRUPT;
    *out = position;
    return 0;
}
