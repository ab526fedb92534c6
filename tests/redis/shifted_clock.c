/* SPDX-License-Identifier: MIT */

/*
 * Loaded into a server by LD_PRELOAD: its wall clock is ahead by BEL_TEST_AHEAD_S seconds. The
 * functions below hide those of the C library that have the names behind __asm__.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

int shifted_clock(clockid_t clock, struct timespec *out) __asm__("clock_gettime");
int shifted_day(struct timeval *out, void *zone) __asm__("gettimeofday");
time_t shifted_seconds(time_t *out) __asm__("time");

static long ahead(void)
{
    static long seconds = -1;
    const char *text = getenv("BEL_TEST_AHEAD_S"); /* NOLINT(concurrency-mt-unsafe) */
    if (seconds < 0) seconds = text == NULL ? 0 : strtol(text, NULL, 10);
    return seconds;
}

int shifted_clock(clockid_t clock, struct timespec *out)
{
    static int (*hidden)(clockid_t, struct timespec *);
    if (hidden == NULL) {
        void *found = dlsym(RTLD_NEXT, "clock_gettime");
        memcpy((void *)&hidden, &found, sizeof hidden);
    }
    int err = hidden(clock, out);
    if (err == 0 && clock == CLOCK_REALTIME) out->tv_sec += ahead();
    return err;
}

int shifted_day(struct timeval *out, void *zone)
{
    struct timespec now;
    (void)zone;
    int err = shifted_clock(CLOCK_REALTIME, &now);
    if (err == 0) *out = (struct timeval){.tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000};
    return err;
}

time_t shifted_seconds(time_t *out)
{
    struct timespec now;
    (void)shifted_clock(CLOCK_REALTIME, &now);
    if (out != NULL) *out = now.tv_sec;
    return now.tv_sec;
}
