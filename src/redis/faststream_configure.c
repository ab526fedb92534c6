/* SPDX-License-Identifier: MIT */

/*
 * CONFIGURE of topics that have the layout faststream, or get it, or lose it. Up to three places
 * are written one after the other, because they may be in different servers of a Cluster: the keys
 * of the layout (STATE), those of the native topic (its mark), and the hash of all layouts, which
 * makes it known. Timers are never moved: the layout that a topic leaves must be empty. The keys
 * that it gets may have timers, which programs in Python have put there.
 *
 *     MAKE      new keys, which must be those of the package, and no other topic's
 *     MARK      the native topic refuses requests from now on; it must have no timers
 *     FORGET    old keys, which must have no timers
 *     UNMARK    the native topic accepts requests again
 *     SET       other settings of the same keys
 *     TELL      the hash of all layouts, the registry of native topics, the other nodes
 *
 * Each step can be done again. If a node stops in between, the topic refuses requests until the
 * same CONFIGURE is sent once more.
 */
#include "redis/faststream.h"
#include "redis/layouts.h"

#include "core/view.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum {
    PACKED_MAX = 4096,
    CHANNEL_BYTES = BEL_REDIS_NAMESPACE_BYTES_MAX + BEL_TOPIC_BYTES_MAX + 32,
};

enum step {
    MAKE,
    MARK,
    FORGET,
    UNMARK,
    SET,
    TELL_LAYOUTS,
    TELL_REGISTRY,
    TELL_NODES,
    END,
};

struct bel_configuring {
    struct bel_layout *old, *made; /* NULL: native. Uses, unless they are the topic's */
    bool has_same_keys;
    enum step step; /* that is under way */
    const char *undone_why;
};

/* --- Preparing --- */

static bool is_layout(const struct bel_setting *setting)
{
    static const char name[] = "layout";
    return setting->name.bytes == sizeof name - 1 && bel__layout_has_alone(setting->name) &&
           (((const char *)setting->name.data)[0] | 0x20) == 'l';
}

static int refuse_setting(struct bel_operation *operation, const struct bel_setting *setting,
                          const char *why)
{
    struct bel_view name = bel__view_head(setting->name, 32);
    return bel__operation_refuse(operation, BEL_EINVAL, "%.*s: %s", (int)name.bytes,
                                 name.bytes > 0 ? (const char *)name.data : "", why);
}

/* Returns whether the topic is to have the layout when the command is done. */
static bool wants_layout(const struct bel_configure *command, bool has_layout)
{
    for (size_t i = 0; i < command->settings_count; i++) {
        const struct bel_setting *setting = &command->settings[i];
        if (is_layout(setting)) has_layout = bel__view_is(setting->value, "faststream");
    }
    return has_layout;
}

static int parse_settings(struct bel_operation *operation, struct bel_layout_settings *out)
{
    const struct bel_configure *command = &operation->command.configure;
    char why[BEL_EXPECTED_BYTES + 160];
    for (size_t i = 0; i < command->settings_count; i++) {
        const struct bel_setting *setting = &command->settings[i];
        int err = bel__layout_set(out, setting, why, sizeof why);
        if (err) return refuse_setting(operation, setting, why);
    }
    const char *wrong = bel__layout_check(out);
    return wrong == NULL ? 0 : bel__operation_refuse(operation, BEL_EINVAL, "%s", wrong);
}

/* A native topic stays native: all other settings are those of native topics. */
static int prepare_native(struct bel_operation *operation)
{
    struct bel_configure *command = &operation->command.configure;
    struct bel_setting *rest =
        bel__arena_take(&operation->arena, (command->settings_count + 1) * sizeof *rest);
    size_t count = 0;
    if (rest == NULL) return bel__operation_refuse(operation, BEL_ENOMEM, "memory has run out");
    for (size_t i = 0; i < command->settings_count; i++) {
        const struct bel_setting *setting = &command->settings[i];
        if (is_layout(setting)) {
            struct bel_layout_settings ignored;
            char why[BEL_EXPECTED_BYTES + 160];
            int err = bel__layout_set(&ignored, setting, why, sizeof why);
            if (err) return refuse_setting(operation, setting, why);
        } else if (bel__layout_has_alone(setting->name)) {
            return refuse_setting(operation, setting,
                                  "only a topic of the layout faststream has this setting");
        } else {
            rest[count++] = *setting;
        }
    }
    command->settings = rest;
    command->settings_count = count;
    operation->functions = &bel__redis_configure;
    return operation->functions->prepare(operation);
}

