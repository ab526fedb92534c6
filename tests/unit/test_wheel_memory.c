/* SPDX-License-Identifier: MIT */

/*
 * A wheel whose memory runs out. The linker inserts the functions below between the core and the
 * system (see meson.build), so that they can fail:
 *
 *     memory_left = 3;     the fourth and all later requests for memory fail
 */
#include "belfry/wheel.h"

#include "../check.h"
#include "../random.h"

#include <errno.h>
#include <sys/mman.h>

#define MS     UINT64_C(1000000)
#define SECOND (1000 * MS)
#define PLENTY UINT64_MAX

enum {
    TIMERS = 60000,
    TRIES = 100, /* failed pops before a test assumes a lack of memory */
};

static uint64_t memory_left = PLENTY;
static struct bel_wheel *wheel;
static bel_timer_t timers[TIMERS];

static bool is_refused(void)
{
    if (memory_left == 0) {
        errno = ENOMEM;
        return true;
    }
    if (memory_left != PLENTY) memory_left--;
    return false;
}

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_mmap(void *at, size_t bytes, int protection, int flags, int file, off_t offset);
int __real_mprotect(void *at, size_t bytes, int protection);
int __real_madvise(void *at, size_t bytes, int advice);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int file, off_t offset);
void *__wrap_mmap64(void *at, size_t bytes, int protection, int flags, int file, off_t offset);
int __wrap_mprotect(void *at, size_t bytes, int protection);
int __wrap_madvise(void *at, size_t bytes, int advice);

void *__wrap_malloc(size_t bytes)
{
    return is_refused() ? NULL : __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    return is_refused() ? NULL : __real_calloc(count, bytes);
}

void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int file, off_t offset)
{
    if (is_refused()) return MAP_FAILED;
    return __real_mmap(at, bytes, protection, flags, file, offset);
}

/* The name in glibc where offsets have 64 bits. */
void *__wrap_mmap64(void *at, size_t bytes, int protection, int flags, int file, off_t offset)
{
    return __wrap_mmap(at, bytes, protection, flags, file, offset);
}

int __wrap_mprotect(void *at, size_t bytes, int protection)
{
    return is_refused() ? -1 : __real_mprotect(at, bytes, protection);
}

/* madvise() needs memory only if it populates. */
int __wrap_madvise(void *at, size_t bytes, int advice)
{
    if (advice == MADV_POPULATE_WRITE && is_refused()) return -1;
    return __real_madvise(at, bytes, advice);
}

static void setup(void)
{
    struct bel_wheel_options options = {.handle_seed = 1};
    memory_left = PLENTY;
    CHECK(bel_wheel_create(&options, &wheel) == 0);
}

/* The check needs memory itself. */
static void check_valid(void)
{
    uint64_t left = memory_left;
    memory_left = PLENTY;
    CHECK(bel_wheel_valid(wheel));
    memory_left = left;
}

static void teardown(void)
{
    check_valid();
    bel_wheel_destroy(wheel);
}

static bool is_before(const struct bel_wheel_timer *a, const struct bel_wheel_timer *b)
{
    if (a->due != b->due) return a->due < b->due;
    return a->priority != b->priority ? a->priority < b->priority : a->user < b->user;
}

/* Pops due timers in order, until none is left. Returns their number. */
static uint64_t drain(uint64_t now)
{
    struct bel_wheel_timer before = {0}, timer;
    uint64_t count = 0;
    for (unsigned tries = 0; bel_wheel_next(wheel) <= now && tries < TRIES; tries++) {
        for (; bel_wheel_pop(wheel, now, &timer); count++, tries = 0) {
            CHECK(timer.due <= now);
            CHECK(count == 0 || is_before(&before, &timer));
            before = timer;
        }
    }
    return count;
}

static void without_memory_there_is_no_wheel(void)
{
    unsigned requests = 0;
    for (int err = BEL_ENOMEM; err != 0; requests++) {
        wheel = NULL;
        memory_left = requests;
        err = bel_wheel_create(NULL, &wheel);
        CHECK(err == 0 || err == BEL_ENOMEM);
        CHECK((err == 0) == (wheel != NULL));
    }
    CHECK(requests > 10); /* slabs, maps of them, first parts */
    teardown();
}

