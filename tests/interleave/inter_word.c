/* SPDX-License-Identifier: MIT */

/*
 * Every interleaving of operations on the word of one timer: it rings, is cancelled, moved, handed
 * over, waited for, and its memory is reused.
 *
 * The environment of the word is minimal. A queue is a counter of 0 or 1, because only the thread
 * that sets QUEUED pushes. A wheel is one entry, the due that it was given. Where the runtime must
 * use the word in a certain way, the functions here do the same as ring.c, intake.c and timer.c.
 *
 * At the end each timer was ended once, by a ring or by a cancel, and did not ring after a cancel
 * that returned true; and a timer rings with the due that was set last.
 */
#include "runtime/word.h"

#include "interleave.h"
#include "locks.h"

#include <stddef.h>

enum {
    LIVES_MAX = 2,
    DUE = 1,     /* initial due; mover n sets it to 10 + n */
    BEAT = 100,  /* from one ring of a repeating timer to the next */
    NONE = 1000, /* as an enum word_move: there was no move */
};

static struct {
    _Atomic uint64_t word;
    atomic_uint due;
    atomic_uint queue;       /* number of queues that it is in */
    unsigned note;           /* plain memory: a copy of the due, for the thread that owns the
                                timer */
    atomic_uint ended;       /* one bit per generation that a cancel has ended */
    atomic_bool is_ringing;  /* the callback runs */
    atomic_uint handle;      /* of the second generation, once a thread has it */
    atomic_bool is_answered; /* what the callback of the second generation waits for */
} timer;

static struct interleave_mutex mutex;
static struct interleave_cond rung;

/* A polling thread; each belongs to its thread. */
static struct worker {
    bool has_entry;
    unsigned entry_due, entry_life;
    unsigned rings[LIVES_MAX];
    unsigned beats;   /* rings after which another ring followed */
    unsigned settles; /* how often it took the timer over, or put it back */
    unsigned starts;  /* of generations */
} workers[INTERLEAVE_THREADS_MAX];

/* The results of a thread's calls; each belongs to its thread. */
static struct {
    unsigned cancels[LIVES_MAX];
    enum word_move move;
    bool has_handed_over;
    bool has_rung_last; /* even if it repeats */
} told[INTERLEAVE_THREADS_MAX];

static uint32_t first = 1; /* the first generation */
static bool repeats;       /* whether the first timer repeats */

static unsigned life_of(uint64_t word)
{
    return word_generation(word) - first;
}

static void start_life(struct worker *worker, unsigned bits)
{
    timer.note = DUE;
    atomic_store_explicit(&timer.due, DUE, memory_order_relaxed);
    worker->starts++;
    worker->has_entry = (bits & WORD_QUEUED) == 0;
    worker->entry_due = DUE;
    worker->entry_life = word_start(&timer.word, bits) - first;
}

static void start(unsigned bits)
{
    atomic_init(&timer.word, (uint64_t)first << 32 | WORD_FREE);
    atomic_init(&timer.queue, (bits & WORD_QUEUED) != 0);
    atomic_init(&timer.ended, 0);
    atomic_init(&timer.is_ringing, false);
    atomic_init(&timer.handle, 0);
    atomic_init(&timer.is_answered, false);
    mutex = (struct interleave_mutex){0};
    rung = (struct interleave_cond){0};
    for (unsigned i = 0; i < INTERLEAVE_THREADS_MAX; i++) {
        workers[i] = (struct worker){0};
        told[i].cancels[0] = told[i].cancels[1] = 0;
        told[i].move = (enum word_move)NONE;
        told[i].has_handed_over = told[i].has_rung_last = false;
    }
    repeats = (bits & WORD_REPEATS) != 0;
    start_life(&workers[0], bits);
}

static void start_in_the_wheel(void)
{
    start(0);
}

static void start_in_the_queue(void)
{
    start(WORD_QUEUED);
}

static void start_repeating(void)
{
    start(WORD_REPEATS);
}

static void start_repeating_in_the_queue(void)
{
    start(WORD_QUEUED | WORD_REPEATS);
}

