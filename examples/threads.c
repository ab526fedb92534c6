/* SPDX-License-Identifier: MIT */

/*
 * Two timers in memory on a worker thread of a runtime: one rings, one is cancelled in time.
 *
 * If the phone had begun to ring, bel_runtime_cancel() would have returned false: its result is
 * what happened.
 */
#include <belfry/runtime.h>

#include <stdio.h>
#include <time.h>

enum {
    KIND_PRINT
};

#define MS UINT64_C(1000000)

static void print(void *context, const struct bel_event *event)
{
    const char *const *names = context;
    printf("%s, on the worker's thread\n", names[event->user]);
}

static int fail(int err)
{
    (void)fprintf(stderr, "%s\n", bel_error_text(err));
    return 1;
}

int main(void)
{
    static const char *names[] = {"tea", "phone"};
    struct bel_schedule order = {.kind = KIND_PRINT, .priority = BEL_PRIORITY_DEFAULT};
    struct bel_runtime *runtime;
    bel_timer_t tea, phone = 0;

    int err = bel_runtime_create(NULL, &runtime);
    if (err) return fail(err);
    err = bel_runtime_on(runtime, KIND_PRINT, print, names);
    if (!err) err = bel_runtime_start(runtime, 1);
    if (!err) err = bel_runtime_schedule_after(runtime, 50 * MS, &order, &tea);
    order.user = 1;
    if (!err) err = bel_runtime_schedule_after(runtime, 60 * MS, &order, &phone);
    if (err) return fail(err);

    if (bel_runtime_cancel(runtime, phone)) printf("the phone will not ring\n");
    (void)nanosleep(&(struct timespec){.tv_nsec = 200 * (long)MS}, NULL); /* the program's work */
    err = bel_runtime_shutdown(runtime, BEL_SHUTDOWN_DISCARD, NULL);
    bel_runtime_destroy(runtime);
    return err ? 1 : 0;
}
