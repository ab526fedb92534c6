/* SPDX-License-Identifier: MIT */

/*
 * How a history begins and ends: topics with short lives, so that a lot happens; and, when nothing
 * breaks any more, everything that can be delivered is, plans are cancelled, and nothing may be
 * left.
 */
#include "world.h"

#include "core/units.h"
#include "engine/engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    DRAIN_ROUNDS_MAX = 4000,
    BUSY_ROUNDS = 1000,
    CLAIMED = 20,       /* by a claim of a round */
    CLAIMED_BUSY = 200, /* of a busy one: an hour of a plan that rings every 50 ms is 72,000 */
    SPACE_TURNS = 40,   /* of each of these */
    SPACE_ROUNDS_MAX = 500,
    SPACE_MS = 2, /* of a round: a second in all */
};

#define MS_PER_HOUR UINT64_C(3600000)
#define DAY_MS      UINT64_C(86400000)

/* One claim of everything, up to `count` in each topic, and an ack of all that comes. */
static void drain_once(struct world *world, uint32_t count)
{
    struct list_of_orders orders = {0};
    for (size_t i = 0; i < TOPICS; i++) {
        struct order *order = order_make(world, BEL_VERB_CLAIM);
        order->topics[0] = view_of(topic_name(i));
        for (unsigned side = 0; side < SIDES; side++) {
            order->requests[side].command.claim = (struct bel_claim){
                .topics = order->topics, .topics_count = 1, .count = count, .lease_ms = DAY_MS};
        }
        list_add(&orders, order);
    }
    size_t first = world->handed_count;
    run_orders(world, &orders);
    for (int i = 0; i < LOOK_TURNS_MAX && !list_is_told(&orders) && !world->has_failed; i++) {
        struct list_of_orders none = {0};
        run_orders(world, &none);
    }
    orders.count = 0;
    for (size_t i = first; i < world->handed_count; i++) {
        struct order *order = order_make(world, BEL_VERB_ACK);
        order->handed[0] = i;
        for (unsigned side = 0; side < SIDES; side++) {
            order->tokens[side][0] = view_of(world->handed[i]->tokens[side]);
            order->requests[side].command.ack =
                (struct bel_ack){.tokens = order->tokens[side], .tokens_count = 1};
        }
        list_add(&orders, order);
    }
    if (orders.count > 0) run_orders(world, &orders);
    free(orders.items);
}

static void add_command(struct world *world, struct list_of_orders *orders,
                        const struct bel_command *command)
{
    struct order *order = order_make(world, command->verb);
    order->requests[0].command = order->requests[1].command = *command;
    list_add(orders, order);
}

/* No job is paused any more, and none recurs. */
static void open_jobs(struct world *world)
{
    static const char *const ids[] = {"x0", "x1", "x2", "x3", "x0.1", "x1.1", "x2.1", "x3.1"};
    struct list_of_orders orders = {0};
    if (!has_feature(world, FEATURE_JOBS)) return;
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
        struct bel_command command = {.verb = BEL_VERB_JOB_RESUME};
        command.job_target.id = view_of(ids[i]);
        add_command(world, &orders, &command);
    }
    run_orders(world, &orders);
    for (size_t i = 0; i < 2; i++) {
        struct bel_command command = {.verb = BEL_VERB_JOB_CANCEL};
        command.job_target.id = i == 0 ? BEL_VIEW("r0") : BEL_VIEW("r1");
        orders.count = 0;
        add_command(world, &orders, &command);
        run_orders(world, &orders);
    }
    free(orders.items);
}

/* Returns whether every job has ended. If one has not, that is wrong the last time. */
static bool check_jobs(struct world *world, bool is_last)
{
    struct list_of_orders orders = {0};
    struct bel_command command = {.verb = BEL_VERB_JOB_LIST};
    if (!has_feature(world, FEATURE_JOBS)) return true;
    command.job_list.count = BEL_LIST_COUNT_MAX;
    add_command(world, &orders, &command);
    run_orders(world, &orders);
    for (int i = 0; i < LOOK_TURNS_MAX && !list_is_told(&orders) && !world->has_failed; i++) {
        run_turn(world);
    }
    const struct heard *heard = orders.items[0]->heard[ENGINE_SIDE];
    free(orders.items);
    if (world->has_failed || heard == NULL || heard->reply.err != 0) return true;
    for (size_t i = 0; i < heard->reply.jobs.count; i++) {
        const struct bel_job *job = &heard->reply.jobs.items[i];
        if (job->has_finished) continue;
        if (!is_last) return false;
        world_fail(world, "stuck", "job %.*s is %s, and has nothing left to do", (int)job->id.bytes,
                   (const char *)job->id.data, bel_job_state_name(job->state));
    }
    return true;
}

