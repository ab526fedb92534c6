/* SPDX-License-Identifier: MIT */

/*
 * The explorer on threads so small that their schedules can be counted by hand; and on random ones,
 * which must end in the same states with and without the reduction of schedules.
 */
#include "interleave.h"

#include "../check.h"
#include "../random.h"
#include "locks.h"

#include <assert.h>
#include <limits.h>
#include <stdatomic.h>
#include <string.h>

static atomic_uint x, y;
static struct interleave_mutex mutex;
static struct interleave_cond cond;

static void start_at_zero(void)
{
    atomic_init(&x, 0);
    atomic_init(&y, 0);
    mutex = (struct interleave_mutex){0};
    cond = (struct interleave_cond){0};
}

static void write_x(void)
{
    atomic_store_explicit(&x, 1, memory_order_relaxed);
}

static void write_x_thrice(void)
{
    write_x();
    write_x();
    write_x();
}

static void write_y_thrice(void)
{
    for (unsigned i = 0; i < 3; i++) {
        atomic_store_explicit(&y, i, memory_order_relaxed);
    }
}

static void read_x_thrice(void)
{
    for (unsigned i = 0; i < 3; i++) {
        (void)atomic_load_explicit(&x, memory_order_relaxed);
    }
}

static void read_y_then_write_x(void)
{
    (void)atomic_load_explicit(&y, memory_order_relaxed);
    write_x();
}

static void add_in_one_step(void)
{
    (void)atomic_fetch_add_explicit(&x, 1, memory_order_relaxed);
}

static void add_in_two_steps(void)
{
    unsigned seen = atomic_load_explicit(&x, memory_order_relaxed);
    atomic_store_explicit(&x, seen + 1, memory_order_relaxed);
}

static void require_two(void)
{
    REQUIRE(atomic_load_explicit(&x, memory_order_relaxed) == 2);
}

static struct interleave_result explore(struct interleave_case subject)
{
    struct interleave_result result;
    subject.setup = start_at_zero;
    interleave_explore(&subject, &result);
    return result;
}

static void writers_of_one_object_have_every_order(void)
{
    struct interleave_result result =
        explore((struct interleave_case){.threads = {write_x_thrice, write_x_thrice}});
    CHECK(!result.failed);
    CHECK_EQ(result.schedules, 20); /* 6! / 3! 3! */
    CHECK_EQ(result.repeats, 0);

    result = explore((struct interleave_case){.threads = {write_x, write_x, write_x, write_x}});
    CHECK_EQ(result.schedules, 24);
}

static void what_makes_no_difference_is_run_once(void)
{
    struct interleave_case apart = {.threads = {write_x_thrice, write_y_thrice}};
    CHECK_EQ(explore(apart).schedules, 1);
    struct interleave_case readers = {.threads = {read_x_thrice, read_x_thrice}};
    CHECK_EQ(explore(readers).schedules, 1);
    struct interleave_case mixed = {.threads = {read_y_then_write_x, read_y_then_write_x}};
    CHECK_EQ(explore(mixed).schedules, 2);

    apart.unreduced = readers.unreduced = mixed.unreduced = true;
    CHECK_EQ(explore(apart).schedules, 20);
    CHECK_EQ(explore(readers).schedules, 20);
    CHECK_EQ(explore(mixed).schedules, 6);
}

static void a_lost_update_is_found_and_can_be_replayed(void)
{
    struct interleave_case subject = {.threads = {add_in_two_steps, add_in_two_steps},
                                      .check = require_two};
    struct interleave_result result = explore(subject), again;
    CHECK(result.failed);
    CHECK(strstr(result.why, "inter_explorer.c") != NULL);
    CHECK(strcmp(result.schedule, "0101") == 0 || strcmp(result.schedule, "0110") == 0);

    subject.setup = start_at_zero;
    interleave_replay(&subject, result.schedule, &again);
    CHECK(again.failed);
    CHECK(strcmp(again.why, result.why) == 0);
    interleave_replay(&subject, "0011", &again);
    CHECK(!again.failed);
}

