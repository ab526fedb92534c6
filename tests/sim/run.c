/* SPDX-License-Identifier: MIT */

/*
 * A history: warm up, faults, heal, drain, check.
 *
 *     draw orders, move the clocks, perhaps arm a fault -> turn -> compare, note -> crash? recover
 *
 * When the power is off or the engine has given up, it is ended, the disk loses what it may
 * lose, and it is opened again, perhaps in several attempts; then all there is is listed, by
 * engine and model, and must be the same.
 */
#include "world.h"

#include "engine/engine.h"
#include "store/state.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    WAITING_MAX = 6,
    OPENS_MAX = 8,
    LOOK_TURNS_MAX = 400,
    DRAIN_ROUNDS_MAX = 4000,
    SEEN_MAX = 64,
};

#define HOUR_MS UINT64_C(3600000)
#define DAY_MS  UINT64_C(86400000)

/* --- answers --- */

static bool is_final(int err)
{
    return err == BEL_EIO || err == BEL_ECORRUPT;
}

static bool has_sync_failed(const struct world *world)
{
    return world->is_sync_armed && disk_plan(world->disk)->fail_sync_in == 0;
}

static void hash_reply(struct world *world, const struct order *order)
{
    const struct bel_reply *reply = &order->heard[ENGINE_SIDE]->reply;
    world_hash(world, &order->number, sizeof order->number);
    world_hash(world, &reply->err, sizeof reply->err);
    if (reply->err) return;
    switch (order->heard[ENGINE_SIDE]->verb) {
    case BEL_VERB_SCHEDULE:
        world_hash(world, reply->id.data, reply->id.bytes);
        break;
    case BEL_VERB_CLAIM:
        for (size_t i = 0; i < reply->deliveries.count; i++) {
            struct bel_view token = reply->deliveries.items[i].token;
            world_hash(world, token.data, token.bytes);
        }
        break;
    case BEL_VERB_LIST:
        for (size_t i = 0; i < reply->timers.count; i++) {
            const struct bel_timer *timer = &reply->timers.items[i];
            world_hash(world, timer->id.data, timer->id.bytes);
            world_hash(world, &timer->due, sizeof timer->due);
            world_hash(world, &timer->state, sizeof timer->state);
        }
        break;
    default:
        break;
    }
}

static void told(struct bel_request *request, const struct bel_reply *reply)
{
    struct order *order = request->user;
    struct world *world = order->world;
    memory_enter(false);
    order->is_told = true;
    order->is_over = is_final(reply->err);
    heard_free(order->heard[ENGINE_SIDE]);
    order->heard[ENGINE_SIDE] = heard_copy(request->command.verb, reply);
    list_add(&world->told, order);
    if (!order->is_over && has_sync_failed(world)) {
        world_fail(world, "sync", "#%" PRIu64 " is answered after a sync has failed",
                   order->number);
    }
    memory_enter(world->is_inside);
}

/* Ids that answers have, to ask for them. */
static void remember(struct world *world, const struct order *order)
{
    const struct bel_reply *reply = &order->heard[ENGINE_SIDE]->reply;
    if (order->heard[ENGINE_SIDE]->verb != BEL_VERB_CLAIM || reply->err) return;
    for (size_t i = 0; i < reply->deliveries.count; i++) {
        struct bel_view id = reply->deliveries.items[i].id;
        if (id.bytes == BEL_MADE_ID_BYTES) continue; /* the model has another one */
        (void)snprintf(world->seen[world->seen_count++ % SEEN_MAX], sizeof world->seen[0], "%.*s",
                       (int)id.bytes, (const char *)id.data);
    }
}

/* The engine has refused what the model would have done: from here on there is no judge. */
static bool is_refused(const struct order *order)
{
    const struct bel_reply *reply = &order->heard[ENGINE_SIDE]->reply;
    if (reply->err == BEL_EFULL) return strstr(reply->why, "depth") == NULL;
    return reply->err == BEL_ENOMEM || reply->err == BEL_EBUSY;
}

static void dismiss_judge(struct world *world)
{
    if (world->judge == NULL) return;
    say(world, "      the judge is dismissed\n");
    judge_destroy(world->judge);
    world->judge = NULL;
}

