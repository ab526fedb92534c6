/* SPDX-License-Identifier: MIT */

/*
 * belfry bench: parses the arguments, runs the phases in turn and prints the results. The timers of
 * the bench are purged at the end, also after an error or a signal, but not after SIGKILL.
 */
#include "cli/bench.h"

#include "cli/options.h"
#include "cli/print.h"
#include "cli/progress.h"
#include "core/units.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum {
    TIMERS_DEFAULT = 100000,
    TIMERS_MAX = 100000000,
    BYTES_DEFAULT = 100,
    BYTES_MAX = 64 << 20,
    CONNECTIONS_DEFAULT = 4,
    CONNECTIONS_MAX = 1000,
    PIPELINE_DEFAULT = 64,
    PIPELINE_MAX = 10000,
    QUANTILES = 4,
    SPAN_BYTES = 32,
};

static const char usage[] =
    "usage: belfry bench [OPTION ...]\n"
    "\n"
    "Measures a running server: schedules timers that are due, claims and acks them,\n"
    "schedules timers for later and cancels them. Uses the topics bench/due and\n"
    "bench/later. Both must be empty; they are purged at the end, also after ^C.\n"
    "\n"
    "    -n, --timers N      number of timers (default 100000)\n"
    "    -b, --bytes N       size of a payload in bytes (default 100)\n"
    "    -c, --connections N number of connections (default 4)\n"
    "    -p, --pipeline N    commands in flight per connection (default 64)\n"
    "    --name NAME         use the topics bench/NAME/due and bench/NAME/later\n"
    "    --purge             only delete the timers of a bench that was killed\n";

static const struct {
    const char *name;
    uint32_t millionths;
} quantiles[QUANTILES] = {{"p50", 500000}, {"p90", 900000}, {"p99", 990000}, {"p999", 999000}};

static const char *const rows[BENCH_ROWS] = {[BENCH_ROW_SCHEDULE] = "schedule",
                                             [BENCH_ROW_CLAIM] = "claim",
                                             [BENCH_ROW_ACK] = "ack",
                                             [BENCH_ROW_LATER] = "schedule_later",
                                             [BENCH_ROW_CANCEL] = "cancel"};

/* --- arguments --- */

static int read_arguments(struct bench_settings *settings, bool *only_purges, int argc, char **argv)
{
    const char *name = NULL;
    const struct cli_option items[] = {
        {"timers", 'n', CLI_OPTION_NUMBER, 1, TIMERS_MAX, {.number = &settings->timers}},
        {"bytes", 'b', CLI_OPTION_NUMBER, 0, BYTES_MAX, {.number = &settings->bytes}},
        {"connections",
         'c',
         CLI_OPTION_NUMBER,
         1,
         CONNECTIONS_MAX,
         {.number = &settings->connections}},
        {"pipeline", 'p', CLI_OPTION_NUMBER, 1, PIPELINE_MAX, {.number = &settings->pipeline}},
        {"name", 0, CLI_OPTION_TEXT, 0, 0, {.text = &name}},
        {"purge", 0, CLI_OPTION_FLAG, 0, 0, {.flag = only_purges}},
    };
    struct cli_options options = {.verb = argv[0],
                                  .usage = usage,
                                  .items = items,
                                  .count = sizeof items / sizeof items[0],
                                  .connect = &settings->connect};
    int status = bel__options_read(&options, argc, argv);
    if (status >= 0) return status;
    /* The server validates the topic names. Only the length is checked here. */
    const char *slash = name != NULL ? "/" : "";
    if (name == NULL) name = "";
    int bytes = snprintf(settings->later, sizeof settings->later, "bench%s%s/later", slash, name);
    if (bytes < 0 || (size_t)bytes >= sizeof settings->later) {
        return bel__options_complain(argv[0], "--name %.20s... is too long for a topic name", name);
    }
    (void)snprintf(settings->due, sizeof settings->due, "bench%s%s/due", slash, name);
    if (settings->connections > settings->timers) settings->connections = settings->timers;
    return -1;
}

/* --- output --- */

static double per_second(const struct bench_result *result)
{
    double elapsed = (double)(result->elapsed_ns > 0 ? result->elapsed_ns : 1);
    return (double)result->count * NS_PER_S / elapsed;
}

/* Prints a duration as "12.3 ms". Returns `out`. */
static const char *print_span(char out[SPAN_BYTES], uint64_t ns)
{
    static const struct {
        uint64_t unit_ns;
        const char *name;
    } units[] = {{NS_PER_S, "s"}, {NS_PER_MS, "ms"}, {NS_PER_US, "us"}};
    unsigned i = 0;
    while (i < 2 && ns < units[i].unit_ns) {
        i++;
    }
    double value = (double)ns / (double)units[i].unit_ns;
    (void)snprintf(out, SPAN_BYTES, "%.*f %s",
                   value < 10    ? 2
                   : value < 100 ? 1
                                 : 0,
                   value, units[i].name);
    return out;
}

static void print_row(const char *name, const struct bench_result *result)
{
    char count[CLI_GROUPED_BYTES], rate[CLI_GROUPED_BYTES], span[SPAN_BYTES];
    printf("%-14s %11s %11s", name, bel__cli_grouped(result->count, count),
           bel__cli_grouped((uint64_t)per_second(result), rate));
    for (unsigned i = 0; i < QUANTILES; i++) {
        uint64_t ns = bel__histogram_quantile(&result->latency_ns, quantiles[i].millionths);
        printf(" %8s", print_span(span, ns));
    }
    printf("\n");
}

