/* SPDX-License-Identifier: MIT */

/*
 * The text is in Prometheus' exposition format 0.0.4: for each metric its help, its type, and lines
 * of `name{label="value"} number`. Times are in seconds. Topic names are the only text chosen by
 * clients; they cannot contain a byte that needs escaping.
 *
 * The first failed append is remembered; later appends do nothing.
 */
#include "metrics/metrics.h"

#include "core/units.h"
#include "metrics/topic_counts.h"
#include "metrics/work_print.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

enum {
    CENSUS_MS = 250, /* minimum interval between two censuses */
};

/* Upper bounds of the buckets in us: from a commit on a fast disk to a minute. */
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

uint64_t bel__meter_bound_us(unsigned bucket)
{
    assert(bucket < BEL_METER_BOUNDS);
    return bounds_us[bucket];
}

/* Returns the number of the five seconds that a time is in, from 1. */
static uint64_t slot_number(struct bel_mono now)
{
    return now.ns / ((uint64_t)BEL_RECENT_SLOT_MS * NS_PER_MS) + 1;
}

void bel__recent_record(struct bel_recent *recent, uint64_t ns, struct bel_mono now)
{
    uint64_t number = slot_number(now);
    size_t at = number % BEL_RECENT_SLOTS;
    if (recent->numbers[at] != number) {
        recent->slots[at] = (struct bel_meter){0};
        recent->numbers[at] = number;
    }
    bel__meter_record(&recent->slots[at], ns);
}

