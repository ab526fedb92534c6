/* SPDX-License-Identifier: MIT */
#ifndef BENCH_DURABLE_H
#define BENCH_DURABLE_H

/*
 * durable - the interface between the steps of bench/durable.c and a durable timer engine.
 *
 * There is one program per engine: the steps and one adapter. Each call below is one commit: its
 * changes are durable when it returns. Timers are numbered; all have the same payload and topic.
 */

#include "harness.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    DURABLE_BATCH_MAX = 1000,
    DURABLE_PAYLOAD_BYTES = 100,
    DURABLE_ID_BYTES = 20,
    DURABLE_LEASE_MS = 30 * 1000,
};

struct durable_timer {
    uint64_t number;
    int64_t due_ms; /* wall-clock time; 0: now */
};

/* Topic and payload of all timers. */
extern const char durable_topic[];
extern const char durable_payload[DURABLE_PAYLOAD_BYTES];

/* Number of adds that were delayed because the engine had no room. */
extern uint64_t durable_refusals;

/* How far the clock of adapters and steps is ahead of the system's, in milliseconds. */
extern int64_t durable_ahead_ms;
int64_t durable_now_ms(void);

/* Prints the id of a timer, for engines where users choose ids. */
void durable_print_id(uint64_t number, char out[DURABLE_ID_BYTES]);

/* Opens or creates the data in a folder. `has_ids`: users choose the ids of timers. */
void durable_open(const char *folder, bool has_ids);
void durable_close(void);

/* Are called before and after a bulk load. An adapter may create its indexes at the end. */
void durable_load_begin(void);
void durable_load_end(void);

void durable_schedule(const struct durable_timer *timers, size_t count);

/* Claims up to `count` due timers. Returns their number; the adapter remembers them. */
size_t durable_claim(size_t count);

/* Acknowledges all timers of the last claim. */
void durable_ack(void);

/* Does pending background work. */
void durable_rest(void);

#endif
