/* SPDX-License-Identifier: MIT */
#ifndef BEL_CLI_COMPLETION_H
#define BEL_CLI_COMPLETION_H

/*
 * completion - belfry completion: prints the completion script of a shell. The options of verbs
 * that send a command are those of the table of commands.
 */

#include "cli/cli.h"

/* Runs the verb. `verbs` and `others` are the tables of verbs; each ends with a NULL name. */
int bel__cli_completion(int argc, char **argv, const struct cli_verb *verbs,
                        const struct cli_verb *others);

#endif
