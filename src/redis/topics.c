/* SPDX-License-Identifier: MIT */

/*
 * TOPICS, and TOPIC: the sum of what all partitions tell, not of one moment.
 */
#include "redis/layouts.h"
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

/* Leaves out names that are there twice, because a layout is just changing. */
static size_t without_doubles(struct bel_view *names, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (kept == 0 || !bel__view_equal(names[kept - 1], names[i])) names[kept++] = names[i];
    }
    return kept;
}

/* Adds copies of names to those of the reply. Returns 0 or BEL_ENOMEM. */
static int add_names(struct bel_operation *operation, const struct bel_value *names)
{
    size_t had = operation->reply.names.count, count = had + names->count;
    struct bel_view *all = bel__arena_take(&operation->arena, (count + 1) * sizeof *all);
    if (all == NULL) return BEL_ENOMEM;
    if (had > 0) memcpy(all, operation->reply.names.items, had * sizeof *all);
    count = had;
    for (size_t i = 0; i < names->count; i++) { /* another program may have added others */
        const struct bel_value *name = &names->items[i];
        if (name->type != BEL_VALUE_TEXT || !bel__layouts_may_name(name->text)) continue;
        all[count] = bel__arena_copy(&operation->arena, name->text);
        if (all[count++].data == NULL) return BEL_ENOMEM;
    }
    qsort(all, count, sizeof *all, compare_names);
    operation->reply.names.items = all;
    operation->reply.names.count = without_doubles(all, count);
    return 0;
}

/* Asks for all members of a collection of names. */
static void ask_names(struct bel_operation *operation, const char *command, struct bel_view key,
                      void (*answered)(struct bel_item *item, const struct bel_results *results))
{
    struct bel_batch *batch = bel__batch_reading(operation->node);
    if (batch == NULL) {
        bel__operation_fail(operation, BEL_ENOMEM, NULL);
        return;
    }
    operation->item.answered = answered;
    bel__batch_item(batch, &operation->item, 0);
    bel__batch_word(batch, command);
    bel__batch_text(batch, key);
}

/* Returns whether names were added; answers otherwise. */
static bool has_added(struct bel_operation *operation, const struct bel_results *results)
{
    if (bel__operation_is_refused(operation, results)) return false;
    bool is_list = results->items[0].type == BEL_VALUE_LIST;
    int err = is_list ? add_names(operation, results->items) : BEL_EIO;
    if (err) bel__operation_fail(operation, err, NULL);
    return err == 0;
}

static void told_layouts(struct bel_item *item, const struct bel_results *results)
{
    struct bel_operation *operation = operation_of(item);
    if (has_added(operation, results)) bel__operation_answer(operation);
}

static void told_topics(struct bel_item *item, const struct bel_results *results)
{
    struct bel_operation *operation = operation_of(item);
    char key[BEL_LAYOUTS_KEY_BYTES];
    if (!has_added(operation, results)) return;
    ask_names(operation, "HKEYS", bel__layouts_key(operation->node, key), told_layouts);
}

