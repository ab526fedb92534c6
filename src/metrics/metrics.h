/* SPDX-License-Identifier: MIT */
#ifndef BEL_METRICS_METRICS_H
#define BEL_METRICS_METRICS_H

/*
 * metrics - what a server has counted and measured, and its text for Prometheus.
 *
 * Counters are plain numbers that others add to as things happen. How deep topics are is not
 * counted here but asked of the backend, by a census:
 *
 *     bel__metrics_begin(metrics, now);               unless one is young enough
 *     ... turns ...
 *     if (bel__metrics_is_ready(metrics)) bel__metrics_print(metrics, now, &text);
 *
 * Printing does not wait: without a census it shows the last one, with its age.
 *
 * Threads: all of it belongs to the thread of the loop.
 */

#include "belfry/backend.h"
#include "belfry/stats.h"
#include "core/buffer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    BEL_METER_BOUNDS = 18,
    BEL_TOPIC_COUNTS_TOPICS_MAX = 1000, /* the first by name; the others are only counted */
    BEL_HTTP_CLASSES = 5,
};

/* How long something took, or how late it was: a histogram as Prometheus has them. */
struct bel_meter {
    uint64_t counts[BEL_METER_BOUNDS + 1]; /* the last is for what is over all bounds */
    uint64_t sum_ns;
};

void bel__meter_record(struct bel_meter *meter, uint64_t ns);

/* The count of all, and a bound that `thousandths` of them do not exceed, in ns. */
uint64_t bel__meter_count(const struct bel_meter *meter);
uint64_t bel__meter_quantile(const struct bel_meter *meter, unsigned thousandths);

struct bel_topic_counts; /* private */

struct bel_metrics {
    uint64_t commands[BEL_VERBS]; /* answered, and how many of them with an error */
    uint64_t errors[BEL_VERBS];
    uint64_t deliveries;
    uint64_t turns;            /* that had something to do */
    struct bel_meter turn;     /* how long those took: apply, commit, answer */
    struct bel_meter lateness; /* from due to delivery */
    uint64_t clients, clients_max, accepted, refused, dropped;
    uint64_t bytes_in, bytes_out;
    uint64_t http_clients, http_accepted;
    uint64_t http_requests[BEL_HTTP_CLASSES]; /* answered, by the first digit of the status, - 1 */
    const struct bel_engine_stats *engine;    /* borrowed; NULL: there is none */
    struct bel_backend *backend;              /* borrowed: whom a census asks */
    struct bel_topic_counts *census;
};

/* Makes metrics with all counters at 0. Returns 0 or BEL_ENOMEM. */
BEL_CHECKED int bel__metrics_init(struct bel_metrics *metrics);

/* A request over HTTP was answered. */
void bel__metrics_count_http(struct bel_metrics *metrics, unsigned status);

/* "misfire" and so on. */
const char *bel__skip_name(enum bel_engine_skip skip);

/* Releases what they have. There is no census under way: the backend has answered, or is gone. */
void bel__metrics_finish(struct bel_metrics *metrics);

/* Begins a census, unless one is under way or the last is younger than a second. Needs turns. */
void bel__metrics_begin(struct bel_metrics *metrics, struct bel_mono now);

/* Whether none is under way. */
bool bel__metrics_is_ready(const struct bel_metrics *metrics);

/* Appends the text for Prometheus. Returns 0, BEL_EFULL or BEL_ENOMEM; then part of it may be
 * there. */
BEL_CHECKED int bel__metrics_print(const struct bel_metrics *metrics, struct bel_mono now,
                                   struct bel_buffer *out);

/* The sums over the topics of the last census: by state, of plans; how many topics there are. */
struct bel_topic_counts_sums {
    uint64_t counts[BEL_STATES];
    uint64_t plans, topics, oldest_age_ms;
};

/* Sets both: what was found, and when it was begun. False if there was no census. */
bool bel__metrics_sums(const struct bel_metrics *metrics, struct bel_topic_counts_sums *out,
                       struct bel_mono *taken);

#endif
