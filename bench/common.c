/* SPDX-License-Identifier: MIT */

/*
 * Shared by all benchmark programs, in virtual and in real time: failing with a message,
 * memory that is touched before the measurement, and numbers from the command line.
 */
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void bench_fail(const char *what)
{
    (void)fprintf(stderr, "bench: %s: %s\n", engine_traits.name, what);
    exit(1);
}

void *bench_caller_alloc(size_t count, size_t bytes)
{
    volatile char *p = calloc(count, bytes);
    if (p == NULL) bench_fail("out of memory");
    for (size_t i = 0; i < count * bytes; i += BENCH_PAGE_BYTES)
        p[i] = 0;
    return (void *)(uintptr_t)p;
}

void *bench_alloc(size_t count, size_t bytes)
{
    void *p = malloc(count * bytes + 1);
    if (p == NULL) bench_fail("out of memory");
    memset(p, 1, count * bytes + 1);
    return p;
}

uint64_t bench_parse_number(const char *text, uint64_t max)
{
    char *end;
    unsigned long long value = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end != '\0' || value > max)
        bench_fail("invalid number on the command line");
    return value;
}
