/* SPDX-License-Identifier: MIT */

/*
 * Resources: limits, and LIMIT. A timer needs its resource, those above it by name, and `*`. How
 * many leases a resource has is counted each time; a probe is a live lease with its token.
 */
#include "inside.h"

#include "belfry/duration.h"
#include "core/utf8.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    BREAKER_FAILURES = 5,
    BREAKER_OPEN_MS = 30000,
    BREAKER_MAX_MS = 300000,
    LIMITED_MS_MAX = 86400000,
    RATE_MS_MAX = 86400000,
    BREAKER_MS_MAX = 86400000,
    BURST_MAX = 1000000,
    NUMBERS_MAX = 1000000,
    RATE_MAX = 1000000000,
    LIST_COUNT = 100,
    HOUR_MS = 3600000,
    WHO_BYTES = 32,
    RATE_BYTES = 64,
};

static bool is_all(struct bel_view name)
{
    return model_same(name, model_text("*"));
}

/* Returns whether the resource `above` holds for timers with the resource `name`. */
static bool holds_for(struct bel_view above, struct bel_view name)
{
    if (is_all(above)) return true;
    if (above.bytes > name.bytes || above.bytes == 0) return false;
    if (memcmp(above.data, name.data, above.bytes) != 0) return false;
    return above.bytes == name.bytes || ((const char *)name.data)[above.bytes] == '/';
}

static struct resource *find(struct model *model, struct bel_view name)
{
    for (size_t i = 0; i < model->resources.count; i++) {
        struct resource *resource = model->resources.items[i];
        if (model_same(model_view(resource->name), name)) return resource;
    }
    return NULL;
}

static void set_defaults(struct resource *resource)
{
    struct bytes name = resource->name;
    for (size_t i = 0; i < resource->reports_count; i++) {
        model_free(&resource->reports[i].who);
    }
    *resource = (struct resource){.name = name,
                                  .breaker_failures = BREAKER_FAILURES,
                                  .breaker_open_ms = BREAKER_OPEN_MS,
                                  .breaker_max_ms = BREAKER_MAX_MS};
}

static struct resource *make(struct model *model, struct bel_view name)
{
    struct resource *resource = find(model, name);
    if (resource != NULL) return resource;
    resource = model_alloc(sizeof *resource);
    resource->name = model_copy(name);
    set_defaults(resource);
    model_list_add(&model->resources, resource);
    return resource;
}

void model_resource_free(struct resource *resource)
{
    set_defaults(resource);
    model_free(&resource->name);
    free(resource);
}

static uint64_t count_leases(struct model *model, struct bel_view name)
{
    uint64_t count = 0;
    for (size_t i = 0; i < model->timers.count; i++) {
        const struct timer *timer = model_timer_at(model, i);
        if (timer->state != BEL_LEASED) continue;
        if (holds_for(name, model_view(timer->resource))) count++;
    }
    return count;
}

/* Returns whether the probe of a resource is still leased. */
static bool has_probe(struct model *model, const struct resource *resource)
{
    return resource->probe[0] != 0 &&
           model_timer_of_token(model, model_text(resource->probe)) != NULL;
}

static int64_t interval_us(const struct resource *resource)
{
    int64_t us = (int64_t)resource->rate_ms * 1000, count = (int64_t)resource->rate_count;
    return (us + count - 1) / count;
}

static bool is_closed(struct model *model, const struct resource *resource)
{
    if (model->engine_ms < resource->until_ms) return true;
    if (resource->is_open) {
        if (model->engine_ms < resource->breaker_until_ms) return true;
        if (has_probe(model, resource)) return true;
    }
    if (resource->rate_count > 0) {
        int64_t burst = resource->burst > 0 ? (int64_t)resource->burst : 1;
        int64_t from_us = resource->full_us - (burst - 1) * interval_us(resource);
        if (model->engine_ms * 1000 < from_us) return true;
    }
    return resource->concurrency > 0 &&
           count_leases(model, model_view(resource->name)) >= resource->concurrency;
}

