/* SPDX-License-Identifier: MIT */
#ifndef BEL_CLI_EXAMPLES_H
#define BEL_CLI_EXAMPLES_H

/*
 * examples - two command lines for each verb, which end its help. A test runs them.
 */

/* Prints the examples of a verb; nothing if it has none. */
void bel__examples_print(const char *verb);

#endif
