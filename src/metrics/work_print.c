/* SPDX-License-Identifier: MIT */

/*
 * A metric is printed for all topics before the next one begins, as the format asks. What is not
 * listed is the total of the engine minus what is. A topic may work on between its census and the
 * print, so a difference is never below 0.
 *
 * Names of groups are any bytes, and are printed as in a URL: "two words" is two%20words.
 */
#include "metrics/work_print.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    GROUP_BYTES = 3 * BEL_GROUP_BYTES_MAX + 1,
    LABEL_BYTES = BEL_TOPIC_BYTES_MAX + GROUP_BYTES + 32,
};

#define OTHER "(other)"

/* One set of lines, with its labels. */
struct row {
    char labels[LABEL_BYTES];
    struct bel_work work;
};

struct page {
    struct bel_buffer *out;
    int err;
    size_t count; /* of rows */
    struct row rows[BEL_WORK_PRINT_TOPICS_MAX + 1];
    size_t left_out; /* topics or groups that are summed */
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

/* A number of struct bel_work. */
struct number {
    const char *name, *type, *help;
    size_t offset;
};

static uint64_t number_of(const struct bel_work *work, size_t offset)
{
    uint64_t number;
    memcpy(&number, (const char *)work + offset, sizeof number);
    return number;
}

static void write_numbers(struct page *page, const char *prefix, const struct number *numbers,
                          size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char name[64];
        (void)snprintf(name, sizeof name, "%s_%s", prefix, numbers[i].name);
        write_head(page, name, numbers[i].type, numbers[i].help);
        for (size_t row = 0; row < page->count; row++) {
            write_line(page, "belfry_%s{%s} %" PRIu64 "\n", name, page->rows[row].labels,
                       number_of(&page->rows[row].work, numbers[i].offset));
        }
    }
}

static void write_spans(struct page *page, const char *name, const char *help, size_t offset)
{
    write_head(page, name, "histogram", help);
    for (size_t row = 0; row < page->count; row++) {
        const char *labels = page->rows[row].labels;
        struct bel_spans spans;
        uint64_t below = 0;
        memcpy(&spans, (const char *)&page->rows[row].work + offset, sizeof spans);
        for (unsigned i = 0; i < BEL_SPAN_BUCKETS; i++) {
            below += spans.counts[i];
            if (i % 2 == 1 || i + 1 == BEL_SPAN_BUCKETS) continue; /* 1 ms, 4 ms, ... 4194 s */
            write_line(page, "belfry_%s_bucket{%s,le=\"%g\"} %" PRIu64 "\n", name, labels,
                       (double)(UINT64_C(1) << i) / 1e3, below);
        }
        write_line(page, "belfry_%s_bucket{%s,le=\"+Inf\"} %" PRIu64 "\n", name, labels, below);
        write_line(page, "belfry_%s_sum{%s} %.3f\nbelfry_%s_count{%s} %" PRIu64 "\n", name, labels,
                   (double)spans.sum_ms / 1e3, name, labels, below);
    }
}

static const struct number numbers[] = {
    {"claims_total", "counter", "Timers claimed.", offsetof(struct bel_work, claimed)},
    {"completions_total", "counter", "Timers acknowledged.", offsetof(struct bel_work, done)},
    {"failures_total", "counter", "Timers that a worker failed.",
     offsetof(struct bel_work, failed)},
    {"leases_lost_total", "counter", "Leases that expired.", offsetof(struct bel_work, lost)},
    {"running", "gauge", "Timers that a worker has now.", offsetof(struct bel_work, running)},
};

static uint64_t rest(uint64_t all, uint64_t part)
{
    return all > part ? all - part : 0;
}

static void subtract_spans(struct bel_spans *all, const struct bel_spans *part)
{
    for (unsigned i = 0; i < BEL_SPAN_BUCKETS; i++) {
        all->counts[i] = rest(all->counts[i], part->counts[i]);
    }
    all->sum_ms = rest(all->sum_ms, part->sum_ms);
}

