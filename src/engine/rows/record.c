/* SPDX-License-Identifier: MIT */

/*
 * A record is a version, a kind and fields: each a tag and its value. Fields that are zero or empty
 * are left out. A record with an unknown tag is corrupt: the field may change the meaning of the
 * rest.
 *
 *     version | kind | tag value | tag value | ...
 *
 * Numbers and byte strings are encoded as in encoding.h. The store adds a checksum to each row.
 */
#include "engine/rows/record.h"

#include "engine/rows/encoding.h"

#include <assert.h>
#include <string.h>

enum {
    VERSION = 1,
    PLAN_STATE_VERSION = 2,
};

enum tag {
    TAG_ID = 1,
    TAG_GROUP,
    TAG_RESOURCE,
    TAG_CREATED,
    TAG_LEASE,
    TAG_EXPIRES, /* ms, at, lane */
    TAG_ATTEMPTS,
    TAG_CRASHES,
    TAG_PLAN,
    TAG_NOMINAL,
    TAG_BODY,      /* byte string in the row */
    TAG_BODY_BLOB, /* number, bytes */
    TAG_OUTCOME,   /* kind, at, reason */
    TAG_PRIORITY,
    TAG_DUE,
    TAG_REASON,
    TAG_RESULT,
    TAG_RESULT_BLOB,
    TAG_RULE, /* kind, text */
    TAG_ZONE,
    TAG_POLICIES, /* mode, gap, fold, misfire, overlap */
    TAG_UNTIL,
    TAG_COUNT,
    TAG_SPREAD,
    TAG_START,
    TAG_MADE, /* made, skipped, missed */
    TAG_SPREAD_BY,
    TAG_JOB, /* number, index, priority, depth, cost */
};

static void put_number(struct bel_row_writer *writer, enum tag tag, uint64_t number)
{
    if (number == 0) return;
    bel__write_number(writer, tag);
    bel__write_number(writer, number);
}

static void put_view(struct bel_row_writer *writer, enum tag tag, struct bel_view view)
{
    if (view.bytes == 0) return;
    bel__write_number(writer, tag);
    bel__write_view(writer, view);
}

static void put_blob(struct bel_row_writer *writer, enum tag here, enum tag elsewhere,
                     const struct bel_blob *blob)
{
    if (blob->number == 0) {
        put_view(writer, here, blob->here);
        return;
    }
    put_number(writer, elsewhere, blob->number);
    bel__write_number(writer, blob->bytes);
}

/* Writes the result, also an empty one. */
static void put_result(struct bel_row_writer *writer, const struct bel_record *record)
{
    put_blob(writer, TAG_RESULT, TAG_RESULT_BLOB, &record->result);
    if (!record->has_result || record->result.bytes > 0) return;
    bel__write_number(writer, TAG_RESULT);
    bel__write_view(writer, (struct bel_view){0});
}

static void put_outcomes(struct bel_row_writer *writer, const struct bel_record *record)
{
    for (size_t i = 0; i < record->outcomes_count; i++) {
        bel__write_number(writer, TAG_OUTCOME);
        bel__write_number(writer, record->outcomes[i].kind);
        bel__write_number(writer, (uint64_t)record->outcomes[i].at.ms);
        bel__write_view(writer, record->outcomes[i].reason);
    }
}

static void put_rule(struct bel_row_writer *writer, const struct bel_record *record)
{
    const struct bel_recurrence *rule = &record->rule;
    bel__write_number(writer, TAG_RULE);
    bel__write_number(writer, rule->kind);
    bel__write_view(writer, rule->rule);
    put_view(writer, TAG_ZONE, rule->zone);
    bel__write_number(writer, TAG_POLICIES);
    bel__write_number(writer, rule->mode);
    bel__write_number(writer, rule->gap);
    bel__write_number(writer, rule->fold);
    bel__write_number(writer, rule->misfire);
    bel__write_number(writer, rule->overlap);
    if (rule->has_until) {
        bel__write_number(writer, TAG_UNTIL);
        bel__write_number(writer, (uint64_t)rule->until.ms);
    }
    put_number(writer, TAG_COUNT, rule->count);
    put_number(writer, TAG_SPREAD, rule->spread_ms);
    if (record->has_start) {
        bel__write_number(writer, TAG_START);
        bel__write_number(writer, (uint64_t)record->start);
    }
    bel__write_number(writer, TAG_MADE);
    bel__write_number(writer, record->made);
    bel__write_number(writer, record->skipped);
    bel__write_number(writer, record->missed);
}