static void an_update_in_one_step_is_not_lost(void)
{
    struct interleave_result result = explore((struct interleave_case){
        .threads = {add_in_one_step, add_in_one_step}, .check = require_two});
    CHECK(!result.failed);
    CHECK_EQ(result.schedules, 2);
}

static void assert_that_x_is_zero(void)
{
    assert(atomic_load_explicit(&x, memory_order_relaxed) == 0);
}

static void require_that_nothing_is(void)
{
    REQUIRE(false);
}

static void a_failing_assertion_is_a_finding(void)
{
    struct interleave_result result =
        explore((struct interleave_case){.threads = {assert_that_x_is_zero, write_x}});
    CHECK(result.failed);
    CHECK(strcmp(result.schedule, "10") == 0);
    CHECK(strstr(result.why, "memory_order_relaxed") != NULL);
}

static void setup_and_check_can_fail_too(void)
{
    struct interleave_case subject = {.setup = require_that_nothing_is, .threads = {write_x}};
    struct interleave_result result;
    interleave_explore(&subject, &result);
    CHECK(result.failed);

    CHECK(explore((struct interleave_case){.check = require_that_nothing_is}).failed);
}

static bool is_set(const volatile void *object)
{
    return atomic_load_explicit((const volatile atomic_uint *)object, memory_order_relaxed) != 0;
}

static void await_x(void)
{
    interleave_await(&x, INTERLEAVE_READ, is_set);
    REQUIRE(is_set(&x));
}

static void await_x_and_write_y(void)
{
    await_x();
    atomic_store_explicit(&y, 1, memory_order_relaxed);
}

static void write_x_unless_y(void)
{
    if (atomic_load_explicit(&y, memory_order_relaxed) == 0) write_x();
}

static void write_y_and_clear_it(void)
{
    atomic_store_explicit(&y, 1, memory_order_relaxed);
    atomic_store_explicit(&y, 0, memory_order_relaxed);
}

static void who_waits_goes_on_when_it_can(void)
{
    struct interleave_result result =
        explore((struct interleave_case){.threads = {await_x_and_write_y, write_x}});
    CHECK(!result.failed);
    CHECK_EQ(result.schedules, 1);
}

static void a_wait_without_end_is_found(void)
{
    CHECK(explore((struct interleave_case){.threads = {await_x}}).failed);
    struct interleave_result result = explore(
        (struct interleave_case){.threads = {await_x, write_x_unless_y, write_y_and_clear_it}});
    CHECK(result.failed);
    CHECK(strcmp(result.schedule, "212") == 0);
}

static void spin_until_x(void)
{
    while (!is_set(&x)) {}
}

static void clear_x(void)
{
    atomic_store_explicit(&x, 0, memory_order_relaxed);
}

static void threads_without_end_are_found(void)
{
    struct interleave_result result =
        explore((struct interleave_case){.threads = {spin_until_x, clear_x}});
    CHECK(result.failed);
    CHECK_EQ(strlen(result.schedule), INTERLEAVE_STEPS_MAX);

    result = explore((struct interleave_case){.threads = {spin_until_x}});
    CHECK(result.failed);
    CHECK_EQ(strlen(result.schedule), INTERLEAVE_STEPS_MAX);
}

/* Uses x first, so that y is used only after a choice. */
static void read_x_and_add_to_y(void)
{
    if (atomic_load_explicit(&x, memory_order_relaxed) == 0) return;
    unsigned seen = atomic_load_explicit(&y, memory_order_relaxed);
    atomic_store_explicit(&y, seen + 1, memory_order_relaxed);
}

static void write_x_and_add_to_y(void)
{
    write_x();
    read_x_and_add_to_y();
}

static void require_that_y_is_two_or_one_was_early(void)
{
    REQUIRE(atomic_load_explicit(&y, memory_order_relaxed) != 1);
}

static void what_only_one_thread_uses_takes_no_step(void)
{
    struct interleave_case apart = {.threads = {write_x_thrice, write_y_thrice}};
    CHECK_EQ(explore(apart).steps, 0);
    struct interleave_case readers = {.threads = {read_x_thrice, read_x_thrice}};
    CHECK_EQ(explore(readers).steps, 0);
    struct interleave_case mixed = {.threads = {read_y_then_write_x, read_y_then_write_x}};
    CHECK_EQ(explore(mixed).steps, 4); /* two in each of two schedules */
}

