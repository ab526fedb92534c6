/* SPDX-License-Identifier: MIT */

/*
 * At most one request per timer and turn, so that the state after a kill shows which requests in
 * doubt have happened: a schedule by the timer, an end by its absence, a failure by its attempts.
 *
 * Tokens are dropped after a while, like those of a crashed worker; the lease then expires. So the
 * engine has timers in all states: scheduled, ready, leased and finished.
 */
#include "victim.h"

#include "../ask.h"
#include "../check.h"
#include "../random.h"
#include "core/units.h"
#include "engine/engine.h"
#include "store/state.h"

#include <string.h>

enum {
    TURN_MS = 10,
    LEASE_MS = 2000,
    HELD_TURNS_MAX = 100, /* shorter than the lease */
    ATTEMPTS_MAX = 12,    /* below the 20 of the policy */
    SEGMENT_BYTES = 512 << 10,
    SEGMENT_COUNT = 3,
    TRANSACTION_ROWS = 200,
    SETTLE_TURNS_MAX = 1000 * 1000,
};

#define START    INT64_C(1767225600000)
#define ROUND_MS UINT64_C(3600000)

static void set_time(struct victim *victim, uint64_t ms)
{
    victim->now.wall.ms = START + (int64_t)ms;
    victim->now.boot.ns = victim->now.real.ns = (ms + 1) * NS_PER_MS;
}

static void pass(struct victim *victim, uint64_t ms)
{
    victim->now.wall.ms += (int64_t)ms;
    victim->now.boot.ns += ms * NS_PER_MS;
    victim->now.real.ns += ms * NS_PER_MS;
}

int victim_open(struct victim *victim, const struct victim_options *options)
{
    uint64_t segment_bytes = options->segment_bytes, round = options->round;
    struct bel_store_options store_options = {.path = options->folder,
                                              .segment_bytes =
                                                  segment_bytes > 0 ? segment_bytes : SEGMENT_BYTES,
                                              .segment_count = SEGMENT_COUNT,
                                              .transaction_rows = TRANSACTION_ROWS,
                                              .disk_reserve_bytes = options->disk_reserve_bytes,
                                              .has_thread = !options->has_no_thread,
                                              .is_lazy = options->is_lazy,
                                              .sync_interval_ns = options->sync_interval_ns};
    if (options->is_lazy) store_options.sync = BEL_SYNC_IN_THREAD;
    struct bel_why why = {0};
    struct book *book = options->book;
    *victim = (struct victim){.options = *options, .book = book};
    set_time(victim, round * ROUND_MS);
    bel__entropy_seed(&victim->entropy, round + 1);
    int err = bel__store_open(&store_options, &victim->store, &why);
    struct bel_engine_options engine_options = {.now = victim->now};
    if (!err) {
        err = bel__engine_open_on(&engine_options, victim->store, &victim->entropy.entropy,
                                  &victim->engine);
        if (err) bel__store_close(victim->store);
    }
    if (err) {
        (void)snprintf(victim->why, sizeof victim->why, "%s: %.200s", bel_error_text(err),
                       why.text);
        return err;
    }
    victim->backend = bel_engine_backend(victim->engine);
    victim->live = calloc(BOOK_TIMERS_MAX, sizeof *victim->live);
    victim->orders = calloc(VICTIM_BATCH_MAX, sizeof *victim->orders);
    CHECK(victim->live != NULL && victim->orders != NULL);
    return 0;
}

void victim_close(struct victim *victim)
{
    bel_engine_close(victim->engine);
    free(victim->live);
    free(victim->orders);
}

static uint64_t below(struct victim *victim, uint64_t end)
{
    return random_below(&victim->random, end);
}

static void say(struct victim *victim, enum line_kind kind, uint32_t number, uint64_t attempts)
{
    struct line line = {number, (uint16_t)attempts, (uint16_t)kind};
    book_take(victim->book, &line);
    if (victim->options.tell != NULL) victim->options.tell(victim->options.context, &line);
}

/* --- leases --- */

static void forget_live(struct victim *victim, uint32_t number)
{
    for (size_t i = 0; i < victim->live_count; i++) {
        if (victim->live[i] != number) continue;
        victim->live[i] = victim->live[--victim->live_count];
        return;
    }
}

static void drop_held(struct victim *victim, uint32_t number)
{
    for (size_t i = 0; i < victim->held_count; i++) {
        if (victim->held[i].number != number) continue;
        victim->held[i] = victim->held[--victim->held_count];
        return;
    }
}

/* Drops old tokens. */
static void drop_old(struct victim *victim)
{
    for (size_t i = victim->held_count; i-- > 0;) {
        if (victim->turns - victim->held[i].since <= HELD_TURNS_MAX) continue;
        victim->held[i] = victim->held[--victim->held_count];
    }
}

