/* SPDX-License-Identifier: MIT */
#ifndef BEL_RUNTIME_WORD_H
#define BEL_RUNTIME_WORD_H

/*
 * word - one atomic word per timer that holds its whole state.
 *
 *      63          32 31        8 7               0
 *     |  generation  |  arming   |  bits | state   |
 *
 *                 .--move_begin--> MOVING --move_end--.
 *                 |                  | cancel: STOP,  |
 *                 v                  v and move_end   |
 *     FREE --> PENDING <-------------+----------------'
 *       ^       |   ^ \              v
 *       |  fire |   |  '-cancel-> CANCELLED --taken from its queue--> FREE, generation + 1
 *       |       v   | repeats
 *       '----- FIRING
 *
 * A thread whose compare-and-swap succeeds has made the transition, and no thread ever waits for
 * another, because the outcome of MOVING is defined for every thread that meets it. A cancel sets
 * STOP, so that the mover ends the timer. A second move counts as if it came just before the first.
 * A wheel entry that comes up belongs to the time before the move and is dropped.
 *
 * QUEUED means that the timer is in a queue on its way to a worker. Only the thread that sets
 * QUEUED pushes it; the thread that takes it out owns it until it clears the bit. A timer that is
 * not QUEUED belongs to the worker whose wheel it is in. So a timer always has exactly one owner.
 *
 * The generation distinguishes the timers that use the same memory one after the other; a handle
 * contains it. The arming counts how often the timer was moved or changed its owner, so that an
 * unchanged word means the same timer at the same place.
 *
 * Memory order. Words are changed by read-modify-writes that acquire and release, so a thread that
 * changes a word sees everything that the previous one had written to the timer. Plain loads
 * acquire for the same reason. Two plain stores start and end a timer: no other thread has a valid
 * handle then, and the release is for the next thread that uses the record.
 */

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum word_state {
    WORD_FREE,
    WORD_PENDING,
    WORD_MOVING,
    WORD_FIRING,
    WORD_CANCELLED,
};

enum {
    WORD_STATE = 7,
    WORD_QUEUED = 8,
    WORD_STOP = 16,    /* MOVING: ends with the move; FIRING: does not repeat */
    WORD_WAITED = 32,  /* FIRING: a thread waits for the end of the callback */
    WORD_REPEATS = 64, /* rings more than once */
    WORD_ARMING = 256, /* increment of the arming */
};

#define WORD_ARMINGS UINT64_C(0xffffff00)

static inline uint32_t word_generation(uint64_t word)
{
    return (uint32_t)(word >> 32);
}

static inline unsigned word_state(uint64_t word)
{
    return (unsigned)(word & WORD_STATE);
}

static inline uint64_t word_with(uint64_t word, unsigned state)
{
    return (word & ~(uint64_t)WORD_STATE) | state;
}

/* Returns the word of the same timer after one more move or change of owner. */
static inline uint64_t word_armed_again(uint64_t word)
{
    return (word & ~WORD_ARMINGS) | ((word + WORD_ARMING) & WORD_ARMINGS);
}

/* Returns whether a timer is going to ring, according to its word. */
static inline bool word_is_pending(uint64_t word)
{
    switch (word_state(word)) {
    case WORD_PENDING:
        return true;
    case WORD_MOVING:
        return (word & WORD_STOP) == 0;
    case WORD_FIRING:
        return (word & WORD_REPEATS) != 0 && (word & WORD_STOP) == 0;
    default:
        return false;
    }
}

static inline uint64_t word_load(const _Atomic uint64_t *word)
{
    return atomic_load_explicit(word, memory_order_acquire);
}

/* Changes a word from `*seen` to `to`; on failure returns false and sets `*seen` to the word.
 * NOLINTNEXTLINE(readability-non-const-parameter): the swap writes to `seen` */
static inline bool word_change(_Atomic uint64_t *word, uint64_t *seen, uint64_t to)
{
    return atomic_compare_exchange_strong_explicit(word, seen, to, memory_order_acq_rel,
                                                   memory_order_acquire);
}

/* Returns the word for the next timer in this record. Generation 0: the generations are used up. */
static inline uint64_t word_next_life(uint64_t word)
{
    return (uint64_t)(word_generation(word) + 1) << 32 | WORD_FREE;
}

/* Starts a timer, optionally with WORD_QUEUED or WORD_REPEATS. Returns its generation. */
static inline uint32_t word_start(_Atomic uint64_t *word, unsigned bits)
{
    /* Relaxed: the record is free, so no other thread uses it. */
    uint64_t seen = atomic_load_explicit(word, memory_order_relaxed);
    assert((uint32_t)seen == WORD_FREE);
    atomic_store_explicit(word, seen | bits | WORD_PENDING, memory_order_release);
    return word_generation(seen);
}

