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

#include "core/units.h"
#include "engine/engine.h"
#include "engine/jobs/state.h"
#include "speakers.h"
#include "store/state.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    WAITING_MAX = 6,
    OPENS_MAX = 8,
    SEEN_MAX = 64,
    SLICES_MAX = 20000, /* turns for one PURGE */
    CATCH_UP_MAX = 64,  /* turns for what is due at one time */
};

#define MS_PER_HOUR UINT64_C(3600000)
#define DAY_MS      UINT64_C(86400000)

/* --- answers --- */

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

/* Keeps an answer. The pages of a look are one answer, which is told with the last of them. */
static void keep_answer(struct order *order, enum bel_verb verb, const struct bel_reply *reply)
{
    struct heard **heard = &order->heard[ENGINE_SIDE];
    if (order->has_more && reply->err == 0) {
        heard_add_page(*heard, reply);
    } else {
        heard_free(*heard);
        *heard = heard_copy(verb, reply);
    }
    bool is_list = verb == BEL_VERB_LIST && reply->err == 0;
    order->has_more = order->is_look && is_list && reply->timers.cursor.bytes > 0;
    order->is_told = !order->has_more;
    order->world->pages += is_list;
    order->is_over = watch_is_final(reply->err);
}

void run_told(struct bel_request *request, const struct bel_reply *reply)
{
    struct order *order = request->user;
    struct world *world = order->world;
    memory_enter(false);
    keep_answer(order, request->command.verb, reply);
    if (order->is_told) list_add(&world->told, order);
    reads_told(world, order);
    if (order->has_more) order->is_read = false; /* the next page will be */
    bool is_lazy = has_feature(world, FEATURE_LAZY);
    if (!order->is_over && watch_has_sync_failed(world) && !is_lazy) {
        world_fail(world, "sync", "#%" PRIu64 " is answered after a sync has failed",
                   order->number);
    }
    if (order->web != NULL) web_told(order, reply);
    if (order->speaker != NULL) {
        tap_pass(order, reply);
    } else {
        order->request = NULL;
    }
    memory_enter(world->is_inside);
}

/* Ids that answers have, to ask for them. */
static void remember(struct world *world, const struct order *order)
{
    walk_told(world->walk, order);
    const struct bel_reply *reply = &order->heard[ENGINE_SIDE]->reply;
    if (order->heard[ENGINE_SIDE]->verb != BEL_VERB_CLAIM || reply->err) return;
    for (size_t i = 0; i < reply->deliveries.count; i++) {
        struct bel_view id = reply->deliveries.items[i].id;
        if (id.bytes == BEL_MADE_ID_BYTES) continue; /* the model has another one */
        (void)snprintf(world->seen[world->seen_count++ % SEEN_MAX], sizeof world->seen[0], "%.*s",
                       (int)id.bytes, (const char *)id.data);
    }
}

static bool is_refused(const struct order *order)
{
    return watch_is_refusal(&order->heard[ENGINE_SIDE]->reply);
}

static void dismiss_judge(struct world *world, const char *why)
{
    if (world->judge == NULL) return;
    say(world, "      the judge is dismissed: %s\n", why);
    world->unjudged = why;
    judge_destroy(world->judge);
    world->judge = NULL;
}