bool model_resource_closed(struct model *model, const struct timer *timer)
{
    for (size_t i = 0; i < model->resources.count; i++) {
        const struct resource *resource = model->resources.items[i];
        if (!holds_for(model_view(resource->name), model_view(timer->resource))) continue;
        if (is_closed(model, resource)) return true;
    }
    return false;
}

void model_resource_take(struct model *model, const struct timer *timer)
{
    for (size_t i = 0; i < model->resources.count; i++) {
        struct resource *resource = model->resources.items[i];
        if (!holds_for(model_view(resource->name), model_view(timer->resource))) continue;
        if (resource->rate_count > 0) {
            int64_t now_us = model->engine_ms * 1000;
            int64_t from_us = resource->full_us > now_us ? resource->full_us : now_us;
            resource->full_us = from_us + interval_us(resource);
        }
        if (resource->is_open) {
            (void)snprintf(resource->probe, sizeof resource->probe, "%s", timer->token);
        }
    }
}

static void open_breaker(const struct model *model, struct resource *resource)
{
    uint64_t delay_ms = resource->breaker_open_ms;
    for (uint64_t i = 0; i < resource->openings && delay_ms < resource->breaker_max_ms; i++) {
        delay_ms *= 2;
    }
    if (delay_ms > resource->breaker_max_ms) delay_ms = resource->breaker_max_ms;
    resource->is_open = true;
    resource->probe[0] = 0;
    resource->openings++;
    resource->breaker_until_ms = model->engine_ms + (int64_t)delay_ms;
}

static void close_breaker(struct resource *resource)
{
    resource->is_open = false;
    resource->probe[0] = 0;
    resource->failures = resource->openings = 0;
}

/* Ends the lease of a timer for one resource. */
static void end_for(struct model *model, struct resource *resource, const struct timer *timer,
                    enum ending ending)
{
    bool is_own = model_same(model_view(resource->name), model_view(timer->resource));
    if (resource->is_open) {
        if (strcmp(resource->probe, timer->token) != 0) return;
        if (ending == ENDING_ACK) close_breaker(resource);
        if (ending == ENDING_FAIL || ending == ENDING_LOST) open_breaker(model, resource);
        return;
    }
    if (!is_own) return;
    if (ending == ENDING_ACK) resource->failures = 0;
    if (ending != ENDING_FAIL || resource->breaker_failures == 0) return;
    resource->failures++;
    if (resource->failures >= resource->breaker_failures) open_breaker(model, resource);
}

void model_resource_end(struct model *model, const struct timer *timer, enum ending ending)
{
    if (timer->resource.count == 0) return;
    if (ending == ENDING_FAIL) (void)make(model, model_view(timer->resource));
    for (size_t i = 0; i < model->resources.count; i++) {
        struct resource *resource = model->resources.items[i];
        if (is_all(model_view(resource->name))) continue;
        if (!holds_for(model_view(resource->name), model_view(timer->resource))) continue;
        end_for(model, resource, timer, ending);
    }
}

static void report(struct model *model, struct resource *resource, uint64_t ms, struct bel_view who)
{
    if (resource->reports_count == MODEL_REPORTS) {
        model_free(&resource->reports[MODEL_REPORTS - 1].who);
        resource->reports_count--;
    }
    memmove(&resource->reports[1], &resource->reports[0],
            resource->reports_count * sizeof resource->reports[0]);
    who = bel__utf8_head(who, WHO_BYTES);
    resource->reports[0] = (struct report){model_copy(who), model->engine_ms, ms};
    resource->reports_count++;
}

int64_t model_resource_limit(struct model *model, struct bel_view name, uint64_t ms,
                             struct bel_view who)
{
    struct resource *resource = make(model, name);
    if (ms > LIMITED_MS_MAX) ms = LIMITED_MS_MAX;
    report(model, resource, ms, who);
    int64_t until_ms = model->engine_ms + (int64_t)ms;
    if (until_ms > resource->until_ms) resource->until_ms = until_ms;
    return resource->until_ms;
}