enum word_end {
    WORD_NOT_ENDED,    /* the timer was not pending */
    WORD_ENDED,        /* and the thread that moves or rings it reclaims it */
    WORD_ENDED_QUEUED, /* and the thread that takes it out of its queue reclaims it */
    WORD_ENDED_PUSH,   /* and the caller must send it to its owner, which reclaims it */
};

/* Ends a pending timer. Any thread may call it. */
static inline enum word_end word_cancel(_Atomic uint64_t *word, uint32_t generation)
{
    uint64_t seen = word_load(word), to;
    do {
        if (word_generation(seen) != generation) return WORD_NOT_ENDED;
        unsigned state = word_state(seen);
        bool goes_on = state == WORD_MOVING || (state == WORD_FIRING && (seen & WORD_REPEATS) != 0);
        if (state == WORD_PENDING) {
            to = word_with(seen, WORD_CANCELLED) | WORD_QUEUED;
        } else if (goes_on && (seen & WORD_STOP) == 0) {
            to = seen | WORD_STOP;
        } else {
            return WORD_NOT_ENDED;
        }
    } while (!word_change(word, &seen, to));
    if (word_state(seen) != WORD_PENDING) return WORD_ENDED;
    return (seen & WORD_QUEUED) == 0 ? WORD_ENDED_PUSH : WORD_ENDED_QUEUED;
}

/* Ends a pending timer and frees its record. Owner only. Returns false if the timer is not pending
 * or is QUEUED: then call word_cancel(). */
static inline bool word_cancel_own(_Atomic uint64_t *word, uint32_t generation)
{
    uint64_t seen = word_load(word);
    do {
        if (word_generation(seen) != generation) return false;
        if (word_state(seen) != WORD_PENDING || (seen & WORD_QUEUED) != 0) return false;
    } while (!word_change(word, &seen, word_next_life(seen)));
    return true;
}

enum word_move {
    WORD_MOVE_BEGUN, /* write the due, then call word_move_end() */
    WORD_MOVE_STALE, /* the timer is not pending */
    WORD_MOVE_BUSY,  /* the timer repeats and is ringing right now */
    WORD_MOVE_OTHER, /* another thread is moving it: this move came just before that one */
};

/* Begins to move a pending timer. Any thread may call it. */
static inline enum word_move word_move_begin(_Atomic uint64_t *word, uint32_t generation)
{
    uint64_t seen = word_load(word);
    do {
        if (word_generation(seen) != generation) return WORD_MOVE_STALE;
        bool stops = (seen & WORD_STOP) != 0;
        switch (word_state(seen)) {
        case WORD_PENDING:
            break;
        case WORD_MOVING:
            return stops ? WORD_MOVE_STALE : WORD_MOVE_OTHER;
        case WORD_FIRING:
            return (seen & WORD_REPEATS) != 0 && !stops ? WORD_MOVE_BUSY : WORD_MOVE_STALE;
        default:
            return WORD_MOVE_STALE;
        }
    } while (!word_change(word, &seen, word_with(seen, WORD_MOVING)));
    return WORD_MOVE_BEGUN;
}

enum word_moved {
    WORD_MOVED_KEPT,       /* the timer stays where it is: with its owner, or in a queue */
    WORD_MOVED_PUSH,       /* the caller must send it to its owner */
    WORD_MOVED_ENDED,      /* it was cancelled meanwhile, and is in a queue */
    WORD_MOVED_ENDED_PUSH, /* it was cancelled meanwhile, and the caller must send it */
};

/* Ends a move. `queued` is WORD_QUEUED if the owner must be told, 0 if the mover is the owner and
 * the timer is in its wheel. */
static inline enum word_moved word_move_end(_Atomic uint64_t *word, unsigned queued)
{
    uint64_t seen = word_load(word), to;
    do {
        assert(word_state(seen) == WORD_MOVING);
        if ((seen & WORD_STOP) != 0) {
            to = word_with(seen & ~(uint64_t)WORD_STOP, WORD_CANCELLED) | WORD_QUEUED;
        } else {
            to = word_with(word_armed_again(seen), WORD_PENDING) | queued;
        }
    } while (!word_change(word, &seen, to));
    bool push = (seen & WORD_QUEUED) == 0 && (to & WORD_QUEUED) != 0;
    if ((seen & WORD_STOP) != 0) return push ? WORD_MOVED_ENDED_PUSH : WORD_MOVED_ENDED;
    return push ? WORD_MOVED_PUSH : WORD_MOVED_KEPT;
}

