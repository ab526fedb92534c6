/* SPDX-License-Identifier: MIT */

/*
 * Every interleaving of a worker's exit with operations of other threads on its timers: they
 * schedule, cancel and move them, adopt them, leave, and enter again.
 *
 * The code that handles a timer is the product's: the calls, the queues, the intake, the ring, the
 * hand-over and the dealing. Everything else is replaced (around.h).
 *
 * When the threads have finished, each timer is in one place. Then all workers poll until no timer
 * is in a queue, and the counts must balance; finally all timers become due, and each one that was
 * scheduled must have rung or been cancelled exactly once.
 */
#include "around.h"
#include "interleave.h"
#include "runtime/worker.h"

#include <string.h>

enum {
    TIMERS = 3,
    NOW = 100,
    DUE = 200,   /* of all timers, initially */
    LATER = 300, /* thread n moves a timer to this plus n */
    END = 1000,
};

static struct bel_runtime *const runtime = &around.runtime;
static struct visitor *const visitors = around.visitors;
static struct bel_worker *const seats = around.seats;
static struct record *const records = around.records;

static bel_timer_t timers[TIMERS];
static bool repeats;           /* of the first timer */
static atomic_bool is_ringing; /* of the first timer */

/* The results of a thread's calls; each belongs to its thread. */
static struct told {
    bool has_scheduled[TIMERS];
    bool has_cancelled[TIMERS];
    bool has_moved[TIMERS];
    unsigned rings[TIMERS];
    uint64_t rang_due[TIMERS];
} told[AROUND_VISITORS];

/*
 * Operations of the threads.
 */

static void note_ring(void *context, const struct bel_event *event)
{
    struct told *mine = &told[around_self()];
    (void)context;
    REQUIRE(event->timer == timers[event->user]);
    REQUIRE(event->due.ns <= around.now);
    mine->rings[event->user]++;
    mine->rang_due[event->user] = event->due.ns;
    if (event->user != 0) return;
    atomic_store_explicit(&is_ringing, true, memory_order_relaxed);
    atomic_store_explicit(&is_ringing, false, memory_order_relaxed);
}

static void schedule_on(struct bel_worker *worker, unsigned timer)
{
    bool is_beat = timer == 0 && repeats;
    struct bel_schedule options = {.due = {DUE},
                                   .user = timer,
                                   .worker = worker,
                                   .period_ns = is_beat ? END : 0,
                                   .repeat = is_beat ? BEL_RATE_SKIP : BEL_ONCE};
    REQUIRE(bel_runtime_schedule(runtime, &options, &timers[timer]) == 0);
    told[around_self()].has_scheduled[timer] = true;
}

static void cancel(unsigned timer)
{
    told[around_self()].has_cancelled[timer] = bel_runtime_cancel(runtime, timers[timer]);
}

static void move(unsigned timer)
{
    int err =
        bel_runtime_reschedule(runtime, timers[timer], (struct bel_boot){LATER + around_self()});
    told[around_self()].has_moved[timer] = err == 0;
    REQUIRE(err == 0 || err == BEL_ESTALE || (err == BEL_EBUSY && repeats));
}

static void enter(void)
{
    struct bel_worker *worker;
    REQUIRE(bel_worker_enter(runtime, &worker) == 0);
}

/* Returns the calling thread's worker. */
static struct bel_worker *this_worker(void)
{
    struct bel_worker *worker = visitors[around_self()].worker;
    REQUIRE(worker != NULL && worker->visitor == &visitors[around_self()]);
    return worker;
}

static void leave(void)
{
    REQUIRE(bel_worker_leave(this_worker()) == 0);
}

static void poll(void)
{
    (void)bel_worker_poll(this_worker(), AROUND_SLOTS);
}

/* The part of a poll that adopts timers. */
static void take_in(void)
{
    bel__intake(this_worker());
}

static void cancel_0(void)
{
    cancel(0);
}

static void move_0(void)
{
    move(0);
}

