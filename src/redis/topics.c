/* SPDX-License-Identifier: MIT */

/*
 * Commands on topics: TOPICS, TOPIC, CONFIGURE, PAUSE, RESUME.
 *
 * A setting is stored as its text, under its name, and those that scripts need also as a number.
 */
#include "redis/operation.h"

#include "core/parse.h"
#include "core/view.h"
#include "settings/settings.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static struct bel_operation *operation_of(struct bel_item *item)
{
    return BEL_CONTAINER_OF(item, struct bel_operation, item);
}

/* Adds the item of an operation to a batch of its own. Returns NULL after an error, which has ended
 * the operation. */
static struct bel_batch *add_alone(struct bel_operation *operation, enum bel_script_name script,
                                   void (*answered)(struct bel_item *item,
                                                    const struct bel_results *results))
{
    struct bel_batch *batch = bel__batch_alone(operation->node, operation->topic, script);
    if (batch == NULL) {
        bel__operation_fail(operation, BEL_ENOMEM, NULL);
        return NULL;
    }
    operation->item.answered = answered;
    bel__batch_add(batch, &operation->item, 0);
    return batch;
}

static int prepare_target(struct bel_operation *operation)
{
    return bel__operation_name(operation, operation->command.target.topic);
}

/* --- TOPICS --- */

static int prepare_topics(struct bel_operation *operation)
{
    return bel__operation_name_all(operation, NULL, 0);
}

static int compare_names(const void *left, const void *right)
{
    const struct bel_view *a = left, *b = right;
    size_t bytes = a->bytes < b->bytes ? a->bytes : b->bytes;
    int order = memcmp(a->data, b->data, bytes);
    return order != 0 ? order : (a->bytes > b->bytes) - (a->bytes < b->bytes);
}

static void told_topics(struct bel_item *item, const struct bel_results *results)
{
    struct bel_operation *operation = operation_of(item);
    if (bel__operation_is_refused(operation, results)) return;
    const struct bel_value *set = results->items;
    struct bel_view *names = bel__arena_take(&operation->arena, (set->count + 1) * sizeof *names);
    if (names == NULL) {
        bel__operation_fail(operation, BEL_ENOMEM, NULL);
        return;
    }
    for (size_t i = 0; i < set->count; i++) {
        names[i] = set->items[i].text;
    }
    qsort(names, set->count, sizeof *names, compare_names);
    operation->reply.names.items = names;
    operation->reply.names.count = set->count;
    bel__operation_answer(operation);
}

static void begin_topics(struct bel_operation *operation)
{
    struct bel_batch *batch = bel__batch_plain(operation->node);
    if (batch == NULL) {
        bel__operation_fail(operation, BEL_ENOMEM, NULL);
        return;
    }
    operation->item.answered = told_topics;
    bel__batch_add(batch, &operation->item, 0);
    bel__batch_word(batch, "SMEMBERS");
    bel__batch_text(batch, bel__node_registry(operation->node));
}

const struct bel_redis_verb bel__redis_topics = {prepare_topics, begin_topics};

/* --- TOPIC --- */

enum {
    TOPIC_RESULTS = 5, /* counts, first due, cfg, st, plans */
};

/* Returns the text of a field in a list of names and values; empty if it has none. */
static struct bel_view field_of(const struct bel_value *fields, struct bel_view name)
{
    for (size_t i = 0; i + 1 < fields->count; i += 2) {
        if (bel__view_equal(fields->items[i].text, name)) return fields->items[i + 1].text;
    }
    return (struct bel_view){NULL, 0};
}

static uint64_t number_of(const struct bel_value *fields, struct bel_view name)
{
    struct bel_view text = field_of(fields, name);
    uint64_t number = 0;
    if (text.bytes == 0) return 0;
    return bel__parse_u64(text.data, text.bytes, 0, UINT64_MAX, &number) ? 0 : number;
}

static bool has_field(const struct bel_value *fields, struct bel_view name)
{
    for (size_t i = 0; i + 1 < fields->count; i += 2) {
        if (bel__view_equal(fields->items[i].text, name)) return true;
    }
    return false;
}

