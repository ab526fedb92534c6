/* SPDX-License-Identifier: MIT */

/*
 * A parked claim is in the line of each of its topics:
 *
 *     topic a   waiters:  claim 1, claim 4
 *     topic b   waiters:  claim 2, claim 4
 *     orphans   "c":      claim 3, for a topic that does not exist yet
 *
 * A topic is hot if it may have something for its first waiter. Of the first waiters of all hot
 * topics, the oldest claim is served first, from all of its topics. The rest is for the next claim.
 *
 * A claim finds its topics through its waiters, and the heap of hot topics has the oldest claim
 * first: what is done for a claim does not depend on how many topics are hot, or claims wait.
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
    struct bel_topic_state *topic; /* NULL if it does not exist: */
    struct orphans *orphans;
};

/* The line for a topic that does not exist. */
struct orphans {
    struct bel_list waiters;
    uint32_t name_bytes;
    char name[];
};

enum {
    WAITS_MAX = 1 << 20,
    ENDS_MAX = 4096 /* waits ended in one turn */
};

int bel__wait_open(struct bel_engine *engine, struct bel_siphash_key secret)
{
    bel__map_init(&engine->waiting.orphans, secret);
    bel__list_init(&engine->waiting.later);
    struct bel_wheel_options options = {.now = engine->now.real.ns, .timers_max = WAITS_MAX};
    return bel_wheel_create(&options, &engine->waiting.wheel);
}

static struct waiter *waiters_of(const struct bel_request *request)
{
    assert(request->own.words[BEL_OWN_STAGE] == BEL_STAGE_WAITING);
    return (struct waiter *)(uintptr_t)request->own.words[BEL_OWN_WAITERS];
}

/* Returns the first claim in a topic's line, or NULL. */
static struct bel_request *first_at(const struct bel_topic_state *topic)
{
    struct bel_link *link = bel__list_first(&topic->waiters);
    return link == NULL ? NULL : BEL_CONTAINER_OF(link, struct waiter, link)->request;
}

static void free_orphans(struct bel_waiting *waiting, struct orphans *orphans)
{
    bool was_there = bel__map_remove(&waiting->orphans, orphans->name, orphans->name_bytes, NULL);
    assert(was_there);
    (void)was_there;
    free(orphans);
}

/* Puts a waiter at the end of the line of its topic. Returns 0 or BEL_ENOMEM. */
static int stand_in_line(struct bel_engine *engine, struct bel_view name, struct waiter *waiter)
{
    struct bel_map *map = &engine->waiting.orphans;
    waiter->topic = bel__topic_find(&engine->topics, name);
    if (waiter->topic != NULL) {
        bel__list_append(&waiter->topic->waiters, &waiter->link);
        return 0;
    }
    const uint64_t *known = bel__map_find(map, name.data, name.bytes);
    struct orphans *orphans = known == NULL ? NULL : (struct orphans *)(uintptr_t)*known;
    if (orphans == NULL) {
        orphans = malloc(sizeof *orphans + name.bytes);
        if (orphans == NULL) return BEL_ENOMEM;
        bel__list_init(&orphans->waiters);
        orphans->name_bytes = (uint32_t)name.bytes;
        memcpy(orphans->name, name.data, name.bytes);
        if (bel__map_put(map, orphans->name, name.bytes, (uintptr_t)orphans) != 0) {
            free(orphans);
            return BEL_ENOMEM;
        }
    }
    waiter->orphans = orphans;
    bel__list_append(&orphans->waiters, &waiter->link);
    return 0;
}

/* Takes a waiter out of its line. The topic is then hot for the next one in the line, if any. */
static void step_out(struct bel_engine *engine, struct waiter *waiter)
{
    struct bel_waiting *waiting = &engine->waiting;
    struct bel_topic_state *topic = waiter->topic;
    bel__link_remove(&waiter->link);
    if (topic == NULL) {
        if (bel__list_is_empty(&waiter->orphans->waiters)) free_orphans(waiting, waiter->orphans);
        return;
    }
    if (topic->hot_place == 0) return;
    const struct bel_request *next = first_at(topic);
    if (next == NULL) {
        bel__hot_remove(&waiting->hot, topic);
    } else {
        bel__hot_change(&waiting->hot, topic, next->own.words[BEL_OWN_PARKED]);
    }
}

