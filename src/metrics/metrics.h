/* SPDX-License-Identifier: MIT */
#ifndef BEL_METRICS_METRICS_H
#define BEL_METRICS_METRICS_H

/*
 * metrics - the counters and histograms of a server, and their text for Prometheus.
 *
 * Counters are plain numbers that the server increments as events happen. The numbers of timers per
 * topic are not counted here. A census (topic_counts.h) asks the backend for them:
 *
 *     bel__metrics_begin(metrics, now);               starts a census if the last is too old
 *     ... turns ...
 *     if (bel__metrics_is_ready(metrics)) bel__metrics_print(metrics, now, &text);
 *
 * Printing does not wait: it shows the last complete census, with its age.
 *
 * Threads: only the loop thread may use metrics.
 */

#include "belfry/backend.h"
#include "belfry/stats.h"
#include "core/buffer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    BEL_METER_BOUNDS = 18,
    BEL_TOPIC_COUNTS_TOPICS_MAX = 1000, /* topics with metrics of their own: the first by name */
    BEL_HTTP_CLASSES = 5,
    BEL_ERROR_CODES = 12,
    BEL_RECENT_SLOTS = 12,
    BEL_RECENT_SLOT_MS = 5000,
};

/* A histogram of durations with the buckets of Prometheus. */
struct bel_meter {
    uint64_t counts[BEL_METER_BOUNDS + 1]; /* per bucket; the last is above all bounds */
    uint64_t sum_ns;
};

void bel__meter_record(struct bel_meter *meter, uint64_t ns);

/* Returns the upper bound of a bucket in us, in rising order. */
uint64_t bel__meter_bound_us(unsigned bucket);

/* Returns the number of recorded durations. */
uint64_t bel__meter_count(const struct bel_meter *meter);

/* Returns the smallest bucket bound, in ns, that `thousandths` of the durations do not exceed; 0
 * without any, UINT64_MAX if that bucket has no bound. */
uint64_t bel__meter_quantile(const struct bel_meter *meter, unsigned thousandths);

/* The durations of the last minute: a ring of histograms of five seconds each. Starts zeroed. */
struct bel_recent {
    struct bel_meter slots[BEL_RECENT_SLOTS];
    uint64_t numbers[BEL_RECENT_SLOTS]; /* of the five seconds that a slot counts, from 1 */
};

void bel__recent_record(struct bel_recent *recent, uint64_t ns, struct bel_mono now);

/* Returns the histogram of the last 55 to 60 s. */
struct bel_meter bel__recent_sum(const struct bel_recent *recent, struct bel_mono now);

struct bel_topic_counts; /* private */

/* Checks of the whole tree while the server is running, and the one before its start. */
struct bel_tree_check_stats {
    bool is_running;
    uint64_t done, failed;      /* checks without damage; checks that could not be finished */
    uint64_t pages_done, pages; /* of the running or the last check */
    uint64_t rows;
    uint64_t growth_bytes;     /* by which the file has grown for the snapshot of the check */
    uint64_t growth_bytes_max; /* the most for one snapshot */
    uint64_t snapshots;
    struct bel_mono last_done;
};

/* The connection to a store in other processes. */
struct bel_store_stats {
    bool is_ready;
    uint64_t connections; /* how many times it has become ready */
};

struct bel_metrics {
    uint64_t commands[BEL_VERBS];    /* replies sent, including errors */
    uint64_t errors[BEL_VERBS];      /* error replies, also to requests that the server refused */
    uint64_t codes[BEL_ERROR_CODES]; /* error replies of RESP and HTTP by code */
    uint64_t deliveries;
    uint64_t turns;            /* turns with at least one request */
    struct bel_meter turn;     /* duration of all turns: apply, commit, reply */
    struct bel_meter lateness; /* from due time to delivery */
    struct bel_recent lateness_recent;
    uint64_t clients, clients_max, accepted, refused, dropped;
    uint64_t strangers_dropped;  /* clients without a key: too late, or in the way */
    uint64_t incomplete_dropped; /* requests that stood still before they were complete */
    uint64_t keys_wrong;         /* wrong API keys, over RESP and HTTP */
    uint64_t bytes_in, bytes_out;
    uint64_t http_clients, http_accepted;
    uint64_t http_requests[BEL_HTTP_CLASSES]; /* replies by status class: [0] is 1xx */
    struct bel_tree_check_stats tree_check;
    const struct bel_engine_stats *engine; /* borrowed; NULL: no durable engine */
    const struct bel_store_stats *store;   /* borrowed; NULL: the store is in this process */
    struct bel_backend *backend;           /* borrowed: answers the requests of a census */
    struct bel_topic_counts *census;
};

/* Initializes all counters to 0. Returns 0 or BEL_ENOMEM. */
BEL_CHECKED int bel__metrics_init(struct bel_metrics *metrics);

/* Counts an error reply by its code: "BADARG" and so on. An unknown code counts as "ERR". */
void bel__metrics_count_error(struct bel_metrics *metrics, const char *code);

/* Counts a request for the backend that was refused before the backend saw it. */
void bel__metrics_count_refused(struct bel_metrics *metrics, enum bel_verb verb);

/* Returns the name of a code of `codes`. */
const char *bel__error_code_name(unsigned code);

/* Counts an HTTP reply with this status. */
void bel__metrics_count_http(struct bel_metrics *metrics, unsigned status);

/* Returns why a plan skipped a nominal time, as a label: "misfire", "overlap", "queue", "known". */
const char *bel__skip_name(enum bel_engine_skip skip);

/* Frees the census, which must not be running: the backend has replied, or is destroyed. */
void bel__metrics_finish(struct bel_metrics *metrics);

/* Starts a census, unless one is running or the last is younger than a second. The backend answers
 * it in its next turns. */
void bel__metrics_begin(struct bel_metrics *metrics, struct bel_mono now);

/* Returns whether no census is running. */
bool bel__metrics_is_ready(const struct bel_metrics *metrics);

/* Appends the text for Prometheus to `out`. Returns 0, BEL_EFULL or BEL_ENOMEM; on failure `out`
 * may contain a part of the text. */
BEL_CHECKED int bel__metrics_print(const struct bel_metrics *metrics, struct bel_mono now,
                                   struct bel_buffer *out);

/* Sums over topics of a census. `topics` is their number, `oldest_age_ms` the greatest age. */
struct bel_topic_counts_sums {
    uint64_t counts[BEL_STATES];
    uint64_t plans, topics, oldest_age_ms;
};

/* Returns whether a topic is to be shown. */
typedef bool bel_topic_filter(const void *context, struct bel_view topic);

/* Sets `*out` to the sums of the last complete census, over the listed topics that `has` accepts,
 * and `*taken` to its start. If `has` is NULL, all are accepted, and `topics` also counts the
 * topics that are not listed. Returns false if there was no census yet. */
bool bel__metrics_sums(const struct bel_metrics *metrics, bel_topic_filter *has,
                       const void *context, struct bel_topic_counts_sums *out,
                       struct bel_mono *taken);

#endif