static int fill_settings(struct bel_operation *operation, const struct bel_value *cfg,
                         struct bel_topic *out)
{
    struct bel_setting *settings =
        bel__arena_take(&operation->arena, BEL_SETTINGS * sizeof *settings);
    if (settings == NULL) return BEL_ENOMEM;
    for (unsigned i = 0; i < BEL_SETTINGS; i++) {
        char text[BEL_SETTING_TEXT_MAX];
        settings[i].name = bel__setting_name(i);
        settings[i].value = field_of(cfg, settings[i].name);
        if (has_field(cfg, settings[i].name)) continue;
        size_t bytes = bel__setting_print(bel__settings_default(), i, text);
        settings[i].value = bel__arena_copy(&operation->arena, (struct bel_view){text, bytes});
        if (settings[i].value.data == NULL) return BEL_ENOMEM;
    }
    out->settings = settings;
    out->settings_count = BEL_SETTINGS;
    return 0;
}

static void fill_numbers(const struct bel_operation *operation, const struct bel_value *results,
                         struct bel_topic *out)
{
    const struct bel_value *st = &results[3];
    int64_t first = 0;
    for (size_t i = 0; i < BEL_STATES; i++) {
        out->counts[i] = (uint64_t)results[0].items[i].number;
    }
    out->plans = (uint64_t)results[4].number;
    struct bel_view text = results[1].text;
    if (results[1].type == BEL_VALUE_TEXT &&
        bel__parse_i64(text.data, text.bytes, INT64_MIN, INT64_MAX, &first) == 0) {
        int64_t now = bel__node_now(operation->node);
        out->oldest_age_ms = now > first ? (uint64_t)(now - first) : 0;
    }
    out->claimed = number_of(st, BEL_VIEW("claimed"));
    out->completed = number_of(st, BEL_VIEW("completed"));
    out->failed = number_of(st, BEL_VIEW("failed"));
    out->released = number_of(st, BEL_VIEW("released"));
    out->lost = number_of(st, BEL_VIEW("lost"));
    out->waiting[BEL_WAIT_TIME] = out->counts[BEL_SCHEDULED] - out->plans;
    out->waiting[BEL_WAIT_BLOCKED] = out->counts[BEL_BLOCKED];
    out->waiting[out->paused ? BEL_WAIT_PAUSED : BEL_WAIT_WORKER] = out->counts[BEL_READY];
}

static bool is_topic(const struct bel_results *results)
{
    const struct bel_value *items = results->items;
    return results->count == TOPIC_RESULTS && items[0].type == BEL_VALUE_LIST &&
           items[0].count == BEL_STATES;
}

static void refuse_unknown(struct bel_operation *operation)
{
    struct bel_view name = bel__view_head(operation->topic->name, 100); /* a reply has room */
    (void)bel__operation_refuse(operation, BEL_ENOTFOUND, "topic '%.*s' does not exist",
                                (int)name.bytes, (const char *)name.data);
    bel__operation_answer(operation);
}

static void told_topic(struct bel_item *item, const struct bel_results *results)
{
    struct bel_operation *operation = operation_of(item);
    if (bel__operation_is_refused(operation, results)) return;
    if (!is_topic(results)) {
        refuse_unknown(operation);
        return;
    }
    struct bel_topic *topic = bel__arena_take(&operation->arena, sizeof *topic);
    int err = topic == NULL ? BEL_ENOMEM : 0;
    if (err == 0) {
        *topic = (struct bel_topic){.name = operation->topic->name};
        topic->paused = bel__view_is(field_of(&results->items[2], BEL_VIEW("paused")), "1");
        fill_numbers(operation, results->items, topic);
        err = fill_settings(operation, &results->items[2], topic);
    }
    if (err) {
        bel__operation_fail(operation, err, NULL);
        return;
    }
    operation->reply.topic = topic;
    bel__operation_answer(operation);
}

static void begin_topic(struct bel_operation *operation)
{
    (void)add_alone(operation, BEL_SCRIPT_TOPIC, told_topic);
}

const struct bel_redis_verb bel__redis_topic = {prepare_target, begin_topic};

/* --- CONFIGURE, PAUSE, RESUME --- */

static void done(struct bel_item *item, const struct bel_results *results)
{
    struct bel_operation *operation = operation_of(item);
    if (bel__operation_is_refused(operation, results)) return;
    bel__operation_answer(operation);
}