/* The topic becomes native: nothing else can be set at the same time. */
static int check_return(struct bel_operation *operation)
{
    const struct bel_configure *command = &operation->command.configure;
    for (size_t i = 0; i < command->settings_count; i++) {
        const struct bel_setting *setting = &command->settings[i];
        if (is_layout(setting)) continue;
        return refuse_setting(operation, setting, "set the layout first, then other settings");
    }
    return 0;
}

static int refuse_split(struct bel_operation *operation)
{
    return bel__operation_refuse(
        operation, BEL_EINVAL,
        "layout: the keys of this topic are in different slots of the Cluster; use a hash tag in "
        "the name or the prefix, for example {%.*s}",
        (int)bel__view_head(operation->topic->name, 32).bytes,
        (const char *)operation->topic->name.data);
}

static int make_revision(struct bel_operation *operation, char *out)
{
    uint64_t word;
    if (bel__entropy_u64(operation->node->entropy, &word) != 0) {
        return bel__operation_refuse(operation, BEL_EIO, "the system has no entropy");
    }
    (void)snprintf(out, BEL_LAYOUT_REVISION_BYTES + 1, "%016llx", (unsigned long long)word);
    return 0;
}

/* Makes the new layout. One with the same keys has the revision of the old one. */
static int make_layout(struct bel_operation *operation, struct bel_configuring *configuring,
                       const struct bel_layout_settings *settings)
{
    const struct bel_redis *node = operation->node;
    char revision[BEL_LAYOUT_REVISION_BYTES + 1];
    int err = make_revision(operation, revision);
    if (err) return err;
    configuring->made =
        bel__layout_create(settings, revision, node->options.name_space, operation->topic->name);
    struct bel_layout *made = configuring->made;
    if (made == NULL) return bel__operation_refuse(operation, BEL_ENOMEM, "memory has run out");
    if (made->is_split && node->options.servers.mode == BEL_REDIS_CLUSTER) {
        return refuse_split(operation);
    }
    if (configuring->old == NULL || !bel__layout_is_like(made, configuring->old)) return 0;
    configuring->has_same_keys = true;
    memcpy(made->revision, configuring->old->revision, sizeof made->revision);
    return 0;
}

/* The operation ends, perhaps before it has begun. */
static void ended(struct bel_operation *operation)
{
    struct bel_configuring *configuring = operation->configuring;
    bel__layouts_end_change(operation->node, operation->topic, configuring->old);
    if (configuring->step != END) bel__layouts_doubt(operation->topic);
    bel__layout_release(configuring->made);
}

static int prepare(struct bel_operation *operation)
{
    const struct bel_configure *command = &operation->command.configure;
    int err = bel__operation_name_any(operation, command->topic);
    if (err) return err;
    struct bel_layout *old = operation->topic->layout;
    bool wants = wants_layout(command, old != NULL);
    if (!wants && old == NULL) return prepare_native(operation);
    struct bel_layout_settings settings =
        old != NULL ? old->settings : *bel__layout_settings_default();
    err = wants ? parse_settings(operation, &settings) : check_return(operation);
    struct bel_configuring *configuring =
        err ? NULL : bel__arena_take(&operation->arena, sizeof *configuring);
    if (err) return err;
    if (configuring == NULL) {
        return bel__operation_refuse(operation, BEL_ENOMEM, "memory has run out");
    }
    *configuring = (struct bel_configuring){.old = old};
    if (wants) err = make_layout(operation, configuring, &settings);
    if (err) {
        bel__layout_release(configuring->made);
        return err;
    }
    if (old != NULL) old->uses++;
    operation->configuring = configuring;
    operation->ended = ended;
    bel__layouts_begin_change(operation->topic);
    return 0;
}