static void cancel_0_and_wait(void)
{
    int err = bel_runtime_cancel_sync(runtime, timers[0]);
    told[around_self()].has_cancelled[0] = err == 0;
    REQUIRE(err == 0 || err == BEL_ESTALE);
    REQUIRE(!atomic_load_explicit(&is_ringing, memory_order_relaxed));
}

static void move_0_and_poll(void)
{
    move(0);
    poll();
}

static void move_0_and_take_in(void)
{
    move(0);
    take_in();
}

static void cancel_0_and_poll(void)
{
    cancel(0);
    poll();
}

static void schedule_on_first(void)
{
    schedule_on(&seats[0], around_self());
}

static void schedule_on_any(void)
{
    schedule_on(NULL, around_self());
}

static void poll_and_leave(void)
{
    poll();
    leave();
}

static void take_in_and_leave(void)
{
    take_in();
    leave();
}

static void leave_and_enter(void)
{
    leave();
    enter();
}

static void leave_enter_and_poll(void)
{
    leave_and_enter();
    poll();
}

/* Polls when there is something to poll for, until the wheel has `armed` timers. */
static void sleep_until_there_are(uint64_t armed)
{
    struct bel_worker *worker = this_worker();
    while (bel_wheel_count(worker->wheel) != armed) {
        REQUIRE(bel_worker_wait(worker, (struct bel_boot){BEL_NEVER}));
        poll();
    }
}

static void sleep_until_there_is_one(void)
{
    sleep_until_there_are(1);
}

static void sleep_until_there_are_two(void)
{
    sleep_until_there_are(2);
}

static void sleep_until_it_is_moved(void)
{
    struct bel_worker *worker = this_worker();
    while (bel_wheel_next(worker->wheel) == DUE) {
        REQUIRE(bel_worker_wait(worker, (struct bel_boot){BEL_NEVER}));
        poll();
    }
}

static void run(void)
{
    bel_worker_run(this_worker());
}

/* Like a shutdown. */
static void stop(void)
{
    (void)pthread_mutex_lock(&runtime->mutex);
    atomic_store_explicit(&runtime->roster.stopping, true, memory_order_release);
    bel__alarm_ring(&seats[0].alarm);
    (void)pthread_mutex_unlock(&runtime->mutex);
}

/*
 * Initial states.
 */

/* A runtime without workers. Threads 0, 1 and 2 have records to schedule with. */
static void start(void)
{
    around_start(NOW, note_ring);
    memset(told, 0, sizeof told);
    memset(timers, 0, sizeof timers);
    repeats = false;
    atomic_init(&is_ringing, false);
    around_give(0, 1);
    around_give(1, 2);
    around_give(1, 3);
    around_give(2, 4);
}

/* Thread 0 is a worker with one timer. */
static void enter_and_schedule(void)
{
    around_act_for(0);
    enter();
    schedule_on(NULL, 0);
}

static void start_with_one(void)
{
    start();
    enter_and_schedule();
}

/* And thread 1 is a worker. */
static void start_with_two(void)
{
    start_with_one();
    around_act_for(1);
    enter();
}

/* The descriptor of the worker is in a loop of the program. */
static void start_watched(void)
{
    start_with_one();
    REQUIRE(bel_worker_fd(this_worker()) == seats[0].alarm.event_fd);
}

static void start_due(void)
{
    start_with_two();
    around.now = DUE;
}

static void start_repeating(void)
{
    start();
    repeats = true;
    enter_and_schedule();
    around.now = DUE;
}

/* The incarnations of workers have wrapped around. */
static void start_after_many(void)
{
    start();
    runtime->roster.incarnations = (1U << (32 - INDEX_BITS)) - 1;
    enter_and_schedule();
}

/* Two workers; the timer is still in the inbox of the first. */
static void start_in_the_inbox(void)
{
    start();
    around_act_for(0);
    enter();
    around_act_for(1);
    enter();
    schedule_on(&seats[0], 0);
}

