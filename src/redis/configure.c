/* SPDX-License-Identifier: MIT */

/*
 * CONFIGURE, PAUSE and RESUME. Partition 0 has the settings, with a version; the others get copies
 * of all of them. A setting is stored as its text, under its name, and those that scripts need also
 * as a number.
 *
 * The number of partitions is changed in steps, as ADR 30 says:
 *
 *     close 0 ---> seal the others ---> set the number at 0 ---> copy to all
 *                      '--- one has a record ---> open 0 ---> copy to all
 */
#include "redis/operation.h"

#include "core/parse.h"
#include "core/view.h"
#include "settings/settings.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

enum {
    CLOSED_MS = 2000, /* for which partition 0 is closed, at most */
};

struct bel_settings_change {
    uint32_t to;     /* partitions that are wanted; 0: as many as there are */
    uint32_t sealed; /* partitions that are sealed or get copies */
    size_t left;     /* items without results */
    int err;         /* the first error */
    bool has_conflict, is_over;
    struct bel_settings_copy copy;
    struct bel_item items[BEL_REDIS_PARTITIONS_MAX];
};

static bool is_partitions(struct bel_view name)
{
    static const char wanted[] = "partitions";
    return name.bytes == sizeof wanted - 1 && strncasecmp(name.data, wanted, name.bytes) == 0;
}

static int refuse_setting(struct bel_operation *operation, int err, struct bel_view name,
                          const char *why)
{
    struct bel_view head = bel__view_head(name, 32);
    return bel__operation_refuse(operation, err, "%.*s: %s", (int)head.bytes,
                                 head.bytes > 0 ? (const char *)head.data : "", why);
}

/* Checks all settings. `*out_partitions` is 0 if they are not named. */
static int parse_settings(struct bel_operation *operation, struct bel_settings *out,
                          uint32_t *out_partitions)
{
    const struct bel_configure *command = &operation->command.configure;
    *out = *bel__settings_default();
    *out_partitions = 0;
    for (size_t i = 0; i < command->settings_count; i++) {
        const struct bel_setting *setting = &command->settings[i];
        char why[BEL_EXPECTED_BYTES + 32] = "expected a number from 1 to 64";
        uint64_t number = 0;
        int err;
        if (is_partitions(setting->name)) {
            err = bel__parse_u64(setting->value.data, setting->value.bytes, 1,
                                 BEL_REDIS_PARTITIONS_MAX, &number);
            err = err ? BEL_EINVAL : 0;
            *out_partitions = (uint32_t)number;
        } else {
            err = bel__setting_set(out, setting, why, sizeof why);
        }
        if (err) return refuse_setting(operation, err, setting->name, why);
    }
    if (out->concurrency == 0) return 0;
    return bel__operation_refuse(operation, BEL_EUNSUPPORTED,
                                 "concurrency is not supported by a store on Redis");
}

static int take_change(struct bel_operation *operation)
{
    operation->change = bel__arena_take(&operation->arena, sizeof *operation->change);
    if (operation->change != NULL) return 0;
    return bel__operation_refuse(operation, BEL_ENOMEM, "memory has run out");
}

static int prepare_configure(struct bel_operation *operation)
{
    struct bel_settings settings;
    uint32_t partitions;
    int err = bel__operation_name(operation, operation->command.configure.topic);
    if (err == 0) err = parse_settings(operation, &settings, &partitions);
    return err ? err : take_change(operation);
}

static int prepare_target(struct bel_operation *operation)
{
    int err = bel__operation_name(operation, operation->command.target.topic);
    return err ? err : take_change(operation);
}

/* --- Calls --- */

/* Begins a call of a script for a partition. Returns NULL if memory has run out. */
static struct bel_batch *
call(struct bel_operation *operation, uint32_t index, enum bel_script_name script,
     void (*answered)(struct bel_item *item, const struct bel_results *results))
{
    struct bel_settings_change *change = operation->change;
    struct bel_redis_partition *partition = operation->topic->partitions[index];
    struct bel_batch *batch = bel__batch_alone(operation->node, partition, script);
    if (batch == NULL) {
        if (change->err == 0) change->err = BEL_ENOMEM;
        return NULL;
    }
    change->items[index] = (struct bel_item){.answered = answered, .owner = operation};
    change->left++;
    bel__batch_item(batch, &change->items[index], 0);
    return batch;
}

