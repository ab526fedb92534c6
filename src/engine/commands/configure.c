/* SPDX-License-Identifier: MIT */

/*
 * Commands on topics. A new topic is made in memory first. If its row cannot be reserved, the topic
 * is dropped again and nothing has changed.
 */
#include "engine/commands/commands.h"
#include "engine/state/ready.h"
#include "engine/state/retention.h"
#include "engine/state/state.h"
#include "engine/state/topic_row.h"
#include "engine/state/work.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    LOOKED_MAX = 1000, /* rows, for the oldest ready timer */
};

static int refuse_topic(struct bel_reply *reply)
{
    return bel__refuse(
        reply, BEL_EINVAL,
        "invalid topic: use 1 to %d of A-Z a-z 0-9 . _ : / -; options of CLAIM are reserved",
        BEL_TOPIC_BYTES_MAX);
}

/* --- TOPICS --- */

static int compare_names(const void *left, const void *right)
{
    const struct bel_view *a = left, *b = right;
    size_t bytes = a->bytes < b->bytes ? a->bytes : b->bytes;
    int order = memcmp(a->data, b->data, bytes);
    return order != 0 ? order : (a->bytes > b->bytes) - (a->bytes < b->bytes);
}

int bel__do_topics(struct bel_engine *engine, struct bel_request *request)
{
    const struct bel_topics *topics = &engine->topics;
    struct bel_reply *reply = &request->own.reply;
    size_t count = 0;
    if (topics->count == 0) return 0;
    struct bel_view *names = bel__answer_take(engine, topics->count * sizeof *names);
    if (names == NULL) return BEL_ENOMEM;
    for (uint32_t i = 0; i < topics->count; i++) {
        const struct bel_topic_state *topic = bel__topic_at(topics, i);
        if (topic == NULL || bel__topic_is_own(bel__topic_name(topic))) continue;
        names[count++] = bel__topic_name(topic);
    }
    qsort(names, count, sizeof *names, compare_names);
    reply->names.items = names;
    reply->names.count = count;
    return 0;
}

/* --- TOPIC --- */

/* Returns since when the first timer of a lane that is neither leased nor a plan's tick has been
 * due, in wall ms; now if none is due. Looks at LOOKED_MAX rows: after so many leased ones, the
 * result may be too early. */
static uint64_t oldest_due(const struct bel_engine *engine, const struct bel_topic_state *topic,
                           uint8_t lane)
{
    uint64_t now = bel__lane_now(&engine->now, lane);
    struct bel_key from = bel__ready_lane_key(topic, lane, 0);
    struct bel_key end = bel__ready_lane_key(topic, lane, now + 1);
    struct bel_store_cursor cursor;
    int err = bel__store_seek(engine->store, &from, &cursor);
    for (int i = 0; err == 0 && bel__key_compare(&cursor.key, &end) < 0; i++) {
        bool is_other = bel__record_kind(cursor.value) == BEL_RECORD_TICK ||
                        bel__lease_find(engine, &cursor.key) != NULL;
        if (!is_other || i == LOOKED_MAX) {
            return bel__lane_wall(&engine->now, lane, bel__place_of(&cursor.key).time);
        }
        err = bel__store_next(engine->store, &cursor);
    }
    return (uint64_t)engine->now.wall;
}

/* Returns how long the oldest ready timer has been due, in ms. */
static uint64_t oldest_age(const struct bel_engine *engine, const struct bel_topic_state *topic)
{
    uint64_t now = (uint64_t)engine->now.wall, due = now;
    if (bel__picker_count(&topic->picker) == 0) return 0;
    for (uint8_t lane = 0; lane < BEL_LANES_TIMED; lane++) {
        uint64_t first = oldest_due(engine, topic, lane);
        if (first < due) due = first;
    }
    return now - due;
}

