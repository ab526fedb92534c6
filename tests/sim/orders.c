/* SPDX-License-Identifier: MIT */

/*
 * What is asked: any verb, of few topics and few ids, so that everything meets everything. An
 * order is the same request twice, with the names that each side has for tokens and for ids that
 * it made.
 */
#include "world.h"

#include "draw.h"
#include "engine/engine.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    IDS = 14,
    SEEN_MAX = 64,
    PAYLOAD_BYTES = 24,
    BIG_BYTES = 5000,
};

static const char *const topic_names[TOPICS] = {"mail", "work", "cron", "rare"};

const char *topic_name(size_t index)
{
    return topic_names[index];
}

void list_add(struct list_of_orders *list, struct order *order)
{
    list->items = realloc(list->items, (list->count + 1) * sizeof(void *));
    if (list->items == NULL) abort();
    list->items[list->count++] = order;
}

bool list_take(struct list_of_orders *list, const struct order *order)
{
    for (size_t i = 0; i < list->count; i++) {
        if (list->items[i] != order) continue;
        list->count--;
        memmove(&list->items[i], &list->items[i + 1], (list->count - i) * sizeof(void *));
        return true;
    }
    return false;
}

bool list_is_told(const struct list_of_orders *orders)
{
    for (size_t i = 0; i < orders->count; i++) {
        if (!orders->items[i]->is_told) return false;
    }
    return true;
}

void looks_free(struct list_of_orders *looks)
{
    for (size_t i = 0; i < looks->count; i++) {
        struct order *order = looks->items[i];
        for (unsigned side = 0; side < SIDES; side++) {
            heard_free(order->heard[side]);
            order->heard[side] = NULL;
        }
    }
    free(looks->items);
}

void order_free(struct order *order)
{
    heard_free(order->heard[ENGINE_SIDE]);
    heard_free(order->heard[MODEL_SIDE]);
    heard_free(order->passed);
    web_free(order->web);
    free(order->payload);
    free(order);
}

/* --- names --- */

static struct bel_view topic_of(struct world *world)
{
    return view_of(topic_names[below(world, below(world, 3) == 0 ? TOPICS : 2)]);
}

static struct bel_view draw_topic(void *context)
{
    return topic_of(context);
}

static struct draw draw_of(struct world *world)
{
    return (struct draw){.random = &world->random,
                         .now = world->now.wall,
                         .dead_in_100 = 15,
                         .delay_ms_end = world->config.pace_ms,
                         .lease_ms_end = 2 * world->config.pace_ms,
                         .topic = draw_topic,
                         .context = world};
}

static void set_id(struct order *order, const char *id)
{
    (void)snprintf(order->id, sizeof order->id, "%s", id);
    order->ids[ENGINE_SIDE][0] = order->ids[MODEL_SIDE][0] = view_of(order->id);
}

/* One of a few, or one that an answer had, say of an occurrence. */
static void choose_id(struct world *world, struct order *order)
{
    char id[24];
    if (world->seen_count > 0 && chance(world, 25)) {
        size_t count = world->seen_count < SEEN_MAX ? world->seen_count : SEEN_MAX;
        set_id(order, world->seen[below(world, count)]);
        return;
    }
    (void)snprintf(id, sizeof id, "i%u", (unsigned)below(world, IDS));
    set_id(order, id);
}

/* One that was given to a worker: a recent one, or for a bad worker any; or nonsense. */
static void choose_token(struct world *world, struct order *order, size_t place)
{
    bool is_bad = has_fault(world, FAULT_WORKER) && chance(world, world->config.worker_in_100 / 2);
    size_t count = world->handed_count, index = SIZE_MAX;
    if (count > 0) {
        size_t reach = is_bad || count < 6 ? count : 6;
        index = count - 1 - (size_t)below(world, reach);
        if (!world->handed[index]->is_known) index = SIZE_MAX;
    }
    if (is_bad && chance(world, 10)) index = SIZE_MAX;
    order->handed[place] = index;
    for (unsigned side = 0; side < SIDES; side++) {
        order->tokens[side][place] =
            index == SIZE_MAX ? BEL_VIEW("nonsense") : view_of(world->handed[index]->tokens[side]);
    }
}