/* No topic is paused, capped or short-lived any more, and no resource is limited. */
static void open_topics(struct world *world)
{
    struct list_of_orders orders = {0};
    static const struct bel_setting settings[] = {{{"concurrency", 11}, {"0", 1}}};
    for (size_t i = 0; i < TOPICS; i++) {
        struct bel_view topic = view_of(topic_name(i));
        add_command(world, &orders,
                    &(struct bel_command){.verb = BEL_VERB_RESUME, .target = {.topic = topic}});
        add_command(
            world, &orders,
            &(struct bel_command){.verb = BEL_VERB_CONFIGURE, .configure = {topic, settings, 1}});
    }
    static const char *const resources[] = {"*", "api", "api/search", "api/search/fast", "db"};
    for (size_t i = 0; i < sizeof resources / sizeof resources[0]; i++) {
        if (!has_feature(world, FEATURE_LIMITS)) break;
        struct bel_command command = {.verb = BEL_VERB_LIMIT};
        command.limit.action = BEL_LIMIT_DELETE;
        command.limit.resource = view_of(resources[i]);
        add_command(world, &orders, &command);
    }
    run_orders(world, &orders);
    free(orders.items);
}

/* Schedules something, and takes turns until that is answered. NULL if it never is. */
static const struct bel_reply *try_to_add(struct world *world)
{
    struct list_of_orders orders = {0};
    struct order *order = order_make(world, BEL_VERB_SCHEDULE);
    order->requests[0].command.schedule = order->requests[1].command.schedule =
        (struct bel_schedule_spec){.topic = view_of(topic_name(0))};
    list_add(&orders, order);
    run_orders(world, &orders);
    free(orders.items);
    for (int i = 0; i < SPACE_TURNS && !world->has_failed && !run_is_down(world); i++) {
        run_turn(world); /* some more, for the checkpoint to go on */
    }
    return order->is_told ? &order->heard[ENGINE_SIDE]->reply : NULL;
}

void check_space(struct world *world)
{
    const struct bel_reply *reply = NULL;
    for (int i = 0; i < SPACE_ROUNDS_MAX; i++) {
        reply = try_to_add(world);
        if (world->has_failed || run_is_down(world)) return;
        bool is_full = reply == NULL || reply->err == BEL_EFULL || reply->err == BEL_ENOMEM;
        if (!is_full || (reply != NULL && strstr(reply->why, "depth") != NULL)) return;
        world_pass(world, SPACE_MS, false);
    }
    world_fail(world, "space", "there is space again, and who adds is still refused: %s",
               reply != NULL ? reply->why : "no answer");
}

static void add_cancel(struct world *world, struct list_of_orders *orders, size_t topic,
                       struct bel_view id)
{
    struct order *order = order_make(world, BEL_VERB_CANCEL);
    (void)snprintf(order->id, sizeof order->id, "%.*s", (int)id.bytes, (const char *)id.data);
    for (unsigned side = 0; side < SIDES; side++) {
        order->ids[side][0] = view_of(order->id);
        order->requests[side].command.cancel =
            (struct bel_cancel){view_of(topic_name(topic)), order->ids[side], 1};
    }
    list_add(orders, order);
}

/* Cancels plans, which never end, and what is far away. */
static void add_cancels(struct world *world, size_t topic, const struct bel_reply *list,
                        struct list_of_orders *out)
{
    for (size_t i = 0; list->err == 0 && i < list->timers.count; i++) {
        const struct bel_timer *timer = &list->timers.items[i];
        bool is_far = timer->due.ms > world->now.wall.ms + (int64_t)DAY_MS;
        if (timer->state != BEL_SCHEDULED) continue;
        if (timer->id.bytes == BEL_MADE_ID_BYTES) continue; /* the model has another one */
        if (timer->plan.rule.bytes > 0 || is_far) add_cancel(world, out, topic, timer->id);
    }
}

/* Whether anything is left to be delivered. What would take for ever is to be cancelled. */
static bool has_more(struct world *world, struct list_of_orders *cancels)
{
    struct list_of_orders looks = {0};
    bool has = false;
    bool is_seen = run_look(world, &looks);
    for (size_t i = LOOKS_LIST; is_seen && i < LOOKS_TOPICS; i += LOOKS) {
        const struct bel_reply *list = &looks.items[i]->heard[ENGINE_SIDE]->reply;
        for (size_t j = 0; list->err == 0 && j < list->timers.count; j++) {
            has = has || list->timers.items[j].state < BEL_DONE;
        }
        add_cancels(world, i / LOOKS, list, cancels);
    }
    looks_free(&looks);
    return has;
}

