/* SPDX-License-Identifier: MIT */

/*
 * Each row becomes a line of JSON, for people and for programs. All lines have the table and the
 * key; the other fields depend on the table. Bytes that are not plain text are printed in
 * hexadecimal, in a field whose name ends in _hex. The secrets of tokens and of ids are left out.
 *
 *     {"table":"timers","key":"0400...","topic":"mail","id":"a","lane":"wall","time":1767225600000,
 *      "priority":128,"sequence":7,"attempts":1,"payload":"hello"}
 *
 * A row that cannot be decoded has "damaged":true in its line.
 */
#include "engine/engine.h"
#include "engine/offline/inspect.h"
#include "engine/offline/subprocess.h"
#include "engine/rows/encoding.h"
#include "engine/rows/job.h"
#include "engine/state/topic_row.h"

#include "core/buffer.h"

#include <assert.h>
#include <string.h>

enum {
    LINE_BYTES_MAX = 200 << 20, /* the largest payload in hexadecimal, and more */
};

/* The current line. After an error nothing more is added. */
struct line {
    struct bel_engine *engine;
    struct bel_buffer buffer;
    int err;
};

static void put_text(struct line *line, const char *text)
{
    if (!line->err) line->err = bel__buffer_append(&line->buffer, text, strlen(text));
}

__attribute__((format(printf, 2, 3))) static void put(struct line *line, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (!line->err) line->err = bel__buffer_append_vformat(&line->buffer, format, args);
    va_end(args);
}

static bool is_plain(struct bel_view bytes)
{
    const unsigned char *text = bytes.data;
    for (size_t i = 0; i < bytes.bytes; i++) {
        if (text[i] < 0x20 || text[i] > 0x7e) return false;
    }
    return true;
}

static void put_escaped(struct line *line, struct bel_view bytes)
{
    const char *text = bytes.data;
    for (size_t i = 0; i < bytes.bytes && !line->err; i++) {
        if (text[i] == '"' || text[i] == '\\') put_text(line, "\\");
        if (!line->err) line->err = bel__buffer_append(&line->buffer, text + i, 1);
    }
}

static void put_digits(struct line *line, struct bel_view bytes)
{
    static const char digits[] = "0123456789abcdef";
    const unsigned char *data = bytes.data;
    for (size_t i = 0; i < bytes.bytes && !line->err; i++) {
        char pair[2] = {digits[data[i] >> 4], digits[data[i] & 15]};
        line->err = bel__buffer_append(&line->buffer, pair, sizeof pair);
    }
}

/* Adds bytes in quotes. */
static void put_quoted(struct line *line, struct bel_view bytes)
{
    put_text(line, "\"");
    if (is_plain(bytes)) {
        put_escaped(line, bytes);
    } else {
        put_digits(line, bytes);
    }
    put_text(line, "\"");
}

/* Adds a field of bytes, unless it is empty. */
static void put_bytes(struct line *line, const char *name, struct bel_view bytes)
{
    if (bytes.bytes == 0) return;
    put(line, ",\"%s%s\":", name, is_plain(bytes) ? "" : "_hex");
    put_quoted(line, bytes);
}

static void put_number(struct line *line, const char *name, uint64_t number)
{
    put(line, ",\"%s\":%llu", name, (unsigned long long)number);
}

static void put_if(struct line *line, const char *name, uint64_t number)
{
    if (number != 0) put_number(line, name, number);
}

static void put_damaged(struct line *line)
{
    put_text(line, ",\"damaged\":true");
}

/* --- records --- */

/* Appends the bytes of a blob, chunk by chunk. */
static int gather(const struct bel_engine *engine, const struct bel_blob *blob,
                  struct bel_buffer *out)
{
    if (blob->number == 0) return bel__buffer_append(out, blob->here.data, blob->here.bytes);
    for (uint64_t i = 0, at = 0; at < blob->bytes; i++, at += BEL_CHUNK_BYTES) {
        struct bel_key key = bel__key_of(
            &(struct bel_place){.table = BEL_TABLE_CHUNKS, .time = blob->number, .sequence = i});
        struct bel_view chunk;
        int err = bel__store_get(engine->store, &key, &chunk);
        if (!err) err = bel__buffer_append(out, chunk.data, chunk.bytes);
        if (err) return err;
    }
    return 0;
}

/* Adds headers as an array of pairs, because a name may occur twice. */
static void put_headers(struct line *line, struct bel_view headers)
{
    struct bel_header header;
    const char *before = ",\"headers\":[";
    while (bel__headers_next(&headers, &header)) {
        put_text(line, before);
        put_text(line, "[");
        put_quoted(line, header.name);
        put_text(line, ",");
        put_quoted(line, header.value);
        put_text(line, "]");
        before = ",";
    }
    if (before[1] == 0) put_text(line, "]");
}

