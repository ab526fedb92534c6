/* SPDX-License-Identifier: MIT */

/*
 * Snapshots while other threads schedule, cancel, move and ring, and workers enter and leave. The
 * clock stands still, so that the remaining time of a timer determines its due.
 *
 * A copy normally takes a few nanoseconds, in which nothing happens. So in this test it pauses
 * halfway.
 */
#include "runtime/runtime.h"

#include <sched.h>

static bool flickers(const struct record *record);

static uint64_t pause_and_get_period(const struct record *record)
{
    static unsigned turn;
    if (flickers(record) || ++turn % 41 == 0) (void)sched_yield();
    return record_period(record);
}

#define record_period pause_and_get_period
#include "runtime/found.c"    /* NOLINT(bugprone-suspicious-include) */
#include "runtime/snapshot.c" /* NOLINT(bugprone-suspicious-include) */

#include "../check.h"
#include "../random.h"

#define S    UINT64_C(1000000000)
#define BOOT (100 * S)

enum {
    STEADY = 64,  /* no thread touches them */
    MOVED = 16,   /* back and forth between two dues */
    BEATING = 2,  /* ring continuously: they have much to catch up with */
    CHURNED = 48, /* cancelled, and their memory reused */
    SNAPSHOTS = 100,
};

enum kinds {
    KIND_STEADY,
    KIND_MOVED,
    KIND_BEATING,
    KIND_CHURNED, /* and the next */
    KIND_FLICKERING = KIND_CHURNED + 2,
    KINDS,
};

static struct bel_clock_fake *fake;
static struct bel_runtime *runtime;
static bel_timer_t moved[MOVED];
static _Atomic bool is_over;

static bool flickers(const struct record *record)
{
    return what_kind(get32(&record->what)) == KIND_FLICKERING;
}

static bool goes_on(void)
{
    return !atomic_load_explicit(&is_over, memory_order_relaxed);
}

/* Every field of a churned timer follows from its user word. */
static struct bel_schedule churned(uint64_t user)
{
    bool is_flickering = user >> 63 != 0;
    return (struct bel_schedule){
        .due = {BOOT + 5000 * S + user % 1000 * 17},
        .user = user,
        .period_ns = user * 3 + 1,
        .kind = (bel_kind_t)(is_flickering ? KIND_FLICKERING : KIND_CHURNED + user % 2),
        .priority = (uint8_t)(user * 7),
        .repeat = (uint8_t)(user % 5),
    };
}

static void *churn(void *arg)
{
    bel_timer_t timers[CHURNED] = {0};
    uint64_t state = (uintptr_t)arg, user = state << 32;
    while (goes_on()) {
        size_t which = random_below(&state, CHURNED);
        if (timers[which] != BEL_TIMER_NONE) CHECK(bel_runtime_cancel(runtime, timers[which]));
        struct bel_schedule options = churned(++user);
        CHECK(bel_runtime_schedule(runtime, &options, &timers[which]) == 0);
    }
    return NULL;
}

static uint64_t moved_due(uint64_t index, unsigned side)
{
    return BOOT + (1000 + 1000 * side) * S + index;
}

static void *move(void *arg)
{
    (void)arg;
    for (unsigned turn = 0; goes_on(); turn++) {
        unsigned which = turn % MOVED;
        struct bel_boot due = {moved_due(which, turn / MOVED % 2)};
        CHECK(bel_runtime_reschedule(runtime, moved[which], due) == 0);
    }
    return NULL;
}

/* Reuses one record of the worker with changing contents. */
static void flicker(uint64_t *user)
{
    bel_timer_t timer;
    for (unsigned i = 0; i < 200; i++) {
        struct bel_schedule options = churned(++*user);
        CHECK(bel_runtime_schedule(runtime, &options, &timer) == 0);
        CHECK(bel_runtime_cancel(runtime, timer));
    }
}

/* A worker that enters and leaves, so that timers change their owner. */
static void *come_and_go(void *arg)
{
    uint64_t user = UINT64_C(1) << 63 | (uint64_t)(uintptr_t)arg << 32;
    while (goes_on()) {
        struct bel_worker *worker;
        CHECK(bel_worker_enter(runtime, &worker) == 0);
        for (unsigned i = 0; i < 200 && goes_on(); i++) {
            (void)bel_worker_poll(worker, 16);
            flicker(&user);
        }
        CHECK(bel_worker_leave(worker) == 0);
    }
    return NULL;
}

static void ring(void *context, const struct bel_event *event)
{
    (void)context;
    (void)event;
}

static struct bel_schedule steady(uint64_t index)
{
    return (struct bel_schedule){.due = {BOOT + (1 + index) * S},
                                 .user = index,
                                 .kind = KIND_STEADY,
                                 .priority = (uint8_t)index};
}

