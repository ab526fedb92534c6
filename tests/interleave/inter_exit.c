/* SPDX-License-Identifier: MIT */

/*
 * Every interleaving of a worker's exit with operations of other threads on its timers: they
 * schedule, cancel and move them, ring those that it leaves, leave, and enter again. The same for
 * timers that any worker may ring, for workers that sleep until one is due, and for a thread that
 * clears up the inbox of a worker.
 *
 * The code that handles a timer is the product's: the calls, the queues, the intake, the ring, the
 * hand-over and the shared wheel. Everything else is replaced (around.h). When the threads have
 * finished, everything must add up (accounts.h).
 */
#include "accounts.h"
#include "around.h"
#include "interleave.h"
#include "runtime/worker.h"

#include <string.h>

static struct bel_runtime *const runtime = &around.runtime;
static struct visitor *const visitors = around.visitors;
static struct bel_worker *const seats = around.seats;
static struct record *const records = around.records;

static bel_timer_t timers[TIMERS];
static atomic_bool is_ringing; /* of the first timer */
static bool is_stuck;          /* the callback of the first timer returns after the second rang */
static atomic_bool has_rung_1; /* the second timer */

/*
 * Operations of the threads.
 */

static bool is_set(const volatile void *flag)
{
    return atomic_load_explicit((const volatile atomic_bool *)flag, memory_order_relaxed);
}