static void put_body(struct line *line, const struct bel_blob *blob)
{
    struct bel_buffer bytes;
    struct bel_body body;
    bel__buffer_init(&bytes, LINE_BYTES_MAX);
    int err = gather(line->engine, blob, &bytes);
    struct bel_view all = {bel__buffer_data(&bytes), bytes.count};
    if (!err) err = bel__body_read(all, &body);
    if (err) {
        put_damaged(line);
    } else {
        put_bytes(line, "correlation", body.correlation);
        put_bytes(line, "retry", body.retry);
        put_bytes(line, "payload", body.payload);
        put_headers(line, body.headers);
    }
    bel__buffer_finish(&bytes);
}

static void put_rule(struct line *line, const struct bel_record *record)
{
    put_bytes(line, "rule", record->rule.rule);
    put_bytes(line, "zone", record->rule.zone);
    put_if(line, "count", record->rule.count);
    put_if(line, "spread_ms", record->rule.spread_ms);
}

static void put_record(struct line *line, const struct bel_place *place, struct bel_view value)
{
    char made[BEL_MADE_ID_BYTES];
    struct bel_record record;
    if (bel__record_read(value, &record) != 0) {
        put_damaged(line);
        return;
    }
    if (record.kind == BEL_RECORD_TICK) {
        put_number(line, "plan", record.plan);
        return;
    }
    if (record.is_id_made && place->lane <= BEL_LANE_NONE) {
        bel__made_id(place, made);
        record.id = (struct bel_view){made, sizeof made};
    }
    put_bytes(line, "id", record.id);
    if (record.job.number == 0) put_bytes(line, "group", record.group);
    put_bytes(line, "resource", record.resource);
    put(line, ",\"created\":%lld", (long long)record.created);
    put_if(line, "lease_ms", record.lease_ms);
    put_if(line, "expires_ms", record.expires_ms);
    put_if(line, "attempts", record.attempts);
    put_if(line, "crashes", record.crashes);
    put_if(line, "plan", record.plan);
    if (record.job.number != 0) {
        put_number(line, "job", record.job.number);
        put_number(line, "task", record.job.index);
    }
    put_if(line, "nominal", record.nominal);
    put_if(line, "due", record.due);
    put_bytes(line, "reason", record.reason);
    put_if(line, "result_bytes", record.result.bytes);
    if (record.kind == BEL_RECORD_PLAN) put_rule(line, &record);
    put_body(line, &record.body);
}

static void put_lease(struct line *line, struct bel_view value)
{
    struct bel_lease_row lease;
    if (bel__lease_read(value, &lease) != 0) {
        put_damaged(line);
        return;
    }
    put_number(line, "end", lease.end);
    put_number(line, "lease_ms", lease.lease_ms);
    put_bytes(line, "worker", lease.worker);
}

static void put_plan_state(struct line *line, struct bel_view value)
{
    struct bel_plan_state state;
    if (bel__plan_state_read(value, &state) != 0) {
        put_damaged(line);
        return;
    }
    if (state.has_next) put_number(line, "next", state.next);
    put_number(line, "made", state.made);
    put_if(line, "skipped", state.skipped);
    put_if(line, "missed", state.missed);
}

static void put_topic(struct line *line, const struct bel_topic_state *topic)
{
    char text[BEL_SETTING_TEXT_MAX];
    if (topic == NULL) {
        put_damaged(line);
        return;
    }
    put(line, ",\"paused\":%s", topic->is_paused ? "true" : "false");
    for (unsigned i = 0; i < BEL_SETTINGS; i++) {
        char name[32];
        struct bel_view is = bel__setting_name(i);
        size_t bytes = bel__setting_print(bel__topic_settings(topic), i, text);
        (void)snprintf(name, sizeof name, "%.*s", (int)is.bytes, (const char *)is.data);
        put_bytes(line, name, (struct bel_view){text, bytes});
    }
}

/* --- jobs --- */

static void put_job(struct line *line, struct bel_view value)
{
    static const char *const phases[] = {"submitting", "live",      "ending", "ended",
                                         "removing",   "replacing", "plan"};
    struct bel_job_row row;
    if (bel__job_row_read(value, &row) != 0) {
        put_damaged(line);
        return;
    }
    put_number(line, "job", row.number);
    put_bytes(line, "id", row.id);
    put(line, ",\"phase\":\"%s\"", phases[row.phase]);
    put(line, ",\"state\":\"%s\"", bel_job_state_name((enum bel_job_state)row.state));
    put_number(line, "priority", row.priority);
    put_number(line, "created", row.created);
    put_number(line, "tasks", row.tasks);
    put_number(line, "edges", row.edges);
    put_if(line, "paused", row.is_paused);
    put_if(line, "deadline", row.deadline);
    put_if(line, "pace_ms", row.pace_ms);
    put_if(line, "works", row.works);
    put_bytes(line, "reason", row.reason);
}

