/* SPDX-License-Identifier: MIT */
#ifndef BEL_CLI_ZONE_HINT_H
#define BEL_CLI_ZONE_HINT_H

/*
 * zone_hint - finds the name of the time zone that a mistyped one most likely means.
 */

#include <stdbool.h>

/* Returns whether a name is no time zone of this machine, but is similar to one, an abbreviation or
 * an offset, after printing what to give instead to standard error. */
bool bel__zone_hint(const char *name);

/* Like bel__zone_hint(), for every name that is no time zone of this machine. */
bool bel__zone_hint_any(const char *name);

#endif
