/* SPDX-License-Identifier: MIT */

/*
 * W1 and W4: schedule N timers, then fire them all. W1r is the scheduling of W1 in memory that
 * the engine has reserved.
 *
 * W1 spreads the due times over 1 ms..1 h, in microseconds; W4 puts them on 100
 * milliseconds of that hour. Time then jumps to each millisecond at which a timer is
 * due, or, with --steps, visits every millisecond. A small N is repeated, with other due
 * times and the same engine, until there is enough to measure.
 *
 * Everything is checked afterwards, outside the measurement: the list of fired timers,
 * divided by polls, shows whether a timer was early, late, out of order, lost or fired
 * twice.
 */
#include "deck.h"

#include <stdlib.h>
#include <string.h>

enum {
    OPS_QUICK = 500 * 1000,
    OPS_FULL = 4 * 1000 * 1000,
};

struct round {
    struct deck deck;
    uint32_t *marks; /* number of fired timers after each poll */
    uint64_t *seen;  /* a bit per id */
};

static uint64_t schedule_all(const struct round *round)
{
    uint64_t start = bench_cpu_ns();
    for (uint32_t id = 0; id < round->deck.timers; id++)
        engine_schedule(id, round->deck.dues[id]);
    return bench_cpu_ns() - start;
}

static uint64_t fire_all(const struct round *round)
{
    uint64_t start = bench_cpu_ns();
    bench_polls_left = round->deck.polls_len;
    bench_fired_len = 0;
    for (uint32_t i = 0; i < round->deck.polls_len; i++) {
        bench_set_now(deck_poll_time(&round->deck, i));
        engine_fire();
        round->marks[i] = bench_fired_len;
        bench_polls_left--;
    }
    return bench_cpu_ns() - start;
}

/* Checks the timers fired by one poll: all must have become due since the last poll. */
static void check_poll(const struct round *round, uint32_t poll, uint32_t from, uint32_t to)
{
    uint64_t now = deck_poll_time(&round->deck, poll);
    uint64_t resolution = engine_traits.resolution_ns;
    for (uint32_t i = from; i < to; i++) {
        uint32_t id = bench_fired_ids[i];
        uint64_t bit = UINT64_C(1) << id % 64;
        if (id >= round->deck.timers || (round->seen[id / 64] & bit))
            bench_fail("fired a timer twice");
        round->seen[id / 64] |= bit;
        uint64_t due = round->deck.dues[id];
        bench_audit.early += due > now;
        bench_audit.late += bench_ceil_ms(due) < now;
        if (i == 0) continue;
        uint32_t before = bench_fired_ids[i - 1];
        uint64_t slot = (due + resolution - 1) / resolution;
        uint64_t slot_before = (round->deck.dues[before] + resolution - 1) / resolution;
        bench_audit.inversions += slot < slot_before;
        bench_audit.ties += slot == slot_before && id < before;
    }
}

static void check_all(const struct round *round)
{
    memset(round->seen, 0, (round->deck.timers / 64 + 1) * sizeof *round->seen);
    for (uint32_t i = 0; i < round->deck.polls_len; i++) {
        check_poll(round, i, i == 0 ? 0 : round->marks[i - 1], round->marks[i]);
    }
    bench_audit.lost += round->deck.timers - bench_fired_len;
}

static void round_init(struct round *round, const struct bench_options *options)
{
    deck_init(&round->deck, options);
    uint32_t polls = options->is_stepped ? BENCH_HOUR_MS : 0;
    if (polls < options->timers) polls = options->timers;
    round->marks = bench_alloc(polls, sizeof *round->marks);
    round->seen = bench_alloc(options->timers / 64 + 1, sizeof *round->seen);
}

static void round_finish(struct round *round)
{
    deck_finish(&round->deck);
    free(round->marks);
    free(round->seen);
}

void bench_run_fire(const struct bench_options *options)
{
    bool is_crowded = strcmp(options->workload, "W4") == 0;
    bool is_reserved = strcmp(options->workload, "W1r") == 0;
    struct bench_random random = {options->seed};
    struct round round = {0};
    round_init(&round, options);
    uint32_t rounds = (options->is_quick ? OPS_QUICK : OPS_FULL) / options->timers;
    if (rounds == 0) rounds = 1;

    bench_warm_memory(options->timers);
    uint64_t rss = bench_rss_bytes(), schedule_ns = 0, fire_ns = 0;
    engine_open(options->timers);
    if (is_reserved) engine_reserve(options->timers);
    for (uint32_t i = 0; i < rounds; i++) {
        (is_crowded ? deck_deal_crowded : deck_deal_spread)(&round.deck, &random);
        if (options->is_stepped) deck_poll_every_ms(&round.deck);
        schedule_ns += schedule_all(&round);
        if (i == 0) rss = bench_rss_bytes() - rss;
        struct bench_audit audit = bench_audit;
        fire_ns += fire_all(&round);
        bench_audit = audit; /* the check below counts these errors, and more */
        if (!engine_traits.is_null) check_all(&round);
    }
    engine_close();

    if (is_reserved) {
        bench_report("W1r", (double)schedule_ns / ((double)rounds * options->timers), 0);
        round_finish(&round);
        return;
    }
    double ops = (double)rounds * options->timers,
           bytes = bench_bytes_per_timer(rss, options->timers);
    bench_report(is_crowded ? "W4s" : "W1s", (double)schedule_ns / ops, bytes);
    bench_report(is_crowded ? "W4f" : "W1f", (double)fire_ns / ops, bytes);
    if (!is_crowded) bench_report("W5", 0, bytes);
    round_finish(&round);
}