static void subtract(struct bel_work *all, const struct bel_work *part)
{
    all->claimed = rest(all->claimed, part->claimed);
    all->done = rest(all->done, part->done);
    all->failed = rest(all->failed, part->failed);
    all->lost = rest(all->lost, part->lost);
    all->running = rest(all->running, part->running);
    subtract_spans(&all->waited, &part->waited);
    subtract_spans(&all->ran, &part->ran);
}

/* Lists the first topics that have work, and the rest of the total. */
static void list_topics(struct page *page, const struct bel_topic_counts *census,
                        const struct bel_work *total)
{
    size_t count;
    uint64_t all;
    const struct bel_topic_counts_topic *topics = bel__topic_counts_topics(census, &count, &all);
    struct bel_work others = *total;
    page->left_out = (size_t)all - count;
    for (size_t i = 0; i < count; i++) {
        if (topics[i].name[0] == 0 || !topics[i].has_work) continue;
        if (page->count == BEL_WORK_PRINT_TOPICS_MAX) {
            page->left_out++;
            continue;
        }
        struct row *row = &page->rows[page->count++];
        (void)snprintf(row->labels, sizeof row->labels, "topic=\"%s\"", topics[i].name);
        row->work = topics[i].work;
        subtract(&others, &topics[i].work);
    }
    struct row *row = &page->rows[page->count++];
    (void)snprintf(row->labels, sizeof row->labels, "topic=\"" OTHER "\"");
    row->work = others;
}

/* Prints a name. Bytes that are not plain become %XX, so that no two are alike. */
static void print_name(const struct bel_named_work *group, char out[GROUP_BYTES])
{
    char *end = out;
    const unsigned char *name = group->name.data;
    assert(group->name.bytes <= BEL_GROUP_BYTES_MAX);
    for (size_t i = 0; i < group->name.bytes; i++) {
        unsigned char byte = name[i];
        bool is_plain = byte > ' ' && byte < 0x7f && strchr("\"\\%(", byte) == NULL;
        int bytes = snprintf(end, 4, is_plain ? "%c" : "%%%02X", byte);
        end += bytes;
    }
    *end = 0;
}

static void add_spans(struct bel_spans *sum, const struct bel_spans *spans)
{
    for (unsigned i = 0; i < BEL_SPAN_BUCKETS; i++) {
        sum->counts[i] += spans->counts[i];
    }
    sum->sum_ms += spans->sum_ms;
}

static void add(struct bel_work *sum, const struct bel_work *work)
{
    sum->claimed += work->claimed;
    sum->done += work->done;
    sum->failed += work->failed;
    sum->lost += work->lost;
    sum->running += work->running;
    add_spans(&sum->waited, &work->waited);
    add_spans(&sum->ran, &work->ran);
}

static void list_groups(struct page *page, const struct bel_topic_counts *census)
{
    size_t count;
    uint64_t all;
    const struct bel_topic_counts_topic *topics = bel__topic_counts_topics(census, &count, &all);
    struct bel_work others = {0};
    page->count = page->left_out = 0;
    for (size_t i = 0; i < count; i++) {
        for (const struct bel_named_work *group = topics[i].groups; group != NULL;
             group = group->next) {
            if (page->count == BEL_WORK_PRINT_GROUPS_MAX || group->name.bytes == 0) {
                page->left_out++;
                add(&others, &group->work);
                continue;
            }
            char name[GROUP_BYTES];
            struct row *row = &page->rows[page->count++];
            print_name(group, name);
            (void)snprintf(row->labels, sizeof row->labels, "topic=\"%s\",group=\"%s\"",
                           topics[i].name, name);
            row->work = group->work;
        }
    }
    struct row *row = &page->rows[page->count++];
    (void)snprintf(row->labels, sizeof row->labels, "topic=\"" OTHER "\",group=\"" OTHER "\"");
    row->work = others;
}

