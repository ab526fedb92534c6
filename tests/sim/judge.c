/* SPDX-License-Identifier: MIT */

/*
 * The judge keeps the history of what the engine was given, turn by turn, and a model that has
 * lived through it.
 *
 *     history   turn  turn  turn  turn  turn  |crash
 *                           ^answered         ^
 *                           '-- the engine is at one of these when it comes back --'
 *
 * A model cannot go back, but a new one can live through a part of the history again: all that
 * it does follows from what it is given.
 */
#include "world.h"

#include "../model/inside.h"
#include "engine/engine.h"
#include "store/state.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TOKENS_APART = 1 << 20,
    SAVE_MS = 1000, /* how far open time may have been written behind */
};

enum event_kind {
    EVENT_TURN,
    EVENT_WITHDRAW, /* of one order */
    EVENT_REOPEN,
};

struct event {
    enum event_kind kind;
    struct bel_now now;
    uint64_t word;               /* of chance */
    int64_t engine_ms, open_ms;  /* of a reopening, as is the next */
    uint64_t tokens;             /* where to go on: those of turns that are lost are not reused */
    uint64_t batch;              /* the last one of the engine, then */
    struct list_of_orders given; /* of a turn */
    uint64_t refused;            /* of those, by place: the engine had no room */
    bool is_in_parts;            /* the engine took several turns for what was due */
    bool has_sample;             /* before the turn: */
    struct bel_pressure_sample sample;
};

struct judge {
    struct world *world;
    struct model *model;
    struct event *events;
    size_t count, capacity;
    size_t answered; /* events that an answer is known of: they have happened */
    uint64_t word;
    bool is_replaying;
    bool has_parts;       /* some event was in parts */
    struct model *anchor; /* as the model was after so many events; or NULL */
    size_t anchor_count;
    bool is_at_end; /* the model has lived through all events, and no more */
    struct bel_next next;
    struct list_of_orders waiting; /* orders that the model has */
    struct list_of_orders decided; /* by the model, and not yet told by the engine */
    struct differ differ;
    bool has_sample; /* of the next turn */
    struct bel_pressure_sample sample;
};

static uint64_t word_of(void *context)
{
    return ((struct judge *)context)->word;
}

static struct model *make_model(struct judge *judge, struct bel_now now)
{
    return model_create(&(struct model_options){.now = now,
                                                .random = word_of,
                                                .context = judge,
                                                .zones = world_zones(),
                                                .list_count_max = UINT32_MAX});
}

struct judge *judge_create(struct world *world)
{
    struct judge *judge = model_alloc(sizeof *judge);
    judge->world = world;
    judge->model = make_model(judge, world->now);
    judge->next = (struct bel_next){.due = {BEL_NEVER}, .wait = {BEL_NEVER}};
    return judge;
}

static void forget_events(struct judge *judge, size_t from)
{
    for (size_t i = from; i < judge->count; i++) {
        free(judge->events[i].given.items);
    }
    judge->count = from;
}

void judge_destroy(struct judge *judge)
{
    if (judge == NULL) return;
    forget_events(judge, 0);
    model_destroy(judge->model);
    if (judge->anchor != NULL) model_destroy(judge->anchor);
    free(judge->events);
    free(judge->waiting.items);
    free(judge->decided.items);
    free(judge);
}

static struct event *add_event(struct judge *judge, enum event_kind kind)
{
    if (judge->count == judge->capacity) {
        judge->capacity = 2 * judge->capacity + 64;
        judge->events = realloc(judge->events, judge->capacity * sizeof *judge->events);
        if (judge->events == NULL) abort();
    }
    struct event *event = &judge->events[judge->count++];
    *event = (struct event){.kind = kind,
                            .now = judge->world->now,
                            .word = judge->world->entropy.word,
                            .batch = judge->world->engine->store->batch};
    return event;
}

/* --- the model lives --- */

static void decided(struct bel_request *request, const struct bel_reply *reply)
{
    struct order *order = request->user;
    struct judge *judge = order->world->judge;
    (void)list_take(&judge->waiting, order);
    order->is_answered = true;
    order->event = judge->count;
    if (judge->is_replaying) return;
    heard_free(order->heard[MODEL_SIDE]);
    order->heard[MODEL_SIDE] = heard_copy(request->command.verb, reply);
    list_add(&judge->decided, order);
}

static void withdraw(struct judge *judge, struct order *order)
{
    if (!list_take(&judge->waiting, order)) return;
    (void)bel_backend_withdraw(model_backend(judge->model), &order->requests[MODEL_SIDE]);
}