/* What a look has seen. */
static void say_timers(const struct world *world, const struct order *order)
{
    const struct bel_reply *reply = &order->heard[ENGINE_SIDE]->reply;
    if (order->heard[ENGINE_SIDE]->verb != BEL_VERB_LIST || reply->err) return;
    for (size_t i = 0; i < reply->timers.count; i++) {
        const struct bel_timer *timer = &reply->timers.items[i];
        say(world,
            "      %.*s %.*s %s due %" PRId64 " attempts %" PRIu64 " left %" PRIu64 " made %" PRIu64
            "\n",
            (int)timer->topic.bytes, (const char *)timer->topic.data, (int)timer->id.bytes,
            (const char *)timer->id.data, bel_state_name(timer->state), timer->due.ms - START_MS,
            timer->attempts, timer->lease_left_ms, timer->made);
    }
}

static void take_answers(struct world *world)
{
    for (size_t i = 0; i < world->told.count; i++) {
        struct order *order = world->told.items[i];
        const struct bel_reply *reply = &order->heard[ENGINE_SIDE]->reply;
        (void)list_take(&world->asked, order);
        say(world, "  #%" PRIu64 ": %s %" PRIu64 "\n", order->number, bel_error_text(reply->err),
            reply->err ? 0 : reply->count);
        say_timers(world, order);
        if (order->is_over) {
            book_lost(world->book, order);
            continue;
        }
        if (is_refused(order)) world->refusals++;
        hash_reply(world, order);
        book_told(world->book, order);
        remember(world, order);
    }
}

/* --- a turn --- */

static void ask(struct world *world, struct order *order)
{
    order->requests[ENGINE_SIDE].done = told;
    order_say(order);
    book_submitted(world->book, order);
    list_add(&world->asked, order);
    bel_backend_submit(bel_engine_backend(world->engine), &order->requests[ENGINE_SIDE]);
}

/* Whether the turn has left something that was due for later, for want of room. */
static bool is_short(const struct bel_engine *engine)
{
    if (engine->load_left == 0) return true;
    for (uint32_t i = 0; i < engine->topics.count; i++) {
        const struct bel_topic_state *topic = bel__topic_at(&engine->topics, i);
        if (topic == NULL) continue;
        if (topic->is_partial[0] || topic->is_partial[1] || topic->has_late_tick) return true;
        if (topic->sweep_time <= (uint64_t)engine->now.wall + 1) return true;
    }
    return false;
}

/* Whether who adds may be refused: see store.c. */
static bool is_tight(const struct bel_engine *engine)
{
    return bel__log_free_count(engine->store->log) < 2;
}

static void engine_turn(struct world *world)
{
    world->told.count = 0;
    world->entropy.word = world->turns * UINT64_C(0x9e3779b97f4a7c15) ^ world->config.seed;
    world->is_inside = true;
    memory_enter(true);
    world->next = bel_backend_turn(bel_engine_backend(world->engine), world->now);
    world->is_inside = false;
    memory_enter(false);
    world->turns++;
    if (is_short(world->engine)) world->is_short = true;
}

static bool is_down(const struct world *world)
{
    return disk_is_down(world->disk) || has_sync_failed(world) || is_final(world->engine->broken) ||
           is_final(bel__store_error(world->engine->store));
}

/* It has ended without a reason. */
static void check_reason(struct world *world)
{
    bool has_reason = disk_is_down(world->disk) || has_sync_failed(world);
    if (has_reason || !is_down(world)) return;
    world_fail(world, "broken", "the engine has given up: %s",
               bel_error_text(world->engine->broken));
}

/* An engine that does not stop when a sync has failed. */
static void check_stopped(struct world *world)
{
    if (!has_sync_failed(world) || disk_is_down(world->disk)) return;
    if (is_final(world->engine->broken) || is_final(bel__store_error(world->engine->store))) return;
    world_fail(world, "sync", "the engine goes on after a sync has failed");
}

static void check_next(struct world *world)
{
    if (world->judge == NULL || is_down(world)) return;
    struct bel_next want = judge_next(world->judge);
    if (world->next.due.ns > want.due.ns || world->next.wait.ns > want.wait.ns) {
        world_fail(world, "next", "the next turn is at %" PRIu64 ", and needed at %" PRIu64,
                   world->next.due.ns, want.due.ns);
    }
}