static void write_y_and_then_x(void)
{
    write_y_thrice();
    write_x();
}

static void await_x_and_write_y_thrice(void)
{
    await_x();
    write_y_thrice();
}

static void write_x_and_then_y(void)
{
    write_x();
    write_y_thrice();
}

static void what_is_handed_over_takes_no_step(void)
{
    struct interleave_case subject = {.threads = {write_y_and_then_x, await_x_and_write_y_thrice}};
    struct interleave_result result = explore(subject);
    CHECK(!result.failed);
    CHECK_EQ(result.schedules, 1);
    CHECK_EQ(result.steps, 3); /* those on x */

    subject.threads[0] = write_x_and_then_y; /* too late */
    CHECK_EQ(explore(subject).schedules, 20);
}

static void what_turns_out_to_be_shared_takes_steps(void)
{
    struct interleave_result result =
        explore((struct interleave_case){.threads = {read_x_and_add_to_y, write_x_and_add_to_y},
                                         .check = require_that_y_is_two_or_one_was_early});
    CHECK(result.failed);
}

static void lock_and_add_in_two_steps(void)
{
    (void)interleave_mutex_lock(&mutex);
    add_in_two_steps();
    (void)interleave_mutex_unlock(&mutex);
}

static void try_to_lock_and_add_in_two_steps(void)
{
    if (interleave_mutex_trylock(&mutex) == 0) {
        add_in_two_steps();
        (void)interleave_mutex_unlock(&mutex);
    } else {
        (void)atomic_fetch_add_explicit(&y, 1, memory_order_relaxed);
    }
}

static void lock_and_add_around_writing_y(void)
{
    lock_and_add_in_two_steps();
    atomic_store_explicit(&y, 1, memory_order_relaxed);
    lock_and_add_in_two_steps();
}

static void await_y_and_add_in_one_step(void)
{
    interleave_await(&y, INTERLEAVE_READ, is_set);
    add_in_one_step();
}

static void require_three(void)
{
    REQUIRE(atomic_load_explicit(&x, memory_order_relaxed) == 3);
}

static void require_two_in_all(void)
{
    REQUIRE(atomic_load_explicit(&x, memory_order_relaxed) +
                atomic_load_explicit(&y, memory_order_relaxed) ==
            2);
}

static void what_a_mutex_guards_takes_no_step(void)
{
    struct interleave_case subject = {
        .threads = {lock_and_add_in_two_steps, lock_and_add_in_two_steps}, .check = require_two};
    struct interleave_result result = explore(subject);
    CHECK(!result.failed);
    CHECK_EQ(result.schedules, 2);
    CHECK_EQ(result.steps, 8); /* lock and unlock, twice, in each */

    subject.threads[1] = add_in_one_step;
    CHECK(explore(subject).failed);
    subject.threads[1] = try_to_lock_and_add_in_two_steps;
    subject.check = require_two_in_all;
    result = explore(subject);
    CHECK(!result.failed);
    CHECK_EQ(result.schedules, 3);
}

static void who_goes_without_the_mutex_later_is_found(void)
{
    CHECK(explore((struct interleave_case){
                      .threads = {lock_and_add_around_writing_y, await_y_and_add_in_one_step},
                      .check = require_three})
              .failed);
}

static void wait_for_x(void)
{
    (void)interleave_mutex_lock(&mutex);
    while (!is_set(&x)) {
        (void)interleave_cond_wait(&cond, &mutex);
    }
    (void)interleave_mutex_unlock(&mutex);
}

static void write_x_and_tell(void)
{
    (void)interleave_mutex_lock(&mutex);
    write_x();
    (void)interleave_cond_broadcast(&cond);
    (void)interleave_mutex_unlock(&mutex);
}

static void write_x_without_the_mutex(void)
{
    write_x();
    (void)interleave_cond_broadcast(&cond);
}

