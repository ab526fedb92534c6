/* SPDX-License-Identifier: MIT */

/*
 * Four timers on the system's clock, in a loop without threads: one is moved, one is cancelled, the
 * others ring.
 *
 * The tea is armed first but moved last, so at 80 ms it comes after the bell. bel_wheel_next() may
 * return a time that is too early, never one that is too late: the loop then finds nothing, asks
 * again and sleeps on.
 */
#include <belfry/clock.h>
#include <belfry/wheel.h>

#include <stdio.h>
#include <time.h>

#define MS UINT64_C(1000000)

static void sleep_until(uint64_t boot_ns)
{
    struct timespec at = {(time_t)(boot_ns / 1000000000), (long)(boot_ns % 1000000000)};
    (void)clock_nanosleep(CLOCK_BOOTTIME, TIMER_ABSTIME, &at, NULL);
}

static int fail(int err)
{
    (void)fprintf(stderr, "%s\n", bel_error_text(err));
    return 1;
}

int main(void)
{
    static const char *names[] = {"tea", "bread", "phone", "bell"};
    const struct bel_clock *clock = bel_clock_system();
    uint64_t start = bel_clock_boot(clock).ns;

    struct bel_wheel_options options = {.now = start};
    struct bel_wheel *wheel;
    int err = bel_wheel_create(&options, &wheel);
    if (err) return fail(err);

    bel_timer_t timers[4];
    for (uint64_t i = 0; i < 4 && !err; i++) { /* tea 20 ms, bread 40, phone 60, bell 80 */
        err = bel_wheel_arm(wheel, start + (i + 1) * 20 * MS, BEL_PRIORITY_DEFAULT, i, &timers[i]);
    }
    if (!err) err = bel_wheel_rearm(wheel, timers[0], start + 80 * MS); /* after the bell */
    if (err) return fail(err);
    bel_wheel_cancel(wheel, timers[2]);

    for (uint64_t next; (next = bel_wheel_next(wheel)) != BEL_NEVER;) {
        struct bel_wheel_timer timer;
        sleep_until(next);
        while (bel_wheel_pop(wheel, bel_clock_boot(clock).ns, &timer)) {
            printf("%2u ms  %s\n", (unsigned)((timer.due - start) / MS), names[timer.user]);
        }
    }
    bel_wheel_destroy(wheel);
    return 0;
}
