/* SPDX-License-Identifier: MIT */
#ifndef BENCH_DURABLE_H
#define BENCH_DURABLE_H

/*
 * durable - what the steps of bench/durable.c ask of something that keeps timers on a disk.
 *
 * There is one program for each: the steps and one adapter. Each call below is one commit: what
 * it has done is durable when it returns. Timers are numbered; all have the same payload and one
 * topic.
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
    int64_t due_ms; /* of the wall clock; 0: now */
};

/* What all have in common. */
extern const char durable_topic[];
extern const char durable_payload[DURABLE_PAYLOAD_BYTES];

/* How many adds were put off because there was no room just then. */
extern uint64_t durable_refusals;

/* Milliseconds that the clocks are ahead of the system's, for adapters and steps alike. */
extern int64_t durable_ahead_ms;
int64_t durable_now_ms(void);

/* The id of a timer if its user chooses it. */
void durable_print_id(uint64_t number, char out[DURABLE_ID_BYTES]);

/* Opens what is in a folder, or makes it. `has_ids`: timers have ids that their user chose. */
void durable_open(const char *folder, bool has_ids);
void durable_close(void);

/* Before and after very many that nobody waits for: indexes may be made at the end. */
void durable_load_begin(void);
void durable_load_end(void);

void durable_schedule(const struct durable_timer *timers, size_t count);

/* Claims up to `count` that are due. Returns how many; the adapter remembers which. */
size_t durable_claim(size_t count);

/* Acknowledges all that the last claim has brought. */
void durable_ack(void);

/* Does what is due behind the scenes, if anything is. */
void durable_rest(void);

#endif
