/* SPDX-License-Identifier: MIT */

/*
 * The reactions to changes of a timer's rows, event by event:
 *
 *     timer.c, lease.c           reactions.c
 *     look       -------------->   occurrence    looks up what its end will do to its plan
 *     added      -------------->   occurrence    adds the row by which its plan finds it
 *     arrived    -------------->   ready         adds it to the picker, or wakes its lane later
 *     left       -------------->   ready         takes it out of the picker
 *     expires    -------------->   expiry        wakes the topic when the timer expires
 *     freed      -------------->   wait          parked claims for the topic are tried again
 *     kept       -------------->   wakes         the topic is swept when the retention is over
 *     ended      -------------->   occurrence    its plan goes on, the next in the queue may run
 *
 * The last one may end the plan and move one occurrence of its queue. These changes are reported in
 * turn.
 */
#include "engine/state/reactions.h"

#include "engine/state/occurrence.h"
#include "engine/state/ready.h"
#include "engine/state/state.h"

static int look(struct bel_engine *engine, struct bel_found *found, size_t *rows)
{
    if (found->record.plan == 0) return 0;
    return bel__occurrence_look(engine, found, rows);
}

static void added(struct bel_engine *engine, struct bel_topic_state *topic,
                  const struct bel_record *record)
{
    if (record->plan != 0) bel__occurrence_put(engine, topic, record);
}

static void ended(struct bel_engine *engine, struct bel_found *found)
{
    if (found->after != NULL) bel__occurrence_ended(engine, found);
}

static void moved(struct bel_engine *engine, struct bel_found *found, const struct bel_key *from)
{
    (void)engine;
    (void)found;
    (void)from;
}

static int rings(struct bel_engine *engine, const struct bel_found *plan, bool *out_makes)
{
    (void)engine;
    (void)plan;
    *out_makes = true;
    return 0;
}

static void rang(struct bel_engine *engine, const struct bel_found *plan, bool is_skipped)
{
    (void)engine;
    (void)plan;
    (void)is_skipped;
}

const struct bel_timer_events bel__reactions = {
    .look = look,
    .added = added,
    .arrived = bel__ready_enter,
    .left = bel__ready_leave,
    .moved = moved,
    .rings = rings,
    .rang = rang,
    .expires = bel__expiry_expect,
    .freed = bel__wait_mark,
    .kept = bel__wake_sweep,
    .ended = ended,
};
