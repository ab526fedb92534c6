/* SPDX-License-Identifier: MIT */

/*
 * A parked claim is in the line of each of its topics:
 *
 *     topic a   waiters:  claim 1, claim 4
 *     topic b   waiters:  claim 2, claim 4
 *     orphans:            claim 3, for a topic that does not exist yet
 *
 * A topic is hot if it may have something for its first waiter. Of the first waiters of all hot
 * topics, the oldest claim is served first, from all of its topics. The rest is for the next claim.
 */
#include "engine/state/wait.h"

#include "engine/state/dependency.h"
#include "engine/state/state.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* The entry of a claim in one line. */
struct waiter {
    struct bel_link link;
    struct bel_request *request;
    struct bel_view topic;
};

enum {
    WAITS_MAX = 1 << 20,
    ENDS_MAX = 4096 /* waits ended in one turn */
};

int bel__wait_open(struct bel_engine *engine)
{
    bel__list_init(&engine->waiting.orphans);
    bel__list_init(&engine->waiting.hot);
    bel__list_init(&engine->waiting.later);
    struct bel_wheel_options options = {.now = engine->now.real.ns, .timers_max = WAITS_MAX};
    return bel_wheel_create(&options, &engine->waiting.wheel);
}

static struct waiter *waiters_of(const struct bel_request *request)
{
    assert(request->own.words[BEL_OWN_STAGE] == BEL_STAGE_WAITING);
    return (struct waiter *)(uintptr_t)request->own.words[BEL_OWN_WAITERS];
}

void bel__wait_close(struct bel_engine *engine)
{
    struct bel_wheel *wheel = engine->waiting.wheel;
    struct bel_wheel_timer timer;
    if (wheel == NULL) return;
    while (bel_wheel_count(wheel) > 0) {
        if (!bel_wheel_pop(wheel, BEL_NEVER - 1, &timer)) continue;
        free(waiters_of((struct bel_request *)(uintptr_t)timer.user));
    }
    bel_wheel_destroy(wheel);
}

static void stand_in_line(struct bel_engine *engine, struct waiter *waiter)
{
    struct bel_topic_state *topic = bel__topic_find(&engine->topics, waiter->topic);
    bel__list_append(topic != NULL ? &topic->waiters : &engine->waiting.orphans, &waiter->link);
}

/* Returns when the wait ends, in ns of real time. */
static uint64_t end_of(const struct bel_engine *engine, uint64_t wait_ms)
{
    struct bel_mono end;
    uint64_t wait_ns = wait_ms > UINT64_MAX / 1000000 ? UINT64_MAX : wait_ms * 1000000;
    return bel_mono_add(engine->now.real, wait_ns, &end) == 0 ? end.ns : BEL_NEVER - 1;
}

int bel__wait_park(struct bel_engine *engine, struct bel_request *request)
{
    const struct bel_claim *claim = &request->command.claim;
    struct waiter *waiters = calloc(claim->topics_count, sizeof *waiters);
    bel_timer_t timer;
    assert(request->command.verb == BEL_VERB_CLAIM && claim->topics_count > 0);
    if (waiters == NULL) return BEL_ENOMEM;
    int err = bel_wheel_arm(engine->waiting.wheel, end_of(engine, claim->wait_ms),
                            BEL_PRIORITY_DEFAULT, (uintptr_t)request, &timer);
    if (err) {
        free(waiters);
        return err;
    }
    for (size_t i = 0; i < claim->topics_count; i++) {
        waiters[i] = (struct waiter){.request = request, .topic = claim->topics[i]};
        stand_in_line(engine, &waiters[i]);
    }
    request->own.words[BEL_OWN_STAGE] = BEL_STAGE_WAITING;
    request->own.words[BEL_OWN_WAITERS] = (uintptr_t)waiters;
    request->own.words[BEL_OWN_TIMER] = timer;
    request->own.words[BEL_OWN_PARKED] = ++engine->waiting.parked;
    return 0;
}

void bel__wait_leave(struct bel_engine *engine, struct bel_request *request)
{
    struct waiter *waiters = waiters_of(request);
    for (size_t i = 0; i < request->command.claim.topics_count; i++) {
        bel__link_remove(&waiters[i].link);
    }
    bel_wheel_cancel(engine->waiting.wheel, request->own.words[BEL_OWN_TIMER]);
    free(waiters);
}