static void take_answers(struct world *world)
{
    for (size_t i = 0; i < world->told.count; i++) {
        struct order *order = world->told.items[i];
        const struct bel_reply *reply = &order->heard[ENGINE_SIDE]->reply;
        (void)list_take(&world->asked, order);
        say(world, "  #%" PRIu64 ": %s %" PRIu64 "\n", order->number, bel_error_text(reply->err),
            reply->err ? 0 : reply->count);
        order_say_heard(order, ENGINE_SIDE, "      ");
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
    bool is_web = has_feature(world, FEATURE_WEB) && !order->is_look && chance(world, 50);
    order->request = is_web ? web_ask(order) : NULL;
    if (order->request == NULL) order->request = &order->requests[ENGINE_SIDE];
    order->request->done = run_told;
    order->request->user = order;
    order_say(order);
    book_submitted(world->book, order);
    list_add(&world->asked, order);
    bel_backend_submit(bel_engine_backend(world->engine), order->request);
}

/* Asks for the next page of each look that has one. */
static void ask_pages(struct world *world)
{
    for (size_t i = 0; i < world->asked.count; i++) {
        struct order *order = world->asked.items[i];
        assert(order != NULL);
        if (!order->has_more || order->request != NULL) continue;
        order->request = &order->requests[ENGINE_SIDE];
        order->request->command.list.cursor = order->heard[ENGINE_SIDE]->reply.timers.cursor;
        bel_backend_submit(bel_engine_backend(world->engine), order->request);
    }
}

/* Begins a turn of both sides, for which the engine may take several. */
static void begin_turn(struct world *world)
{
    world->told.count = 0;
    world->has_caught_up = world->has_gone_on = false;
    world->entropy.word = world->turns * UINT64_C(0x9e3779b97f4a7c15) ^ world->config.seed;
}

/* Whether the simulator itself looks, while time stands still. */
static bool is_looking(const struct world *world)
{
    const struct list_of_orders *asked = &world->asked;
    return asked->count > 0 && asked->items[asked->count - 1]->is_look;
}

/* Lets requests that add, or all that change something, be held back for a while, as if a
 * checkpoint were behind. Only where sessions ask: they keep the order of each client. The draw is
 * of its own, so that a seed has the same history otherwise. */
static void hold_back(struct world *world)
{
    uint64_t now = world->now.real.ns, seed = world->config.seed;
    uint64_t word =
        (world->turns + seed * UINT64_C(0x632be59bd9b4e019)) * UINT64_C(0x9e3779b97f4a7c15);
    word ^= word >> 32;
    requests_hold(0, 0);
    if (world->speakers == NULL || world->is_healed || seed % 3 != 0) return;
    if (world->drawn == 0 || has_feature(world, FEATURE_JOBS)) return; /* only clients are held */
    if (world->speakers->tracker.is_draining) return;                  /* time stands still */
    if (world->held_until_ns <= now && word % 10 == 0) {
        world->held_until_ns = now + (1 + (word >> 16) % world->config.pace_ms) * NS_PER_MS;
    }
    if (is_looking(world)) return; /* LIMIT counts as a change, whatever it does */
    uint64_t left = world->held_until_ns > now ? world->held_until_ns - now : 0;
    requests_hold(left, world->held_until_ns % 4 == 0 ? left : 0);
}

static void engine_turn(struct world *world)
{
    ask_pages(world);
    uint64_t durable = bel__store_synced(world->engine->store);
    if (has_feature(world, FEATURE_SLOW_SYNC)) thread_hold(chance(world, 70));
    hold_back(world);
    world->is_inside = true;
    memory_enter(true);
    world->next = world->speakers != NULL
                      ? bel__request_tracker_turn(&world->speakers->tracker, world->now)
                      : bel_backend_turn(bel_engine_backend(world->engine), world->now);
    world->is_inside = false;
    memory_enter(false);
    world->turns++;
    uint64_t synced = bel__store_synced(world->engine->store);
    if (synced != world->synced) world->unsynced_ns = UINT64_MAX; /* a new batch may follow */
    world->synced = synced;
    world_work(world);
    copy_note(world->copy);
    if (watch_is_short(world->engine)) world->is_short = true;
    if (!run_is_down(world)) reads_turn(world, durable);
}

/* Whether an order that is refused has changed nothing. */
static bool is_all_or_nothing(const struct order *order)
{
    const struct bel_command *command = &order->requests[ENGINE_SIDE].command;
    return command->verb == BEL_VERB_SCHEDULE || command->verb == BEL_VERB_CONFIGURE ||
           command->verb == BEL_VERB_PAUSE;
}

/* What is refused for want of room is not given to the model. If the engine may have done a part of
 * it, there is no judge from here on. */
static void refuse(struct world *world, struct order *order)
{
    if (order->is_refused) return;
    order->is_refused = is_all_or_nothing(order);
    if (!order->is_refused) dismiss_judge(world, "refused");
}

static void note_refusals(struct world *world)
{
    for (size_t i = 0; i < world->told.count; i++) {
        struct order *order = world->told.items[i];
        if (!order->is_over && is_refused(order)) refuse(world, order);
    }
    for (size_t i = 0; i < world->asked.count; i++) { /* decided, and not yet told */
        struct order *order = world->asked.items[i];
        if (order->request == NULL) continue; /* it was among those */
        if (order->request->own.words[BEL_OWN_STAGE] != BEL_STAGE_ANSWERED) continue;
        if (watch_is_refusal(&order->request->own.reply)) refuse(world, order);
    }
}

/* An order that the engine has left for its next turn: PURGE and REVIVE of many, or one for which
 * the batch had no room. NULL if there is none. */
static struct order *find_left(const struct world *world)
{
    for (size_t i = 0; i < world->asked.count; i++) {
        struct order *order = world->asked.items[i];
        bool is_kept = watch_stage(order) == BEL_STAGE_SUBMITTED && order->speaker == NULL;
        if (is_kept || watch_stage(order) == BEL_STAGE_BULK) return order;
    }
    return NULL;
}

/* Whether others were done while the engine was in the middle of an order. JOB CANCEL of a job that
 * needs no more work only waits for its answer. */
static bool is_overtaken(const struct world *world, const struct order *order)
{
    if (watch_stage(order) != BEL_STAGE_BULK) return false;
    bool is_cancel = order->requests[ENGINE_SIDE].command.verb == BEL_VERB_JOB_CANCEL;
    if (is_cancel && !world->engine->jobs->has_work) return false;
    if (watch_is_wait_over(world)) return true; /* with the first that a REVIVE made ready */
    return world->fresh.count == 0 || world->fresh.items[world->fresh.count - 1] != order;
}

/* The model does everything in one turn. While there is a judge, the engine goes on until it is
 * there too, and nobody else gets a turn in between. */
static void finish_turn(struct world *world)
{
    struct order *left;
    for (int i = 0; world->judge != NULL && (left = find_left(world)) != NULL; i++) {
        left->is_sliced = true;
        if (is_overtaken(world, left)) { /* also if those were the last that it told */
            dismiss_judge(world, "overtaken");
            return;
        }
        if (run_is_down(world)) return;
        if (i == SLICES_MAX) {
            world_fail(world, "slices", "#%" PRIu64 " %s is not answered in %d turns", left->number,
                       bel_verb_name(left->requests[ENGINE_SIDE].command.verb), i);
            return;
        }
        world->has_gone_on = true;
        engine_turn(world);
    }
}

/* In a calm history, what was due and had no room is done in further turns. If nobody has asked for
 * anything meanwhile, the model, which does it at once, is then where the engine is. */
static void catch_up(struct world *world)
{
    bool is_alone = world->config.is_calm && world->fresh.count == 0;
    for (int i = 0; is_alone && world->judge != NULL && world->is_short && i < CATCH_UP_MAX; i++) {
        if (run_is_down(world) || watch_is_wait_over(world) || find_left(world) != NULL) return;
        world->is_short = false;
        world->has_caught_up = true;
        engine_turn(world);
        if (run_is_down(world)) world->is_short = true; /* it may have done a part */
    }
}

/* What the engine has begun in this turn. What sessions submit when they are told something at
 * the end of one is of the next. */
static void take_begun(struct world *world, struct list_of_orders *out)
{
    size_t left = 0;
    for (size_t i = 0; i < world->fresh.count; i++) {
        struct order *order = world->fresh.items[i];
        const struct bel_request *request = order->request;
        if (request != NULL && order->speaker != NULL &&
            request->own.words[BEL_OWN_STAGE] == BEL_STAGE_SUBMITTED) {
            world->fresh.items[left++] = order;
            continue;
        }
        if (order->is_refused) continue;
        tap_name_for_model(order);
        list_add(out, order);
    }
    world->fresh.count = left;
}

/* Gives `orders` to both sides and lets them work, beside what clients say unless it is quiet. */
static void turn_with(struct world *world, const struct list_of_orders *orders, bool is_quiet)
{
    struct list_of_orders begun = {0}, none = {0};
    copy_poll(world->copy);
    for (size_t i = 0; i < orders->count; i++) {
        ask(world, orders->items[i]);
        list_add(&world->fresh, orders->items[i]);
    }
    if (world->speakers != NULL && !is_quiet) speakers_step(world->speakers);
    tap_name_for_book(world);
    world->is_tight = watch_is_tight(world->engine);
    begin_turn(world);
    engine_turn(world);
    finish_turn(world);
    catch_up(world);
    watch_reason(world);
    watch_stopped(world);
    note_refusals(world);
    if (world->is_short) dismiss_judge(world, "short");
    take_begun(world, &begun);
    bool is_late = has_feature(world, FEATURE_LATE_SYNC);
    if (world->judge != NULL && !judge_turn(world->judge, &begun)) dismiss_judge(world, "unclear");
    if (world->judge != NULL && world->has_gone_on) (void)judge_turn(world->judge, &none); /* too */
    if (world->judge != NULL) (void)judge_compare(world->judge, !is_late && !run_is_down(world));
    free(begun.items);
    tap_name_for_book(world); /* what was taken back in this turn may be given to others in it */
    take_answers(world);
    watch_next(world);
    watch_interval(world);
    tap_name_for_book(world);
    if (world->speakers != NULL && !world->has_failed) speakers_listen(world->speakers);
}

/* In a calm history, what is due is done before anybody asks: else the judge could not follow if
 * one turn has no room for all of it. */
void run_orders(struct world *world, const struct list_of_orders *orders)
{
    struct list_of_orders none = {0};
    bool is_first =
        world->now.boot.ns != world->calm.boot.ns || world->now.wall.ms != world->calm.wall.ms;
    bool is_calm = world->config.is_calm && world->judge != NULL && is_first;
    world->calm = world->now;
    if (is_calm) turn_with(world, &none, true);
    if (is_calm && world->has_failed) return;
    bool is_down = is_calm && run_is_down(world); /* what is asked now is lost with the engine */
    for (size_t i = 0; is_down && i < orders->count; i++) {
        ask(world, orders->items[i]);
    }
    if (!is_down) turn_with(world, orders, false);
}

void run_turn(struct world *world)
{
    struct list_of_orders none = {0};
    run_orders(world, &none);
}

/* --- looking at everything --- */

/* The parts of a look, by place: the counters are asked for again after the last page. Resources
 * and jobs show a turn that has changed no timer. */
static void make_looks(struct world *world, struct list_of_orders *out)
{
    for (size_t i = 0; i < TOPICS; i++) {
        list_add(out, order_look(world, BEL_VERB_TOPIC, i));
        list_add(out, order_look(world, BEL_VERB_LIST, i));
        list_add(out, order_look(world, BEL_VERB_TOPIC, i));
    }
    assert(out->count == LOOKS_TOPICS);
    list_add(out, order_look(world, BEL_VERB_LIMIT, 0));
    list_add(out, order_look(world, BEL_VERB_JOB_LIST, 0));
}

/* One of the two rounds of a look: the second one is only the counters, again. */
static struct list_of_orders round_of(const struct list_of_orders *looks, bool is_second)
{
    struct list_of_orders round = {0};
    for (size_t i = 0; i < looks->count; i++) {
        bool is_after = i < LOOKS_TOPICS && i % LOOKS == LOOKS - 1;
        if (is_after == is_second) list_add(&round, looks->items[i]);
    }
    return round;
}

static void turn_alone(struct world *world)
{
    begin_turn(world);
    engine_turn(world);
    watch_reason(world);
    take_answers(world);
}

/* Takes turns until all of a round is told, however many pages that takes. */
static bool await_round(struct world *world, const struct list_of_orders *round,
                        void (*turn)(struct world *world))
{
    for (int idle = 0; !list_is_told(round); idle++) {
        uint64_t pages = world->pages;
        if (idle == LOOK_TURNS_MAX || world->has_failed) return false;
        turn(world);
        if (world->pages != pages) idle = 0;
    }
    return true;
}

/* Asks the engine alone, at once, until all is answered. */
static bool look_now(struct world *world, struct list_of_orders *looks)
{
    bool is_told = true;
    make_looks(world, looks);
    for (int i = 0; i < 2 && is_told; i++) {
        struct list_of_orders round = round_of(looks, i == 1);
        for (size_t j = 0; j < round.count; j++) {
            ask(world, round.items[j]);
        }
        is_told = await_round(world, &round, turn_alone);
        free(round.items);
    }
    if (!is_told) {
        world_fail(world, "look", "what there is cannot be listed");
        return false;
    }
    if (world->is_short) dismiss_judge(world, "short");
    book_look(world->book, looks);
    return true;
}

/* Asks both sides, in turns like others. */
bool run_look(struct world *world, struct list_of_orders *looks)
{
    bool is_told = true;
    make_looks(world, looks);
    for (int i = 0; i < 2 && is_told; i++) {
        struct list_of_orders round = round_of(looks, i == 1);
        run_orders(world, &round);
        is_told = await_round(world, &round, run_turn);
        free(round.items);
    }
    if (!is_told) world_fail(world, "look", "what there is cannot be listed");
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
    world->is_sync_armed = world->is_write_armed = false;
    thread_hold(false);
    world->tree.is_full = false;
    memory_fail_in(0);
}

/* All that was asked and not answered never will be. */
static void forget_asked(struct world *world)
{
    for (size_t i = 0; i < world->asked.count; i++) {
        struct order *order = world->asked.items[i];
        order->is_over = true;
        order->has_more = false;
        book_lost(world->book, order);
    }
    world->asked.count = 0;
}

static void break_down(struct world *world)
{
    bool is_power = chance(world, 70);
    say(world, "      %s\n", is_power ? "the power fails" : "it is killed");
    if (is_power && has_feature(world, FEATURE_LAZY)) {
        if (world->judge != NULL) judge_cut(world->judge);
        book_cut(world->book);
    }
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
        world->held_until_ns = 0;
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
    if (world->recovered == 0) return true; /* a new one, with secrets that are not stored yet */
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
        if (is_any_refused_in(&looks) || world->is_short) dismiss_judge(world, "refused look");
        if (world->judge != NULL && !judge_reopen(world->judge, world->is_tight, &looks)) {
            dismiss_judge(world, "reopened");
        }
    }
    looks_free(&looks);
}

