/* SPDX-License-Identifier: MIT */
#ifndef BEL_RUNTIME_RECORD_H
#define BEL_RUNTIME_RECORD_H

/*
 * record - what the runtime knows of a timer: one cache line, at one address for as long
 * as the runtime lives, so that any handle can be looked up at any time.
 *
 * The fields beside the word are atomic because a snapshot reads them while they change;
 * it looks at the word before and after. They are relaxed everywhere: the word orders
 * them. They are written by who starts a life, by a mover, or by the worker that has the
 * timer (see word.h).
 */

#include "core/queue.h"
#include "runtime/word.h"

#include <stddef.h>

enum {
    OWNER_NONE = 0, /* on its way between workers: `entry` leads to the next of a parcel */
};

#define WALL_NONE    INT64_MIN
#define WHAT_INSTANT UINT32_C(0x80000000)

struct record {
    _Atomic uint64_t word;
    struct bel_queue_node node; /* in a queue while QUEUED; an inbox's while an event */
    _Atomic uint64_t due;
    uint64_t entry; /* of its owner only: its timer in the wheel, 0 if it has none */
    _Atomic uint64_t user;
    _Atomic uint64_t period_ns; /* of what repeats; else anything */
    _Atomic int64_t wall_ms;    /* of an instant; else anything */
    _Atomic uint32_t owner;     /* id of a worker */
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

/* The period of what repeats, else 0. */
static inline uint64_t record_period(const struct record *record)
{
    return what_repeat(get32(&record->what)) != 0 ? get64(&record->period_ns) : 0;
}

/* The wall time of an instant, else WALL_NONE. */
static inline int64_t record_wall(const struct record *record)
{
    if ((get32(&record->what) & WHAT_INSTANT) == 0) return WALL_NONE;
    return atomic_load_explicit(&record->wall_ms, memory_order_relaxed);
}

#endif