/* --- LIMIT --- */

static size_t count_reports(const struct model *model, const struct resource *resource)
{
    size_t count = resource->reports_count;
    while (count > 0 && resource->reports[count - 1].at_ms < model->engine_ms - HOUR_MS) {
        count--;
    }
    return count;
}

static bool has_limits(const struct model *model, const struct resource *resource)
{
    return resource->rate_count > 0 || resource->burst > 0 || resource->concurrency > 0 ||
           resource->breaker_failures != BREAKER_FAILURES ||
           resource->breaker_open_ms != BREAKER_OPEN_MS ||
           resource->breaker_max_ms != BREAKER_MAX_MS || resource->until_ms > model->engine_ms ||
           resource->is_open || resource->failures > 0 || count_reports(model, resource) > 0;
}

/* Returns whether a ready timer has exactly this resource. */
static bool is_wanted(struct model *model, struct bel_view name)
{
    for (size_t i = 0; i < model->timers.count; i++) {
        const struct timer *timer = model_timer_at(model, i);
        if (timer->state == BEL_READY && model_same(model_view(timer->resource), name)) return true;
    }
    return false;
}

static bool is_shown(struct model *model, const struct resource *resource)
{
    struct bel_view name = model_view(resource->name);
    return has_limits(model, resource) || count_leases(model, name) > 0 || is_wanted(model, name);
}

static enum bel_breaker breaker_of(const struct model *model, const struct resource *resource)
{
    if (!resource->is_open) return BEL_BREAKER_CLOSED;
    return model->engine_ms >= resource->breaker_until_ms ? BEL_BREAKER_HALF_OPEN
                                                          : BEL_BREAKER_OPEN;
}

static struct bel_view print_rate(struct model *model, const struct resource *resource)
{
    char *text = model_piece(model, RATE_BYTES), duration[BEL_DURATION_BYTES];
    if (resource->rate_count == 0) return (struct bel_view){NULL, 0};
    (void)bel_duration_print(resource->rate_ms, duration, sizeof duration);
    int bytes = snprintf(text, RATE_BYTES, "%" PRIu64 "/%s", resource->rate_count, duration);
    return (struct bel_view){text, (size_t)bytes};
}

static void show(struct model *model, const struct resource *resource, struct bel_limit_state *out)
{
    size_t count = count_reports(model, resource);
    struct bel_limit_report *reports = model_piece(model, (count + 1) * sizeof *reports);
    for (size_t i = 0; i < count; i++) {
        reports[i] =
            (struct bel_limit_report){.who = model_kept(model, resource->reports[i].who),
                                      .at = {resource->reports[i].at_ms + model->difference_ms},
                                      .for_ms = resource->reports[i].for_ms};
    }
    *out = (struct bel_limit_state){
        .name = model_kept(model, resource->name),
        .rate_count = resource->rate_count,
        .rate_ms = resource->rate_ms,
        .rate = print_rate(model, resource),
        .burst = resource->burst > 0 ? resource->burst : 1,
        .concurrency = resource->concurrency,
        .running = count_leases(model, model_view(resource->name)),
        .breaker = breaker_of(model, resource),
        .breaker_failures = resource->breaker_failures,
        .breaker_open_ms = resource->breaker_open_ms,
        .breaker_max_ms = resource->breaker_max_ms,
        .failures = resource->failures,
        .reports = reports,
        .reports_count = count,
    };
    if (resource->until_ms > model->engine_ms) {
        out->limited_until.ms = resource->until_ms + model->difference_ms;
    }
    if (out->breaker == BEL_BREAKER_OPEN) {
        out->breaker_until.ms = resource->breaker_until_ms + model->difference_ms;
    }
}

