/* SPDX-License-Identifier: MIT */
#ifndef BEL_STORE_TREE_MAP_FAULT_H
#define BEL_STORE_TREE_MAP_FAULT_H

/*
 * map_fault - names the damage when a read of a mapped tree ends in SIGSEGV or SIGBUS: a page that
 * the disk cannot read, a file that has become shorter, or an offset that leads out of the file.
 *
 * A tree adds its map. A program that wants the faults named installs the handler, which calls a
 * function and exits with status 1. Any other fault has the effect that it had before.
 *
 * Threads: any thread may add and remove maps; one thread installs the handler, once.
 */

#include "belfry/error.h"

#include <stddef.h>
#include <stdint.h>

/* Writes the message about a page that could not be read. Called in a signal handler, so it may
 * only call functions that are safe there. */
typedef void bel_map_fault_name(uint64_t page);

/* Installs the handler, with a stack of its own for the calling thread. Returns 0 or BEL_EIO. */
BEL_CHECKED int bel__map_fault_install(bel_map_fault_name *name);

/* Adds and removes a map. If there are too many, faults in it are not named. */
void bel__map_fault_add(const void *map, size_t bytes, size_t page_bytes);
void bel__map_fault_remove(const void *map);

#endif
