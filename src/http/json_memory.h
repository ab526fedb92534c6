/* SPDX-License-Identifier: MIT */
#ifndef BEL_HTTP_JSON_MEMORY_H
#define BEL_HTTP_JSON_MEMORY_H

/*
 * json_memory - keeps jansson from going on after a failed allocation. Its parser ignores some of
 * them: the text then lacks a character, and if that is a quote, the parser writes beyond its
 * memory. Work that is tried here ends at the first failed allocation instead, and everything that
 * the library has allocated for the work is freed.
 *
 *     if (!bel__json_memory_try(parse, &parsing)) ... memory has run out ...
 *
 * The library has one allocator for the whole process, so this is global. Private to src/http.
 *
 * Threads: one thread at a time may use the library.
 */

#include <stdbool.h>

/* Lets jansson allocate through this module. There must be no JSON values yet. */
void bel__json_memory_start(void);

/* Calls `work`, which may make JSON values but must neither free older ones nor allocate anything
 * else. Returns false if memory has run out: then `work` has not returned, and its values are
 * freed. */
bool bel__json_memory_try(void (*work)(void *context), void *context);

#endif
