/* SPDX-License-Identifier: MIT */

/*
 * The text is Prometheus' exposition format 0.0.4: for each name its help, its type, and lines of
 * `name{label="value"} number`. Times are in seconds. Names of topics are the only text from
 * outside, and have no byte that would need escaping.
 *
 * The first error of an append stays, and what follows is not appended.
 */
#include "metrics/metrics.h"

#include "core/units.h"
#include "metrics/topic_counts.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>

enum {
    CENSUS_MS = 1000, /* one that is younger is not taken again */
};

/* In us: from what a fast disk takes to a minute. */
static const uint64_t bounds_us[BEL_METER_BOUNDS] = {
    50,    100,    250,    500,    1000,    2500,    5000,    10000,    25000,
    50000, 100000, 250000, 500000, 1000000, 2500000, 5000000, 10000000, 60000000,
};

void bel__meter_record(struct bel_meter *meter, uint64_t ns)
{
    unsigned at = 0;
    while (at < BEL_METER_BOUNDS && ns > bounds_us[at] * 1000) {
        at++;
    }
    meter->counts[at]++;
    meter->sum_ns += ns;
}

uint64_t bel__meter_count(const struct bel_meter *meter)
{
    uint64_t count = 0;
    for (unsigned i = 0; i <= BEL_METER_BOUNDS; i++) {
        count += meter->counts[i];
    }
    return count;
}

uint64_t bel__meter_quantile(const struct bel_meter *meter, unsigned thousandths)
{
    assert(thousandths <= 1000);
    uint64_t count = bel__meter_count(meter), below = 0;
    if (count == 0) return 0;
    for (unsigned i = 0; i < BEL_METER_BOUNDS; i++) {
        below += meter->counts[i];
        if (below * 1000 >= count * thousandths) return bounds_us[i] * 1000;
    }
    return UINT64_MAX;
}

int bel__metrics_init(struct bel_metrics *metrics)
{
    *metrics = (struct bel_metrics){0};
    return bel__topic_counts_create(&metrics->census);
}

void bel__metrics_finish(struct bel_metrics *metrics)
{
    bel__topic_counts_destroy(metrics->census);
    metrics->census = NULL;
}

void bel__metrics_count_http(struct bel_metrics *metrics, unsigned status)
{
    unsigned digit = status / 100;
    assert(digit >= 1 && digit <= BEL_HTTP_CLASSES);
    metrics->http_requests[digit - 1]++;
}

const char *bel__skip_name(enum bel_engine_skip skip)
{
    static const char *const names[] = {
        [BEL_ENGINE_SKIP_MISFIRE] = "misfire",
        [BEL_ENGINE_SKIP_OVERLAP] = "overlap",
        [BEL_ENGINE_SKIP_QUEUE] = "queue",
        [BEL_ENGINE_SKIP_KNOWN] = "known",
    };
    assert(skip < BEL_ENGINE_SKIPS);
    return names[skip];
}

void bel__metrics_begin(struct bel_metrics *metrics, struct bel_mono now)
{
    struct bel_mono taken;
    assert(metrics->backend != NULL);
    if (bel__topic_counts_is_under_way(metrics->census)) return;
    if (bel__topic_counts_taken(metrics->census, &taken) &&
        now.ns - taken.ns < (uint64_t)CENSUS_MS * NS_PER_MS) {
        return;
    }
    bel__topic_counts_begin(metrics->census, metrics->backend, now);
}

bool bel__metrics_is_ready(const struct bel_metrics *metrics)
{
    return !bel__topic_counts_is_under_way(metrics->census);
}

bool bel__metrics_sums(const struct bel_metrics *metrics, struct bel_topic_counts_sums *out,
                       struct bel_mono *taken)
{
    struct bel_topic_counts_sums sums = {0};
    size_t count;
    if (!bel__topic_counts_taken(metrics->census, taken)) return false;
    const struct bel_topic_counts_topic *topics =
        bel__topic_counts_topics(metrics->census, &count, &sums.topics);
    for (size_t i = 0; i < count; i++) {
        for (unsigned state = 0; state < BEL_STATES; state++) {
            sums.counts[state] += topics[i].counts[state];
        }
        sums.plans += topics[i].plans;
        if (topics[i].oldest_age_ms > sums.oldest_age_ms) {
            sums.oldest_age_ms = topics[i].oldest_age_ms;
        }
    }
    *out = sums;
    return true;
}

/* --- the text --- */

struct page {
    struct bel_buffer *out;
    int err;
};

__attribute__((format(printf, 2, 3))) static void line(struct page *page, const char *format, ...)
{
    va_list args;
    if (page->err != 0) return;
    va_start(args, format);
    page->err = bel__buffer_append_vformat(page->out, format, args);
    va_end(args);
}

static void head(struct page *page, const char *name, const char *type, const char *help)
{
    line(page, "# HELP belfry_%s %s\n# TYPE belfry_%s %s\n", name, help, name, type);
}

static void one(struct page *page, const char *name, const char *type, const char *help,
                uint64_t value)
{
    head(page, name, type, help);
    line(page, "belfry_%s %" PRIu64 "\n", name, value);
}

static double seconds(uint64_t ns)
{
    return (double)ns / 1e9;
}

static void meter(struct page *page, const char *name, const char *help,
                  const struct bel_meter *meter)
{
    uint64_t below = 0;
    head(page, name, "histogram", help);
    for (unsigned i = 0; i < BEL_METER_BOUNDS; i++) {
        below += meter->counts[i];
        line(page, "belfry_%s_bucket{le=\"%g\"} %" PRIu64 "\n", name, seconds(bounds_us[i] * 1000),
             below);
    }
    uint64_t count = bel__meter_count(meter);
    line(page, "belfry_%s_bucket{le=\"+Inf\"} %" PRIu64 "\n", name, count);
    line(page, "belfry_%s_sum %.9f\nbelfry_%s_count %" PRIu64 "\n", name, seconds(meter->sum_ns),
         name, count);
}

