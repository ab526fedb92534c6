/* SPDX-License-Identifier: MIT */

/*
 * The linker sends every allocation of the program here (--wrap). One that the engine makes can
 * be told to fail; the simulator's own never do. It also sends here the step of the writer, which
 * stands for a thread that writes and syncs: it can be held up; and the question whether a
 * checkpoint is behind, so that requests are held back.
 */
#include "world.h"

#include "store/log/writer.h"
#include "store/store.h"

#include <stdlib.h>

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *old, size_t bytes);
void *__real_aligned_alloc(size_t alignment, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes);

int __wrap_madvise(void *start, size_t bytes, int advice);

void __real_bel__log_writer_step(struct bel_log_writer *writer);
void __wrap_bel__log_writer_step(struct bel_log_writer *writer);

uint64_t __wrap_bel__store_hold_ns(struct bel_store *store, enum bel_store_use use);

static uint64_t left, failures, holds_ns[2];
static bool inside, is_thread_held;

void memory_fail_in(uint64_t count)
{
    left = count;
}

void memory_enter(bool is_inside)
{
    inside = is_inside;
}

uint64_t memory_failures(void)
{
    return failures;
}

static bool fails(void)
{
    if (!inside || left == 0 || --left > 0) return false;
    failures++;
    return true;
}

void *__wrap_malloc(size_t bytes)
{
    return fails() ? NULL : __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    return fails() ? NULL : __real_calloc(count, bytes);
}

void *__wrap_realloc(void *old, size_t bytes)
{
    return fails() ? NULL : __real_realloc(old, bytes);
}

void *__wrap_aligned_alloc(size_t alignment, size_t bytes)
{
    return fails() ? NULL : __real_aligned_alloc(alignment, bytes);
}

/* Memory is not filled in advance: histories are short, and have little of it. */
int __wrap_madvise(void *start, size_t bytes, int advice)
{
    (void)start;
    (void)bytes;
    (void)advice;
    return 0;
}

void thread_hold(bool is_held)
{
    is_thread_held = is_held;
}

void __wrap_bel__log_writer_step(struct bel_log_writer *writer)
{
    if (!is_thread_held) __real_bel__log_writer_step(writer);
}

void requests_hold(uint64_t add_ns, uint64_t change_ns)
{
    holds_ns[BEL_STORE_ADD] = add_ns;
    holds_ns[BEL_STORE_END] = change_ns;
}

uint64_t __wrap_bel__store_hold_ns(struct bel_store *store, enum bel_store_use use)
{
    (void)store;
    return holds_ns[use];
}