static void put_task(struct line *line, const struct bel_place *place, struct bel_view value)
{
    struct bel_task_row row;
    put_number(line, "job", place->time);
    put_number(line, "task", place->sequence);
    if (bel__task_row_read(value, &row) != 0) {
        put_damaged(line);
        return;
    }
    put(line, ",\"state\":\"%s\"", bel_state_name(bel__task_row_state(&row)));
    put_number(line, "open", row.open);
    put_number(line, "depth", row.depth);
}

/* --- lines --- */

static void put_place(struct line *line, const struct bel_place *place)
{
    static const char *const lanes[] = {"engine", "wall", "none"};
    if (place->lane < sizeof lanes / sizeof lanes[0]) {
        put(line, ",\"lane\":\"%s\"", lanes[place->lane]);
    }
    put_number(line, "time", place->time);
    put_number(line, "priority", place->priority);
    put_number(line, "sequence", place->sequence);
}

static void put_value(struct line *line, const struct bel_place *place, struct bel_view value)
{
    switch (place->table) {
    case BEL_TABLE_TOPICS:
        put_topic(line, bel__topic_at(&line->engine->topics, place->topic));
        break;
    case BEL_TABLE_TIMERS:
        put_place(line, place);
        put_record(line, place, value);
        break;
    case BEL_TABLE_LEASES:
        put_place(line, place);
        put_lease(line, value);
        break;
    case BEL_TABLE_PLANS:
        put_number(line, "plan", place->sequence);
        put_record(line, place, value);
        break;
    case BEL_TABLE_PLAN_STATES:
        put_number(line, "plan", place->sequence);
        put_plan_state(line, value);
        break;
    case BEL_TABLE_ENDED:
        if (bel__ended_state(place->lane) < BEL_STATES) {
            enum bel_state state = (enum bel_state)bel__ended_state(place->lane);
            put(line, ",\"state\":\"%s\"", bel_state_name(state));
        }
        put_number(line, "finished", place->time);
        put_record(line, place, value);
        break;
    case BEL_TABLE_JOBS:
        put_job(line, value);
        break;
    case BEL_TABLE_TASKS:
        put_task(line, place, value);
        break;
    default:
        put_number(line, "bytes", value.bytes);
    }
}

static bool has_topic(const struct bel_place *place)
{
    return place->table >= BEL_TABLE_TOPICS && place->table <= BEL_TABLE_ENDED;
}

static void put_row(struct line *line, const struct bel_key *key, struct bel_view value)
{
    struct bel_place place = bel__place_of(key);
    const char *table = bel__table_name(key);
    const struct bel_topic_state *topic = bel__topic_at(&line->engine->topics, place.topic);
    put(line, "{\"table\":\"%s\",\"key\":\"%016llx%016llx%016llx\"", table == NULL ? "" : table,
        (unsigned long long)key->words[0], (unsigned long long)key->words[1],
        (unsigned long long)key->words[2]);
    if (has_topic(&place) && topic != NULL) put_bytes(line, "topic", bel__topic_name(topic));
    put_value(line, &place, value);
    put_text(line, "}\n");
}

static int dump_rows(struct bel_engine *engine, struct bel_subprocess *process)
{
    struct line line = {.engine = engine};
    struct bel_key first = {{0, 0, 0}};
    struct bel_store_cursor cursor;
    bel__buffer_init(&line.buffer, LINE_BYTES_MAX);
    int err = bel__store_seek(engine->store, &first, &cursor);
    while (err == 0) {
        bel__buffer_truncate(&line.buffer, 0);
        put_row(&line, &cursor.key, cursor.value);
        err = line.err;
        struct bel_view text = {bel__buffer_data(&line.buffer), line.buffer.count};
        if (!err) err = bel__subprocess_send(process, text);
        if (!err) err = bel__store_next(engine->store, &cursor);
    }
    bel__buffer_finish(&line.buffer);
    return err == BEL_ENOTFOUND ? 0 : err;
}

/* --- from outside --- */

struct dump {
    const char *folder;
    bel_engine_see *see;
    void *context;
};

static int run_dump(void *context, struct bel_subprocess *process, struct bel_why *why)
{
    const struct dump *dump = context;
    struct bel_tree_stats stats;
    struct bel_engine *engine;
    struct bel_store_view view = {.path = dump->folder};
    int err = bel__engine_open_view(&view, &stats, &engine, why);
    if (err) return err;
    err = dump_rows(engine, process);
    bel_engine_close(engine);
    return err ? bel__why_say(why, err, "a row cannot be read: %s", bel_error_text(err)) : 0;
}

static int take_line(void *context, struct bel_view piece)
{
    const struct dump *dump = context;
    return dump->see(dump->context, piece);
}

int bel_engine_dump(const char *folder, bel_engine_see *see, void *context,
                    struct bel_engine_why *why)
{
    struct dump dump = {folder, see, context};
    struct bel_subprocess_task task = {.run = run_dump, .receive = take_line, .context = &dump};
    struct bel_why found = {0};
    assert(see != NULL);
    int err = bel__subprocess_run(&task, &found);
    (void)bel__why_pass(why != NULL ? why->text : NULL, err, &found);
    return err;
}