static void a_wake_that_is_lost_is_found(void)
{
    struct interleave_case subject = {.threads = {wait_for_x, wait_for_x, write_x_and_tell}};
    CHECK(!explore(subject).failed);
    subject.threads[2] = write_x_without_the_mutex;
    CHECK(explore(subject).failed);
    subject.threads[2] = write_x;
    CHECK(explore(subject).failed);
}

static void set_x_weakly(void)
{
    unsigned seen = 0;
    while (!atomic_compare_exchange_weak_explicit(&x, &seen, 1, memory_order_relaxed,
                                                  memory_order_relaxed)) {
        REQUIRE(seen == 0);
    }
}

static void set_x_strongly(void)
{
    unsigned seen = 0;
    REQUIRE(atomic_compare_exchange_strong_explicit(&x, &seen, 1, memory_order_relaxed,
                                                    memory_order_relaxed));
}

static void a_weak_swap_may_fail_for_no_reason(void)
{
    struct interleave_case weak = {.threads = {set_x_weakly}};
    CHECK_EQ(explore(weak).schedules, 1);
    weak.spurious_max = 2;
    CHECK_EQ(explore(weak).schedules, 3);

    struct interleave_case strong = {.threads = {set_x_strongly}, .spurious_max = 2};
    CHECK(!explore(strong).failed);
    CHECK_EQ(explore(strong).schedules, 1);
}

/* Random threads: what each operation found is part of the outcome. */
enum {
    THREADS = 3,
    OPERATIONS = 3,
    OBJECTS = 3,
    OUTCOMES_MAX = 10 * 1000,
    PROGRAMS = 40,
};

enum operation {
    LOAD,
    ADD,
    SWAP_WEAKLY,
    STORE,
    CLEAR,
    AWAIT,
};

static struct {
    enum operation operation;
    unsigned object;
    bool is_locked; /* holds the mutex meanwhile */
} programs[THREADS][OPERATIONS];

static unsigned operations; /* of each thread: fewer with a mutex, which takes steps too */
static atomic_uint objects[OBJECTS];
static unsigned found[THREADS][OPERATIONS];

static struct outcomes {
    uint64_t hashes[OUTCOMES_MAX]; /* each once, in the order in which they were found */
    unsigned count;
} outcomes, all_outcomes;

static void clear_objects(void)
{
    for (unsigned i = 0; i < OBJECTS; i++) {
        atomic_init(&objects[i], 0);
    }
    mutex = (struct interleave_mutex){0};
    memset(found, 0, sizeof found);
}

static unsigned swap_weakly(atomic_uint *object, unsigned value)
{
    unsigned seen = 0;
    bool done = atomic_compare_exchange_weak_explicit(object, &seen, value, memory_order_relaxed,
                                                      memory_order_relaxed);
    return done ? UINT_MAX : seen;
}

static unsigned operate(enum operation operation, unsigned index, unsigned value)
{
    atomic_uint *object = &objects[index];
    switch (operation) {
    case LOAD:
        return atomic_load_explicit(object, memory_order_relaxed);
    case ADD:
        return atomic_fetch_add_explicit(object, value, memory_order_relaxed);
    case SWAP_WEAKLY:
        return swap_weakly(object, value);
    case STORE:
        atomic_store_explicit(object, value, memory_order_relaxed);
        return 0;
    case CLEAR:
        atomic_store_explicit(object, 0, memory_order_relaxed);
        return 0;
    case AWAIT:
        interleave_await(object, INTERLEAVE_READ, is_set);
        return 0;
    }
    CHECK(false);
    return 0;
}

static void run_program(void)
{
    unsigned self = interleave_self();
    for (unsigned i = 0; i < operations; i++) {
        bool is_locked = programs[self][i].is_locked;
        if (is_locked) (void)interleave_mutex_lock(&mutex);
        found[self][i] = operate(programs[self][i].operation, programs[self][i].object,
                                 1U << (self * OPERATIONS + i));
        if (is_locked) (void)interleave_mutex_unlock(&mutex);
    }
}

