/* SPDX-License-Identifier: MIT */

/*
 * Topics and their settings. A setting is a name, a function that parses it and one that prints it.
 * CONFIGURE parses into a copy, so that one wrong value changes nothing.
 */
#include "belfry/duration.h"
#include "inside.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    SETTING_MAX = 1000000,
    VALUE_BYTES = 1100,
};

struct setting {
    const char *name;
    bool (*read)(struct settings *settings, struct bel_view value);
    void (*print)(const struct settings *settings, char *out, size_t room);
};

static bool read_duration(struct bel_view value, uint64_t *out)
{
    return bel_duration_parse(value.data, value.bytes, out, NULL) == 0;
}

/* Parses a decimal number up to `max`. */
static bool read_number(struct bel_view value, uint64_t max, uint64_t *out)
{
    const char *text = value.data;
    uint64_t number = 0;
    if (value.bytes == 0 || value.bytes > 19) return false;
    for (size_t i = 0; i < value.bytes; i++) {
        if (text[i] < '0' || text[i] > '9') return false;
        number = 10 * number + (uint64_t)(text[i] - '0');
    }
    if (number > max) return false;
    *out = number;
    return true;
}

static void print_number(uint64_t number, char *out, size_t room)
{
    (void)snprintf(out, room, "%" PRIu64, number);
}

static bool read_lease(struct settings *settings, struct bel_view value)
{
    return read_duration(value, &settings->lease_ms) && settings->lease_ms > 0;
}

static void print_lease(const struct settings *settings, char *out, size_t room)
{
    (void)bel_duration_print(settings->lease_ms, out, room);
}

static bool read_retry(struct settings *settings, struct bel_view value)
{
    return bel_backoff_parse(value.data, value.bytes, &settings->retry, NULL) == 0;
}

static void print_retry(const struct settings *settings, char *out, size_t room)
{
    (void)bel_backoff_print(&settings->retry, out, room);
}

static bool read_crashes(struct settings *settings, struct bel_view value)
{
    return read_number(value, SETTING_MAX, &settings->crashes) && settings->crashes > 0;
}

static void print_crashes(const struct settings *settings, char *out, size_t room)
{
    print_number(settings->crashes, out, room);
}

static bool read_concurrency(struct settings *settings, struct bel_view value)
{
    return read_number(value, SETTING_MAX, &settings->concurrency);
}

static void print_concurrency(const struct settings *settings, char *out, size_t room)
{
    print_number(settings->concurrency, out, room);
}

static bool read_retention(struct settings *settings, struct bel_view value)
{
    return read_duration(value, &settings->retention_ms);
}

static void print_retention(const struct settings *settings, char *out, size_t room)
{
    (void)bel_duration_print(settings->retention_ms, out, room);
}

static bool read_retention_dead(struct settings *settings, struct bel_view value)
{
    if (!model_same(value, BEL_VIEW("forever"))) {
        return read_duration(value, &settings->retention_dead_ms);
    }
    settings->retention_dead_ms = FOREVER;
    return true;
}

static void print_retention_dead(const struct settings *settings, char *out, size_t room)
{
    if (settings->retention_dead_ms == FOREVER) {
        (void)snprintf(out, room, "forever");
    } else {
        (void)bel_duration_print(settings->retention_dead_ms, out, room);
    }
}

static bool read_depth(struct settings *settings, struct bel_view value)
{
    return read_number(value, UINT64_MAX, &settings->depth);
}

static void print_depth(const struct settings *settings, char *out, size_t room)
{
    print_number(settings->depth, out, room);
}

static bool read_misfire_after(struct settings *settings, struct bel_view value)
{
    return read_duration(value, &settings->misfire_after_ms);
}

static void print_misfire_after(const struct settings *settings, char *out, size_t room)
{
    (void)bel_duration_print(settings->misfire_after_ms, out, room);
}

static bool read_deliver(struct settings *settings, struct bel_view value)
{
    if (value.bytes >= sizeof settings->deliver) return false;
    if (value.bytes > 0) memcpy(settings->deliver, value.data, value.bytes);
    settings->deliver[value.bytes] = 0;
    return true;
}

static void print_deliver(const struct settings *settings, char *out, size_t room)
{
    (void)snprintf(out, room, "%s", settings->deliver);
}

static const struct setting all[] = {
    {"lease", read_lease, print_lease},
    {"retry", read_retry, print_retry},
    {"crashes", read_crashes, print_crashes},
    {"concurrency", read_concurrency, print_concurrency},
    {"retention", read_retention, print_retention},
    {"retention_dead", read_retention_dead, print_retention_dead},
    {"depth", read_depth, print_depth},
    {"misfire_after", read_misfire_after, print_misfire_after},
    {"deliver", read_deliver, print_deliver},
};

enum {
    SETTINGS = sizeof all / sizeof all[0],
};

struct settings model_settings_default(void)
{
    return (struct settings){
        .lease_ms = 30000,
        .retry = bel_backoff_default(),
        .crashes = 5,
        .retention_dead_ms = FOREVER,
        .misfire_after_ms = 60000,
    };
}

static const struct setting *find_setting(struct bel_view name)
{
    for (size_t i = 0; i < SETTINGS; i++) {
        bool is_as_long = name.bytes == strlen(all[i].name);
        if (is_as_long && strncasecmp(name.data, all[i].name, name.bytes) == 0) return &all[i];
    }
    return NULL;
}

struct topic *model_topic_find(struct model *model, struct bel_view name)
{
    for (size_t i = 0; i < model->topics.count; i++) {
        struct topic *topic = model->topics.items[i];
        if (model_same(name, model_text(topic->name))) return topic;
    }
    return NULL;
}

struct topic *model_topic_make(struct model *model, struct bel_view name)
{
    struct topic *topic = model_topic_find(model, name);
    if (topic != NULL) return topic;
    topic = model_alloc(sizeof *topic);
    topic->name = model_alloc(name.bytes + 1);
    memcpy(topic->name, name.data, name.bytes);
    topic->settings = model_settings_default();
    model_list_add(&model->topics, topic);
    return topic;
}

int model_configure(struct model *model, const struct bel_configure *command,
                    struct bel_reply *reply)
{
    if (!bel_topic_is_valid(command->topic)) return model_refuse(reply, BEL_EINVAL, "topic");
    struct topic *topic = model_topic_find(model, command->topic);
    struct settings settings = topic != NULL ? topic->settings : model_settings_default();
    for (size_t i = 0; i < command->settings_count; i++) {
        const struct setting *setting = find_setting(command->settings[i].name);
        if (setting == NULL) return model_refuse(reply, BEL_EINVAL, "no such setting");
        if (!setting->read(&settings, command->settings[i].value)) {
            return model_refuse(reply, BEL_EINVAL, setting->name);
        }
    }
    model_topic_make(model, command->topic)->settings = settings;
    return 0;
}

const struct bel_setting *model_settings_print(struct model *model, const struct topic *topic,
                                               size_t *out_count)
{
    struct bel_setting *settings = model_piece(model, SETTINGS * sizeof *settings);
    for (size_t i = 0; i < SETTINGS; i++) {
        char *value = model_piece(model, VALUE_BYTES);
        all[i].print(&topic->settings, value, VALUE_BYTES);
        settings[i] = (struct bel_setting){model_text(all[i].name), model_text(value)};
    }
    *out_count = SETTINGS;
    return settings;
}
