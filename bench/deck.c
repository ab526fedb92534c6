/* SPDX-License-Identifier: MIT */

/*
 * Chooses due times. To find the milliseconds with at least one timer, it sorts them
 * (radix sort, two passes of 11 bits) and drops duplicates. The memory is proportional
 * to the timers, so a small N stays in the CPU cache.
 */
#include "deck.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    CROWD_MS = 100,
    RADIX_BITS = 11, /* an hour of milliseconds has 22 */
};

static_assert(BENCH_HOUR_MS < 1 << 2 * RADIX_BITS, "two passes sort the polls");

static void radix_pass(const uint32_t *from, uint32_t *to, uint32_t len, unsigned shift)
{
    static uint32_t places[1 << RADIX_BITS];
    const uint32_t mask = (1 << RADIX_BITS) - 1;
    memset(places, 0, sizeof places);
    for (uint32_t i = 0; i < len; i++)
        places[from[i] >> shift & mask]++;
    uint32_t sum = 0;
    for (uint32_t i = 0; i <= mask; i++) {
        uint32_t count = places[i];
        places[i] = sum;
        sum += count;
    }
    for (uint32_t i = 0; i < len; i++)
        to[places[from[i] >> shift & mask]++] = from[i];
}

static void sort_polls(struct deck *deck, uint32_t len)
{
    radix_pass(deck->polls, deck->scratch, len, 0);
    radix_pass(deck->scratch, deck->polls, len, RADIX_BITS);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < len; i++) {
        if (kept == 0 || deck->polls[kept - 1] != deck->polls[i]) {
            deck->polls[kept++] = deck->polls[i];
        }
    }
    deck->polls_len = kept;
}

void deck_deal_spread(struct deck *deck, struct bench_random *random)
{
    deck->start = bench_now;
    for (uint32_t id = 0; id < deck->timers; id++) {
        uint64_t delay = bench_hour_delay((uint32_t)bench_random_next(random));
        deck->dues[id] = deck->start + delay;
        deck->polls[id] = (uint32_t)(bench_ceil_ms(delay) / BENCH_MS);
    }
    sort_polls(deck, deck->timers);
}

void deck_deal_crowded(struct deck *deck, struct bench_random *random)
{
    deck->start = bench_now;
    do {
        for (uint32_t i = 0; i < CROWD_MS; i++) {
            uint32_t bits = (uint32_t)bench_random_next(random);
            deck->polls[i] = 1 + bench_scale(bits, BENCH_HOUR_MS);
        }
        sort_polls(deck, CROWD_MS);
    } while (deck->polls_len < CROWD_MS);
    for (uint32_t id = 0; id < deck->timers; id++) {
        uint32_t which = bench_scale((uint32_t)bench_random_next(random), CROWD_MS);
        deck->dues[id] = deck->start + (uint64_t)deck->polls[which] * BENCH_MS;
    }
}

void deck_poll_every_ms(struct deck *deck)
{
    deck->polls_len = BENCH_HOUR_MS;
    for (uint32_t i = 0; i < BENCH_HOUR_MS; i++)
        deck->polls[i] = i + 1;
}

void deck_init(struct deck *deck, const struct bench_options *options)
{
    uint32_t polls = options->timers;
    if (options->is_stepped && polls < BENCH_HOUR_MS) polls = BENCH_HOUR_MS;
    deck->timers = options->timers;
    deck->dues = bench_alloc(options->timers, sizeof *deck->dues);
    deck->polls = bench_alloc(polls, sizeof *deck->polls);
    deck->scratch = bench_alloc(polls, sizeof *deck->scratch);
}

void deck_finish(struct deck *deck)
{
    free(deck->dues);
    free(deck->polls);
    free(deck->scratch);
}
