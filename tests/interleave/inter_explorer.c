/* SPDX-License-Identifier: MIT */

/*
 * The explorer on threads so small that their schedules can be counted by hand; and on
 * random ones, which must end in the same ways whether or not schedules are left out.
 */
#include "interleave.h"

#include "../check.h"
#include "../random.h"

#include <assert.h>
#include <limits.h>
#include <stdatomic.h>
#include <string.h>

static atomic_uint x, y;

static void start_at_zero(void)
{
    atomic_init(&x, 0);
    atomic_init(&y, 0);
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

static bool x_is_set(void)
{
    return atomic_load_explicit(&x, memory_order_relaxed) != 0;
}

static void await_x(void)
{
    interleave_await(&x, x_is_set);
    REQUIRE(x_is_set());
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
    while (!x_is_set()) {}
}

static void threads_without_end_are_found(void)
{
    struct interleave_result result = explore((struct interleave_case){.threads = {spin_until_x}});
    CHECK(result.failed);
    CHECK_EQ(strlen(result.schedule), INTERLEAVE_STEPS_MAX);
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

/* Random threads: what each operation found goes into the outcome. */
enum {
    THREADS = 3,
    OPERATIONS = 3,
    OBJECTS = 3,
    OUTCOMES_MAX = 10 * 1000,
    PROGRAMS = 12,
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
} programs[THREADS][OPERATIONS];

static atomic_uint objects[OBJECTS];
static unsigned found[THREADS][OPERATIONS];

static struct outcomes {
    uint64_t hashes[OUTCOMES_MAX]; /* each once, in the order they were met */
    unsigned count;
} outcomes, all_outcomes;

static bool is_set_0(void)
{
    return atomic_load_explicit(&objects[0], memory_order_relaxed) != 0;
}

static bool is_set_1(void)
{
    return atomic_load_explicit(&objects[1], memory_order_relaxed) != 0;
}

static bool is_set_2(void)
{
    return atomic_load_explicit(&objects[2], memory_order_relaxed) != 0;
}

static bool (*const is_set[OBJECTS])(void) = {is_set_0, is_set_1, is_set_2};

static void clear_objects(void)
{
    for (unsigned i = 0; i < OBJECTS; i++) {
        atomic_init(&objects[i], 0);
    }
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
        interleave_await(object, is_set[index]);
        return 0;
    }
    CHECK(false);
    return 0;
}

static void run_program(void)
{
    unsigned self = interleave_self();
    for (unsigned i = 0; i < OPERATIONS; i++) {
        found[self][i] = operate(programs[self][i].operation, programs[self][i].object,
                                 1U << (self * OPERATIONS + i));
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

/* Returns how many schedules were left out. */
static uint64_t compare_outcomes(uint64_t seed)
{
    struct interleave_case subject = {.setup = clear_objects,
                                      .threads = {run_program, run_program, run_program},
                                      .check = note_outcome,
                                      .spurious_max = 1};
    struct interleave_result reduced, unreduced;
    uint64_t random_state = seed;
    for (unsigned i = 0; i < THREADS * OPERATIONS; i++) {
        bool awaits = random_below(&random_state, 16) == 0; /* more would always wait for ever */
        programs[i / OPERATIONS][i % OPERATIONS].operation =
            awaits ? AWAIT : (enum operation)random_below(&random_state, AWAIT);
        programs[i / OPERATIONS][i % OPERATIONS].object =
            (unsigned)random_below(&random_state, OBJECTS);
    }

    subject.unreduced = true;
    outcomes.count = 0;
    interleave_explore(&subject, &unreduced);
    all_outcomes = outcomes;
    subject.unreduced = false;
    outcomes.count = 0;
    interleave_explore(&subject, &reduced);

    CHECK(reduced.failed == unreduced.failed); /* when all that are left wait */
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
    RUN(leaving_schedules_out_loses_no_outcome);
    return 0;
}
