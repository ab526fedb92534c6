/* SPDX-License-Identifier: MIT */
#ifndef BEL_REDIS_LAYOUT_H
#define BEL_REDIS_LAYOUT_H

/*
 * layout - the keys and settings of a topic whose timers are shared with the Python package
 * faststream-redis-timers. Topics without a layout are native.
 *
 * The settings of all such topics are in one hash of the namespace, as lines of a name and a value.
 * Every node can read them there (layouts.h).
 */

#include "belfry/backend.h"
#include "belfry/error.h"
#include "redis/scripts.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    BEL_LAYOUT_KEYS = 5,
    BEL_LAYOUT_SETTINGS = 7,
    BEL_LAYOUT_VALUE_MAX = 200, /* bytes of a setting's value */
    BEL_LAYOUT_REVISION_BYTES = 16,
};

struct bel_layout_text {
    char bytes[BEL_LAYOUT_VALUE_MAX];
    size_t count;
};

struct bel_layout_settings {
    uint64_t lease_ms, poll_min_ms, poll_max_ms;
    struct bel_layout_text timeline_key, payloads_key, prefix;
};

struct bel_layout {
    uint32_t uses;                                /* topics and batches that have it */
    uint16_t slot;                                /* of all keys; of the first if `is_split` */
    bool is_split;                                /* the keys are in different slots of a Cluster */
    char revision[BEL_LAYOUT_REVISION_BYTES + 1]; /* changes with the keys */
    struct bel_layout_settings settings;
    struct bel_view keys[BEL_LAYOUT_KEYS]; /* in the order in which scripts expect them */
};

const struct bel_layout_settings *bel__layout_settings_default(void);

/* Returns whether a layout has a setting of this name, in upper or lower case; and whether topics
 * of other layouts have no such setting. */
bool bel__layout_has_setting(struct bel_view name);
bool bel__layout_has_alone(struct bel_view name);

/* Sets one setting; that of the name `layout` only checks the value. On an error, writes the reason
 * to `why`, of `room` bytes, and returns BEL_EINVAL. */
BEL_CHECKED int bel__layout_set(struct bel_layout_settings *settings,
                                const struct bel_setting *setting, char *why, size_t room);

/* Returns what is wrong with settings that were set one by one, or NULL. */
const char *bel__layout_check(const struct bel_layout_settings *settings);

/* Return the name of a setting from 0 to BEL_LAYOUT_SETTINGS - 1; print its value, which needs
 * BEL_LAYOUT_VALUE_MAX bytes, and return the length. */
struct bel_view bel__layout_setting_name(unsigned index);
size_t bel__layout_print(const struct bel_layout_settings *settings, unsigned index,
                         char out[BEL_LAYOUT_VALUE_MAX]);

/* Creates the layout of a topic, with one use. Returns NULL if memory has run out. */
struct bel_layout *bel__layout_create(const struct bel_layout_settings *settings,
                                      const char *revision, const char *name_space,
                                      struct bel_view topic);

/* Ends a use; NULL is allowed. */
void bel__layout_release(struct bel_layout *layout);

/* Returns whether two layouts have the same keys. */
bool bel__layout_is_like(const struct bel_layout *a, const struct bel_layout *b);

/* Writes settings and revision as lines. Returns the length, at most `room`. */
size_t bel__layout_pack(const struct bel_layout *layout, char *out, size_t room);

/* Reads these lines; `revision` needs BEL_LAYOUT_REVISION_BYTES + 1 bytes. Returns 0 or
 * BEL_ECORRUPT. */
BEL_CHECKED int bel__layout_unpack(struct bel_view lines, struct bel_layout_settings *out,
                                   char *revision);

#endif
