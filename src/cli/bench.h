/* SPDX-License-Identifier: MIT */
#ifndef BEL_CLI_BENCH_H
#define BEL_CLI_BENCH_H

/*
 * bench - belfry bench: how fast a server is, from here. Each connection is a thread that keeps up
 * to a pipeline of commands under way, and notes how long each was.
 *
 *     phase      commands                           measured
 *     schedule   SCHEDULE <name>/due payload        schedule
 *     claim      CLAIM <name>/due, ACK token        claim, ack
 *     later      SCHEDULE <name>/later ... IN 1h    schedule_later
 *     cancel     CANCEL <name>/later id             cancel
 */

#include "cli/reach.h"
#include "core/histogram.h"

#include <signal.h>

enum {
    BENCH_TOPIC_BYTES = 201,
};

enum bench_phase {
    BENCH_SCHEDULE,
    BENCH_CLAIM,
    BENCH_LATER,
    BENCH_CANCEL,
    BENCH_PHASES,
};

enum bench_row {
    BENCH_ROW_SCHEDULE,
    BENCH_ROW_CLAIM,
    BENCH_ROW_ACK,
    BENCH_ROW_LATER,
    BENCH_ROW_CANCEL,
    BENCH_ROWS,
};

struct bench_order {
    struct cli_reach reach;
    uint64_t timers, bytes, connections, pipeline;
    char due[BENCH_TOPIC_BYTES], later[BENCH_TOPIC_BYTES]; /* its topics */
};

/* What was measured. */
struct bench_result {
    uint64_t count, elapsed_ns;
    struct bel_histogram latency_ns;
};

struct bench; /* opaque: it owns connections */

/* Connects. Returns CLI_OK and sets `*out`; or what to exit with, and has said why. `order` is
 * borrowed. */
int bel__bench_open(const struct bench_order *order, struct bench **out);
void bel__bench_close(struct bench *bench);

/* Runs a phase and adds to the results of its rows. When one of `signals`, which are blocked, comes
 * it stops, and sets `*out_is_told`; what is under way is answered first. Returns as above. */
int bel__bench_run(struct bench *bench, enum bench_phase phase, const sigset_t *signals,
                   struct bench_result results[BENCH_ROWS], bool *out_is_told);

/* Whether the topics hold nothing; says so if they do. Returns CLI_OK, CLI_CONFLICT, or else. */
int bel__bench_check(const struct bench_order *order);

/* Removes all timers of the topics, whatever they are, and adds how many those were. */
int bel__bench_purge(const struct bench_order *order, uint64_t *out_count);

#endif
