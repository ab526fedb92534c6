/* SPDX-License-Identifier: MIT */

/*
 * When the last worker has left, every pending timer is in the merge queue, and this thread
 * alone takes from it. What then happens to them is the caller's choice; a timer that is
 * scheduled meanwhile lands in the same queue and is left there.
 */
#include "runtime/inbox.h"
#include "runtime/worker.h"

#include <stdlib.h>

/* Sees to it that no worker is left. */
static void send_home(struct bel_runtime *runtime)
{
    struct roster *roster = &runtime->roster;
    bel__runtime_lock(runtime);
    /* Release pairs with the acquire in bel_worker_wait. */
    atomic_store_explicit(&roster->stopping, true, memory_order_release);
    for (unsigned i = 0; i < BEL_WORKERS_MAX; i++) {
        struct bel_worker *worker = atomic_load_explicit(&roster->live[i], memory_order_relaxed);
        if (worker != NULL) bel__alarm_ring(&worker->alarm);
    }
    while (get32(&roster->count) > 0) {
        (void)pthread_cond_wait(&roster->left, &runtime->mutex);
    }
    bel__runtime_unlock(runtime);
    for (unsigned i = 0; i < runtime->thread_count; i++) {
        (void)pthread_join(runtime->threads[i], NULL);
    }
    runtime->thread_count = 0;
}

/* Makes one parcel of many. */
static struct record *join(struct bel_queue_node *node, size_t *out_count)
{
    struct record *first = NULL, *last = NULL;
    for (; node != NULL; node = node->next) {
        struct record *head = record_of_node(node);
        if (first == NULL) first = head;
        if (last != NULL) last->entry = (uintptr_t)head;
        for (last = head, ++*out_count; parcel_next(last) != NULL; ++*out_count) {
            last = parcel_next(last);
        }
    }
    return first;
}

/* The timers that wait, as an array; they stay QUEUED and so are this thread's alone. */
static int collect(struct bel_runtime *runtime, struct record ***out, size_t *out_count)
{
    size_t count = 0;
    bel__runtime_lock(runtime);
    struct bel_queue_node *nodes = bel__queue_take(&runtime->roster.merge);
    bel__runtime_unlock(runtime);
    struct record *row = join(nodes, &count);
    /* Relaxed: a number for statistics. */
    atomic_fetch_sub_explicit(&runtime->roster.unowned, count, memory_order_relaxed);
    struct record **records = malloc((count + 1) * sizeof(struct record *));
    if (records == NULL) {
        if (row != NULL) bel__roster_merge(runtime, row, count);
        return BEL_ENOMEM;
    }
    for (size_t i = 0; i < count; i++, row = parcel_next(row)) {
        records[i] = row;
    }
    *out = records;
    *out_count = count;
    return 0;
}

struct place {
    uint64_t due;
    size_t arrival;
    struct record *record;
    uint8_t priority;
};

static int compare(const void *left, const void *right)
{
    const struct place *a = left, *b = right;
    if (a->due != b->due) return a->due < b->due ? -1 : 1;
    if (a->priority != b->priority) return a->priority < b->priority ? -1 : 1;
    return a->arrival < b->arrival ? -1 : 1;
}

/* Sorts by due and priority; what is equal keeps its order. */
static int sort(struct record **records, size_t count)
{
    struct place *places = malloc((count + 1) * sizeof *places);
    if (places == NULL) return BEL_ENOMEM;
    for (size_t i = 0; i < count; i++) {
        places[i] = (struct place){get64(&records[i]->due), i, records[i],
                                   what_priority(get32(&records[i]->what))};
    }
    qsort(places, count, sizeof *places, compare);
    for (size_t i = 0; i < count; i++) {
        records[i] = places[i].record;
    }
    free(places);
    return 0;
}

/* Ends the life of a timer that is this thread's alone. False if it was cancelled before. */
static bool end_life(struct visitor *visitor, struct record *record, enum counter as)
{
    uint64_t seen = word_load(&record->word);
    while (word_state(seen) == WORD_MOVING || /* which is over in a moment */
           !word_change(&record->word, &seen, word_next_life(seen))) {
        seen = word_load(&record->word);
    }
    bool was_pending = word_state(seen) == WORD_PENDING;
    if (was_pending) count(visitor, as);
    return was_pending;
}

static struct bel_event describe(const struct bel_runtime *runtime, struct record *record)
{
    const struct pool *pool = &runtime->pool;
    uint32_t what = get32(&record->what), generation = word_generation(word_load(&record->word));
    return (struct bel_event){
        .timer = pool_handle(pool, record_index(pool, record), generation),
        .user = get64(&record->user),
        .due = {get64(&record->due)},
        .now = {runtime_now(runtime)},
        .kind = what_kind(what),
        .priority = what_priority(what),
    };
}