/* The native topics are in the registry, the others in the hash of all layouts. */
static void begin_topics(struct bel_operation *operation)
{
    ask_names(operation, "SMEMBERS", bel__node_registry(operation->node), told_topics);
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

/* Fills in the settings, from the fields of partition 0. */
static int fill_settings(struct bel_operation *operation, const struct bel_value *cfg,
                         struct bel_topic *out)
{
    struct bel_setting *settings =
        bel__arena_take(&operation->arena, (BEL_SETTINGS + 1) * sizeof *settings);
    if (settings == NULL) return BEL_ENOMEM;
    for (unsigned i = 0; i < BEL_SETTINGS; i++) {
        char text[BEL_SETTING_TEXT_MAX];
        settings[i].name = bel__setting_name(i);
        size_t bytes = bel__setting_print(bel__settings_default(), i, text);
        struct bel_view value = has_field(cfg, settings[i].name) ? field_of(cfg, settings[i].name)
                                                                 : (struct bel_view){text, bytes};
        settings[i].value = bel__arena_copy(&operation->arena, value);
        if (settings[i].value.data == NULL) return BEL_ENOMEM;
    }
    out->settings = settings;
    out->settings_count = BEL_SETTINGS;
    if (operation->topic->count == 1) return 0; /* which other stores do not have as a setting */
    char count[BEL_PRINT_BYTES_MAX];
    struct bel_view value = {count, bel__print_u64(count, operation->topic->count)};
    settings[BEL_SETTINGS].name = BEL_VIEW("partitions");
    settings[BEL_SETTINGS].value = bel__arena_copy(&operation->arena, value);
    out->settings_count++;
    return settings[BEL_SETTINGS].value.data == NULL ? BEL_ENOMEM : 0;
}

/* What the partitions of a topic have told, added up. */
struct bel_sum {
    struct bel_topic topic; /* the reply */
    size_t left;            /* partitions that have not replied */
    int err;                /* the first error */
    bool is_known;
    struct bel_item items[];
};

static void add_age(const struct bel_operation *operation,
                    const struct bel_redis_partition *partition, const struct bel_value *result,
                    struct bel_topic *out)
{
    struct bel_view text = result->text;
    int64_t first, now = bel__partition_now(operation->node, partition);
    if (result->type != BEL_VALUE_TEXT ||
        bel__parse_i64(text.data, text.bytes, INT64_MIN, INT64_MAX, &first) != 0) {
        return;
    }
    uint64_t age_ms = now > first ? (uint64_t)(now - first) : 0;
    if (age_ms > out->oldest_age_ms) out->oldest_age_ms = age_ms;
}

static void add_numbers(const struct bel_operation *operation, const struct bel_results *told,
                        struct bel_topic *out)
{
    const struct bel_value *results = told->items;
    const struct bel_value *st = &results[3];
    for (size_t i = 0; i < BEL_STATES; i++) {
        out->counts[i] += (uint64_t)results[0].items[i].number;
    }
    out->plans += (uint64_t)results[4].number;
    add_age(operation, told->partition, &results[1], out);
    out->claimed += number_of(st, BEL_VIEW("claimed"));
    out->completed += number_of(st, BEL_VIEW("completed"));
    out->failed += number_of(st, BEL_VIEW("failed"));
    out->released += number_of(st, BEL_VIEW("released"));
    out->lost += number_of(st, BEL_VIEW("lost"));
}

static void fill_waiting(struct bel_topic *out)
{
    out->waiting[BEL_WAIT_TIME] = out->counts[BEL_SCHEDULED] - out->plans;
    out->waiting[BEL_WAIT_BLOCKED] = out->counts[BEL_BLOCKED];
    out->waiting[out->paused ? BEL_WAIT_PAUSED : BEL_WAIT_WORKER] = out->counts[BEL_READY];
}

static bool is_topic(const struct bel_results *results)
{
    const struct bel_value *items = results->items;
    return results->count == TOPIC_RESULTS && items[0].type == BEL_VALUE_LIST &&
           items[0].count == BEL_STATES && items[2].type == BEL_VALUE_LIST &&
           items[3].type == BEL_VALUE_LIST && items[4].type == BEL_VALUE_NUMBER;
}

static void refuse_unknown(struct bel_operation *operation)
{
    struct bel_view name = bel__view_head(operation->topic->name, 100); /* a reply has room */
    (void)bel__operation_refuse(operation, BEL_ENOTFOUND, "topic '%.*s' does not exist",
                                (int)name.bytes, (const char *)name.data);
    bel__operation_answer(operation);
}

/* Takes over what one partition has told; `is_first`: partition 0. Returns 0 or an error. */
static int add_partition(struct bel_operation *operation, const struct bel_results *results,
                         bool is_first)
{
    struct bel_sum *sum = operation->sum;
    if (results->err) return results->err;
    if (results->count == 1 && results->items[0].type == BEL_VALUE_NIL) return 0;
    if (!is_topic(results)) return BEL_EIO;
    add_numbers(operation, results, &sum->topic);
    if (!is_first) return 0;
    const struct bel_value *cfg = &results->items[2];
    sum->is_known = true;
    sum->topic.paused = bel__view_is(field_of(cfg, BEL_VIEW("paused")), "1");
    return fill_settings(operation, cfg, &sum->topic);
}

static void told_topic(struct bel_item *item, const struct bel_results *results)
{
    struct bel_operation *operation = item->owner;
    struct bel_sum *sum = operation->sum;
    if (results->is_moved) operation->has_moved = true;
    int err = add_partition(operation, results, item == &sum->items[0]);
    if (err) bel__operation_note(operation, err, results->why);
    if (err && sum->err == 0) sum->err = err;
    assert(sum->left > 0);
    if (--sum->left > 0) return;
    if (operation->has_moved) {
        bel__operation_restart(operation);
    } else if (sum->err) {
        bel__operation_stop(operation, sum->err, 0, "");
    } else if (!sum->is_known) {
        refuse_unknown(operation);
    } else {
        fill_waiting(&sum->topic);
        operation->reply.topic = &sum->topic;
        bel__operation_answer(operation);
    }
}

static void begin_topic(struct bel_operation *operation)
{
    const struct bel_redis_topic *topic = operation->topic;
    struct bel_sum *sum =
        bel__arena_take(&operation->arena, sizeof *sum + topic->count * sizeof sum->items[0]);
    if (sum == NULL) {
        bel__operation_fail(operation, BEL_ENOMEM, NULL);
        return;
    }
    *sum = (struct bel_sum){.topic = {.name = topic->name, .has_no_rates = true}};
    operation->sum = sum;
    for (uint32_t i = 0; i < topic->count; i++) {
        struct bel_batch *batch =
            bel__batch_alone(operation->node, topic->partitions[i], BEL_SCRIPT_TOPIC);
        sum->items[i] = (struct bel_item){.answered = told_topic, .owner = operation};
        if (batch == NULL) {
            sum->err = BEL_ENOMEM;
            continue;
        }
        sum->left++;
        bel__batch_item(batch, &sum->items[i], 0);
    }
    if (sum->left == 0) bel__operation_fail(operation, BEL_ENOMEM, NULL);
}

const struct bel_redis_verb bel__redis_topic = {prepare_target, begin_topic};
