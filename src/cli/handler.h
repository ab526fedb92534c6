/* SPDX-License-Identifier: MIT */
#ifndef BEL_CLI_HANDLER_H
#define BEL_CLI_HANDLER_H

/*
 * handler - a program that handles one errand: the payload is its standard input, the rest is in
 * its environment, and how it exits says how it went.
 *
 *     BELFRY_ID BELFRY_TOPIC BELFRY_ATTEMPT BELFRY_DUE_MS BELFRY_TOKEN BELFRY_HEADER_<NAME>
 *
 *     0     done
 *     75    not now: it is released, for 1 s    EX_TEMPFAIL of sysexits.h
 *     65    never: it is rejected               EX_DATAERR
 *     else  failed; the last line of standard error is the reason
 *
 * A program gets a process group of its own, so that what is typed at a terminal reaches belfry
 * alone, and all that it has started can be ended with it.
 */

#include "belfry/crew.h"

enum {
    HANDLER_DONE = 0,
    HANDLER_RELEASE = 75,
    HANDLER_REJECT = 65,
};

struct cli_handler {
    char **argv; /* ends in NULL */
    int end_fd;  /* readable or closed: programs are to be ended */
};

/* Whether the program can be found. Sets errno if it cannot. */
bool bel__handler_exists(const char *program);

/* Runs it and waits for it. One that was ended because of `end_fd` has its errand released. Sets
 * `*out_status` to what it exited with, or 128 and the number of the signal that ended it. */
void bel__handler_run(const struct cli_handler *handler, const struct bel_errand *errand,
                      struct bel_report *report, int *out_status);

#endif