static int show_one(struct model *model, const struct resource *resource, struct bel_reply *reply)
{
    struct bel_limit_state *state = model_piece(model, sizeof *state);
    show(model, resource, state);
    reply->limits.items = state;
    reply->limits.count = 1;
    return 0;
}

/* Makes entries for resources that are known only because timers use them. */
static void meet_all(struct model *model)
{
    for (size_t i = 0; i < model->timers.count; i++) {
        const struct timer *timer = model_timer_at(model, i);
        struct bel_view name = model_view(timer->resource);
        if (timer->state == BEL_LEASED) (void)make(model, model_text("*"));
        if (timer->state != BEL_LEASED && timer->state != BEL_READY) continue;
        for (size_t bytes = 1; bytes <= name.bytes; bytes++) {
            bool ends = bytes == name.bytes || ((const char *)name.data)[bytes] == '/';
            if (ends) (void)make(model, (struct bel_view){name.data, bytes});
        }
    }
}

static int compare(struct bel_view a, struct bel_view b)
{
    size_t bytes = a.bytes < b.bytes ? a.bytes : b.bytes;
    int order = memcmp(a.data, b.data, bytes);
    return order != 0 ? order : (a.bytes > b.bytes) - (a.bytes < b.bytes);
}

/* Returns the first shown resource with a name after `after`, or NULL. */
static struct resource *next_shown(struct model *model, struct bel_view after)
{
    struct resource *first = NULL;
    for (size_t i = 0; i < model->resources.count; i++) {
        struct resource *resource = model->resources.items[i];
        if (!is_shown(model, resource)) continue;
        struct bel_view name = model_view(resource->name);
        if (after.bytes > 0 && compare(name, after) <= 0) continue;
        if (first == NULL || compare(name, model_view(first->name)) < 0) first = resource;
    }
    return first;
}

static int list(struct model *model, const struct bel_limit *limit, struct bel_reply *reply)
{
    size_t most = limit->count == 0 ? LIST_COUNT : limit->count, count = 0;
    struct bel_view after = limit->cursor;
    if (most > BEL_LIST_COUNT_MAX) return model_refuse(reply, BEL_EINVAL, "count");
    if (after.bytes > 0 && !is_all(after) && !bel_resource_is_valid(after)) {
        return model_refuse(reply, BEL_EINVAL, "cursor");
    }
    meet_all(model);
    struct bel_limit_state *states = model_piece(model, (most + 1) * sizeof *states);
    struct resource *resource = next_shown(model, after);
    for (; resource != NULL && count < most; resource = next_shown(model, after)) {
        after = model_view(resource->name);
        show(model, resource, &states[count++]);
    }
    reply->limits.items = states;
    reply->limits.count = count;
    if (resource != NULL) reply->limits.cursor = states[count - 1].name;
    return 0;
}

static const char *find_fault(const struct bel_limit *limit)
{
    uint64_t open_ms = limit->breaker_open_ms > 0 ? limit->breaker_open_ms : BREAKER_OPEN_MS;
    if (!is_all(limit->resource) && !bel_resource_is_valid(limit->resource)) return "resource";
    bool has_rate = limit->has_rate && (limit->rate_count > 0 || limit->rate_ms > 0);
    if (has_rate && (limit->rate_count == 0 || limit->rate_count > RATE_MAX)) return "rate";
    if (has_rate && (limit->rate_ms == 0 || limit->rate_ms > RATE_MS_MAX)) return "rate";
    if (limit->has_burst && (limit->burst == 0 || limit->burst > BURST_MAX)) return "burst";
    if (limit->has_concurrency && limit->concurrency > NUMBERS_MAX) return "concurrency";
    if (!limit->has_breaker) return NULL;
    if (is_all(limit->resource) || limit->breaker_failures > NUMBERS_MAX) return "breaker";
    if (limit->breaker_open_ms > BREAKER_MS_MAX || limit->breaker_max_ms > BREAKER_MS_MAX) {
        return "breaker";
    }
    return limit->breaker_max_ms > 0 && limit->breaker_max_ms < open_ms ? "breaker" : NULL;
}