/* --- the verbs --- */

static uint64_t duration(struct world *world)
{
    uint64_t what = below(world, 12);
    if (what == 0) return 0;
    if (what == 1) return below(world, UINT64_C(3600) * 1000);
    if (what == 2 && below(world, 8) == 0) return below(world, UINT64_C(90) * 24 * 3600 * 1000);
    return below(world, world->config.pace_ms);
}

static void choose_when(struct world *world, struct bel_schedule_spec *spec)
{
    switch (below(world, 4)) {
    case 0:
        break;
    case 1:
        spec->when = BEL_WHEN_AT;
        spec->at.ms = world->now.wall.ms + (int64_t)duration(world) -
                      (int64_t)below(world, world->config.pace_ms / 4);
        break;
    default:
        spec->when = BEL_WHEN_IN;
        spec->delay_ms = duration(world);
        break;
    }
}

/* Times that are there twice, or not at all, or are ordinary. */
static void choose_zone(struct world *world, struct bel_recurrence *plan)
{
    static const char *const zones[] = {"Europe/Berlin", "America/Santiago", "Australia/Lord_Howe"};
    static const char *const rules[] = {"*/2 * * * * *",   "* 0,59 * * * *",    "0 0,1 2 * * *",
                                        "*/20 59 1 * * *", "0 0,15,30 2 * * *", "*/3 0 0,3 * * *",
                                        "5 0 1-3 * * *",   "*/4 59 23 * * *"};
    plan->kind = BEL_PLAN_CRON;
    plan->rule = view_of(rules[below(world, 8)]);
    plan->mode = BEL_PLAN_RATE;
    plan->zone = view_of(zones[below(world, 3)]);
    plan->gap = (enum bel_gap)below(world, 2);
    plan->fold = (enum bel_fold)below(world, 3);
}

/* By the second, or on days, with times that are there twice or not at all. */
static void choose_rrule(struct world *world, struct bel_recurrence *plan)
{
    static const char *const rules[] = {"FREQ=SECONDLY",
                                        "FREQ=SECONDLY;INTERVAL=3;COUNT=5",
                                        "INTERVAL=2;FREQ=SECONDLY",
                                        "FREQ=MINUTELY;BYSECOND=0,20,40",
                                        "RRULE:FREQ=DAILY;BYHOUR=1,2,3;BYMINUTE=0,30",
                                        "FREQ=WEEKLY;BYDAY=SA,SU;BYHOUR=2,3;BYSECOND=0,1,2",
                                        "FREQ=MONTHLY;BYDAY=-1SU;BYHOUR=2;BYMINUTE=0,30",
                                        "FREQ=SECONDLY;INTERVAL=2\nEXDATE:20260101T000004Z"};
    plan->kind = BEL_PLAN_RRULE;
    plan->rule = view_of(rules[below(world, 8)]);
    plan->mode = BEL_PLAN_RATE;
}