/* Two timers are in the inbox, and there will be no memory for the first. */
static void start_without_memory(void)
{
    start_in_the_inbox();
    schedule_on(&seats[0], 1);
    around.wheels[0].refusals = 1;
}

/* Two timers that thread 1 has left are in the inbox of thread 0. */
static void start_with_a_parcel(void)
{
    start();
    around_act_for(0);
    enter();
    around_act_for(1);
    enter();
    schedule_on(NULL, 0);
    schedule_on(NULL, 1);
    leave();
}

static void start_with_a_parcel_and_no_memory(void)
{
    start_with_a_parcel();
    around.wheels[0].refusals = 1;
}

/* The timer is in the wheel and was moved, and the move is still in the inbox. */
static void start_moved(void)
{
    start_with_two();
    around_act_for(3);
    move(0);
}

/* As above, but between the beginning and the end of the move the worker has left, and another has
 * entered in its seat. */
static void start_moved_to_a_successor(void)
{
    struct record *record = &records[1];
    start_with_one();
    REQUIRE(word_move_begin(&record->word, 1) == WORD_MOVE_BEGUN);
    leave();
    enter();
    around_act_for(3);
    set64(&record->due, LATER + 3);
    REQUIRE(word_move_end(&record->word, WORD_QUEUED) == WORD_MOVED_PUSH);
    count(&visitors[3], COUNT_RESCHEDULED);
    count(&visitors[3], COUNT_SENT);
    bel__send(runtime, record);
    told[3].has_moved[0] = true;
}

/*
 * Invariants.
 */

struct places {
    unsigned wheels, queues, magazines;
};

static struct places places[AROUND_RECORDS + 1];

/* Counts a record in a queue, and those after it in a parcel. */
static void count_queued(struct bel_queue_node *node)
{
    struct record *record = record_of_node(node);
    bool is_parcel = get32(&record->owner) == OWNER_NONE;
    for (; record != NULL; record = is_parcel ? parcel_next(record) : NULL) {
        uint32_t index = record_index(&runtime->pool, record);
        REQUIRE(index >= 1 && index <= AROUND_RECORDS);
        REQUIRE(++places[index].queues == 1);
    }
}

static void count_list(struct bel_queue_node *node)
{
    for (; node != NULL; node = node->next) {
        count_queued(node);
    }
}

static void count_queue(const struct bel_queue *queue)
{
    if (bel__queue_is_empty(queue)) return;
    count_list(atomic_load_explicit(&queue->newest, memory_order_relaxed));
}

static void count_wheel(const struct bel_worker *worker)
{
    for (unsigned i = 0; i < AROUND_SLOTS; i++) {
        const struct bel_wheel_timer *slot = &worker->wheel->slots[i];
        if (slot->timer == BEL_TIMER_NONE) continue;
        const struct record *record = record_at(&runtime->pool, (uint32_t)slot->user);
        uint64_t word = word_load(&record->word);
        places[slot->user].wheels++;
        if ((word & WORD_QUEUED) != 0) continue;
        REQUIRE(worker_owns(worker, record));
        REQUIRE(record->entry == slot->timer);
        REQUIRE(get64(&record->due) == slot->due);
    }
}

static struct bel_worker *live(unsigned index)
{
    return atomic_load_explicit(&runtime->roster.live[index], memory_order_relaxed);
}

static void count_places(void)
{
    memset(places, 0, sizeof places);
    count_queue(&runtime->roster.merge);
    for (unsigned i = 0; i < AROUND_SEATS; i++) {
        struct bel_worker *seat = &seats[i];
        count_queue(&seat->inbox);
        count_queue(&seat->returns);
        count_list(seat->unturned);
        count_list(seat->turned);
        count_list(seat->incoming);
        count_list(seat->returned);
        if (seat->parcel != NULL) count_queued(&seat->parcel->node);
        if (live(i) != NULL) count_wheel(seat);
    }
    for (unsigned i = 0; i < AROUND_VISITORS; i++) {
        const struct magazine *magazine = &visitors[i].magazine;
        for (uint32_t k = 0; k < magazine->count; k++) {
            places[magazine->indexes[k]].magazines++;
        }
    }
}

