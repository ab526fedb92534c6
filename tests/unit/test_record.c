/* SPDX-License-Identifier: MIT */

/*
 * Records that are written read back unchanged, and invalid ones are rejected: truncated rows, rows
 * with an extra byte, and unknown values.
 */
#include "engine/rows/encoding.h"
#include "engine/rows/key.h"
#include "engine/rows/record.h"

#include "../check.h"
#include "../random.h"

#include <string.h>

enum {
    PLACES = 20000,
    ROW_BYTES = BEL_RECORD_BYTES_MAX,
};

static bool same(struct bel_view a, struct bel_view b)
{
    return a.bytes == b.bytes && (a.bytes == 0 || memcmp(a.data, b.data, a.bytes) == 0);
}

static struct bel_view view_of(const void *data, size_t bytes)
{
    return (struct bel_view){.data = data, .bytes = bytes};
}

/* Copies a row to memory of exactly its size, so that the sanitizer detects reads past its end. */
static struct bel_view exactly(const uint8_t *row, size_t bytes)
{
    uint8_t *copy = malloc(bytes > 0 ? bytes : 1);
    CHECK(copy != NULL);
    if (copy != NULL && bytes > 0) memcpy(copy, row, bytes);
    return view_of(copy, bytes);
}

static void release(struct bel_view row)
{
    free((void *)(uintptr_t)row.data);
}

/* --- numbers --- */

static void numbers_come_back(void)
{
    for (unsigned bit = 0; bit < 64; bit++) {
        for (int delta = -1; delta <= 1; delta++) {
            uint8_t bytes[BEL_ENCODED_NUMBER_BYTES_MAX];
            uint64_t number = (UINT64_C(1) << bit) + (uint64_t)delta;
            struct bel_row_writer writer = {.at = bytes, .end = bytes + sizeof bytes};
            bel__write_number(&writer, number);
            size_t used = (size_t)(writer.at - bytes);
            struct bel_row_reader reader = bel__reader_of(view_of(bytes, used));
            CHECK_EQ(bel__read_number(&reader), number);
            CHECK(!reader.bad && reader.at == reader.end);
            reader = bel__reader_of(view_of(bytes, used - 1));
            CHECK_EQ(bel__read_number(&reader), 0);
            CHECK(reader.bad);
        }
    }
}

static bool is_refused(const char *bytes, size_t count)
{
    struct bel_row_reader reader = bel__reader_of(view_of(bytes, count));
    uint64_t number = bel__read_number(&reader);
    CHECK(!reader.bad || number == 0);
    return reader.bad;
}

