/* SPDX-License-Identifier: MIT */
#ifndef BEL_CLI_VALUE_H
#define BEL_CLI_VALUE_H

/*
 * value - checks values of the command line that the server would take for something that people
 * rarely mean, and rewrites those that only people understand: '5 minutes', 'tomorrow 09:00'.
 */

#include "cli/connect.h"
#include "commands/commands.h"

/* What else the meaning of a value depends on. */
struct cli_value_context {
    const char *name;                  /* of the option or setting, for errors: --in; or NULL */
    const char *zone;                  /* of local times: the value of --tz, or NULL */
    const struct cli_connect *connect; /* to the server whose clock says what now is; NULL: none,
                                          the clock of this machine does */
};

/* Checks a value by its type. Sets `*out` to the text for the server, which the caller frees, or to
 * NULL if the value is sent as it is. Returns CLI_OK; or prints an error and returns the exit
 * status. Asks the server only for a time that depends on now, such as 18:00. */
int bel__cli_value(enum bel_argument_type type, const char *value,
                   const struct cli_value_context *context, char **out);

#endif
