/* SPDX-License-Identifier: MIT */

/*
 * Each field is drawn in a statement of its own, in one order, so that a seed means the same
 * command with every compiler.
 */
#include "draw.h"

#include "../random.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
    PAGE_MAX = 6, /* timers of a short list, which is cut in most cases */
};

static bool chance(const struct draw *draw, unsigned percent)
{
    return random_below(draw->random, 100) < percent;
}

static int64_t near(const struct draw *draw, uint64_t end, int64_t before)
{
    return draw->now.ms + (int64_t)random_below(draw->random, end) - before;
}

enum bel_verb draw_verb(uint64_t *random, const struct draw_weight *weights, size_t count)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        sum += weights[i].weight;
    }
    assert(sum > 0);
    uint64_t left = random_below(random, sum);
    size_t found = 0;
    while (left >= weights[found].weight) {
        left -= weights[found++].weight;
    }
    return weights[found].verb;
}

void draw_fail(const struct draw *draw, struct bel_fail *fail)
{
    static const char *const reasons[] = {"", "no", "never"};
    const char *reason = reasons[random_below(draw->random, 3)];
    fail->reason = (struct bel_view){reason, strlen(reason)};
    fail->kind = BEL_FAIL_ERROR;
    if (!chance(draw, 60)) fail->kind = (enum bel_fail_kind)random_below(draw->random, 3);
    fail->dead = fail->kind != BEL_FAIL_LIMITED && chance(draw, draw->dead_in_100);
    fail->has_delay = chance(draw, 40) || fail->kind == BEL_FAIL_LIMITED;
    fail->delay_ms = fail->has_delay ? random_below(draw->random, draw->delay_ms_end) : 0;
}

void draw_list(const struct draw *draw, struct bel_list_query *list)
{
    list->count = BEL_LIST_COUNT_MAX;
    if (chance(draw, 50)) {
        list->count = 1 + (uint32_t)random_below(draw->random, PAGE_MAX);
    }
    list->has_state = chance(draw, 50);
    list->state = BEL_SCHEDULED;
    if (list->has_state) list->state = (enum bel_state)random_below(draw->random, BEL_STATES);
    list->has_from = chance(draw, 20);
    list->has_to = chance(draw, 20);
    list->from.ms = near(draw, 60, 30);
    list->to.ms = near(draw, 60, 10);
}

void draw_agenda(const struct draw *draw, struct bel_agenda *agenda)
{
    agenda->has_from = agenda->has_to = true;
    agenda->from.ms = near(draw, 100, 50);
    agenda->to.ms = agenda->from.ms + (int64_t)random_below(draw->random, 200);
    agenda->step_ms = 1 + random_below(draw->random, 40);
    if (chance(draw, 50)) agenda->topic = draw->topic(draw->context);
}

struct bel_view draw_resource(const struct draw *draw)
{
    static const char *const names[] = {"", "api", "api/search", "api/search/fast", "db"};
    const char *name = names[random_below(draw->random, 5)];
    return (struct bel_view){name, strlen(name)};
}

/* Draws what LIMIT sets: some of all, and now and then a value that is refused. */
static void draw_values(const struct draw *draw, struct bel_limit *limit)
{
    uint64_t end = draw->delay_ms_end;
    limit->has_rate = chance(draw, 30);
    limit->rate_count = random_below(draw->random, 5) + !chance(draw, 5);
    limit->rate_ms = random_below(draw->random, 2 * end) + !chance(draw, 5);
    if (chance(draw, 20)) limit->rate_count = limit->rate_ms = 0; /* off */
    limit->has_burst = chance(draw, 20);
    limit->burst = random_below(draw->random, 4);
    limit->has_concurrency = chance(draw, 30);
    limit->concurrency = random_below(draw->random, 5);
    limit->has_until = chance(draw, 30);
    limit->until_ms = random_below(draw->random, end);
    limit->has_breaker = chance(draw, 50) && limit->resource.bytes > 1;
    limit->breaker_failures = random_below(draw->random, 3);
    limit->breaker_open_ms = random_below(draw->random, end);
    limit->breaker_max_ms = chance(draw, 50) ? random_below(draw->random, 4 * end) : 0;
}

