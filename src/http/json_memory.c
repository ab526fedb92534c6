/* SPDX-License-Identifier: MIT */

/*
 * Every block that jansson allocates is in a list, the newest first. The blocks of a work that is
 * given up are those before the block that was first when the work began.
 */
#include "http/json_memory.h"

#include <assert.h>
#include <jansson.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

struct block {
    struct block *next, *prev;
    max_align_t bytes[]; /* what the library gets */
};

static struct block *newest;
static jmp_buf *way_out; /* of the work that is tried; or NULL */

static void *take(size_t bytes)
{
    struct block *block = bytes <= SIZE_MAX / 2 ? malloc(sizeof *block + bytes) : NULL;
    if (block == NULL) {
        if (way_out != NULL) longjmp(*way_out, 1);
        return NULL;
    }
    *block = (struct block){.next = newest};
    if (newest != NULL) newest->prev = block;
    newest = block;
    return block->bytes;
}

static void give(void *memory)
{
    if (memory == NULL) return;
    struct block *block = (void *)((char *)memory - offsetof(struct block, bytes));
    if (block->next != NULL) block->next->prev = block->prev;
    if (block->prev != NULL) block->prev->next = block->next;
    if (newest == block) newest = block->next;
    free(block);
}

void bel__json_memory_start(void)
{
    json_set_alloc_funcs(take, give);
}

bool bel__json_memory_try(void (*work)(void *context), void *context)
{
    jmp_buf here;
    struct block *volatile mark = newest;
    assert(way_out == NULL);
    if (setjmp(here) != 0) {
        way_out = NULL;
        while (newest != mark) {
            give(newest->bytes);
        }
        return false;
    }
    way_out = &here;
    work(context);
    way_out = NULL;
    return true;
}
