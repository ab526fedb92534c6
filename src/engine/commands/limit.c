/* SPDX-License-Identifier: MIT */

/*
 * LIMIT: lists, sets, clears and deletes the limits of resources. All values are checked before
 * anything is changed. LIMIT CLEAR clears CLEARS_MAX resources in a turn.
 */
#include "belfry/duration.h"
#include "core/view.h"
#include "engine/commands/commands.h"
#include "engine/state/state.h"

#include <assert.h>
#include <stdio.h>

enum {
    LIST_COUNT = 100,
    CLEARS_MAX = 500,
    RATE_BYTES = 64,
};

#define CONCURRENCY_MAX UINT64_C(1000000)
#define FAILURES_MAX    UINT64_C(1000000)
#define BREAKER_MS_MAX  UINT64_C(86400000)

static const struct bel_view all_name = {.data = "*", .bytes = 1};

static bool is_all(struct bel_view name)
{
    return bel__view_equal(name, all_name);
}

/* --- checks --- */

int bel__refuse_resource(struct bel_reply *reply, struct bel_view name)
{
    int shown = name.bytes <= BEL_TOPIC_BYTES_MAX ? (int)name.bytes : BEL_TOPIC_BYTES_MAX;
    return bel__refuse(reply, BEL_EINVAL,
                       "invalid resource '%.*s': use 1 to %d of A-Z a-z 0-9 . _ : / - "
                       "without an empty part",
                       shown, (const char *)name.data, BEL_TOPIC_BYTES_MAX);
}

/* Resources that are stored may have names that are refused today. */
static int check_name(struct bel_engine *engine, struct bel_view name, struct bel_reply *reply)
{
    if (is_all(name) || bel_resource_is_valid(name)) return 0;
    if (bel_id_is_valid(name) && bel__resource_find(engine, name) != NULL) return 0;
    return bel__refuse_resource(reply, name);
}

/* Refuses a number that is not from `least` to `most`. */
static int check_range(struct bel_reply *reply, const char *what, uint64_t value, uint64_t least,
                       uint64_t most)
{
    if (value >= least && value <= most) return 0;
    return bel__refuse(reply, BEL_EINVAL, "%s must be from %llu to %llu", what,
                       (unsigned long long)least, (unsigned long long)most);
}

static int check_breaker(const struct bel_limit *limit, struct bel_reply *reply)
{
    if (!limit->has_breaker) return 0;
    if (is_all(limit->resource)) {
        return bel__refuse(reply, BEL_EINVAL, "the resource * has no breaker: no failure names it");
    }
    int err = check_range(reply, "BREAKER", limit->breaker_failures, 0, FAILURES_MAX);
    if (err == 0) err = check_range(reply, "OPEN (ms)", limit->breaker_open_ms, 0, BREAKER_MS_MAX);
    if (err == 0) err = check_range(reply, "MAX (ms)", limit->breaker_max_ms, 0, BREAKER_MS_MAX);
    if (err) return err;
    uint64_t open = limit->breaker_open_ms > 0 ? limit->breaker_open_ms : BEL_BREAKER_OPEN_MS;
    if (limit->breaker_max_ms > 0 && limit->breaker_max_ms < open) {
        return bel__refuse(reply, BEL_EINVAL, "MAX is shorter than OPEN");
    }
    return 0;
}

static int check(struct bel_engine *engine, const struct bel_limit *limit, struct bel_reply *reply)
{
    int err = check_name(engine, limit->resource, reply);
    bool has_rate = limit->has_rate && (limit->rate_count > 0 || limit->rate_ms > 0);
    if (err == 0 && has_rate) {
        err = check_range(reply, "the number of RATE", limit->rate_count, 1, BEL_RATE_COUNT_MAX);
        if (err == 0) {
            err =
                check_range(reply, "the duration of RATE (ms)", limit->rate_ms, 1, BEL_RATE_MS_MAX);
        }
    }
    if (err == 0 && limit->has_burst) {
        err = check_range(reply, "BURST", limit->burst, 1, BEL_BURST_MAX);
    }
    if (err == 0 && limit->has_concurrency) {
        err = check_range(reply, "CONCURRENCY", limit->concurrency, 0, CONCURRENCY_MAX);
    }
    return err == 0 ? check_breaker(limit, reply) : err;
}

/* --- showing --- */

