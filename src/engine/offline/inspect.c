/* SPDX-License-Identifier: MIT */

/*
 * Rows depend on each other. The check verifies:
 *
 *     TIMERS  <--> ALIASES     the alias of an id names the row, and the row has that id
 *        ^ ^-- LEASES          a lease has a timer
 *        |     COUNTS          numbers by topic, hour and group match the timers
 *     tick <-> PLANS <-> PLAN_STATES
 *     OCCURRENCES              one for each unfinished timer of a plan
 *     CHUNKS                   exactly those that blobs refer to
 *     JOBS and others          inspect_jobs.c
 *
 * The rows are read once, in order. Counts of hours and groups are loaded as stored, and each timer
 * subtracts 1: in the end all must be 0.
 */
#include "engine/offline/inspect.h"

#include "engine/engine.h"
#include "engine/offline/inspect_jobs.h"
#include "engine/offline/subprocess.h"
#include "engine/rows/blob.h"
#include "engine/state/timer.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct walk {
    struct bel_engine *engine;
    struct bel_engine_report *report;
    struct bel_why *why;
    uint64_t (*numbers)[BEL_NUMBERS]; /* of each topic, recounted */
    uint64_t occurrences, made;       /* rows; unfinished timers of plans */
    uint64_t chunks, used;            /* rows; chunks that blobs refer to */
    uint64_t expiries, expiring;      /* rows; timers that have one */
    struct bel_jobs_walk jobs;
};

/* A row and its key parts. */
struct row {
    struct bel_key key;
    struct bel_place place;
    struct bel_view value;
};

const char *bel__table_name(const struct bel_key *key)
{
    static const char *const names[] = {
        [BEL_TABLE_META] = "meta",
        [BEL_TABLE_TOPICS] = "topics",
        [BEL_TABLE_COUNTS] = "counts",
        [BEL_TABLE_TIMERS] = "timers",
        [BEL_TABLE_LEASES] = "leases",
        [BEL_TABLE_PLANS] = "plans",
        [BEL_TABLE_PLAN_STATES] = "plan states",
        [BEL_TABLE_OCCURRENCES] = "occurrences",
        [BEL_TABLE_ENDED] = "ended",
        [BEL_TABLE_ALIASES] = "aliases",
        [BEL_TABLE_CHUNKS] = "chunks",
        [BEL_TABLE_EXPIRIES] = "expiries",
        [BEL_TABLE_RESOURCES] = "resources",
        [BEL_TABLE_JOBS] = "jobs",
        [BEL_TABLE_JOB_IDS] = "job ids",
        [BEL_TABLE_TASKS] = "tasks",
        [BEL_TABLE_EDGES] = "edges",
        [BEL_TABLE_JOB_WORK] = "job work",
        [BEL_TABLE_JOB_TIMES] = "job times",
    };
    uint64_t table = key->words[0] >> 56;
    return table < sizeof names / sizeof names[0] ? names[table] : NULL;
}

static int damaged(const struct walk *walk, const struct bel_key *key, const char *what)
{
    const char *table = bel__table_name(key);
    return bel__why_say(walk->why, BEL_ECORRUPT, "row %016llx%016llx%016llx of %s: %s",
                        (unsigned long long)key->words[0], (unsigned long long)key->words[1],
                        (unsigned long long)key->words[2], table == NULL ? "no table" : table,
                        what);
}

/* Gets a row that must exist; otherwise reports `otherwise` for `row`. */
static int require_row(const struct walk *walk, const struct row *row, const struct bel_key *key,
                       struct bel_view *out, const char *otherwise)
{
    int err = bel__store_get(walk->engine->store, key, out);
    return err == BEL_ENOTFOUND ? damaged(walk, &row->key, otherwise) : err;
}

static uint64_t *numbers_of(const struct walk *walk, const struct row *row)
{
    struct bel_topic_state *topic = bel__topic_at(&walk->engine->topics, row->place.topic);
    return topic == NULL ? NULL : walk->numbers[row->place.topic];
}

/* --- what several rows have --- */