static void put_job(struct bel_row_writer *writer, const struct bel_task_of *job)
{
    if (job->number == 0) return;
    put_number(writer, TAG_JOB, job->number);
    bel__write_number(writer, job->index);
    bel__write_number(writer, job->priority);
    bel__write_number(writer, job->depth);
    bel__write_number(writer, job->cost);
}

size_t bel__record_write(const struct bel_record *record, uint8_t out[BEL_RECORD_BYTES_MAX])
{
    struct bel_row_writer writer = {.at = out, .end = out + BEL_RECORD_BYTES_MAX};
    bel__write_number(&writer, VERSION);
    bel__write_number(&writer, record->kind);
    if (!record->is_id_made) put_view(&writer, TAG_ID, record->id);
    if (record->job.number == 0) put_view(&writer, TAG_GROUP, record->group);
    put_view(&writer, TAG_RESOURCE, record->resource);
    put_number(&writer, TAG_CREATED, (uint64_t)record->created);
    put_number(&writer, TAG_LEASE, record->lease_ms);
    if (record->expires_ms > 0) {
        put_number(&writer, TAG_EXPIRES, record->expires_ms);
        bel__write_number(&writer, record->expires_at);
        bel__write_number(&writer, record->expires_lane);
    }
    put_number(&writer, TAG_ATTEMPTS, record->attempts);
    put_number(&writer, TAG_CRASHES, record->crashes);
    put_number(&writer, TAG_PLAN, record->plan);
    put_number(&writer, TAG_NOMINAL, record->nominal);
    put_number(&writer, TAG_SPREAD_BY, record->spread_ms);
    put_job(&writer, &record->job);
    put_number(&writer, TAG_PRIORITY, record->priority);
    put_number(&writer, TAG_DUE, record->due);
    put_view(&writer, TAG_REASON, record->reason);
    put_outcomes(&writer, record);
    if (record->kind == BEL_RECORD_PLAN) put_rule(&writer, record);
    put_result(&writer, record);
    put_blob(&writer, TAG_BODY, TAG_BODY_BLOB, &record->body);
    return (size_t)(writer.at - out);
}

/* Reads a number. A number above `max` makes the reader bad. */
static unsigned get_choice(struct bel_row_reader *reader, unsigned max)
{
    uint64_t number = bel__read_number(reader);
    if (number > max) reader->bad = true;
    return number > max ? 0 : (unsigned)number;
}

static void get_outcome(struct bel_row_reader *reader, struct bel_record *record)
{
    struct bel_outcome outcome = {
        .kind = (enum bel_outcome_kind)get_choice(reader, BEL_OUTCOME_CRASHED)};
    outcome.at.ms = (int64_t)bel__read_number(reader);
    outcome.reason = bel__read_view(reader);
    if (record->outcomes_count == BEL_OUTCOMES_MAX) {
        reader->bad = true;
        return;
    }
    record->outcomes[record->outcomes_count++] = outcome;
}

static void get_policies(struct bel_row_reader *reader, struct bel_recurrence *rule)
{
    rule->mode = (enum bel_plan_mode)get_choice(reader, BEL_PLAN_DELAY);
    rule->gap = (enum bel_gap)get_choice(reader, BEL_GAP_SKIP);
    rule->fold = (enum bel_fold)get_choice(reader, BEL_FOLD_BOTH);
    rule->misfire = (enum bel_misfire)get_choice(reader, BEL_MISFIRE_ALL);
    rule->overlap = (enum bel_overlap)get_choice(reader, BEL_OVERLAP_ALLOW);
}

static void get_job(struct bel_row_reader *reader, struct bel_task_of *out)
{
    out->number = bel__read_number(reader);
    out->index = get_choice(reader, UINT32_MAX);
    out->priority = (uint8_t)get_choice(reader, UINT8_MAX);
    out->depth = get_choice(reader, UINT32_MAX);
    out->cost = get_choice(reader, UINT32_MAX);
}

