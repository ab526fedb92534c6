/* SPDX-License-Identifier: MIT */

/*
 * What follows from a change of a timer's rows, event by event:
 *
 *     timer.c, lease.c           reactions.c
 *     look       -------------->   occurrence    what its end will do to its plan
 *     added      -------------->   expiry        may have to end it
 *                                  occurrence    is known to its plan
 *     arrived    -------------->   ready         picker, or a wake of its lane
 *     left       -------------->   ready         not in the picker any more
 *     freed      -------------->   wait          claims that wait for the topic are tried again
 *     kept       -------------->   wakes         the topic is swept when the retention is over
 *     ended      -------------->   occurrence    its plan goes on, the next in the queue may run
 *
 * The last one ends and moves other timers, a plan's at most and one of the queue, and these are
 * reported in turn.
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
    bel__expiry_expect(engine, record);
    if (record->plan != 0) bel__occurrence_put(engine, topic, record);
}

static void ended(struct bel_engine *engine, struct bel_found *found)
{
    if (found->after != NULL) bel__occurrence_ended(engine, found);
}

const struct bel_timer_events bel__reactions = {
    .look = look,
    .added = added,
    .arrived = bel__ready_enter,
    .left = bel__ready_leave,
    .freed = bel__wait_mark,
    .kept = bel__wake_sweep,
    .ended = ended,
};