static void list_resources(struct page *page, const struct bel_named_work *resources)
{
    struct bel_work others = {0};
    page->count = page->left_out = 0;
    for (; resources != NULL; resources = resources->next) {
        if (page->count == BEL_WORK_PRINT_GROUPS_MAX || resources->name.bytes == 0) {
            page->left_out++;
            add(&others, &resources->work);
            continue;
        }
        char name[GROUP_BYTES];
        struct row *row = &page->rows[page->count++];
        print_name(resources, name);
        (void)snprintf(row->labels, sizeof row->labels, "resource=\"%s\"", name);
        row->work = resources->work;
    }
    struct row *row = &page->rows[page->count++];
    (void)snprintf(row->labels, sizeof row->labels, "resource=\"" OTHER "\"");
    row->work = others;
}

static void write_left_out(struct page *page, const char *name, const char *help)
{
    write_head(page, name, "gauge", help);
    write_line(page, "belfry_%s %zu\n", name, page->left_out);
}

static void print(struct page *page, const struct bel_topic_counts *census,
                  const struct bel_engine_stats *stats)
{
    list_topics(page, census, &stats->work);
    write_numbers(page, "topic", numbers, sizeof numbers / sizeof numbers[0]);
    write_spans(page, "topic_waited_seconds", "Time from due to claim.",
                offsetof(struct bel_work, waited));
    write_spans(page, "topic_ran_seconds", "Time from claim to acknowledgement.",
                offsetof(struct bel_work, ran));
    write_left_out(page, "topic_work_left_out", "Topics whose work is summed as (other).");
    list_groups(page, census);
    write_numbers(page, "group", numbers, sizeof numbers / sizeof numbers[0]);
    write_left_out(page, "group_work_left_out", "Groups whose work is summed as (other).");
    list_resources(page, stats->resources);
    write_numbers(page, "resource", numbers, sizeof numbers / sizeof numbers[0]);
    write_spans(page, "resource_waited_seconds", "Time from due to claim.",
                offsetof(struct bel_work, waited));
    write_spans(page, "resource_ran_seconds", "Time from claim to acknowledgement.",
                offsetof(struct bel_work, ran));
    write_left_out(page, "resource_work_left_out", "Resources whose work is summed as (other).");
}

/* Lists the first topics. The others have no sum, which would fall when a topic is removed. */
static void list_counts(struct page *page, const struct bel_topic_counts *census)
{
    size_t count;
    uint64_t all;
    const struct bel_topic_counts_topic *topics = bel__topic_counts_topics(census, &count, &all);
    page->left_out = (size_t)all - count;
    for (size_t i = 0; i < count; i++) {
        if (topics[i].name[0] == 0) continue;
        if (page->count == BEL_WORK_PRINT_TOPICS_MAX) {
            page->left_out++;
            continue;
        }
        struct row *row = &page->rows[page->count++];
        (void)snprintf(row->labels, sizeof row->labels, "topic=\"%s\"", topics[i].name);
        row->work = (struct bel_work){.claimed = topics[i].claimed,
                                      .done = topics[i].completed,
                                      .failed = topics[i].failed,
                                      .lost = topics[i].lost,
                                      .running = topics[i].counts[BEL_LEASED]};
    }
}

int bel__work_print_counts(const struct bel_topic_counts *census, struct bel_buffer *out)
{
    struct bel_mono taken;
    if (!bel__topic_counts_taken(census, &taken)) return 0;
    struct page *page = calloc(1, sizeof *page); /* too large for a stack */
    if (page == NULL) return BEL_ENOMEM;
    page->out = out;
    list_counts(page, census);
    write_numbers(page, "topic", numbers, sizeof numbers / sizeof numbers[0]);
    write_left_out(page, "topic_work_left_out", "Topics whose work has no lines.");
    int err = page->err;
    free(page);
    return err;
}

int bel__work_print(const struct bel_topic_counts *census, const struct bel_engine_stats *stats,
                    struct bel_buffer *out)
{
    static_assert((int)BEL_WORK_PRINT_GROUPS_MAX <= (int)BEL_WORK_PRINT_TOPICS_MAX, "rows");
    struct page *page = calloc(1, sizeof *page); /* too large for a stack */
    if (page == NULL) return BEL_ENOMEM;
    page->out = out;
    print(page, census, stats);
    int err = page->err;
    free(page);
    return err;
}
