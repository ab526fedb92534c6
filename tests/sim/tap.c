/* SPDX-License-Identifier: MIT */

/*
 * Between the tracker and the engine. A request comes from a session and is either what its client
 * has said next, or takes back a delivery of a claim that was not heard: then it becomes an order,
 * which the model gets as well. The session's `done` waits in the order until the engine, and then
 * the judge, had their say.
 */
#include "speakers.h"

#include "../session/spoken.h"
#include "engine/engine.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static struct bel_backend *engine_of(const struct speakers *speakers)
{
    return bel_engine_backend(speakers->world->engine);
}

static struct speaker *speaker_of(const struct bel_request *request)
{
    return BEL_CONTAINER_OF(bel__caller_of(request), struct speaker, caller);
}

static bool is_same(const struct bel_command *one, const struct bel_command *other)
{
    struct bel_buffer a, b;
    bel__buffer_init(&a, 1 << 20);
    bel__buffer_init(&b, 1 << 20);
    if (one->verb != other->verb) return false;
    spoken_command(one, &a);
    spoken_command(other, &b);
    bool is =
        a.count == b.count && memcmp(bel__buffer_data(&a), bel__buffer_data(&b), a.count) == 0;
    bel__buffer_finish(&a);
    bel__buffer_finish(&b);
    return is;
}

/* The next that a client has said and its session has not submitted, if it is this; else NULL. For
 * some there may have been no memory. */
static struct said *next_said(const struct speaker *speaker, const struct bel_command *command)
{
    for (size_t i = speaker->answered; i < speaker->said_count; i++) {
        struct said *said = &speaker->said[i];
        if (said->order == NULL || said->is_submitted || said->refusal != NULL) continue;
        if (is_same(&said->order->requests[ENGINE_SIDE].command, command)) return said;
        bool is_claim = said->order->requests[ENGINE_SIDE].command.verb == BEL_VERB_CLAIM;
        if (is_claim && speaker->session == NULL) continue; /* it was withdrawn, held back */
        if (!has_fault(speaker->world, FAULT_MEMORY)) return NULL;
    }
    return NULL;
}

/* --- what holds back others --- */

static bool does_hold(const struct bel_command *command)
{
    if (command->verb == BEL_VERB_CLAIM) return command->claim.wait_ms > 0;
    if (command->verb == BEL_VERB_REVIVE) return command->target.id.bytes == 0;
    return command->verb == BEL_VERB_PURGE;
}

static void check_held(const struct speaker *speaker, const struct said *next)
{
    for (const struct said *said = &speaker->said[speaker->answered]; said < next; said++) {
        if (said->order == NULL || !said->is_submitted) continue;
        if (said->order->is_told || said->order->is_over) continue;
        if (!does_hold(&said->order->requests[ENGINE_SIDE].command)) continue;
        world_fail(speaker->world, "held", "#%" PRIu64 " is submitted while #%" PRIu64 " waits",
                   next->order->number, said->order->number);
    }
}

/* --- what is taken back --- */

static bool is_claim(const struct said *said)
{
    const struct order *order = said->order;
    return order != NULL && order->passed != NULL && order->passed->verb == BEL_VERB_CLAIM &&
           order->passed->reply.err == 0;
}

/* Which delivery of a claim has a token; SIZE_MAX if none has. */
static size_t place_of(const struct order *claim, struct bel_view token)
{
    const struct bel_reply *reply = &claim->passed->reply;
    for (size_t i = 0; i < reply->deliveries.count; i++) {
        if (heard_same(reply->deliveries.items[i].token, token)) return i;
    }
    return SIZE_MAX;
}

static struct order *make_release(struct speaker *speaker, struct order *claim, size_t place)
{
    struct order *order = order_make(speaker->world, BEL_VERB_RELEASE);
    order->claim = claim;
    order->claim_place = place;
    order->speaker = speaker;
    order->requests[ENGINE_SIDE].command.release.token =
        claim->passed->reply.deliveries.items[place].token;
    claim->taken_back |= UINT64_C(1) << place;
    list_add(&speaker->world->taken, order);
    return order;
}