static bool any_refused(const struct world *world)
{
    for (size_t i = 0; i < world->told.count; i++) {
        if (!world->told.items[i]->is_over && is_refused(world->told.items[i])) return true;
    }
    for (size_t i = 0; i < world->asked.count; i++) { /* decided, and not yet told */
        const struct bel_request *request = &world->asked.items[i]->requests[ENGINE_SIDE];
        int err = request->own.reply.err;
        if (request->own.words[BEL_OWN_STAGE] != BEL_STAGE_ANSWERED) continue;
        if (err == BEL_EFULL || err == BEL_EBUSY || err == BEL_ENOMEM) return true;
    }
    return false;
}

/* Gives `orders` to both sides and lets them work. */
static void turn(struct world *world, struct list_of_orders *orders)
{
    for (size_t i = 0; i < orders->count; i++) {
        ask(world, orders->items[i]);
    }
    world->is_tight = is_tight(world->engine);
    engine_turn(world);
    check_reason(world);
    check_stopped(world);
    if (any_refused(world) || world->is_short) dismiss_judge(world);
    if (world->judge != NULL) {
        bool is_late = has_feature(world, FEATURE_LATE_SYNC);
        judge_turn(world->judge, orders);
        (void)judge_compare(world->judge, !is_late && !is_down(world));
    }
    take_answers(world);
    check_next(world);
}

/* --- looking at everything --- */

static struct order *make_look(struct world *world, enum bel_verb verb, size_t topic)
{
    struct order *order = order_make(world, verb);
    order->is_look = true;
    for (unsigned side = 0; side < SIDES; side++) {
        struct bel_command *command = &order->requests[side].command;
        if (verb == BEL_VERB_LIST) {
            command->list.topic = view_of(topic_name(topic));
            command->list.count = 1000;
        } else {
            command->target.topic = view_of(topic_name(topic));
        }
    }
    return order;
}

static bool are_told(const struct list_of_orders *orders)
{
    for (size_t i = 0; i < orders->count; i++) {
        if (!orders->items[i]->is_told) return false;
    }
    return true;
}

static void make_looks(struct world *world, struct list_of_orders *out)
{
    for (size_t i = 0; i < TOPICS; i++) {
        list_add(out, make_look(world, BEL_VERB_TOPIC, i));
        list_add(out, make_look(world, BEL_VERB_LIST, i));
        list_add(out, make_look(world, BEL_VERB_TOPIC, i));
    }
}

/* Asks the engine alone, at once, until all is answered. */
static bool look_now(struct world *world, struct list_of_orders *looks)
{
    make_looks(world, looks);
    for (size_t i = 0; i < looks->count; i++) {
        ask(world, looks->items[i]);
    }
    for (int i = 0; i < LOOK_TURNS_MAX && !are_told(looks); i++) {
        engine_turn(world);
        check_reason(world);
        take_answers(world);
    }
    if (!are_told(looks)) {
        world_fail(world, "look", "what there is cannot be listed");
        return false;
    }
    if (world->is_short) dismiss_judge(world);
    book_look(world->book, looks);
    return true;
}

/* Asks both sides, in turns like others. */
static bool look(struct world *world, struct list_of_orders *looks)
{
    struct list_of_orders none = {0};
    make_looks(world, looks);
    turn(world, looks);
    for (int i = 0; i < LOOK_TURNS_MAX && !are_told(looks) && !world->has_failed; i++) {
        turn(world, &none);
    }
    if (!are_told(looks)) world_fail(world, "look", "what there is cannot be listed");
    if (!world->has_failed) book_look(world->book, looks);
    return !world->has_failed;
}

static bool is_any_refused_in(const struct list_of_orders *orders)
{
    for (size_t i = 0; i < orders->count; i++) {
        if (is_refused(orders->items[i])) return true;
    }
    return false;
}

/* --- ends and beginnings --- */

static void disarm(struct world *world)
{
    struct disk_plan *plan = disk_plan(world->disk);
    plan->crash_in = plan->fail_sync_in = plan->fail_write_in = 0;
    plan->free_bytes = UINT64_C(1) << 40;
    world->is_sync_armed = false;
    world->tree.is_full = false;
    memory_fail_in(0);
}

/* All that was asked and not answered never will be. */
static void forget_asked(struct world *world)
{
    for (size_t i = 0; i < world->asked.count; i++) {
        struct order *order = world->asked.items[i];
        order->is_over = true;
        book_lost(world->book, order);
    }
    world->asked.count = 0;
}

