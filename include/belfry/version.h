/* SPDX-License-Identifier: MIT */
#ifndef BEL_VERSION_H
#define BEL_VERSION_H

/*
 * version - the version of Belfry. The macros are the version that a program was compiled against;
 * the functions return the version that it runs with.
 */

#include "belfry/declare.h"

BEL_BEGIN_DECLARATIONS

#define BEL_VERSION_MAJOR 0
#define BEL_VERSION_MINOR 1
#define BEL_VERSION_PATCH 0
#define BEL_VERSION       "0.1.0"

/* Returns the version of the library as text, "major.minor.patch". */
const char *bel_version(void);

/* Returns the version of the library as a number to compare: major * 1000000 + minor * 1000 +
 * patch. */
int bel_version_number(void);

BEL_END_DECLARATIONS
#endif
