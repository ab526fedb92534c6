/* SPDX-License-Identifier: MIT */

/*
 * Two implementations of one interface: the system clock, which is the only caller of
 * clock_gettime() in the library, and a fake clock that a test moves.
 *
 * The times of a fake clock are three atomic words, because the reading thread is often not the
 * test that moves them. All accesses are relaxed: a time orders no other memory, and two times read
 * one after the other need not be from the same instant, just like those of the system clock. Only
 * one thread moves the clock, so a move is a load and a store.
 */
#include "core/clock.h"

#include "core/units.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <time.h>

struct bel_clock_fake {
    struct bel_clock clock;
    _Atomic uint64_t mono_ns, boot_ns;
    _Atomic int64_t wall_ms;
    uint64_t wall_rest_ns; /* of the moving thread: fraction of a millisecond not yet in wall_ms */
};

static_assert(offsetof(struct bel_clock_fake, clock) == 0, "a fake clock is a clock");

static struct timespec read_system(clockid_t id)
{
    struct timespec at;
    int failed = clock_gettime(id, &at);
    assert(!failed); /* every supported Linux has all three clocks */
    (void)failed;
    return at;
}

static uint64_t ns_of(struct timespec at)
{
    assert(at.tv_sec >= 0);
    return (uint64_t)at.tv_sec * NS_PER_S + (uint64_t)at.tv_nsec;
}

static struct bel_mono system_mono(const struct bel_clock *clock)
{
    (void)clock;
    return (struct bel_mono){ns_of(read_system(CLOCK_MONOTONIC))};
}

static struct bel_boot system_boot(const struct bel_clock *clock)
{
    (void)clock;
    return (struct bel_boot){ns_of(read_system(CLOCK_BOOTTIME))};
}

/* tv_nsec counts up also before 1970, so the result is always rounded down. */
static struct bel_wall wall_of(struct timespec at)
{
    return (struct bel_wall){(int64_t)at.tv_sec * MS_PER_S + at.tv_nsec / NS_PER_MS};
}

static struct bel_wall system_wall(const struct bel_clock *clock)
{
    (void)clock;
    return wall_of(read_system(CLOCK_REALTIME));
}

const struct bel_clock *bel_clock_system(void)
{
    static const struct bel_clock system = {system_mono, system_boot, system_wall};
    return &system;
}

struct bel_wall bel__clock_wall(const struct bel_clock *clock, uint32_t *out_rest_ns)
{
    *out_rest_ns = 0;
    if (clock != bel_clock_system()) return bel_clock_wall(clock);
    struct timespec at = read_system(CLOCK_REALTIME);
    *out_rest_ns = (uint32_t)(at.tv_nsec % NS_PER_MS);
    return wall_of(at);
}

struct bel_mono bel_clock_mono(const struct bel_clock *clock)
{
    assert(clock != NULL);
    return clock->mono(clock);
}

struct bel_boot bel_clock_boot(const struct bel_clock *clock)
{
    assert(clock != NULL);
    return clock->boot(clock);
}

struct bel_wall bel_clock_wall(const struct bel_clock *clock)
{
    assert(clock != NULL);
    return clock->wall(clock);
}

static int add_ns(uint64_t now_ns, uint64_t delay_ns, uint64_t *out_ns)
{
    uint64_t sum;
    assert(now_ns != BEL_NEVER);
    if (__builtin_add_overflow(now_ns, delay_ns, &sum)) return BEL_ERANGE;
    if (sum == BEL_NEVER) return BEL_ERANGE;
    *out_ns = sum;
    return 0;
}

int bel_mono_add(struct bel_mono now, uint64_t delay_ns, struct bel_mono *out)
{
    return add_ns(now.ns, delay_ns, &out->ns);
}

int bel_boot_add(struct bel_boot now, uint64_t delay_ns, struct bel_boot *out)
{
    return add_ns(now.ns, delay_ns, &out->ns);
}

int bel_wall_add(struct bel_wall now, uint64_t delay_ms, struct bel_wall *out)
{
    int64_t sum;
    assert(out != NULL);
    if (__builtin_add_overflow(now.ms, delay_ms, &sum)) return BEL_ERANGE;
    out->ms = sum;
    return 0;
}