static void withdraw_all(struct judge *judge)
{
    while (judge->waiting.count > 0) {
        withdraw(judge, judge->waiting.items[0]);
    }
}

static void live(struct judge *judge, const struct event *event)
{
    struct bel_backend *backend = model_backend(judge->model);
    judge->word = event->word;
    switch (event->kind) {
    case EVENT_TURN:
        if (event->has_sample) model_pressure(judge->model, &event->sample);
        for (size_t i = 0; i < event->given.count; i++) {
            struct order *order = event->given.items[i];
            if (i < 64 && (event->refused >> i & 1) != 0) continue;
            order->is_answered = false;
            order->requests[MODEL_SIDE].done = decided;
            list_add(&judge->waiting, order);
            bel_backend_submit(backend, &order->requests[MODEL_SIDE]);
        }
        judge->next = bel_backend_turn(backend, event->now);
        world_work(judge->world);
        return;
    case EVENT_WITHDRAW:
        withdraw(judge, event->given.items[0]);
        return;
    case EVENT_REOPEN:
        withdraw_all(judge);
        judge->model->engine_ms = event->engine_ms;
        judge->model->open_ms = event->open_ms;
        judge->model->tokens = event->tokens;
        model_reopen(judge->model, event->now);
        return;
    }
}

/* Begins again, where the engine was opened last or at the start, and lives through the first
 * `count` events. */
static void live_again(struct judge *judge, size_t count)
{
    struct bel_now start = world_start(judge->world);
    bool has_anchor = judge->anchor != NULL && judge->anchor_count <= count;
    withdraw_all(judge);
    model_destroy(judge->model);
    judge->model = has_anchor ? model_clone(judge->anchor) : make_model(judge, start);
    judge->is_replaying = true;
    for (size_t i = has_anchor ? judge->anchor_count : 0; i < count; i++) {
        live(judge, &judge->events[i]);
    }
    judge->is_replaying = false;
}

/* A turn that the engine has not finished, because it went down, is not in the batch before. */
static void put_off(const struct judge *judge, struct event *event)
{
    uint64_t before = judge->count > 1 ? event[-1].batch : 0;
    if (run_is_down(judge->world) && event->batch <= before) event->batch = before + 1;
}

bool judge_turn(struct judge *judge, const struct list_of_orders *submitted)
{
    struct event *event = add_event(judge, EVENT_TURN);
    put_off(judge, event);
    event->has_sample = judge->has_sample;
    event->sample = judge->sample;
    event->is_in_parts = judge->world->has_caught_up;
    if (event->is_in_parts) judge->has_parts = true;
    judge->has_sample = false;
    for (size_t i = 0; i < submitted->count; i++) {
        list_add(&event->given, submitted->items[i]);
    }
    live(judge, event);
    return !judge->model->is_unclear;
}

static void say_model(const struct list_of_orders *looks)
{
    for (size_t i = 0; i < looks->count; i++) {
        order_say_heard(looks->items[i], MODEL_SIDE, "    model: ");
    }
}

void judge_say(struct judge *judge, const struct list_of_orders *looks)
{
    struct event look = {.kind = EVENT_TURN, .now = judge->world->now, .given = *looks};
    live(judge, &look);
    say_model(looks);
}

void judge_press(struct judge *judge, const struct bel_pressure_sample *sample)
{
    judge->has_sample = true;
    judge->sample = *sample;
}

void judge_withdraw(struct judge *judge, struct order *order)
{
    struct event *event = add_event(judge, EVENT_WITHDRAW);
    list_add(&event->given, order);
    live(judge, event);
}

struct model *judge_model(const struct judge *judge)
{
    return judge->model;
}

struct bel_next judge_next(const struct judge *judge)
{
    return judge->next;
}

/* --- comparing --- */

static void note_made_id(struct judge *judge, const struct order *order)
{
    struct differ *differ = &judge->differ;
    const struct bel_reply *one = &order->heard[ENGINE_SIDE]->reply;
    const struct bel_reply *other = &order->heard[MODEL_SIDE]->reply;
    if (order->heard[ENGINE_SIDE]->verb != BEL_VERB_SCHEDULE || order->id[0] != 0) return;
    if (one->err != 0 || other->err != 0 || differ->made_count == DIFFER_IDS_MAX) return;
    size_t i = differ->made_count++;
    (void)snprintf(differ->made[i].one, sizeof differ->made[i].one, "%.*s", (int)one->id.bytes,
                   (const char *)one->id.data);
    (void)snprintf(differ->made[i].other, sizeof differ->made[i].other, "%.*s",
                   (int)other->id.bytes, (const char *)other->id.data);
}