/* Checks that the alias of a row's id names the row. */
static int check_alias(const struct walk *walk, const struct row *row,
                       const struct bel_record *record)
{
    struct bel_view id = record->id, value;
    if (record->is_id_made && row->place.table == BEL_TABLE_TIMERS) return 0;
    if (id.bytes == 0 || id.bytes > BEL_ID_BYTES) return damaged(walk, &row->key, "it has no id");
    struct bel_key alias = bel__key_alias(walk->engine->alias_keys, row->place.topic, id);
    int err = require_row(walk, row, &alias, &value, "its id has no alias");
    if (err) return err;
    bool leads_here = value.bytes == sizeof row->key.words &&
                      memcmp(value.data, row->key.words, value.bytes) == 0;
    return leads_here ? 0 : damaged(walk, &row->key, "the alias of its id names another row");
}

static int check_blob(struct walk *walk, const struct row *row, const struct bel_blob *blob)
{
    if (blob->number == 0) return 0;
    if (blob->bytes > 2 * (uint64_t)BEL_PAYLOAD_BYTES_MAX) {
        return damaged(walk, &row->key, "its blob is too large");
    }
    for (uint64_t i = 0, at = 0; at < blob->bytes; i++, at += BEL_CHUNK_BYTES) {
        struct bel_key key = bel__key_of(
            &(struct bel_place){.table = BEL_TABLE_CHUNKS, .time = blob->number, .sequence = i});
        uint64_t left = blob->bytes - at;
        struct bel_view chunk;
        int err = require_row(walk, row, &key, &chunk, "a chunk of its blob is missing");
        if (err) return err;
        if (chunk.bytes != (left < BEL_CHUNK_BYTES ? left : BEL_CHUNK_BYTES)) {
            return damaged(walk, &row->key, "a chunk of its blob has a wrong length");
        }
        walk->used++;
    }
    return 0;
}

static int check_body(struct walk *walk, const struct row *row, const struct bel_record *record,
                      bool is_named)
{
    struct bel_body body;
    int err = is_named ? check_alias(walk, row, record) : 0;
    if (err == 0) err = check_blob(walk, row, &record->body);
    if (err == 0) err = check_blob(walk, row, &record->result);
    if (err != 0 || record->body.number != 0) return err;
    return bel__body_read(record->body.here, &body) == 0
               ? 0
               : damaged(walk, &row->key, "its payload cannot be read");
}

/* Subtracts 1 from a number of a count. */
static int subtract_one(const struct walk *walk, const struct bel_key *key, unsigned index,
                        uint64_t *out_left)
{
    struct bel_count *count;
    int err = bel__count_hold(&walk->engine->rows.counts, walk->engine->store, key, &count);
    if (err) return err;
    *out_left = --count->numbers[index];
    return 0;
}

/* --- the tables --- */

static int check_tick(struct walk *walk, const struct row *row, const struct bel_record *record)
{
    struct bel_plan_state state;
    struct bel_view value;
    struct bel_key key = bel__key_of(&(struct bel_place){
        .table = BEL_TABLE_PLAN_STATES, .topic = row->place.topic, .sequence = record->plan});
    int err = require_row(walk, row, &key, &value, "its plan is missing");
    if (err) return err;
    if (bel__plan_state_read(value, &state) == 0 && bel__key_compare(&state.tick, &row->key) == 0) {
        return 0;
    }
    return damaged(walk, &row->key, "it is not the tick of its plan");
}

/* Checks that a timer with EXPIRES has its row in EXPIRIES, unless the row is still to be made. */
static int check_expiry(struct walk *walk, const struct row *row, const struct bel_record *record)
{
    const struct bel_migration *migration = &walk->engine->migration;
    struct bel_key key, named;
    struct bel_view value;
    if (record->expires_ms == 0) return 0;
    key = bel__timer_expiry_key(&row->key, record);
    int err = bel__store_get(walk->engine->store, &key, &value);
    bool is_made = migration->is_complete || bel__key_compare(&row->key, &migration->next) < 0;
    if (err == BEL_ENOTFOUND && !is_made) return 0;
    if (err == BEL_ENOTFOUND) return damaged(walk, &row->key, "the row of its expiry is missing");
    if (err) return err;
    walk->expiring++;
    if (value.bytes == sizeof named.words) {
        memcpy(named.words, value.data, sizeof named.words);
        if (bel__key_compare(&named, &row->key) == 0) return 0;
    }
    return damaged(walk, &row->key, "the row of its expiry names another row");
}

