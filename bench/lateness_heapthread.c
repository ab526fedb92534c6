/* SPDX-License-Identifier: MIT */

/*
 * The simple solution: a binary heap under a mutex, and a thread that waits on a
 * condition variable until the first timer is due.
 */
#include "lateness.h"

#include <pthread.h>

struct entry {
    uint64_t due;
    uint32_t id;
};

const struct engine_traits engine_traits = {.name = "heapthread", .resolution_ns = 1};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* guards all below */
static pthread_cond_t first_has_changed = PTHREAD_COND_INITIALIZER;
static struct entry *heap;
static uint32_t heap_count;

const char *engine_version(void)
{
    return "own";
}

void engine_open(uint32_t count)
{
    heap = bench_caller_alloc(count, sizeof *heap);
}

static void push(struct entry entry)
{
    uint32_t k = heap_count++;
    for (; k > 0 && entry.due < heap[(k - 1) / 2].due; k = (k - 1) / 2)
        heap[k] = heap[(k - 1) / 2];
    heap[k] = entry;
}

static struct entry pop(void)
{
    struct entry first = heap[0], last = heap[--heap_count];
    uint32_t k = 0;
    for (uint32_t child = 1; child < heap_count; child = 2 * k + 1) {
        if (child + 1 < heap_count && heap[child + 1].due < heap[child].due) child++;
        if (last.due <= heap[child].due) break;
        heap[k] = heap[child];
        k = child;
    }
    heap[k] = last;
    return first;
}

void engine_schedule(uint32_t id, uint64_t due)
{
    (void)pthread_mutex_lock(&mutex);
    push((struct entry){due, id});
    if (heap[0].id == id) (void)pthread_cond_signal(&first_has_changed);
    (void)pthread_mutex_unlock(&mutex);
}

static void sleep_until(uint64_t due)
{
    struct timespec until = bench_timespec(due);
    (void)pthread_cond_clockwait(&first_has_changed, &mutex, CLOCK_MONOTONIC, &until);
}

void engine_run(void)
{
    (void)pthread_mutex_lock(&mutex);
    for (;;) {
        if (heap_count == 0) {
            (void)pthread_cond_wait(&first_has_changed, &mutex);
        } else if (heap[0].due > bench_clock_ns()) {
            sleep_until(heap[0].due);
        } else {
            struct entry first = pop();
            (void)pthread_mutex_unlock(&mutex);
            bench_rang(first.id);
            (void)pthread_mutex_lock(&mutex);
        }
    }
}