/* Whether one of the model's list is not like one of a page of the engine's. */
static bool differs_from_all(struct differ *differ, const struct bel_timer *one,
                             const struct bel_reply *all)
{
    char text[sizeof differ->text];
    (void)snprintf(text, sizeof text, "%.*s is on a page, and not there", (int)one->id.bytes,
                   (const char *)one->id.data);
    for (size_t i = 0; i < all->timers.count; i++) {
        const struct bel_timer *other = &all->timers.items[i];
        if (!differ_in_timers(differ, one, 1, other, 1)) return false;
        if (heard_same(one->id, other->id)) (void)snprintf(text, sizeof text, "%s", differ->text);
    }
    (void)snprintf(differ->text, sizeof differ->text, "%s", text);
    return true;
}

static bool does_page_differ(struct differ *differ, const struct bel_reply *one,
                             const struct bel_reply *all)
{
    if (all->err != 0) return false;
    for (size_t i = 0; i < one->timers.count; i++) {
        if (differs_from_all(differ, &one->timers.items[i], all)) return true;
    }
    return false;
}

/* Whether the only page that was asked for is the whole list. */
static bool is_whole(const struct order *order)
{
    const struct bel_list_query *query = &order->requests[ENGINE_SIDE].command.list;
    return query->cursor.bytes == 0 && order->heard[ENGINE_SIDE]->reply.timers.cursor.bytes == 0;
}

/* Whether two lists may have another order. What was due in one ms, and had no room, is done in
 * several turns of the engine: two plans that make up for missed times then take turns, and their
 * occurrences that expire at once have other sequences than those of the model. */
static bool may_be_mixed(const struct judge *judge, const struct order *order)
{
    const struct heard *one = order->heard[ENGINE_SIDE], *other = order->heard[MODEL_SIDE];
    return judge->has_parts && one->verb == BEL_VERB_LIST && one->reply.err == 0 &&
           other->reply.err == 0 && one->reply.timers.count == other->reply.timers.count;
}

static bool do_differ(struct judge *judge, const struct order *order)
{
    const struct heard *one = order->heard[ENGINE_SIDE], *other = order->heard[MODEL_SIDE];
    if (may_be_mixed(judge, order)) {
        return does_page_differ(&judge->differ, &one->reply, &other->reply);
    }
    if (order->is_page && one->reply.err == 0 && !is_whole(order)) {
        return does_page_differ(&judge->differ, &one->reply, &other->reply);
    }
    return differ_in(&judge->differ, one, other);
}

static bool compare(struct judge *judge, struct order *order)
{
    note_made_id(judge, order);
    if (!do_differ(judge, order)) return true;
    world_fail(judge->world, "model", "#%" PRIu64 " %s: engine and model differ: %s", order->number,
               bel_verb_name(order->heard[ENGINE_SIDE]->verb), judge->differ.text);
    return false;
}

/* A wait that has ended with nothing. Of several, any may be the first. */
static bool is_empty_claim(const struct order *order)
{
    const struct heard *heard = order->heard[MODEL_SIDE];
    return heard->verb == BEL_VERB_CLAIM && heard->reply.err == 0 &&
           heard->reply.deliveries.count == 0;
}

/* A read that need not wait for what others have changed before it: reads.c judges when it may be
 * told. */
static bool is_early(const struct judge *judge, const struct order *order)
{
    return has_feature(judge->world, FEATURE_LATE_SYNC) && order->is_read;
}

/* Whether it is this one's turn to be told. */
static bool is_next(const struct judge *judge, const struct order *order)
{
    for (size_t i = 0; i < judge->decided.count; i++) {
        const struct order *first = judge->decided.items[i];
        if (first == order) return true;
        if (first->has_more) continue;                         /* it is told after its last page */
        if (first->is_sliced && order_is_job(first)) continue; /* after others of its turn */
        if (is_early(judge, order) || is_early(judge, first)) continue;
        if (!is_empty_claim(first) || !is_empty_claim(order)) return false;
    }
    return false;
}

/* The first that the model has decided, and the engine should have told; NULL if there is none. */
static const struct order *find_untold(const struct judge *judge)
{
    for (size_t i = 0; i < judge->decided.count; i++) {
        if (!judge->decided.items[i]->has_more) return judge->decided.items[i];
    }
    return NULL;
}

