/* SPDX-License-Identifier: MIT */
#ifndef BEL_SETTINGS_SETTINGS_H
#define BEL_SETTINGS_SETTINGS_H

/*
 * settings - the settings of a topic: set by name and text, and printed.
 * docs/SEMANTICS.md lists the names and what they mean.
 */

#include "belfry/backend.h"
#include "belfry/backoff.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    BEL_SETTINGS = 9, /* number of settings */
    BEL_SETTING_TEXT_MAX = 1024,
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

/* Returns whether a setting has this name, in upper or lower case. */
bool bel__setting_is_known(struct bel_view name);

/* Sets one setting by name. On an error, leaves `*settings` alone, writes the reason to `why`, of
 * `room` bytes, and returns BEL_EINVAL. */
BEL_CHECKED int bel__setting_set(struct bel_settings *settings, const struct bel_setting *setting,
                                 char *why, size_t room);

/* Return the name of a setting from 0 to BEL_SETTINGS - 1; print its value as text that can be set
 * again, and return the length. */
struct bel_view bel__setting_name(unsigned index);
size_t bel__setting_print(const struct bel_settings *settings, unsigned index,
                          char out[BEL_SETTING_TEXT_MAX]);

#endif
