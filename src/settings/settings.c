/* SPDX-License-Identifier: MIT */

/*
 * A setting is a name, a field, and functions that parse and print the field.
 */
#include "settings/settings.h"

#include "belfry/duration.h"
#include "core/parse.h"

#include <assert.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    NUMBER_MAX = 1000000,
    LEASE_DEFAULT_MS = 30000,
    MISFIRE_DEFAULT_MS = 60000,
    CRASHES_DEFAULT = 5,
};

/* The largest difference of two valid times: see bel__time_is_valid(). */
#define DURATION_MAX_MS UINT64_C(253402300799999)
#define FOREVER         "forever"

static_assert((int)BEL_BACKOFF_BYTES <= (int)BEL_SETTING_TEXT_MAX, "a policy is one of the texts");

struct why {
    char *text;
    size_t room;
};

struct setting {
    const char *name;
    int (*read)(const struct setting *setting, struct bel_settings *settings, struct bel_view text,
                struct why why);
    size_t (*print)(const struct setting *setting, const struct bel_settings *settings,
                    char out[BEL_SETTING_TEXT_MAX]);
    size_t offset; /* of its field in struct bel_settings */
    uint64_t min, max;
};

static int refuse_text(struct why why, const struct bel_text_error *error)
{
    (void)snprintf(why.text, why.room, "at byte %zu, expected %s", error->position + 1,
                   error->expected);
    return BEL_EINVAL;
}

static int refuse_range(struct why why, const struct setting *setting, const char *unit)
{
    (void)snprintf(why.text, why.room, "expected %" PRIu64 " to %" PRIu64 "%s", setting->min,
                   setting->max, unit);
    return BEL_EINVAL;
}

static void *field_of(const struct setting *setting, struct bel_settings *settings)
{
    return (char *)settings + setting->offset;
}

static const void *value_of(const struct setting *setting, const struct bel_settings *settings)
{
    return (const char *)settings + setting->offset;
}

static int read_duration(const struct setting *setting, struct bel_settings *settings,
                         struct bel_view text, struct why why)
{
    struct bel_text_error error;
    uint64_t *field = field_of(setting, settings), ms;
    int err = bel_duration_parse(text.data, text.bytes, &ms, &error);
    if (err) return refuse_text(why, &error);
    if (ms < setting->min || ms > setting->max) return refuse_range(why, setting, " ms");
    *field = ms;
    return 0;
}

static size_t print_duration(const struct setting *setting, const struct bel_settings *settings,
                             char out[BEL_SETTING_TEXT_MAX])
{
    const uint64_t *ms = value_of(setting, settings);
    return bel_duration_print(*ms, out, BEL_SETTING_TEXT_MAX);
}

static int read_retention(const struct setting *setting, struct bel_settings *settings,
                          struct bel_view text, struct why why)
{
    uint64_t *field = field_of(setting, settings);
    bool is_forever = text.bytes == strlen(FOREVER) && memcmp(text.data, FOREVER, text.bytes) == 0;
    if (!is_forever) return read_duration(setting, settings, text, why);
    *field = BEL_RETENTION_FOREVER;
    return 0;
}

static size_t print_retention(const struct setting *setting, const struct bel_settings *settings,
                              char out[BEL_SETTING_TEXT_MAX])
{
    const uint64_t *ms = value_of(setting, settings);
    if (*ms != BEL_RETENTION_FOREVER) return print_duration(setting, settings, out);
    memcpy(out, FOREVER, sizeof FOREVER); /* includes the terminating 0 */
    return strlen(FOREVER);
}

static int read_number(const struct setting *setting, struct bel_settings *settings,
                       struct bel_view text, struct why why)
{
    uint64_t *field = field_of(setting, settings);
    int err = bel__parse_u64(text.data, text.bytes, setting->min, setting->max, field);
    return err ? refuse_range(why, setting, "") : 0;
}

static size_t print_number(const struct setting *setting, const struct bel_settings *settings,
                           char out[BEL_SETTING_TEXT_MAX])
{
    const uint64_t *number = value_of(setting, settings);
    return bel__print_u64(out, *number);
}

static int read_small(const struct setting *setting, struct bel_settings *settings,
                      struct bel_view text, struct why why)
{
    uint32_t *field = field_of(setting, settings);
    uint32_t min = (uint32_t)setting->min, max = (uint32_t)setting->max;
    int err = bel__parse_u32(text.data, text.bytes, min, max, field);
    return err ? refuse_range(why, setting, "") : 0;
}

static size_t print_small(const struct setting *setting, const struct bel_settings *settings,
                          char out[BEL_SETTING_TEXT_MAX])
{
    const uint32_t *number = value_of(setting, settings);
    return bel__print_u64(out, *number);
}

static int read_retry(const struct setting *setting, struct bel_settings *settings,
                      struct bel_view text, struct why why)
{
    struct bel_text_error error;
    int err = bel_backoff_parse(text.data, text.bytes, field_of(setting, settings), &error);
    return err ? refuse_text(why, &error) : 0;
}