/* Checks the task of a timer, if it is one. */
static int check_task_of(const struct walk *walk, const struct row *row,
                         const struct bel_record *record, struct bel_task_standing *out)
{
    const char *what = NULL;
    int err = bel__inspect_task_timer(walk->engine, &row->key, record, out, &what);
    return what != NULL ? damaged(walk, &row->key, what) : err;
}

/* Subtracts a timer from the counts in the store, and adds it to the numbers by counting. */
static int count_timer(const struct walk *walk, const struct row *row,
                       const struct bel_record *record, uint64_t *numbers)
{
    uint64_t left = 0;
    bool is_timed = row->place.lane < BEL_LANES_TIMED;
    numbers[is_timed ? BEL_NUMBER_PENDING : BEL_NUMBER_BLOCKED]++;
    struct bel_key hours = bel__timer_hours_key(&row->place);
    int err = is_timed ? subtract_one(walk, &hours, bel__timer_hour_index(&row->place), &left) : 0;
    if (err == 0 && record->group.bytes > 0) {
        struct bel_key group =
            bel__timer_share_key(walk->engine, row->place.topic, bel__record_share(record));
        err = subtract_one(walk, &group, 0, &left);
        if (left == 0) numbers[BEL_NUMBER_SHARES]++; /* the last timer of its group */
    } else if (numbers[BEL_NUMBER_PLAIN]++ == 0) {
        numbers[BEL_NUMBER_SHARES]++;
    }
    return err;
}

static int check_timer(struct walk *walk, const struct row *row)
{
    uint64_t *numbers = numbers_of(walk, row);
    struct bel_task_standing standing;
    struct bel_record record;
    if (numbers == NULL || row->place.lane > BEL_LANE_NONE) {
        return damaged(walk, &row->key, "its topic or lane is unknown");
    }
    if (bel__record_read(row->value, &record) != 0 || record.kind == BEL_RECORD_PLAN) {
        return damaged(walk, &row->key, "it cannot be read");
    }
    if (record.kind == BEL_RECORD_TICK) return check_tick(walk, row, &record);
    walk->report->timers++;
    walk->made += record.plan != 0;
    int err = check_task_of(walk, row, &record, &standing);
    if (err == 0 && standing.is_counted) err = count_timer(walk, row, &record, numbers);
    if (err == 0) err = check_expiry(walk, row, &record);
    return err ? err : check_body(walk, row, &record, standing.is_named);
}

static int check_lease(struct walk *walk, const struct row *row)
{
    struct bel_key key = bel__key_in(&row->key, BEL_TABLE_TIMERS);
    struct bel_lease_row lease;
    struct bel_view value;
    walk->report->leases++;
    int err = require_row(walk, row, &key, &value, "its timer is missing");
    if (err) return err;
    if (bel__record_kind(value) == BEL_RECORD_TIMER && bel__lease_read(row->value, &lease) == 0) {
        return 0;
    }
    return damaged(walk, &row->key, "it cannot be read");
}

static int check_plan(struct walk *walk, const struct row *row)
{
    struct bel_key key = bel__key_in(&row->key, BEL_TABLE_PLAN_STATES);
    uint64_t *numbers = numbers_of(walk, row);
    struct bel_record record;
    struct bel_view value;
    if (numbers == NULL || bel__record_read(row->value, &record) != 0 ||
        record.kind != BEL_RECORD_PLAN) {
        return damaged(walk, &row->key, "it cannot be read");
    }
    walk->report->plans++;
    numbers[BEL_NUMBER_PLANS]++;
    int err = require_row(walk, row, &key, &value, "its state is missing");
    return err ? err : check_body(walk, row, &record, true);
}

static int check_plan_state(struct walk *walk, const struct row *row)
{
    struct bel_key key = bel__key_in(&row->key, BEL_TABLE_PLANS);
    struct bel_plan_state state;
    struct bel_view value;
    int err = require_row(walk, row, &key, &value, "its plan is missing");
    if (err) return err;
    if (bel__plan_state_read(row->value, &state) != 0) {
        return damaged(walk, &row->key, "it cannot be read");
    }
    return require_row(walk, row, &state.tick, &value, "its tick is missing");
}