/* Pending timers are not in the merge queue while there are workers. */
static void check_merge(void)
{
    if (bel__queue_is_empty(&runtime->roster.merge)) return;
    struct bel_queue_node *node =
        atomic_load_explicit(&runtime->roster.merge.newest, memory_order_relaxed);
    for (; node != NULL; node = node->next) {
        bool is_pending = word_is_pending(word_load(&record_of_node(node)->word));
        REQUIRE(!is_pending || (live(0) == NULL && live(1) == NULL));
    }
}

/* Every record is in exactly one place, the one that its word says. */
static void check_places(void)
{
    count_places();
    check_merge();
    for (unsigned i = 1; i <= AROUND_RECORDS; i++) {
        uint64_t word = word_load(&records[i].word);
        bool is_queued = (word & WORD_QUEUED) != 0, is_free = word_state(word) == WORD_FREE;
        bool is_pending = word_state(word) == WORD_PENDING;
        REQUIRE(is_free || is_pending || (is_queued && word_state(word) == WORD_CANCELLED));
        REQUIRE(places[i].magazines == is_free);
        REQUIRE(places[i].queues == is_queued);
        REQUIRE(is_queued ? places[i].wheels <= 1 : places[i].wheels == is_pending);
    }
}

static void poll_all(void)
{
    for (unsigned i = 0; i < AROUND_SEATS; i++) {
        const struct bel_worker *worker = live(i);
        if (worker == NULL) continue;
        REQUIRE(worker->visitor != NULL);
        around_act_for((unsigned)(worker->visitor - visitors));
        poll();
    }
}

/* All workers poll until no timer is in a queue. */
static void drain(void)
{
    atomic_store_explicit(&runtime->roster.stopping, false, memory_order_relaxed);
    if (live(0) == NULL && live(1) == NULL) {
        around_act_for(AROUND_MAIN);
        enter();
    }
    for (unsigned i = 0; i < 3; i++) {
        poll_all();
    }
    REQUIRE(bel__queue_is_empty(&runtime->roster.merge));
    for (unsigned i = 0; i < AROUND_SEATS; i++) {
        REQUIRE(bel__intake_is_empty(&seats[i]));
    }
}

static uint64_t total(enum counter which)
{
    uint64_t sum = get64(&runtime->gone.counts[which]) + get64(&runtime->signals.counts[which]);
    for (unsigned i = 0; i < AROUND_VISITORS; i++) {
        sum += get64(&visitors[i].counters.counts[which]);
    }
    return sum;
}

/* The counters match the timers, now that no timer is in a queue. */
static void check_books(void)
{
    uint64_t scheduled = 0, cancelled = 0, moved = 0, rings = 0, pending = 0, workers = 0;
    for (unsigned i = 0; i < AROUND_VISITORS; i++) {
        for (unsigned k = 0; k < TIMERS; k++) {
            scheduled += told[i].has_scheduled[k];
            cancelled += told[i].has_cancelled[k];
            moved += told[i].has_moved[k];
            rings += told[i].rings[k];
        }
    }
    for (unsigned i = 1; i <= AROUND_RECORDS; i++) {
        pending += places[i].wheels;
    }
    for (unsigned i = 0; i < AROUND_SEATS; i++) {
        REQUIRE(get32(&seats[i].returns_depth) == 0);
        if (live(i) == NULL) continue;
        REQUIRE(seats[i].dealt == get64(&seats[i].adopted));
        workers++;
    }
    REQUIRE(total(COUNT_SCHEDULED) == scheduled);
    REQUIRE(total(COUNT_CANCELLED) == cancelled);
    REQUIRE(total(COUNT_RESCHEDULED) == moved);
    REQUIRE(total(COUNT_FIRED) == rings);
    REQUIRE(total(COUNT_ENDED) == (repeats ? 0 : rings));
    REQUIRE(scheduled == pending + cancelled + total(COUNT_ENDED));
    REQUIRE(total(COUNT_SENT) == total(COUNT_TAKEN));
    REQUIRE(get64(&runtime->roster.unowned) == 0);
    REQUIRE(get32(&runtime->roster.count) == workers);
}