static void hold(struct victim *victim, const struct bel_delivery *delivery)
{
    uint32_t number;
    CHECK(book_number(delivery->id, &number));
    CHECK(victim->book->entries[number].is_there || victim->may_fail);
    drop_held(victim, number);
    if (victim->held_count == VICTIM_HELD_MAX) return;
    struct victim_held *held = &victim->held[victim->held_count++];
    *held = (struct victim_held){
        .number = number, .since = victim->turns, .bytes = delivery->token.bytes};
    memcpy(held->token, delivery->token.data, delivery->token.bytes);
}

/* --- requests --- */

static void told(struct victim *victim, const struct victim_order *order,
                 const struct bel_reply *reply)
{
    const struct book_entry *entry = &victim->book->entries[order->number];
    switch (order->told) {
    case LINE_SCHEDULED:
        say(victim, LINE_SCHEDULED, order->number, 0);
        victim->live[victim->live_count++] = order->number;
        return;
    case LINE_ENDED:
        CHECK_EQ(reply->count, 1);
        say(victim, LINE_ENDED, order->number, 0);
        forget_live(victim, order->number);
        drop_held(victim, order->number);
        return;
    case LINE_FAILED:
        CHECK(reply->verdict.state == BEL_SCHEDULED);
        say(victim, LINE_FAILED, order->number, UINT64_C(1) + entry->attempts);
        drop_held(victim, order->number);
        return;
    default:
        if (order->request.command.verb != BEL_VERB_CLAIM) return;
        for (size_t i = 0; i < reply->deliveries.count; i++) {
            hold(victim, &reply->deliveries.items[i]);
        }
    }
}

static void answered(struct bel_request *request, const struct bel_reply *reply)
{
    struct victim_order *order = (struct victim_order *)request;
    struct victim *victim = order->victim;
    order->is_answered = true;
    if (reply->err == 0) {
        victim->taken_by[request->command.verb]++;
        told(victim, order, reply);
        return;
    }
    victim->refused++;
    victim->refused_by[request->command.verb]++;
    victim->last_error = reply->err;
    (void)snprintf(victim->last_why, sizeof victim->last_why, "%s", reply->why);
    if (!victim->may_fail) CHECK_NOTE("%s: %s", bel_error_text(reply->err), reply->why);
    CHECK(victim->may_fail);
    if (order->told != 0 && reply->err != BEL_EIO) {
        say(victim, LINE_REFUSED, order->number, 0);
    }
}

static struct victim_order *order_of(struct victim *victim, enum bel_verb verb, uint16_t line)
{
    struct victim_order *order = &victim->orders[victim->orders_count++];
    order->request = (struct bel_request){.command = {.verb = verb}, .done = answered};
    order->victim = victim;
    order->told = line;
    order->is_answered = false;
    return order;
}

static void order_schedule(struct victim *victim)
{
    struct victim_order *order = order_of(victim, BEL_VERB_SCHEDULE, LINE_SCHEDULED);
    struct bel_schedule_spec *spec = &order->request.command.schedule;
    uint32_t number = victim->book->end;
    order->number = number;
    spec->topic = view(book_topic(number));
    spec->id = book_id(number, order->id);
    spec->payload = book_payload(number, order->payload);
    spec->when = number % 4 == 0 ? BEL_WHEN_IN : number % 4 == 1 ? BEL_WHEN_AT : BEL_WHEN_NOW;
    spec->delay_ms = below(victim, 5000);
    spec->at.ms = victim->now.wall.ms + (int64_t)below(victim, 5000);
    if (number % 5 == 0) spec->group = view(number % 2 == 0 ? "even" : "odd");
    say(victim, LINE_ASK_SCHEDULE, number, 0);
}

/* Returns whether a timer has no request in this turn. */
static bool is_idle(const struct victim *victim, uint32_t number)
{
    return victim->book->entries[number].doubt == 0;
}

static void order_cancel(struct victim *victim)
{
    if (victim->live_count == 0) return;
    uint32_t number = victim->live[below(victim, victim->live_count)];
    if (!is_idle(victim, number)) return;
    struct victim_order *order = order_of(victim, BEL_VERB_CANCEL, LINE_ENDED);
    order->number = number;
    order->view = book_id(number, order->id);
    order->request.command.cancel = (struct bel_cancel){view(book_topic(number)), &order->view, 1};
    say(victim, LINE_ASK_END, number, 0);
}

static void order_claim(struct victim *victim)
{
    struct victim_order *order = order_of(victim, BEL_VERB_CLAIM, 0);
    for (uint32_t i = 0; i < BOOK_TOPICS; i++) {
        order->topics[i] = view(book_topic(i));
    }
    order->request.command.claim =
        (struct bel_claim){.topics = order->topics,
                           .topics_count = BOOK_TOPICS,
                           .count = 1 + (uint32_t)below(victim, VICTIM_BATCH_MAX),
                           .lease_ms = LEASE_MS,
                           .worker = view("victim")};
}

