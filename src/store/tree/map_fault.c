/* SPDX-License-Identifier: MIT */

/*
 * The maps and the function are static: a signal handler has no other way to find them. A fault
 * outside of all maps restores the action that was set before and returns, so that the same
 * instruction faults again with that action.
 */
#include "store/tree/map_fault.h"

#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    MAPS_MAX = 16,
    STACK_BYTES = 64 << 10,
};

static volatile struct {
    uintptr_t start;
    size_t bytes, page_bytes;
} maps[MAPS_MAX]; /* unused if the start is 0 */

static const int signals[] = {SIGSEGV, SIGBUS};
static struct sigaction before[sizeof signals / sizeof signals[0]];
static bel_map_fault_name *name_fault;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* of those who add and remove */

static void on_fault(int number, siginfo_t *info, void *context)
{
    uintptr_t address = (uintptr_t)info->si_addr;
    (void)context;
    for (unsigned i = 0; i < MAPS_MAX; i++) {
        uintptr_t start = maps[i].start;
        if (start == 0 || address < start || address - start >= maps[i].bytes) continue;
        name_fault((address - start) / maps[i].page_bytes);
        _exit(EXIT_FAILURE);
    }
    for (unsigned i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        if (signals[i] == number) (void)sigaction(number, &before[i], NULL);
    }
}

int bel__map_fault_install(bel_map_fault_name *name)
{
    static unsigned char stack[STACK_BYTES];
    stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    assert(name != NULL);
    bool is_first = name_fault == NULL;
    name_fault = name;
    if (!is_first) return 0;
    if (sigaltstack(&alternate, NULL) != 0) return BEL_EIO;
    (void)sigemptyset(&action.sa_mask);
    for (unsigned i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        if (sigaction(signals[i], &action, &before[i]) != 0) return BEL_EIO;
    }
    return 0;
}

void bel__map_fault_add(const void *map, size_t bytes, size_t page_bytes)
{
    unsigned i = 0;
    assert(page_bytes > 0);
    (void)pthread_mutex_lock(&mutex);
    while (i < MAPS_MAX && maps[i].start != 0) {
        i++;
    }
    if (i < MAPS_MAX) {
        maps[i].bytes = bytes;
        maps[i].page_bytes = page_bytes;
        maps[i].start = (uintptr_t)map;
    }
    (void)pthread_mutex_unlock(&mutex);
}

void bel__map_fault_remove(const void *map)
{
    (void)pthread_mutex_lock(&mutex);
    for (unsigned i = 0; i < MAPS_MAX; i++) {
        if (maps[i].start == (uintptr_t)map) maps[i].start = 0;
    }
    (void)pthread_mutex_unlock(&mutex);
}