static struct bel_wall wall_of(const struct bel_engine *engine, uint64_t time)
{
    return (struct bel_wall){(int64_t)bel__lane_wall(&engine->now, BEL_LANE_ENGINE, time)};
}

static enum bel_breaker breaker_of(const struct bel_engine *engine, const struct bel_limits *limits)
{
    if (!limits->is_open) return BEL_BREAKER_CLOSED;
    return bel__limits_are_half_open(limits, engine->now.engine) ? BEL_BREAKER_HALF_OPEN
                                                                 : BEL_BREAKER_OPEN;
}

/* Copies the reports of the last hour into the answer. */
static int show_reports(struct bel_engine *engine, const struct bel_resource *resource,
                        struct bel_limit_state *out)
{
    struct bel_resource_reports reports = {0};
    if (resource->reports != NULL) reports = *resource->reports;
    bel__reports_trim(&reports, engine->now.engine);
    if (reports.count == 0) return 0;
    struct bel_limit_report *items = bel__answer_take(engine, reports.count * sizeof *items);
    if (items == NULL) return BEL_ENOMEM;
    for (uint32_t i = 0; i < reports.count; i++) {
        const struct bel_resource_report *report = &reports.items[i];
        struct bel_view who = {report->who, report->who_bytes};
        if (who.bytes > 0) who = bel__answer_copy(engine, who);
        if (who.data == NULL) return BEL_ENOMEM;
        items[i] = (struct bel_limit_report){
            .who = who, .at = wall_of(engine, report->at), .for_ms = report->for_ms};
    }
    out->reports = items;
    out->reports_count = reports.count;
    return 0;
}

/* Prints a rate as text that LIMIT accepts. */
static int show_rate(struct bel_engine *engine, const struct bel_limits *limits,
                     struct bel_view *out)
{
    char text[RATE_BYTES], duration[BEL_DURATION_BYTES];
    if (limits->rate_count == 0) return 0;
    (void)bel_duration_print(limits->rate_ms, duration, sizeof duration);
    int bytes =
        snprintf(text, sizeof text, "%llu/%s", (unsigned long long)limits->rate_count, duration);
    *out = bel__answer_copy(engine, (struct bel_view){text, (size_t)bytes});
    return out->data == NULL ? BEL_ENOMEM : 0;
}

/* Fills in what workers did with the timers that name a resource. */
static void show_work(const struct bel_engine *engine, const struct bel_resource *resource,
                      struct bel_limit_state *out)
{
    const struct bel_work *work = bel__work_of_resource(engine, bel__resource_name(resource));
    uint64_t now = engine->now.engine;
    if (work == NULL) return;
    out->claimed = work->claimed;
    out->completed = work->done;
    out->failed = work->failed;
    out->claims_per_minute = bel__rate_of(&work->claims, now);
    out->completions_per_minute = bel__rate_of(&work->dones, now);
    out->failures_per_minute = bel__rate_of(&work->fails, now);
}

static struct bel_view word_of(enum bel_closed_by closed)
{
    static const struct bel_view words[] = {
        [BEL_CLOSED_BY_NOTHING] = {.data = NULL, .bytes = 0},
        [BEL_CLOSED_BY_LIMIT] = {.data = "limited", .bytes = 7},
        [BEL_CLOSED_BY_BREAKER] = {.data = "breaker", .bytes = 7},
        [BEL_CLOSED_BY_RATE] = {.data = "rate", .bytes = 4},
        [BEL_CLOSED_BY_CONCURRENCY] = {.data = "concurrency", .bytes = 11},
    };
    assert((size_t)closed < sizeof words / sizeof words[0]);
    return words[closed];
}

static int show(struct bel_engine *engine, const struct bel_resource *resource,
                struct bel_limit_state *out)
{
    const struct bel_limits *limits = &resource->limits;
    uint64_t now = engine->now.engine;
    *out = (struct bel_limit_state){
        .name = bel__answer_copy(engine, bel__resource_name(resource)),
        .rate_count = limits->rate_count,
        .rate_ms = limits->rate_ms,
        .burst = limits->burst == 0 ? 1 : limits->burst,
        .concurrency = limits->concurrency,
        .running = resource->leases,
        .breaker = breaker_of(engine, limits),
        .breaker_failures = limits->breaker_failures,
        .breaker_open_ms = limits->breaker_open_ms,
        .breaker_max_ms = limits->breaker_max_ms,
        .failures = limits->failures,
    };
    if (out->name.data == NULL) return BEL_ENOMEM;
    uint64_t until;
    enum bel_closed_by closed = bel__limits_closed(limits, now, resource->leases, &until);
    out->closed_by = word_of(closed);
    if (closed != BEL_CLOSED_BY_NOTHING) out->parked = resource->gate.timers;
    show_work(engine, resource, out);
    if (now < limits->until) out->limited_until = wall_of(engine, limits->until);
    if (out->breaker == BEL_BREAKER_OPEN) {
        out->breaker_until = wall_of(engine, limits->breaker_until);
    }
    int err = show_rate(engine, limits, &out->rate);
    return err ? err : show_reports(engine, resource, out);
}