bool judge_compare(struct judge *judge, bool is_all)
{
    struct world *world = judge->world;
    for (size_t i = 0; i < world->told.count; i++) {
        struct order *order = world->told.items[i];
        if (order->is_over) continue; /* the end of the engine was all that was said */
        if (order->is_refused) continue;
        const char *verb = bel_verb_name(order->requests[ENGINE_SIDE].command.verb);
        if (!is_next(judge, order)) {
            world_fail(world, "model", "#%" PRIu64 " %s is answered out of turn", order->number,
                       verb);
            return false;
        }
        (void)list_take(&judge->decided, order);
        if (!compare(judge, order)) return false;
        if (order->event > judge->answered && !is_early(judge, order)) {
            judge->answered = order->event;
        }
    }
    const struct order *untold = is_all ? find_untold(judge) : NULL;
    if (untold == NULL) return true;
    world_fail(world, "model", "#%" PRIu64 " %s is not answered", untold->number,
               bel_verb_name(untold->requests[ENGINE_SIDE].command.verb));
    return false;
}

/* --- after an opening --- */

static bool has_leases(struct judge *judge)
{
    for (size_t i = 0; i < judge->model->timers.count; i++) {
        if (model_timer_at(judge->model, i)->state == BEL_LEASED) return true;
    }
    return false;
}

static bool is_known(const struct differ *differ, struct bel_view id)
{
    for (size_t i = 0; i < differ->made_count; i++) {
        if (memcmp(differ->made[i].one, id.data, id.bytes) == 0) return true;
    }
    return false;
}

/* Timers with made ids of which nobody has heard are the same if all else is. */
static void match_made_ids(struct judge *judge, const struct heard *one, const struct heard *other)
{
    struct differ *differ = &judge->differ;
    if (one->verb != BEL_VERB_LIST || one->reply.timers.count != other->reply.timers.count) return;
    for (size_t i = 0; i < one->reply.timers.count; i++) {
        struct bel_view a = one->reply.timers.items[i].id, b = other->reply.timers.items[i].id;
        if (a.bytes != BEL_MADE_ID_BYTES || b.bytes != BEL_MADE_ID_BYTES) continue;
        if (is_known(differ, a) || differ->made_count == DIFFER_IDS_MAX) continue;
        size_t at = differ->made_count++;
        memcpy(differ->made[at].one, a.data, a.bytes);
        memcpy(differ->made[at].other, b.data, b.bytes);
    }
}

static bool is_here(struct judge *judge, const struct list_of_orders *looks)
{
    size_t made_count = judge->differ.made_count;
    for (size_t i = 0; i < looks->count; i++) {
        const struct order *order = looks->items[i];
        match_made_ids(judge, order->heard[ENGINE_SIDE], order->heard[MODEL_SIDE]);
        if (!do_differ(judge, order)) continue;
        judge->differ.made_count = made_count;
        say(judge->world, "    not here: %s\n", judge->differ.text);
        say_model(looks);
        return false;
    }
    return true;
}

/* Open time does not run while it is closed, and little of it is forgotten. */
static bool are_times_right(struct judge *judge, int64_t engine_ms, int64_t open_ms)
{
    const struct model *model = judge->model;
    int64_t behind = model->open_ms - open_ms;
    int64_t wall_ms = judge->world->now.wall.ms;
    if (behind < 0 || (behind > SAVE_MS && has_leases(judge))) {
        (void)snprintf(judge->differ.text, sizeof judge->differ.text,
                       "open time: %" PRId64 " and %" PRId64, open_ms, model->open_ms);
        return false;
    }
    int64_t latest = model->engine_ms > wall_ms ? model->engine_ms : wall_ms;
    if (engine_ms >= wall_ms && engine_ms <= latest) return true;
    (void)snprintf(judge->differ.text, sizeof judge->differ.text,
                   "engine time: %" PRId64 " and %" PRId64, engine_ms, latest);
    return false;
}

/* Lets the model, after `count` events, be opened and looked at. */
static bool try_at(struct judge *judge, size_t count, const struct list_of_orders *looks)
{
    const struct world *world = judge->world;
    const struct bel_times *times = &world->engine->now;
    struct event reopen = {.kind = EVENT_REOPEN,
                           .now = world->now,
                           .engine_ms = (int64_t)times->engine,
                           .open_ms = (int64_t)times->open,
                           .tokens = world->opens * TOKENS_APART};
    struct event look = {.kind = EVENT_TURN, .now = world->now, .given = *looks};
    withdraw_all(judge);
    if (!are_times_right(judge, reopen.engine_ms, reopen.open_ms)) return false;
    live(judge, &reopen);
    live(judge, &look);
    judge->decided.count = 0;
    if (!is_here(judge, looks)) return false;

    forget_events(judge, count);
    struct event *event = add_event(judge, EVENT_REOPEN);
    event->engine_ms = reopen.engine_ms;
    event->open_ms = reopen.open_ms;
    event->tokens = reopen.tokens;
    event = add_event(judge, EVENT_TURN);
    for (size_t i = 0; i < looks->count; i++) {
        list_add(&event->given, looks->items[i]);
    }
    judge->answered = judge->count;
    return true;
}