static void get_blob(struct bel_row_reader *reader, bool is_here, struct bel_blob *out)
{
    if (is_here) {
        out->here = bel__read_view(reader);
        out->bytes = out->here.bytes;
    } else {
        out->number = bel__read_number(reader);
        out->bytes = bel__read_number(reader);
        if (out->number == 0) reader->bad = true; /* blobs are numbered from 1 */
    }
}

/* Reads the value of a field that only plans have. */
static void get_plan_field(struct bel_row_reader *reader, uint64_t tag, struct bel_record *record)
{
    struct bel_recurrence *rule = &record->rule;
    switch (tag) {
    case TAG_RULE:
        rule->kind = (enum bel_plan_kind)get_choice(reader, BEL_PLAN_RRULE);
        rule->rule = bel__read_view(reader);
        break;
    case TAG_ZONE:
        rule->zone = bel__read_view(reader);
        break;
    case TAG_POLICIES:
        get_policies(reader, rule);
        break;
    case TAG_UNTIL:
        rule->has_until = true;
        rule->until.ms = (int64_t)bel__read_number(reader);
        break;
    case TAG_COUNT:
        rule->count = bel__read_number(reader);
        break;
    case TAG_SPREAD:
        rule->spread_ms = bel__read_number(reader);
        break;
    case TAG_START:
        record->has_start = true;
        record->start = (int64_t)bel__read_number(reader);
        break;
    case TAG_MADE:
        record->made = bel__read_number(reader);
        record->skipped = bel__read_number(reader);
        record->missed = bel__read_number(reader);
        break;
    default:
        reader->bad = true;
        break;
    }
}

static void get_field(struct bel_row_reader *reader, uint64_t tag, struct bel_record *record)
{
    switch (tag) {
    case TAG_ID:
        record->id = bel__read_view(reader);
        break;
    case TAG_GROUP:
        record->group = bel__read_view(reader);
        break;
    case TAG_RESOURCE:
        record->resource = bel__read_view(reader);
        break;
    case TAG_CREATED:
        record->created = (int64_t)bel__read_number(reader);
        break;
    case TAG_LEASE:
        record->lease_ms = bel__read_number(reader);
        break;
    case TAG_EXPIRES:
        record->expires_ms = bel__read_number(reader);
        record->expires_at = bel__read_number(reader);
        record->expires_lane = (uint8_t)get_choice(reader, 1);
        break;
    case TAG_ATTEMPTS:
        record->attempts = bel__read_number(reader);
        break;
    case TAG_CRASHES:
        record->crashes = bel__read_number(reader);
        break;
    case TAG_PLAN:
        record->plan = bel__read_number(reader);
        break;
    case TAG_NOMINAL:
        record->nominal = bel__read_number(reader);
        break;
    case TAG_SPREAD_BY:
        record->spread_ms = bel__read_number(reader);
        break;
    case TAG_PRIORITY:
        record->priority = (uint8_t)get_choice(reader, UINT8_MAX);
        break;
    case TAG_DUE:
        record->due = bel__read_number(reader);
        break;
    case TAG_REASON:
        record->reason = bel__read_view(reader);
        break;
    case TAG_OUTCOME:
        get_outcome(reader, record);
        break;
    case TAG_BODY:
    case TAG_BODY_BLOB:
        get_blob(reader, tag == TAG_BODY, &record->body);
        break;
    case TAG_RESULT:
    case TAG_RESULT_BLOB:
        get_blob(reader, tag == TAG_RESULT, &record->result);
        record->has_result = true;
        break;
    case TAG_JOB:
        get_job(reader, &record->job);
        break;
    default:
        get_plan_field(reader, tag, record);
        break;
    }
}

void bel__record_begin(struct bel_record *record, enum bel_record_kind kind)
{
    memset(record, 0, offsetof(struct bel_record, outcomes));
    record->kind = kind;
}

struct bel_view bel__task_id(const struct bel_record *record)
{
    assert(record->job.number != 0 && record->group.bytes < record->id.bytes);
    const char *id = record->id.data;
    size_t skipped = record->group.bytes + 1;
    return (struct bel_view){id + skipped, record->id.bytes - skipped};
}

