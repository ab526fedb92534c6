/* SPDX-License-Identifier: MIT */

/*
 * First the runtime, initialised by hand; then replacements of the functions that the parts under
 * test call. Thread-local data is found by the number of the thread, because all threads of a case
 * run on one system thread.
 */
#include "around.h"

#include "interleave.h"
#include "runtime/inbox.h"

#include <string.h>

struct around around;

static void clear_seat(unsigned index)
{
    struct bel_worker *seat = &around.seats[index];
    memset(seat, 0, offsetof(struct bel_worker, lateness));
    memset(&seat->inbox, 0, sizeof *seat - offsetof(struct bel_worker, inbox));
    seat->runtime = &around.runtime;
    seat->index = index;
    seat->alarm.event_fd = (int)index;
    bel__queue_init(&seat->inbox);
    bel__queue_init(&seat->returns);
    (void)bel__queue_close(&seat->inbox);
    (void)bel__queue_close(&seat->returns);
    atomic_init(&around.is_rung[index], false);
    atomic_init(&around.runtime.roster.seats[index], seat);
    atomic_init(&around.runtime.roster.live[index], NULL);
}

static void clear_roster(struct roster *roster)
{
    atomic_init(&roster->seats_used, AROUND_SEATS);
    atomic_init(&roster->count, 0);
    atomic_init(&roster->stopping, false);
    roster->incarnations = 0;
    for (unsigned i = 0; i < AROUND_SEATS; i++) {
        clear_seat(i);
    }
}

static void clear_shared(struct shared *shared)
{
    memset(shared, 0, sizeof *shared);
    shared->wheel = &around.wheels[AROUND_SHARED];
    shared->wheel->is_there = true;
    shared->covered = BEL_NEVER;
    bel__list_init(&shared->sleepers);
    bel__queue_init(&shared->left);
    atomic_init(&shared->next, BEL_NEVER);
    atomic_init(&shared->wake_at, BEL_NEVER);
}

/* Large data that does not change, such as histograms, is not reset, because this is called for
 * each schedule. */
void around_start(uint64_t now, bel_ring_fn *ring)
{
    struct bel_runtime *runtime = &around.runtime;
    around.now = now;
    memset(around.wheels, 0, sizeof around.wheels);
    memset(around.visitors, 0, sizeof around.visitors);
    memset(&runtime->gone, 0, sizeof runtime->gone);
    memset(&runtime->signals, 0, sizeof runtime->signals);
    runtime->mutex = (pthread_mutex_t){0};
    runtime->rung = (pthread_cond_t){0};
    runtime->mode = BEL_METRONOME_MANUAL;
    runtime->pool.slab.base = (unsigned char *)(void *)around.records;
    atomic_init(&runtime->pool.used, AROUND_RECORDS + 1);
    atomic_init(&runtime->kinds[0].ring, ring);
    runtime->garbage_floor = 1000;
    clear_roster(&runtime->roster);
    clear_shared(&runtime->shared);
    for (unsigned i = 0; i < AROUND_VISITORS; i++) {
        atomic_init(&around.visitors[i].runtime, runtime);
    }
    for (uint32_t i = 1; i <= AROUND_RECORDS; i++) {
        around.records[i] = (struct record){.word = UINT64_C(1) << 32 | WORD_FREE};
    }
}

void around_give(unsigned visitor, uint32_t index)
{
    struct magazine *magazine = &around.visitors[visitor].magazine;
    magazine->indexes[magazine->count++] = index;
}

unsigned around_self(void)
{
    return interleave_is_thread() ? interleave_self() : around.acting;
}

void around_act_for(unsigned visitor)
{
    around.acting = visitor;
}

_Atomic uint32_t bel__forks;
_Thread_local struct visitor *bel__visitor_recent; /* stays NULL: all threads run on one system
                                                      thread */

struct visitor *bel__visitor_search(const struct bel_runtime *runtime)
{
    REQUIRE(runtime == &around.runtime);
    return &around.visitors[around_self()];
}

int bel__visitor_make(struct bel_runtime *runtime, struct visitor **out)
{
    (void)runtime, (void)out;
    REQUIRE(false);
    return BEL_ENOMEM;
}

void bel__visitor_count(struct bel_runtime *runtime, struct visitor *visitor, enum counter which,
                        uint64_t more)
{
    if (visitor == NULL) visitor = &around.visitors[around_self()];
    REQUIRE(visitor_runtime(visitor) == runtime);
    count_many(&visitor->counters, which, more);
}

