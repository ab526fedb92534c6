/* SPDX-License-Identifier: MIT */

/*
 * A timer that programs on many machines share, in a Redis or Valkey server.
 *
 *     shared redis://127.0.0.1             schedules a timer, waits for it, prints its payload
 *     shared redis://127.0.0.1 --worker    works on what others schedule, until a minute is quiet
 *
 * Start as many as you like, on any machine: each timer is delivered to one of them. If one is
 * killed while it works on a timer, another one gets that timer when the lease has expired.
 */
#include <belfry/driver.h>
#include <belfry/redis_store.h>

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum {
    QUIET_MS = 60000
};

static void warn(void *context, const struct bel_redis_store_finding *finding)
{
    (void)context;
    fprintf(stderr, "warning: %s; %s\n", finding->what, finding->advice);
}

/* Waits for a timer and acknowledges it. Sets `*out` to whether there was one. */
static int work(struct bel_driver *driver, bool *out)
{
    struct bel_delivery *due = NULL;
    int err = bel_driver_claim(driver, "kitchen", QUIET_MS, &due);
    *out = due != NULL;
    if (due == NULL) return err;
    puts(due->payload.data);
    err = bel_driver_ack(driver, due); /* without this it is delivered again */
    bel_delivery_destroy(due);
    return err;
}

int main(int argc, char **argv)
{
    struct bel_redis_store_options options = {.url = argc > 1 ? argv[1] : "redis://127.0.0.1",
                                              .warn = warn};
    bool is_worker = argc > 2 && strcmp(argv[2], "--worker") == 0, has_more = true;
    struct bel_redis_store_why why;
    struct bel_redis_store *store;
    struct bel_driver *driver;

    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    if (bel_redis_store_open(&options, &store, &why) != 0) {
        fprintf(stderr, "%s\n", why.text);
        return 1;
    }
    int err = bel_driver_start(bel_redis_store_backend(store), NULL, &driver);
    if (err) {
        bel_redis_store_close(store);
        return 1;
    }
    if (!is_worker) {
        err = bel_driver_schedule(driver, "kitchen", "tea", BEL_VIEW("the tea is ready"), 100);
        if (!err) err = work(driver, &has_more);
    }
    while (is_worker && has_more && !err) {
        err = work(driver, &has_more);
    }
    if (err) fprintf(stderr, "%s\n", bel_error_text(err));
    bel_driver_destroy(driver);
    bel_redis_store_close(store);
    return err ? 1 : 0;
}
