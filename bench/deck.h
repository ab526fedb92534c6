/* SPDX-License-Identifier: MIT */
#ifndef BENCH_DECK_H
#define BENCH_DECK_H

/*
 * deck - the due times of N timers, and the milliseconds at which a timer is due.
 */

#include "harness.h"

struct deck {
    uint32_t timers;
    uint64_t start;  /* bench_now when the due times were chosen */
    uint64_t *dues;  /* by id */
    uint32_t *polls; /* milliseconds after start, ascending, each once */
    uint32_t polls_len;
    uint32_t *scratch;
};

/* Allocates memory for `timers`, and for a poll every millisecond if `is_stepped`. */
void deck_init(struct deck *deck, const struct bench_options *options);
void deck_finish(struct deck *deck);

/* Chooses due times 1 ms..1 h from now, in whole microseconds. */
void deck_deal_spread(struct deck *deck, struct bench_random *random);

/* Chooses due times on 100 milliseconds of the next hour. */
void deck_deal_crowded(struct deck *deck, struct bench_random *random);

/* Replaces the polls by one every millisecond. */
void deck_poll_every_ms(struct deck *deck);

static inline uint64_t deck_poll_time(const struct deck *deck, uint32_t poll)
{
    return deck->start + (uint64_t)deck->polls[poll] * BENCH_MS;
}

#endif