static void choose_plan(struct world *world, const struct order *order,
                        struct bel_schedule_spec *spec)
{
    static const char *const quick[] = {"50ms", "90ms", "200ms", "@every 400ms"};
    static const char *const slow[] = {"2s", "5s", "7s", "@every 20s"};
    struct bel_recurrence *plan = &spec->plan;
    bool is_quick = world->config.pace_ms < 1000;
    plan->kind = BEL_PLAN_EVERY;
    const char *rule = (is_quick ? quick : slow)[below(world, 4)];
    bool is_sent = world->speakers != NULL || has_feature(world, FEATURE_WEB);
    bool is_said = is_sent && rule[0] == '@'; /* which cannot be said */
    plan->rule = view_of(is_said ? rule + strlen("@every ") : rule);
    plan->mode = chance(world, 30) ? BEL_PLAN_DELAY : BEL_PLAN_RATE;
    plan->misfire = (enum bel_misfire)below(world, 3);
    if (plan->misfire == BEL_MISFIRE_ALL && has_fault(world, FAULT_SUSPEND)) {
        plan->misfire = BEL_MISFIRE_LAST; /* a thousand at once is for other tests */
    }
    plan->overlap = (enum bel_overlap)below(world, 3);
    if (plan->overlap == BEL_OVERLAP_QUEUE && strcmp(order->id, "i1") != 0) {
        plan->overlap = BEL_OVERLAP_SKIP; /* of two queues, which goes on first is open */
    }
    plan->count = chance(world, 60) ? 1 + below(world, 8) : 0;
    plan->spread_ms = has_feature(world, FEATURE_SPREAD) ? below(world, 12) : 0;
    plan->has_until = chance(world, 15);
    if (plan->has_until) {
        plan->until.ms = world->now.wall.ms + (int64_t)below(world, 10 * world->config.pace_ms);
    }
    if (chance(world, 10)) {
        plan->kind = BEL_PLAN_CRON;
        plan->rule = BEL_VIEW("* * * * * *");
        plan->mode = BEL_PLAN_RATE;
    }
    if (has_feature(world, FEATURE_ZONES) && chance(world, 60)) choose_zone(world, plan);
    if (has_feature(world, FEATURE_RRULE) && chance(world, 40)) choose_rrule(world, plan);
}

static void choose_payload(struct world *world, struct order *order, struct bel_view *out)
{
    bool is_big = has_feature(world, FEATURE_BIG) && chance(world, 15);
    size_t bytes = is_big ? 1000 + (size_t)below(world, BIG_BYTES - 1000) : PAYLOAD_BYTES;
    order->payload = calloc(1, bytes);
    if (order->payload == NULL) abort();
    (void)snprintf(order->payload, bytes, "p%" PRIu64, order->number);
    *out = (struct bel_view){order->payload, is_big ? bytes : strlen(order->payload)};
}

static void choose_schedule(struct world *world, struct order *order, struct bel_command *command)
{
    static const char *const retries[] = {"", "", "3ms,9ms", "exp(2ms,2,20ms) jitter(0.5) max(3)",
                                          "0s,0s,1ms"};
    static const char *const groups[] = {"", "red", "blue"};
    struct bel_schedule_spec *spec = &command->schedule;
    spec->topic = topic_of(world);
    choose_payload(world, order, &spec->payload);
    choose_when(world, spec);
    spec->has_priority = chance(world, 50);
    spec->priority = (uint8_t)(127 + below(world, 3));
    spec->conflict = chance(world, 40) ? BEL_CONFLICT_REPLACE : (enum bel_conflict)below(world, 5);
    if (has_feature(world, FEATURE_GROUPS)) spec->group = view_of(groups[below(world, 3)]);
    if (has_feature(world, FEATURE_LIMITS)) {
        struct draw draw = draw_of(world);
        spec->resource = draw_resource(&draw);
        if (chance(world, 50)) {
            spec->resource = chance(world, 70) ? BEL_VIEW("api") : BEL_VIEW("db");
        }
    }
    spec->retry = view_of(retries[below(world, 5)]);
    spec->lease_ms = chance(world, 30) ? 1 + below(world, world->config.pace_ms) : 0;
    if (has_feature(world, FEATURE_EXPIRY) && chance(world, 60)) {
        spec->expires_ms = 1 + below(world, world->config.pace_ms);
    }
    if (chance(world, 15)) {
        order->headers[0] = (struct bel_header){BEL_VIEW("from"), BEL_VIEW("the simulator")};
        spec->headers = order->headers;
        spec->headers_count = 1;
    }
    bool is_set_up = spec->topic.data != topic_names[TOPICS - 1]; /* or they make thousands */
    if (has_feature(world, FEATURE_PLANS) && is_set_up && chance(world, 25)) {
        choose_plan(world, order, spec);
    }
}