static void verbs(struct page *page, const char *name, const char *help, const uint64_t *counts)
{
    head(page, name, "counter", help);
    for (unsigned verb = 0; verb < BEL_VERBS; verb++) {
        line(page, "belfry_%s{verb=\"%s\"} %" PRIu64 "\n", name, bel_verb_name(verb), counts[verb]);
    }
}

static void topic_lines(struct page *page, const struct bel_topic_counts_topic *topics,
                        size_t count)
{
    head(page, "timers", "gauge", "Timers of a topic in a state.");
    for (size_t i = 0; i < count; i++) {
        for (unsigned state = 0; state < BEL_STATES && topics[i].name[0] != 0; state++) {
            line(page, "belfry_timers{topic=\"%s\",state=\"%s\"} %" PRIu64 "\n", topics[i].name,
                 bel_state_name(state), topics[i].counts[state]);
        }
    }
    head(page, "oldest_due_age_seconds", "gauge",
         "How long the first timer of a topic that is ready has been due.");
    for (size_t i = 0; i < count; i++) {
        if (topics[i].name[0] == 0) continue;
        line(page, "belfry_oldest_due_age_seconds{topic=\"%s\"} %.3f\n", topics[i].name,
             (double)topics[i].oldest_age_ms / 1e3);
    }
    head(page, "topic_paused", "gauge", "Whether a topic is paused.");
    for (size_t i = 0; i < count; i++) {
        if (topics[i].name[0] == 0) continue;
        line(page, "belfry_topic_paused{topic=\"%s\"} %d\n", topics[i].name, topics[i].paused);
    }
}

static void census_lines(struct page *page, const struct bel_topic_counts *census,
                         struct bel_mono now)
{
    struct bel_mono taken;
    size_t count;
    uint64_t all;
    const struct bel_topic_counts_topic *topics = bel__topic_counts_topics(census, &count, &all);
    if (!bel__topic_counts_taken(census, &taken)) return;
    one(page, "topics", "gauge", "Topics.", all);
    one(page, "topics_left_out", "gauge", "Topics that are counted but not listed here.",
        all - count);
    head(page, "census_age_seconds", "gauge", "How old the numbers of topics are.");
    line(page, "belfry_census_age_seconds %.3f\n", seconds(now.ns - taken.ns));
    topic_lines(page, topics, count);
}

static void engine_lines(struct page *page, const struct bel_engine_stats *stats)
{
    one(page, "leases_lost_total", "counter", "Leases that ended without a word.",
        stats->leases_lost);
    one(page, "leases_lapsed_total", "counter",
        "Leases that did so soon after a start, which counts no crash.", stats->leases_lapsed);
    head(page, "plan_skips_total", "counter", "Times of plans that have made no occurrence.");
    for (unsigned skip = 0; skip < BEL_ENGINE_SKIPS; skip++) {
        line(page, "belfry_plan_skips_total{reason=\"%s\"} %" PRIu64 "\n", bel__skip_name(skip),
             stats->skips[skip]);
    }
    one(page, "disk_low", "gauge", "Whether timers are refused because the disk is nearly full.",
        stats->is_disk_low);
    one(page, "clock_steps_total", "counter", "How often the wall clock was set.",
        stats->clock_steps);
}

static void http_lines(struct page *page, const struct bel_metrics *metrics)
{
    one(page, "http_clients", "gauge", "Connections over HTTP.", metrics->http_clients);
    one(page, "http_clients_accepted_total", "counter", "Connections over HTTP that came.",
        metrics->http_accepted);
    head(page, "http_requests_total", "counter", "Requests over HTTP that were answered.");
    for (unsigned i = 0; i < BEL_HTTP_CLASSES; i++) {
        line(page, "belfry_http_requests_total{status=\"%uxx\"} %" PRIu64 "\n", i + 1,
             metrics->http_requests[i]);
    }
}

int bel__metrics_print(const struct bel_metrics *metrics, struct bel_mono now,
                       struct bel_buffer *out)
{
    struct page page = {.out = out};
    verbs(&page, "commands_total", "Commands answered.", metrics->commands);
    verbs(&page, "command_errors_total", "Commands answered with an error.", metrics->errors);
    one(&page, "deliveries_total", "counter", "Timers handed to workers.", metrics->deliveries);
    meter(&page, "delivery_lateness_seconds", "From due to delivery.", &metrics->lateness);
    meter(&page, "turn_seconds", "Applying, committing and answering what came together.",
          &metrics->turn);
    one(&page, "clients", "gauge", "Clients connected.", metrics->clients);
    one(&page, "clients_max", "gauge", "Clients that may be.", metrics->clients_max);
    one(&page, "clients_accepted_total", "counter", "Clients that came.", metrics->accepted);
    one(&page, "clients_refused_total", "counter", "Clients for whom there was no room.",
        metrics->refused);
    one(&page, "clients_dropped_total", "counter", "Clients that did not read and were closed.",
        metrics->dropped);
    one(&page, "received_bytes_total", "counter", "Bytes read from clients.", metrics->bytes_in);
    one(&page, "sent_bytes_total", "counter", "Bytes written to clients.", metrics->bytes_out);
    http_lines(&page, metrics);
    if (metrics->engine != NULL) engine_lines(&page, metrics->engine);
    census_lines(&page, metrics->census, now);
    return page.err;
}
