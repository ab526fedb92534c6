/* SPDX-License-Identifier: MIT */
#ifndef BEL_CLI_CLI_H
#define BEL_CLI_CLI_H

/*
 * cli - the command line: verbs, each a function that gets the rest of the arguments and returns
 * what the program exits with. Most of them say one command to a server; those are in a table
 * (remote.h). The others have a file each.
 */

#include "belfry/text.h"

#include <stddef.h>

/* What the program exits with. */
enum cli_exit {
    CLI_OK = 0,
    CLI_FAILED = 1,
    CLI_USAGE = 2,
    CLI_NOT_FOUND = 3,
    CLI_CONFLICT = 4, /* or stale */
    CLI_LIMIT = 5,    /* or full */
    CLI_NOT_ALLOWED = 6,
    CLI_UNREACHABLE = 7,
    CLI_TIMED_OUT = 8,
};

/* A verb that says nothing to a server. */
struct cli_verb {
    const char *name;
    int (*run)(int argc, char **argv); /* argv[0] is the verb */
    const char *help;                  /* one line */
};

/* Runs the verb that the arguments name; argv[0] is the program. `others` are verbs of layers that
 * this one does not know; they end with a name that is NULL. */
int bel__cli_run(int argc, char **argv, const struct cli_verb *others);

/* The verbs. argv[0] is the verb. */
int bel__cli_bench(int argc, char **argv);
int bel__cli_export(int argc, char **argv);
int bel__cli_import(int argc, char **argv);
int bel__cli_next(int argc, char **argv);
int bel__cli_top(int argc, char **argv);
int bel__cli_work(int argc, char **argv);

/* Says on standard error what is wrong with a text, and where: the text, and a mark below
 * the place. Returns CLI_USAGE. */
int bel__cli_refuse(const char *what, const char *text, const struct bel_text_error *why);

#endif