/* Prints tab-separated columns: name, count, per second, then latencies in microseconds. */
static void print_line(const char *name, const struct bench_result *result)
{
    printf("%s\t%" PRIu64 "\t%.0f", name, result->count, per_second(result));
    for (unsigned i = 0; i < QUANTILES; i++) {
        uint64_t ns = bel__histogram_quantile(&result->latency_ns, quantiles[i].millionths);
        printf("\t%" PRIu64, ns / NS_PER_US);
    }
    printf("\t%" PRIu64 "\n", bel__histogram_max(&result->latency_ns) / NS_PER_US);
}

static void print_member(const char *name, const struct bench_result *result, bool is_first)
{
    printf("%s\"%s\": {\"count\": %" PRIu64 ", \"seconds\": %.6f, \"per_second\": %.1f, "
           "\"latency_us\": {",
           is_first ? "" : ", ", name, result->count, (double)result->elapsed_ns / NS_PER_S,
           per_second(result));
    for (unsigned i = 0; i < QUANTILES; i++) {
        uint64_t ns = bel__histogram_quantile(&result->latency_ns, quantiles[i].millionths);
        printf("\"%s\": %.1f, ", quantiles[i].name, (double)ns / NS_PER_US);
    }
    printf("\"max\": %.1f}}", (double)bel__histogram_max(&result->latency_ns) / NS_PER_US);
}

static void print_json(const struct bench_settings *settings, const struct bench_result *results,
                       uint64_t purged)
{
    bool is_first = true;
    printf("{\"server\": ");
    bel__cli_print_json(bel__connect_address(&settings->connect));
    printf(", \"timers\": %" PRIu64 ", \"bytes\": %" PRIu64 ", \"connections\": %" PRIu64
           ", \"pipeline\": %" PRIu64 ", \"purged\": %" PRIu64 ", \"results\": {",
           settings->timers, settings->bytes, settings->connections, settings->pipeline, purged);
    for (int i = 0; i < BENCH_ROWS; i++) {
        if (results[i].count == 0) continue;
        print_member(rows[i], &results[i], is_first);
        is_first = false;
    }
    printf("}}\n");
}

static void print_results(const struct bench_settings *settings, const struct bench_result *results,
                          uint64_t purged)
{
    bool is_table = bel__cli_is_terminal();
    if (settings->connect.is_json) {
        print_json(settings, results, purged);
        return;
    }
    if (is_table) {
        printf("%-14s %11s %11s %8s %8s %8s %8s\n", "", "TIMERS", "PER SECOND", "P50", "P90", "P99",
               "P99.9");
    }
    for (int i = 0; i < BENCH_ROWS; i++) {
        if (results[i].count == 0) continue;
        if (is_table) {
            print_row(rows[i], &results[i]);
        } else {
            print_line(rows[i], &results[i]);
        }
    }
}

/* --- the run --- */

static int run_phases(const struct bench_settings *settings, const sigset_t *signals,
                      struct bench_result results[BENCH_ROWS], bool *out_is_told)
{
    struct bench *bench;
    int status = bel__bench_open(settings, &bench);
    if (status != CLI_OK) return status;
    for (int i = 0; i < BENCH_PHASES && status == CLI_OK && !*out_is_told; i++) {
        status = bel__bench_run(bench, (enum bench_phase)i, signals, results, out_is_told);
    }
    bel__bench_close(bench);
    return status;
}

/* Runs the bench. Purges the topics whether the run succeeds or not. */
static int measure(const struct bench_settings *settings)
{
    static struct bench_result results[BENCH_ROWS]; /* large */
    uint64_t purged = 0;
    bool is_told = false;
    sigset_t signals;
    int status = bel__bench_check(settings);
    if (status != CLI_OK) return status;
    for (int i = 0; i < BENCH_ROWS; i++) {
        bel__histogram_init(&results[i].latency_ns);
    }
    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGINT);
    (void)sigaddset(&signals, SIGTERM);
    (void)sigaddset(&signals, SIGHUP);
    (void)pthread_sigmask(SIG_BLOCK, &signals, NULL);
    status = run_phases(settings, &signals, results, &is_told);
    int purge_status = bel__bench_purge(settings, &purged);
    print_results(settings, results, purged);
    if (is_told) fprintf(stderr, "belfry: stopped by a signal before the end\n");
    if (status != CLI_OK) return status;
    return is_told ? CLI_FAILED : purge_status;
}

int bel__cli_bench(int argc, char **argv)
{
    struct bench_settings settings = {.timers = TIMERS_DEFAULT,
                                      .bytes = BYTES_DEFAULT,
                                      .connections = CONNECTIONS_DEFAULT,
                                      .pipeline = PIPELINE_DEFAULT};
    bool only_purges = false;
    uint64_t purged = 0;
    int status = read_arguments(&settings, &only_purges, argc, argv);
    if (status >= 0) return status;
    if (!only_purges) return measure(&settings);
    status = bel__bench_purge(&settings, &purged);
    if (status != CLI_OK) return status;
    printf(settings.connect.is_json ? "{\"purged\": %" PRIu64 "}\n" : "%" PRIu64 "\n", purged);
    return CLI_OK;
}