/* The caller has set QUEUED. */
static void push(void)
{
    REQUIRE(atomic_fetch_add_explicit(&timer.queue, 1, memory_order_acq_rel) == 0);
}

static bool has_ended(unsigned life)
{
    return (atomic_load_explicit(&timer.ended, memory_order_relaxed) >> life & 1) != 0;
}

static void note_cancel(unsigned life)
{
    told[interleave_self()].cancels[life]++;
    (void)atomic_fetch_or_explicit(&timer.ended, 1U << life, memory_order_relaxed);
}

static bool cancel(uint32_t generation)
{
    enum word_end end = word_cancel(&timer.word, generation);
    if (end == WORD_NOT_ENDED) return false;
    note_cancel(generation - first);
    if (end == WORD_ENDED_PUSH) {
        REQUIRE(timer.note != 0); /* owns it */
        push();
    }
    return true;
}

static void cancel_first(void)
{
    (void)cancel(first);
}

static void wait_for_the_end(void)
{
    (void)interleave_mutex_lock(&mutex);
    while (word_wait(&timer.word, first)) {
        (void)interleave_cond_wait(&rung, &mutex);
    }
    (void)interleave_mutex_unlock(&mutex);
}

static void cancel_sync(void)
{
    (void)cancel(first);
    wait_for_the_end();
    REQUIRE(!atomic_load_explicit(&timer.is_ringing, memory_order_relaxed));
}

/* `queued` as in word_move_end(). Returns whether it has moved the timer. */
static bool move(unsigned queued)
{
    unsigned self = interleave_self(), due = 10 + self;
    bool had_ended = has_ended(0);
    enum word_move begun = told[self].move = word_move_begin(&timer.word, first);
    REQUIRE(!had_ended || begun == WORD_MOVE_STALE);
    if (begun != WORD_MOVE_BEGUN) return false;
    timer.note = due;
    atomic_store_explicit(&timer.due, due, memory_order_relaxed);
    enum word_moved moved = word_move_end(&timer.word, queued);
    if (moved == WORD_MOVED_PUSH || moved == WORD_MOVED_ENDED_PUSH) push();
    return true;
}

static void move_first(void)
{
    (void)move(WORD_QUEUED);
}

static struct worker *this_worker(void)
{
    return &workers[interleave_self()];
}

/* Like settle() in intake.c. */
static void take_in(struct worker *worker)
{
    if (atomic_exchange_explicit(&timer.queue, 0, memory_order_acq_rel) == 0) return;
    uint64_t seen = word_load(&timer.word);
    do {
        if (word_state(seen) == WORD_CANCELLED) {
            worker->has_entry = false;
            word_clear(&timer.word);
            return;
        }
        if (word_state(seen) == WORD_PENDING) {
            worker->has_entry = true;
            worker->entry_due = atomic_load_explicit(&timer.due, memory_order_relaxed);
            worker->entry_life = life_of(seen);
        }
    } while (!word_settle(&timer.word, &seen));
    worker->settles++;
}

static void tell(uint64_t before)
{
    if ((before & WORD_WAITED) == 0) return;
    (void)interleave_mutex_lock(&mutex);
    (void)interleave_cond_broadcast(&rung);
    (void)interleave_mutex_unlock(&mutex);
}

static bool is_true(const volatile void *flag)
{
    return atomic_load_explicit((const volatile atomic_bool *)flag, memory_order_relaxed);
}

static void ring(unsigned life)
{
    if (life == 1) interleave_await(&timer.is_answered, INTERLEAVE_READ, is_true);
    atomic_store_explicit(&timer.is_ringing, true, memory_order_relaxed);
    atomic_store_explicit(&timer.is_ringing, false, memory_order_relaxed);
}