void draw_limit(const struct draw *draw, struct bel_limit *limit)
{
    uint64_t what = random_below(draw->random, 20);
    limit->resource = draw_resource(draw);
    if (limit->resource.bytes == 0) limit->resource = BEL_VIEW("*");
    limit->action = BEL_LIMIT_SET;
    if (what < 11) {
        draw_values(draw, limit);
    } else if (what < 13) {
        limit->action = BEL_LIMIT_LIST;
        limit->count = (uint32_t)random_below(draw->random, 4);
    } else if (what < 15) {
        limit->action = BEL_LIMIT_CLEAR;
    } else if (what < 16) {
        limit->action = BEL_LIMIT_CLEAR_ALL;
    } else if (what < 19) {
        limit->action = BEL_LIMIT_DELETE;
    }
}

/* --- jobs --- */

struct text {
    char *bytes;
    size_t used;
};

__attribute__((format(printf, 2, 3))) static void put(struct text *text, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    size_t room = DRAW_JOB_BYTES - text->used;
    int bytes = vsnprintf(text->bytes + text->used, room, format, list);
    va_end(list);
    assert(bytes >= 0 && (size_t)bytes < room);
    text->used += (size_t)bytes;
}

static void put_after(const struct draw *draw, uint64_t task, struct text *text)
{
    static const char *const policies[] = {"success", "success", "always", "failure"};
    const char *comma = "";
    put(text, ",\"after\":[");
    for (uint64_t i = 0; i < task; i++) {
        if (!chance(draw, 45)) continue;
        const char *on = policies[random_below(draw->random, 4)];
        put(text, "%s{\"task\":\"%" PRIu64 "\",\"on\":\"%s\"}", comma, i, on);
        comma = ",";
    }
    put(text, "]");
}

static void put_task(const struct draw *draw, uint64_t task, bool has_resources, struct text *text)
{
    static const char *const retries[] = {"2ms,5ms", "0s", "max(1)"};
    struct bel_view topic = draw->topic(draw->context);
    put(text, "%s{\"id\":\"%" PRIu64 "\",\"topic\":\"%.*s\"", task > 0 ? "," : "", task,
        (int)topic.bytes, (const char *)topic.data);
    put_after(draw, task, text);
    if (chance(draw, 25)) put(text, ",\"cost\":%" PRIu64, random_below(draw->random, 40));
    if (chance(draw, 25)) put(text, ",\"priority\":%" PRIu64, 127 + random_below(draw->random, 3));
    if (chance(draw, 20)) put(text, ",\"retry\":\"%s\"", retries[random_below(draw->random, 3)]);
    if (chance(draw, 15)) {
        put(text, ",\"in\":%" PRIu64, random_below(draw->random, draw->delay_ms_end));
    }
    if (chance(draw, 15)) {
        put(text, ",\"idle\":%" PRIu64, 1 + random_below(draw->random, draw->lease_ms_end));
    }
    struct bel_view resource = draw_resource(draw);
    if (has_resources && resource.bytes > 0) {
        put(text, ",\"resource\":\"%s\"", (const char *)resource.data);
    }
    put(text, ",\"payload\":\"%" PRIu64 "\"}", random_below(draw->random, 100));
}

static void put_tasks(const struct draw *draw, bool has_resources, struct text *text)
{
    uint64_t count = random_below(draw->random, chance(draw, 80) ? 5 : DRAW_TASKS_MAX + 1);
    put(text, "\"tasks\":[");
    for (uint64_t i = 0; i < count; i++) {
        put_task(draw, i, has_resources, text);
    }
    put(text, "]");
}

struct bel_view draw_job_id(const struct draw *draw)
{
    static const char *const ids[DRAW_JOBS] = {"x0", "x1", "x2", "x3"};
    const char *id = ids[random_below(draw->random, DRAW_JOBS)];
    return (struct bel_view){id, strlen(id)};
}