/* A client that has had no answer asks again, with the same id. */
static bool choose_retry(struct world *world, struct order *order, struct bel_command *command)
{
    if (!has_fault(world, FAULT_RETRY) || world->orders.count == 0 || !chance(world, 30)) {
        return false;
    }
    const struct order *old = NULL;
    for (int i = 0; i < 8 && old == NULL; i++) {
        uint64_t back = below(world, world->orders.count < 30 ? world->orders.count : 30);
        old = world->orders.items[world->orders.count - 1 - back];
        const struct bel_command *asked = &old->requests[ENGINE_SIDE].command;
        if (asked->verb != BEL_VERB_SCHEDULE || asked->schedule.id.bytes == 0) old = NULL;
    }
    if (old == NULL) return false;
    command->schedule = old->requests[ENGINE_SIDE].command.schedule;
    if (chance(world, 70)) {
        command->schedule.conflict = chance(world, 50) ? BEL_CONFLICT_KEEP : BEL_CONFLICT_REJECT;
    }
    command->schedule.headers_count = 0; /* they belong to the other order */
    choose_payload(world, order, &command->schedule.payload);
    set_id(order, old->id);
    return true;
}

static void choose_claim(struct world *world, struct order *order, struct bel_command *command)
{
    static const char *const workers[] = {"", "ann", "bob"};
    struct bel_claim *claim = &command->claim;
    claim->topics_count = 1 + below(world, ORDER_NAMES);
    for (size_t i = 0; i < claim->topics_count; i++) {
        order->topics[i] = topic_of(world);
    }
    claim->topics = order->topics;
    claim->count = (uint32_t)below(world, 5);
    claim->lease_ms = chance(world, 40) ? 1 + below(world, world->config.pace_ms) : 0;
    claim->worker = view_of(workers[below(world, 3)]);
    if (has_feature(world, FEATURE_WAITS) && chance(world, 30)) {
        claim->wait_ms = 1 + below(world, 2 * world->config.pace_ms);
    }
}

static void choose_list(struct world *world, struct order *order, struct bel_list_query *list)
{
    struct bel_view topic = topic_of(world);
    if (walk_draw(world->walk, order, topic, list)) return;
    list->topic = topic;
    struct draw draw = draw_of(world);
    draw_list(&draw, list);
}

/* A small job; now and then one that recurs. */
static void choose_job(struct world *world, struct order *order, struct bel_job_submit *submit)
{
    static const struct {
        const char *every, *overlap;
    } rules[] = {{"50ms", "queue"}, {"200ms", "skip"}, {"2s", "queue"}, {"7s", "allow"}};
    struct draw draw = draw_of(world);
    order->payload = calloc(1, DRAW_JOB_BYTES);
    if (order->payload == NULL) abort();
    submit->text = draw_job(&draw, has_feature(world, FEATURE_LIMITS), order->payload);
    submit->is_replacement = chance(world, 25);
    bool recurs = chance(world, 20);
    uint64_t rule = below(world, 4);
    if (!recurs) return;
    int bytes = snprintf(order->payload, DRAW_JOB_BYTES,
                         "{\"id\":\"r%u\",\"every\":\"%s\",\"count\":%u,\"overlap\":\"%s\","
                         "\"tasks\":[{\"id\":\"0\",\"topic\":\"mail\"},"
                         "{\"id\":\"1\",\"topic\":\"work\",\"after\":[\"0\"]}]}",
                         (unsigned)rule % 2, rules[rule].every, 3 + (unsigned)below(world, 2),
                         rules[rule].overlap);
    submit->text.bytes = (size_t)bytes;
}