static void note_outcome(void)
{
    uint64_t hash = 0;
    for (unsigned i = 0; i < OBJECTS; i++) {
        hash = random_u64(&hash) ^ atomic_load_explicit(&objects[i], memory_order_relaxed);
    }
    for (unsigned i = 0; i < THREADS * OPERATIONS; i++) {
        hash = random_u64(&hash) ^ found[i / OPERATIONS][i % OPERATIONS];
    }
    for (unsigned i = 0; i < outcomes.count; i++) {
        if (outcomes.hashes[i] == hash) return;
    }
    CHECK(outcomes.count < OUTCOMES_MAX);
    outcomes.hashes[outcomes.count++] = hash;
}

static bool has_outcome(const struct outcomes *set, uint64_t hash)
{
    for (unsigned i = 0; i < set->count; i++) {
        if (set->hashes[i] == hash) return true;
    }
    return false;
}

/* Returns how many schedules the reduction left out. */
static uint64_t compare_outcomes(uint64_t seed)
{
    struct interleave_case subject = {.setup = clear_objects,
                                      .threads = {run_program, run_program, run_program},
                                      .check = note_outcome,
                                      .spurious_max = 1};
    struct interleave_result reduced, unreduced;
    uint64_t random_state = seed;
    bool has_mutex = seed % 2 == 0;
    operations = has_mutex ? OPERATIONS - 1 : OPERATIONS;
    for (unsigned i = 0; i < THREADS * OPERATIONS; i++) {
        bool awaits = random_below(&random_state, 16) == 0; /* more would always deadlock */
        programs[i / OPERATIONS][i % OPERATIONS].operation =
            awaits ? AWAIT : (enum operation)random_below(&random_state, AWAIT);
        unsigned object = (unsigned)random_below(&random_state, OBJECTS);
        programs[i / OPERATIONS][i % OPERATIONS].object = object;
        programs[i / OPERATIONS][i % OPERATIONS].is_locked =
            has_mutex && object == 0 && random_below(&random_state, 8) != 0;
    }

    subject.unreduced = true;
    outcomes.count = 0;
    interleave_explore(&subject, &unreduced);
    all_outcomes = outcomes;
    subject.unreduced = false;
    outcomes.count = 0;
    interleave_explore(&subject, &reduced);

    CHECK(reduced.failed == unreduced.failed); /* if all remaining threads wait */
    if (reduced.failed) return 0;
    CHECK_EQ(outcomes.count, all_outcomes.count);
    for (unsigned i = 0; i < outcomes.count; i++) {
        CHECK(has_outcome(&all_outcomes, outcomes.hashes[i]));
    }
    CHECK(reduced.schedules <= unreduced.schedules);
    return unreduced.schedules - reduced.schedules;
}

static void leaving_schedules_out_loses_no_outcome(void)
{
    uint64_t left_out = 0;
    for (uint64_t seed = 1; seed <= PROGRAMS; seed++) {
        CHECK_NOTE("seed %" PRIu64, seed);
        left_out += compare_outcomes(seed);
    }
    CHECK(left_out > 0);
}

int main(void)
{
    RUN(writers_of_one_object_have_every_order);
    RUN(what_makes_no_difference_is_run_once);
    RUN(a_lost_update_is_found_and_can_be_replayed);
    RUN(an_update_in_one_step_is_not_lost);
    RUN(a_failing_assertion_is_a_finding);
    RUN(setup_and_check_can_fail_too);
    RUN(who_waits_goes_on_when_it_can);
    RUN(a_wait_without_end_is_found);
    RUN(threads_without_end_are_found);
    RUN(a_weak_swap_may_fail_for_no_reason);
    RUN(what_only_one_thread_uses_takes_no_step);
    RUN(what_is_handed_over_takes_no_step);
    RUN(what_turns_out_to_be_shared_takes_steps);
    RUN(what_a_mutex_guards_takes_no_step);
    RUN(who_goes_without_the_mutex_later_is_found);
    RUN(a_wake_that_is_lost_is_found);
    RUN(leaving_schedules_out_loses_no_outcome);
    return 0;
}
