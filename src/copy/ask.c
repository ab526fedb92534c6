/* SPDX-License-Identifier: MIT */
#include "copy/ask.h"

#include "core/units.h"

#include <poll.h>
#include <stdbool.h>

enum {
    SLEEP_MS_MAX = 1000,
};

/* Sleeps until the backend needs a turn. */
static void await(const struct bel_copy_store *store, struct bel_next next, struct bel_now now)
{
    struct pollfd poller = {.fd = bel_backend_descriptor(store->backend), .events = POLLIN};
    uint64_t first_ns = next.wait.ns, hold_ns = next.add.ns;
    if (hold_ns > 0 && hold_ns < first_ns) first_ns = hold_ns;
    bool is_due = next.due.ns <= now.boot.ns && hold_ns == 0;
    if (is_due || first_ns <= now.real.ns) return;
    uint64_t ms = (first_ns - now.real.ns) / NS_PER_MS + 1;
    (void)poll(&poller, 1, ms < SLEEP_MS_MAX ? (int)ms : SLEEP_MS_MAX);
}

void bel__ask_all(const struct bel_copy_store *store, struct bel_request *requests, size_t count,
                  const size_t *left)
{
    for (size_t i = 0; i < count; i++) {
        bel_backend_submit(store->backend, &requests[i]);
    }
    for (;;) {
        struct bel_now now = bel_clock_now(store->clock);
        struct bel_next next = bel_backend_turn(store->backend, now);
        if (*left == 0) return;
        await(store, next, now);
    }
}

struct asking {
    bel_ask_see *see;
    void *context;
    struct bel_why *why;
    size_t left;
    int err;
};

static void answered(struct bel_request *request, const struct bel_reply *reply)
{
    struct asking *asking = request->user;
    asking->left = 0;
    asking->err = reply->err;
    if (reply->err) {
        const char *text = reply->why[0] != 0 ? reply->why : bel_error_text(reply->err);
        (void)bel__why_say(asking->why, reply->err, "%s", text);
    } else if (asking->see != NULL) {
        asking->err = asking->see(asking->context, reply);
    }
}

int bel__ask(const struct bel_copy_store *store, const struct bel_command *command,
             bel_ask_see *see, void *context, struct bel_why *why)
{
    struct asking asking = {.see = see, .context = context, .why = why, .left = 1};
    struct bel_request request = {.command = *command, .done = answered, .user = &asking};
    bel__ask_all(store, &request, 1, &asking.left);
    return asking.err;
}