/* Gives a command the id of a recurring job, now and then. */
static void choose_recurring(struct world *world, struct bel_command *command)
{
    bool is_target = command->verb == BEL_VERB_JOB_PAUSE || command->verb == BEL_VERB_JOB_RESUME ||
                     command->verb == BEL_VERB_JOB_CANCEL;
    if (!is_target && command->verb != BEL_VERB_JOB_GET) return;
    if (!chance(world, 50)) return;
    struct bel_view id = chance(world, 50) ? BEL_VIEW("r0") : BEL_VIEW("r1");
    if (is_target) {
        command->job_target.id = id;
    } else {
        command->job_get.id = id;
    }
}

static void choose_configure(struct world *world, struct order *order, struct bel_command *command)
{
    static const char *const choices[][4] = {
        {"lease", "8ms", "200ms", "3s"},
        {"crashes", "1", "2", "4"},
        {"misfire_after", "0s", "50ms", "2s"},
        {"retry", "2ms", "400ms,8ms", "exp(10ms,3,2s) jitter(0.2) max(5)"},
        {"concurrency", "0", "2", "5"},
        {"depth", "0", "6", "12"},
        {"retention", "0s", "30ms", "5s"},
        {"retention_dead", "forever", "50ms", "10s"},
    };
    size_t row = below(world, 8);
    if (row == 4 && !has_feature(world, FEATURE_CONCURRENCY)) row = 0;
    if (row == 5 && !has_feature(world, FEATURE_DEPTH)) row = 1;
    if (row >= 6 && !has_feature(world, FEATURE_RETENTION)) row = 3;
    order->settings[0] =
        (struct bel_setting){view_of(choices[row][0]), view_of(choices[row][1 + below(world, 3)])};
    command->configure = (struct bel_configure){topic_of(world), order->settings, 1};
}

static void choose_reschedule(struct world *world, struct bel_reschedule *reschedule)
{
    reschedule->topic = topic_of(world);
    reschedule->when = chance(world, 50) ? BEL_WHEN_IN : BEL_WHEN_AT;
    reschedule->delay_ms = duration(world);
    reschedule->at.ms = world->now.wall.ms + (int64_t)duration(world) - 10;
}

static enum bel_verb choose_verb(struct world *world)
{
    static const struct draw_weight weights[] = {
        {BEL_VERB_SCHEDULE, 34}, {BEL_VERB_CLAIM, 24},  {BEL_VERB_ACK, 11},
        {BEL_VERB_FAIL, 9},      {BEL_VERB_RELEASE, 4}, {BEL_VERB_EXTEND, 4},
        {BEL_VERB_CANCEL, 6},    {BEL_VERB_GET, 5},     {BEL_VERB_RESCHEDULE, 5},
        {BEL_VERB_LIST, 3},      {BEL_VERB_REVIVE, 4},  {BEL_VERB_PURGE, 1},
        {BEL_VERB_TOPIC, 2},     {BEL_VERB_TOPICS, 1},  {BEL_VERB_CONFIGURE, 2},
        {BEL_VERB_PAUSE, 1},     {BEL_VERB_RESUME, 2},  {BEL_VERB_AGENDA, 1},
        {BEL_VERB_EXPLAIN, 1},   {BEL_VERB_LIMIT, 5},
    };
    static const struct draw_weight job_weights[] = {
        {BEL_VERB_JOB_SUBMIT, 12}, {BEL_VERB_JOB_GET, 3},   {BEL_VERB_JOB_LIST, 2},
        {BEL_VERB_JOB_CANCEL, 2},  {BEL_VERB_JOB_PAUSE, 2}, {BEL_VERB_JOB_RESUME, 4},
    };
    size_t count = sizeof weights / sizeof weights[0];
    if (!has_feature(world, FEATURE_LIMITS)) count--;
    if (has_feature(world, FEATURE_JOBS) && chance(world, 28)) {
        return draw_verb(&world->random, job_weights, sizeof job_weights / sizeof job_weights[0]);
    }
    enum bel_verb verb = draw_verb(&world->random, weights, count);
    bool has_pages = has_feature(world, FEATURE_PAGES);
    if (verb == BEL_VERB_GET && has_pages && chance(world, 70)) verb = BEL_VERB_LIST;
    bool is_left_out = verb == BEL_VERB_PURGE && !has_feature(world, FEATURE_PURGE);
    return is_left_out ? BEL_VERB_GET : verb;
}