/* Like bel__ring() in ring.c. Returns whether it has rung. */
static bool fire(struct worker *worker)
{
    if (!worker->has_entry) return false;
    worker->has_entry = false;
    unsigned life = worker->entry_life;
    bool had_ended = has_ended(life), is_over;
    if (!word_fire(&timer.word)) return false;
    REQUIRE(!had_ended);
    unsigned due = atomic_load_explicit(&timer.due, memory_order_relaxed);
    REQUIRE(worker->entry_due == due && timer.note == due % BEAT);
    worker->rings[life]++;
    ring(life);
    atomic_store_explicit(&timer.due, due + BEAT, memory_order_relaxed);
    tell(word_fired(&timer.word, &is_over));
    if (!is_over) {
        worker->beats++;
        worker->has_entry = true;
        worker->entry_due = due + BEAT;
    }
    return true;
}

static void fire_once(void)
{
    (void)fire(this_worker());
}

static void take_in_once(void)
{
    take_in(this_worker());
}

static void fire_twice(void)
{
    fire_once();
    fire_once();
}

static void fire_and_take_in(void)
{
    fire_once();
    take_in_once();
}

static void take_in_and_fire(void)
{
    take_in_once();
    fire_once();
}

/* Like the fast path in timer.c. */
static void cancel_own(void)
{
    struct worker *worker = this_worker();
    if (word_cancel_own(&timer.word, first)) {
        worker->has_entry = false;
        note_cancel(0);
    } else {
        (void)cancel(first);
    }
}

static void cancel_own_and_take_in(void)
{
    cancel_own();
    take_in_once();
}

static void move_own_and_fire(void)
{
    struct worker *worker = this_worker();
    if (move(0) && worker->has_entry) {
        worker->entry_due = atomic_load_explicit(&timer.due, memory_order_relaxed);
    }
    fire_once();
}

/* Like empty_wheel() in intake.c. */
static void hand_over(void)
{
    struct worker *worker = this_worker();
    worker->has_entry = false;
    if (word_hand_over(&timer.word, word_load(&timer.word))) {
        told[interleave_self()].has_handed_over = true;
        push();
    }
}

static bool is_not_moving(const volatile void *address)
{
    (void)address;
    return word_state(word_load(&timer.word)) != WORD_MOVING;
}

/* Like a shutdown with timers that wait for a worker. Returns whether it must ring. */
static bool claim(void)
{
    if (atomic_exchange_explicit(&timer.queue, 0, memory_order_acq_rel) == 0) return false;
    bool had_ended = has_ended(0);
    uint64_t seen = word_load(&timer.word);
    for (;;) {
        if (word_state(seen) == WORD_CANCELLED) {
            word_clear(&timer.word);
            return false;
        }
        if (word_state(seen) == WORD_MOVING) {
            interleave_await(&timer.word, INTERLEAVE_READ, is_not_moving);
            seen = word_load(&timer.word);
        } else if (word_claim(&timer.word, &seen)) {
            REQUIRE(!had_ended);
            return true;
        }
    }
}

static void claim_and_ring(void)
{
    bool is_over;
    if (!claim()) return;
    REQUIRE(timer.note == atomic_load_explicit(&timer.due, memory_order_relaxed));
    this_worker()->rings[0]++;
    ring(0);
    tell(word_fired(&timer.word, &is_over));
    REQUIRE(is_over);
    told[interleave_self()].has_rung_last = true;
}

static void claim_and_put_back(void)
{
    if (!claim()) return;
    this_worker()->settles++;
    tell(word_unclaim(&timer.word, repeats ? WORD_REPEATS : 0));
    push();
}

/* The memory is reused as soon as the first timer has ended. */
static void end_first_and_start_second(void)
{
    struct worker *worker = this_worker();
    if (!fire(worker)) take_in(worker);
    if (word_state(word_load(&timer.word)) != WORD_FREE) return;
    start_life(worker, 0);
    atomic_store_explicit(&timer.handle, first + 1, memory_order_relaxed);
}

static void start_second_and_fire_it(void)
{
    end_first_and_start_second();
    if (this_worker()->starts == 2) fire_once();
}

static void start_second_and_cancel_first(void)
{
    end_first_and_start_second();
    if (this_worker()->starts == 2) REQUIRE(!word_cancel_own(&timer.word, first));
}