static void break_down(struct world *world)
{
    bool is_power = chance(world, 70);
    say(world, "      %s\n", is_power ? "the power fails" : "it is killed");
    world_close(world, false);
    disarm(world);
    if (is_power) {
        disk_cut_power(world->disk);
    } else {
        disk_kill(world->disk);
    }
    world->crashes++;
}

/* While it was closed. */
static void pass_closed(struct world *world)
{
    if (chance(world, 50)) world_pass(world, below(world, 2 * world->config.pace_ms), false);
    if (!world->is_healed && has_fault(world, FAULT_CLOCK) && chance(world, 20)) {
        world_step_wall(world, (int64_t)below(world, 8000) - 4000);
    }
    if (chance(world, 20)) { /* the machine was started anew */
        uint64_t boot_ns = below(world, 100000) * NS_PER_MS;
        world->now.boot.ns = boot_ns;
        world->now.real.ns = boot_ns;
    }
}

/* Opens it, with a crash now and then in between. */
static bool open_again(struct world *world)
{
    for (int i = 0; i < OPENS_MAX; i++) {
        struct bel_why why = {0};
        bool is_armed = !world->is_healed && has_fault(world, FAULT_RECOVERY) &&
                        i + 1 < OPENS_MAX && chance(world, 60);
        if (is_armed) disk_plan(world->disk)->crash_in = 1 + below(world, 30);
        int err = world_open(world, &why);
        if (err == 0 && !disk_is_down(world->disk)) return true;
        if (!disk_is_down(world->disk)) {
            world_fail(world, "recovery", "it cannot be opened: %s (%s)", bel_error_text(err),
                       why.text);
            return false;
        }
        say(world, "      a crash while it recovers\n");
        break_down(world);
    }
    return false;
}

/* Recovering twice finds the same. */
static bool check_digest(struct world *world)
{
    uint64_t first = world_digest(world);
    world_close(world, chance(world, 50));
    disk_kill(world->disk);
    if (!open_again(world)) return false;
    disarm(world);
    uint64_t second = world_digest(world);
    if (first == second) return true;
    world_fail(world, "digest", "two openings have found different rows");
    return false;
}

static void recover(struct world *world)
{
    struct list_of_orders looks = {0};
    forget_asked(world);
    pass_closed(world);
    if (!open_again(world)) return;
    disarm(world);
    if (chance(world, 30) && !check_digest(world)) return;
    book_opened(world->book);
    if (look_now(world, &looks)) {
        if (is_any_refused_in(&looks) || world->is_short) dismiss_judge(world);
        if (world->judge != NULL && !judge_reopen(world->judge, world->is_tight, &looks)) {
            dismiss_judge(world);
        }
    }
    free(looks.items);
}

static void reopen(struct world *world)
{
    say(world, "      it is closed, and opened\n");
    world_close(world, true);
    disarm(world);
    recover(world);
}

/* --- faults --- */

static bool in_1000(struct world *world, unsigned rate)
{
    return below(world, 1000) < rate;
}

static void arm(struct world *world)
{
    struct disk_plan *plan = disk_plan(world->disk);
    const struct config *config = &world->config;
    if (world->is_healed) return;
    if (has_fault(world, FAULT_CRASH) && plan->crash_in == 0 &&
        in_1000(world, config->crash_in_1000)) {
        plan->crash_in = 1 + below(world, 8);
    }
    if (has_fault(world, FAULT_SYNC) && !world->is_sync_armed &&
        in_1000(world, config->sync_in_1000)) {
        plan->fail_sync_in = 1 + below(world, 4);
        world->is_sync_armed = true;
    }
    if (has_fault(world, FAULT_SPACE) && chance(world, 5)) {
        bool is_low = chance(world, 50);
        plan->free_bytes = is_low ? below(world, 1 << 20) : UINT64_C(1) << 40;
        world->tree.is_full = is_low && chance(world, 30);
    }
    if (has_fault(world, FAULT_MEMORY)) {
        memory_fail_in(chance(world, 20) ? 1 + below(world, 40) : 0);
    }
}