/* A timer has rung once, at the time to which it was last moved, or was cancelled. */
static void check_timer(unsigned timer)
{
    unsigned scheduled = 0, ends = 0, moves = 0;
    uint64_t rang_due = 0;
    for (unsigned i = 0; i < AROUND_VISITORS; i++) {
        scheduled += told[i].has_scheduled[timer];
        ends += told[i].rings[timer] + told[i].has_cancelled[timer];
        moves += told[i].has_moved[timer];
        rang_due += told[i].rang_due[timer];
    }
    if (timer == 0 && repeats) return;
    REQUIRE(ends == scheduled);
    if (rang_due == 0) return;
    if (moves == 0) REQUIRE(rang_due == DUE);
    if (moves > 0) REQUIRE(rang_due >= LATER && told[rang_due - LATER].has_moved[timer]);
}

static void check(void)
{
    check_places();
    drain();
    check_places();
    check_books();
    around.now = END;
    poll_all();
    check_places();
    check_books();
    for (unsigned i = 0; i < TIMERS; i++) {
        check_timer(i);
    }
}

/* The small cases first: they detect most mutants. */
static const struct interleave_case cases[] = {
    {.name = "an_exit_and_a_cancel",
     .setup = start_with_one,
     .threads = {leave, cancel_0},
     .check = check},
    {.name = "an_exit_and_a_move",
     .setup = start_with_one,
     .threads = {leave, move_0},
     .check = check},
    {.name = "an_exit_and_a_schedule_on_it",
     .setup = start_with_one,
     .threads = {leave, schedule_on_first},
     .check = check},
    {.name = "an_exit_and_a_schedule_on_any",
     .setup = start_with_one,
     .threads = {leave, schedule_on_any},
     .check = check},
    {.name = "an_exit_while_it_is_queued_and_a_move",
     .setup = start_in_the_inbox,
     .threads = {leave, move_0},
     .check = check},
    {.name = "an_exit_while_it_is_queued_and_a_cancel",
     .setup = start_in_the_inbox,
     .threads = {leave, cancel_0},
     .check = check},
    {.name = "an_exit_after_a_move_and_a_cancel",
     .setup = start_moved,
     .threads = {leave, cancel_0},
     .check = check},
    {.name = "an_exit_with_a_parcel_and_a_move",
     .setup = start_with_a_parcel,
     .threads = {leave, move_0},
     .check = check},
    {.name = "an_exit_with_a_parcel_and_a_cancel",
     .setup = start_with_a_parcel,
     .threads = {leave, cancel_0},
     .check = check},
    {.name = "an_exit_without_memory_and_a_move",
     .setup = start_without_memory,
     .threads = {take_in_and_leave, move_0},
     .check = check},
    {.name = "an_exit_without_memory_for_a_parcel_and_a_move",
     .setup = start_with_a_parcel_and_no_memory,
     .threads = {take_in_and_leave, move_0},
     .check = check},
    {.name = "an_exit_and_an_entry_and_a_move",
     .setup = start_with_one,
     .threads = {leave_enter_and_poll, move_0},
     .check = check},
    {.name = "an_exit_and_an_entry_and_a_cancel",
     .setup = start_with_one,
     .threads = {leave_enter_and_poll, cancel_0},
     .check = check},
    {.name = "an_exit_and_an_entry_and_a_schedule",
     .setup = start_with_one,
     .threads = {leave_and_enter, schedule_on_first},
     .check = check},
    {.name = "an_exit_and_another_entry_and_a_move",
     .setup = start_with_one,
     .threads = {leave, enter, move_0},
     .check = check},
    {.name = "an_intake_by_a_successor_and_a_move",
     .setup = start_moved_to_a_successor,
     .threads = {poll, move_0},
     .check = check},
    {.name = "numbers_that_start_again_and_a_cancel",
     .setup = start_after_many,
     .threads = {poll, cancel_0},
     .check = check},
    {.name = "the_owner_moves_and_another_cancels",
     .setup = start_with_one,
     .threads = {move_0_and_poll, cancel_0},
     .check = check},
    {.name = "the_owner_cancels_and_another_moves",
     .setup = start_with_one,
     .threads = {cancel_0_and_poll, move_0},
     .check = check},
    {.name = "a_beat_and_one_who_waits_for_its_end",
     .setup = start_repeating,
     .threads = {poll, cancel_0_and_wait},
     .check = check},
    {.name = "a_beat_and_an_exit_and_a_move",
     .setup = start_repeating,
     .threads = {poll_and_leave, move_0},
     .check = check},
    {.name = "a_beat_and_an_exit_and_a_cancel",
     .setup = start_repeating,
     .threads = {poll_and_leave, cancel_0},
     .check = check},
    {.name = "a_sleeper_and_a_schedule",
     .setup = start_with_one,
     .threads = {sleep_until_there_are_two, schedule_on_first},
     .check = check},
    {.name = "a_sleeper_and_a_move",
     .setup = start_with_one,
     .threads = {sleep_until_it_is_moved, move_0},
     .check = check},
    {.name = "a_sleeper_and_an_exit",
     .setup = start_with_two,
     .threads = {leave, sleep_until_there_is_one},
     .check = check},
    {.name = "a_sleeper_is_told_to_stop",
     .setup = start_with_one,
     .threads = {run, stop, schedule_on_first},
     .check = check},
    {.name = "a_watched_sleeper_is_told_to_stop",
     .setup = start_watched,
     .threads = {run, stop},
     .check = check},
    {.name = "an_exit_an_adopter_and_a_cancel",
     .setup = start_with_two,
     .threads = {leave, poll, cancel_0},
     .check = check},
    {.name = "an_exit_an_adopter_and_a_move",
     .setup = start_with_two,
     .threads = {leave, take_in, move_0},
     .check = check},
    {.name = "an_exit_an_adopter_and_a_schedule",
     .setup = start_with_two,
     .threads = {leave, take_in, schedule_on_first},
     .check = check},
    {.name = "an_exit_after_a_move_an_adopter_and_a_move",
     .setup = start_moved,
     .threads = {leave, take_in, move_0},
     .check = check},
    {.name = "a_ring_a_move_and_one_who_waits_for_its_end",
     .setup = start_due,
     .threads = {poll, cancel_0_and_wait, move_0},
     .check = check},
    {.name = "an_intake_a_move_and_a_cancel",
     .setup = start_in_the_inbox,
     .threads = {take_in, move_0, cancel_0},
     .check = check},
    {.name = "an_intake_without_memory_a_move_and_a_cancel",
     .setup = start_without_memory,
     .threads = {take_in, move_0, cancel_0},
     .check = check},
    {.name = "an_intake_of_a_parcel_a_move_and_a_cancel",
     .setup = start_with_a_parcel,
     .threads = {take_in, move_0, cancel_0},
     .check = check},
    {.name = "an_exit_a_cancel_and_a_move",
     .setup = start_with_one,
     .threads = {leave, cancel_0, move_0},
     .check = check},
    {.name = "an_exit_and_the_adopters_and_a_cancel",
     .setup = start_with_two,
     .threads = {leave, take_in_and_leave, cancel_0},
     .check = check},
    {.name = "the_owner_and_another_move_and_one_cancels",
     .setup = start_with_one,
     .threads = {move_0_and_take_in, move_0, cancel_0},
     .check = check},
    {.name = "an_exit_and_the_adopters_and_a_move",
     .setup = start_with_two,
     .threads = {leave, take_in_and_leave, move_0},
     .check = check},
};

int main(int argc, char **argv)
{
    return interleave_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