static int parse_settings(struct bel_operation *operation, struct bel_settings *out)
{
    const struct bel_configure *command = &operation->command.configure;
    *out = *bel__settings_default();
    for (size_t i = 0; i < command->settings_count; i++) {
        const struct bel_setting *setting = &command->settings[i];
        char why[BEL_EXPECTED_BYTES + 32];
        int err = bel__setting_set(out, setting, why, sizeof why);
        struct bel_view name = bel__view_head(setting->name, 32);
        if (err == 0) continue;
        return bel__operation_refuse(operation, err, "%.*s: %s", (int)name.bytes,
                                     name.bytes > 0 ? (const char *)name.data : "", why);
    }
    if (out->concurrency == 0) return 0;
    return bel__operation_refuse(operation, BEL_EUNSUPPORTED,
                                 "concurrency is not supported by a store on Redis");
}

static int prepare_configure(struct bel_operation *operation)
{
    struct bel_settings settings;
    int err = bel__operation_name(operation, operation->command.configure.topic);
    return err ? err : parse_settings(operation, &settings);
}

/* Adds a setting as its text, and as the number that scripts read. */
static void add_setting(struct bel_batch *batch, const struct bel_settings *settings,
                        unsigned index)
{
    static const char *const numbers[BEL_SETTINGS] = {
        [0] = "lease_ms",          [2] = "crashes_n", [4] = "retention_ms",
        [5] = "retention_dead_ms", [6] = "depth_n",   [7] = "misfire_after_ms",
    };
    const uint64_t values[BEL_SETTINGS] = {
        [0] = settings->lease_ms,     [2] = settings->crashes,
        [4] = settings->retention_ms, [5] = settings->retention_dead_ms,
        [6] = settings->depth,        [7] = settings->misfire_after_ms,
    };
    char text[BEL_SETTING_TEXT_MAX];
    size_t bytes = bel__setting_print(settings, index, text);
    bel__batch_text(batch, bel__setting_name(index));
    bel__batch_text(batch, (struct bel_view){text, bytes});
    if (numbers[index] == NULL) return;
    bool is_forever = index == 5 && values[index] == BEL_RETENTION_FOREVER;
    bool is_huge = values[index] > (uint64_t)BEL_REDIS_TIME_END_MS; /* a depth */
    int64_t number = is_huge ? BEL_REDIS_TIME_END_MS : (int64_t)values[index];
    bel__batch_word(batch, numbers[index]);
    bel__batch_number(batch, is_forever ? -1 : number);
}

static bool is_named(const struct bel_configure *command, unsigned index)
{
    struct bel_view name = bel__setting_name(index);
    for (size_t i = 0; i < command->settings_count; i++) {
        const struct bel_view *given = &command->settings[i].name;
        if (given->bytes == name.bytes && strncasecmp(given->data, name.data, name.bytes) == 0) {
            return true;
        }
    }
    return false;
}

static void begin_configure(struct bel_operation *operation)
{
    struct bel_settings settings;
    int err = parse_settings(operation, &settings);
    assert(err == 0);
    if (err == 0) err = bel__node_register(operation->node, operation->topic);
    if (err) {
        bel__operation_fail(operation, err, NULL);
        return;
    }
    struct bel_batch *batch = add_alone(operation, BEL_SCRIPT_CONFIGURE, done);
    if (batch == NULL) return;
    bel__batch_word(batch, "1");
    for (unsigned i = 0; i < BEL_SETTINGS; i++) {
        if (is_named(&operation->command.configure, i)) add_setting(batch, &settings, i);
    }
    bel__node_mark(operation->node, operation->topic);
}

const struct bel_redis_verb bel__redis_configure = {prepare_configure, begin_configure};

static void set_paused(struct bel_operation *operation, const char *makes, const char *value)
{
    struct bel_batch *batch = add_alone(operation, BEL_SCRIPT_CONFIGURE, done);
    if (batch == NULL) return;
    bel__batch_word(batch, makes);
    bel__batch_word(batch, "paused");
    bel__batch_word(batch, value);
}

static void begin_pause(struct bel_operation *operation)
{
    if (bel__node_register(operation->node, operation->topic) != 0) {
        bel__operation_fail(operation, BEL_ENOMEM, NULL);
        return;
    }
    set_paused(operation, "1", "1");
}

static void begin_resume(struct bel_operation *operation)
{
    bel__node_mark(operation->node, operation->topic);
    set_paused(operation, "0", "0");
}

const struct bel_redis_verb bel__redis_pause = {prepare_target, begin_pause};
const struct bel_redis_verb bel__redis_resume = {prepare_target, begin_resume};
