/* SPDX-License-Identifier: MIT */
#ifndef BEL_CLI_REQUEST_H
#define BEL_CLI_REQUEST_H

/*
 * request - converts the arguments of a verb to a server command, by the table of commands:
 *
 *     belfry schedule mail hello --in 5m --header color=red
 *     SCHEDULE mail hello IN 5m HEADER color red
 *
 * Values are validated by the server; those that only people understand are rewritten
 * (cli/value.h).
 */

#include "belfry/view.h"
#include "cli/connect.h"
#include "commands/commands.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cli_request {
    const char *verb;
    const struct bel_command_entry *command;
    struct cli_connect connect;
    struct bel_view *args; /* the name of the command first; has room for two more */
    size_t args_count;
    size_t words_count;       /* positional arguments in `args`, without the name */
    const char *count, *wait; /* the values of --count and --wait; or NULL */
    const char *file;         /* the value of --file; or NULL */
    const char *zone;         /* of local times: the value of --tz; or NULL */
    uint64_t next;            /* the value of --next; or 0 */
    bool only_plans;          /* --state plan was given */
    bool creates;             /* --create was given */
    char **made;              /* owned: rewritten values */
    size_t made_count;
    void *payload; /* owned: the payload of a file or of standard input */
};

/* Parses the arguments; argv[0] is the verb. `other`, if not NULL, replaces `command` if there is a
 * positional argument. Returns -1 on success. Otherwise returns the exit status, after the help or
 * an error was printed. Call bel__request_finish() in either case. */
int bel__request_read(struct cli_request *request, const struct bel_command_entry *command,
                      const struct bel_command_entry *other, int argc, char **argv);
void bel__request_finish(struct cli_request *request);

/* Prints the help of a verb; `other` is NULL, or the command that a positional argument chooses. */
void bel__request_help(const char *verb, const struct bel_command_entry *command,
                       const struct bel_command_entry *other);

#endif
