/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_STATE_SETTINGS_H
#define BEL_ENGINE_STATE_SETTINGS_H

/*
 * settings - the settings of a topic: set by name and text, printed, and stored in the topic's row.
 * docs/SEMANTICS.md lists the names and what they mean.
 */

#include "belfry/backend.h"
#include "belfry/backoff.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    BEL_SETTINGS = 9, /* number of settings */
    BEL_SETTING_TEXT_MAX = 1024,
    BEL_TOPIC_ROW_BYTES = 3800, /* of a topic's row, at most */
};

#define BEL_RETENTION_FOREVER UINT64_MAX

struct bel_settings {
    uint64_t lease_ms;
    struct bel_backoff retry;
    uint32_t crashes;
    uint32_t concurrency;
    uint64_t retention_ms, retention_dead_ms;
    uint64_t depth;
    uint64_t misfire_after_ms;
    uint32_t deliver_bytes;
    char deliver[BEL_SETTING_TEXT_MAX];
};

const struct bel_settings *bel__settings_default(void);

/* Sets one setting by name. On an error, leaves `*settings` alone, writes the reason to `why`, of
 * `room` bytes, and returns BEL_EINVAL. */
BEL_CHECKED int bel__setting_set(struct bel_settings *settings, const struct bel_setting *setting,
                                 char *why, size_t room);

/* Return the name of a setting from 0 to BEL_SETTINGS - 1; print its value as text that can be set
 * again, and return the length. */
struct bel_view bel__setting_name(unsigned index);
size_t bel__setting_print(const struct bel_settings *settings, unsigned index,
                          char out[BEL_SETTING_TEXT_MAX]);

/* The row of a topic, decoded. */
struct bel_topic_row {
    struct bel_view name; /* view into the row */
    bool is_paused;
    bool has_settings; /* at least one setting is not the default */
    struct bel_settings settings;
};

/* Encodes a row, ignoring `has_settings`. Returns the size in bytes. */
size_t bel__topic_row_write(const struct bel_topic_row *row, uint8_t out[BEL_TOPIC_ROW_BYTES]);

/* Decodes a row. Returns 0, BEL_ECORRUPT, or BEL_EUNSUPPORTED if a newer version wrote it. */
BEL_CHECKED int bel__topic_row_read(struct bel_view row, struct bel_topic_row *out);

/* The topic of the plans of recurring jobs. */
#define BEL_RECURRING_TOPIC BEL_VIEW("@jobs")

/* Returns whether a topic is the engine's own, which no command names: it begins with an @. */
static inline bool bel__topic_is_own(struct bel_view name)
{
    return name.bytes > 0 && *(const char *)name.data == '@';
}

#endif