static int check_occurrence(struct walk *walk, const struct row *row)
{
    struct bel_topic_state *topic = bel__topic_at(&walk->engine->topics, row->place.topic);
    struct bel_found found;
    walk->occurrences++;
    int err = bel__timer_peek(walk->engine, topic, row->value, &found);
    if (err == BEL_ENOTFOUND || (err == 0 && found.state >= BEL_DONE)) {
        return damaged(walk, &row->key, "its timer is missing");
    }
    return err;
}

static int check_ended(struct walk *walk, const struct row *row)
{
    uint64_t *numbers = numbers_of(walk, row);
    struct bel_record record;
    unsigned state = bel__ended_state(row->place.lane);
    struct bel_task_standing standing;
    if (numbers == NULL || state < BEL_DONE || state >= BEL_STATES ||
        bel__record_read(row->value, &record) != 0 || record.kind == BEL_RECORD_TICK ||
        bel__is_task_lane(row->place.lane) != (record.job.number != 0)) {
        return damaged(walk, &row->key, "it cannot be read");
    }
    int err = check_task_of(walk, row, &record, &standing);
    if (err) return err;
    walk->report->ended++;
    numbers[BEL_NUMBER_ENDED + state - BEL_DONE]++;
    return check_body(walk, row, &record, true);
}

/* Checks that the row that an alias names has an id with this hash. */
static int check_alias_row(struct walk *walk, const struct row *row)
{
    struct bel_key key;
    struct bel_view value;
    struct bel_record record;
    if (row->value.bytes != sizeof key.words) {
        return damaged(walk, &row->key, "its value is not a key");
    }
    memcpy(key.words, row->value.data, sizeof key.words);
    struct bel_place place = bel__place_of(&key);
    int err = require_row(walk, row, &key, &value, "the row that it names is missing");
    if (err) return err;
    bool is_record = place.table == BEL_TABLE_TIMERS || place.table == BEL_TABLE_ENDED ||
                     place.table == BEL_TABLE_PLANS;
    if (is_record && bel__record_read(value, &record) == 0 && record.id.bytes <= BEL_ID_BYTES) {
        struct bel_key back = bel__key_alias(walk->engine->alias_keys, place.topic, record.id);
        if (bel__key_compare(&back, &row->key) == 0) return 0;
    }
    return damaged(walk, &row->key, "the row that it names has another id");
}

/* Loads the count, so that check_counts() finds it even if no timer subtracts from it. */
static int check_count(struct walk *walk, const struct row *row)
{
    struct bel_count *count;
    if (row->place.lane == BEL_COUNT_TOPIC) return 0; /* checked by check_topic_numbers() */
    return bel__count_hold(&walk->engine->rows.counts, walk->engine->store, &row->key, &count);
}

static int check_job_row(struct walk *walk, const struct row *row)
{
    const char *what = NULL;
    int err = bel__inspect_job_row(walk->engine, &row->key, row->value, &walk->jobs, &what);
    return what != NULL ? damaged(walk, &row->key, what) : err;
}

/* The engine has decoded the row when it was opened; its key must be that of its name. */
static int check_resource(struct walk *walk, const struct row *row)
{
    struct bel_resource_row resource;
    if (bel__resource_row_read(row->value, &resource) != 0) {
        return damaged(walk, &row->key, "it cannot be decoded");
    }
    struct bel_key key = bel__resource_key(walk->engine, resource.name);
    return bel__key_compare(&key, &row->key) == 0 ? 0
                                                  : damaged(walk, &row->key, "its name is another");
}

static int check_row(struct walk *walk, const struct row *row)
{
    switch (row->place.table) {
    case BEL_TABLE_META:
        return 0; /* decoded when the engine was opened */
    case BEL_TABLE_TOPICS:
        walk->report->topics++;
        return 0;
    case BEL_TABLE_COUNTS:
        return check_count(walk, row);
    case BEL_TABLE_TIMERS:
        return check_timer(walk, row);
    case BEL_TABLE_LEASES:
        return check_lease(walk, row);
    case BEL_TABLE_PLANS:
        return check_plan(walk, row);
    case BEL_TABLE_PLAN_STATES:
        return check_plan_state(walk, row);
    case BEL_TABLE_OCCURRENCES:
        return check_occurrence(walk, row);
    case BEL_TABLE_ENDED:
        return check_ended(walk, row);
    case BEL_TABLE_ALIASES:
        return check_alias_row(walk, row);
    case BEL_TABLE_CHUNKS:
        walk->chunks++;
        return 0;
    case BEL_TABLE_EXPIRIES:
        walk->expiries++;
        return 0;
    case BEL_TABLE_RESOURCES:
        return check_resource(walk, row);
    default:
        return check_job_row(walk, row);
    }
}

