/* SPDX-License-Identifier: MIT */
#ifndef BEL_RUNTIME_WORD_H
#define BEL_RUNTIME_WORD_H

/*
 * word - one atomic word per timer decides everything about it.
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
 * Whoever succeeds with a compare-and-swap has done what it says, and nobody has to wait
 * for anybody: what meets a timer in MOVING knows how that will end. A cancel leaves STOP
 * behind, so that the mover ends the timer; a second move counts as the one just before;
 * an entry that comes up belongs to the time before the move and is dropped.
 *
 * QUEUED says that the timer is in a queue on its way to a worker, and only who sets it
 * puts it there; who takes it out is alone with it until it clears the bit. A timer that
 * is not QUEUED belongs to the worker whose wheel it is in. So there is one owner always.
 *
 * The generation tells lives of the memory apart and is what a handle is checked by. The
 * arming counts how often the timer was moved or changed hands, so that a word seen again
 * is the same life at the same place.
 *
 * Memory order. All words are changed by read-modify-writes that acquire and release: who
 * changes a word sees what its last changer had written to the timer before. The plain
 * loads acquire for the same reason. Two plain stores start and end a life: nobody else has
 * the handle yet, or can do anything with it, and the release is for who comes next.
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
    WORD_WAITED = 32,  /* FIRING: someone waits for the end of the callback */
    WORD_REPEATS = 64, /* rings more than once */
    WORD_ARMING = 256, /* one of them */
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

/* The same timer, moved or handed on once more. */
static inline uint64_t word_armed_again(uint64_t word)
{
    return (word & ~WORD_ARMINGS) | ((word + WORD_ARMING) & WORD_ARMINGS);
}

/* Whether a timer is going to ring, as far as the word tells. */
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

/* Changes a word from what was seen; else sees what it is.
 * NOLINTNEXTLINE(readability-non-const-parameter): the swap writes to `seen` */
static inline bool word_change(_Atomic uint64_t *word, uint64_t *seen, uint64_t to)
{
    return atomic_compare_exchange_strong_explicit(word, seen, to, memory_order_acq_rel,
                                                   memory_order_acquire);
}

/* The word of the next life. Generation 0 is none: the memory is used up. */
static inline uint64_t word_next_life(uint64_t word)
{
    return (uint64_t)(word_generation(word) + 1) << 32 | WORD_FREE;
}

/* Starts a life, with WORD_QUEUED or WORD_REPEATS as it may be. Returns its generation. */
static inline uint32_t word_start(_Atomic uint64_t *word, unsigned bits)
{
    /* Relaxed: who takes a free timer is alone with it. */
    uint64_t seen = atomic_load_explicit(word, memory_order_relaxed);
    assert((uint32_t)seen == WORD_FREE);
    atomic_store_explicit(word, seen | bits | WORD_PENDING, memory_order_release);
    return word_generation(seen);
}

enum word_end {
    WORD_NOT_ENDED,  /* it was not pending */
    WORD_ENDED,      /* and whoever has it clears it away */
    WORD_ENDED_PUSH, /* and it has to be sent to its owner for that */
};

/* Any thread: ends a pending timer. */
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
    bool queue = word_state(seen) == WORD_PENDING && (seen & WORD_QUEUED) == 0;
    return queue ? WORD_ENDED_PUSH : WORD_ENDED;
}

/* Owner only: ends a pending timer and its life. False if it is not pending or not the
 * owner's alone: then word_cancel() knows. */
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
    WORD_MOVE_BEGUN, /* write the due, then word_move_end() */
    WORD_MOVE_STALE, /* it is not pending */
    WORD_MOVE_BUSY,  /* it rings, and will again */
    WORD_MOVE_OTHER, /* another thread is moving it: this move came just before that one */
};

/* Any thread: begins to move a pending timer. */
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
    WORD_MOVED_KEPT, /* it is where it was: the owner has it, or a queue */
    WORD_MOVED_PUSH, /* it has to be sent to its owner */
};

/* The mover: ends the move. `queued` is WORD_QUEUED if the owner has to be told, 0 if the
 * mover is the owner and the timer is in its wheel. */
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
    return push ? WORD_MOVED_PUSH : WORD_MOVED_KEPT;
}

/* Who took it from a queue: lets go of a timer as `*seen` says, which is pending and in
 * the taker's wheel by now, or being moved. False if it has changed. */
static inline bool word_settle(_Atomic uint64_t *word, uint64_t *seen)
{
    assert((*seen & WORD_QUEUED) != 0);
    assert(word_state(*seen) == WORD_PENDING || word_state(*seen) == WORD_MOVING);
    return word_change(word, seen, word_armed_again(*seen) & ~(uint64_t)WORD_QUEUED);
}

/* Owner only: takes a timer out of the wheel to send it on. False if that is not its to
 * do: it is cancelled or moved, and comes in a queue. */
static inline bool word_hand_over(_Atomic uint64_t *word, uint64_t seen)
{
    if (word_state(seen) != WORD_PENDING || (seen & WORD_QUEUED) != 0) return false;
    return word_change(word, &seen, word_armed_again(seen) | WORD_QUEUED);
}

/* Owner only: its entry has come up. False if that is stale. */
static inline bool word_fire(_Atomic uint64_t *word)
{
    uint64_t seen = word_load(word);
    do {
        if (word_state(seen) != WORD_PENDING || (seen & WORD_QUEUED) != 0) return false;
    } while (!word_change(word, &seen, word_with(seen, WORD_FIRING)));
    return true;
}

/* Owner only: the callback has returned. Ends the life if the timer does not repeat or has
 * been stopped meanwhile; says what the word was before. */
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

/* Who took it from a queue: makes a pending timer as `*seen` says ring, for the last time:
 * word_fired() ends its life. Nobody moves or cancels it from here on. False if it has
 * changed. */
static inline bool word_claim(_Atomic uint64_t *word, uint64_t *seen)
{
    assert((*seen & WORD_QUEUED) != 0);
    assert(word_state(*seen) == WORD_PENDING);
    uint64_t kept = *seen & ~(uint64_t)(WORD_QUEUED | WORD_REPEATS);
    return word_change(word, seen, word_with(kept, WORD_FIRING));
}

/* The same one: it does not ring after all and is pending in its hands again, with
 * WORD_REPEATS as it was. Says what the word was before. */
static inline uint64_t word_unclaim(_Atomic uint64_t *word, unsigned bits)
{
    uint64_t seen = word_load(word), to;
    do {
        assert(word_state(seen) == WORD_FIRING);
        to = word_with(word_armed_again(seen) & ~(uint64_t)WORD_WAITED, WORD_PENDING);
    } while (!word_change(word, &seen, to | WORD_QUEUED | bits));
    return seen;
}

/* Any thread: asks to be told when the callback has returned. False if it is not running. */
static inline bool word_wait(_Atomic uint64_t *word, uint32_t generation)
{
    uint64_t seen = word_load(word);
    do {
        if (word_generation(seen) != generation || word_state(seen) != WORD_FIRING) return false;
        if ((seen & WORD_WAITED) != 0) return true;
    } while (!word_change(word, &seen, seen | WORD_WAITED));
    return true;
}

/* Who took a cancelled timer from a queue: ends its life. */
static inline void word_clear(_Atomic uint64_t *word)
{
    uint64_t seen = word_load(word);
    assert(word_state(seen) == WORD_CANCELLED);
    atomic_store_explicit(word, word_next_life(seen), memory_order_release);
}

#endif