/* Those of a turn that can be refused for want of room, by place. */
static uint64_t refusable(const struct event *event)
{
    uint64_t places = 0;
    for (size_t i = 0; i < event->given.count && i < 64; i++) {
        const struct order *order = event->given.items[i];
        enum bel_verb verb = order->requests[ENGINE_SIDE].command.verb;
        bool adds = verb == BEL_VERB_SCHEDULE || verb == BEL_VERB_REVIVE ||
                    verb == BEL_VERB_CONFIGURE || verb == BEL_VERB_PAUSE;
        if (adds) places |= UINT64_C(1) << i;
    }
    return event->kind == EVENT_TURN ? places : 0;
}

/* Tries the first `count` events, and with any of the last turn's refused, if room was tight. */
static bool try_refusals(struct judge *judge, size_t count, bool is_tight,
                         const struct list_of_orders *looks)
{
    if (!judge->is_at_end || count < judge->count) live_again(judge, count);
    judge->is_at_end = false;
    if (try_at(judge, count, looks)) return true;
    if (!is_tight || count == 0) return false;
    uint64_t places = refusable(&judge->events[count - 1]);
    for (uint64_t some = places; some != 0; some = (some - 1) & places) {
        judge->events[count - 1].refused = some;
        live_again(judge, count);
        if (try_at(judge, count, looks)) return true;
    }
    judge->events[count - 1].refused = 0;
    return false;
}

/* How many events there are up to a batch. */
static size_t count_up_to(const struct judge *judge, uint64_t batch)
{
    size_t count = judge->count;
    while (count > 0 && judge->events[count - 1].batch > batch) {
        count--;
    }
    return count;
}

void judge_cut(struct judge *judge)
{
    size_t durable = count_up_to(judge, judge->world->synced);
    if (durable < judge->answered) judge->answered = durable;
}

/* Whether the engine may have done a part of a turn, because an order took several of its own: that
 * order in part, or those that it has begun since; or because what was due did. */
static bool has_part(const struct judge *judge)
{
    bool is_lazy = has_feature(judge->world, FEATURE_LAZY); /* answers may be lost */
    for (size_t i = judge->answered > 0 ? judge->answered - 1 : 0; i < judge->count; i++) {
        const struct list_of_orders *given = &judge->events[i].given;
        bool is_sliced = false, is_sure = !is_lazy;
        if (judge->events[i].is_in_parts && i >= judge->answered) return true;
        for (size_t j = 0; j < given->count; j++) {
            const struct order *order = given->items[j];
            if (!order->is_told || order->is_over) is_sure = false;
            if (order->is_sliced) is_sliced = true;
        }
        if (is_sliced && !is_sure) return true;
    }
    return false;
}

/* Where the engine is, as the number of its last batch has it, is tried first. */
static bool find_place(struct judge *judge, bool is_tight, const struct list_of_orders *looks,
                       size_t *out)
{
    size_t likely = count_up_to(judge, judge->world->recovered);
    if (likely < judge->answered) likely = judge->answered;
    *out = likely;
    judge->is_at_end = true;
    if (try_refusals(judge, likely, is_tight, looks)) return true;
    for (*out = judge->count; *out >= judge->answered; --*out) {
        if (*out != likely && try_refusals(judge, *out, is_tight, looks)) return true;
        if (*out == 0) break;
    }
    return false;
}

bool judge_reopen(struct judge *judge, bool is_tight, const struct list_of_orders *looks)
{
    size_t all = judge->count, place;
    judge->decided.count = 0;
    judge->has_sample = false; /* pressure is not kept */
    if (find_place(judge, is_tight, looks, &place)) {
        say(judge->world, "      %zu turns are lost\n", all - place);
        if (place < all) walk_forget(judge->world->walk);
        if (judge->anchor != NULL) model_destroy(judge->anchor);
        judge->anchor = model_clone(judge->model);
        judge->anchor_count = judge->count;
        return true;
    }
    if (is_tight && has_feature(judge->world, FEATURE_PLANS)) return false; /* or plans were */
    if (has_part(judge)) return false;
    world_fail(judge->world, "durable",
               "after an opening, none of the turns from %zu, which was answered, to %zu is where "
               "it is; after the first: %s",
               judge->answered, all, judge->differ.text);
    return false;
}