static void reopen(struct world *world)
{
    say(world, "      it is closed, and opened\n");
    if (world->speakers != NULL) speakers_drain(world->speakers);
    if (world->has_failed) return;
    if (run_is_down(world)) {
        break_down(world);
        recover(world);
        return;
    }
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
    if (has_fault(world, FAULT_WRITE) && !world->is_write_armed &&
        in_1000(world, config->sync_in_1000)) {
        plan->fail_write_in = 1 + below(world, 8);
        world->is_write_armed = true;
    }
    if (has_fault(world, FAULT_SPACE) && chance(world, 5)) {
        bool is_low = chance(world, 50);
        plan->free_bytes = is_low ? below(world, 1 << 20) : UINT64_C(1) << 40;
        world->tree.is_full = is_low && chance(world, 30);
        world->engine->store->unasked_bytes = UINT32_MAX; /* it is to ask the disk at once */
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
        uint64_t span = chance(world, 80) ? 4 * pace : 2 * MS_PER_HOUR;
        world_step_wall(world, (int64_t)below(world, 2 * span) - (int64_t)span);
    } else if (what == 17 && has_fault(world, FAULT_SUSPEND) && !world->is_healed) {
        world_pass(world, below(world, 2 * MS_PER_HOUR), true);
    } else if (what == 18) {
        world_pass(world, below(world, 20 * pace), false);
    }
}