static int show_one(struct bel_engine *engine, const struct bel_resource *resource,
                    struct bel_reply *reply)
{
    struct bel_limit_state *state = bel__answer_take(engine, sizeof *state);
    int err = state == NULL ? BEL_ENOMEM : show(engine, resource, state);
    if (err) return err;
    reply->limits.items = state;
    reply->limits.count = 1;
    reply->limits.cursor = (struct bel_view){0};
    return 0;
}

/* Returns the first resource after `name` that a list shows, or NULL. */
static const struct bel_resource *next_shown(struct bel_engine *engine, struct bel_view name)
{
    const struct bel_resource *resource = bel__resource_after(engine, name);
    while (resource != NULL && !bel__resource_is_shown(engine, resource)) {
        resource = bel__resource_after(engine, bel__resource_name(resource));
    }
    return resource;
}

static int list(struct bel_engine *engine, const struct bel_limit *limit, struct bel_reply *reply)
{
    uint32_t most = limit->count == 0 ? LIST_COUNT : limit->count;
    struct bel_view after = limit->cursor;
    if (most > BEL_LIST_COUNT_MAX) {
        return bel__refuse(reply, BEL_EINVAL, "the count is at most %d", BEL_LIST_COUNT_MAX);
    }
    if (after.bytes > 0 && !is_all(after) && !bel_id_is_valid(after)) {
        return bel__refuse(reply, BEL_EINVAL, "invalid cursor");
    }
    struct bel_limit_state *states = bel__answer_take(engine, most * sizeof *states);
    if (states == NULL) return BEL_ENOMEM;
    size_t count = 0;
    const struct bel_resource *resource = next_shown(engine, after);
    while (resource != NULL && count < most) {
        int err = show(engine, resource, &states[count++]);
        if (err) return err;
        resource = next_shown(engine, bel__resource_name(resource));
    }
    reply->limits.items = states;
    reply->limits.count = count;
    reply->limits.cursor = (struct bel_view){0};
    if (resource != NULL) reply->limits.cursor = states[count - 1].name;
    return 0;
}

/* --- changing --- */

static void set_breaker(struct bel_limits *limits, const struct bel_limit *limit)
{
    uint64_t open = limit->breaker_open_ms > 0 ? limit->breaker_open_ms : BEL_BREAKER_OPEN_MS;
    uint64_t most = open > BEL_BREAKER_MAX_MS ? open : BEL_BREAKER_MAX_MS;
    limits->breaker_failures = limit->breaker_failures;
    limits->breaker_open_ms = open;
    limits->breaker_max_ms = limit->breaker_max_ms > 0 ? limit->breaker_max_ms : most;
    if (limit->breaker_failures == 0) bel__limits_close_breaker(limits);
}

/* Returns a resource that is in use or has a limit; NULL if there is none. */
static struct bel_resource *find(struct bel_engine *engine, struct bel_view name)
{
    struct bel_resource *resource = bel__resource_find(engine, name);
    if (resource == NULL || is_all(name)) return resource;
    return bel__resource_is_shown(engine, resource) ? resource : NULL;
}

static int refuse_unknown(struct bel_reply *reply, struct bel_view name)
{
    return bel__refuse(reply, BEL_ENOTFOUND, "resource '%.*s' does not exist", (int)name.bytes,
                       (const char *)name.data);
}

