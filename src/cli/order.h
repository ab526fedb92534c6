/* SPDX-License-Identifier: MIT */
#ifndef BEL_CLI_ORDER_H
#define BEL_CLI_ORDER_H

/*
 * order - a command for a server, out of what was typed, by the table of commands:
 *
 *     belfry schedule mail hello --in 5m --header color=red
 *     SCHEDULE mail hello IN 5m HEADER color red
 *
 * Values are not looked at here: the server says what is wrong with them.
 */

#include "belfry/view.h"
#include "cli/reach.h"
#include "commands/commands.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cli_order {
    const char *verb;
    const struct bel_command_entry *command;
    struct cli_reach reach;
    struct bel_view *args; /* the command's name first; there is room for two more */
    size_t args_count;
    size_t words_count;       /* how many of them are by position, the name not counted */
    const char *count, *wait; /* the options of these names, if they were there */
    const char *file;         /* --file, or NULL */
    void *payload;            /* of a file or of standard input */
};

/* Reads what was typed; argv[0] is the verb. `other` is the command if there is one word; or NULL.
 * Returns -1 to go on; or what to exit with, after help was printed or something was wrong and was
 * said. What it sets is to be finished in any case. */
int bel__order_read(struct cli_order *order, const struct bel_command_entry *command,
                    const struct bel_command_entry *other, int argc, char **argv);
void bel__order_finish(struct cli_order *order);

/* Prints what can be typed. */
void bel__order_help(const char *verb, const struct bel_command_entry *command);

#endif