/* A delivery that a session takes back by itself; NULL if it has none. */
static struct order *take_back(struct speaker *speaker, const struct bel_command *command)
{
    if (command->verb != BEL_VERB_RELEASE || command->release.has_delay) return NULL;
    for (size_t i = 0; i < speaker->said_count; i++) {
        if (!is_claim(&speaker->said[i])) continue;
        struct order *claim = speaker->said[i].order;
        size_t place = place_of(claim, command->release.token);
        if (place == SIZE_MAX) continue;
        if (i < speaker->answered && !speaker->said[i].is_short) {
            world_fail(speaker->world, "released",
                       "#%" PRIu64 ": what was written to client %" PRIu64 " is taken back",
                       claim->number, speaker->number);
        }
        return make_release(speaker, claim, place);
    }
    return NULL;
}

void tap_check_gone(const struct speaker *speaker)
{
    struct world *world = speaker->world;
    if (has_fault(world, FAULT_MEMORY)) return; /* there was none to note the tokens */
    for (size_t i = speaker->answered; i < speaker->said_count; i++) {
        if (!is_claim(&speaker->said[i])) continue;
        const struct order *claim = speaker->said[i].order;
        uint64_t all = (UINT64_C(1) << claim->passed->reply.deliveries.count) - 1;
        if (claim->taken_back == all) continue;
        world_fail(world, "released",
                   "#%" PRIu64 ": client %" PRIu64
                   " is gone, its deliveries were not written and are not taken back",
                   claim->number, speaker->number);
    }
}

void tap_check_waits(const struct speaker *speaker)
{
    for (size_t i = speaker->answered; i < speaker->said_count; i++) {
        const struct order *order = speaker->said[i].order;
        if (order == NULL || order->request == NULL) continue;
        if (order->request->own.words[BEL_OWN_STAGE] != BEL_STAGE_WAITING) continue;
        world_fail(speaker->world, "released",
                   "#%" PRIu64 " waits for client %" PRIu64 ", which is gone", order->number,
                   speaker->number);
    }
}

void tap_name_for_model(const struct order *order)
{
    struct order *changed = order->world->orders.items[order->number];
    if (order->claim == NULL || order->world->judge == NULL) return;
    const struct heard *heard = order->claim->heard[MODEL_SIDE];
    if (heard == NULL || order->claim_place >= heard->reply.deliveries.count) return;
    changed->requests[MODEL_SIDE].command.release.token =
        heard->reply.deliveries.items[order->claim_place].token;
}

void tap_name_for_book(struct world *world)
{
    size_t left = 0;
    for (size_t i = 0; i < world->taken.count; i++) {
        struct order *order = world->taken.items[i];
        if (order->claim->first_handed == SIZE_MAX) { /* it was told in this turn */
            world->taken.items[left++] = order;
            continue;
        }
        order->handed[0] = order->claim->first_handed + order->claim_place;
        book_submitted(world->book, order);
    }
    world->taken.count = left;
}

/* --- the backend --- */

static void add_orphan(struct speakers *speakers, struct bel_request *request)
{
    size_t bytes = (speakers->orphans_count + 1) * sizeof(void *);
    speakers->orphans = realloc(speakers->orphans, bytes);
    if (speakers->orphans == NULL) abort();
    speakers->orphans[speakers->orphans_count++] = request;
}

/* The order that a request is; NULL if nobody has asked for it. */
static struct order *order_of(struct speakers *speakers, const struct bel_request *request)
{
    struct speaker *speaker = speaker_of(request);
    struct said *said = next_said(speaker, &request->command);
    if (said != NULL) {
        check_held(speaker, said);
        said->is_submitted = true;
        return said->order;
    }
    struct order *order = take_back(speaker, &request->command);
    if (order == NULL) {
        world_fail(speakers->world, "said", "client %" PRIu64 " has not said this %s",
                   speaker->number, bel_verb_name(request->command.verb));
    }
    return order;
}

