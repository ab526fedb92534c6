/* SPDX-License-Identifier: MIT */
#ifndef BEL_RUNTIME_VISITOR_H
#define BEL_RUNTIME_VISITOR_H

/*
 * visitor - the data that a runtime keeps for each thread that uses it: free records and counters.
 * Created at the first use, freed when the thread ends. If the runtime is destroyed first, the
 * thread keeps the memory for its next runtime.
 */

#include "belfry/wheel.h"
#include "runtime/pool.h"

#include <signal.h>

enum counter {
    COUNT_SCHEDULED,
    COUNT_FIRED,
    COUNT_ENDED,
    COUNT_CANCELLED,
    COUNT_RESCHEDULED,
    COUNT_STALE,
    COUNT_ADOPTED,
    COUNT_QUEUED_CANCELLED, /* in a queue; see bel__send_note_cancelled() */
    COUNT_QUEUED_RECLAIMED, /* of these */
    COUNT_HELPED,
    COUNTERS,
};

struct counters {
    _Atomic uint64_t counts[COUNTERS];
};

enum {
    CANCELLED_RING = 16, /* a power of two; enough cancels for a cache line to arrive */
};

/* The entries, in the thread's own wheel, of the timers that it cancelled last. They leave the
 * wheel later, when their cache lines have arrived. */
struct cancelled {
    uint64_t count, removed; /* timers cancelled, and removed from the wheel */
    bel_timer_t entries[CANCELLED_RING];
};

struct visitor {
    _Atomic(struct bel_runtime *) runtime; /* NULL after the runtime was destroyed */
    struct bel_worker *worker;             /* NULL if the thread is not a worker */
    volatile sig_atomic_t busy; /* nesting depth of calls in this library: a signal handler must
                                   not enter */
    struct record *ringing;     /* the timer whose callback is running on this thread */
    uint64_t garbage_seen;      /* cancelled timers in queues, when this thread last looked */
    struct magazine magazine;
    struct cancelled cancelled;                    /* of a worker */
    struct counters counters;                      /* written only by this thread */
    struct visitor *thread_next;                   /* of this thread, for other runtimes */
    struct visitor *next;                          /* of this runtime, for other threads */
    void (*end_worker)(struct bel_worker *worker); /* if it has one: called when the thread ends */
};

/* Adds to a counter. One writer: a load and a store. Release, so that a reader that sees an end
 * counted also sees the earlier start counted; bel_runtime_stats() reads them in that order. */
static inline void count_many(struct counters *counters, enum counter which, uint64_t more)
{
    _Atomic uint64_t *count = &counters->counts[which];
    uint64_t before = atomic_load_explicit(count, memory_order_relaxed);
    atomic_store_explicit(count, before + more, memory_order_release);
}

static inline void count(struct visitor *visitor, enum counter which)
{
    count_many(&visitor->counters, which, 1);
}

/* Counts for a thread that has no visitor if `visitor` is NULL. */
void bel__visitor_count(struct bel_runtime *runtime, struct visitor *visitor, enum counter which,
                        uint64_t more);

/* Until visitor_end() a signal handler on this thread must not enter. The fences stop the compiler
 * from moving accesses out of this range. */
static inline void visitor_begin(struct visitor *visitor)
{
    assert(visitor->busy == 0);
    visitor->busy = 1;
    atomic_signal_fence(memory_order_seq_cst);
}

static inline void visitor_end(struct visitor *visitor)
{
    atomic_signal_fence(memory_order_seq_cst);
    visitor->busy = 0;
}

/* The visitor that the calling thread used last; checked first by every call. */
extern _Thread_local struct visitor *bel__visitor_recent;

/* Searches all visitors of the calling thread. */
struct visitor *bel__visitor_search(const struct bel_runtime *runtime);

static inline struct bel_runtime *visitor_runtime(const struct visitor *visitor)
{
    /* Acquire pairs with the release in bel__visitors_forget: then the visitor is free. */
    return atomic_load_explicit(&visitor->runtime, memory_order_acquire);
}

/* Returns the calling thread's visitor; NULL if it has not used this runtime. */
static inline struct visitor *visitor_find(const struct bel_runtime *runtime)
{
    struct visitor *recent = bel__visitor_recent;
    if (recent != NULL && visitor_runtime(recent) == runtime) return recent;
    return bel__visitor_search(runtime);
}

/* Creates a visitor for a thread without one. Returns 0, or BEL_ENOMEM. */
BEL_CHECKED int bel__visitor_make(struct bel_runtime *runtime, struct visitor **out);

/* Finds or creates the calling thread's visitor. Returns 0, or BEL_ENOMEM. */
BEL_CHECKED static inline int visitor_get(struct bel_runtime *runtime, struct visitor **out)
{
    *out = visitor_find(runtime);
    return *out != NULL ? 0 : bel__visitor_make(runtime, out);
}

/* Returns a free record through the magazine of a thread or, without a visitor, directly to the
 * pool. */
void bel__visitor_give(struct bel_runtime *runtime, struct visitor *visitor, struct record *record);

/* Detaches all visitors from a runtime that is being destroyed. */
void bel__visitors_forget(struct bel_runtime *runtime);

/* Installs the handlers for fork() and for the end of threads; called before the first runtime.
 * Returns 0, or BEL_ENOMEM. */
BEL_CHECKED int bel__visitors_prepare(void);

/* The number of forks of this process, counted in the child. */
extern _Atomic uint32_t bel__forks;

#endif
