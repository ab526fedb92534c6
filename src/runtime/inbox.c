/* SPDX-License-Identifier: MIT */

/*
 * A queue whose consumer is the program. Whenever it has been emptied it is parked, so the first
 * event after that makes the descriptor readable, and the others need no system call.
 *
 * The fields of an event are stored in the record that carries it:
 *
 *     due, user, what    as in a timer          entry      the timer's handle
 *     period_ns          periods missed         wall_ms    when it rang
 */
#include "runtime/inbox.h"

#include <stdlib.h>

struct bel_inbox {
    struct bel_runtime *runtime;
    struct bel_inbox *next;
    struct bel_queue queue;
    struct bel_queue_node *taken; /* consumer only: taken from the queue, not yet returned */
    struct bel_alarm alarm;
};

int bel_inbox_create(struct bel_runtime *runtime, struct bel_inbox **out)
{
    if (runtime_is_forked(runtime)) return BEL_ECLOSED;
    struct bel_inbox *inbox = calloc(1, sizeof *inbox);
    if (inbox == NULL) return BEL_ENOMEM;
    int err = bel__alarm_init(&inbox->alarm);
    if (err) {
        free(inbox);
        return err;
    }
    inbox->runtime = runtime;
    bel__queue_init(&inbox->queue);
    (void)bel__queue_park(&inbox->queue);
    bel__runtime_lock(runtime);
    inbox->next = runtime->inboxes;
    runtime->inboxes = inbox;
    bel__runtime_unlock(runtime);
    *out = inbox;
    return 0;
}

void bel__inbox_destroy(struct bel_inbox *inbox)
{
    bel__alarm_finish(&inbox->alarm);
    free(inbox);
}

struct bel_inbox *bel__inbox_next(const struct bel_inbox *inbox)
{
    return inbox->next;
}

int bel_inbox_fd(const struct bel_inbox *inbox)
{
    return inbox->alarm.event_fd;
}

void bel__inbox_put(struct bel_inbox *inbox, struct record *carrier, const struct bel_event *event)
{
    enum bel_queue_was was;
    carrier->entry = event->timer;
    set64(&carrier->due, event->due.ns);
    set64(&carrier->user, event->user);
    set64(&carrier->period_ns, event->missed);
    set32(&carrier->what, what_of(event->kind, event->priority, BEL_ONCE));
    atomic_store_explicit(&carrier->wall_ms, (int64_t)event->now.ns, memory_order_relaxed);
    int err = bel__queue_push(&inbox->queue, &carrier->node, &was);
    assert(err == 0); /* the queue is never closed */
    (void)err;
    if (was == BEL__QUEUE_PARKED) bel__alarm_ring(&inbox->alarm);
}

static struct bel_event read_carrier(const struct record *carrier)
{
    uint32_t what = get32(&carrier->what);
    int64_t now = atomic_load_explicit(&carrier->wall_ms, memory_order_relaxed);
    return (struct bel_event){
        .timer = carrier->entry,
        .user = get64(&carrier->user),
        .due = {get64(&carrier->due)},
        .now = {(uint64_t)now},
        .missed = get64(&carrier->period_ns),
        .kind = what_kind(what),
        .priority = what_priority(what),
    };
}

size_t bel_inbox_take(struct bel_inbox *inbox, struct bel_event *out, size_t max)
{
    struct bel_runtime *runtime = inbox->runtime;
    struct visitor *visitor = NULL;
    size_t count = 0;
    if (runtime_is_forked(runtime)) return 0;
    int err = visitor_get(runtime, &visitor);
    if (err) visitor = NULL;
    if (visitor != NULL) visitor_begin(visitor);
    bel__alarm_clear(&inbox->alarm);
    if (inbox->taken == NULL) inbox->taken = bel__queue_take(&inbox->queue);
    while (count < max && inbox->taken != NULL) {
        struct record *carrier = record_of_node(inbox->taken);
        inbox->taken = inbox->taken->next;
        out[count++] = read_carrier(carrier);
        bel__visitor_give(runtime, visitor, carrier);
    }
    bool is_empty = inbox->taken == NULL && bel__queue_park(&inbox->queue);
    if (!is_empty) bel__alarm_ring(&inbox->alarm);
    if (visitor != NULL) visitor_end(visitor);
    return count;
}
