/* SPDX-License-Identifier: MIT */

/*
 * CANCEL and RESCHEDULE: commands with the id of a timer or plan. Cancelling a plan also cancels
 * its unfinished occurrences.
 */
#include "engine/commands/commands.h"
#include "engine/state/occurrence.h"
#include "engine/state/plan.h"
#include "engine/state/state.h"

#include <assert.h>

static int cancel(struct bel_engine *engine, struct bel_found *found)
{
    if (found->record.kind == BEL_RECORD_PLAN) {
        int err = bel__occurrences_cancel(engine, found);
        if (err) return err;
    }
    int err = bel__timer_reserve(engine, found, 0, BEL_STORE_END);
    if (err) return err;
    struct bel_ending ending = {.state = BEL_CANCELLED};
    bel__timer_end(engine, found, &ending);
    return 0;
}

int bel__do_cancel(struct bel_engine *engine, struct bel_request *request)
{
    const struct bel_cancel *command = &request->command.cancel;
    struct bel_reply *reply = &request->own.reply;
    if (!bel__topic_is_name(&engine->topics, command->topic)) {
        return bel__refuse(reply, BEL_EINVAL, "invalid topic name");
    }
    struct bel_topic_state *topic = bel__topic_find(&engine->topics, command->topic);
    uint64_t *next = &request->own.words[BEL_OWN_FREE], count = reply->count;
    if (request->own.words[BEL_OWN_STAGE] != BEL_STAGE_BULK) *next = 0;
    for (uint64_t first = *next; *next < command->ids_count; ++*next) {
        struct bel_found found;
        if (*next > first && bel__must_break_off(engine)) {
            return bel__break_off(request, BEL_EBUSY, count);
        }
        int err = bel__timer_find(engine, topic, command->ids[*next], &found);
        if (err == BEL_ENOTFOUND || (err == 0 && found.state >= BEL_DONE)) continue;
        if (err == 0) err = cancel(engine, &found);
        if (err) return bel__break_off(request, err, count);
        count++;
    }
    reply->count = count;
    return 0;
}

static int reschedule(struct bel_engine *engine, struct bel_found *found, struct bel_place place)
{
    uint8_t priority = bel__place_of(&found->key).priority;
    int err = bel__timer_hold(engine, found->topic, &place, bel__record_share(&found->record));
    if (err) return err;
    err = bel__timer_reserve(engine, found, 0, BEL_STORE_END);
    if (err) return err;
    place = bel__timer_place(engine, found->topic, place.lane, place.time, priority);
    bel__timer_reschedule(engine, found, &place);
    return 0;
}

/* Returns the nominal time for the next ring of a plan. */
static uint64_t nominal_of(const struct bel_engine *engine, const struct bel_place *place)
{
    uint64_t wall = bel__lane_wall(&engine->now, place->lane, place->time);
    return wall < (uint64_t)engine->now.wall ? (uint64_t)engine->now.wall : wall;
}

int bel__do_reschedule(struct bel_engine *engine, struct bel_request *request)
{
    const struct bel_reschedule *command = &request->command.reschedule;
    struct bel_reply *reply = &request->own.reply;
    struct bel_place place = {0};
    struct bel_found found;
    if (!bel__topic_is_name(&engine->topics, command->topic)) {
        return bel__refuse(reply, BEL_EINVAL, "invalid topic name");
    }
    int err = bel__times_when(&engine->now, command->when, command->at, command->delay_ms, &place);
    if (err) return bel__refuse(reply, err, "the time is after the year 9999");
    struct bel_topic_state *topic = bel__topic_find(&engine->topics, command->topic);
    err = bel__timer_find(engine, topic, command->id, &found);
    if (err == BEL_ENOTFOUND) return 0; /* nothing rescheduled */
    if (err) return err;
    place.topic = topic->number;
    if (found.record.kind == BEL_RECORD_PLAN && found.state < BEL_DONE) {
        uint64_t nominal = nominal_of(engine, &place);
        if (!bel__time_is_valid(nominal)) {
            return bel__refuse(reply, BEL_EINVAL, "the time is after the year 9999");
        }
        err = bel__plan_reschedule(engine, &found, nominal);
    } else if (found.state == BEL_SCHEDULED || found.state == BEL_READY) {
        err = reschedule(engine, &found, place);
    } else {
        return 0;
    }
    if (err) return err;
    reply->count = 1;
    return 0;
}