static void set_rate(struct model *model, struct resource *resource, const struct bel_limit *limit)
{
    int64_t now_us = model->engine_ms * 1000, debt_us = resource->full_us - now_us;
    int64_t before_us = resource->rate_count > 0 ? interval_us(resource) : 0;
    resource->rate_count = limit->rate_count;
    resource->rate_ms = limit->rate_ms;
    if (before_us == 0 || debt_us <= 0) return;
    if (limit->rate_count == 0) {
        resource->full_us = 0;
        return;
    }
    __extension__ typedef __int128 wide;
    wide debt = (wide)debt_us * interval_us(resource);
    resource->full_us = now_us + (int64_t)((debt + before_us - 1) / before_us);
}

/* Returns a resource that is in use or has a limit, or `*`; NULL if there is none. */
static struct resource *find_shown(struct model *model, struct bel_view name)
{
    if (is_all(name)) return make(model, name);
    meet_all(model);
    struct resource *known = find(model, name);
    return known != NULL && is_shown(model, known) ? known : NULL;
}

static int set(struct model *model, const struct bel_limit *limit, struct bel_reply *reply)
{
    bool changes = limit->has_rate || limit->has_burst || limit->has_concurrency ||
                   limit->has_until || limit->has_breaker;
    if (!changes) {
        struct resource *known = find_shown(model, limit->resource);
        if (known == NULL) return model_refuse(reply, BEL_ENOTFOUND, "resource");
        return show_one(model, known, reply);
    }
    struct resource *resource = make(model, limit->resource);
    if (limit->has_rate) set_rate(model, resource, limit);
    if (limit->has_burst) resource->burst = limit->burst;
    if (limit->has_concurrency) resource->concurrency = limit->concurrency;
    if (limit->has_until) {
        (void)model_resource_limit(model, limit->resource, limit->until_ms, (struct bel_view){0});
    }
    if (limit->has_breaker) {
        uint64_t open_ms = limit->breaker_open_ms > 0 ? limit->breaker_open_ms : BREAKER_OPEN_MS;
        uint64_t most_ms = open_ms > BREAKER_MAX_MS ? open_ms : BREAKER_MAX_MS;
        resource->breaker_failures = limit->breaker_failures;
        resource->breaker_open_ms = open_ms;
        resource->breaker_max_ms = limit->breaker_max_ms > 0 ? limit->breaker_max_ms : most_ms;
        if (limit->breaker_failures == 0) close_breaker(resource);
    }
    return show_one(model, resource, reply);
}

static bool clear(struct model *model, struct resource *resource)
{
    if (resource->until_ms <= model->engine_ms && !resource->is_open) return false;
    resource->until_ms = 0;
    close_breaker(resource);
    return true;
}

int model_limit(struct model *model, const struct bel_limit *limit, struct bel_reply *reply)
{
    reply->limits.action = limit->action;
    if (limit->action == BEL_LIMIT_LIST) return list(model, limit, reply);
    if (limit->action == BEL_LIMIT_CLEAR_ALL) {
        for (size_t i = 0; i < model->resources.count; i++) {
            reply->limits.changed += clear(model, model->resources.items[i]);
        }
        return 0;
    }
    const char *fault = find_fault(limit);
    if (fault != NULL) return model_refuse(reply, BEL_EINVAL, fault);
    if (limit->action == BEL_LIMIT_SET) return set(model, limit, reply);
    if (limit->action == BEL_LIMIT_CLEAR) {
        struct resource *known = find_shown(model, limit->resource);
        if (known == NULL) return model_refuse(reply, BEL_ENOTFOUND, "resource");
        (void)clear(model, known);
        close_breaker(known);
        return show_one(model, known, reply);
    }
    struct resource *resource = make(model, limit->resource);
    reply->limits.changed = has_limits(model, resource);
    set_defaults(resource);
    return 0;
}