static void pass_time(struct world *world)
{
    uint64_t pace = world->config.pace_ms, what = below(world, 20);
    uint64_t due_ms = (world->next.due.ns - world->now.boot.ns) / NS_PER_MS;
    bool is_due_near = world->next.due.ns > world->now.boot.ns && due_ms < DAY_MS;
    if (what < 5) return;
    if (what < 9 && is_due_near) { /* right before, at, or after what comes next */
        uint64_t to = due_ms + below(world, 3);
        world_pass(world, to > 0 ? to - 1 : 0, false);
    } else if (what < 16) {
        world_pass(world, below(world, pace / 2), false);
    } else if (what == 16 && has_fault(world, FAULT_CLOCK) && !world->is_healed) {
        uint64_t span = chance(world, 80) ? 4 * pace : 2 * HOUR_MS;
        world_step_wall(world, (int64_t)below(world, 2 * span) - (int64_t)span);
    } else if (what == 17 && has_fault(world, FAULT_SUSPEND) && !world->is_healed) {
        world_pass(world, below(world, 2 * HOUR_MS), true);
    } else if (what == 18) {
        world_pass(world, below(world, 20 * pace), false);
    }
}

static void withdraw_one(struct world *world)
{
    if (world->asked.count == 0 || has_feature(world, FEATURE_LATE_SYNC)) return;
    struct order *order = world->asked.items[below(world, world->asked.count)];
    if (!bel_backend_withdraw(bel_engine_backend(world->engine), &order->requests[ENGINE_SIDE])) {
        return; /* it has begun */
    }
    (void)list_take(&world->asked, order);
    order->is_over = true;
    if (world->judge != NULL) judge_withdraw(world->judge, order);
}

/* --- the phases --- */

static void draw_turn(struct world *world)
{
    struct list_of_orders orders = {0};
    uint64_t count = below(world, world->config.turn_max + 1);
    for (uint64_t i = 0; i < count; i++) {
        struct order *order = order_draw(world);
        bool is_claim = order->requests[ENGINE_SIDE].command.verb == BEL_VERB_CLAIM;
        if (is_claim && world->asked.count + i >= WAITING_MAX) {
            order->requests[0].command.claim.wait_ms = 0;
            order->requests[1].command.claim.wait_ms = 0;
        }
        list_add(&orders, order);
        world->drawn++;
    }
    turn(world, &orders);
    free(orders.items);
}

static void step(struct world *world)
{
    pass_time(world);
    bool is_warm = world->drawn * 10 < world->config.orders;
    if (!is_warm) arm(world);
    draw_turn(world);
    if (world->has_failed) return;
    if (is_down(world)) {
        break_down(world);
        recover(world);
    } else if (chance(world, 3)) {
        withdraw_one(world);
    } else if (!is_warm && has_fault(world, FAULT_REOPEN) &&
               in_1000(world, world->config.reopen_in_1000)) {
        reopen(world);
    }
}

/* One claim of everything and an ack of all that comes. */
static void drain_once(struct world *world)
{
    struct list_of_orders orders = {0};
    for (size_t i = 0; i < TOPICS; i++) {
        struct order *order = order_make(world, BEL_VERB_CLAIM);
        order->topics[0] = view_of(topic_name(i));
        for (unsigned side = 0; side < SIDES; side++) {
            order->requests[side].command.claim = (struct bel_claim){
                .topics = order->topics, .topics_count = 1, .count = 20, .lease_ms = DAY_MS};
        }
        list_add(&orders, order);
    }
    size_t first = world->handed_count;
    turn(world, &orders);
    for (int i = 0; i < LOOK_TURNS_MAX && !are_told(&orders) && !world->has_failed; i++) {
        struct list_of_orders none = {0};
        turn(world, &none);
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
    if (orders.count > 0) turn(world, &orders);
    free(orders.items);
}

static void add_command(struct world *world, struct list_of_orders *orders,
                        const struct bel_command *command)
{
    struct order *order = order_make(world, command->verb);
    order->requests[0].command = order->requests[1].command = *command;
    list_add(orders, order);
}

/* No topic is paused, capped or short-lived any more. */
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
    turn(world, &orders);
    free(orders.items);
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
        if (timer->id.bytes == BEL_MADE_ID_BYTES) continue; /* the model has another one */
        if (timer->plan.rule.bytes > 0 || is_far) add_cancel(world, out, topic, timer->id);
    }
}