struct bel_meter bel__recent_sum(const struct bel_recent *recent, struct bel_mono now)
{
    struct bel_meter sum = {0};
    uint64_t number = slot_number(now);
    for (size_t i = 0; i < BEL_RECENT_SLOTS; i++) {
        if (recent->numbers[i] + BEL_RECENT_SLOTS <= number) continue;
        for (size_t bucket = 0; bucket <= BEL_METER_BOUNDS; bucket++) {
            sum.counts[bucket] += recent->slots[i].counts[bucket];
        }
        sum.sum_ns += recent->slots[i].sum_ns;
    }
    return sum;
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

static const char *const codes[BEL_ERROR_CODES] = {
    "BADARG", "CONFLICT", "ERR",     "EXECABORT", "FULL",  "IO",
    "NOAUTH", "NOPERM",   "NOPROTO", "NOTFOUND",  "STALE", "UNSUPPORTED",
};

const char *bel__error_code_name(unsigned code)
{
    assert(code < BEL_ERROR_CODES);
    return codes[code];
}

void bel__metrics_count_error(struct bel_metrics *metrics, const char *code)
{
    unsigned at = 0, other = 2;
    assert(strcmp(codes[other], "ERR") == 0);
    while (at < BEL_ERROR_CODES && strcmp(codes[at], code) != 0) {
        at++;
    }
    metrics->codes[at < BEL_ERROR_CODES ? at : other]++;
}

void bel__metrics_count_refused(struct bel_metrics *metrics, enum bel_verb verb)
{
    metrics->commands[verb]++;
    metrics->errors[verb]++;
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
        [BEL_ENGINE_SKIP_MISFIRE] = "misfire", [BEL_ENGINE_SKIP_OVERLAP] = "overlap",
        [BEL_ENGINE_SKIP_QUEUE] = "queue",     [BEL_ENGINE_SKIP_KNOWN] = "known",
        [BEL_ENGINE_SKIP_PAUSED] = "paused",
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

bool bel__metrics_sums(const struct bel_metrics *metrics, bel_topic_filter *has,
                       const void *context, struct bel_topic_counts_sums *out,
                       struct bel_mono *taken)
{
    struct bel_topic_counts_sums sums = {0};
    size_t count;
    uint64_t all;
    if (!bel__topic_counts_taken(metrics->census, taken)) return false;
    const struct bel_topic_counts_topic *topics =
        bel__topic_counts_topics(metrics->census, &count, &all);
    for (size_t i = 0; i < count; i++) {
        struct bel_view name = {topics[i].name, strlen(topics[i].name)};
        if (name.bytes == 0 || (has != NULL && !has(context, name))) continue;
        sums.topics++;
        for (unsigned state = 0; state < BEL_STATES; state++) {
            sums.counts[state] += topics[i].counts[state];
        }
        sums.plans += topics[i].plans;
        if (topics[i].oldest_age_ms > sums.oldest_age_ms) {
            sums.oldest_age_ms = topics[i].oldest_age_ms;
        }
    }
    if (has == NULL) sums.topics = all;
    *out = sums;
    return true;
}

/* --- the text --- */

struct page {
    struct bel_buffer *out;
    int err;
};

__attribute__((format(printf, 2, 3))) static void write_line(struct page *page, const char *format,
                                                             ...)
{
    va_list args;
    if (page->err != 0) return;
    va_start(args, format);
    page->err = bel__buffer_append_vformat(page->out, format, args);
    va_end(args);
}

static void write_head(struct page *page, const char *name, const char *type, const char *help)
{
    write_line(page, "# HELP belfry_%s %s\n# TYPE belfry_%s %s\n", name, help, name, type);
}

static void write_metric(struct page *page, const char *name, const char *type, const char *help,
                         uint64_t value)
{
    write_head(page, name, type, help);
    write_line(page, "belfry_%s %" PRIu64 "\n", name, value);
}

static double seconds(uint64_t ns)
{
    return (double)ns / 1e9;
}

static void write_meter(struct page *page, const char *name, const char *help,
                        const struct bel_meter *meter)
{
    uint64_t below = 0;
    write_head(page, name, "histogram", help);
    for (unsigned i = 0; i < BEL_METER_BOUNDS; i++) {
        below += meter->counts[i];
        write_line(page, "belfry_%s_bucket{le=\"%g\"} %" PRIu64 "\n", name,
                   seconds(bounds_us[i] * 1000), below);
    }
    uint64_t count = bel__meter_count(meter);
    write_line(page, "belfry_%s_bucket{le=\"+Inf\"} %" PRIu64 "\n", name, count);
    write_line(page, "belfry_%s_sum %.9f\nbelfry_%s_count %" PRIu64 "\n", name,
               seconds(meter->sum_ns), name, count);
}

static void write_verbs(struct page *page, const char *name, const char *help,
                        const uint64_t *counts)
{
    write_head(page, name, "counter", help);
    for (unsigned verb = 0; verb < BEL_VERBS; verb++) {
        write_line(page, "belfry_%s{verb=\"%s\"} %" PRIu64 "\n", name, bel_verb_name(verb),
                   counts[verb]);
    }
}

static void write_topics(struct page *page, const struct bel_topic_counts_topic *topics,
                         size_t count)
{
    write_head(page, "timers", "gauge", "Timers of a topic in a state.");
    for (size_t i = 0; i < count; i++) {
        for (unsigned state = 0; state < BEL_STATES && topics[i].name[0] != 0; state++) {
            write_line(page, "belfry_timers{topic=\"%s\",state=\"%s\"} %" PRIu64 "\n",
                       topics[i].name, bel_state_name(state), topics[i].counts[state]);
        }
    }
    write_head(page, "timers_waiting", "gauge", "Timers of a topic, by what they wait for.");
    for (size_t i = 0; i < count; i++) {
        for (unsigned wait = 0; wait < BEL_WAITS && topics[i].name[0] != 0; wait++) {
            write_line(page, "belfry_timers_waiting{topic=\"%s\",reason=\"%s\"} %" PRIu64 "\n",
                       topics[i].name, bel_wait_name(wait), topics[i].waiting[wait]);
        }
    }
    write_head(page, "oldest_due_age_seconds", "gauge",
               "Time since the oldest ready timer of a topic became due.");
    for (size_t i = 0; i < count; i++) {
        if (topics[i].name[0] == 0) continue;
        write_line(page, "belfry_oldest_due_age_seconds{topic=\"%s\"} %.3f\n", topics[i].name,
                   (double)topics[i].oldest_age_ms / 1e3);
    }
    write_head(page, "topic_paused", "gauge", "Whether a topic is paused.");
    for (size_t i = 0; i < count; i++) {
        if (topics[i].name[0] == 0) continue;
        write_line(page, "belfry_topic_paused{topic=\"%s\"} %d\n", topics[i].name,
                   topics[i].paused);
    }
}

static void write_census(struct page *page, const struct bel_topic_counts *census,
                         struct bel_mono now)
{
    struct bel_mono taken;
    size_t count;
    uint64_t all;
    const struct bel_topic_counts_topic *topics = bel__topic_counts_topics(census, &count, &all);
    if (!bel__topic_counts_taken(census, &taken)) return;
    write_metric(page, "topics", "gauge", "Number of topics.", all);
    write_metric(page, "topics_left_out", "gauge", "Topics without metrics of their own.",
                 all - count);
    write_head(page, "census_age_seconds", "gauge", "Age of the numbers per topic.");
    write_line(page, "belfry_census_age_seconds %.3f\n", seconds(now.ns - taken.ns));
    write_topics(page, topics, count);
}

static void write_codes(struct page *page, const struct bel_metrics *metrics)
{
    write_head(page, "errors_total", "counter", "Error replies, over RESP and HTTP, by code.");
    for (unsigned i = 0; i < BEL_ERROR_CODES; i++) {
        write_line(page, "belfry_errors_total{code=\"%s\"} %" PRIu64 "\n", codes[i],
                   metrics->codes[i]);
    }
}

static void write_recent(struct page *page, const struct bel_meter *meter)
{
    static const unsigned thousandths[] = {500, 990, 999};
    write_metric(page, "deliveries_last_minute", "gauge",
                 "Timers delivered to workers in the last minute.", bel__meter_count(meter));
    write_head(page, "delivery_lateness_last_minute_seconds", "gauge",
               "Time from due to delivery in the last minute: upper bounds of quantiles.");
    for (size_t i = 0; i < sizeof thousandths / sizeof thousandths[0]; i++) {
        uint64_t ns = bel__meter_quantile(meter, thousandths[i]);
        write_line(page, "belfry_delivery_lateness_last_minute_seconds{quantile=\"%g\"} ",
                   thousandths[i] / 1000.0);
        if (ns == UINT64_MAX) {
            write_line(page, "+Inf\n");
        } else {
            write_line(page, "%g\n", seconds(ns));
        }
    }
}

static void write_pressure(struct page *page, const struct bel_pressure_state *state)
{
    write_metric(page, "pressure_level", "gauge",
                 "Pressure: 0 none, 1 low, 2 medium, 3 high, 4 critical.", state->level);
    write_head(page, "pressure_cause_level", "gauge", "Level of one cause of pressure.");
    for (unsigned i = 0; i < BEL_PRESSURE_CAUSES; i++) {
        write_line(page, "belfry_pressure_cause_level{cause=\"%s\"} %d\n",
                   bel_pressure_cause_name(i), (int)state->levels[i]);
    }
    write_head(page, "pressure_use_ratio", "gauge",
               "Used part of a limit; NaN without a limit or if it cannot be measured.");
    for (unsigned i = 0; i < BEL_PRESSURE_CAUSES; i++) {
        const struct bel_pressure_use *use = &state->uses[i];
        const char *name = bel_pressure_cause_name(i);
        if (use->limit == 0 || use->is_unreadable) {
            write_line(page, "belfry_pressure_use_ratio{cause=\"%s\"} NaN\n", name);
            continue;
        }
        write_line(page, "belfry_pressure_use_ratio{cause=\"%s\"} %.4f\n", name,
                   (double)use->used / (double)use->limit);
    }
    write_metric(page, "pressure_changes_total", "counter", "Changes of the level of pressure.",
                 state->changes);
    write_metric(page, "pressure_refusals_total", "counter",
                 "Requests refused because the pressure was critical.", state->refusals);
    write_metric(page, "memory_used_bytes", "gauge", "Memory allocated for data and requests.",
                 state->uses[BEL_PRESSURE_MEMORY].used);
    write_metric(page, "memory_limit_bytes", "gauge", "Memory that counts as all (--memory).",
                 state->uses[BEL_PRESSURE_MEMORY].limit);
}

static void write_engine(struct page *page, const struct bel_engine_stats *stats)
{
    write_pressure(page, &stats->pressure);
    write_metric(page, "timers_dead_total", "counter", "Timers that became dead.", stats->dead);
    write_metric(page, "timers_expired_total", "counter",
                 "Timers that expired before they were claimed.", stats->expired);
    write_metric(page, "leases_lost_total", "counter",
                 "Leases that expired without a report from the worker.", stats->leases_lost);
    write_metric(
        page, "leases_lapsed_total", "counter",
        "Leases that expired soon after a server start; the attempt is not counted as a crash.",
        stats->leases_lapsed);
    write_head(page, "plan_skips_total", "counter",
               "Nominal times of plans without an occurrence.");
    for (unsigned skip = 0; skip < BEL_ENGINE_SKIPS; skip++) {
        write_line(page, "belfry_plan_skips_total{reason=\"%s\"} %" PRIu64 "\n",
                   bel__skip_name(skip), stats->skips[skip]);
    }
    write_metric(page, "disk_low", "gauge",
                 "1 if new timers are refused because the disk is nearly full.",
                 stats->is_disk_low);
    write_metric(page, "clock_steps_total", "counter", "Steps of the wall clock.",
                 stats->clock_steps);
}

static void write_tree_check(struct page *page, const struct bel_tree_check_stats *stats,
                             struct bel_mono now)
{
    write_metric(page, "tree_checks_total", "counter", "Checks of the whole tree without damage.",
                 stats->done);
    write_metric(page, "tree_checks_failed_total", "counter",
                 "Checks of the tree that could not be finished.", stats->failed);
    write_metric(page, "tree_check_running", "gauge", "1 while the tree is being checked.",
                 stats->is_running);
    write_metric(page, "tree_check_pages", "gauge", "Pages of the running or last check.",
                 stats->pages);
    write_metric(page, "tree_check_pages_done", "gauge", "Pages of it that have been checked.",
                 stats->pages_done);
    write_metric(page, "tree_check_growth_bytes", "gauge",
                 "Bytes by which the tree has grown for the snapshot of the running check.",
                 stats->growth_bytes);
    write_head(page, "tree_check_age_seconds", "gauge", "Time since the last check of the tree.");
    if (stats->done == 0) {
        write_line(page, "belfry_tree_check_age_seconds NaN\n");
        return;
    }
    write_line(page, "belfry_tree_check_age_seconds %.3f\n",
               seconds(now.ns > stats->last_done.ns ? now.ns - stats->last_done.ns : 0));
}

static void write_store(struct page *page, const struct bel_store_stats *stats)
{
    write_metric(page, "store_ready", "gauge", "1 while the servers of the store can be reached.",
                 stats->is_ready);
    write_metric(page, "store_connections_total", "counter",
                 "Times that the servers of the store could be reached again.", stats->connections);
}

static void write_http(struct page *page, const struct bel_metrics *metrics)
{
    write_metric(page, "http_clients", "gauge", "Open HTTP connections.", metrics->http_clients);
    write_metric(page, "http_clients_accepted_total", "counter", "HTTP connections accepted.",
                 metrics->http_accepted);
    write_head(page, "http_requests_total", "counter", "HTTP requests answered, by status class.");
    for (unsigned i = 0; i < BEL_HTTP_CLASSES; i++) {
        write_line(page, "belfry_http_requests_total{status=\"%uxx\"} %" PRIu64 "\n", i + 1,
                   metrics->http_requests[i]);
    }
}

int bel__metrics_print(const struct bel_metrics *metrics, struct bel_mono now,
                       struct bel_buffer *out)
{
    struct page page = {.out = out};
    write_verbs(&page, "commands_total", "Commands answered.", metrics->commands);
    write_verbs(&page, "command_errors_total", "Commands answered with an error.", metrics->errors);
    write_codes(&page, metrics);
    write_metric(&page, "deliveries_total", "counter", "Timers delivered to workers.",
                 metrics->deliveries);
    write_meter(&page, "delivery_lateness_seconds", "Time from due to delivery.",
                &metrics->lateness);
    struct bel_meter recent = bel__recent_sum(&metrics->lateness_recent, now);
    write_recent(&page, &recent);
    write_meter(&page, "turn_seconds",
                "Duration of a turn: requests, due timers and work for jobs; commit and replies.",
                &metrics->turn);
    write_metric(&page, "clients", "gauge", "Open connections.", metrics->clients);
    write_metric(&page, "clients_max", "gauge", "Maximum number of open connections.",
                 metrics->clients_max);
    write_metric(&page, "clients_accepted_total", "counter", "Connections accepted.",
                 metrics->accepted);
    write_metric(&page, "clients_refused_total", "counter",
                 "Connections refused: too many, or out of memory.", metrics->refused);
    write_metric(&page, "clients_dropped_total", "counter",
                 "Connections closed because the client did not read its replies.",
                 metrics->dropped);
    write_metric(&page, "clients_unauthenticated_dropped_total", "counter",
                 "Connections closed because the client sent no right key in time.",
                 metrics->strangers_dropped);
    write_metric(&page, "clients_incomplete_dropped_total", "counter",
                 "Connections closed because a request was incomplete and stood still.",
                 metrics->incomplete_dropped);
    write_metric(&page, "wrong_keys_total", "counter", "Wrong API keys received.",
                 metrics->keys_wrong);
    write_metric(&page, "received_bytes_total", "counter", "Bytes read from clients.",
                 metrics->bytes_in);
    write_metric(&page, "sent_bytes_total", "counter", "Bytes written to clients.",
                 metrics->bytes_out);
    write_http(&page, metrics);
    if (metrics->engine != NULL) write_engine(&page, metrics->engine);
    if (metrics->engine != NULL) write_tree_check(&page, &metrics->tree_check, now);
    if (metrics->store != NULL) write_store(&page, metrics->store);
    write_census(&page, metrics->census, now);
    if (page.err != 0) return page.err;
    if (metrics->engine == NULL) return bel__work_print_counts(metrics->census, out);
    return bel__work_print(metrics->census, metrics->engine, out);
}
