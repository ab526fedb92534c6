/* SPDX-License-Identifier: MIT */

/*
 * A walk: LIST with few on a page, from cursor to cursor to the end, while everything changes and
 * breaks. What keeps its place all the way is on exactly one page:
 *
 *     asked for the first page          the last one is there
 *          |  what there is, by place        |  what is still there, at the same place
 *          '---- page --- page --- page -----'
 *
 * What is on a page is compared with the model as it is then; here it is only where things are.
 * (The simulator's own looks go from page to page too, while nothing changes: see run.c.)
 * A place is what the key of the engine's row is made of, and has a sequence that is never used
 * again, so what has the same place twice has not moved in between.
 */
#include "world.h"

#include "../model/inside.h"
#include "engine/engine.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PAGE_MAX = 6,
};

/* Where a timer is. */
struct known {
    char id[BEL_ID_BYTES + 1];
    uint64_t sequence;
    struct instant due;
    int64_t next_ms;
    bool has_next;
    enum bel_state end; /* a terminal state, or BEL_SCHEDULED */
    unsigned listed;    /* on so many pages */
};

struct walk {
    struct world *world;
    const struct order *asked; /* for a page, and not told; or NULL */
    const struct order *page;  /* the last that was told, if there is more; or NULL */
    bool is_checked;           /* there was a model to begin with */
    struct known *known;
    size_t count;
};

struct walk *walk_create(struct world *world)
{
    struct walk *walk = calloc(1, sizeof *walk);
    if (walk == NULL) abort();
    walk->world = world;
    return walk;
}

void walk_destroy(struct walk *walk)
{
    free(walk->known);
    free(walk);
}

static struct known place_of(const struct timer *timer)
{
    struct known known = {.sequence = timer->sequence,
                          .due = timer->due,
                          .next_ms = timer->rule.next_ms,
                          .has_next = timer->rule.has_next,
                          .end = timer->state >= BEL_DONE ? timer->state : BEL_SCHEDULED};
    (void)snprintf(known.id, sizeof known.id, "%.*s", (int)timer->id.count, timer->id.data);
    return known;
}

static bool is_same_place(const struct known *a, const struct known *b)
{
    return a->sequence == b->sequence && a->due.line == b->due.line && a->due.ms == b->due.ms &&
           a->has_next == b->has_next && a->next_ms == b->next_ms && a->end == b->end;
}

/* Notes where everything is. */
static void note(struct walk *walk, struct bel_view topic)
{
    struct judge *judge = walk->world->judge;
    walk->count = 0;
    walk->is_checked = judge != NULL;
    if (judge == NULL) return;
    struct model *model = judge_model(judge);
    for (size_t i = 0; i < model->timers.count; i++) {
        const struct timer *timer = model_timer_at(model, i);
        if (!heard_same(topic, view_of(timer->topic->name))) continue;
        if (timer->id.count == BEL_MADE_ID_BYTES) continue; /* the engine has another one */
        walk->known = realloc(walk->known, (walk->count + 1) * sizeof *walk->known);
        if (walk->known == NULL) abort();
        walk->known[walk->count++] = place_of(timer);
    }
}

bool walk_draw(struct walk *walk, struct order *order, struct bel_view topic,
               struct bel_list_query *out)
{
    struct world *world = walk->world;
    if (!has_feature(world, FEATURE_PAGES) || !chance(world, 70)) return false;
    bool is_lost = walk->asked != NULL && (walk->asked->is_over || chance(world, 20));
    if (walk->asked != NULL && !is_lost) return false;
    *out = (struct bel_list_query){.topic = topic, .count = 1 + (uint32_t)below(world, PAGE_MAX)};
    if (walk->page != NULL) {
        *out = walk->page->requests[ENGINE_SIDE].command.list;
        out->cursor = walk->page->heard[ENGINE_SIDE]->reply.timers.cursor;
    } else {
        note(walk, topic);
    }
    order->is_page = true;
    walk->asked = order;
    return true;
}

static void count_page(struct walk *walk, const struct bel_reply *reply)
{
    for (size_t i = 0; i < reply->timers.count; i++) {
        for (size_t j = 0; j < walk->count; j++) {
            struct known *known = &walk->known[j];
            if (heard_same(reply->timers.items[i].id, view_of(known->id))) known->listed++;
        }
    }
}

/* Those that end by themselves may be gone for the engine and not yet for the model. */
static bool may_be_gone(const struct walk *walk, const struct known *known)
{
    return known->end != BEL_SCHEDULED && has_feature(walk->world, FEATURE_RETENTION);
}

static void check_all(struct walk *walk, struct bel_view topic)
{
    struct judge *judge = walk->world->judge;
    if (judge == NULL || !walk->is_checked) return;
    struct model *model = judge_model(judge);
    for (size_t i = 0; i < walk->count; i++) {
        const struct known *known = &walk->known[i];
        struct topic *found = model_topic_find(model, topic);
        const struct timer *timer = model_timer_find(model, found, view_of(known->id));
        if (timer == NULL || known->listed == 1 || may_be_gone(walk, known)) continue;
        struct known now = place_of(timer);
        if (!is_same_place(known, &now)) continue;
        world_fail(walk->world, "pages", "%s has not moved, and is on %u pages", known->id,
                   known->listed);
    }
}

void walk_told(struct walk *walk, const struct order *order)
{
    if (order != walk->asked) return;
    const struct bel_reply *reply = &order->heard[ENGINE_SIDE]->reply;
    const struct bel_list_query *query = &order->requests[ENGINE_SIDE].command.list;
    walk->asked = NULL;
    if (reply->err == BEL_EINVAL) {
        world_fail(walk->world, "pages", "#%" PRIu64 ": a cursor is refused", order->number);
    }
    if (reply->err != 0) return;
    if (reply->timers.count > query->count) {
        world_fail(walk->world, "pages", "#%" PRIu64 ": a page is too long", order->number);
    }
    count_page(walk, reply);
    walk->page = reply->timers.cursor.bytes > 0 ? order : NULL;
    if (walk->page == NULL) check_all(walk, query->topic);
}

void walk_forget(struct walk *walk)
{
    walk->is_checked = false;
}
