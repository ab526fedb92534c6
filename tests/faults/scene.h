/* SPDX-License-Identifier: MIT */
#ifndef BEL_TESTS_FAULTS_SCENE_H
#define BEL_TESTS_FAULTS_SCENE_H

/*
 * scene - folders for tests with real files and processes: made, copied, removed.
 *
 *     char folder[SCENE_PATH_BYTES];
 *     scene_make(folder);          <parent of its own>/data, of which only the parent is there
 *     scene_remove(folder);        both
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SCENE_PATH_BYTES = 128,
};

void scene_make(char out[SCENE_PATH_BYTES]);
void scene_remove(const char *folder);

/* Removes the folder alone; makes it a copy of another one. */
void scene_clear(const char *folder);
void scene_copy(const char *from, const char *folder);

/* All of a file, with a 0 behind it; to be freed. NULL if it is not there. */
uint8_t *scene_read(const char *folder, const char *name, size_t *out_bytes);
void scene_write(const char *folder, const char *name, const void *data, size_t bytes);

/* Checks a folder from outside, which may not be finished, and is otherwise as it should be. */
void scene_check(const char *folder);

/* Calls a function in a process of its own. Returns as waitpid() says how that ended. */
int scene_fork(void (*function)(void *context), void *context);
bool scene_is_well(int status);

/* Time that has passed, to stop something by. */
uint64_t scene_ms(void);

#endif