/* Takes one item off. Returns whether it was the last one. */
static bool take_off(struct bel_operation *operation, const struct bel_results *results)
{
    struct bel_settings_change *change = operation->change;
    if (results->is_moved) operation->has_moved = true;
    if (results->err) bel__operation_note(operation, results->err, results->why);
    if (results->err && change->err == 0) change->err = results->err;
    assert(change->left > 0);
    return --change->left == 0;
}

static void answer(struct bel_operation *operation)
{
    struct bel_settings_change *change = operation->change;
    if (operation->has_moved) {
        bel__operation_restart(operation);
    } else if (change->has_conflict) {
        bel__operation_fail(operation, BEL_ECONFLICT,
                            "partitions can be changed only while the topic has no timers, ended "
                            "ones included; belfry copy takes them to another store or namespace");
    } else if (change->err) {
        operation->topic->is_checked = false; /* a later command completes what was done */
        bel__operation_note(operation, change->err, NULL);
        bel__operation_stop(operation, change->err, 0, "");
    } else {
        bel__node_mark_all(operation->node, operation->topic);
        bel__operation_answer(operation);
    }
}

/* Keeps the settings that partition 0 has told. */
static int keep_copy(struct bel_operation *operation, const struct bel_results *results)
{
    struct bel_settings_copy *copy = &operation->change->copy;
    int err = bel__settings_of(results, copy);
    if (err) return err;
    struct bel_value *list = bel__arena_take(&operation->arena, sizeof *list);
    struct bel_value *fields =
        bel__arena_take(&operation->arena, (copy->fields->count + 1) * sizeof *fields);
    if (list == NULL || fields == NULL) return BEL_ENOMEM;
    for (size_t i = 0; i < copy->fields->count; i++) {
        fields[i] = copy->fields->items[i];
        if (fields[i].type != BEL_VALUE_TEXT) return BEL_EIO;
        fields[i].text = bel__arena_copy(&operation->arena, fields[i].text);
        if (fields[i].text.data == NULL) return BEL_ENOMEM;
    }
    *list = (struct bel_value){.type = BEL_VALUE_LIST, .count = copy->fields->count};
    list->items = fields;
    copy->fields = list;
    return 0;
}

static void copied(struct bel_item *item, const struct bel_results *results)
{
    if (take_off(item->owner, results)) answer(item->owner);
}

/* Sends the settings to the partitions from 1 on. */
static void send_copies(struct bel_operation *operation)
{
    struct bel_settings_change *change = operation->change;
    for (uint32_t i = 1; i < change->sealed; i++) {
        struct bel_item *item = &change->items[i];
        *item = (struct bel_item){.answered = copied, .owner = operation};
        int err = bel__settings_send(operation->node, operation->topic->partitions[i],
                                     &change->copy, item);
        if (err && change->err == 0) change->err = err;
        if (err == 0) change->left++;
    }
    if (change->left == 0) answer(operation);
}