/* Lists the scheduled ones alone: plans among them, which a list of all may be too short for. */
static void look_for_plans(struct world *world, struct list_of_orders *cancels)
{
    struct list_of_orders looks = {0}, none = {0};
    for (size_t i = 0; i < TOPICS; i++) {
        struct order *order = make_look(world, BEL_VERB_LIST, i);
        for (unsigned side = 0; side < SIDES; side++) {
            order->requests[side].command.list.has_state = true;
            order->requests[side].command.list.state = BEL_SCHEDULED;
        }
        list_add(&looks, order);
    }
    turn(world, &looks);
    for (int i = 0; i < LOOK_TURNS_MAX && !are_told(&looks) && !world->has_failed; i++) {
        turn(world, &none);
    }
    for (size_t i = 0; i < TOPICS && !world->has_failed; i++) {
        add_cancels(world, i, &looks.items[i]->heard[ENGINE_SIDE]->reply, cancels);
    }
    free(looks.items);
}

/* Whether anything is left to be delivered. What would take for ever is to be cancelled. */
static bool has_more(struct world *world, struct list_of_orders *cancels)
{
    struct list_of_orders looks = {0};
    bool has = false;
    bool is_seen = look(world, &looks);
    for (size_t i = LOOKS_LIST; is_seen && i < looks.count; i += LOOKS) {
        const struct bel_reply *list = &looks.items[i]->heard[ENGINE_SIDE]->reply;
        for (size_t j = 0; list->err == 0 && j < list->timers.count; j++) {
            has = has || list->timers.items[j].state < BEL_DONE;
        }
    }
    free(looks.items);
    if (has) look_for_plans(world, cancels);
    return has;
}

static void drain(struct world *world)
{
    struct list_of_orders cancels = {0}, none = {0};
    open_topics(world);
    (void)has_more(world, &cancels);
    if (cancels.count > 0) turn(world, &cancels);
    for (int i = 0; i < DRAIN_ROUNDS_MAX && !world->has_failed; i++) {
        drain_once(world);
        cancels.count = 0;
        if (i % 20 == 19 && !has_more(world, &cancels)) break;
        if (cancels.count > 0) turn(world, &cancels);
        if (i % 8 == 7) world_pass(world, HOUR_MS / 2, false); /* it may be busy for long */
        if (world->next.due.ns == BEL_NEVER || world->next.due.ns <= world->now.boot.ns) continue;
        uint64_t ms = (world->next.due.ns - world->now.boot.ns + NS_PER_MS - 1) / NS_PER_MS;
        world_pass(world, ms < 10 * DAY_MS ? ms : 10 * DAY_MS, false);
    }
    turn(world, &none);
    cancels.count = 0;
    if (!world->has_failed && has_more(world, &cancels)) {
        world_fail(world, "stuck", "there is something left that nobody is given");
    }
    free(cancels.items);
}

/* Short lives, so that a lot happens; and little to be made up for after a long time. */
static void set_up_topics(struct world *world)
{
    static const struct bel_setting quick[] = {{{"lease", 5}, {"50ms", 4}},
                                               {{"misfire_after", 13}, {"300ms", 5}}};
    static const struct bel_setting slow[] = {{{"lease", 5}, {"4s", 2}},
                                              {{"misfire_after", 13}, {"20s", 3}}};
    const struct bel_setting *settings = world->config.pace_ms < 1000 ? quick : slow;
    struct list_of_orders orders = {0};
    for (size_t i = 0; i < TOPICS - 1; i++) { /* one comes to be later */
        add_command(world, &orders,
                    &(struct bel_command){.verb = BEL_VERB_CONFIGURE,
                                          .configure = {view_of(topic_name(i)), settings, 2}});
    }
    turn(world, &orders);
    free(orders.items);
}

static void live_through(struct world *world)
{
    struct bel_why why = {0};
    if (world_open(world, &why) != 0) {
        world_fail(world, "recovery", "a new one cannot be opened: %s", why.text);
        return;
    }
    set_up_topics(world);
    while (world->drawn < world->config.orders && !world->has_failed) {
        step(world);
    }
    if (world->has_failed) return;
    disarm(world);
    world->is_healed = true;
    say(world, "      healed\n");
    break_down(world);
    recover(world);
    if (!world->has_failed) drain(world);
    if (!world->has_failed) reopen(world);
}

/* For people: what both sides have when something is wrong. */
static void show(struct world *world)
{
    struct list_of_orders looks = {0};
    if (!world->config.is_loud || world->engine == NULL) return;
    disarm(world);
    say(world, "      wrong: %s\n", world->detail);
    if (look_now(world, &looks) && world->judge != NULL) judge_say(world->judge, &looks);
    free(looks.items);
}

void run(struct world *world)
{
    live_through(world);
    if (world->has_failed) show(world);
}