/* Clears QUEUED of a timer that the caller took from a queue. `*seen` is pending, and then the
 * timer is in the caller's wheel, or is being moved. Returns false if the word has changed. */
static inline bool word_settle(_Atomic uint64_t *word, uint64_t *seen)
{
    assert((*seen & WORD_QUEUED) != 0);
    assert(word_state(*seen) == WORD_PENDING || word_state(*seen) == WORD_MOVING);
    return word_change(word, seen, word_armed_again(*seen) & ~(uint64_t)WORD_QUEUED);
}

/* Sets QUEUED on a timer that the owner takes out of its wheel to send it elsewhere. Owner only.
 * Returns false if it was cancelled or moved meanwhile: then it arrives through a queue. */
static inline bool word_hand_over(_Atomic uint64_t *word, uint64_t seen)
{
    if (word_state(seen) != WORD_PENDING || (seen & WORD_QUEUED) != 0) return false;
    return word_change(word, &seen, word_armed_again(seen) | WORD_QUEUED);
}

/* Like word_hand_over(), also for a timer that is being moved. Returns false if it was
 * cancelled. */
static inline bool word_take_out(_Atomic uint64_t *word)
{
    uint64_t seen = word_load(word);
    do {
        if (word_state(seen) != WORD_PENDING && word_state(seen) != WORD_MOVING) return false;
        if ((seen & WORD_QUEUED) != 0) return false;
    } while (!word_change(word, &seen, word_armed_again(seen) | WORD_QUEUED));
    return true;
}

/* Starts the ring of a timer whose entry has come up. Owner only. Returns false if the entry is
 * stale. */
static inline bool word_fire(_Atomic uint64_t *word)
{
    uint64_t seen = word_load(word);
    do {
        if (word_state(seen) != WORD_PENDING || (seen & WORD_QUEUED) != 0) return false;
    } while (!word_change(word, &seen, word_with(seen, WORD_FIRING)));
    return true;
}

/* Ends a ring after the callback has returned. Owner only. Ends the timer if it does not repeat or
 * was stopped meanwhile. Returns the word before. */
static inline uint64_t word_fired(_Atomic uint64_t *word, bool *out_is_over)
{
    uint64_t seen = word_load(word), to;
    do {
        assert(word_state(seen) == WORD_FIRING);
        *out_is_over = (seen & WORD_REPEATS) == 0 || (seen & WORD_STOP) != 0;
        to = word_with(word_armed_again(seen) & ~(uint64_t)WORD_WAITED, WORD_PENDING);
        if (*out_is_over) to = word_next_life(seen);
    } while (!word_change(word, &seen, to));
    return seen;
}

/* Starts the last ring of a pending timer that the caller took from a queue; word_fired() ends it.
 * No thread can move or cancel it any more. Returns false if the word has changed. */
static inline bool word_claim(_Atomic uint64_t *word, uint64_t *seen)
{
    assert((*seen & WORD_QUEUED) != 0);
    assert(word_state(*seen) == WORD_PENDING);
    uint64_t kept = *seen & ~(uint64_t)(WORD_QUEUED | WORD_REPEATS);
    return word_change(word, seen, word_with(kept, WORD_FIRING));
}

/* Undoes word_claim(): the timer is pending and QUEUED again, with `bits` 0 or WORD_REPEATS.
 * Returns the word before. */
static inline uint64_t word_unclaim(_Atomic uint64_t *word, unsigned bits)
{
    uint64_t seen = word_load(word), to;
    do {
        assert(word_state(seen) == WORD_FIRING);
        to = word_with(word_armed_again(seen) & ~(uint64_t)WORD_WAITED, WORD_PENDING);
    } while (!word_change(word, &seen, to | WORD_QUEUED | bits));
    return seen;
}

/* Asks to be woken when the callback has returned. Any thread may call it. Returns false if the
 * callback is not running. */
static inline bool word_wait(_Atomic uint64_t *word, uint32_t generation)
{
    uint64_t seen = word_load(word);
    do {
        if (word_generation(seen) != generation || word_state(seen) != WORD_FIRING) return false;
        if ((seen & WORD_WAITED) != 0) return true;
    } while (!word_change(word, &seen, seen | WORD_WAITED));
    return true;
}

/* Frees a cancelled timer that the caller took from a queue. */
static inline void word_clear(_Atomic uint64_t *word)
{
    uint64_t seen = word_load(word);
    assert(word_state(seen) == WORD_CANCELLED);
    atomic_store_explicit(word, word_next_life(seen), memory_order_release);
}

#endif