static void give(struct bel_runtime *runtime, struct visitor *visitor, struct record *record)
{
    pool_give(&runtime->pool, &visitor->magazine, record);
}

static void fire(struct bel_runtime *runtime, struct visitor *visitor, struct record *record)
{
    struct bel_event event = describe(runtime, record);
    const struct kind *kind = &runtime->kinds[event.kind];
    bool rings = end_life(visitor, record, COUNT_ENDED);
    struct bel_inbox *inbox = atomic_load_explicit(&kind->inbox, memory_order_acquire);
    if (rings) count(visitor, COUNT_FIRED);
    if (rings && inbox != NULL) {
        bel__inbox_put(inbox, record, &event);
        return;
    }
    give(runtime, visitor, record);
    if (!rings) return;
    visitor_end(visitor);
    atomic_load_explicit(&kind->ring, memory_order_acquire)(kind->context, &event);
    visitor_begin(visitor);
}

static int migrate(struct bel_runtime *runtime, struct visitor *visitor, struct record *record,
                   struct bel_runtime *into)
{
    uint32_t what = get32(&record->what);
    bel_timer_t timer;
    struct bel_schedule schedule = {
        .due = {get64(&record->due)},
        .user = get64(&record->user),
        .period_ns = record_period(record),
        .wall_ms = record_wall(record),
        .kind = what_kind(what),
        .priority = what_priority(what),
        .repeat = what_repeat(what),
    };
    if (!bel_runtime_is_pending(runtime, describe(runtime, record).timer)) {
        (void)end_life(visitor, record, COUNT_CANCELLED);
        give(runtime, visitor, record);
        return 0;
    }
    int err = schedule.wall_ms == WALL_NONE ? bel_runtime_schedule(into, &schedule, &timer)
                                            : bel_runtime_schedule_wall(into, &schedule, &timer);
    if (err) return err;
    /* Cancelled at this very moment: then it is there as well. */
    if (!end_life(visitor, record, COUNT_CANCELLED)) {
        (void)bel_runtime_cancel(into, timer);
    }
    give(runtime, visitor, record);
    return 0;
}

/* Puts timers back that stay pending. */
static void put_back(struct bel_runtime *runtime, struct record **records, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        records[i]->entry = i + 1 < count ? (uintptr_t)records[i + 1] : 0;
    }
    if (count > 0) bel__roster_merge(runtime, records[0], count);
}

static int deal_with(struct bel_runtime *runtime, struct visitor *visitor, enum bel_shutdown how,
                     struct bel_runtime *into)
{
    struct record **records;
    size_t count, done = 0;
    int err = collect(runtime, &records, &count);
    if (err) return err;
    err = sort(records, count);
    visitor_begin(visitor);
    for (; err == 0 && done < count; done++) {
        struct record *record = records[done];
        if (how == BEL_SHUTDOWN_FIRE) {
            fire(runtime, visitor, record);
            if (runtime_is_forked(runtime)) err = BEL_ECLOSED; /* the rest is the parent's */
        } else if (how == BEL_SHUTDOWN_MIGRATE) {
            err = migrate(runtime, visitor, record, into);
            if (err) break;
        } else {
            (void)end_life(visitor, record, COUNT_CANCELLED);
            give(runtime, visitor, record);
        }
    }
    visitor_end(visitor);
    put_back(runtime, records + done, count - done);
    free(records);
    return err;
}

int bel_runtime_shutdown(struct bel_runtime *runtime, enum bel_shutdown how,
                         struct bel_runtime *into)
{
    struct visitor *visitor;
    bool migrates = how == BEL_SHUTDOWN_MIGRATE;
    if (runtime_is_forked(runtime)) return BEL_ECLOSED;
    if (migrates && (into == NULL || into == runtime)) return BEL_EINVAL;
    int err = visitor_get(runtime, &visitor);
    if (err) return err;
    if (visitor->worker != NULL) {
        err = bel_worker_leave(visitor->worker);
        if (err) return err;
    }
    send_home(runtime);
    if (how != BEL_SHUTDOWN_KEEP) err = deal_with(runtime, visitor, how, into);
    if (runtime_is_forked(runtime)) return err;
    bel__runtime_lock(runtime);
    atomic_store_explicit(&runtime->roster.stopping, false, memory_order_release);
    bel__roster_deal(runtime);
    bel__runtime_unlock(runtime);
    return err;
}
