/* SPDX-License-Identifier: MIT */
#ifndef BEL_TESTS_FAULTS_SCENE_H
#define BEL_TESTS_FAULTS_SCENE_H

/*
 * scene - creates, copies and removes folders for tests with real files and processes.
 *
 *     char folder[SCENE_PATH_BYTES];
 *     scene_make(folder);          <temporary folder>/data; only the temporary folder is created
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

/* Remove the folder, but not its parent; replace it by a copy of another one. */
void scene_clear(const char *folder);
void scene_copy(const char *from, const char *folder);

/* Reads a whole file and adds a 0. The caller frees it. Returns NULL if it does not exist. */
uint8_t *scene_read(const char *folder, const char *name, size_t *out_bytes);
void scene_write(const char *folder, const char *name, const void *data, size_t bytes);

/* Runs the check on a folder. It must pass, unless the creation of the store was interrupted. */
void scene_check(const char *folder);

/* Calls a function in a forked process. Returns its status as waitpid() does. */
int scene_fork(void (*function)(void *context), void *context);
bool scene_is_well(int status);

/* Returns a monotonic time in milliseconds. */
uint64_t scene_ms(void);

#endif