/* Partition 0 has the new settings, or is open again. */
static void changed(struct bel_item *item, const struct bel_results *results)
{
    struct bel_operation *operation = item->owner;
    struct bel_settings_change *change = operation->change;
    (void)take_off(operation, results);
    int err = change->err ? change->err : keep_copy(operation, results);
    if (err == BEL_ENOTFOUND && change->to == 0) err = 0; /* RESUME of an unknown topic */
    if (err == BEL_ENOTFOUND) err = BEL_EIO;              /* is not closed any more */
    if (err && change->err == 0) change->err = err;
    if (change->err || operation->has_moved || results->items[0].number == 0) {
        answer(operation);
        return;
    }
    if (change->to != 0 && !change->has_conflict) {
        change->err = bel__topic_divide(operation->node, operation->topic, change->to);
    }
    if (change->to == 0) change->sealed = operation->topic->count;
    send_copies(operation);
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

static void add_settings(struct bel_batch *batch, struct bel_operation *operation)
{
    struct bel_settings settings;
    uint32_t partitions;
    int err = parse_settings(operation, &settings, &partitions);
    assert(err == 0);
    (void)err;
    for (unsigned i = 0; i < BEL_SETTINGS; i++) {
        if (is_named(&operation->command.configure, i)) add_setting(batch, &settings, i);
    }
}

/* --- The number of partitions --- */

/* All are closed: sets the number, or opens partition 0 if one has a record. */
static void divide(struct bel_operation *operation)
{
    struct bel_settings_change *change = operation->change;
    struct bel_batch *batch = call(operation, 0, BEL_SCRIPT_DIVIDE, changed);
    if (batch == NULL) {
        answer(operation);
        return;
    }
    if (change->has_conflict) {
        bel__batch_word(batch, "");
    } else {
        bel__batch_number(batch, change->to);
        add_settings(batch, operation);
    }
}

static void sealed(struct bel_item *item, const struct bel_results *results)
{
    struct bel_operation *operation = item->owner;
    struct bel_settings_change *change = operation->change;
    bool is_full = results->err == 0 && bel__result_is_number(&results->items[0], 0, 0);
    change->has_conflict = change->has_conflict || is_full;
    if (!take_off(operation, results)) return;
    if (change->err) {
        answer(operation);
    } else {
        divide(operation);
    }
}

static void set(struct bel_operation *operation);

/* Partition 0 is closed, has a record, or has the number already. */
static void closed(struct bel_item *item, const struct bel_results *results)
{
    struct bel_operation *operation = item->owner;
    struct bel_settings_change *change = operation->change;
    struct bel_redis_topic *topic = operation->topic;
    enum {
        FULL,
        CLOSED,
        EQUAL,
    };
    (void)take_off(operation, results);
    if (results->err == 0 && results->count != 2) change->err = BEL_EIO;
    if (change->err) {
        answer(operation);
        return;
    }
    int64_t verdict = results->items[0].number, from = results->items[1].number;
    if (from < 1 || from > BEL_REDIS_PARTITIONS_MAX) from = 1;
    change->has_conflict = verdict == FULL;
    change->sealed = change->to > (uint32_t)from ? change->to : (uint32_t)from;
    change->err = bel__topic_divide(operation->node, topic, change->sealed);
    if (change->err == 0) bel__topic_use(operation->node, topic, (uint32_t)from);
    if (change->err || verdict == FULL) {
        answer(operation);
        return;
    }
    if (verdict == EQUAL) {
        change->to = 0;
        set(operation);
        return;
    }
    for (uint32_t i = 1; i < change->sealed; i++) {
        struct bel_batch *batch = call(operation, i, BEL_SCRIPT_SEAL, sealed);
        if (batch == NULL) break;
        bel__batch_number(batch, 0);
        bel__batch_number(batch, change->to);
    }
    if (change->left == 0 && change->err == 0) divide(operation);
    if (change->left == 0 && change->err != 0) answer(operation);
}

/* --- The commands --- */

/* Changes the settings of partition 0. */
static void set(struct bel_operation *operation)
{
    static const char *const values[][2] = {
        [BEL_VERB_PAUSE] = {"1", "1"}, /* whether an unknown topic is made; the value */
        [BEL_VERB_RESUME] = {"0", "0"},
    };
    struct bel_batch *batch = call(operation, 0, BEL_SCRIPT_CONFIGURE, changed);
    if (batch == NULL) {
        answer(operation);
        return;
    }
    if (operation->command.verb == BEL_VERB_CONFIGURE) {
        bel__batch_word(batch, "1");
        add_settings(batch, operation);
        return;
    }
    bel__batch_word(batch, values[operation->command.verb][0]);
    bel__batch_word(batch, "paused");
    bel__batch_word(batch, values[operation->command.verb][1]);
}

static void begin(struct bel_operation *operation)
{
    struct bel_settings settings;
    struct bel_settings_change *change = operation->change;
    bool makes = operation->command.verb != BEL_VERB_RESUME;
    *change = (struct bel_settings_change){.left = 0};
    if (operation->command.verb == BEL_VERB_CONFIGURE) {
        int err = parse_settings(operation, &settings, &change->to);
        assert(err == 0);
        (void)err;
    }
    if (makes && bel__node_register(operation->node, operation->topic) != 0) {
        bel__operation_fail(operation, BEL_ENOMEM, NULL);
        return;
    }
    bel__operation_hold(operation);
    if (change->to == 0 || change->to == operation->topic->count) {
        change->to = 0;
        set(operation);
        return;
    }
    struct bel_batch *batch = call(operation, 0, BEL_SCRIPT_SEAL, closed);
    if (batch == NULL) {
        answer(operation);
        return;
    }
    bel__batch_number(batch, CLOSED_MS);
    bel__batch_number(batch, change->to);
}

const struct bel_redis_verb bel__redis_configure = {prepare_configure, begin};
const struct bel_redis_verb bel__redis_pause = {prepare_target, begin};
const struct bel_redis_verb bel__redis_resume = {prepare_target, begin};
