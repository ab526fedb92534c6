/* SPDX-License-Identifier: MIT */
#ifndef BENCH_ENGINE_H
#define BENCH_ENGINE_H

/*
 * engine - what the harness asks of a timer engine, and what it gives it.
 *
 * There is one program per engine: the harness, one adapter that defines the
 * engine_ functions, and the library the adapter wraps. Every operation is one call
 * from the harness into the adapter, and every timer that fires is one call back to
 * bench_fired(); neither can be inlined, and they are the same for all engines.
 *
 * Timers are numbered from 0. What a caller of the library would have to keep for a
 * timer (its struct, or its handle) is the adapter's, so that its cost in time and
 * in memory is the engine's.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    BENCH_US = 1000, /* in nanoseconds, as every time here */
    BENCH_MS = 1000 * 1000,
};

/* What a cancel or restart leaves behind, and so how long it takes to see its cost. */
enum engine_garbage {
    ENGINE_GARBAGE_NONE,
    ENGINE_GARBAGE_BY_COUNT, /* collected when there is too much of it */
    ENGINE_GARBAGE_BY_TIME,  /* met when its deadline comes */
};

struct engine_traits {
    const char *name;
    uint64_t resolution_ns; /* deadlines are kept to this */
    bool is_exact;          /* promises the order (deadline, order of scheduling) */
    enum engine_garbage garbage;
    bool has_batches; /* engine_restart_many() */
    bool is_null;     /* keeps nothing: measures the harness */
};

struct engine_stats {
    uint64_t bytes;
    uint32_t touched_max;
};

/* The virtual time. Only bench_set_now() writes it. */
extern uint64_t bench_now;

/* Polls in which the timers at hand will fire; only the null engine wants to know. */
extern uint32_t bench_polls_left;

void bench_set_now(uint64_t now);

/* A timer fires, `due` as the engine knows it. */
void bench_fired(uint32_t id, uint64_t due);

/* How many have fired since the harness last emptied its list. */
uint32_t bench_fired_count(void);

_Noreturn void bench_fail(const char *what);

/* Memory of the engine's caller: zero, and already touched, because a caller has its
 * objects before it gives them timeouts. */
void *bench_caller_alloc(size_t count, size_t bytes);

/* Memory of an engine of our own that never moves: address space, zero, of which what is
 * touched counts, in large pages beyond the first one. Lives as long as the process. */
void *bench_map(size_t count, size_t bytes);

extern const struct engine_traits engine_traits;

const char *engine_version(void);

/* Starts an engine at bench_now, for timers 0..timers-1. Aborts on failure. */
void engine_open(uint32_t timers);
void engine_close(void);

/* Makes memory ready for all timers, where the engine can. */
void engine_reserve(uint32_t timers);

/* What the caller keeps for the timers: an array by id of the library's structs, or of
 * handles; no bytes if the id is enough. The harness has a timer's in the cache when it
 * asks for an operation, because who restarts or cancels a timeout is at work on the
 * object that it belongs to. */
struct engine_objects {
    const char *first;
    size_t bytes; /* of one */
};

struct engine_objects engine_caller_objects(void);

void engine_schedule(uint32_t id, uint64_t due);
void engine_cancel(uint32_t id);

/* Moves a pending timer in the way the library has for it. */
void engine_restart(uint32_t id, uint64_t due);
void engine_restart_many(const uint32_t *ids, const uint64_t *dues, uint32_t count);

/* Fires everything due at bench_now. */
void engine_fire(void);

/* One call into the library that fires; false when nothing due is left. */
bool engine_poll(void);

/* Sleeps until the first timer is due, to the whole millisecond as epoll_wait does,
 * and fires what is due then: at least one. */
void engine_fire_next(void);

void engine_read_stats(struct engine_stats *out);

#endif
