/* SPDX-License-Identifier: MIT */
#ifndef BEL_RUNTIME_VISITOR_H
#define BEL_RUNTIME_VISITOR_H

/*
 * visitor - what a runtime keeps for each thread that uses it, worker or not: its free
 * records and its counters. It is made at the first use and goes when the thread ends. If
 * the runtime goes first, the thread keeps the memory for its next one.
 */

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
    COUNT_SENT,  /* to a worker's inbox */
    COUNT_TAKEN, /* from one */
    COUNT_HELPED,
    COUNTERS,
};

struct counters {
    _Atomic uint64_t counts[COUNTERS];
};

struct visitor {
    _Atomic(struct bel_runtime *) runtime; /* NULL once that is gone */
    struct bel_worker *worker;             /* NULL if the thread is not a worker */
    volatile sig_atomic_t busy; /* in this library, so deep: signal handlers must keep out */
    struct record *ringing;     /* whose callback is running on this thread */
    uint32_t turn;              /* whose turn it is to be "any" */
    struct magazine magazine;
    struct counters counters;    /* written by this thread alone */
    struct visitor *thread_next; /* of this thread, for other runtimes */
    struct visitor *next;        /* of this runtime, for other threads */
};

/* One writer: a load and a store. Release, so that who sees an end counted also sees the
 * start counted that came before it; bel_runtime_stats() reads them in that order. */
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

/* From here to visitor_end() a signal handler on this thread keeps out. The fences are for
 * the compiler, which could move things to where one does not. */
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

/* The visitor that the calling thread used last. Every call looks here. */
extern _Thread_local struct visitor *bel__visitor_recent;

/* Looks through all of them. */
struct visitor *bel__visitor_search(const struct bel_runtime *runtime);

static inline struct bel_runtime *visitor_runtime(const struct visitor *visitor)
{
    /* Acquire pairs with the release in bel__visitors_forget: then the visitor is free. */
    return atomic_load_explicit(&visitor->runtime, memory_order_acquire);
}

/* The calling thread's visitor; NULL if it has not used this runtime. */
static inline struct visitor *visitor_find(const struct bel_runtime *runtime)
{
    struct visitor *recent = bel__visitor_recent;
    if (recent != NULL && visitor_runtime(recent) == runtime) return recent;
    return bel__visitor_search(runtime);
}

/* Makes one for a thread that has none. Returns 0, or BEL_ENOMEM. */
BEL_CHECKED int bel__visitor_make(struct bel_runtime *runtime, struct visitor **out);

/* The calling thread's visitor, made if need be. Returns 0, or BEL_ENOMEM. */
BEL_CHECKED static inline int visitor_get(struct bel_runtime *runtime, struct visitor **out)
{
    *out = visitor_find(runtime);
    return *out != NULL ? 0 : bel__visitor_make(runtime, out);
}

/* The runtime is going: its visitors belong to nobody. */
void bel__visitors_forget(struct bel_runtime *runtime);

/* Before the first runtime: sees to it that forks are counted and the ends of threads are
 * noticed. Returns 0, or BEL_ENOMEM. */
BEL_CHECKED int bel__visitors_prepare(void);

/* How often this process has been forked, as seen by the child. */
extern _Atomic uint32_t bel__forks;

#endif