/* --- what is counted --- */

static int check_topic_numbers(const struct walk *walk)
{
    const struct bel_topics *topics = &walk->engine->topics;
    for (uint32_t i = 0; i < topics->count; i++) {
        const struct bel_topic_state *topic = bel__topic_at(topics, i);
        if (topic == NULL) continue;
        for (int number = 0; number < BEL_NUMBERS; number++) {
            if (topic->numbers[number] == walk->numbers[i][number]) continue;
            return bel__why_say(walk->why, BEL_ECORRUPT,
                                "topic %.*s: number %d is %llu in the store, but %llu by counting",
                                (int)topic->name_bytes, topic->name, number,
                                (unsigned long long)topic->numbers[number],
                                (unsigned long long)walk->numbers[i][number]);
        }
    }
    return 0;
}

static int check_counts(const struct walk *walk)
{
    const struct bel_map *map = &walk->engine->rows.counts.map;
    for (uint32_t i = 0; i < bel__map_count(map); i++) {
        const struct bel_count *count = (struct bel_count *)(uintptr_t)bel__map_at(map, i)->value;
        for (unsigned number = 0; number < count->numbers_count; number++) {
            if (count->numbers[number] == 0) continue;
            return damaged(walk, &count->key, "its numbers do not match the timers");
        }
    }
    if (walk->occurrences != walk->made) {
        return bel__why_say(walk->why, BEL_ECORRUPT,
                            "%llu rows of occurrences, but %llu unfinished occurrences",
                            (unsigned long long)walk->occurrences, (unsigned long long)walk->made);
    }
    if (walk->expiries != walk->expiring) {
        return bel__why_say(walk->why, BEL_ECORRUPT,
                            "%llu rows of expiries, but %llu timers that name them",
                            (unsigned long long)walk->expiries, (unsigned long long)walk->expiring);
    }
    uint64_t used = walk->used + walk->jobs.chunks;
    if (walk->chunks == used) return 0;
    return bel__why_say(walk->why, BEL_ECORRUPT, "%llu rows of chunks, but %llu are in use",
                        (unsigned long long)walk->chunks, (unsigned long long)used);
}

static int walk_rows(struct walk *walk)
{
    struct bel_store *store = walk->engine->store;
    struct bel_key first = {{0, 0, 0}};
    struct bel_store_cursor cursor;
    int err = bel__store_seek(store, &first, &cursor);
    while (err == 0) {
        struct row row = {cursor.key, bel__place_of(&cursor.key), cursor.value};
        walk->report->rows++;
        err = check_row(walk, &row);
        if (err == BEL_ECORRUPT && walk->why->text[0] == 0) {
            return damaged(walk, &row.key, "a row that belongs to it is damaged");
        }
        if (err == 0) err = bel__store_next(store, &cursor);
    }
    return err == BEL_ENOTFOUND ? 0 : err;
}

int bel__engine_walk(struct bel_engine *engine, struct bel_engine_report *report,
                     struct bel_why *why)
{
    struct bel_why unheard = {0};
    struct walk walk = {.engine = engine, .report = report, .why = why != NULL ? why : &unheard};
    walk.numbers = calloc((size_t)engine->topics.count + 1, sizeof walk.numbers[0]);
    if (walk.numbers == NULL) return BEL_ENOMEM;
    walk.why->text[0] = 0;
    int err = walk_rows(&walk);
    if (err == 0) err = check_topic_numbers(&walk);
    if (err == 0) err = check_counts(&walk);
    if (err == 0) err = bel__inspect_jobs_end(&walk.jobs, walk.why);
    free(walk.numbers);
    return err;
}

