/* SPDX-License-Identifier: MIT */

/*
 * The parts that every backend shares: the names of states and verbs, the valid names of topics and
 * timers, and bel_backend_call() for programs without a loop.
 */
#include "belfry/backend.h"

#include "core/clock.h"
#include "core/units.h"

#include <assert.h>
#include <poll.h>
#include <string.h>

enum {
    SLEEP_MS_MAX = 1000 /* of bel_backend_call(), which then takes a turn that is not needed */
};

static const char *const states[] = {
    [BEL_SCHEDULED] = "scheduled", [BEL_READY] = "ready",     [BEL_LEASED] = "leased",
    [BEL_BLOCKED] = "blocked",     [BEL_DONE] = "done",       [BEL_DEAD] = "dead",
    [BEL_CANCELLED] = "cancelled", [BEL_EXPIRED] = "expired", [BEL_SKIPPED] = "skipped",
};
static_assert(sizeof states / sizeof states[0] == BEL_STATES, "every state has a name");

static const char *const verbs[] = {
    [BEL_VERB_SCHEDULE] = "schedule",
    [BEL_VERB_CANCEL] = "cancel",
    [BEL_VERB_RESCHEDULE] = "reschedule",
    [BEL_VERB_GET] = "get",
    [BEL_VERB_CLAIM] = "claim",
    [BEL_VERB_ACK] = "ack",
    [BEL_VERB_FAIL] = "fail",
    [BEL_VERB_RELEASE] = "release",
    [BEL_VERB_EXTEND] = "extend",
    [BEL_VERB_LIST] = "list",
    [BEL_VERB_REVIVE] = "revive",
    [BEL_VERB_PURGE] = "purge",
    [BEL_VERB_TOPICS] = "topics",
    [BEL_VERB_TOPIC] = "topic",
    [BEL_VERB_CONFIGURE] = "configure",
    [BEL_VERB_PAUSE] = "pause",
    [BEL_VERB_RESUME] = "resume",
    [BEL_VERB_EXPLAIN] = "explain",
    [BEL_VERB_AGENDA] = "agenda",
    [BEL_VERB_JOB_SUBMIT] = "job_submit",
    [BEL_VERB_JOB_GET] = "job_get",
    [BEL_VERB_JOB_CANCEL] = "job_cancel",
    [BEL_VERB_JOB_LIST] = "job_list",
    [BEL_VERB_JOB_PAUSE] = "job_pause",
    [BEL_VERB_JOB_RESUME] = "job_resume",
    [BEL_VERB_LIMIT] = "limit",
};
static_assert(sizeof verbs / sizeof verbs[0] == BEL_VERBS, "every verb has a name");

/* Topics with these names would be ambiguous with options of CLAIM. */
static const char *const reserved[] = {"COUNT", "LEASE", "WAIT", "WORKER"};

const char *bel_state_name(enum bel_state state)
{
    assert(state < BEL_STATES);
    return states[state];
}

bool bel_state_find(struct bel_view name, enum bel_state *out)
{
    for (unsigned i = 0; i < BEL_STATES; i++) {
        if (name.bytes != strlen(states[i])) continue;
        if (memcmp(name.data, states[i], name.bytes) != 0) continue;
        *out = (enum bel_state)i;
        return true;
    }
    return false;
}

const char *bel_verb_name(enum bel_verb verb)
{
    assert(verb < BEL_VERBS);
    return verbs[verb];
}

enum bel_effect bel_verb_effect(enum bel_verb verb)
{
    switch (verb) {
    case BEL_VERB_GET:
    case BEL_VERB_LIST:
    case BEL_VERB_TOPICS:
    case BEL_VERB_TOPIC:
    case BEL_VERB_EXPLAIN:
    case BEL_VERB_AGENDA:
    case BEL_VERB_JOB_GET:
    case BEL_VERB_JOB_LIST:
        return BEL_EFFECT_READ;
    case BEL_VERB_SCHEDULE:
    case BEL_VERB_REVIVE:
    case BEL_VERB_JOB_SUBMIT:
        return BEL_EFFECT_ADD;
    default:
        return BEL_EFFECT_CHANGE;
    }
}

static bool is_word(char c)
{
    if (c >= 'a' && c <= 'z') return true;
    if (c >= 'A' && c <= 'Z') return true;
    if (c >= '0' && c <= '9') return true;
    return c == '.' || c == '_' || c == ':' || c == '/' || c == '-';
}

static bool is_name(struct bel_view name, size_t bytes_max)
{
    if (name.bytes == 0 || name.bytes > bytes_max) return false;
    const char *text = name.data;
    for (size_t i = 0; i < name.bytes; i++) {
        if (!is_word(text[i])) return false;
    }
    return true;
}

static bool is_reserved(struct bel_view name)
{
    for (size_t i = 0; i < sizeof reserved / sizeof reserved[0]; i++) {
        if (name.bytes != strlen(reserved[i])) continue;
        if (strncasecmp(name.data, reserved[i], name.bytes) == 0) return true;
    }
    return false;
}

