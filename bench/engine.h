/* SPDX-License-Identifier: MIT */
#ifndef BENCH_ENGINE_H
#define BENCH_ENGINE_H

/*
 * engine - the interface between the harness and a timer engine.
 *
 * There is one program per engine: the harness, one adapter that defines the
 * engine_ functions, and the library the adapter wraps. Every operation is one call
 * from the harness into the adapter, and every timer that fires is one call back to
 * bench_fired(); neither can be inlined, and they are the same for all engines.
 *
 * Timers are numbered from 0. The adapter keeps what a caller of the library would have
 * to keep for a timer (its struct, or its handle), so that its cost in time and memory
 * counts as the engine's.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    BENCH_US = 1000, /* in nanoseconds, like all times here */
    BENCH_MS = 1000 * 1000,
};

/* The garbage of a cancel or restart, which determines how long a measurement must be. */
enum engine_garbage {
    ENGINE_GARBAGE_NONE,
    ENGINE_GARBAGE_BY_COUNT, /* collected when there is too much */
    ENGINE_GARBAGE_BY_TIME,  /* dropped at its due time */
};

struct engine_traits {
    const char *name;
    uint64_t resolution_ns; /* of due times */
    bool is_exact;          /* promises the order (due, order of scheduling) */
    enum engine_garbage garbage;
    bool has_batches; /* has engine_restart_many() */
    bool is_null;     /* keeps nothing: measures the harness */
};

struct engine_stats {
    uint64_t bytes;
    uint32_t touched_max;
};

/* The virtual time. Only bench_set_now() writes it. */
extern uint64_t bench_now;

/* Number of polls in which the pending timers will fire; used only by the null engine. */
extern uint32_t bench_polls_left;

void bench_set_now(uint64_t now);

/* Reports that a timer fires; `due` is the engine's due time. */
void bench_fired(uint32_t id, uint64_t due);

/* Returns the number of timers fired since the harness last emptied its list. */
uint32_t bench_fired_count(void);

_Noreturn void bench_fail(const char *what);

/* Allocates memory for the engine's caller: zeroed and already touched, because a caller
 * has its objects before it gives them timeouts. */
void *bench_caller_alloc(size_t count, size_t bytes);

/* Maps zeroed address space for one of our own engines, in huge pages beyond the first.
 * Only touched pages count as memory. It never moves, and lives as long as the process. */
void *bench_map(size_t count, size_t bytes);

extern const struct engine_traits engine_traits;

const char *engine_version(void);

/* Starts an engine at bench_now, for timers 0..timers-1. Aborts on failure. */
void engine_open(uint32_t timers);
void engine_close(void);

/* Reserves memory for all timers, if the engine supports it. */
void engine_reserve(uint32_t timers);

/* What the caller keeps for the timers: an array by id of the library's structs or of
 * handles; 0 bytes if the id is enough. The harness prefetches the object of a timer
 * before an operation, because a program that restarts or cancels a timeout is already
 * working on the object that has it. */
struct engine_objects {
    const char *first;
    size_t bytes; /* size of one object */
};

struct engine_objects engine_caller_objects(void);

void engine_schedule(uint32_t id, uint64_t due);
void engine_cancel(uint32_t id);

/* Changes the due time of a pending timer with the library's own function. */
void engine_restart(uint32_t id, uint64_t due);
void engine_restart_many(const uint32_t *ids, const uint64_t *dues, uint32_t count);

/* Tells the engine that a pending timer is restarted some operations later. What the caller keeps
 * is in the cache; an engine with handles prefetches what its handle leads to. */
void engine_expect(uint32_t id);

/* Fires everything due at bench_now. */
void engine_fire(void);

/* Makes one call of the library that fires timers. Returns false when none is due. */
bool engine_poll(void);

/* Sleeps until the first timer is due, rounded up to milliseconds like epoll_wait, and
 * fires the due timers: at least one. */
void engine_fire_next(void);

void engine_read_stats(struct engine_stats *out);

#endif
