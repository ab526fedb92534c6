/* SPDX-License-Identifier: MIT */
#ifndef BEL_VERSION_H
#define BEL_VERSION_H

/*
 * version - which Belfry this is. The macros say what a program was compiled
 * against, the functions what it is running with.
 */

#pragma GCC visibility push(default)

#define BEL_VERSION_MAJOR 0
#define BEL_VERSION_MINOR 1
#define BEL_VERSION_PATCH 0
#define BEL_VERSION       "0.1.0"

/* The library's version as text, "major.minor.patch". */
const char *bel_version(void);

/* The library's version as one number that compares: major * 1000000 + minor * 1000 + patch. */
int bel_version_number(void);

#pragma GCC visibility pop
#endif