static void numbers_that_no_writer_writes_are_refused(void)
{
    CHECK(!is_refused("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10));
    CHECK(is_refused("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 10)); /* 2^64 */
    CHECK(is_refused("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11));
    CHECK(is_refused("\x80\x00", 2)); /* 0, in more bytes than it needs */
    CHECK(is_refused("\xff\x80\x00", 3));
    CHECK(is_refused("", 0));
}

static void bytes_that_are_not_there_are_refused(void)
{
    struct bel_row_reader reader = bel__reader_of(view_of("\x05noon", 5));
    struct bel_view view = bel__read_view(&reader);
    CHECK(reader.bad && view.bytes == 0);
    CHECK_EQ(bel__read_number(&reader), 0); /* the reader stays invalid */
    reader = bel__reader_of(view_of("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10));
    view = bel__read_view(&reader);
    CHECK(reader.bad && view.bytes == 0);
}

/* --- records --- */

static struct bel_record a_timer(void)
{
    struct bel_record record = {
        .kind = BEL_RECORD_TIMER,
        .id = BEL_VIEW("nightly@1767225600000"),
        .group = BEL_VIEW("tenant-7"),
        .resource = BEL_VIEW("api/search"),
        .created = 1767225600000,
        .lease_ms = 30000,
        .expires_ms = 5000,
        .expires_at = 1767225605000,
        .expires_lane = 1,
        .attempts = 3,
        .crashes = 1,
        .plan = 77,
        .nominal = 1767225600000,
        .spread_ms = 1500,
        .priority = 200,
        .due = 1767225600001,
        .reason = BEL_VIEW("no more attempts"),
        .body = {.bytes = 4, .here = BEL_VIEW("body")},
        .result = {.number = 12, .bytes = 5000},
    };
    bel__record_note(&record, (struct bel_outcome){BEL_OUTCOME_FAILED, {1}, BEL_VIEW("503")});
    bel__record_note(&record, (struct bel_outcome){BEL_OUTCOME_CRASHED, {2}, {NULL, 0}});
    return record;
}

static struct bel_record a_plan(void)
{
    struct bel_record record = a_timer();
    record.kind = BEL_RECORD_PLAN;
    record.nominal = 0;
    record.body = (struct bel_blob){.number = 9, .bytes = 100000};
    record.result = (struct bel_blob){0};
    record.rule = (struct bel_recurrence){
        .kind = BEL_PLAN_CRON,
        .rule = BEL_VIEW("0 9 * * 1-5"),
        .zone = BEL_VIEW("Asia/Bangkok"),
        .gap = BEL_GAP_SKIP,
        .fold = BEL_FOLD_BOTH,
        .misfire = BEL_MISFIRE_LAST,
        .overlap = BEL_OVERLAP_QUEUE,
        .has_until = true,
        .until = {1798761600000},
        .count = 12,
        .spread_ms = 60000,
    };
    record.has_start = true;
    record.start = 0;
    record.made = 5;
    record.skipped = 6;
    record.missed = 7;
    return record;
}

static void expect_same_blob(const struct bel_blob *a, const struct bel_blob *b)
{
    CHECK_EQ(a->number, b->number);
    CHECK_EQ(a->bytes, b->bytes);
    CHECK(same(a->here, b->here));
}

static void expect_same_rule(const struct bel_record *a, const struct bel_record *b)
{
    const struct bel_recurrence *x = &a->rule, *y = &b->rule;
    CHECK(x->kind == y->kind && same(x->rule, y->rule) && same(x->zone, y->zone));
    CHECK(x->mode == y->mode && x->gap == y->gap && x->fold == y->fold);
    CHECK(x->misfire == y->misfire && x->overlap == y->overlap);
    CHECK(x->has_until == y->has_until && x->until.ms == y->until.ms);
    CHECK(x->count == y->count && x->spread_ms == y->spread_ms);
    CHECK(a->has_start == b->has_start && a->start == b->start);
    CHECK(a->made == b->made && a->skipped == b->skipped && a->missed == b->missed);
}

static void expect_same(const struct bel_record *a, const struct bel_record *b)
{
    CHECK(a->kind == b->kind && same(a->id, b->id) && same(a->group, b->group));
    CHECK(same(a->resource, b->resource) && a->created == b->created);
    CHECK(a->lease_ms == b->lease_ms && a->expires_ms == b->expires_ms);
    CHECK(a->expires_at == b->expires_at && a->expires_lane == b->expires_lane);
    CHECK(a->attempts == b->attempts && a->crashes == b->crashes);
    CHECK(a->plan == b->plan && a->nominal == b->nominal && a->spread_ms == b->spread_ms);
    CHECK(a->priority == b->priority && a->due == b->due && same(a->reason, b->reason));
    expect_same_blob(&a->body, &b->body);
    expect_same_blob(&a->result, &b->result);
    CHECK_EQ(a->outcomes_count, b->outcomes_count);
    for (size_t i = 0; i < a->outcomes_count; i++) {
        CHECK(a->outcomes[i].kind == b->outcomes[i].kind);
        CHECK(a->outcomes[i].at.ms == b->outcomes[i].at.ms);
        CHECK(same(a->outcomes[i].reason, b->outcomes[i].reason));
    }
    expect_same_rule(a, b);
}

static void expect_round_trip(const struct bel_record *record)
{
    uint8_t row[ROW_BYTES];
    struct bel_record read;
    size_t bytes = bel__record_write(record, row);
    struct bel_view exact = exactly(row, bytes);
    CHECK(bel__record_read(exact, &read) == 0);
    CHECK(bel__record_kind(exact) == record->kind);
    expect_same(record, &read);
    release(exact);
}

static void records_come_back(void)
{
    struct bel_record timer = a_timer(), plan = a_plan();
    struct bel_record tick = {.kind = BEL_RECORD_TICK, .plan = 5};
    struct bel_record least = {.kind = BEL_RECORD_TIMER, .id = BEL_VIEW("a")};
    struct bel_record largest = {.kind = BEL_RECORD_TIMER,
                                 .id = BEL_VIEW("a"),
                                 .created = INT64_MAX,
                                 .attempts = UINT64_MAX,
                                 .due = UINT64_MAX,
                                 .priority = UINT8_MAX};
    expect_round_trip(&timer);
    expect_round_trip(&plan);
    expect_round_trip(&tick);
    expect_round_trip(&least);
    expect_round_trip(&largest);
}

/* The largest possible record: the limits of SCHEDULE, and all outcomes. */
/* A generated id is derived from the key of the row. */
static void a_made_id_is_not_in_the_row(void)
{
    uint8_t with[BEL_RECORD_BYTES_MAX], without[BEL_RECORD_BYTES_MAX];
    struct bel_record record, read;
    bel__record_begin(&record, BEL_RECORD_TIMER);
    record.id = BEL_VIEW("00000000000000000000000000");
    size_t bytes_with = bel__record_write(&record, with);
    record.is_id_made = true;
    size_t bytes = bel__record_write(&record, without);
    CHECK_EQ(bytes_with, bytes + 2 + record.id.bytes);
    CHECK(bel__record_read(view_of(with, bytes_with), &read) == 0);
    CHECK(!read.is_id_made && read.id.bytes == record.id.bytes);
    CHECK(bel__record_read(view_of(without, bytes), &read) == 0);
    CHECK(read.is_id_made && read.id.bytes == 0);
    bel__record_begin(&record, BEL_RECORD_TICK);
    CHECK(bel__record_read(view_of(without, bel__record_write(&record, without)), &read) == 0);
    CHECK(!read.is_id_made);
}

static void the_largest_record_fits_into_a_row(void)
{
    static const char text[BEL_BODY_INLINE_MAX];
    struct bel_record record = a_plan();
    record.id = view_of(text, BEL_ID_BYTES);
    record.group = view_of(text, BEL_GROUP_BYTES_MAX);
    record.resource = view_of(text, BEL_TOPIC_BYTES_MAX);
    record.reason = view_of(text, BEL_TEXT_BYTES_MAX);
    for (int i = 0; i < BEL_OUTCOMES_MAX; i++) {
        struct bel_view reason = view_of(text, BEL_TEXT_BYTES_MAX);
        bel__record_note(&record, (struct bel_outcome){BEL_OUTCOME_FAILED, {INT64_MAX}, reason});
    }
    record.body = (struct bel_blob){.bytes = sizeof text, .here = view_of(text, sizeof text)};
    record.kind = BEL_RECORD_TIMER; /* a plan has no outcomes */
    record.rule = (struct bel_recurrence){0};
    record.has_start = false;
    record.start = 0;
    record.made = record.skipped = record.missed = 0;
    expect_round_trip(&record);
}

/* A row that is truncated at the end of a field is a row with fewer fields; elsewhere it is
 * damaged. */
static void rows_that_are_cut_off_are_refused(void)
{
    uint8_t row[ROW_BYTES], again[ROW_BYTES];
    struct bel_record record = a_timer();
    size_t bytes = bel__record_write(&record, row), refused = 0;
    for (size_t cut = 0; cut < bytes; cut++) {
        struct bel_view exact = exactly(row, cut);
        int err = bel__record_read(exact, &record);
        CHECK(err == 0 || err == BEL_ECORRUPT);
        refused += err != 0;
        if (err == 0) {
            CHECK_EQ(bel__record_write(&record, again), cut);
            CHECK(memcmp(row, again, cut) == 0);
        }
        release(exact);
    }
    CHECK(refused > bytes - 25); /* at most one per field */
}

static void expect_corrupt(uint8_t *row, size_t bytes, size_t at, uint8_t byte)
{
    struct bel_record record;
    uint8_t before = row[at];
    row[at] = byte;
    CHECK(bel__record_read(view_of(row, bytes), &record) == BEL_ECORRUPT);
    row[at] = before;
}

static void what_nobody_knows_is_refused(void)
{
    uint8_t row[ROW_BYTES];
    struct bel_record record = {.kind = BEL_RECORD_TIMER, .id = BEL_VIEW("a")};
    size_t bytes = bel__record_write(&record, row);
    CHECK_EQ(bytes, 5); /* version, kind, tag, 1, 'a' */
    expect_corrupt(row, bytes, 0, 2);
    expect_corrupt(row, bytes, 0, 0);
    expect_corrupt(row, bytes, 1, BEL_RECORD_TICK + 1);
    expect_corrupt(row, bytes, 2, 0);
    for (unsigned tag = 28; tag < 128; tag++) {
        expect_corrupt(row, bytes, 2, (uint8_t)tag);
    }
    expect_corrupt(row, bytes, 3, 2);
    row[bytes] = 1; /* a tag alone */
    expect_corrupt(row, bytes + 1, 0, 1);
}

/* Reads a row with one more field of these bytes. */
static int read_with(const char *field, size_t field_bytes)
{
    uint8_t row[ROW_BYTES];
    struct bel_record record = {.kind = BEL_RECORD_TIMER, .id = BEL_VIEW("a")};
    size_t bytes = bel__record_write(&record, row);
    memcpy(row + bytes, field, field_bytes);
    return bel__record_read(view_of(row, bytes + field_bytes), &record);
}

static void values_that_cannot_be_are_refused(void)
{
    CHECK(read_with("\x0e\xff\x01", 3) == 0); /* priority 255 */
    CHECK(read_with("\x0e\x80\x02", 3) == BEL_ECORRUPT);
    CHECK(read_with("\x06\x01\x01\x01", 4) == 0); /* expires, on the second lane */
    CHECK(read_with("\x06\x01\x01\x02", 4) == BEL_ECORRUPT);
    CHECK(read_with("\x0d\x01\x01\x00", 4) == 0); /* an outcome: crashed */
    CHECK(read_with("\x0d\x02\x01\x00", 4) == BEL_ECORRUPT);
    CHECK(read_with("\x0d\x80\x80\x80\x80\x10\x01\x00", 8) == BEL_ECORRUPT); /* 2^32 */
    CHECK(read_with("\x15\x01\x01\x02\x02\x02", 6) == 0);                    /* policies */
    CHECK(read_with("\x15\x02\x01\x02\x02\x02", 6) == BEL_ECORRUPT);
    CHECK(read_with("\x15\x01\x01\x02\x02\x03", 6) == BEL_ECORRUPT);
    CHECK(read_with("\x13\x03\x00", 3) == BEL_ECORRUPT); /* a rule of an unknown kind */
    CHECK(read_with("\x12\x01\x05", 3) == 0);            /* a result in blob 1 */
    CHECK(read_with("\x12\x00\x05", 3) == BEL_ECORRUPT);
    CHECK(read_with("\x0c\x00\x05", 3) == BEL_ECORRUPT); /* a body in blob 0 */
}

static void only_the_last_outcomes_are_kept(void)
{
    struct bel_record record = {0};
    for (int64_t i = 0; i < BEL_OUTCOMES_MAX + 3; i++) {
        bel__record_note(&record, (struct bel_outcome){BEL_OUTCOME_FAILED, {i}, {NULL, 0}});
    }
    CHECK_EQ(record.outcomes_count, BEL_OUTCOMES_MAX);
    for (int64_t i = 0; i < BEL_OUTCOMES_MAX; i++) {
        CHECK(record.outcomes[i].at.ms == i + 3);
    }
    CHECK(read_with(
              "\x0d\x00\x00\x00\x0d\x00\x00\x00\x0d\x00\x00\x00\x0d\x00\x00\x00\x0d\x00\x00\x00",
              20) == 0);
    CHECK(
        read_with("\x0d\x00\x00\x00\x0d\x00\x00\x00\x0d\x00\x00\x00\x0d\x00\x00\x00\x0d\x00\x00\x00"
                  "\x0d\x00\x00\x00",
                  24) == BEL_ECORRUPT);
}

/* --- the other rows --- */

static void states_of_plans_come_back(void)
{
    uint8_t row[ROW_BYTES];
    struct bel_plan_state state = {.has_next = true,
                                   .next = 1767225600000,
                                   .last = 5,
                                   .tick = {{UINT64_MAX, 1, 2}},
                                   .made = 3,
                                   .skipped = 4,
                                   .missed = UINT64_MAX,
                                   .is_catching_up = true};
    struct bel_plan_state read;
    size_t bytes = bel__plan_state_write(&state, row);
    CHECK(bel__plan_state_read(view_of(row, bytes), &read) == 0);
    CHECK(read.has_next && read.next == state.next && read.last == state.last);
    CHECK(bel__key_compare(&read.tick, &state.tick) == 0 && read.is_catching_up);
    CHECK(read.made == 3 && read.skipped == 4 && read.missed == UINT64_MAX);
    for (size_t cut = 0; cut < bytes; cut++) {
        struct bel_view exact = exactly(row, cut);
        CHECK(bel__plan_state_read(exact, &read) == BEL_ECORRUPT);
        release(exact);
    }
    row[bytes] = 0;
    CHECK(bel__plan_state_read(view_of(row, bytes + 1), &read) == BEL_ECORRUPT);
    row[1] = 2; /* neither 0 nor 1 */
    CHECK(bel__plan_state_read(view_of(row, bytes), &read) == BEL_ECORRUPT);
}

static void leases_come_back(void)
{
    uint8_t row[ROW_BYTES];
    struct bel_lease_row lease = {.end = 1,
                                  .lease_ms = 30000,
                                  .due = 3,
                                  .secret = "0123456789a",
                                  .worker = BEL_VIEW("host-1")};
    struct bel_lease_row read;
    size_t bytes = bel__lease_write(&lease, row);
    CHECK(bel__lease_read(view_of(row, bytes), &read) == 0);
    CHECK(read.end == 1 && read.lease_ms == 30000 && read.due == 3);
    CHECK(memcmp(read.secret, lease.secret, sizeof read.secret) == 0);
    CHECK(same(read.worker, lease.worker));
    for (size_t cut = 0; cut < bytes; cut++) {
        struct bel_view exact = exactly(row, cut);
        CHECK(bel__lease_read(exact, &read) == BEL_ECORRUPT);
        release(exact);
    }
    row[bytes] = 0;
    CHECK(bel__lease_read(view_of(row, bytes + 1), &read) == BEL_ECORRUPT);
    row[0] = 2;
    CHECK(bel__lease_read(view_of(row, bytes), &read) == BEL_ECORRUPT);
}

static void bodies_come_back(void)
{
    const struct bel_header headers[] = {{BEL_VIEW("content-type"), BEL_VIEW("text/plain")},
                                         {BEL_VIEW("empty"), {NULL, 0}}};
    struct bel_schedule_spec spec = {.payload = BEL_VIEW("hello"),
                                     .correlation = BEL_VIEW("request-1"),
                                     .retry = BEL_VIEW("5s,30s"),
                                     .headers = headers,
                                     .headers_count = 2};
    uint8_t bytes[256];
    struct bel_body body;
    struct bel_header header;
    size_t used = bel__body_bytes(&spec), payload_at = used - spec.payload.bytes;
    bel__body_write(&spec, bytes);
    CHECK(bel__body_read(view_of(bytes, used), &body) == 0);
    CHECK(same(body.payload, spec.payload) && same(body.correlation, spec.correlation));
    CHECK(same(body.retry, spec.retry));
    CHECK_EQ(body.headers_count, 2);
    for (size_t i = 0; i < 2; i++) {
        CHECK(bel__headers_next(&body.headers, &header));
        CHECK(same(header.name, headers[i].name) && same(header.value, headers[i].value));
    }
    CHECK(!bel__headers_next(&body.headers, &header));
    for (size_t cut = 0; cut < payload_at; cut++) {
        struct bel_view exact = exactly(bytes, cut);
        CHECK(bel__body_read(exact, &body) == BEL_ECORRUPT);
        release(exact);
    }
    CHECK(bel__body_read(view_of(bytes, payload_at), &body) == 0 && body.payload.bytes == 0);
}

static void headers_that_are_damaged_end(void)
{
    struct bel_view headers = view_of("\x01"
                                      "a\x05"
                                      "b",
                                      4);
    struct bel_header header;
    CHECK(!bel__headers_next(&headers, &header));
}

/* --- keys --- */

static struct bel_place random_place(uint64_t *random)
{
    struct bel_place place = {.table = (enum bel_table)random_below(random, 12)};
    place.topic = (uint32_t)random_magnitude(random);
    place.lane = (uint8_t)random_below(random, 3);
    place.priority = (uint8_t)random_u64(random);
    place.time = random_magnitude(random);
    place.sequence = random_magnitude(random) & BEL_SEQUENCE_MAX;
    return place;
}

static bool same_place(const struct bel_place *a, const struct bel_place *b)
{
    return a->table == b->table && a->topic == b->topic && a->lane == b->lane &&
           a->priority == b->priority && a->time == b->time && a->sequence == b->sequence;
}

/* Compares field by field, in the order of the header. */
static int compare(const struct bel_place *a, const struct bel_place *b)
{
    uint64_t left[] = {a->table, a->topic, a->lane, a->time, a->priority, a->sequence};
    uint64_t right[] = {b->table, b->topic, b->lane, b->time, b->priority, b->sequence};
    for (size_t i = 0; i < sizeof left / sizeof left[0]; i++) {
        if (left[i] != right[i]) return left[i] < right[i] ? -1 : 1;
    }
    return 0;
}

static int sign(int number)
{
    return (number > 0) - (number < 0);
}

/* Makes two similar places, so that every field decides sometimes. */
static void random_pair(uint64_t *random, struct bel_place *a, struct bel_place *b)
{
    *a = random_place(random);
    *b = random_below(random, 2) == 0 ? *a : random_place(random);
    if (random_below(random, 2) == 0) b->time = a->time;
    if (random_below(random, 2) == 0) b->priority = (uint8_t)random_u64(random);
    if (random_below(random, 2) == 0) b->sequence = random_magnitude(random) & BEL_SEQUENCE_MAX;
}

static void keys_sort_as_their_fields(void)
{
    uint64_t random = 1;
    for (int i = 0; i < PLACES; i++) {
        struct bel_place a, b;
        random_pair(&random, &a, &b);
        struct bel_key a_key = bel__key_of(&a), b_key = bel__key_of(&b);
        struct bel_place back = bel__place_of(&a_key);
        CHECK(same_place(&back, &a));
        CHECK(sign(bel__key_compare(&a_key, &b_key)) == compare(&a, &b));
    }
}

static void a_key_moves_to_another_table(void)
{
    struct bel_place place = {
        .table = BEL_TABLE_TIMERS, .topic = 7, .lane = 1, .time = 9, .sequence = 3};
    struct bel_key key = bel__key_of(&place);
    struct bel_key other = bel__key_in(&key, BEL_TABLE_LEASES);
    place.table = BEL_TABLE_LEASES;
    struct bel_key want = bel__key_of(&place);
    CHECK(bel__key_compare(&other, &want) == 0);
}

static void the_key_after_another_is_the_next(void)
{
    struct bel_key key = {{1, UINT64_MAX, UINT64_MAX}}, last = {{5, 6, 7}};
    struct bel_key next = bel__key_after(&key), after = bel__key_after(&last);
    CHECK(next.words[0] == 2 && next.words[1] == 0 && next.words[2] == 0);
    CHECK(after.words[0] == 5 && after.words[1] == 6 && after.words[2] == 8);
}

static void aliases_differ_by_topic_and_id(void)
{
    const struct bel_siphash_key secrets[2] = {{"one secret of it"}, {"another one here"}};
    struct bel_key a = bel__key_alias(secrets, 1, BEL_VIEW("a"));
    struct bel_key again = bel__key_alias(secrets, 1, BEL_VIEW("a"));
    struct bel_key topic = bel__key_alias(secrets, 2, BEL_VIEW("a"));
    struct bel_key id = bel__key_alias(secrets, 1, BEL_VIEW("b"));
    CHECK(bel__place_of(&a).table == BEL_TABLE_ALIASES);
    CHECK(bel__key_compare(&a, &again) == 0);
    CHECK(bel__key_compare(&a, &topic) != 0);
    CHECK(bel__key_compare(&a, &id) != 0);
    CHECK(a.words[0] << 8 != 0 && a.words[1] != 0 && a.words[2] != 0); /* both hashes are in it */
}

/* --- made ids --- */

static void made_ids_sort_by_due_and_lead_back(void)
{
    uint64_t random = 2;
    for (int i = 0; i < PLACES; i++) {
        struct bel_place a, b, back;
        char a_id[BEL_MADE_ID_BYTES], b_id[BEL_MADE_ID_BYTES];
        random_pair(&random, &a, &b);
        a.table = b.table = BEL_TABLE_TIMERS;
        bel__made_id(&a, a_id);
        bel__made_id(&b, b_id);
        CHECK(bel__made_id_place(view_of(a_id, sizeof a_id), a.topic, &back));
        CHECK(same_place(&back, &a));
        uint8_t lane = a.lane;
        a.lane = b.lane; /* it is compared last */
        a.topic = b.topic;
        int order = compare(&a, &b);
        if (order == 0) order = (lane > b.lane) - (lane < b.lane);
        CHECK(sign(memcmp(a_id, b_id, sizeof a_id)) == order);
    }
}

static void a_made_id_is_as_it_always_was(void)
{
    struct bel_place place = {.lane = 1, .priority = 128, .time = 1767225600000, .sequence = 42};
    char id[BEL_MADE_ID_BYTES];
    bel__made_id(&place, id);
    CHECK(memcmp(id, "000036rmrak010000000000059", sizeof id) == 0);
    place = (struct bel_place){
        .lane = 3, .priority = UINT8_MAX, .time = UINT64_MAX, .sequence = BEL_SEQUENCE_MAX};
    bel__made_id(&place, id);
    CHECK(memcmp(id, "vvvvvvvvvvvvvvvvvvvvvvvvvv", sizeof id) == 0);
    place = (struct bel_place){0};
    bel__made_id(&place, id);
    CHECK(memcmp(id, "00000000000000000000000000", sizeof id) == 0);
}

static void other_ids_are_not_taken_for_made_ones(void)
{
    static const char good[] = "0123456789abcdefghijklmnop";
    char id[BEL_MADE_ID_BYTES];
    struct bel_place place;
    CHECK(bel__made_id_place(view_of(good, 26), 1, &place));
    CHECK(!bel__made_id_place(view_of(good, 25), 1, &place));
    CHECK(!bel__made_id_place(view_of("0123456789abcdefghijklmnopq", 27), 1, &place));
    for (size_t i = 0; i < sizeof id; i++) {
        for (int c = 0; c < 256; c++) {
            bool is_digit = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'v');
            memcpy(id, good, sizeof id);
            id[i] = (char)c;
            CHECK(bel__made_id_place(view_of(id, sizeof id), 1, &place) == is_digit);
        }
    }
}

/* --- tokens --- */

static void tokens_come_back(void)
{
    uint64_t random = 3;
    for (int i = 0; i < PLACES; i++) {
        struct bel_place place = random_place(&random);
        uint8_t secret[BEL_TOKEN_SECRET_BYTES], read[BEL_TOKEN_SECRET_BYTES];
        char token[BEL_TOKEN_BYTES];
        struct bel_key back;
        place.table = BEL_TABLE_TIMERS;
        struct bel_key key = bel__key_of(&place);
        random_fill(&random, secret, sizeof secret);
        bel__token_print(&key, secret, token);
        CHECK(bel__token_parse(view_of(token, sizeof token), &back, read));
        CHECK(bel__key_compare(&key, &back) == 0);
        CHECK(memcmp(secret, read, sizeof secret) == 0);
    }
}

static void what_is_no_token_is_refused(void)
{
    char token[BEL_TOKEN_BYTES + 1];
    uint8_t secret[BEL_TOKEN_SECRET_BYTES];
    struct bel_key key;
    memset(token, 'A', sizeof token);
    CHECK(bel__token_parse(view_of(token, BEL_TOKEN_BYTES), &key, secret));
    CHECK(!bel__token_parse(view_of(token, BEL_TOKEN_BYTES - 1), &key, secret));
    CHECK(!bel__token_parse(view_of(token, BEL_TOKEN_BYTES + 1), &key, secret));
    CHECK(!bel__token_parse(view_of(NULL, 0), &key, secret));
    for (size_t i = 0; i < BEL_TOKEN_BYTES; i++) {
        token[i] = '+';
        CHECK(!bel__token_parse(view_of(token, BEL_TOKEN_BYTES), &key, secret));
        token[i] = 'A';
    }
}

int main(void)
{
    RUN(numbers_come_back);
    RUN(numbers_that_no_writer_writes_are_refused);
    RUN(bytes_that_are_not_there_are_refused);
    RUN(records_come_back);
    RUN(a_made_id_is_not_in_the_row);
    RUN(the_largest_record_fits_into_a_row);
    RUN(rows_that_are_cut_off_are_refused);
    RUN(what_nobody_knows_is_refused);
    RUN(values_that_cannot_be_are_refused);
    RUN(only_the_last_outcomes_are_kept);
    RUN(states_of_plans_come_back);
    RUN(leases_come_back);
    RUN(bodies_come_back);
    RUN(headers_that_are_damaged_end);
    RUN(keys_sort_as_their_fields);
    RUN(a_key_moves_to_another_table);
    RUN(the_key_after_another_is_the_next);
    RUN(aliases_differ_by_topic_and_id);
    RUN(made_ids_sort_by_due_and_lead_back);
    RUN(a_made_id_is_as_it_always_was);
    RUN(other_ids_are_not_taken_for_made_ones);
    RUN(tokens_come_back);
    RUN(what_is_no_token_is_refused);
    return 0;
}