static void cancel_second(void)
{
    if (atomic_load_explicit(&timer.handle, memory_order_relaxed) == first + 1) {
        (void)cancel(first + 1);
    }
}

/* The callback of the second timer waits for this thread, and this thread must not wait for it. */
static void cancel_sync_and_answer(void)
{
    cancel_sync();
    atomic_store_explicit(&timer.is_answered, true, memory_order_relaxed);
}

/* Checks that the word and its environment agree, when no thread uses it. */
static void check_word(void)
{
    uint64_t word = word_load(&timer.word);
    unsigned state = word_state(word), entries = 0;
    bool is_queued = (word & WORD_QUEUED) != 0;
    for (unsigned i = 0; i < INTERLEAVE_THREADS_MAX; i++) {
        if (workers[i].has_entry) entries++;
    }
    REQUIRE(atomic_load_explicit(&timer.queue, memory_order_relaxed) == is_queued);
    REQUIRE((word & (WORD_STOP | WORD_WAITED)) == 0);
    REQUIRE(state == WORD_FREE || state == WORD_PENDING || state == WORD_CANCELLED);
    REQUIRE(state == WORD_FREE || (state == WORD_PENDING && entries == 1) || is_queued);
    REQUIRE(state != WORD_FREE || ((uint32_t)word == WORD_FREE && entries == 0));
}

static void check_life(unsigned life)
{
    bool is_over = life < life_of(word_load(&timer.word));
    unsigned rings = 0, last_rings = 0, cancels = 0;
    for (unsigned i = 0; i < INTERLEAVE_THREADS_MAX; i++) {
        rings += workers[i].rings[life];
        last_rings += told[i].has_rung_last;
        cancels += told[i].cancels[life];
    }
    if (life == 0 && repeats) {
        REQUIRE(last_rings + cancels == is_over);
    } else {
        REQUIRE(is_over && rings + cancels == 1);
    }
}

/* Rings the timer if it is still pending, and checks how each generation ended. */
static void check_lives(void)
{
    check_word();
    unsigned lives = 0;
    atomic_store_explicit(&timer.is_answered, true, memory_order_relaxed);
    for (unsigned i = 0; i < INTERLEAVE_THREADS_MAX; i++) {
        take_in(&workers[i]);
        (void)fire(&workers[i]);
        lives += workers[i].starts;
    }
    check_word();
    for (unsigned life = 0; life < lives; life++) {
        check_life(life);
    }
}

/* Also checks that the arming was incremented each time the timer was moved or changed its
 * owner. */
static void check_lives_and_armings(void)
{
    uint64_t word = word_load(&timer.word), armings = 0;
    for (unsigned i = 0; i < INTERLEAVE_THREADS_MAX; i++) {
        armings += workers[i].settles + workers[i].beats + told[i].has_handed_over;
        armings += told[i].move == WORD_MOVE_BEGUN;
    }
    bool is_first = word_state(word) == WORD_PENDING && life_of(word) == 0;
    if (is_first) REQUIRE((word & WORD_ARMINGS) / WORD_ARMING == armings);
    check_lives();
}

/* Without the armings; and because no other thread interfered, the timer was moved, and cancelled
 * if tried. */
static void check_that_nobody_was_refused(void)
{
    unsigned moves = 0, cancels = 0;
    for (unsigned i = 0; i < INTERLEAVE_THREADS_MAX; i++) {
        moves += told[i].move == WORD_MOVE_BEGUN;
        cancels += told[i].cancels[0];
        REQUIRE(told[i].move != WORD_MOVE_STALE || has_ended(0));
    }
    REQUIRE(moves + cancels > 0);
    check_lives();
}

