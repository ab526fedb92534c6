/* SPDX-License-Identifier: MIT */

/*
 * Wraps malloc() and similar functions, and mmap() and mprotect() for slabs. Much memory is
 * allocated in large blocks, so that most requests need no new one. So the functions that give out
 * parts of blocks fail as well: memory of a reply, reservations in the store, rows that are read.
 */
#include "scarce.h"

#include "core/arena.h"
#include "engine/state/picker.h"
#include "store/store.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *old, size_t bytes);
void *__real_aligned_alloc(size_t alignment, size_t bytes);
void *__real_mmap(void *at, size_t bytes, int protection, int flags, int file, off_t offset);
int __real_mprotect(void *at, size_t bytes, int protection);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes);
void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int file, off_t offset);
void *__wrap_mmap64(void *at, size_t bytes, int protection, int flags, int file, off_t offset);
int __wrap_mprotect(void *at, size_t bytes, int protection);

void *__real_bel__arena_take(struct bel_arena *arena, size_t bytes);
struct bel_view __real_bel__arena_copy(struct bel_arena *arena, struct bel_view view);
int __real_bel__picker_add(struct bel_picker *picker, const struct bel_standing *standing,
                           const struct bel_ready *ready);
int __real_bel__store_reserve(struct bel_store *store, size_t rows, size_t bytes,
                              enum bel_store_use use);
int __real_bel__store_get(struct bel_store *store, const struct bel_key *key, struct bel_view *out);
int __real_bel__store_seek(struct bel_store *store, const struct bel_key *from,
                           struct bel_store_cursor *out);
int __real_bel__store_next(struct bel_store *store, struct bel_store_cursor *cursor);
void *__wrap_bel__arena_take(struct bel_arena *arena, size_t bytes);
struct bel_view __wrap_bel__arena_copy(struct bel_arena *arena, struct bel_view view);
int __wrap_bel__picker_add(struct bel_picker *picker, const struct bel_standing *standing,
                           const struct bel_ready *ready);
int __wrap_bel__store_reserve(struct bel_store *store, size_t rows, size_t bytes,
                              enum bel_store_use use);
int __wrap_bel__store_get(struct bel_store *store, const struct bel_key *key, struct bel_view *out);
int __wrap_bel__store_seek(struct bel_store *store, const struct bel_key *from,
                           struct bel_store_cursor *out);
int __wrap_bel__store_next(struct bel_store *store, struct bel_store_cursor *cursor);

static uint64_t left; /* allocations until one fails; 0: none fails */
static bool is_lasting, is_suspended;
static uint64_t failures;

void scarce_begin(uint64_t first, bool is_for_good)
{
    left = first;
    is_lasting = is_for_good;
    failures = 0;
}

uint64_t scarce_end(void)
{
    left = 0;
    return failures;
}

void scarce_suspend(void)
{
    is_suspended = true;
}

void scarce_resume(void)
{
    is_suspended = false;
}

static bool fails(void)
{
    if (left == 0 || is_suspended) return false;
    if (left > 1) {
        left--;
        return false;
    }
    if (!is_lasting) left = 0;
    failures++;
    errno = ENOMEM;
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

void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int file, off_t offset)
{
    return fails() ? MAP_FAILED : __real_mmap(at, bytes, protection, flags, file, offset);
}

void *__wrap_mmap64(void *at, size_t bytes, int protection, int flags, int file, off_t offset)
{
    return fails() ? MAP_FAILED : __real_mmap(at, bytes, protection, flags, file, offset);
}

int __wrap_mprotect(void *at, size_t bytes, int protection)
{
    return fails() ? -1 : __real_mprotect(at, bytes, protection);
}

void *__wrap_bel__arena_take(struct bel_arena *arena, size_t bytes)
{
    return fails() ? NULL : __real_bel__arena_take(arena, bytes);
}

struct bel_view __wrap_bel__arena_copy(struct bel_arena *arena, struct bel_view view)
{
    return fails() ? (struct bel_view){NULL, 0} : __real_bel__arena_copy(arena, view);
}

int __wrap_bel__picker_add(struct bel_picker *picker, const struct bel_standing *standing,
                           const struct bel_ready *ready)
{
    return fails() ? BEL_ENOMEM : __real_bel__picker_add(picker, standing, ready);
}

int __wrap_bel__store_reserve(struct bel_store *store, size_t rows, size_t bytes,
                              enum bel_store_use use)
{
    return fails() ? BEL_ENOMEM : __real_bel__store_reserve(store, rows, bytes, use);
}

int __wrap_bel__store_get(struct bel_store *store, const struct bel_key *key, struct bel_view *out)
{
    return fails() ? BEL_ENOMEM : __real_bel__store_get(store, key, out);
}

int __wrap_bel__store_seek(struct bel_store *store, const struct bel_key *from,
                           struct bel_store_cursor *out)
{
    return fails() ? BEL_ENOMEM : __real_bel__store_seek(store, from, out);
}

int __wrap_bel__store_next(struct bel_store *store, struct bel_store_cursor *cursor)
{
    return fails() ? BEL_ENOMEM : __real_bel__store_next(store, cursor);
}