static void choose_command(struct world *world, struct order *order, struct bel_command *command)
{
    struct draw draw = draw_of(world);
    switch (command->verb) {
    case BEL_VERB_SCHEDULE:
        if (!choose_retry(world, order, command)) choose_schedule(world, order, command);
        return;
    case BEL_VERB_CLAIM:
        choose_claim(world, order, command);
        return;
    case BEL_VERB_FAIL:
        draw_fail(&draw, &command->fail);
        if (has_feature(world, FEATURE_LIMITS) && chance(world, 60)) { /* opens a breaker */
            command->fail.kind = BEL_FAIL_RESOURCE;
        }
        return;
    case BEL_VERB_LIST:
        choose_list(world, order, &command->list);
        return;
    case BEL_VERB_CONFIGURE:
        choose_configure(world, order, command);
        return;
    case BEL_VERB_AGENDA:
        draw_agenda(&draw, &command->agenda);
        return;
    case BEL_VERB_LIMIT:
        draw_limit(&draw, &command->limit);
        if (command->limit.action == BEL_LIMIT_SET && chance(world, 40)) { /* with its debt */
            command->limit.resource = BEL_VIEW("db");
            command->limit.has_rate = true;
        }
        return;
    case BEL_VERB_RESCHEDULE:
        choose_reschedule(world, &command->reschedule);
        return;
    case BEL_VERB_JOB_SUBMIT:
        choose_job(world, order, &command->job_submit);
        return;
    default:
        draw_small(&draw, command);
        if (has_feature(world, FEATURE_JOBS)) choose_recurring(world, command);
        return;
    }
}

/* --- both sides --- */

static void give_names(struct order *order, unsigned side)
{
    struct bel_command *command = &order->requests[side].command;
    draw_give_names(command, order->ids[side], order->tokens[side]);
    if (command->verb != BEL_VERB_LIST || side == ENGINE_SIDE || !order->is_page) return;
    command->list.count = UINT32_MAX;
    command->list.cursor = (struct bel_view){0};
}

struct order *order_make(struct world *world, enum bel_verb verb)
{
    struct order *order = calloc(1, sizeof *order);
    if (order == NULL) abort();
    order->world = world;
    order->number = world->orders.count;
    order->first_handed = SIZE_MAX;
    for (size_t i = 0; i < ORDER_NAMES; i++) {
        order->handed[i] = SIZE_MAX;
    }
    for (unsigned side = 0; side < SIDES; side++) {
        order->requests[side].command.verb = verb;
        order->requests[side].user = order;
    }
    list_add(&world->orders, order);
    return order;
}

struct order *order_draw(struct world *world)
{
    struct order *order = order_make(world, choose_verb(world));
    struct bel_command command = order->requests[ENGINE_SIDE].command;
    choose_id(world, order);
    choose_token(world, order, 0);
    choose_token(world, order, 1);
    choose_command(world, order, &command);
    bool is_made = command.verb == BEL_VERB_SCHEDULE && command.schedule.plan.rule.bytes == 0 &&
                   chance(world, 10);
    if (is_made) {
        set_id(order, "");
        command.schedule.delay_ms %= UINT64_C(24) * 3600 * 1000; /* it cannot be cancelled later */
    }
    bool is_all = command.verb == BEL_VERB_REVIVE && chance(world, 20);
    if (is_all) set_id(order, "");
    for (unsigned side = 0; side < SIDES; side++) {
        order->requests[side].command = command;
        give_names(order, side);
    }
    order->is_lost = has_fault(world, FAULT_REPLY) && chance(world, 10);
    return order;
}

