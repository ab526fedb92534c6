/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_SETTINGS_H
#define BEL_ENGINE_SETTINGS_H

/*
 * settings - what can be set of a topic: by name, as text, for people and in the topic's row.
 * docs/SEMANTICS.md has the names and what they mean.
 */

#include "belfry/backend.h"
#include "engine/topic.h"

enum {
    BEL_SETTINGS = 9, /* how many there are */
};

/* Sets one by its name. Returns 0; or leaves `*settings` alone and returns BEL_EINVAL: then
 * `why`, of `room` bytes, says why. */
BEL_CHECKED int bel__setting_set(struct bel_settings *settings, const struct bel_setting *setting,
                                 char *why, size_t room);

/* The name of a setting from 0 to BEL_SETTINGS - 1, and its value as text that can be set again.
 * Returns the length, which is at most BEL_SETTING_TEXT_MAX. */
struct bel_view bel__setting_name(unsigned index);
size_t bel__setting_print(const struct bel_settings *settings, unsigned index,
                          char out[BEL_SETTING_TEXT_MAX]);

/* The row of a topic, with its name, settings and pause. Returns how many bytes. */
size_t bel__settings_write(const struct bel_topic_state *topic, uint8_t out[BEL_TOPIC_ROW_BYTES]);

/* The name in a row, which stays there. Returns 0; or BEL_ECORRUPT, or BEL_EUNSUPPORTED if a
 * newer version wrote it. */
BEL_CHECKED int bel__settings_name(struct bel_view row, struct bel_view *out);

/* Reads the rest: settings and pause. Errors as above, and BEL_ENOMEM; then the topic is as it
 * was. */
BEL_CHECKED int bel__settings_read(struct bel_view row, struct bel_topic_state *topic);

#endif
