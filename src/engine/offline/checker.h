/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_OFFLINE_CHECKER_H
#define BEL_ENGINE_OFFLINE_CHECKER_H

/*
 * checker - the program that checks the tree of a data directory while a server uses it. A server
 * runs it as a subprocess, by executing itself with a verb that help does not show:
 *
 *     belfry check-tree FOLDER PID GROWTH
 *
 *     FOLDER   the data directory
 *     PID      the server's: the checker ends when it is no longer the child of this process
 *     GROWTH   by how many bytes the file may grow for one snapshot; see store/tree/scrub.h
 *
 * It writes lines to standard output:
 *
 *     progress PAGES-DONE PAGES ROWS GROWTH GROWTH-MAX SNAPSHOTS
 *     done                       after a last line of progress: no damage
 *     damaged WHY
 *     failed WHY                 the check could not be finished
 */

#include "belfry/error.h"

#define BEL_CHECKER_VERB "check-tree"

enum {
    BEL_CHECKER_LINE_BYTES = 512, /* most of a line, with its end */
};

/* Runs the checker, as main(). Returns the exit status. */
int bel__checker_main(int argc, char **argv);

#endif
