/* SPDX-License-Identifier: MIT */
#ifndef BEL_CLI_OPTION_HINT_H
#define BEL_CLI_OPTION_HINT_H

/*
 * option_hint - finds values that were given to the wrong option: --at 5m, --cron '@every 5m',
 * --every @daily; and the options that other programs call otherwise.
 */

#include <stddef.h>

enum {
    CLI_OPTION_HINT_BYTES = 160,
};

/* Returns the name of the option that a value of `option` belongs to, as the server spells it, and
 * writes the value for it; or NULL if the value is not known to belong elsewhere. */
const char *bel__option_hint(const char *option, const char *value,
                             char out[CLI_OPTION_HINT_BYTES]);

/* Returns the option, as the server spells it, or the argument that another program calls `name`:
 * --delay is IN; NULL if none is known. */
const char *bel__option_synonym(const char *name);

#endif