/* Requests an ack or a fail of a leased timer. */
static void order_finish(struct victim *victim, bool is_ack)
{
    if (victim->held_count == 0) return;
    const struct victim_held *held = &victim->held[below(victim, victim->held_count)];
    if (!is_idle(victim, held->number)) return;
    if (victim->book->entries[held->number].attempts >= ATTEMPTS_MAX) is_ack = true;
    struct victim_order *order =
        order_of(victim, is_ack ? BEL_VERB_ACK : BEL_VERB_FAIL, is_ack ? LINE_ENDED : LINE_FAILED);
    order->number = held->number;
    memcpy(order->token, held->token, held->bytes);
    order->view = (struct bel_view){order->token, held->bytes};
    if (is_ack) {
        order->request.command.ack = (struct bel_ack){.tokens = &order->view, .tokens_count = 1};
    } else {
        order->request.command.fail = (struct bel_fail){.token = order->view,
                                                        .reason = view("it did not work"),
                                                        .has_delay = true,
                                                        .delay_ms = below(victim, 100)};
    }
    say(victim, is_ack ? LINE_ASK_END : LINE_ASK_FAIL, held->number, 0);
}

static void order_something(struct victim *victim)
{
    uint64_t what = below(victim, 100);
    bool is_full = victim->live_count >= VICTIM_LIVE_MAX;
    if (what < 45 && !is_full && victim->book->end < BOOK_TIMERS_MAX) {
        order_schedule(victim);
    } else if (what < 55) {
        order_cancel(victim);
    } else if (what < 80) {
        order_finish(victim, true);
    } else if (what < 88) {
        order_finish(victim, false);
    } else {
        order_claim(victim);
    }
}

/* --- working --- */

static bool is_answered(const struct victim *victim)
{
    for (size_t i = 0; i < victim->orders_count; i++) {
        if (!victim->orders[i].is_answered) return false;
    }
    return true;
}

/* Takes turns until all requests are answered. */
static void settle(struct victim *victim)
{
    for (unsigned i = 0; i < SETTLE_TURNS_MAX; i++) {
        (void)bel_backend_turn(victim->backend, victim->now);
        if (is_answered(victim)) return;
    }
    CHECK(false);
}

/* Waits for checkpoints, so that no request is refused because the log is full: one segment is free
 * for the next batch, and one is reserved. */
static void wait_for_tree(struct victim *victim)
{
    for (unsigned i = 0; i < SETTLE_TURNS_MAX; i++) {
        if (bel__log_free_count(victim->store->log) >= 2 || victim->refused > 0) return;
        if (victim->may_fail && bel__store_error(victim->store) != 0) return;
        (void)bel_backend_turn(victim->backend, victim->now);
    }
    CHECK(false);
}

static void take_turn(struct victim *victim)
{
    uint64_t count = 1 + below(victim, VICTIM_BATCH_MAX);
    say(victim, LINE_TURN, 0, 0);
    victim->orders_count = 0;
    for (uint64_t i = 0; i < count; i++) {
        order_something(victim);
    }
    for (size_t i = 0; i < victim->orders_count; i++) {
        bel_backend_submit(victim->backend, &victim->orders[i].request);
    }
    settle(victim);
    victim->turns++;
    pass(victim, TURN_MS);
    drop_old(victim);
}

/* Sets a high limit of crashes, so that lost leases do not make timers dead. */
static void configure(struct victim *victim)
{
    const struct bel_setting setting = {view("crashes"), view("1000000")};
    victim->orders_count = 0;
    for (uint32_t i = 0; i < BOOK_TOPICS; i++) {
        struct victim_order *order = order_of(victim, BEL_VERB_CONFIGURE, 0);
        order->request.command.configure = (struct bel_configure){
            .topic = view(book_topic(i)), .settings = &setting, .settings_count = 1};
        bel_backend_submit(victim->backend, &order->request);
    }
    settle(victim);
}

void victim_work(struct victim *victim, uint64_t seed, uint64_t turns)
{
    victim->random = seed;
    victim->live_count = 0;
    for (uint32_t i = 0; i < victim->book->end; i++) {
        if (victim->book->entries[i].is_there) victim->live[victim->live_count++] = i;
    }
    configure(victim);
    for (uint64_t i = 0; i < turns; i++) {
        if (!victim->options.never_waits) wait_for_tree(victim);
        if (victim->refused > 0 && victim->last_error == BEL_EIO) return;
        take_turn(victim);
    }
}
