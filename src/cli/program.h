/* SPDX-License-Identifier: MIT */
#ifndef BEL_CLI_PROGRAM_H
#define BEL_CLI_PROGRAM_H

/*
 * program - checks that a program can be executed, before the first timer is claimed for it.
 */

#include "core/why.h"

#include <stdbool.h>

enum {
    CLI_PROGRAM_BYTES = 4096, /* of the path of a program */
};

/* Finds the file of a program as execvp() does: a name without a slash in the directories of $PATH,
 * passing over directories that have the name. Returns false and sets errno if no file with the
 * name is executable. */
bool bel__program_find(const char *program, char path[CLI_PROGRAM_BYTES]);

/* Returns whether a program, looked up in $PATH, can be executed, as far as its file tells. If not,
 * says in `why` what is wrong and what to do. */
bool bel__program_check(const char *program, struct bel_why *why);

/* Returns whether an errno of starting a program stays until somebody changes the program. */
bool bel__program_is_broken(int problem);

#endif