static const struct bel_clock_fake *fake_of(const struct bel_clock *clock)
{
    return (const struct bel_clock_fake *)clock;
}

static struct bel_mono fake_mono(const struct bel_clock *clock)
{
    return (struct bel_mono){atomic_load_explicit(&fake_of(clock)->mono_ns, memory_order_relaxed)};
}

static struct bel_boot fake_boot(const struct bel_clock *clock)
{
    return (struct bel_boot){atomic_load_explicit(&fake_of(clock)->boot_ns, memory_order_relaxed)};
}

static struct bel_wall fake_wall(const struct bel_clock *clock)
{
    return (struct bel_wall){atomic_load_explicit(&fake_of(clock)->wall_ms, memory_order_relaxed)};
}

int bel_clock_fake_create(struct bel_wall wall, struct bel_clock_fake **out)
{
    assert(out != NULL);
    struct bel_clock_fake *fake = malloc(sizeof *fake);
    if (fake == NULL) return BEL_ENOMEM;
    fake->clock = (struct bel_clock){fake_mono, fake_boot, fake_wall};
    atomic_init(&fake->mono_ns, 0);
    atomic_init(&fake->boot_ns, 0);
    atomic_init(&fake->wall_ms, wall.ms);
    fake->wall_rest_ns = 0;
    *out = fake;
    return 0;
}

void bel_clock_fake_destroy(struct bel_clock_fake *fake)
{
    free(fake);
}

const struct bel_clock *bel_clock_fake_clock(const struct bel_clock_fake *fake)
{
    assert(fake != NULL);
    return &fake->clock;
}

void bel_clock_fake_set_mono(struct bel_clock_fake *fake, struct bel_mono mono)
{
    assert(mono.ns != BEL_NEVER);
    assert(mono.ns >= fake_mono(&fake->clock).ns);
    atomic_store_explicit(&fake->mono_ns, mono.ns, memory_order_relaxed); /* read by fake_mono */
}

void bel_clock_fake_set_boot(struct bel_clock_fake *fake, struct bel_boot boot)
{
    assert(boot.ns != BEL_NEVER);
    assert(boot.ns >= fake_boot(&fake->clock).ns);
    atomic_store_explicit(&fake->boot_ns, boot.ns, memory_order_relaxed); /* read by fake_boot */
}

void bel_clock_fake_set_wall(struct bel_clock_fake *fake, struct bel_wall wall)
{
    assert(fake != NULL);
    fake->wall_rest_ns = 0;
    atomic_store_explicit(&fake->wall_ms, wall.ms, memory_order_relaxed); /* read by fake_wall */
}

static void move_wall(struct bel_clock_fake *fake, uint64_t ns)
{
    uint64_t rest_ns = fake->wall_rest_ns + ns % NS_PER_MS;
    struct bel_wall wall = fake_wall(&fake->clock);
    int err = bel_wall_add(wall, ns / NS_PER_MS + rest_ns / NS_PER_MS, &wall);
    assert(!err);
    (void)err;
    bel_clock_fake_set_wall(fake, wall);
    fake->wall_rest_ns = rest_ns % NS_PER_MS;
}

void bel_clock_fake_suspend(struct bel_clock_fake *fake, uint64_t ns)
{
    struct bel_boot boot = fake_boot(&fake->clock);
    int err = bel_boot_add(boot, ns, &boot);
    assert(!err);
    (void)err;
    bel_clock_fake_set_boot(fake, boot);
    move_wall(fake, ns);
}

void bel_clock_fake_advance(struct bel_clock_fake *fake, uint64_t ns)
{
    struct bel_mono mono = fake_mono(&fake->clock);
    int err = bel_mono_add(mono, ns, &mono);
    assert(!err);
    (void)err;
    bel_clock_fake_set_mono(fake, mono);
    bel_clock_fake_suspend(fake, ns);
}

void bel_clock_fake_step(struct bel_clock_fake *fake, int64_t ms)
{
    int64_t wall_ms;
    bool overflow = __builtin_add_overflow(fake_wall(&fake->clock).ms, ms, &wall_ms);
    assert(!overflow);
    (void)overflow;
    atomic_store_explicit(&fake->wall_ms, wall_ms, memory_order_relaxed); /* read by fake_wall */
}