void bel__wait_mark(struct bel_engine *engine, struct bel_topic_state *topic)
{
    if (bel__list_is_empty(&topic->waiters) || bel__link_is_linked(&topic->hot)) return;
    bel__list_append(&engine->waiting.hot, &topic->hot);
}

void bel__wait_adopt(struct bel_engine *engine, struct bel_topic_state *topic)
{
    struct bel_list *orphans = &engine->waiting.orphans;
    struct bel_link *next;
    assert(bel__list_is_empty(&topic->waiters)); /* the topic is new */
    for (struct bel_link *link = bel__list_first(orphans); link != NULL; link = next) {
        struct waiter *waiter = BEL_CONTAINER_OF(link, struct waiter, link);
        next = bel__list_next(orphans, link);
        if (waiter->topic.bytes != topic->name_bytes) continue;
        if (memcmp(waiter->topic.data, topic->name, topic->name_bytes) != 0) continue;
        bel__link_remove(link);
        bel__list_append(&topic->waiters, link);
    }
}

/* Returns the first claim in a topic's line, or NULL. */
static struct bel_request *first_at(const struct bel_topic_state *topic)
{
    struct bel_link *link = bel__list_first(&topic->waiters);
    return link == NULL ? NULL : BEL_CONTAINER_OF(link, struct waiter, link)->request;
}

/* Also removes topics without waiters from the hot list. */
struct bel_request *bel__wait_first(struct bel_engine *engine)
{
    struct bel_list *hot = &engine->waiting.hot;
    struct bel_request *first = NULL;
    struct bel_link *next;
    for (struct bel_link *link = bel__list_first(hot); link != NULL; link = next) {
        struct bel_topic_state *topic = BEL_CONTAINER_OF(link, struct bel_topic_state, hot);
        struct bel_request *request = first_at(topic);
        next = bel__list_next(hot, link);
        assert(request == NULL || request->own.words[BEL_OWN_STAGE] == BEL_STAGE_WAITING);
        if (request == NULL) {
            bel__link_remove(link);
        } else if (first == NULL ||
                   request->own.words[BEL_OWN_PARKED] < first->own.words[BEL_OWN_PARKED]) {
            first = request;
        }
    }
    return first;
}

/* Takes the topics where a claim is first in line off the hot list, and puts them on another one,
 * NULL for none. Later waiters of these topics must not overtake the first one. */
static void cool(struct bel_engine *engine, const struct bel_request *request, struct bel_list *to)
{
    struct bel_list *hot = &engine->waiting.hot;
    struct bel_link *next;
    assert(request->own.reply.deliveries.count == 0);
    for (struct bel_link *link = bel__list_first(hot); link != NULL; link = next) {
        struct bel_topic_state *topic = BEL_CONTAINER_OF(link, struct bel_topic_state, hot);
        next = bel__list_next(hot, link);
        if (first_at(topic) != request) continue;
        bel__link_remove(link);
        if (to != NULL) bel__list_append(to, link);
    }
}

void bel__wait_cool(struct bel_engine *engine, const struct bel_request *request)
{
    cool(engine, request, NULL);
}

void bel__wait_put_off(struct bel_engine *engine, const struct bel_request *request)
{
    cool(engine, request, &engine->waiting.later);
    engine->is_behind = true;
}

void bel__wait_begin(struct bel_engine *engine)
{
    struct bel_link *link;
    while ((link = bel__list_take_first(&engine->waiting.later)) != NULL) {
        bel__list_append(&engine->waiting.hot, link);
    }
}

void bel__wait_turn(struct bel_engine *engine)
{
    struct bel_wheel *wheel = engine->waiting.wheel;
    struct bel_wheel_timer timer;
    uint64_t now = engine->broken ? BEL_NEVER - 1 : engine->now.real.ns; /* end all waits */
    for (int i = 0; i < ENDS_MAX && bel_wheel_next(wheel) <= now; i++) {
        if (!bel_wheel_pop(wheel, now, &timer)) continue;
        struct bel_request *request = (struct bel_request *)(uintptr_t)timer.user;
        assert(request->command.verb == BEL_VERB_CLAIM);
        bel__wait_leave(engine, request);
        request->own.reply = (struct bel_reply){0};
        bool is_late = engine->rows.changes.is_on && !engine->broken;
        request->own.words[BEL_OWN_AFTER] = is_late ? bel__dependency(engine, request) : 0;
        bel__answer(engine, request);
    }
}