static void count_states(const struct bel_topic_state *topic, struct bel_topic *out)
{
    const uint64_t *numbers = topic->numbers;
    uint64_t ready = bel__picker_count(&topic->picker), pending = numbers[BEL_NUMBER_PENDING];
    assert(pending >= ready + topic->leased);
    out->counts[BEL_SCHEDULED] = pending - ready - topic->leased + numbers[BEL_NUMBER_PLANS];
    out->counts[BEL_READY] = ready;
    out->counts[BEL_LEASED] = topic->leased;
    out->counts[BEL_BLOCKED] = numbers[BEL_NUMBER_BLOCKED];
    for (int state = BEL_DONE; state < BEL_STATES; state++) {
        out->counts[state] = numbers[BEL_NUMBER_ENDED + state - BEL_DONE];
    }
    out->plans = numbers[BEL_NUMBER_PLANS];
}

/* Tells what the timers of a topic wait for, from numbers that are kept. */
static void count_waiting(const struct bel_topic_state *topic, struct bel_topic *out)
{
    uint64_t ready = out->counts[BEL_READY], parked = bel__picker_parked(&topic->picker);
    uint32_t concurrency = bel__topic_settings(topic)->concurrency;
    assert(parked <= ready && out->counts[BEL_SCHEDULED] >= out->plans);
    out->waiting[BEL_WAIT_TIME] = out->counts[BEL_SCHEDULED] - out->plans;
    out->waiting[BEL_WAIT_BLOCKED] = out->counts[BEL_BLOCKED];
    if (out->paused) {
        out->waiting[BEL_WAIT_PAUSED] = ready;
        return;
    }
    bool is_full = concurrency > 0 && topic->leased >= concurrency;
    out->waiting[BEL_WAIT_RESOURCE] = parked;
    out->waiting[is_full ? BEL_WAIT_CONCURRENCY : BEL_WAIT_WORKER] = ready - parked;
}

/* Fills in what workers did with the timers of a topic. */
static void count_work(const struct bel_engine *engine, const struct bel_topic_state *topic,
                       struct bel_topic *out)
{
    if (topic->work == NULL) return;
    const struct bel_work *work = &topic->work->all;
    uint64_t now = engine->now.engine;
    out->claimed = work->claimed;
    out->completed = work->done;
    out->failed = work->failed;
    out->released = work->released;
    out->lost = work->lost;
    out->claims_per_minute = bel__rate_of(&work->claims, now);
    out->completions_per_minute = bel__rate_of(&work->dones, now);
    out->waited_ms_p50 = bel__spans_quantile(&work->waited, 500);
    out->waited_ms_p99 = bel__spans_quantile(&work->waited, 990);
    out->ran_ms_p50 = bel__spans_quantile(&work->ran, 500);
    out->ran_ms_p99 = bel__spans_quantile(&work->ran, 990);
    out->work = work;
    out->groups = topic->work->groups.first;
}

static int print_settings(struct bel_engine *engine, const struct bel_topic_state *topic,
                          struct bel_topic *out)
{
    struct bel_setting *settings = bel__answer_take(engine, BEL_SETTINGS * sizeof *settings);
    if (settings == NULL) return BEL_ENOMEM;
    for (unsigned i = 0; i < BEL_SETTINGS; i++) {
        char text[BEL_SETTING_TEXT_MAX];
        size_t bytes = bel__setting_print(bel__topic_settings(topic), i, text);
        struct bel_view value = bel__answer_copy(engine, (struct bel_view){text, bytes});
        if (value.data == NULL) return BEL_ENOMEM;
        settings[i] = (struct bel_setting){.name = bel__setting_name(i), .value = value};
    }
    out->settings = settings;
    out->settings_count = BEL_SETTINGS;
    return 0;
}

int bel__do_topic(struct bel_engine *engine, struct bel_request *request)
{
    struct bel_view name = request->command.target.topic;
    struct bel_reply *reply = &request->own.reply;
    if (!bel_topic_is_valid(name)) return refuse_topic(reply);
    const struct bel_topic_state *topic = bel__topic_find(&engine->topics, name);
    if (topic == NULL) {
        int shown = (int)(name.bytes < 100 ? name.bytes : 100); /* a reply has room for it */
        return bel__refuse(reply, BEL_ENOTFOUND, "topic '%.*s' does not exist", shown,
                           (const char *)name.data);
    }
    struct bel_topic *out = bel__answer_take(engine, sizeof *out);
    if (out == NULL) return BEL_ENOMEM;
    *out = (struct bel_topic){.name = bel__topic_name(topic), .paused = topic->is_paused};
    out->oldest_age_ms = oldest_age(engine, topic);
    count_states(topic, out);
    count_work(engine, topic, out);
    count_waiting(topic, out);
    int err = print_settings(engine, topic, out);
    if (err) return err;
    reply->topic = out;
    return 0;
}