/* Returns whether a part of a name between slashes is empty: "/a", "a//b", "a/". */
static bool has_empty_part(struct bel_view name)
{
    const char *text = name.data;
    for (size_t i = 0; i < name.bytes; i++) {
        bool is_slash = text[i] == '/', is_last = i + 1 == name.bytes;
        if (is_slash && (i == 0 || is_last || text[i + 1] == '/')) return true;
    }
    return false;
}

bool bel_topic_is_valid(struct bel_view topic)
{
    return is_name(topic, BEL_TOPIC_BYTES_MAX) && !is_reserved(topic);
}

bool bel_resource_is_valid(struct bel_view name)
{
    return is_name(name, BEL_TOPIC_BYTES_MAX) && !has_empty_part(name);
}

const char *bel_breaker_name(enum bel_breaker breaker)
{
    static const char *const names[] = {[BEL_BREAKER_CLOSED] = "closed",
                                        [BEL_BREAKER_OPEN] = "open",
                                        [BEL_BREAKER_HALF_OPEN] = "half_open"};
    static_assert(sizeof names / sizeof names[0] == BEL_BREAKERS, "every state has a name");
    assert(breaker < BEL_BREAKERS);
    return names[breaker];
}

bool bel_id_is_valid(struct bel_view id)
{
    return is_name(id, BEL_ID_BYTES_MAX);
}

void bel_backend_submit(struct bel_backend *backend, struct bel_request *request)
{
    assert(request->done != NULL);
    assert(request->command.verb < BEL_VERBS);
    backend->submit(backend, request);
}

bool bel_backend_withdraw(struct bel_backend *backend, struct bel_request *request)
{
    return backend->withdraw(backend, request);
}

struct bel_next bel_backend_turn(struct bel_backend *backend, struct bel_now now)
{
    return backend->turn(backend, now);
}

int bel_backend_descriptor(const struct bel_backend *backend)
{
    return backend->descriptor != NULL ? backend->descriptor(backend) : -1;
}

struct bel_now bel_clock_now(const struct bel_clock *clock)
{
    struct bel_now now = {.boot = bel_clock_boot(clock)}; /* first: see belfry/backend.h */
    now.wall = bel__clock_wall(clock, &now.wall_rest_ns);
    now.real = bel_clock_mono(clock);
    return now;
}

/* The fields of a request that bel_backend_call() replaces until it is done. */
struct call {
    void (*done)(struct bel_request *request, const struct bel_reply *reply);
    void *user;
    bool is_done;
    int err; /* if is_done */
};

static void put_back(struct bel_request *request)
{
    const struct call *call = request->user;
    request->done = call->done;
    request->user = call->user;
}

static void end_call(struct bel_request *request, const struct bel_reply *reply)
{
    struct call *call = request->user;
    put_back(request);
    call->err = reply->err;
    call->is_done = true;
    if (request->done != NULL) request->done(request, reply);
}

static bool may_wait(const struct bel_request *request)
{
    return request->command.verb == BEL_VERB_CLAIM && request->command.claim.wait_ms > 0;
}

/* Sleeps until the descriptor of a backend, if it has one, is readable; or the next turn is due. */
static void await(const struct bel_backend *backend, struct bel_next next, struct bel_now now)
{
    struct pollfd poller = {.fd = bel_backend_descriptor(backend), .events = POLLIN};
    if (poller.fd < 0 || next.due.ns <= now.boot.ns || next.wait.ns <= now.real.ns) return;
    uint64_t due_ns = next.due.ns - now.boot.ns, wait_ns = next.wait.ns - now.real.ns;
    uint64_t ms = (due_ns < wait_ns ? due_ns : wait_ns) / NS_PER_MS + 1;
    (void)poll(&poller, 1, ms < SLEEP_MS_MAX ? (int)ms : SLEEP_MS_MAX);
}

int bel_backend_call(struct bel_backend *backend, const struct bel_clock *clock,
                     struct bel_request *request)
{
    struct call call = {.done = request->done, .user = request->user};
    request->done = end_call;
    request->user = &call; /* cppcheck-suppress autoVariables; it is restored */
    bel_backend_submit(backend, request);
    for (;;) {
        struct bel_now now = bel_clock_now(clock);
        struct bel_next next = bel_backend_turn(backend, now);
        if (call.is_done) return call.err;
        bool is_due = next.due.ns <= now.boot.ns;
        if (!is_due && may_wait(request) && bel_backend_withdraw(backend, request)) break;
        await(backend, next, now);
    }
    put_back(request);
    return BEL_EBUSY;
}

const char *bel_wait_name(enum bel_wait wait)
{
    static const char *const names[BEL_WAITS] = {
        [BEL_WAIT_TIME] = "time",
        [BEL_WAIT_BLOCKED] = "blocked",
        [BEL_WAIT_PAUSED] = "paused",
        [BEL_WAIT_RESOURCE] = "resource",
        [BEL_WAIT_CONCURRENCY] = "concurrency",
        [BEL_WAIT_WORKER] = "worker",
    };
    assert(wait < BEL_WAITS);
    return names[wait];
}
