/* SPDX-License-Identifier: MIT */
#ifndef BEL_CLI_TOP_H
#define BEL_CLI_TOP_H

/*
 * top - belfry top: what a server is doing, again and again. A sample is what it says of itself at
 * one moment; rates are of two samples.
 */

#include "belfry/client.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    TOP_TOPICS_MAX = 1000, /* that are asked for; the others are counted */
    TOP_NAME_BYTES = 201,
    TOP_TEXT_BYTES = 64,
    TOP_PROBLEM_BYTES = 256,
};

struct top_topic {
    char name[TOP_NAME_BYTES];
    bool is_paused;
    int64_t scheduled, ready, leased, dead;
    int64_t oldest_ms; /* how long the oldest has been due */
};

/* What INFO counts, in the order of a table in top_sample.c. */
enum top_count {
    TOP_COMMANDS,
    TOP_ERRORS,
    TOP_SCHEDULES,
    TOP_CLAIMS,
    TOP_ACKS,
    TOP_DELIVERIES,
    TOP_CLIENTS,
    TOP_UPTIME_S,
    TOP_LATENESS_US_P50,
    TOP_LATENESS_US_P99,
    TOP_TURN_US_P99,
    TOP_LEASES_LOST,
    TOP_COUNTS,
};

/* A time that is longer than what a server measures, which is a minute; INFO has "inf". */
#define TOP_OVER UINT64_MAX

struct top_sample {
    uint64_t at_ns; /* monotonic; 0: there is none */
    uint64_t counts[TOP_COUNTS];
    char version[TOP_TEXT_BYTES], time[TOP_TEXT_BYTES], store[TOP_TEXT_BYTES];
    size_t topics_count;
    size_t topics_left;                      /* out */
    struct top_topic topics[TOP_TOPICS_MAX]; /* by name */
};

/* Takes a sample. Returns 0, an error of the client's, or BEL_EINVAL if the server refuses; then
 * `problem` says what it says. */
BEL_CHECKED int bel__top_sample(struct bel_client *client, struct top_sample *out,
                                char problem[TOP_PROBLEM_BYTES]);

/* How much a count grows in a second; 0 without a sample before. */
double bel__top_rate(const struct top_sample *before, const struct top_sample *now,
                     enum top_count count);

/* By how many a topic's unfinished timers change in a second. */
double bel__top_change(const struct top_sample *before, const struct top_sample *now,
                       const struct top_topic *topic);

#endif