static void withdraw_one(struct world *world)
{
    if (world->asked.count == 0 || has_feature(world, FEATURE_LATE_SYNC)) return;
    struct order *order = world->asked.items[below(world, world->asked.count)];
    if (order->speaker != NULL) return; /* who hangs up, now and then */
    if (!bel_backend_withdraw(bel_engine_backend(world->engine), order->request)) {
        return; /* it has begun */
    }
    (void)list_take(&world->asked, order);
    order->is_over = true;
    if (world->judge != NULL) judge_withdraw(world->judge, order);
}

/* --- the phases --- */

/* Whether the engine may be in the middle of an order when its turn ends: what comes next would see
 * a part of it. */
static bool may_take_turns(const struct order *order)
{
    const struct bel_command *command = &order->requests[ENGINE_SIDE].command;
    if (command->verb == BEL_VERB_REVIVE) return command->target.id.bytes == 0;
    if (command->verb == BEL_VERB_JOB_SUBMIT || command->verb == BEL_VERB_JOB_CANCEL) return true;
    return command->verb == BEL_VERB_PURGE;
}

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
        if (world->speakers != NULL && !order_is_job(order)) {
            speakers_say(world->speakers, order);
        } else {
            list_add(&orders, order);
        }
        world->drawn++;
        if (world->judge != NULL && may_take_turns(order)) break;
    }
    run_orders(world, &orders);
    free(orders.items);
}

static void step(struct world *world)
{
    pass_time(world);
    bool is_warm = world->drawn * 10 < world->config.orders;
    if (!is_warm) arm(world);
    copy_draw(world->copy);
    press_draw(world);
    draw_turn(world);
    if (world->has_failed) return;
    if (run_is_down(world)) {
        break_down(world);
        recover(world);
    } else if (chance(world, 3)) {
        withdraw_one(world);
    } else if (!is_warm && has_fault(world, FAULT_REOPEN) &&
               in_1000(world, world->config.reopen_in_1000)) {
        reopen(world);
    }
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
    press_end(world);
    if (has_fault(world, FAULT_SPACE)) check_space(world);
    if (world->speakers != NULL && chance(world, 70)) speakers_drain(world->speakers);
    if (world->has_failed) return;
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
    looks_free(&looks);
}

void run(struct world *world)
{
    live_through(world);
    if (world->has_failed) show(world);
}
