/* SPDX-License-Identifier: MIT */
#ifndef BEL_HTTP_JSON_MEMORY_H
#define BEL_HTTP_JSON_MEMORY_H

/*
 * json_memory - notices failed allocations of jansson, which ignores some of them: a text that it
 * parses then lacks a character, and an error is reported as a wrong one.
 *
 *     bel__json_memory_begin();
 *     json = json_loadb(...);
 *     if (bel__json_memory_is_out()) ... the value may be wrong ...
 *
 * The library has one allocator for the whole process, so this is global. Private to src/http.
 *
 * Threads: one thread at a time may use the library.
 */

#include <stdbool.h>

/* Lets jansson allocate through this module. */
void bel__json_memory_start(void);

/* Forgets failed allocations. */
void bel__json_memory_begin(void);

/* Returns whether an allocation has failed since. */
bool bel__json_memory_is_out(void);

#endif
