/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_STATE_TOPIC_ROW_H
#define BEL_ENGINE_STATE_TOPIC_ROW_H

/*
 * topic_row - the row of a topic: its name, whether it is paused, and its settings.
 */

#include "settings/settings.h"

enum {
    BEL_TOPIC_ROW_BYTES = 3800, /* of a topic's row, at most */
};

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