static size_t print_retry(const struct setting *setting, const struct bel_settings *settings,
                          char out[BEL_SETTING_TEXT_MAX])
{
    return bel_backoff_print(value_of(setting, settings), out, BEL_SETTING_TEXT_MAX);
}

static int read_deliver(const struct setting *setting, struct bel_settings *settings,
                        struct bel_view text, struct why why)
{
    if (text.bytes > setting->max) return refuse_range(why, setting, " bytes");
    settings->deliver_bytes = (uint32_t)text.bytes;
    if (text.bytes > 0) memcpy(settings->deliver, text.data, text.bytes);
    return 0;
}

static size_t print_deliver(const struct setting *setting, const struct bel_settings *settings,
                            char out[BEL_SETTING_TEXT_MAX])
{
    (void)setting;
    memcpy(out, settings->deliver, settings->deliver_bytes);
    return settings->deliver_bytes;
}

#define FIELD(name) offsetof(struct bel_settings, name)

static const struct setting all[] = {
    {"lease", read_duration, print_duration, FIELD(lease_ms), 1, DURATION_MAX_MS},
    {"retry", read_retry, print_retry, FIELD(retry), 0, 0},
    {"crashes", read_small, print_small, FIELD(crashes), 1, NUMBER_MAX},
    {"concurrency", read_small, print_small, FIELD(concurrency), 0, NUMBER_MAX},
    {"retention", read_duration, print_duration, FIELD(retention_ms), 0, DURATION_MAX_MS},
    {"retention_dead", read_retention, print_retention, FIELD(retention_dead_ms), 0,
     DURATION_MAX_MS},
    {"depth", read_number, print_number, FIELD(depth), 0, UINT64_MAX},
    {"misfire_after", read_duration, print_duration, FIELD(misfire_after_ms), 0, DURATION_MAX_MS},
    {"deliver", read_deliver, print_deliver, FIELD(deliver), 0, BEL_SETTING_TEXT_MAX},
};
static_assert(sizeof all / sizeof all[0] == BEL_SETTINGS, "as the header says");

const struct bel_settings *bel__settings_default(void)
{
    static const struct bel_settings settings = {
        .lease_ms = LEASE_DEFAULT_MS,
        .retry = {.attempts_max = 20,
                  .jitter = 100,
                  .factor = 2000,
                  .base_ms = 10000,
                  .cap_ms = 3600000},
        .crashes = CRASHES_DEFAULT,
        .retention_dead_ms = BEL_RETENTION_FOREVER,
        .misfire_after_ms = MISFIRE_DEFAULT_MS,
    };
    return &settings;
}

/* Returns whether a name is meant: capitals are small letters, and a hyphen is an underscore. */
static bool is_named(struct bel_view name, const char *wanted)
{
    const char *bytes = name.data;
    if (name.data == NULL || name.bytes != strlen(wanted)) return false;
    for (size_t i = 0; i < name.bytes; i++) {
        bool is_hyphen = bytes[i] == '-' && wanted[i] == '_';
        if (!is_hyphen && strncasecmp(&bytes[i], &wanted[i], 1) != 0) return false;
    }
    return true;
}

static const struct setting *find(struct bel_view name)
{
    for (unsigned i = 0; i < BEL_SETTINGS; i++) {
        if (is_named(name, all[i].name)) return &all[i];
    }
    return NULL;
}

/* Returns whether a setting of this name exists, for topics of the layout faststream of a store on
 * Redis: src/redis/layout.c. */
static bool is_of_layout(struct bel_view name)
{
    static const char *const names[] = {"layout", "timeline_key", "payloads_key",
                                        "prefix", "poll_min",     "poll_max"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (is_named(name, names[i])) return true;
    }
    return false;
}

bool bel__setting_is_known(struct bel_view name)
{
    return find(name) != NULL;
}

int bel__setting_set(struct bel_settings *settings, const struct bel_setting *setting, char *why,
                     size_t room)
{
    const struct setting *found = find(setting->name);
    assert(room > 0);
    if (found == NULL && is_of_layout(setting->name)) {
        (void)snprintf(why, room, "only a store on Redis has this setting");
        return BEL_EUNSUPPORTED;
    }
    if (found == NULL) {
        bool is_elsewhere =
            setting->name.bytes == 10 && strncasecmp(setting->name.data, "partitions", 10) == 0;
        (void)snprintf(why, room,
                       is_elsewhere ? "only topics in a store on Redis have partitions"
                                    : "unknown setting");
        return BEL_EINVAL;
    }
    return found->read(found, settings, setting->value, (struct why){why, room});
}

struct bel_view bel__setting_name(unsigned index)
{
    assert(index < BEL_SETTINGS);
    return (struct bel_view){all[index].name, strlen(all[index].name)};
}

size_t bel__setting_print(const struct bel_settings *settings, unsigned index,
                          char out[BEL_SETTING_TEXT_MAX])
{
    assert(index < BEL_SETTINGS);
    size_t bytes = all[index].print(&all[index], settings, out);
    assert(bytes <= BEL_SETTING_TEXT_MAX);
    return bytes;
}