static void arming_without_memory_changes_nothing(void)
{
    bel_timer_t out = 5;
    uint64_t armed = 0;
    int err;
    setup();
    memory_left = 1; /* for the first slots */
    while ((err = bel_wheel_arm(wheel, SECOND + armed * MS, 0, armed, &timers[armed])) == 0) {
        armed++;
    }
    CHECK(err == BEL_ENOMEM);
    CHECK(armed > 0);
    CHECK(bel_wheel_arm(wheel, 9 * SECOND, 0, 1, &out) == BEL_ENOMEM);
    CHECK(bel_wheel_arm(wheel, 0, 0, 1, &out) == BEL_ENOMEM);
    CHECK(bel_wheel_arm(wheel, BEL_NEVER, 0, 1, &out) == BEL_ERANGE);
    CHECK_EQ(out, 5);
    CHECK_EQ(bel_wheel_count(wheel), armed);
    check_valid();
    memory_left = PLENTY;
    CHECK(bel_wheel_arm(wheel, SECOND + armed * MS, 0, armed, &out) == 0);
    CHECK_EQ(drain(BEL_NEVER - 1), armed + 1);
    teardown();
}

static void a_late_timer_without_memory_is_refused(void)
{
    bel_timer_t out = 5;
    uint64_t armed = 0;
    setup();
    memory_left = 2; /* for the first slots and the first keys */
    for (; bel_wheel_arm(wheel, 0, 0, armed, &out) == 0; armed++) {
        CHECK(armed < TIMERS);
    }
    CHECK(armed > 0);
    CHECK_EQ(bel_wheel_count(wheel), armed);
    check_valid();
    memory_left = PLENTY;
    CHECK(bel_wheel_arm(wheel, 0, 0, armed, &out) == 0);
    CHECK_EQ(drain(0), armed + 1);
    teardown();
}

static void moving_without_memory_leaves_the_timer_where_it_was(void)
{
    struct bel_wheel_timer found;
    uint64_t refused = 0;
    setup();
    for (uint64_t i = 0; i < TIMERS; i++) {
        CHECK(bel_wheel_arm(wheel, 3600 * SECOND + i, 7, i, &timers[i]) == 0);
    }
    memory_left = 0;
    for (uint64_t i = 0; i < TIMERS; i++) {
        uint64_t due = i % 2 ? 0 : SECOND + i * MS;
        int err = bel_wheel_rearm(wheel, timers[i], due);
        CHECK(err == 0 || err == BEL_ENOMEM);
        CHECK(bel_wheel_find(wheel, timers[i], &found));
        CHECK_EQ(found.due, err == 0 ? due : 3600 * SECOND + i);
        CHECK_EQ(found.user, i);
        CHECK_EQ(found.priority, 7);
        refused += err != 0;
    }
    CHECK(refused > 0);
    check_valid();
    memory_left = PLENTY;
    CHECK_EQ(drain(3599 * SECOND), TIMERS - refused);
    CHECK_EQ(drain(BEL_NEVER - 1), refused);
    teardown();
}

/* Timers of all kinds: crowded, spread, far away and late. */
static void arm_all_kinds(void)
{
    uint64_t random = 3;
    for (uint64_t i = 0; i < TIMERS; i++) {
        uint64_t due = random_magnitude(&random);
        if (i % 3 == 0) due = 3600 * SECOND;
        if (i % 3 == 1) due = 7200 * SECOND + random_below(&random, 100 * MS);
        if (due == BEL_NEVER) due = 0;
        CHECK(bel_wheel_arm(wheel, due, (uint8_t)(i % 5), i, &timers[i]) == 0);
    }
}

static void popping_without_memory_loses_nothing(void)
{
    for (uint64_t requests = 0; requests < 40; requests++) {
        CHECK_NOTE("memory for %" PRIu64 " requests", requests);
        setup();
        arm_all_kinds();
        memory_left = requests;
        uint64_t popped = drain(BEL_NEVER - 1);
        CHECK_EQ(bel_wheel_count(wheel), TIMERS - popped);
        CHECK(memory_left > 0 || popped == TIMERS || bel_wheel_next(wheel) < BEL_NEVER);
        check_valid();
        memory_left = PLENTY;
        CHECK_EQ(drain(BEL_NEVER - 1), TIMERS - popped);
        teardown();
        if (popped == TIMERS) return; /* it was enough for all */
    }
    CHECK(false);
}

static void moved_timers_are_popped_without_memory_too(void)
{
    setup();
    arm_all_kinds();
    uint64_t random = 4;
    for (uint64_t i = 0; i < TIMERS; i++) { /* most keep their entries and are filed again */
        uint64_t due = 7200 * SECOND + random_below(&random, 3600 * SECOND);
        CHECK(bel_wheel_rearm(wheel, timers[i], due) == 0);
    }
    memory_left = 0;
    uint64_t popped = 0;
    for (uint64_t now = 3600 * SECOND; now <= 10800 * SECOND; now += 60 * SECOND) {
        struct bel_wheel_timer timer;
        for (unsigned tries = 0; tries < TRIES; tries++) {
            popped += bel_wheel_pop(wheel, now, &timer);
        }
        check_valid();
    }
    CHECK_EQ(bel_wheel_count(wheel), TIMERS - popped);
    memory_left = PLENTY;
    CHECK_EQ(drain(BEL_NEVER - 1), TIMERS - popped);
    teardown();
}