/* The small cases first: they detect most mutants. */
static const struct interleave_case cases[] = {
    {.name = "a_ring_and_two_cancels",
     .setup = start_in_the_wheel,
     .threads = {fire_and_take_in, cancel_first, cancel_first},
     .check = check_lives},
    {.name = "two_moves",
     .setup = start_in_the_wheel,
     .threads = {take_in_and_fire, move_first, move_first},
     .check = check_lives},
    {.name = "a_move_while_it_is_queued",
     .setup = start_in_the_queue,
     .threads = {take_in_and_fire, move_first},
     .check = check_lives},
    {.name = "moves_and_a_cancel_with_nobody_else",
     .setup = start_in_the_wheel,
     .threads = {move_first, move_first, cancel_first},
     .check = check_that_nobody_was_refused},
    {.name = "a_ring_a_move_and_a_cancel",
     .setup = start_in_the_wheel,
     .threads = {fire_and_take_in, move_first, cancel_first},
     .check = check_lives},
    {.name = "a_hand_over_a_move_and_an_adopter",
     .setup = start_in_the_wheel,
     .threads = {hand_over, move_first, take_in_once},
     .check = check_lives_and_armings},
    {.name = "a_hand_over_a_cancel_and_an_adopter",
     .setup = start_in_the_wheel,
     .threads = {hand_over, cancel_first, take_in_once},
     .check = check_lives},
    {.name = "a_hand_over_a_move_and_a_cancel",
     .setup = start_in_the_wheel,
     .threads = {hand_over, move_first, cancel_first},
     .check = check_lives},
    {.name = "a_last_ring_a_move_and_a_cancel",
     .setup = start_in_the_queue,
     .threads = {claim_and_ring, move_first, cancel_first},
     .check = check_lives},
    {.name = "a_last_ring_and_one_who_waits_for_its_end",
     .setup = start_in_the_queue,
     .threads = {claim_and_ring, cancel_sync},
     .check = check_lives},
    {.name = "a_last_ring_of_what_repeats_and_a_cancel",
     .setup = start_repeating_in_the_queue,
     .threads = {claim_and_ring, cancel_first},
     .check = check_lives},
    {.name = "a_last_ring_put_back_and_one_who_waits",
     .setup = start_repeating_in_the_queue,
     .threads = {claim_and_put_back, cancel_sync},
     .check = check_lives},
    {.name = "a_last_ring_put_back_and_a_move",
     .setup = start_repeating_in_the_queue,
     .threads = {claim_and_put_back, move_first},
     .check = check_lives_and_armings},
    {.name = "memory_used_again_and_a_late_cancel",
     .setup = start_in_the_wheel,
     .threads = {end_first_and_start_second, cancel_first, cancel_second},
     .check = check_lives},
    {.name = "memory_used_again_and_a_late_move",
     .setup = start_in_the_wheel,
     .threads = {start_second_and_cancel_first, cancel_first, move_first},
     .check = check_lives},
    {.name = "memory_used_again_and_a_late_wait",
     .setup = start_in_the_wheel,
     .threads = {start_second_and_fire_it, cancel_sync_and_answer},
     .check = check_lives},
    {.name = "two_beats_and_one_who_waits_for_the_end",
     .setup = start_repeating,
     .threads = {fire_twice, cancel_sync},
     .check = check_lives},
    {.name = "two_beats_and_one_who_only_waits",
     .setup = start_repeating,
     .threads = {fire_twice, wait_for_the_end},
     .check = check_lives},
    {.name = "a_ring_and_two_who_wait_for_its_end",
     .setup = start_in_the_wheel,
     .threads = {fire_once, cancel_sync, cancel_sync},
     .check = check_lives},
    {.name = "the_owner_and_another_cancel_and_one_moves",
     .setup = start_in_the_wheel,
     .threads = {cancel_own_and_take_in, cancel_first, move_first},
     .check = check_lives},
    {.name = "a_move_and_a_cancel_while_it_is_queued",
     .setup = start_in_the_queue,
     .threads = {take_in_and_fire, move_first, cancel_first},
     .check = check_lives},
    {.name = "the_owner_and_another_move_and_one_cancels",
     .setup = start_in_the_wheel,
     .threads = {move_own_and_fire, move_first, cancel_first},
     .check = check_lives},
    {.name = "two_beats_a_cancel_and_a_move",
     .setup = start_repeating,
     .threads = {fire_twice, cancel_first, move_first},
     .check = check_lives_and_armings},
};

int main(int argc, char **argv)
{
    return interleave_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