bool order_is_job(const struct order *order)
{
    switch (order->requests[ENGINE_SIDE].command.verb) {
    case BEL_VERB_JOB_SUBMIT:
    case BEL_VERB_JOB_GET:
    case BEL_VERB_JOB_CANCEL:
    case BEL_VERB_JOB_LIST:
    case BEL_VERB_JOB_PAUSE:
    case BEL_VERB_JOB_RESUME:
        return true;
    default:
        return false;
    }
}

struct order *order_look(struct world *world, enum bel_verb verb, size_t topic)
{
    struct order *order = order_make(world, verb);
    order->is_look = true;
    for (unsigned side = 0; side < SIDES; side++) {
        struct bel_command *command = &order->requests[side].command;
        if (verb == BEL_VERB_LIST) {
            command->list.topic = view_of(topic_name(topic));
            command->list.count =
                side == ENGINE_SIDE ? world->config.page_timers : UINT32_MAX; /* all of it */
        } else if (verb == BEL_VERB_LIMIT) {
            command->limit.action = BEL_LIMIT_LIST;
            command->limit.count = BEL_LIST_COUNT_MAX; /* far more than there are */
        } else if (verb == BEL_VERB_JOB_LIST) {
            command->job_list.count = BEL_LIST_COUNT_MAX;
        } else {
            command->target.topic = view_of(topic_name(topic));
        }
    }
    return order;
}

void order_say(const struct order *order)
{
    const struct bel_command *c = &order->requests[ENGINE_SIDE].command;
    const struct world *world = order->world;
    if (!world->config.is_loud) return;
    say(world, "#%" PRIu64 " %s", order->number, bel_verb_name(c->verb));
    if (c->verb == BEL_VERB_SCHEDULE) {
        const struct bel_schedule_spec *spec = &c->schedule;
        int64_t at = spec->when == BEL_WHEN_AT ? spec->at.ms - START_MS : (int64_t)spec->delay_ms;
        say(world, " %s %s when %d %" PRId64 " conflict %d expires %" PRIu64 " lease %" PRIu64,
            (const char *)spec->topic.data, order->id, spec->when, at, spec->conflict,
            spec->expires_ms, spec->lease_ms);
        say(world, " plan '%.*s' mode %d misfire %d overlap %d count %" PRIu64 " spread %" PRIu64,
            (int)spec->plan.rule.bytes, (const char *)spec->plan.rule.data, spec->plan.mode,
            spec->plan.misfire, spec->plan.overlap, spec->plan.count, spec->plan.spread_ms);
    } else if (c->verb == BEL_VERB_CLAIM) {
        for (size_t i = 0; i < c->claim.topics_count; i++) {
            say(world, " %s", (const char *)c->claim.topics[i].data);
        }
        say(world, " count %u lease %" PRIu64 " wait %" PRIu64, c->claim.count, c->claim.lease_ms,
            c->claim.wait_ms);
    } else if (c->verb == BEL_VERB_CONFIGURE) {
        say(world, " %s %s %s", (const char *)c->configure.topic.data,
            (const char *)order->settings[0].name.data,
            (const char *)order->settings[0].value.data);
    } else if (c->verb == BEL_VERB_RESCHEDULE) {
        say(world, " %s %s when %d in %" PRIu64 " at %" PRId64,
            (const char *)c->reschedule.topic.data, order->id, c->reschedule.when,
            c->reschedule.delay_ms, c->reschedule.at.ms - START_MS);
    } else if (c->verb == BEL_VERB_CANCEL || c->verb == BEL_VERB_GET ||
               c->verb == BEL_VERB_REVIVE || c->verb == BEL_VERB_EXPLAIN) {
        say(world, " %s %s", (const char *)c->target.topic.data, order->id);
    } else if (c->verb == BEL_VERB_LIST) {
        const struct bel_list_query *list = &c->list;
        say(world, " %s count %u state %d from %" PRId64 " to %" PRId64 " cursor '%.*s'",
            (const char *)list->topic.data, list->count, list->has_state ? (int)list->state : -1,
            list->has_from ? list->from.ms - START_MS : -1,
            list->has_to ? list->to.ms - START_MS : -1, (int)list->cursor.bytes,
            list->cursor.bytes > 0 ? (const char *)list->cursor.data : "");
    } else if (c->verb == BEL_VERB_LIMIT) {
        say(world, " %.*s action %d", (int)c->limit.resource.bytes,
            (const char *)c->limit.resource.data, c->limit.action);
    } else if (c->verb == BEL_VERB_JOB_SUBMIT) {
        say(world, " %.*s%s", (int)c->job_submit.text.bytes, (const char *)c->job_submit.text.data,
            c->job_submit.is_replacement ? " REPLACE" : "");
    } else if (order_is_job(order)) {
        struct bel_view id =
            c->verb == BEL_VERB_JOB_GET ? c->job_get.id : c->job_target.id; /* of LIST: empty */
        if (c->verb != BEL_VERB_JOB_LIST) say(world, " %.*s", (int)id.bytes, (const char *)id.data);
    } else if (c->verb == BEL_VERB_AGENDA) {
        say(world, " of '%.*s' from %" PRId64 " to %" PRId64 " step %" PRIu64,
            (int)c->agenda.topic.bytes, (const char *)c->agenda.topic.data,
            c->agenda.from.ms - START_MS, c->agenda.to.ms - START_MS, c->agenda.step_ms);
    } else if (order->handed[0] != SIZE_MAX) {
        const struct handed *handed = world->handed[order->handed[0]];
        say(world, " of %s %s", handed->topic, handed->id);
    }
    say(world, "\n");
}

