/* SPDX-License-Identifier: MIT */

/*
 * On submit a caller saves the request's `done` in `via.done`, replaces it with finish(), and
 * stores itself in `via.carrier`. A claim with a wait is in the tracker's list from the time when
 * the backend gets it until it is done or withdrawn. A request that is held back is in its caller's
 * list, counts as under way, and has no `done`.
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

/* --- how long commits take --- */

/* Returns whether a request is answered as soon as its change is durable. Claims may wait, and
 * verbs for many timers take several turns. */
static bool is_commit(const struct bel_request *request)
{
    const unsigned verbs = 1U << BEL_VERB_SCHEDULE | 1U << BEL_VERB_CANCEL |
                           1U << BEL_VERB_RESCHEDULE | 1U << BEL_VERB_ACK | 1U << BEL_VERB_FAIL |
                           1U << BEL_VERB_RELEASE | 1U << BEL_VERB_EXTEND;
    static_assert(BEL_VERBS <= 32, "a bit for each verb");
    return (verbs >> request->command.verb & 1) != 0;
}

/* Notes the requests of the turn that begins. If too many turns wait for the disk, the last mark
 * counts for its successors, too. */
static void mark_turn(struct bel_commit_marks *marks, struct bel_mono start)
{
    unsigned last = (marks->first + marks->count - 1) % BEL_COMMIT_MARKS;
    if (marks->asked == (marks->count > 0 ? marks->ring[last].asked : marks->answered)) return;
    if (marks->count < BEL_COMMIT_MARKS) {
        last = (marks->first + marks->count++) % BEL_COMMIT_MARKS;
        marks->ring[last].start_ns = start.ns;
    }
    marks->ring[last].asked = marks->asked;
}

/* Records the turns whose requests have been answered by now. */
static void record_commits(struct bel_request_tracker *tracker, struct bel_mono now)
{
    struct bel_commit_marks *marks = &tracker->marks;
    while (marks->count > 0 && marks->ring[marks->first].asked <= marks->answered) {
        uint64_t ns = now.ns - marks->ring[marks->first].start_ns;
        bel__commit_window_record(&tracker->commits, ns, now);
        marks->first = (marks->first + 1) % BEL_COMMIT_MARKS;
        marks->count--;
    }
}

/* --- requests that are held back --- */

/* Returns whether the backend would hold back a request. */
static bool is_held_back(const struct bel_request_tracker *tracker,
                         const struct bel_request *request)
{
    enum bel_effect effect = bel_verb_effect(request->command.verb);
    uint64_t now = tracker->now.real.ns;
    if (effect == BEL_EFFECT_READ) return false;
    if (effect == BEL_EFFECT_ADD && tracker->next.add.ns > now) return true;
    return tracker->next.change.ns > now;
}

bool bel__caller_is_held(const struct bel_caller *caller)
{
    return !bel__list_is_empty(&caller->held);
}

/* Returns whether a request must wait in its caller. */
static bool must_wait(const struct bel_caller *caller, const struct bel_request *request)
{
    if (!caller->is_unordered && bel__caller_is_held(caller)) return true;
    return is_held_back(caller->tracker, request);
}

/* Holds back a request. It counts as submitted: only the turn that follows tells when the hold
 * ends, because the turn before did not know of the request. */
static void keep(struct bel_caller *caller, struct bel_request *request)
{
    caller->tracker->fresh++;
    if (!bel__caller_is_held(caller)) {
        bel__list_append(&caller->tracker->held, &caller->holds);
    }
    bel__list_append(&caller->held, link_of(request));
    request->done = NULL;
}

/* Takes a caller out of the tracker's list if none of its requests is held back any more. */
static void settle(struct bel_caller *caller)
{
    if (bel__caller_is_held(caller) || !bel__link_is_linked(&caller->holds)) return;
    bel__link_remove(&caller->holds);
}

static void finish(struct bel_request *request, const struct bel_reply *reply);

/* Gives a request to the backend. */
static void pass_on(struct bel_caller *caller, struct bel_request *request)
{
    struct bel_request_tracker *tracker = caller->tracker;
    request->done = finish;
    tracker->fresh++;
    tracker->marks.asked += is_commit(request);
    if (may_wait(request)) {
        bel__list_append(&tracker->waits, link_of(request));
        caller->waiting++;
    }
    tracker->inner->submit(tracker->inner, request);
}