static void step_out_all(struct bel_engine *engine, struct waiter *waiters, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        step_out(engine, &waiters[i]);
    }
    free(waiters);
}

void bel__wait_close(struct bel_engine *engine)
{
    struct bel_waiting *waiting = &engine->waiting;
    struct bel_wheel_timer timer;
    while (waiting->wheel != NULL && bel_wheel_count(waiting->wheel) > 0) {
        if (!bel_wheel_pop(waiting->wheel, BEL_NEVER - 1, &timer)) continue;
        struct bel_request *request = (struct bel_request *)(uintptr_t)timer.user;
        step_out_all(engine, waiters_of(request), request->command.claim.topics_count);
    }
    bel_wheel_destroy(waiting->wheel);
    assert(bel__map_count(&waiting->orphans) == 0);
    bel__map_finish(&waiting->orphans);
    bel__hot_finish(&waiting->hot);
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
    bel_timer_t timer = BEL_TIMER_NONE;
    size_t count = 0;
    assert(request->command.verb == BEL_VERB_CLAIM && claim->topics_count > 0);
    if (waiters == NULL) return BEL_ENOMEM;
    int err = 0;
    for (; err == 0 && count < claim->topics_count; count += err == 0) {
        waiters[count].request = request;
        err = stand_in_line(engine, claim->topics[count], &waiters[count]);
    }
    if (err == 0) {
        err = bel_wheel_arm(engine->waiting.wheel, end_of(engine, claim->wait_ms),
                            BEL_PRIORITY_DEFAULT, (uintptr_t)request, &timer);
    }
    if (err) {
        step_out_all(engine, waiters, count);
        return err;
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
    bel_wheel_cancel(engine->waiting.wheel, request->own.words[BEL_OWN_TIMER]);
    step_out_all(engine, waiters, request->command.claim.topics_count);
}

void bel__wait_mark(struct bel_engine *engine, struct bel_topic_state *topic)
{
    if (topic->hot_place != 0 || bel__link_is_linked(&topic->later)) return;
    const struct bel_request *first = first_at(topic);
    if (first == NULL) return;
    bel__hot_put(&engine->waiting.hot, topic, first->own.words[BEL_OWN_PARKED]);
}

void bel__wait_adopt(struct bel_engine *engine, struct bel_topic_state *topic)
{
    struct bel_map *map = &engine->waiting.orphans;
    const uint64_t *known = bel__map_find(map, topic->name, topic->name_bytes);
    assert(bel__list_is_empty(&topic->waiters)); /* the topic is new */
    if (known == NULL) return;
    struct orphans *orphans = (struct orphans *)(uintptr_t)*known;
    for (struct bel_link *link = bel__list_first(&orphans->waiters); link != NULL;
         link = bel__list_next(&orphans->waiters, link)) {
        struct waiter *waiter = BEL_CONTAINER_OF(link, struct waiter, link);
        waiter->topic = topic;
        waiter->orphans = NULL;
    }
    bel__list_splice(&topic->waiters, &orphans->waiters);
    free_orphans(&engine->waiting, orphans);
}

struct bel_request *bel__wait_first(const struct bel_engine *engine)
{
    const struct bel_topic_state *topic = bel__hot_first(&engine->waiting.hot);
    if (topic == NULL) return NULL;
    struct bel_request *first = first_at(topic);
    assert(first != NULL && first->own.words[BEL_OWN_STAGE] == BEL_STAGE_WAITING);
    return first;
}

/* Takes the topics where a claim is first in line out of the hot ones, and puts them into a list,
 * NULL for none. Later waiters of these topics must not overtake the first one. */
static void cool(struct bel_engine *engine, const struct bel_request *request, struct bel_list *to)
{
    const struct waiter *waiters = waiters_of(request);
    assert(request->own.reply.deliveries.count == 0);
    for (size_t i = 0; i < request->command.claim.topics_count; i++) {
        struct bel_topic_state *topic = waiters[i].topic;
        if (topic == NULL || topic->hot_place == 0 || first_at(topic) != request) continue;
        bel__hot_remove(&engine->waiting.hot, topic);
        if (to != NULL) bel__list_append(to, &topic->later);
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
        bel__wait_mark(engine, BEL_CONTAINER_OF(link, struct bel_topic_state, later));
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