static void memory_that_comes_and_goes_does_no_harm(void)
{
    uint64_t random = 5, armed = 0, now = 0;
    struct bel_wheel_timer timer;
    setup();
    for (uint64_t i = 0; i < 300000; i++) {
        if (random_below(&random, 1000) == 0) memory_left = random_below(&random, 4);
        uint64_t due = now + (random_magnitude(&random) >> 20);
        bel_timer_t *some = &timers[random_below(&random, TIMERS)];
        switch (random_below(&random, 5)) {
        case 0:
        case 1:
            armed -= bel_wheel_cancel(wheel, *some);
            armed += bel_wheel_arm(wheel, due, 0, i, some) == 0;
            break;
        case 2:
            (void)!bel_wheel_rearm(wheel, *some, due);
            break;
        case 3:
            armed -= bel_wheel_cancel(wheel, *some);
            break;
        case 4:
            now += random_magnitude(&random) >> 24;
            while (bel_wheel_pop(wheel, now, &timer)) {
                CHECK(timer.due <= now);
                armed--;
            }
            break;
        }
        CHECK_EQ(bel_wheel_count(wheel), armed);
        if (i % 5000 == 0) check_valid();
    }
    memory_left = PLENTY;
    check_valid();
    for (uint64_t before = 0; bel_wheel_next(wheel) != BEL_NEVER;) {
        if (!bel_wheel_pop(wheel, BEL_NEVER - 1, &timer)) continue;
        CHECK(before <= timer.due);
        before = timer.due;
        armed--;
    }
    CHECK_EQ(armed, 0);
    teardown();
}

static void reserving_without_memory_is_refused_and_does_no_harm(void)
{
    setup();
    memory_left = 0;
    CHECK(bel_wheel_reserve(wheel, 1000000) == BEL_ENOMEM);
    int err = BEL_ENOMEM;
    for (uint64_t requests = 1; err != 0 && requests < TRIES; requests++) {
        memory_left = requests;
        err = bel_wheel_reserve(wheel, 1000000);
        CHECK(err == 0 || err == BEL_ENOMEM);
        check_valid();
    }
    CHECK(err == 0);
    teardown();
}

static void what_was_reserved_needs_no_memory(void)
{
    uint64_t random = 6;
    setup();
    CHECK(bel_wheel_reserve(wheel, TIMERS) == 0);
    memory_left = 0;
    for (uint64_t i = 0; i < TIMERS; i++) {
        uint64_t due = 3600 * SECOND + random_below(&random, 3600 * SECOND);
        CHECK(bel_wheel_arm(wheel, due, 0, i, &timers[i]) == 0);
    }
    memory_left = PLENTY;
    CHECK_EQ(drain(BEL_NEVER - 1), TIMERS);
    teardown();
}

static void what_was_reserved_needs_no_memory_even_if_it_is_late(void)
{
    setup();
    CHECK(bel_wheel_reserve(wheel, TIMERS) == 0);
    memory_left = 0;
    for (uint64_t i = 0; i < TIMERS; i++) {
        CHECK_NOTE("late timer %" PRIu64, i);
        CHECK(bel_wheel_arm(wheel, 0, 0, i, &timers[i]) == 0);
    }
    memory_left = PLENTY;
    CHECK_EQ(drain(BEL_NEVER - 1), TIMERS);
    teardown();
}

static void walking_without_memory_is_refused(void)
{
    struct bel_wheel_walk *walk = NULL;
    setup();
    arm_all_kinds();
    memory_left = 0;
    CHECK(bel_wheel_walk_open(wheel, &walk) == BEL_ENOMEM);
    CHECK(walk == NULL);
    memory_left = PLENTY;
    CHECK(bel_wheel_walk_open(wheel, &walk) == 0);
    bel_wheel_walk_close(walk);
    teardown();
}

int main(void)
{
    RUN(without_memory_there_is_no_wheel);
    RUN(arming_without_memory_changes_nothing);
    RUN(a_late_timer_without_memory_is_refused);
    RUN(moving_without_memory_leaves_the_timer_where_it_was);
    RUN(popping_without_memory_loses_nothing);
    RUN(moved_timers_are_popped_without_memory_too);
    RUN(memory_that_comes_and_goes_does_no_harm);
    RUN(reserving_without_memory_is_refused_and_does_no_harm);
    RUN(what_was_reserved_needs_no_memory);
    RUN(what_was_reserved_needs_no_memory_even_if_it_is_late);
    RUN(walking_without_memory_is_refused);
    return 0;
}
