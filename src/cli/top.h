/* SPDX-License-Identifier: MIT */
#ifndef BEL_CLI_TOP_H
#define BEL_CLI_TOP_H

/*
 * top - belfry top: live figures of a server. A sample is the reply to one INFO. A rate, or the
 * lateness of an interval, is the difference of two samples.
 */

#include "belfry/client.h"
#include "core/why.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    TOP_TOPICS_MAX = 1000, /* topics in a sample; further ones are only counted */
    TOP_NAME_BYTES = 201,
    TOP_TEXT_BYTES = 64,
    TOP_BUCKETS_MAX = 32,
};

struct top_topic {
    char name[TOP_NAME_BYTES];
    bool is_paused;
    int64_t scheduled, ready, leased, dead;
    int64_t oldest_ms; /* how long the oldest ready timer has been due */
};

/* Figures of INFO, in the order of a table in top_sample.c. */
enum top_count {
    TOP_COMMANDS,
    TOP_ERRORS,
    TOP_SCHEDULES,
    TOP_CLAIMS,
    TOP_ACKS,
    TOP_DELIVERIES,
    TOP_CLIENTS,
    TOP_UPTIME_S,
    TOP_LATENESS_US_P50, /* since the server was started, as the next two */
    TOP_LATENESS_US_P99,
    TOP_TURN_US_P99,
    TOP_LEASES_LOST,
    TOP_COUNTS,
};

/* A time above 60 s, the most that the server's histograms measure; INFO has "inf". */
#define TOP_OVER UINT64_MAX

/* No time: nothing was delivered. */
#define TOP_NONE (UINT64_MAX - 1)

/* How many deliveries were at most so late. */
struct top_bucket {
    uint64_t us; /* or TOP_OVER */
    uint64_t count;
};

struct top_sample {
    uint64_t at_ns;     /* monotonic time of the sample; 0: no sample */
    uint64_t counts_ns; /* when the server counted the timers of its topics; 0: it has not yet */
    size_t buckets_count;
    struct top_bucket buckets[TOP_BUCKETS_MAX]; /* rising */
    uint64_t counts[TOP_COUNTS];
    char version[TOP_TEXT_BYTES], time[TOP_TEXT_BYTES], store[TOP_TEXT_BYTES];
    size_t topics_count;
    size_t topics_left;                      /* topics that did not fit */
    struct top_topic topics[TOP_TOPICS_MAX]; /* sorted by name */
};

/* Takes a sample. The server counts the timers of its topics after an INFO, and replies with the
 * last count. If that is missing or older than 2.5 s, or older than this call with `is_fresh`, asks
 * again until it is not. Returns 0; an error of the client; or BEL_EINVAL for an error reply, whose
 * text is then in `problem`. */
BEL_CHECKED int bel__top_sample(struct bel_client *client, bool is_fresh, struct top_sample *out,
                                struct bel_why *problem);

/* Returns the smallest bucket bound in us that `thousandths` of the deliveries between two samples
 * do not exceed; TOP_OVER; or TOP_NONE. If `before` is no sample, counts since the server's
 * start. */
uint64_t bel__top_lateness(const struct top_sample *before, const struct top_sample *now,
                           unsigned thousandths);

/* Returns the growth of a count per second; 0 if `before` is no sample. */
double bel__top_rate(const struct top_sample *before, const struct top_sample *now,
                     enum top_count count);

/* Returns the change of the number of unfinished timers of a topic per second. */
double bel__top_change(const struct top_sample *before, const struct top_sample *now,
                       const struct top_topic *topic);

#endif