static void note_ring(void *context, const struct bel_event *event)
{
    struct told *mine = &told[around_self()];
    (void)context;
    REQUIRE(event->timer == timers[event->user]);
    REQUIRE(event->due.ns <= around.now);
    mine->rings[event->user]++;
    mine->rang_due[event->user] = event->due.ns;
    if (event->user == 1) atomic_store_explicit(&has_rung_1, true, memory_order_relaxed);
    if (event->user != 0) return;
    if (is_stuck) interleave_await(&has_rung_1, INTERLEAVE_READ, is_set);
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

static void leave(void)
{
    REQUIRE(bel_worker_leave(this_worker()) == 0);
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

/* Cancels a timer of another worker, and uses its memory for an own timer as soon as it can. */
static void cancel_0_and_schedule(void)
{
    struct visitor *visitor = &visitors[around_self()];
    cancel(0);
    visitor_begin(visitor);
    bel__shared_lock(runtime, visitor);
    bel__shared_unlock(runtime);
    visitor_end(visitor);
    schedule_on(NULL, 1);
}

static void move_0_and_cancel_0(void)
{
    move(0);
    cancel(0);
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

static void cancel_0_leave_and_enter(void)
{
    cancel(0);
    leave();
    enter();
}

/* Cancels a timer that is due, and uses its memory for one that is due later. */
static void cancel_0_schedule_1_and_poll(void)
{
    cancel(0);
    schedule_on(NULL, 1);
    move(1);
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

/* Schedules a timer on the first worker, cancels it and sends another. */
static void cancel_and_schedule_on_first(void)
{
    schedule_on(&seats[0], 1);
    cancel(1);
    schedule_on(&seats[0], 2);
}

/* Schedules a timer on the first worker and another one, which it cancels. */
static void schedule_and_cancel_on_first(void)
{
    schedule_on(&seats[0], 1);
    schedule_on(&seats[0], 2);
    cancel(2);
}

static void schedule_0_and_1_on_any(void)
{
    schedule_on(NULL, 0);
    schedule_on(NULL, 1);
}

static void schedule_1_on_any(void)
{
    schedule_on(NULL, 1);
}

/* Polls when there is something to poll for, until a timer has rung here. */
static void sleep_until_it_rings(void)
{
    struct bel_worker *worker = this_worker();
    const struct told *mine = &told[around_self()];
    while (mine->rings[0] + mine->rings[1] == 0) {
        REQUIRE(bel_worker_wait(worker, (struct bel_boot){BEL_NEVER}));
        poll();
    }
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
    while (bel_wheel_count(worker->wheel) < armed) {
        REQUIRE(bel_worker_wait(worker, (struct bel_boot){BEL_NEVER}));
        poll();
    }
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
    is_stuck = false;
    atomic_init(&is_ringing, false);
    atomic_init(&has_rung_1, false);
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

/* And the first worker has memory for another timer. */
static void start_due_with_memory(void)
{
    start_due();
    visitors[2].magazine.count = 0;
    around_give(0, 4);
}

static void start_repeating(void)
{
    start();
    repeats = true;
    enter_and_schedule();
    around.now = DUE;
}

/* The incarnations of workers have wrapped around with the second worker, which has the timer. */
static void start_after_many(void)
{
    start();
    runtime->roster.incarnations = (1U << (32 - INDEX_BITS)) - 2;
    around_act_for(0);
    enter();
    around_act_for(1);
    enter();
    schedule_on(NULL, 0);
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

/* Two workers, and a timer that any of them may ring. */
static void start_shared(void)
{
    start();
    around_act_for(0);
    enter();
    around_act_for(1);
    enter();
    around_act_for(2);
    schedule_on(NULL, 0);
}

static void start_shared_and_due(void)
{
    start_shared();
    around.now = DUE;
}

static void start_shared_and_repeating(void)
{
    start();
    repeats = true;
    around_act_for(0);
    enter();
    around_act_for(2);
    schedule_on(NULL, 0);
    around.now = DUE;
}

/* Two workers, and two timers that have been left to any worker. */
static void start_with_what_another_left(void)
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

/* A timer whose worker has left waits in a queue, because there was no memory for it. */
static void start_left_without_memory(void)
{
    start_in_the_inbox();
    around.wheels[AROUND_SHARED].refusals = 1;
    around_act_for(0);
    leave();
}

/* Two workers that sleep, and timers are due at once. The first of them blocks its worker. */
static void start_sleeping(void)
{
    start();
    around.now = END;
    is_stuck = true;
    around_act_for(0);
    enter();
    around_act_for(1);
    enter();
    around_give(2, 1);
    visitors[0].magazine.count = 0;
}

/* The first timer is due, and a sleeper will wake up for it. */
static void start_sleeping_with_one(void)
{
    start_sleeping();
    around_act_for(2);
    schedule_on(NULL, 0);
}

/* Nobody waits for the first worker to clear up, because it is stuck. */
static void start_sweeping(void)
{
    runtime->garbage_floor = 2;
    atomic_store_explicit(&seats[0].is_stuck, true, memory_order_relaxed);
}

/* A thread that cancels a timer in the inbox of a worker clears up there. */
static void start_with_sweeps(void)
{
    start_in_the_inbox();
    start_sweeping();
}

/* A cancelled timer waits in the inbox. */
static void start_to_sweep(void)
{
    start_in_the_inbox();
    cancel(0);
    start_sweeping();
    visitors[2].magazine.count = 0;
    around_give(1, 4);
}

/* The worker sleeps or is about to. */
static void start_with_one_and_sweeps(void)
{
    start_with_one();
    start_sweeping();
}

/* The timer is in the wheel and was moved, and the move is still in the inbox. */
static void start_moved(void)
{
    start_with_two();
    around_act_for(3);
    move(0);
}

/* The cancelled timer is in the wheel too. */
static void start_moved_with_sweeps(void)
{
    start_moved();
    start_sweeping();
}

/* The timer was moved, but between the beginning and the end of the move the worker has left, and
 * another has entered in its seat. */
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
    bel__send(runtime, &visitors[3], record);
    told[3].has_moved[0] = true;
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
    {.name = "an_exit_with_what_another_left_and_a_move",
     .setup = start_with_what_another_left,
     .threads = {leave, move_0},
     .check = check},
    {.name = "an_exit_with_what_another_left_and_a_cancel",
     .setup = start_with_what_another_left,
     .threads = {leave, cancel_0},
     .check = check},
    {.name = "an_exit_without_memory_and_a_move",
     .setup = start_without_memory,
     .threads = {take_in_and_leave, move_0},
     .check = check},
    {.name = "a_poll_of_what_was_left_without_memory_and_a_move",
     .setup = start_left_without_memory,
     .threads = {move_0, poll},
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
     .threads = {cancel_0, poll},
     .check = check},
    {.name = "the_owner_moves_and_another_cancels",
     .setup = start_with_one,
     .threads = {move_0_and_poll, cancel_0},
     .check = check},
    {.name = "the_owner_cancels_and_another_moves",
     .setup = start_with_one,
     .threads = {cancel_0_and_poll, move_0},
     .check = check},
    {.name = "the_owner_cancels_and_schedules_in_its_place",
     .setup = start_due_with_memory,
     .threads = {cancel_0_schedule_1_and_poll, cancel_0},
     .check = check},
    {.name = "the_owner_cancels_and_leaves_and_enters",
     .setup = start_with_one,
     .threads = {cancel_0_leave_and_enter, move_0},
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
     .setup = start_due,
     .threads = {leave, sleep_until_it_rings},
     .check = check},
    {.name = "a_sleeper_is_told_to_stop",
     .setup = start_with_one,
     .threads = {run, stop, schedule_on_first},
     .check = check},
    {.name = "a_watched_sleeper_is_told_to_stop",
     .setup = start_watched,
     .threads = {run, stop},
     .check = check},
    {.name = "a_ring_of_a_shared_timer_and_a_cancel",
     .setup = start_shared_and_due,
     .threads = {poll, cancel_0},
     .check = check},
    {.name = "a_ring_of_a_shared_timer_and_a_move",
     .setup = start_shared_and_due,
     .threads = {poll, move_0},
     .check = check},
    {.name = "two_polls_of_a_shared_timer_and_a_move",
     .setup = start_shared_and_due,
     .threads = {poll, poll, move_0},
     .check = check},
    {.name = "two_polls_of_a_shared_timer_and_a_cancel",
     .setup = start_shared_and_due,
     .threads = {poll, poll, cancel_0},
     .check = check},
    {.name = "a_beat_of_a_shared_timer_and_a_cancel",
     .setup = start_shared_and_repeating,
     .threads = {poll, cancel_0},
     .check = check},
    {.name = "a_beat_of_a_shared_timer_and_a_move",
     .setup = start_shared_and_repeating,
     .threads = {poll, move_0},
     .check = check},
    {.name = "a_move_and_a_cancel_of_a_shared_timer",
     .setup = start_shared,
     .threads = {move_0, cancel_0},
     .check = check},
    {.name = "two_moves_and_a_cancel_of_a_shared_timer",
     .setup = start_shared,
     .threads = {move_0, move_0, cancel_0},
     .check = check},
    {.name = "a_cancel_of_what_was_left_without_memory",
     .setup = start_left_without_memory,
     .threads = {cancel_0, poll},
     .check = check},
    {.name = "two_sleepers_of_which_one_gets_stuck",
     .setup = start_sleeping,
     .threads = {sleep_until_it_rings, sleep_until_it_rings, schedule_0_and_1_on_any},
     .check = check},
    {.name = "a_worker_that_is_stuck_and_one_that_sleeps",
     .setup = start_sleeping_with_one,
     .threads = {sleep_until_it_rings, sleep_until_it_rings, schedule_1_on_any},
     .check = check},
    {.name = "an_intake_and_a_sweep",
     .setup = start_with_sweeps,
     .threads = {take_in, cancel_0},
     .check = check},
    {.name = "an_exit_and_a_sweep",
     .setup = start_with_sweeps,
     .threads = {leave, cancel_0},
     .check = check},
    {.name = "a_sweep_and_a_schedule",
     .setup = start_to_sweep,
     .threads = {poll, cancel_and_schedule_on_first},
     .check = check},
    {.name = "a_sweep_and_an_exit",
     .setup = start_to_sweep,
     .threads = {leave, cancel_and_schedule_on_first},
     .check = check},
    {.name = "a_sleeper_and_a_sweep",
     .setup = start_with_one_and_sweeps,
     .threads = {sleep_until_there_are_two, schedule_and_cancel_on_first},
     .check = check},
    {.name = "an_intake_and_a_sweep_of_what_is_in_the_wheel",
     .setup = start_moved_with_sweeps,
     .threads = {take_in, cancel_0},
     .check = check},
    {.name = "an_exit_and_a_cancel_and_a_schedule_in_its_place",
     .setup = start_with_two,
     .threads = {leave, cancel_0_and_schedule},
     .check = check},
    {.name = "a_sweep_and_a_move",
     .setup = start_with_sweeps,
     .threads = {move_0, cancel_0},
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
    {.name = "a_poll_of_what_another_left_a_move_and_a_cancel",
     .setup = start_with_what_another_left,
     .threads = {poll, move_0, cancel_0},
     .check = check},
    {.name = "an_exit_and_a_move_and_then_a_cancel",
     .setup = start_with_one,
     .threads = {leave, move_0_and_cancel_0},
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
