/* SPDX-License-Identifier: MIT */
#ifndef BEL_CLI_CLI_H
#define BEL_CLI_CLI_H

/*
 * cli - the command line. A verb is a function that gets its arguments and returns the exit status.
 * Most verbs send one command to a server; those are in a table (remote_verb.h). Each of the others
 * has a file of its own.
 */

#include "belfry/text.h"

#include <stddef.h>

struct cli_stores;

/* Exit statuses of the program. */
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

/* A verb that is not in the table of remote_verb.h. */
struct cli_verb {
    const char *name;
    int (*run)(int argc, char **argv); /* argv[0] is the verb */
    const char *help;                  /* one line */
};

/* Runs the verb argv[1]; argv[0] is the program. Returns the exit status. `others` are verbs of
 * layers above this one; the table ends with a NULL name. `stores` opens stores for --store. */
int bel__cli_run(int argc, char **argv, const struct cli_verb *others,
                 const struct cli_stores *stores);

/* The verbs. argv[0] is the verb. */
int bel__cli_bench(int argc, char **argv);
int bel__cli_export(int argc, char **argv);
int bel__cli_import(int argc, char **argv);
int bel__cli_info(int argc, char **argv);
int bel__cli_job(int argc, char **argv);
int bel__cli_next(int argc, char **argv);
int bel__cli_ping(int argc, char **argv);
int bel__cli_top(int argc, char **argv);
int bel__cli_work(int argc, char **argv);

#endif