/* --- Steps --- */

static void answered(struct bel_item *item, const struct bel_results *results);

/* Adds the item to a batch; NULL: memory has run out, which has ended the operation. */
static bool add_item(struct bel_operation *operation, struct bel_batch *batch)
{
    if (batch == NULL) {
        bel__operation_fail(operation, BEL_ENOMEM, NULL);
        return false;
    }
    operation->item.answered = answered;
    bel__batch_item(batch, &operation->item, 0);
    return true;
}

static void send_state(struct bel_operation *operation, struct bel_batch *batch,
                       struct bel_view owner)
{
    const struct bel_layout *made = operation->configuring->made;
    if (!add_item(operation, batch)) return;
    bel__batch_text(batch, owner);
    bel__batch_word(batch, "revision");
    bel__batch_word(batch, made->revision);
    bel__batch_word(batch, "lease_ms");
    bel__batch_number(batch, (int64_t)made->settings.lease_ms);
}

static void send_make(struct bel_operation *operation)
{
    struct bel_batch *batch =
        bel__batch_of_layout(operation->node, operation->topic, operation->configuring->made,
                             BEL_SCRIPT_FASTSTREAM_CONFIGURE);
    send_state(operation, batch, operation->topic->name);
}

static void send_set(struct bel_operation *operation)
{
    struct bel_batch *batch = bel__batch_alone(operation->node, operation->topic->partitions[0],
                                               BEL_SCRIPT_FASTSTREAM_CONFIGURE);
    send_state(operation, batch, (struct bel_view){NULL, 0});
}

static void send_mark(struct bel_operation *operation, const char *layout)
{
    struct bel_batch *batch =
        bel__batch_alone(operation->node, operation->topic->partitions[0], BEL_SCRIPT_MARK);
    if (add_item(operation, batch)) bel__batch_word(batch, layout);
}

static void send_forget(struct bel_operation *operation, struct bel_layout *layout, bool is_undone)
{
    struct bel_batch *batch = bel__batch_of_layout(operation->node, operation->topic, layout,
                                                   BEL_SCRIPT_FASTSTREAM_FORGET);
    if (add_item(operation, batch)) bel__batch_number(batch, is_undone);
}

static void tell_layouts(struct bel_operation *operation)
{
    const struct bel_layout *made = operation->configuring->made;
    struct bel_batch *batch = bel__batch_plain(operation->node);
    char key[BEL_LAYOUTS_KEY_BYTES], packed[PACKED_MAX];
    if (!add_item(operation, batch)) return;
    bel__batch_word(batch, made != NULL ? "HSET" : "HDEL");
    bel__batch_text(batch, bel__layouts_key(operation->node, key));
    bel__batch_text(batch, operation->topic->name);
    if (made == NULL) return;
    size_t bytes = bel__layout_pack(made, packed, sizeof packed);
    bel__batch_text(batch, (struct bel_view){packed, bytes});
}

/* The registry has native topics: every node looks after these. */
static void tell_registry(struct bel_operation *operation)
{
    struct bel_batch *batch = bel__batch_plain(operation->node);
    if (!add_item(operation, batch)) return;
    bool is_native = operation->configuring->made == NULL;
    operation->topic->is_registered = is_native;
    bel__batch_word(batch, is_native ? "SADD" : "SREM");
    bel__batch_text(batch, bel__node_registry(operation->node));
    bel__batch_text(batch, operation->topic->name);
}

static void tell_nodes(struct bel_operation *operation)
{
    struct bel_batch *batch = bel__batch_plain(operation->node);
    struct bel_view topic = operation->topic->name;
    char channel[CHANNEL_BYTES];
    if (!add_item(operation, batch)) return;
    if (bel__servers_is_sharded(operation->node->servers)) {
        bel__batch_word(batch, "SPUBLISH"); /* the channel of new topics: see news.c */
        bel__batch_text(batch, bel__node_registry(operation->node));
        bel__batch_text(batch, topic);
        return;
    }
    int bytes =
        snprintf(channel, sizeof channel, "{%s:%.*s:0}:wake", operation->node->options.name_space,
                 (int)topic.bytes, (const char *)topic.data);
    assert(bytes > 0 && (size_t)bytes < sizeof channel);
    bel__batch_word(batch, "PUBLISH");
    bel__batch_text(batch, (struct bel_view){channel, (size_t)bytes});
    bel__batch_word(batch, "layout");
}