static void submit(struct bel_backend *backend, struct bel_request *request)
{
    struct speakers *speakers = (struct speakers *)backend;
    struct world *world = speakers->world;
    memory_enter(false);
    struct order *order = speakers->is_dead ? NULL : order_of(speakers, request);
    if (order == NULL) {
        add_orphan(speakers, request);
    } else {
        order->request = request;
        order->done = request->done;
        order->user = request->user;
        request->done = run_told;
        request->user = order;
        order_say(order);
        if (order->claim == NULL) book_submitted(world->book, order);
        list_add(&world->asked, order);
        list_add(&world->fresh, order);
        bel_backend_submit(engine_of(speakers), request);
    }
    memory_enter(world->is_inside);
}

static bool leave_orphans(struct speakers *speakers, const struct bel_request *request)
{
    for (size_t i = 0; i < speakers->orphans_count; i++) {
        if (speakers->orphans[i] != request) continue;
        speakers->orphans[i] = speakers->orphans[--speakers->orphans_count];
        return true;
    }
    return false;
}

/* Makes the request of an order the caller's again. */
static struct bel_request *give_back(struct order *order)
{
    struct bel_request *request = order->request;
    order->request = NULL;
    request->done = order->done;
    request->user = order->user;
    return request;
}

static bool withdraw_order(struct speakers *speakers, struct order *order)
{
    struct world *world = speakers->world;
    if (!speakers->is_dead) {
        if (!bel_backend_withdraw(engine_of(speakers), order->request)) return false;
        (void)list_take(&world->asked, order);
        order->is_over = true;
        order->is_sent_home = speakers->tracker.is_draining;
        bool is_fresh = list_take(&world->fresh, order);
        if (!is_fresh && world->judge != NULL) judge_withdraw(world->judge, order);
        say(world, "  #%" PRIu64 " is withdrawn\n", order->number);
    }
    (void)give_back(order);
    return true;
}

static bool withdraw(struct bel_backend *backend, struct bel_request *request)
{
    struct speakers *speakers = (struct speakers *)backend;
    memory_enter(false);
    bool is = request->done == run_told ? withdraw_order(speakers, request->user)
                                        : leave_orphans(speakers, request);
    memory_enter(speakers->world->is_inside);
    return is;
}

static struct bel_next turn(struct bel_backend *backend, struct bel_now now)
{
    struct speakers *speakers = (struct speakers *)backend;
    if (speakers->is_dead) return (struct bel_next){.due = {BEL_NEVER}, .wait = {BEL_NEVER}};
    return bel_backend_turn(engine_of(speakers), now);
}

void tap_init(struct speakers *speakers)
{
    speakers->tap = (struct bel_backend){.submit = submit, .withdraw = withdraw, .turn = turn};
    speakers->is_dead = false;
}

void tap_pass(struct order *order, const struct bel_reply *reply)
{
    struct bel_request *request = order->request;
    memory_enter(false);
    if (order->claim == NULL) order->passed = heard_copy(request->command.verb, reply);
    (void)give_back(order);
    memory_enter(order->world->is_inside);
    request->done(request, reply);
    memory_enter(false);
}

void tap_end(struct speakers *speakers)
{
    static const struct bel_reply gone = {.err = BEL_EIO, .why = "it is gone"};
    struct world *world = speakers->world;
    for (size_t i = 0; i < world->asked.count; i++) {
        struct order *order = world->asked.items[i];
        if (order->speaker == NULL || order->request == NULL) {
            order->request = NULL;
            continue;
        }
        struct bel_request *request = give_back(order);
        request->done(request, &gone);
    }
    while (speakers->orphans_count > 0) {
        struct bel_request *request = speakers->orphans[--speakers->orphans_count];
        request->done(request, &gone);
    }
}