uint64_t bel__stats_queued_garbage(struct bel_runtime *runtime)
{
    return runtime->garbage_floor / 2;
}

void bel__visitor_give(struct bel_runtime *runtime, struct visitor *visitor, struct record *record)
{
    pool_give(&runtime->pool, &visitor->magazine, record);
}

void bel__runtime_lock(struct bel_runtime *runtime)
{
    struct visitor *visitor = &around.visitors[around_self()];
    visitor->busy = visitor->busy + 1;
    (void)pthread_mutex_lock(&runtime->mutex);
}

void bel__runtime_unlock(struct bel_runtime *runtime)
{
    struct visitor *visitor = &around.visitors[around_self()];
    (void)pthread_mutex_unlock(&runtime->mutex);
    visitor->busy = visitor->busy - 1;
}

int bel__pool_refill(struct pool *pool, struct magazine *magazine)
{
    (void)pool, (void)magazine;
    return BEL_EFULL;
}

void bel__pool_return(struct pool *pool, struct magazine *magazine, uint32_t keep)
{
    (void)pool, (void)magazine, (void)keep;
    REQUIRE(false);
}

void bel__inbox_put(struct bel_inbox *inbox, struct record *carrier, const struct bel_event *event)
{
    (void)inbox, (void)carrier, (void)event;
    REQUIRE(false);
}

int bel__alarm_init(struct bel_alarm *alarm)
{
    (void)alarm;
    REQUIRE(false); /* there are enough seats */
    return BEL_EIO;
}

void bel__alarm_ring(const struct bel_alarm *alarm)
{
    atomic_store_explicit(&around.is_rung[alarm->event_fd], true, memory_order_relaxed);
}

void bel__alarm_clear(const struct bel_alarm *alarm)
{
    atomic_store_explicit(&around.is_rung[alarm->event_fd], false, memory_order_relaxed);
}

static bool is_rung(const volatile void *flag)
{
    return atomic_load_explicit((const volatile atomic_bool *)flag, memory_order_relaxed);
}

/* Time does not advance while threads run: an alarm rings at once or stays silent. */
void bel__alarm_set(const struct bel_alarm *alarm, struct bel_boot until)
{
    if (until.ns <= around.now) bel__alarm_ring(alarm);
}

void bel__alarm_sleep(const struct bel_alarm *alarm)
{
    interleave_await(&around.is_rung[alarm->event_fd], INTERLEAVE_READ, is_rung);
    bel__alarm_clear(alarm);
}

void bel__wall_begin(struct bel_runtime *runtime)
{
    (void)runtime;
}

/* NOLINTNEXTLINE(readability-non-const-parameter): as in the runtime */
int bel__wall_due(int64_t wall_ms, int64_t now_ms, uint64_t now_ns, uint64_t *out)
{
    (void)wall_ms, (void)now_ms, (void)now_ns, (void)out;
    REQUIRE(false);
    return BEL_ERANGE;
}

uint32_t bel__wall_steps(struct bel_runtime *runtime)
{
    (void)runtime;
    return 0;
}

void bel__wall_follow(struct bel_runtime *runtime, bel_timer_t timer)
{
    (void)runtime, (void)timer;
}

int bel__metronome_start(struct bel_runtime *runtime)
{
    (void)runtime;
    return 0;
}

void bel__metronome_notify(struct bel_runtime *runtime, _Atomic uint64_t *wake_at, uint64_t due)
{
    (void)runtime, (void)wake_at, (void)due;
}

void bel__histogram_init(struct bel_histogram *histogram)
{
    (void)histogram;
}

void bel__histogram_record(struct bel_histogram *histogram, uint64_t value)
{
    (void)histogram, (void)value;
}

void bel__histogram_merge(struct bel_histogram *into, const struct bel_histogram *from)
{
    (void)into, (void)from;
}

struct bel_boot bel_clock_boot(const struct bel_clock *clock)
{
    (void)clock;
    return (struct bel_boot){around.now};
}

struct bel_wall bel_clock_wall(const struct bel_clock *clock)
{
    (void)clock;
    return (struct bel_wall){0};
}

const struct bel_clock *bel_clock_system(void)
{
    return NULL;
}

