/* SPDX-License-Identifier: MIT */
#ifndef BEL_CLI_BENCH_H
#define BEL_CLI_BENCH_H

/*
 * bench - belfry bench: measures the throughput and latency of a server. Each connection has a
 * thread that keeps a pipeline of commands in flight and records the latency of each.
 *
 *     phase      commands                           measured
 *     schedule   SCHEDULE <name>/due payload        schedule
 *     claim      CLAIM <name>/due, ACK token        claim, ack
 *     later      SCHEDULE <name>/later ... IN 1h    schedule_later
 *     cancel     CANCEL <name>/later id             cancel
 */

#include "cli/connect.h"
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

struct bench_settings {
    struct cli_connect connect;
    uint64_t timers, bytes, connections, pipeline;
    char due[BENCH_TOPIC_BYTES], later[BENCH_TOPIC_BYTES]; /* names of the topics */
};

/* The measurements of one row of the output. */
struct bench_result {
    uint64_t count, elapsed_ns;
    struct bel_histogram latency_ns;
};

struct bench; /* opaque: it owns connections */

/* Connects. Returns CLI_OK and sets `*out`, or an exit status after printing an error. `settings`
 * is borrowed. */
int bel__bench_open(const struct bench_settings *settings, struct bench **out);
void bel__bench_close(struct bench *bench);

/* Runs a phase and adds to the results of its rows. One of `signals`, which the caller blocks,
 * stops the phase after the commands in flight are answered, and sets `*out_is_told`. Returns
 * CLI_OK, or an exit status after printing an error. */
int bel__bench_run(struct bench *bench, enum bench_phase phase, const sigset_t *signals,
                   struct bench_result results[BENCH_ROWS], bool *out_is_told);

/* Checks that the topics are empty and that the key may purge. Returns CLI_OK; CLI_CONFLICT if a
 * topic has timers; or another exit status. An error was printed. */
int bel__bench_check(const struct bench_settings *settings);

/* Deletes all timers of the topics, in any state, and adds their number to `*out_count`. */
int bel__bench_purge(const struct bench_settings *settings, uint64_t *out_count);

#endif
