/* SPDX-License-Identifier: MIT */
#include "http/json_memory.h"

#include <jansson.h>
#include <stdlib.h>

static bool is_out;

static void *take(size_t bytes)
{
    void *memory = malloc(bytes);
    if (memory == NULL) is_out = true;
    return memory;
}

void bel__json_memory_start(void)
{
    json_set_alloc_funcs(take, free);
}

void bel__json_memory_begin(void)
{
    is_out = false;
}

bool bel__json_memory_is_out(void)
{
    return is_out;
}