/* Whether nothing is left after one more turn, or the history has failed. */
static bool is_drained(struct world *world, struct list_of_orders *cancels)
{
    struct list_of_orders none = {0};
    if (!world->has_failed) run_orders(world, &none);
    cancels->count = 0;
    return world->has_failed || !has_more(world, cancels);
}

/* Takes turns until nothing is left to be delivered. */
static void drain_rounds(struct world *world)
{
    struct list_of_orders cancels = {0};
    bool is_over = false;
    int ends = 0; /* after the first, jobs may follow others */
    (void)has_more(world, &cancels);
    if (cancels.count > 0) run_orders(world, &cancels);
    for (int i = 0; i < DRAIN_ROUNDS_MAX && !world->has_failed; i++) {
        bool is_long = i > BUSY_ROUNDS; /* it may be busy for long */
        drain_once(world, is_long ? CLAIMED_BUSY : CLAIMED);
        cancels.count = 0;
        if (i % 20 == 19 && !has_more(world, &cancels)) ends++;
        if (ends == (has_feature(world, FEATURE_JOBS) ? 2 : 1)) {
            is_over = is_drained(world, &cancels);
            ends = 0; /* a follower that waited for room may have begun */
        }
        if (is_over) break;
        if (cancels.count > 0) run_orders(world, &cancels);
        if (i % 8 == 7) world_pass(world, is_long ? DAY_MS / 2 : MS_PER_HOUR / 2, false);
        if (world->next.due.ns == BEL_NEVER || world->next.due.ns <= world->now.boot.ns) continue;
        uint64_t ms = (world->next.due.ns - world->now.boot.ns + NS_PER_MS - 1) / NS_PER_MS;
        world_pass(world, ms < 10 * DAY_MS ? ms : 10 * DAY_MS, false);
    }
    if (!is_over && !is_drained(world, &cancels)) {
        world_fail(world, "stuck", "there is something left that nobody is given");
    }
    free(cancels.items);
}

void drain(struct world *world)
{
    open_topics(world);
    open_jobs(world);
    drain_rounds(world);
    if (world->has_failed || check_jobs(world, false)) return;
    drain_rounds(world); /* a job that follows another one began with the last turns */
    if (!world->has_failed) (void)check_jobs(world, true);
}

/* A breaker that one failure opens, and a rate that others follow. */
static void add_limits(struct world *world, struct list_of_orders *orders)
{
    uint64_t ms = world->config.pace_ms;
    struct bel_command command = {.verb = BEL_VERB_LIMIT};
    if (!has_feature(world, FEATURE_LIMITS)) return;
    command.limit = (struct bel_limit){.action = BEL_LIMIT_SET,
                                       .resource = BEL_VIEW("api"),
                                       .has_breaker = true,
                                       .breaker_failures = 1,
                                       .breaker_open_ms = 1 + ms,
                                       .breaker_max_ms = 1 + 4 * ms};
    add_command(world, orders, &command);
    command.limit = (struct bel_limit){.action = BEL_LIMIT_SET,
                                       .resource = BEL_VIEW("db"),
                                       .has_rate = true,
                                       .rate_count = 1,
                                       .rate_ms = 1 + 16 * ms};
    add_command(world, orders, &command);
}

/* Short lives, so that a lot happens; and little to be made up for after a long time. */
void set_up_topics(struct world *world)
{
    static const struct bel_setting quick[] = {{{"lease", 5}, {"50ms", 4}},
                                               {{"misfire_after", 13}, {"300ms", 5}}};
    static const struct bel_setting slow[] = {{{"lease", 5}, {"4s", 2}},
                                              {{"misfire_after", 13}, {"20s", 3}}};
    const struct bel_setting *settings = world->config.pace_ms < 1000 ? quick : slow;
    struct list_of_orders orders = {0};
    add_limits(world, &orders);
    for (size_t i = 0; i < TOPICS - 1; i++) { /* one comes to be later */
        add_command(world, &orders,
                    &(struct bel_command){.verb = BEL_VERB_CONFIGURE,
                                          .configure = {view_of(topic_name(i)), settings, 2}});
    }
    run_orders(world, &orders);
    free(orders.items);
}