/* Sets the group of a task from its id: "<job>/<task>". Returns false if the id has no slash. */
static bool split_id(struct bel_record *record)
{
    const char *id = record->id.data;
    const char *slash = record->id.bytes > 0 ? memchr(id, '/', record->id.bytes) : NULL;
    if (slash == NULL) return false;
    record->group = (struct bel_view){id, (size_t)(slash - id)};
    return true;
}

int bel__record_read(struct bel_view row, struct bel_record *out)
{
    struct bel_row_reader reader = bel__reader_of(row);
    if (bel__read_number(&reader) != VERSION) return BEL_ECORRUPT;
    bel__record_begin(out, (enum bel_record_kind)get_choice(&reader, BEL_RECORD_TICK));
    while (reader.at < reader.end && !reader.bad) {
        uint64_t tag = bel__read_number(&reader);
        get_field(&reader, tag, out);
    }
    out->is_id_made = out->kind == BEL_RECORD_TIMER && out->id.bytes == 0;
    if (out->job.number != 0 && !split_id(out)) return BEL_ECORRUPT;
    return reader.bad || out->id.bytes > BEL_ID_BYTES ? BEL_ECORRUPT : 0;
}

enum bel_record_kind bel__record_kind(struct bel_view row)
{
    const uint8_t *bytes = row.data;
    return row.bytes < 2 ? BEL_RECORD_TIMER : (enum bel_record_kind)bytes[1];
}

size_t bel__plan_state_write(const struct bel_plan_state *state, uint8_t out[BEL_RECORD_BYTES_MAX])
{
    struct bel_row_writer writer = {.at = out, .end = out + BEL_RECORD_BYTES_MAX};
    bel__write_number(&writer, PLAN_STATE_VERSION);
    bel__write_number(&writer, state->has_next);
    bel__write_number(&writer, state->next);
    bel__write_number(&writer, state->last);
    for (int i = 0; i < 3; i++) {
        bel__write_number(&writer, state->tick.words[i]);
    }
    bel__write_number(&writer, state->made);
    bel__write_number(&writer, state->skipped);
    bel__write_number(&writer, state->missed);
    bel__write_number(&writer, state->is_catching_up);
    bel__write_number(&writer, state->sequence);
    bel__write_number(&writer, state->uncounted);
    return (size_t)(writer.at - out);
}

int bel__plan_state_read(struct bel_view row, struct bel_plan_state *out)
{
    struct bel_row_reader reader = bel__reader_of(row);
    struct bel_plan_state state = {0};
    uint64_t version = bel__read_number(&reader);
    if (version != VERSION && version != PLAN_STATE_VERSION) return BEL_ECORRUPT;
    state.has_next = get_choice(&reader, 1) == 1;
    state.next = bel__read_number(&reader);
    state.last = bel__read_number(&reader);
    for (int i = 0; i < 3; i++) {
        state.tick.words[i] = bel__read_number(&reader);
    }
    state.made = bel__read_number(&reader);
    state.skipped = bel__read_number(&reader);
    state.missed = bel__read_number(&reader);
    state.is_catching_up = get_choice(&reader, 1) == 1;
    state.sequence = bel__read_number(&reader);
    state.uncounted = version == VERSION ? state.skipped + state.missed : bel__read_number(&reader);
    if (reader.bad || reader.at != reader.end) return BEL_ECORRUPT;
    *out = state;
    return 0;
}

size_t bel__lease_write(const struct bel_lease_row *lease, uint8_t out[BEL_RECORD_BYTES_MAX])
{
    struct bel_row_writer writer = {.at = out, .end = out + BEL_RECORD_BYTES_MAX};
    bel__write_number(&writer, VERSION);
    bel__write_number(&writer, lease->end);
    bel__write_number(&writer, lease->lease_ms);
    bel__write_number(&writer, lease->due);
    bel__write_raw(&writer, lease->secret, sizeof lease->secret);
    bel__write_view(&writer, lease->worker);
    return (size_t)(writer.at - out);
}