static void say_timer(const struct world *world, const struct bel_timer *timer, const char *who)
{
    say(world,
        "%s%.*s %.*s %s due %" PRId64 " attempts %" PRIu64 " left %" PRIu64 " made %" PRIu64 "\n",
        who, (int)timer->topic.bytes, (const char *)timer->topic.data, (int)timer->id.bytes,
        (const char *)timer->id.data, bel_state_name(timer->state), timer->due.ms - START_MS,
        timer->attempts, timer->lease_left_ms, timer->made);
}

static void say_limit(const struct world *world, const struct bel_limit_state *state,
                      const char *who)
{
    say(world,
        "%sresource %.*s rate %" PRIu64 "/%" PRIu64 " burst %" PRIu64 " running %" PRIu64
        " of %" PRIu64 " until %" PRId64 " %s failures %" PRIu64 " reports %zu\n",
        who, (int)state->name.bytes, (const char *)state->name.data, state->rate_count,
        state->rate_ms, state->burst, state->running, state->concurrency,
        state->limited_until.ms > 0 ? state->limited_until.ms - START_MS : 0,
        bel_breaker_name(state->breaker), state->failures, state->reports_count);
}

void order_say_heard(const struct order *order, unsigned side, const char *who)
{
    const struct heard *heard = order->heard[side];
    if (!order->world->config.is_loud || heard == NULL || heard->reply.err != 0) return;
    if (heard->verb == BEL_VERB_LIST) {
        for (size_t i = 0; i < heard->reply.timers.count; i++) {
            say_timer(order->world, &heard->reply.timers.items[i], who);
        }
    } else if (heard->verb == BEL_VERB_LIMIT) {
        for (size_t i = 0; i < heard->reply.limits.count; i++) {
            say_limit(order->world, &heard->reply.limits.items[i], who);
        }
    } else if (heard->verb == BEL_VERB_JOB_LIST) {
        for (size_t i = 0; i < heard->reply.jobs.count; i++) {
            const struct bel_job *job = &heard->reply.jobs.items[i];
            say(order->world, "%sjob %.*s %s\n", who, (int)job->id.bytes,
                (const char *)job->id.data, bel_job_state_name(job->state));
        }
    }
}
