/* SPDX-License-Identifier: MIT */
#ifndef BEL_CLI_HANDLER_H
#define BEL_CLI_HANDLER_H

/*
 * handler - runs a program for one errand (a claimed timer). The payload is its standard input, the
 * other fields are in its environment, and its exit status is the outcome:
 *
 *     BELFRY_ID BELFRY_TOPIC BELFRY_ATTEMPT BELFRY_DUE_MS BELFRY_TOKEN BELFRY_HEADER_<NAME>
 *     BELFRY_JOB BELFRY_TASK BELFRY_RESULTS    of a task of a job; RESULTS is the path of a file
 *
 *     0     done
 *     75    release the timer; it is due again after 1 s    EX_TEMPFAIL of sysexits.h
 *     65    reject the timer: it is dead, no retry          EX_DATAERR
 *     69    failed because of its resource                  EX_UNAVAILABLE
 *     else  failed; the last line of standard error is the reason
 *
 * A program has its own process group: ^C at a terminal reaches belfry alone, and a signal to the
 * group ends the program's subprocesses, too.
 */

#include "belfry/crew.h"

enum {
    HANDLER_DONE = 0,
    HANDLER_RELEASE = 75,
    HANDLER_REJECT = 65,
    HANDLER_RESOURCE = 69,
};

struct cli_handler {
    char **argv;     /* ends with NULL */
    int end_fd;      /* when readable or closed, running programs are ended */
    bool has_result; /* standard output of the program is the result of the timer */
};

/* Runs the program, waits for it and fills in the report. If `end_fd` ended the program, the report
 * is a release. Sets `*out_status` to the exit status, or 128 + the signal that ended it. Returns
 * false if the program cannot be started, for any timer, until somebody mends it. */
bool bel__handler_run(const struct cli_handler *handler, const struct bel_errand *errand,
                      struct bel_report *report, int *out_status);

#endif
