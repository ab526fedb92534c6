/* SPDX-License-Identifier: MIT */
#ifndef BEL_CLI_COMPLETION_H
#define BEL_CLI_COMPLETION_H

/*
 * completion - belfry completion: what a shell is to know of the verbs and their options, so that
 * it can complete them. Verbs that say a command have them from the table of commands.
 */

#include "cli/cli.h"

/* `verbs` and `others` are the tables of verbs; each ends with a name that is NULL. */
int bel__cli_completion(int argc, char **argv, const struct cli_verb *verbs,
                        const struct cli_verb *others);

#endif
