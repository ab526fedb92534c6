/* SPDX-License-Identifier: MIT */
#ifndef BEL_CLI_VALUE_H
#define BEL_CLI_VALUE_H

/*
 * value - checks values of the command line that the server would take for something that people
 * rarely mean, and rewrites those that only people understand: '5 minutes', 'tomorrow 09:00'.
 */

#include "commands/commands.h"

/* Checks a value by its type. Sets `*out` to the text for the server, which the caller frees, or to
 * NULL if the value is sent as it is. `zone` is the value of --tz, or NULL. Returns CLI_OK; or
 * prints an error and returns the exit status. */
int bel__cli_value(enum bel_argument_type type, const char *value, const char *zone, char **out);

#endif