struct bel_view draw_job(const struct draw *draw, bool has_resources,
                         char *out) /* NOLINT(readability-non-const-parameter) */
{
    static const char *const ends[] = {"success", "failure", "always"};
    struct text text = {.bytes = out};
    struct bel_view id = draw_job_id(draw);
    put(&text, "{\"id\":\"%s\",\"priority\":%" PRIu64 ",", (const char *)id.data,
        4 + random_below(draw->random, 3));
    if (chance(draw, 20)) {
        put(&text, "\"timeout\":%" PRIu64 ",",
            1 + random_below(draw->random, 8 * draw->delay_ms_end));
    }
    if (chance(draw, 30)) {
        put(&text, "\"pace\":%" PRIu64 ",", random_below(draw->random, draw->delay_ms_end));
    }
    if (chance(draw, 20)) put(&text, "\"retry\":\"1ms,1ms,1ms\",");
    put_tasks(draw, has_resources, &text);
    if (chance(draw, 30)) {
        const char *on = ends[random_below(draw->random, 3)];
        put(&text, ",\"cooldown\":%" PRIu64 ",\"then\":[{\"on\":\"%s\",\"job\":{",
            1 + random_below(draw->random, draw->delay_ms_end), on);
        put_tasks(draw, has_resources, &text);
        put(&text, "}}]");
    }
    put(&text, "}");
    return (struct bel_view){out, text.used};
}

static void draw_job_list(const struct draw *draw, struct bel_job_list *list)
{
    list->has_state = chance(draw, 40);
    list->state = BEL_JOB_RUNNING;
    if (list->has_state) {
        list->state = (enum bel_job_state)random_below(draw->random, BEL_JOB_STATES);
    }
}

void draw_small(const struct draw *draw, struct bel_command *command)
{
    switch (command->verb) {
    case BEL_VERB_CANCEL:
        command->cancel.topic = draw->topic(draw->context);
        command->cancel.ids_count = 1;
        return;
    case BEL_VERB_ACK:
        command->ack.tokens_count = 1 + random_below(draw->random, 2);
        command->ack.has_result = command->ack.tokens_count == 1 && chance(draw, 90);
        if (command->ack.has_result) command->ack.result = BEL_VIEW("42");
        return;
    case BEL_VERB_RELEASE:
        command->release.has_delay = chance(draw, 40);
        command->release.delay_ms = random_below(draw->random, draw->delay_ms_end);
        return;
    case BEL_VERB_EXTEND:
        command->extend.lease_ms = random_below(draw->random, draw->lease_ms_end);
        return;
    case BEL_VERB_PURGE:
        command->purge.topic = draw->topic(draw->context);
        command->purge.has_state = chance(draw, 60);
        command->purge.state = (enum bel_state)random_below(draw->random, BEL_STATES);
        return;
    case BEL_VERB_JOB_GET:
        command->job_get.id = draw_job_id(draw);
        return;
    case BEL_VERB_JOB_LIST:
        draw_job_list(draw, &command->job_list);
        return;
    case BEL_VERB_JOB_CANCEL:
    case BEL_VERB_JOB_PAUSE:
    case BEL_VERB_JOB_RESUME:
        command->job_target.id = draw_job_id(draw);
        return;
    default:
        command->target.topic = draw->topic(draw->context);
        return;
    }
}

void draw_give_names(struct bel_command *command, const struct bel_view *ids,
                     const struct bel_view *tokens)
{
    switch (command->verb) {
    case BEL_VERB_SCHEDULE:
        command->schedule.id = ids[0];
        return;
    case BEL_VERB_CANCEL:
        command->cancel.ids = ids;
        return;
    case BEL_VERB_RESCHEDULE:
        command->reschedule.id = ids[0];
        return;
    case BEL_VERB_ACK:
        command->ack.tokens = tokens;
        return;
    case BEL_VERB_FAIL:
        command->fail.token = tokens[0];
        return;
    case BEL_VERB_RELEASE:
        command->release.token = tokens[0];
        return;
    case BEL_VERB_EXTEND:
        command->extend.token = tokens[0];
        return;
    case BEL_VERB_GET:
    case BEL_VERB_REVIVE:
    case BEL_VERB_EXPLAIN:
        command->target.id = ids[0];
        return;
    default:
        return;
    }
}