static int set(struct bel_engine *engine, const struct bel_limit *limit, struct bel_reply *reply)
{
    bool changes = limit->has_rate || limit->has_burst || limit->has_concurrency ||
                   limit->has_until || limit->has_breaker;
    struct bel_resource *resource = find(engine, limit->resource);
    if (!changes) {
        return resource == NULL ? refuse_unknown(reply, limit->resource)
                                : show_one(engine, resource, reply);
    }
    int err = bel__resource_take(engine, limit->resource, &resource);
    if (err) return err;
    err = bel__rows_reserve(&engine->rows, 1, BEL_RESOURCE_ROW_BYTES, BEL_STORE_END);
    if (err == 0 && limit->has_until) {
        err = bel__resource_limit(engine, resource, limit->until_ms, (struct bel_view){0});
    }
    if (err) {
        bel__resource_leave(engine, resource);
        return err;
    }
    struct bel_limits *limits = &resource->limits;
    if (limit->has_rate) {
        bel__limits_set_rate(limits, engine->now.engine, limit->rate_count, limit->rate_ms);
    }
    if (limit->has_burst) limits->burst = limit->burst;
    if (limit->has_concurrency) limits->concurrency = limit->concurrency;
    if (limit->has_breaker) set_breaker(limits, limit);
    bel__resource_changed(engine, resource);
    return show_one(engine, resource, reply);
}

/* Clears a known resource: a mistyped name must not be answered like one that is open. */
static int clear(struct bel_engine *engine, const struct bel_limit *limit, struct bel_reply *reply)
{
    struct bel_resource *resource = find(engine, limit->resource);
    if (resource == NULL) return refuse_unknown(reply, limit->resource);
    int err = bel__rows_reserve(&engine->rows, 1, BEL_RESOURCE_ROW_BYTES, BEL_STORE_END);
    bool has_failed = resource->limits.failures > 0;
    if (err == 0 && (bel__limits_clear(&resource->limits, engine->now.engine) || has_failed)) {
        bel__limits_close_breaker(&resource->limits); /* and forget failures in a row */
        bel__resource_changed(engine, resource);
    }
    if (err == 0) err = show_one(engine, resource, reply);
    bel__resource_leave(engine, resource);
    return err;
}

/* The request keeps how many are left to look at, and how many were limited. */
static int clear_all(struct bel_engine *engine, struct bel_request *request)
{
    uint64_t *left = &request->own.words[BEL_OWN_FREE];
    struct bel_reply *reply = &request->own.reply;
    if (request->own.words[BEL_OWN_STAGE] != BEL_STAGE_BULK) {
        *left = bel__resources_limited(engine);
        reply->limits.changed = 0;
    }
    for (int i = 0; i<CLEARS_MAX && * left> 0; i++, --*left) {
        int err = bel__rows_reserve(&engine->rows, 1, BEL_RESOURCE_ROW_BYTES, BEL_STORE_END);
        if (err == BEL_EBUSY) return BEL_DO_LATER; /* the batch is full */
        if (err) return err;
        struct bel_resource *resource = bel__resources_first_limited(engine);
        if (resource == NULL) return 0;
        if (!bel__limits_clear(&resource->limits, engine->now.engine)) continue;
        reply->limits.changed++;
        bel__resource_changed(engine, resource);
    }
    return *left > 0 ? BEL_DO_LATER : 0;
}

static int delete (struct bel_engine *engine, const struct bel_limit *limit,
                   struct bel_reply *reply)
{
    struct bel_resource *resource = bel__resource_find(engine, limit->resource);
    reply->limits.changed = 0;
    if (resource == NULL) return 0;
    if (!resource->has_row && !bel__resource_has_limits(engine, resource)) return 0;
    int err = bel__rows_reserve(&engine->rows, 1, BEL_RESOURCE_ROW_BYTES, BEL_STORE_END);
    if (err) return err;
    reply->limits.changed = bel__resource_has_limits(engine, resource);
    bel__resource_reset(engine, resource);
    return 0;
}

int bel__do_limit(struct bel_engine *engine, struct bel_request *request)
{
    const struct bel_limit *limit = &request->command.limit;
    struct bel_reply *reply = &request->own.reply;
    reply->limits.action = limit->action;
    if (limit->action == BEL_LIMIT_LIST) return list(engine, limit, reply);
    if (limit->action == BEL_LIMIT_CLEAR_ALL) return clear_all(engine, request);
    int err = check(engine, limit, reply);
    if (err) return err;
    switch (limit->action) {
    case BEL_LIMIT_SET:
        return set(engine, limit, reply);
    case BEL_LIMIT_CLEAR:
        return clear(engine, limit, reply);
    case BEL_LIMIT_DELETE:
        return delete (engine, limit, reply);
    default:
        return bel__refuse(reply, BEL_EINVAL, "unknown action of LIMIT");
    }
}
