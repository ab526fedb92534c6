/* SPDX-License-Identifier: MIT */

/*
 * On submit a caller saves the request's `done` in `via.done`, replaces it with finish(), and
 * stores itself in `via.carrier`. A claim with a wait is in the tracker's list from submit until it
 * is done or withdrawn.
 */
#include "session/request_tracker.h"

#include "core/units.h"

#include <assert.h>

static_assert(offsetof(struct bel_request, via.carrier) - offsetof(struct bel_request, via) >=
                  sizeof(struct bel_link),
              "a request has room for a link");
static_assert(offsetof(struct bel_caller, backend) == 0, "a caller is a backend");

static struct bel_link *link_of(struct bel_request *request)
{
    return (struct bel_link *)(void *)&request->via;
}

static bool may_wait(const struct bel_request *request)
{
    return request->command.verb == BEL_VERB_CLAIM && request->command.claim.wait_ms > 0;
}

struct bel_caller *bel__caller_of(const struct bel_request *request)
{
    struct bel_caller *caller = request->via.carrier;
    assert(caller->under_way > 0);
    return caller;
}

/* Restores the `done` of a request, and stops counting the request. */
static void give_back(struct bel_caller *caller, struct bel_request *request)
{
    struct bel_request_tracker *tracker = caller->tracker;
    assert(tracker->under_way >= caller->under_way);
    assert(may_wait(request) == bel__link_is_linked(link_of(request)));
    tracker->under_way--;
    caller->under_way--;
    if (may_wait(request)) {
        assert(caller->waiting > 0);
        bel__link_remove(link_of(request));
        caller->waiting--;
    }
    request->done = request->via.done;
}

static void count(const struct bel_caller *caller, const struct bel_request *request,
                  const struct bel_reply *reply)
{
    struct bel_request_tracker *tracker = caller->tracker;
    struct bel_metrics *metrics = tracker->metrics;
    enum bel_verb verb = request->command.verb;
    if (reply->err == BEL_EIO || reply->err == BEL_ECORRUPT) tracker->broken = reply->err;
    if (caller->is_own) return;
    metrics->commands[verb]++;
    if (reply->err != 0) metrics->errors[verb]++;
    if (verb != BEL_VERB_CLAIM || reply->err != 0) return;
    metrics->deliveries += reply->deliveries.count;
    for (size_t i = 0; i < reply->deliveries.count; i++) {
        int64_t late_ms = tracker->now.wall.ms - reply->deliveries.items[i].due.ms;
        uint64_t late_ns = late_ms > 0 ? (uint64_t)late_ms * NS_PER_MS : 0;
        bel__meter_record(&metrics->lateness, late_ns);
        bel__recent_record(&metrics->lateness_recent, late_ns, tracker->now.real);
    }
}

static void leave_if_done(struct bel_caller *caller)
{
    void (*left)(struct bel_caller * caller) = caller->left;
    if (left == NULL || caller->under_way > 0) return;
    assert(caller->waiting == 0);
    caller->left = NULL;
    left(caller);
}

/* Replaces the `done` of a request while the request is with the backend. */
static void finish(struct bel_request *request, const struct bel_reply *reply)
{
    struct bel_caller *caller = bel__caller_of(request);
    count(caller, request, reply);
    give_back(caller, request);
    request->done(request, reply); /* may submit more requests of this caller */
    leave_if_done(caller);
}

/* --- a caller as a backend --- */

static void submit(struct bel_backend *backend, struct bel_request *request)
{
    struct bel_caller *caller = (struct bel_caller *)backend;
    struct bel_request_tracker *tracker = caller->tracker;
    assert(request->done != NULL && request->done != finish);
    request->via.carrier = caller;
    request->via.done = request->done;
    request->done = finish;
    *link_of(request) = (struct bel_link){NULL, NULL};
    tracker->under_way++;
    tracker->fresh++;
    caller->under_way++;
    if (may_wait(request)) {
        bel__list_append(&tracker->waits, link_of(request));
        caller->waiting++;
    }
    tracker->inner->submit(tracker->inner, request);
}

static bool withdraw(struct bel_backend *backend, struct bel_request *request)
{
    struct bel_caller *caller = (struct bel_caller *)backend;
    struct bel_request_tracker *tracker = caller->tracker;
    assert(bel__caller_of(request) == caller);
    if (!tracker->inner->withdraw(tracker->inner, request)) return false;
    give_back(caller, request);
    leave_if_done(caller);
    return true;
}

static struct bel_next turn(struct bel_backend *backend, struct bel_now now)
{
    struct bel_caller *caller = (struct bel_caller *)backend;
    return bel__request_tracker_turn(caller->tracker, now);
}

void bel__caller_init(struct bel_caller *caller, struct bel_request_tracker *tracker)
{
    assert(tracker != NULL);
    *caller = (struct bel_caller){.backend = {submit, withdraw, turn}, .tracker = tracker};
}

void bel__caller_leave(struct bel_caller *caller, void (*left)(struct bel_caller *caller))
{
    assert(left != NULL && caller->left == NULL);
    caller->left = left;
    leave_if_done(caller);
}

/* --- all callers --- */

static void end_waits(struct bel_request_tracker *tracker)
{
    static const struct bel_reply nothing = {.err = 0};
    struct bel_link *next;
    assert(tracker->is_draining);
    for (struct bel_link *link = bel__list_first(&tracker->waits); link != NULL; link = next) {
        struct bel_request *request = BEL_CONTAINER_OF(link, struct bel_request, via);
        next = bel__list_next(&tracker->waits, link);
        if (tracker->inner->withdraw(tracker->inner, request)) finish(request, &nothing);
    }
}

struct bel_next bel__request_tracker_turn(struct bel_request_tracker *tracker, struct bel_now now)
{
    bool is_counted = tracker->fresh > 0;
    struct bel_mono start = bel_clock_mono(tracker->clock);
    tracker->now = now;
    tracker->fresh = 0;
    struct bel_next next = tracker->inner->turn(tracker->inner, now);
    if (tracker->is_draining) end_waits(tracker);
    if (is_counted) {
        struct bel_mono end = bel_clock_mono(tracker->clock);
        bel__meter_record(&tracker->metrics->turn, end.ns - start.ns);
        tracker->metrics->turns++;
    }
    return next;
}

void bel__request_tracker_init(struct bel_request_tracker *tracker, struct bel_backend *inner,
                               struct bel_metrics *metrics, const struct bel_clock *clock)
{
    *tracker = (struct bel_request_tracker){.inner = inner, .metrics = metrics, .clock = clock};
    bel__list_init(&tracker->waits);
}

void bel__request_tracker_drain(struct bel_request_tracker *tracker)
{
    tracker->is_draining = true;
    end_waits(tracker);
}