int bel_boot_add(struct bel_boot from, uint64_t delay_ns, struct bel_boot *out)
{
    *out = (struct bel_boot){from.ns + delay_ns};
    return 0;
}

int bel_wall_add(struct bel_wall from, uint64_t delay_ms, struct bel_wall *out)
{
    *out = (struct bel_wall){from.ms + (int64_t)delay_ms};
    return 0;
}

int bel_wheel_create(const struct bel_wheel_options *options, struct bel_wheel **out)
{
    struct bel_wheel *wheel = &around.wheels[around_self()];
    (void)options;
    REQUIRE(!wheel->is_there);
    memset(wheel->slots, 0, sizeof wheel->slots);
    wheel->is_there = true;
    *out = wheel;
    return 0;
}

void bel_wheel_destroy(struct bel_wheel *wheel)
{
    REQUIRE(bel_wheel_count(wheel) == 0);
    wheel->is_there = false;
}

/* Returns the slot of a timer. The product must know what is in its wheel, and there is room. */
static struct bel_wheel_timer *slot_of(struct bel_wheel *wheel, bel_timer_t timer)
{
    unsigned i = 0;
    REQUIRE(wheel != NULL && wheel->is_there);
    while (i < AROUND_SLOTS - 1 && wheel->slots[i].timer != timer) {
        i++;
    }
    REQUIRE(wheel->slots[i].timer == timer);
    return &wheel->slots[i];
}

int bel_wheel_arm(struct bel_wheel *wheel, uint64_t due, uint8_t priority, uint64_t user,
                  bel_timer_t *out)
{
    struct bel_wheel_timer *slot = slot_of(wheel, BEL_TIMER_NONE);
    if (wheel->refusals > 0) {
        wheel->refusals--;
        return BEL_ENOMEM;
    }
    *slot = (struct bel_wheel_timer){due, user, ++wheel->armed_ever, priority};
    *out = slot->timer;
    return 0;
}

int bel_wheel_rearm(struct bel_wheel *wheel, bel_timer_t timer, uint64_t due)
{
    REQUIRE(timer != BEL_TIMER_NONE);
    slot_of(wheel, timer)->due = due;
    return 0;
}

void bel_wheel_expect(const struct bel_wheel *wheel, bel_timer_t timer)
{
    REQUIRE(wheel != NULL && timer != BEL_TIMER_NONE);
}

bool bel_wheel_cancel(struct bel_wheel *wheel, bel_timer_t timer)
{
    REQUIRE(timer != BEL_TIMER_NONE);
    *slot_of(wheel, timer) = (struct bel_wheel_timer){0};
    return true;
}

static struct bel_wheel_timer *first_of(struct bel_wheel *wheel)
{
    struct bel_wheel_timer *first = NULL;
    REQUIRE(wheel != NULL && wheel->is_there);
    for (unsigned i = 0; i < AROUND_SLOTS; i++) {
        struct bel_wheel_timer *slot = &wheel->slots[i];
        if (slot->timer == BEL_TIMER_NONE) continue;
        if (first == NULL || slot->due < first->due) first = slot;
    }
    return first;
}

bool bel_wheel_pop(struct bel_wheel *wheel, uint64_t until, struct bel_wheel_timer *out)
{
    struct bel_wheel_timer *first = first_of(wheel);
    if (first == NULL || first->due > until) return false;
    *out = *first;
    *first = (struct bel_wheel_timer){0};
    return true;
}

uint64_t bel_wheel_next(const struct bel_wheel *wheel)
{
    REQUIRE(wheel != NULL);
    const struct bel_wheel_timer *first = first_of(&around.wheels[wheel - around.wheels]);
    return first != NULL ? first->due : BEL_NEVER;
}

bool bel_wheel_next_exact(struct bel_wheel *wheel, uint64_t *out)
{
    *out = bel_wheel_next(wheel);
    return true;
}

uint64_t bel_wheel_count(const struct bel_wheel *wheel)
{
    uint64_t armed = 0;
    REQUIRE(wheel != NULL && wheel->is_there);
    for (unsigned i = 0; i < AROUND_SLOTS; i++) {
        armed += wheel->slots[i].timer != BEL_TIMER_NONE;
    }
    return armed;
}

void bel_wheel_stats(const struct bel_wheel *wheel, struct bel_wheel_stats *out)
{
    *out = (struct bel_wheel_stats){.armed = bel_wheel_count(wheel)};
    out->entries = out->armed;
}