static void open_all(void)
{
    bel_timer_t timer;
    CHECK(bel_clock_fake_create((struct bel_wall){0}, &fake) == 0);
    bel_clock_fake_set_boot(fake, (struct bel_boot){BOOT});
    struct bel_runtime_options options = {.clock = bel_clock_fake_clock(fake),
                                          .metronome = BEL_METRONOME_MANUAL};
    CHECK(bel_runtime_create(&options, &runtime) == 0);
    for (unsigned kind = 0; kind < KINDS; kind++) {
        CHECK(bel_runtime_on(runtime, (bel_kind_t)kind, ring, NULL) == 0);
    }
    for (uint64_t i = 0; i < STEADY; i++) {
        struct bel_schedule schedule = steady(i);
        CHECK(bel_runtime_schedule(runtime, &schedule, &timer) == 0);
    }
    for (uint64_t i = 0; i < MOVED; i++) {
        struct bel_schedule schedule = {.due = {moved_due(i, 0)}, .user = i, .kind = KIND_MOVED};
        CHECK(bel_runtime_schedule(runtime, &schedule, &moved[i]) == 0);
    }
    for (uint64_t i = 0; i < BEATING; i++) {
        struct bel_schedule schedule = {.due = {i},
                                        .user = i,
                                        .kind = KIND_BEATING,
                                        .period_ns = 1 + i,
                                        .repeat = BEL_RATE_BURST};
        CHECK(bel_runtime_schedule(runtime, &schedule, &timer) == 0);
    }
}

static uint64_t due_in(const struct entry *entry)
{
    uint64_t time = get(entry->time, 8);
    CHECK(entry->when != WHEN_INSTANT);
    return entry->when == WHEN_REMAINS ? BOOT + time : BOOT - time;
}

static void check_churned(const struct entry *entry, uint64_t user)
{
    struct bel_schedule want = churned(user);
    CHECK_EQ(due_in(entry), want.due.ns);
    CHECK_EQ(get(entry->period_ns, 8), want.repeat == BEL_ONCE ? 0 : want.period_ns);
    CHECK_EQ(get(entry->kind, 2), want.kind);
    CHECK_EQ(entry->priority, want.priority);
    CHECK_EQ(entry->repeat, want.repeat);
}

/* Checks that an entry is consistent, and counts the timers that must be there once. */
static void check_entry_of(const struct entry *entry, unsigned *seen)
{
    uint64_t user = get(entry->user, 8), due = due_in(entry);
    switch (get(entry->kind, 2)) {
    case KIND_STEADY:
        CHECK(user < STEADY && due == steady(user).due.ns && entry->priority == user);
        seen[user]++;
        break;
    case KIND_MOVED:
        CHECK(user < MOVED && (due == moved_due(user, 0) || due == moved_due(user, 1)));
        seen[STEADY + user]++;
        break;
    case KIND_BEATING:
        CHECK(user < BEATING && due < BOOT && get(entry->period_ns, 8) == 1 + user);
        seen[STEADY + MOVED + user]++;
        break;
    default:
        check_churned(entry, user);
    }
}

/* Takes a snapshot and checks it. Returns the number of its timers. */
static size_t look(void)
{
    unsigned seen[STEADY + MOVED + BEATING] = {0};
    void *snapshot;
    size_t bytes;
    uint64_t last_due = 0;
    CHECK(bel_runtime_snapshot(runtime, &snapshot, &bytes) == 0);
    CHECK(check_header(snapshot, bytes) == 0);
    const struct entry *entries = (const struct entry *)snapshot + 1;
    size_t count = bytes / ENTRY_BYTES - 1;
    for (size_t i = 0; i < count; i++) {
        CHECK(due_in(&entries[i]) >= last_due);
        last_due = due_in(&entries[i]);
        check_entry_of(&entries[i], seen);
    }
    for (unsigned i = 0; i < STEADY + MOVED + BEATING; i++) {
        CHECK_EQ(seen[i], 1);
    }
    free(snapshot);
    return count;
}

/* On a busy machine a thread may start late. */
static bool all_have_acted(void)
{
    struct bel_runtime_stats stats;
    bel_runtime_stats(runtime, NULL, &stats);
    return stats.fired > 0 && stats.cancelled > 0 && stats.rescheduled > 0;
}

static void snapshots_taken_while_others_go_on_are_whole(void)
{
    pthread_t threads[5];
    struct bel_runtime_stats stats;
    open_all();
    CHECK(pthread_create(&threads[0], NULL, come_and_go, (void *)3) == 0);
    CHECK(pthread_create(&threads[1], NULL, come_and_go, (void *)4) == 0);
    CHECK(pthread_create(&threads[2], NULL, churn, (void *)1) == 0);
    CHECK(pthread_create(&threads[3], NULL, churn, (void *)2) == 0);
    CHECK(pthread_create(&threads[4], NULL, move, NULL) == 0);
    for (unsigned i = 0; i < SNAPSHOTS || !all_have_acted(); i++) {
        CHECK_NOTE("snapshot %u", i);
        (void)look();
    }
    atomic_store_explicit(&is_over, true, memory_order_relaxed);
    for (unsigned i = 0; i < 5; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
    bel_runtime_stats(runtime, NULL, &stats);
    CHECK_EQ(look(), stats.pending); /* exact, at rest */
    bel_runtime_destroy(runtime);
    bel_clock_fake_destroy(fake);
}

int main(void)
{
    RUN(snapshots_taken_while_others_go_on_are_whole);
    return 0;
}