int bel__engine_open_view(const struct bel_store_view *view, struct bel_tree_stats *out_stats,
                          struct bel_engine **out, struct bel_why *why)
{
    struct bel_engine_options options = {0};
    struct bel_store *store;
    int err = bel__store_open_view(view, out_stats, &store, why);
    if (err) return err;
    err = bel__engine_open_on(&options, store, bel__entropy_system(), out);
    if (err == 0) return 0;
    bel__store_close(store);
    return bel__why_say(why, err, "the rows cannot be read: %s", bel_error_text(err));
}

/* --- from outside --- */

struct check {
    struct bel_store_view view;
    uint64_t rows_max; /* for bel_engine_check_if_left() */
    struct bel_subprocess *process;
    struct bel_engine_report report;
    bool has_pages, has_report;
};

static int run_check(void *context, struct bel_subprocess *process, struct bel_why *why)
{
    struct check *check = context;
    struct bel_tree_stats stats = {0};
    struct bel_engine *engine;
    check->process = process;
    int err = bel__engine_open_view(&check->view, &stats, &engine, why);
    if (err) return err;
    check->report = (struct bel_engine_report){.tree_rows = stats.rows, .tree_bytes = stats.bytes};
    check->report.time_ms = engine->now.engine; /* opened at time 0: that of the last change */
    err = bel__engine_walk(engine, &check->report, why);
    bel_engine_close(engine);
    if (err) return err;
    return bel__subprocess_send(process, (struct bel_view){&check->report, sizeof check->report});
}

static int run_check_if_left(void *context, struct bel_subprocess *process, struct bel_why *why)
{
    const struct check *check = context;
    struct bel_store_glance glance;
    int err = bel__store_glance(check->view.path, &glance);
    if (err == BEL_ENOTFOUND) return 0;
    if (err) return bel__why_say(why, err, "tree cannot be opened: %s", bel_error_text(err));
    bool is_wanted = glance.was_left_open && glance.tree_rows <= check->rows_max;
    return is_wanted ? run_check(context, process, why) : 0;
}

static int take_report(void *context, struct bel_view piece)
{
    struct check *check = context;
    check->has_pages = true;
    if (piece.bytes == 0) return 0; /* sent by tell_pages() */
    if (piece.bytes != sizeof check->report) return BEL_EIO;
    memcpy(&check->report, piece.data, piece.bytes);
    check->has_report = true;
    return 0;
}

/* In the subprocess: tells that the pages have been checked. */
static int tell_pages(void *context)
{
    const struct check *check = context;
    return bel__subprocess_send(check->process, (struct bel_view){"", 0});
}

static int run_in_subprocess(struct bel_subprocess_task *task, struct check *check,
                             struct bel_engine_report *out, struct bel_engine_why *why)
{
    struct bel_why found = {0};
    task->context = check;
    int err = bel__subprocess_run(task, &found);
    (void)bel__why_pass(why != NULL ? why->text : NULL, err, &found);
    if (err) return err;
    *out = check->report;
    return 0;
}

int bel_engine_check(const char *folder, struct bel_engine_report *out, struct bel_engine_why *why)
{
    struct check check = {.view = {.path = folder}};
    struct bel_subprocess_task task = {.run = run_check, .receive = take_report};
    return run_in_subprocess(&task, &check, out, why);
}

int bel_engine_check_if_left(const char *folder, uint64_t rows_max, struct bel_engine_report *out,
                             struct bel_engine_why *why)
{
    struct check check = {.view = {.path = folder}, .rows_max = rows_max};
    struct bel_subprocess_task task = {.run = run_check_if_left, .receive = take_report};
    return run_in_subprocess(&task, &check, out, why);
}

int bel__engine_check_for(const char *folder, uint64_t ms_max, struct bel_engine_checked *out,
                          struct bel_why *why)
{
    struct check check = {.view = {.path = folder, .is_brief = true, .pages_checked = tell_pages}};
    struct bel_subprocess_task task = {
        .run = run_check, .receive = take_report, .context = &check, .ms_max = ms_max};
    check.view.context = &check;
    *out = (struct bel_engine_checked){0};
    if (ms_max == 0) return 0;
    int err = bel__subprocess_run(&task, why);
    if (task.is_late || err == BEL_ENOTFOUND) err = 0;
    if (err) return err;
    out->is_tree_checked = check.has_pages;
    out->is_done = check.has_report;
    out->report = check.report;
    return 0;
}
