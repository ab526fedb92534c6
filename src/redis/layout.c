/* SPDX-License-Identifier: MIT */

/*
 * The keys of the package are its prefixes, a colon, and the topic with its prefix. Ours have the
 * name of its first key at their end, and so the same hash tag, if there is one.
 */
#include "redis/layout.h"

#include "redis/servers/slot.h"

#include "belfry/duration.h"
#include "core/utf8.h"
#include "core/view.h"

#include <assert.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    DAY_MS = 86400000,
};

#define LAYOUT "faststream"

struct setting {
    const char *name;
    enum {
        A_LAYOUT,
        A_DURATION,
        A_KEY,
        A_PREFIX
    } kind;
    size_t offset; /* of its field in struct bel_layout_settings */
    uint64_t max_ms;
};

#define FIELD(name) offsetof(struct bel_layout_settings, name)

static const struct setting all[BEL_LAYOUT_SETTINGS] = {
    {"lease", A_DURATION, FIELD(lease_ms), UINT64_C(253402300799999)},
    {"layout", A_LAYOUT, 0, 0},
    {"timeline_key", A_KEY, FIELD(timeline_key), 0},
    {"payloads_key", A_KEY, FIELD(payloads_key), 0},
    {"prefix", A_PREFIX, FIELD(prefix), 0},
    {"poll_min", A_DURATION, FIELD(poll_min_ms), DAY_MS},
    {"poll_max", A_DURATION, FIELD(poll_max_ms), DAY_MS},
};

const struct bel_layout_settings *bel__layout_settings_default(void)
{
    static const struct bel_layout_settings settings = {
        .lease_ms = 30000,
        .poll_min_ms = 50,
        .poll_max_ms = 5000,
        .timeline_key = {"timers_timeline", sizeof "timers_timeline" - 1},
        .payloads_key = {"timers_payloads", sizeof "timers_payloads" - 1},
    };
    return &settings;
}

static const struct setting *find(struct bel_view name)
{
    for (unsigned i = 0; i < BEL_LAYOUT_SETTINGS; i++) {
        if (name.bytes != strlen(all[i].name)) continue;
        if (strncasecmp(name.data, all[i].name, name.bytes) == 0) return &all[i];
    }
    return NULL;
}

bool bel__layout_has_setting(struct bel_view name)
{
    return find(name) != NULL;
}

bool bel__layout_has_alone(struct bel_view name)
{
    const struct setting *setting = find(name);
    return setting != NULL && setting != &all[0];
}

static bool has_control(struct bel_view text)
{
    const unsigned char *bytes = text.data;
    for (size_t at = 0, length; at < text.bytes; at += length) {
        length = bel__utf8_bytes(bytes + at, text.bytes - at);
        assert(length > 0);
        if (bel__utf8_is_control(bytes + at, length)) return true;
    }
    return false;
}

static int set_text(const struct setting *setting, struct bel_layout_text *field,
                    struct bel_view value, char *why, size_t room)
{
    size_t least = setting->kind == A_KEY ? 1 : 0;
    if (value.bytes < least || value.bytes > sizeof field->bytes || !bel__utf8_is_text(value) ||
        has_control(value)) {
        (void)snprintf(why, room, "expected %zu to %zu bytes of UTF-8 without control characters",
                       least, sizeof field->bytes);
        return BEL_EINVAL;
    }
    if (value.bytes > 0) memcpy(field->bytes, value.data, value.bytes);
    field->count = value.bytes;
    return 0;
}

static int set_duration(const struct setting *setting, uint64_t *field, struct bel_view value,
                        char *why, size_t room)
{
    struct bel_text_error error;
    uint64_t ms;
    if (bel_duration_parse(value.data, value.bytes, &ms, &error) != 0) {
        (void)snprintf(why, room, "at byte %zu, expected %s", error.position + 1, error.expected);
        return BEL_EINVAL;
    }
    if (ms == 0 || ms > setting->max_ms) {
        (void)snprintf(why, room, "expected 1 to %llu ms", (unsigned long long)setting->max_ms);
        return BEL_EINVAL;
    }
    *field = ms;
    return 0;
}

int bel__layout_set(struct bel_layout_settings *settings, const struct bel_setting *setting,
                    char *why, size_t room)
{
    const struct setting *found = find(setting->name);
    if (found == NULL) {
        (void)snprintf(why, room,
                       "a topic of the layout " LAYOUT " has lease, layout, timeline_key, "
                       "payloads_key, prefix, poll_min and poll_max");
        return BEL_EINVAL;
    }
    char *field = (char *)settings + found->offset;
    if (found->kind == A_DURATION) {
        return set_duration(found, (uint64_t *)(void *)field, setting->value, why, room);
    }
    if (found->kind != A_LAYOUT) {
        return set_text(found, (struct bel_layout_text *)(void *)field, setting->value, why, room);
    }
    if (bel__view_is(setting->value, LAYOUT) || bel__view_is(setting->value, "native")) return 0;
    (void)snprintf(why, room, "expected native or " LAYOUT);
    return BEL_EINVAL;
}

static struct bel_view view_of(const struct bel_layout_text *text)
{
    return (struct bel_view){text->bytes, text->count};
}

const char *bel__layout_check(const struct bel_layout_settings *settings)
{
    if (settings->poll_min_ms > settings->poll_max_ms) return "poll_min is more than poll_max";
    if (bel__view_equal(view_of(&settings->timeline_key), view_of(&settings->payloads_key))) {
        return "timeline_key and payloads_key are the same";
    }
    return NULL;
}