/* Passes on the requests of a caller, up to the first that is still held back. */
static void release(struct bel_caller *caller)
{
    struct bel_link *next;
    for (struct bel_link *link = bel__list_first(&caller->held); link != NULL; link = next) {
        struct bel_request *request = BEL_CONTAINER_OF(link, struct bel_request, via);
        next = bel__list_next(&caller->held, link);
        bool must_stay = is_held_back(caller->tracker, request);
        if (must_stay && !caller->is_unordered) break;
        if (must_stay) continue;
        bel__link_remove(link);
        pass_on(caller, request);
    }
    settle(caller);
}

static void release_all(struct bel_request_tracker *tracker)
{
    struct bel_link *next;
    for (struct bel_link *link = bel__list_first(&tracker->held); link != NULL; link = next) {
        next = bel__list_next(&tracker->held, link);
        release(BEL_CONTAINER_OF(link, struct bel_caller, holds));
    }
}

/* Returns when the next turn is needed, for requests that are held back, too. */
static struct bel_next next_of(const struct bel_request_tracker *tracker)
{
    struct bel_next next = tracker->next;
    uint64_t add = next.add.ns, change = next.change.ns;
    if (bel__list_is_empty(&tracker->held)) return next;
    uint64_t until = add != 0 && (change == 0 || add < change) ? add : change;
    if (until < next.wait.ns) next.wait.ns = until; /* 0: at once */
    return next;
}

/* --- requests --- */

/* Restores the `done` of a request, and stops counting the request. */
static void give_back(struct bel_caller *caller, struct bel_request *request)
{
    struct bel_request_tracker *tracker = caller->tracker;
    assert(tracker->under_way >= caller->under_way);
    tracker->under_way--;
    caller->under_way--;
    if (bel__link_is_linked(link_of(request))) {
        assert(may_wait(request) && caller->waiting > 0);
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
    bool is_failure = reply->err == BEL_EIO || reply->err == BEL_ECORRUPT;
    if (is_failure && !tracker->does_recover) tracker->broken = reply->err;
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
    caller->tracker->marks.answered += is_commit(request);
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
    *link_of(request) = (struct bel_link){NULL, NULL};
    tracker->under_way++;
    caller->under_way++;
    if (tracker->has_holds && must_wait(caller, request)) {
        keep(caller, request);
    } else {
        pass_on(caller, request);
    }
}

static bool withdraw(struct bel_backend *backend, struct bel_request *request)
{
    struct bel_caller *caller = (struct bel_caller *)backend;
    struct bel_request_tracker *tracker = caller->tracker;
    assert(bel__caller_of(request) == caller);
    bool is_kept = request->done == NULL;
    if (is_kept) {
        bel__link_remove(link_of(request));
        settle(caller);
    } else if (!tracker->inner->withdraw(tracker->inner, request)) {
        return false;
    }
    if (!is_kept) tracker->marks.answered += is_commit(request);
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
    *caller = (struct bel_caller){.backend = {.submit = submit, .withdraw = withdraw, .turn = turn},
                                  .tracker = tracker};
    bel__list_init(&caller->held);
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
    struct bel_mono start = bel_clock_mono(tracker->clock);
    tracker->now = now;
    if (tracker->has_holds) release_all(tracker);
    bool is_counted = tracker->fresh > 0;
    tracker->fresh = 0;
    mark_turn(&tracker->marks, start);
    tracker->next = tracker->inner->turn(tracker->inner, now);
    tracker->has_holds = (tracker->next.add.ns | tracker->next.change.ns) != 0 ||
                         !bel__list_is_empty(&tracker->held);
    if (tracker->is_draining) end_waits(tracker);
    struct bel_mono end = bel_clock_mono(tracker->clock);
    bel__meter_record(&tracker->metrics->turn, end.ns - start.ns);
    tracker->metrics->turns += is_counted;
    if (tracker->marks.count > 0) record_commits(tracker, end);
    return tracker->has_holds ? next_of(tracker) : tracker->next;
}

void bel__request_tracker_init(struct bel_request_tracker *tracker, struct bel_backend *inner,
                               struct bel_metrics *metrics, const struct bel_clock *clock)
{
    *tracker = (struct bel_request_tracker){.inner = inner, .metrics = metrics, .clock = clock};
    tracker->next = (struct bel_next){.wait = {BEL_NEVER}};
    bel__list_init(&tracker->waits);
    bel__list_init(&tracker->held);
}

void bel__request_tracker_drain(struct bel_request_tracker *tracker)
{
    tracker->is_draining = true;
    end_waits(tracker);
}
