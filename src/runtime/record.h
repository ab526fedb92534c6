/* SPDX-License-Identifier: MIT */
#ifndef BEL_RUNTIME_RECORD_H
#define BEL_RUNTIME_RECORD_H

/*
 * record - the data of a timer: one cache line, at one address as long as the runtime exists, so
 * that any handle can be looked up at any time.
 *
 * The fields beside the word are atomic because a snapshot reads them while they change; it reads
 * the word before and after. All accesses to them are relaxed: the word orders them. They are
 * written by the thread that schedules the timer, by a thread that moves it, or by the worker that
 * owns it (see word.h).
 */

#include "core/queue.h"
#include "runtime/word.h"

#include <stddef.h>

enum {
    OWNER_SHARED = 1, /* any worker may ring it: see shared.h; the ids of workers are larger */
};

#define WALL_NONE    INT64_MIN
#define WHAT_INSTANT UINT32_C(0x80000000)

struct record {
    _Atomic uint64_t word;
    struct bel_queue_node node; /* in a queue while QUEUED; of an inbox while it carries an event */
    _Atomic uint64_t due;
    uint64_t entry; /* owner only: its timer in the owner's wheel, 0 if it has none */
    _Atomic uint64_t user;
    _Atomic uint64_t period_ns; /* if it repeats; otherwise undefined */
    _Atomic int64_t wall_ms;    /* of a wall timer; otherwise undefined */
    _Atomic uint32_t owner;     /* id of a worker, or OWNER_SHARED */
    _Atomic uint32_t what;      /* kind, priority << 16, repeat << 24, WHAT_INSTANT */
};

static_assert(sizeof(struct record) == 64, "one cache line");

static inline struct record *record_of_node(struct bel_queue_node *node)
{
    return (struct record *)(void *)((char *)node - offsetof(struct record, node));
}

static inline uint64_t get64(const _Atomic uint64_t *field)
{
    return atomic_load_explicit(field, memory_order_relaxed);
}

static inline void set64(_Atomic uint64_t *field, uint64_t value)
{
    atomic_store_explicit(field, value, memory_order_relaxed);
}

static inline uint32_t get32(const _Atomic uint32_t *field)
{
    return atomic_load_explicit(field, memory_order_relaxed);
}

static inline void set32(_Atomic uint32_t *field, uint32_t value)
{
    atomic_store_explicit(field, value, memory_order_relaxed);
}

static inline uint32_t what_of(unsigned kind, unsigned priority, unsigned repeat)
{
    return kind | priority << 16 | repeat << 24;
}

static inline uint16_t what_kind(uint32_t what)
{
    return (uint16_t)what;
}

static inline uint8_t what_priority(uint32_t what)
{
    return (uint8_t)(what >> 16);
}

static inline uint8_t what_repeat(uint32_t what)
{
    return (uint8_t)(what >> 24 & 0x7f);
}

/* Returns whether any worker may ring a timer. */
static inline bool record_is_shared(const struct record *record)
{
    return get32(&record->owner) == OWNER_SHARED;
}

/* Returns the period of a repeating timer, otherwise 0. */
static inline uint64_t record_period(const struct record *record)
{
    return what_repeat(get32(&record->what)) != 0 ? get64(&record->period_ns) : 0;
}

/* Returns the wall time of a wall timer, otherwise WALL_NONE. */
static inline int64_t record_wall(const struct record *record)
{
    if ((get32(&record->what) & WHAT_INSTANT) == 0) return WALL_NONE;
    return atomic_load_explicit(&record->wall_ms, memory_order_relaxed);
}

#endif