int bel__lease_read(struct bel_view row, struct bel_lease_row *out)
{
    struct bel_row_reader reader = bel__reader_of(row);
    struct bel_lease_row lease = {0};
    if (bel__read_number(&reader) != VERSION) return BEL_ECORRUPT;
    lease.end = bel__read_number(&reader);
    lease.lease_ms = bel__read_number(&reader);
    lease.due = bel__read_number(&reader);
    struct bel_view secret = bel__read_raw(&reader, sizeof lease.secret);
    lease.worker = bel__read_view(&reader);
    if (reader.bad || reader.at != reader.end || secret.data == NULL) return BEL_ECORRUPT;
    memcpy(lease.secret, secret.data, sizeof lease.secret);
    *out = lease;
    return 0;
}

static size_t number_bytes(uint64_t number)
{
    size_t bytes = 1;
    for (; number >= 0x80; number >>= 7) {
        bytes++;
    }
    return bytes;
}

static size_t view_bytes(struct bel_view view)
{
    return number_bytes(view.bytes) + view.bytes;
}

static size_t headers_bytes(const struct bel_schedule_spec *spec)
{
    size_t bytes = 0;
    for (size_t i = 0; i < spec->headers_count; i++) {
        bytes += view_bytes(spec->headers[i].name) + view_bytes(spec->headers[i].value);
    }
    return bytes;
}

size_t bel__body_bytes(const struct bel_schedule_spec *spec)
{
    size_t headers = headers_bytes(spec);
    return view_bytes(spec->correlation) + view_bytes(spec->retry) +
           number_bytes(spec->headers_count) + number_bytes(headers) + headers +
           spec->payload.bytes;
}

/* Writes a number of a body. bel__write_number() would demand room for the longest number. */
static uint8_t *copy_number(uint8_t *at, uint64_t number)
{
    for (; number >= 0x80; number >>= 7) {
        *at++ = (uint8_t)(number | 0x80);
    }
    *at++ = (uint8_t)number;
    return at;
}

static uint8_t *copy_view(uint8_t *at, struct bel_view view)
{
    at = copy_number(at, view.bytes);
    if (view.bytes > 0) memcpy(at, view.data, view.bytes);
    return at + view.bytes;
}

void bel__body_write(const struct bel_schedule_spec *spec, uint8_t *out)
{
    uint8_t *at = copy_view(out, spec->correlation);
    at = copy_view(at, spec->retry);
    at = copy_number(at, spec->headers_count);
    at = copy_number(at, headers_bytes(spec));
    for (size_t i = 0; i < spec->headers_count; i++) {
        at = copy_view(at, spec->headers[i].name);
        at = copy_view(at, spec->headers[i].value);
    }
    if (spec->payload.bytes > 0) memcpy(at, spec->payload.data, spec->payload.bytes);
    assert((size_t)(at - out) + spec->payload.bytes == bel__body_bytes(spec));
}

int bel__body_read(struct bel_view bytes, struct bel_body *out)
{
    struct bel_row_reader reader = bel__reader_of(bytes);
    struct bel_body body = {.correlation = bel__read_view(&reader)};
    body.retry = bel__read_view(&reader);
    body.headers_count = bel__read_number(&reader);
    body.headers = bel__read_view(&reader);
    if (reader.bad || body.headers_count > BEL_HEADERS_MAX) return BEL_ECORRUPT;
    body.payload = (struct bel_view){reader.at, (size_t)(reader.end - reader.at)};
    *out = body;
    return 0;
}

bool bel__headers_next(struct bel_view *headers, struct bel_header *out)
{
    struct bel_row_reader reader = bel__reader_of(*headers);
    if (headers->bytes == 0) return false;
    out->name = bel__read_view(&reader);
    out->value = bel__read_view(&reader);
    *headers = (struct bel_view){reader.at, (size_t)(reader.end - reader.at)};
    return !reader.bad;
}

void bel__record_note(struct bel_record *record, struct bel_outcome outcome)
{
    if (record->outcomes_count == BEL_OUTCOMES_MAX) {
        memmove(record->outcomes, record->outcomes + 1,
                (BEL_OUTCOMES_MAX - 1) * sizeof record->outcomes[0]);
        record->outcomes_count--;
    }
    record->outcomes[record->outcomes_count++] = outcome;
}

bool bel__record_is_bare(const struct bel_record *record)
{
    return record->group.bytes == 0 && record->plan == 0 && record->body.number == 0 &&
           record->result.number == 0 && record->expires_ms == 0 && record->is_id_made;
}
