/* SPDX-License-Identifier: MIT */
#ifndef BEL_COMMANDS_SETTINGS_H
#define BEL_COMMANDS_SETTINGS_H

/*
 * settings - the table of a topic's settings, for help and for the command line. The engine parses
 * them; a test compares the names.
 */

#include "commands/commands.h"

struct bel_setting_entry {
    const char *name;
    enum bel_argument_type type;
    const char *help; /* one line, with the default */
};

/* The table; ends with a NULL name. */
extern const struct bel_setting_entry bel__setting_entries[];

/* Finds a setting by its name, in any case. Returns NULL if it is unknown. */
const struct bel_setting_entry *bel__setting_find(struct bel_view name);

#endif