struct bel_view bel__layout_setting_name(unsigned index)
{
    assert(index < BEL_LAYOUT_SETTINGS);
    return (struct bel_view){all[index].name, strlen(all[index].name)};
}

size_t bel__layout_print(const struct bel_layout_settings *settings, unsigned index,
                         char out[BEL_LAYOUT_VALUE_MAX])
{
    assert(index < BEL_LAYOUT_SETTINGS);
    const char *field = (const char *)settings + all[index].offset;
    if (all[index].kind == A_DURATION) {
        const uint64_t *ms = (const uint64_t *)(const void *)field;
        return bel_duration_print(*ms, out, BEL_LAYOUT_VALUE_MAX);
    }
    if (all[index].kind == A_LAYOUT) {
        memcpy(out, LAYOUT, sizeof LAYOUT - 1);
        return sizeof LAYOUT - 1;
    }
    const struct bel_layout_text *text = (const struct bel_layout_text *)(const void *)field;
    if (text->count > 0) memcpy(out, text->bytes, text->count);
    return text->count;
}

/* --- Keys --- */

static char *put(char *at, struct bel_view text)
{
    if (text.bytes > 0) memcpy(at, text.data, text.bytes);
    return at + text.bytes;
}

static char *put_word(char *at, const char *word)
{
    return put(at, (struct bel_view){word, strlen(word)});
}

/* Writes a key of the package, `<key>:<prefix><topic>`. */
static char *put_shared(char *at, const struct bel_layout_text *key,
                        const struct bel_layout_settings *settings, struct bel_view topic)
{
    at = put(at, view_of(key));
    at = put_word(at, ":");
    at = put(at, view_of(&settings->prefix));
    return put(at, topic);
}

struct bel_layout *bel__layout_create(const struct bel_layout_settings *settings,
                                      const char *revision, const char *name_space,
                                      struct bel_view topic)
{
    static const char *const ours[] = {
        ":faststream-state:", ":faststream-leases:", ":faststream-ends:"};
    size_t most = strlen(name_space) + 32 + 2 * (size_t)BEL_LAYOUT_VALUE_MAX + topic.bytes;
    struct bel_layout *layout = calloc(1, sizeof *layout + BEL_LAYOUT_KEYS * most);
    if (layout == NULL) return NULL;
    layout->uses = 1;
    layout->settings = *settings;
    (void)snprintf(layout->revision, sizeof layout->revision, "%s", revision);
    char *at = (char *)(layout + 1);
    for (size_t i = 0; i < BEL_LAYOUT_KEYS; i++) {
        char *start = at;
        if (i >= 2) at = put_word(put_word(at, name_space), ours[i - 2]);
        at = put_shared(at, i == 1 ? &settings->payloads_key : &settings->timeline_key, settings,
                        topic);
        layout->keys[i] = (struct bel_view){start, (size_t)(at - start)};
    }
    layout->slot = bel__slot_of(layout->keys[0]);
    for (size_t i = 1; i < BEL_LAYOUT_KEYS; i++) {
        if (bel__slot_of(layout->keys[i]) != layout->slot) layout->is_split = true;
    }
    return layout;
}

void bel__layout_release(struct bel_layout *layout)
{
    if (layout == NULL) return;
    assert(layout->uses > 0);
    if (--layout->uses == 0) free(layout);
}

bool bel__layout_is_like(const struct bel_layout *a, const struct bel_layout *b)
{
    return bel__view_equal(a->keys[0], b->keys[0]) && bel__view_equal(a->keys[1], b->keys[1]);
}

/* --- Lines --- */

size_t bel__layout_pack(const struct bel_layout *layout, char *out, size_t room)
{
    char value[BEL_LAYOUT_VALUE_MAX];
    size_t at = (size_t)snprintf(out, room, "revision %s\n", layout->revision);
    for (unsigned i = 0; i < BEL_LAYOUT_SETTINGS; i++) {
        size_t bytes = bel__layout_print(&layout->settings, i, value);
        at += (size_t)snprintf(out + at, room - at, "%s %.*s\n", all[i].name, (int)bytes, value);
        assert(at < room);
    }
    return at;
}

static int unpack_line(struct bel_view name, struct bel_view value, struct bel_layout_settings *out,
                       char *revision)
{
    char why[BEL_EXPECTED_BYTES + 128];
    if (bel__view_is(name, "revision")) {
        if (value.bytes != BEL_LAYOUT_REVISION_BYTES) return BEL_ECORRUPT;
        memcpy(revision, value.data, value.bytes);
        revision[value.bytes] = 0;
        return 0;
    }
    struct bel_setting setting = {name, value};
    return bel__layout_set(out, &setting, why, sizeof why) ? BEL_ECORRUPT : 0;
}

int bel__layout_unpack(struct bel_view lines, struct bel_layout_settings *out, char *revision)
{
    const char *at = lines.data, *end = at + lines.bytes;
    *out = *bel__layout_settings_default();
    revision[0] = 0;
    while (at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        const char *space = stop == NULL ? NULL : memchr(at, ' ', (size_t)(stop - at));
        if (space == NULL) return BEL_ECORRUPT;
        int err =
            unpack_line((struct bel_view){at, (size_t)(space - at)},
                        (struct bel_view){space + 1, (size_t)(stop - space - 1)}, out, revision);
        if (err) return err;
        at = stop + 1;
    }
    return revision[0] == 0 || bel__layout_check(out) != NULL ? BEL_ECORRUPT : 0;
}