static bool is_needed(const struct bel_operation *operation, enum step step)
{
    const struct bel_configuring *configuring = operation->configuring;
    bool has_native = bel_topic_is_valid(operation->topic->name);
    switch (step) {
    case MAKE:
        return configuring->made != NULL && !configuring->has_same_keys;
    case MARK:
        return configuring->old == NULL && has_native;
    case FORGET:
        return configuring->old != NULL && !configuring->has_same_keys;
    case UNMARK:
        return configuring->made == NULL && has_native;
    case SET:
        return configuring->has_same_keys;
    case TELL_REGISTRY:
        return has_native;
    default:
        return true;
    }
}

static void finish(struct bel_operation *operation)
{
    struct bel_configuring *configuring = operation->configuring;
    bel__layout_release(configuring->old);
    configuring->old = configuring->made; /* which becomes the topic's */
    configuring->made = NULL;
    bel__node_mark_all(operation->node, operation->topic);
    bel__operation_answer(operation);
}

static void send_step(struct bel_operation *operation)
{
    struct bel_configuring *configuring = operation->configuring;
    while (!is_needed(operation, configuring->step)) {
        configuring->step++;
    }
    switch (configuring->step) {
    case MAKE:
        send_make(operation);
        break;
    case MARK:
        send_mark(operation, "faststream");
        break;
    case FORGET:
        send_forget(operation, configuring->old, false);
        break;
    case UNMARK:
        send_mark(operation, "");
        break;
    case SET:
        send_set(operation);
        break;
    case TELL_LAYOUTS:
        tell_layouts(operation);
        break;
    case TELL_REGISTRY:
        tell_registry(operation);
        break;
    case TELL_NODES:
        tell_nodes(operation);
        break;
    case END:
        finish(operation);
        break;
    }
}

/* Returns why a step was refused; NULL if it was not. */
static const char *refusal_of(const struct bel_configuring *configuring,
                              const struct bel_value *result)
{
    if (bel_value_is(result, "full")) {
        return configuring->step == MARK
                   ? "the native topic has timers or several partitions: it can get this layout "
                     "when its timers are gone; those of the package may stay"
                   : "the layout and the keys of a topic change only while it has no timers";
    }
    if (bel_value_is(result, "taken")) {
        return "another topic has these keys: choose another prefix";
    }
    if (bel_value_is(result, "types")) {
        return "these keys hold something that is not of faststream-redis-timers: look at prefix, "
               "timeline_key and payloads_key";
    }
    if (bel_value_is(result, "bodies")) {
        return "there are timers under timeline_key, and none of their payloads under "
               "payloads_key: look at both settings and prefix";
    }
    return NULL;
}

/* The new keys are given up: they stay the package's. */
static void undo(struct bel_operation *operation, const char *why)
{
    struct bel_configuring *configuring = operation->configuring;
    if (!is_needed(operation, MAKE) || configuring->step == MAKE) {
        bel__operation_fail(operation, BEL_ECONFLICT, why);
        return;
    }
    configuring->undone_why = why;
    send_forget(operation, configuring->made, true);
}

static void answered(struct bel_item *item, const struct bel_results *results)
{
    struct bel_operation *operation = BEL_CONTAINER_OF(item, struct bel_operation, item);
    struct bel_configuring *configuring = operation->configuring;
    const char *why;
    if (bel__operation_is_refused(operation, results)) return;
    if (configuring->undone_why != NULL) {
        bel__operation_fail(operation, BEL_ECONFLICT, configuring->undone_why);
    } else if ((why = refusal_of(configuring, &results->items[0])) != NULL) {
        undo(operation, why);
    } else {
        configuring->step++;
        send_step(operation);
    }
}

static void begin(struct bel_operation *operation)
{
    bel__operation_hold(operation);
    send_step(operation);
}

const struct bel_redis_verb bel__faststream_configure = {prepare, begin};
