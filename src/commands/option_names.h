/* SPDX-License-Identifier: MIT */
#ifndef BEL_COMMANDS_OPTION_NAMES_H
#define BEL_COMMANDS_OPTION_NAMES_H

/*
 * option_names - replaces the names of a command's options in a message by those that the reader
 * has used: "COUNT is 0" becomes "limit is 0" over HTTP and "--count is 0" on the command line.
 */

#include "commands/commands.h"

enum {
    BEL_OPTION_NAME_BYTES = 40, /* enough for every name, including the final 0 */
};

/* Writes the name of an option as the reader knows it. */
typedef void bel_option_name(const void *context, const struct bel_argument *option,
                             char out[BEL_OPTION_NAME_BYTES]);

/* Writes the name in small letters, as fields of JSON have it. */
bel_option_name bel__option_name_small;

/* Writes a message with the names replaced to `out`, at most `room` bytes including the final 0.
 * Words in single quotes are values, and stay. */
void bel__option_names_replace(const struct bel_command_entry *entry, struct bel_view message,
                               bel_option_name *name, const void *context, char *out, size_t room);

/* Does so in an error reply, "CONFLICT a timer ...", whose code stays. */
void bel__option_names_replace_error(const struct bel_command_entry *entry, struct bel_view error,
                                     bel_option_name *name, const void *context, char *out,
                                     size_t room);

#endif