/* --- CONFIGURE, PAUSE, RESUME --- */

/* Finds or makes a topic, and reserves its row. */
static int open_topic(struct bel_engine *engine, struct bel_view name, struct bel_reply *reply,
                      struct bel_topic_state **out, bool *out_is_new)
{
    int err = bel__topic_make(engine, name, out, out_is_new);
    if (err == BEL_EFULL) return bel__refuse(reply, err, "too many topics");
    if (err) return err;
    enum bel_store_use use = *out_is_new ? BEL_STORE_ADD : BEL_STORE_END;
    err = bel__rows_reserve(&engine->rows, 1, BEL_TOPIC_ROW_BYTES, use);
    if (err && *out_is_new) bel__topic_drop(&engine->topics, *out);
    return err;
}

static void save(struct bel_engine *engine, struct bel_topic_state *topic, bool is_new)
{
    bel__topic_save(engine, topic);
    if (is_new) bel__wait_adopt(engine, topic);
    bel__wait_mark(engine, topic);
}

static int parse_settings(const struct bel_configure *configure, struct bel_settings *settings,
                          struct bel_reply *reply)
{
    for (size_t i = 0; i < configure->settings_count; i++) {
        const struct bel_setting *setting = &configure->settings[i];
        char why[BEL_EXPECTED_BYTES + 32];
        int err = bel__setting_set(settings, setting, why, sizeof why);
        int bytes = setting->name.bytes < 32 ? (int)setting->name.bytes : 32;
        if (err) {
            const char *name = setting->name.data;
            return bel__refuse(reply, err, "%.*s: %s", bytes, bytes > 0 ? name : "", why);
        }
    }
    return 0;
}

static bool keeps_shorter(const struct bel_settings *a, const struct bel_settings *b)
{
    return a->retention_ms < b->retention_ms || a->retention_dead_ms < b->retention_dead_ms;
}

int bel__do_configure(struct bel_engine *engine, struct bel_request *request)
{
    const struct bel_configure *configure = &request->command.configure;
    struct bel_reply *reply = &request->own.reply;
    if (!bel_topic_is_valid(configure->topic)) return refuse_topic(reply);
    struct bel_topic_state *topic = bel__topic_find(&engine->topics, configure->topic);
    struct bel_settings settings =
        topic != NULL ? *bel__topic_settings(topic) : *bel__settings_default();
    struct bel_settings before = settings;
    int err = parse_settings(configure, &settings, reply);
    if (err) return err;
    struct bel_settings *own = malloc(sizeof *own);
    if (own == NULL) return BEL_ENOMEM;
    bool is_new;
    err = open_topic(engine, configure->topic, reply, &topic, &is_new);
    if (err) {
        free(own);
        return err;
    }
    *own = settings;
    free(topic->settings);
    topic->settings = own;
    save(engine, topic, is_new);
    return keeps_shorter(own, &before) ? bel__retention_sweep(engine, topic) : 0;
}

int bel__do_pause(struct bel_engine *engine, struct bel_request *request)
{
    struct bel_view name = request->command.target.topic;
    struct bel_reply *reply = &request->own.reply;
    struct bel_topic_state *topic;
    bool is_new;
    if (!bel_topic_is_valid(name)) return refuse_topic(reply);
    int err = open_topic(engine, name, reply, &topic, &is_new);
    if (err) return err;
    topic->is_paused = true;
    save(engine, topic, is_new);
    return 0;
}

int bel__do_resume(struct bel_engine *engine, struct bel_request *request)
{
    struct bel_view name = request->command.target.topic;
    if (!bel_topic_is_valid(name)) return refuse_topic(&request->own.reply);
    struct bel_topic_state *topic = bel__topic_find(&engine->topics, name);
    if (topic == NULL || !topic->is_paused) return 0;
    int err = bel__rows_reserve(&engine->rows, 1, BEL_TOPIC_ROW_BYTES, BEL_STORE_END);
    if (err) return err;
    topic->is_paused = false;
    save(engine, topic, false);
    return 0;
}
