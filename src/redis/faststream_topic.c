/* SPDX-License-Identifier: MIT */

/*
 * TOPIC, PAUSE and RESUME of topics of the layout faststream. A pause concerns our claims alone:
 * the workers of the package go on.
 */
#include "redis/faststream.h"

#include "core/parse.h"
#include "core/view.h"

enum {
    TOPIC_RESULTS = 4, /* not due, due, first due, statistics */
};

static int prepare_target(struct bel_operation *operation)
{
    return bel__operation_name(operation, operation->command.target.topic);
}

static struct bel_view field_of(const struct bel_value *fields, const char *name)
{
    for (size_t i = 0; i + 1 < fields->count; i += 2) {
        if (bel__view_is(fields->items[i].text, name)) return fields->items[i + 1].text;
    }
    return (struct bel_view){NULL, 0};
}

static uint64_t number_of(const struct bel_value *fields, const char *name)
{
    struct bel_view text = field_of(fields, name);
    uint64_t number = 0;
    if (text.bytes == 0) return 0;
    return bel__parse_u64(text.data, text.bytes, 0, UINT64_MAX, &number) ? 0 : number;
}

static int fill_settings(struct bel_operation *operation, struct bel_topic *out)
{
    const struct bel_layout *layout = operation->topic->layout;
    struct bel_setting *settings =
        bel__arena_take(&operation->arena, BEL_LAYOUT_SETTINGS * sizeof *settings);
    if (settings == NULL || layout == NULL) return BEL_ENOMEM;
    for (unsigned i = 0; i < BEL_LAYOUT_SETTINGS; i++) {
        char text[BEL_LAYOUT_VALUE_MAX];
        size_t bytes = bel__layout_print(&layout->settings, i, text);
        settings[i].name = bel__layout_setting_name(i);
        settings[i].value = bel__arena_copy(&operation->arena, (struct bel_view){text, bytes});
        if (settings[i].value.data == NULL) return BEL_ENOMEM;
    }
    out->settings = settings;
    out->settings_count = BEL_LAYOUT_SETTINGS;
    return 0;
}

static void fill_numbers(const struct bel_operation *operation, const struct bel_value *results,
                         struct bel_topic *out)
{
    const struct bel_value *statistics = &results[3];
    out->has_no_rates = true;
    int64_t now = bel__operation_now(operation);
    out->paused = bel__view_is(field_of(statistics, "paused"), "1");
    out->counts[BEL_SCHEDULED] = (uint64_t)results[0].number;
    out->counts[BEL_READY] = (uint64_t)results[1].number;
    if (results[2].type == BEL_VALUE_NUMBER && results[2].number < now) {
        out->oldest_age_ms = (uint64_t)(now - results[2].number);
    }
    out->claimed = number_of(statistics, "claimed");
    out->completed = number_of(statistics, "completed");
    out->failed = number_of(statistics, "failed");
    out->released = number_of(statistics, "released");
    out->lost = number_of(statistics, "lost");
    out->waiting[BEL_WAIT_TIME] = out->counts[BEL_SCHEDULED];
    out->waiting[out->paused ? BEL_WAIT_PAUSED : BEL_WAIT_WORKER] = out->counts[BEL_READY];
}

static void told_topic(struct bel_item *item, const struct bel_results *results)
{
    struct bel_operation *operation = BEL_CONTAINER_OF(item, struct bel_operation, item);
    if (bel__operation_is_refused(operation, results)) return;
    struct bel_topic *topic = bel__arena_take(&operation->arena, sizeof *topic);
    int err = topic == NULL ? BEL_ENOMEM : 0;
    if (results->count != TOPIC_RESULTS || results->items[3].type != BEL_VALUE_LIST) err = BEL_EIO;
    if (err == 0) {
        *topic = (struct bel_topic){.name = operation->topic->name};
        fill_numbers(operation, results->items, topic);
        err = fill_settings(operation, topic);
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
    (void)bel__faststream_item(operation, BEL_SCRIPT_FASTSTREAM_TOPIC, 0, told_topic);
}

const struct bel_redis_verb bel__faststream_topic = {prepare_target, begin_topic};

/* --- PAUSE, RESUME --- */

static void done(struct bel_item *item, const struct bel_results *results)
{
    struct bel_operation *operation = BEL_CONTAINER_OF(item, struct bel_operation, item);
    if (bel__operation_is_refused(operation, results)) return;
    bel__operation_answer(operation);
}

static void set_paused(struct bel_operation *operation, const char *value)
{
    struct bel_batch *batch =
        bel__faststream_item(operation, BEL_SCRIPT_FASTSTREAM_CONFIGURE, 0, done);
    if (batch == NULL) return;
    bel__batch_word(batch, ""); /* the topic has its keys already */
    bel__batch_word(batch, "paused");
    bel__batch_word(batch, value);
    bel__node_mark_all(operation->node, operation->topic);
}

static void begin_pause(struct bel_operation *operation)
{
    set_paused(operation, "1");
}

static void begin_resume(struct bel_operation *operation)
{
    set_paused(operation, "0");
}

const struct bel_redis_verb bel__faststream_pause = {prepare_target, begin_pause};
const struct bel_redis_verb bel__faststream_resume = {prepare_target, begin_resume};
