/* SPDX-License-Identifier: MIT */
#include "engine/state/resource_row.h"

#include "core/utf8.h"
#include "engine/rows/encoding.h"

#include <string.h>

enum {
    VERSION = 1,
    FLAG_OPEN = 1,
    FLAG_PROBE = 2,
    NUMBERS = 13, /* of limits in a row */
    KEY_WORDS = 3,
    REPORTS_MS = 60 * 60 * 1000, /* how long a report is kept */
};

void bel__reports_add(struct bel_resource_reports *reports, uint64_t at, uint64_t for_ms,
                      struct bel_view who)
{
    uint32_t kept = reports->count < BEL_REPORTS_MAX ? reports->count : BEL_REPORTS_MAX - 1;
    memmove(&reports->items[1], &reports->items[0], kept * sizeof reports->items[0]);
    who = bel__utf8_head(who, BEL_REPORT_WHO_MAX);
    reports->items[0] =
        (struct bel_resource_report){.at = at, .for_ms = for_ms, .who_bytes = (uint32_t)who.bytes};
    if (who.bytes > 0) memcpy(reports->items[0].who, who.data, who.bytes);
    reports->count = kept + 1;
}

void bel__reports_trim(struct bel_resource_reports *reports, uint64_t now)
{
    while (reports->count > 0 && reports->items[reports->count - 1].at + REPORTS_MS < now) {
        reports->count--;
    }
}

/* Lists the numbers of limits, in the order of the row. */
static void list_numbers(struct bel_limits *limits, uint64_t *out[NUMBERS])
{
    uint64_t *numbers[NUMBERS] = {
        &limits->rate_count,
        &limits->rate_ms,
        &limits->burst,
        &limits->concurrency,
        &limits->full_us,
        &limits->until,
        &limits->breaker_failures,
        &limits->breaker_open_ms,
        &limits->breaker_max_ms,
        &limits->failures,
        &limits->openings,
        &limits->breaker_until,
        NULL,
    };
    memcpy(out, numbers, sizeof numbers);
}

size_t bel__resource_row_write(const struct bel_resource_row *row,
                               uint8_t out[BEL_RESOURCE_ROW_BYTES])
{
    struct bel_row_writer writer = {.at = out, .end = out + BEL_RESOURCE_ROW_BYTES};
    struct bel_limits limits = row->limits;
    uint64_t *numbers[NUMBERS];
    list_numbers(&limits, numbers);
    bel__write_number(&writer, VERSION);
    bel__write_view(&writer, row->name);
    for (int i = 0; numbers[i] != NULL; i++) {
        bel__write_number(&writer, *numbers[i]);
    }
    bel__write_number(&writer,
                      (limits.is_open ? FLAG_OPEN : 0) | (limits.has_probe ? FLAG_PROBE : 0));
    for (int i = 0; i < KEY_WORDS && limits.has_probe; i++) {
        bel__write_number(&writer, limits.probe.words[i]);
    }
    bel__write_number(&writer, row->reports.count);
    for (uint32_t i = 0; i < row->reports.count; i++) {
        const struct bel_resource_report *report = &row->reports.items[i];
        bel__write_number(&writer, report->at);
        bel__write_number(&writer, report->for_ms);
        bel__write_view(&writer, (struct bel_view){report->who, report->who_bytes});
    }
    return (size_t)(writer.at - out);
}

static void read_reports(struct bel_row_reader *reader, struct bel_resource_reports *out)
{
    uint64_t count = bel__read_number(reader);
    if (count > BEL_REPORTS_MAX) reader->bad = true;
    for (uint64_t i = 0; i < count && !reader->bad; i++) {
        struct bel_resource_report *report = &out->items[out->count++];
        report->at = bel__read_number(reader);
        report->for_ms = bel__read_number(reader);
        struct bel_view who = bel__read_view(reader);
        if (who.bytes > BEL_REPORT_WHO_MAX) {
            reader->bad = true;
            return;
        }
        report->who_bytes = (uint32_t)who.bytes;
        if (who.bytes > 0) memcpy(report->who, who.data, who.bytes);
    }
}

/* Returns whether numbers of a row are in the range that LIMIT allows. */
static bool are_valid(const struct bel_limits *limits)
{
    return (limits->rate_count == 0) == (limits->rate_ms == 0) &&
           limits->rate_count <= BEL_RATE_COUNT_MAX && limits->rate_ms <= BEL_RATE_MS_MAX &&
           limits->burst <= BEL_BURST_MAX && (!limits->has_probe || limits->is_open);
}

int bel__resource_row_read(struct bel_view bytes, struct bel_resource_row *out)
{
    struct bel_row_reader reader = bel__reader_of(bytes);
    uint64_t *numbers[NUMBERS], version = bel__read_number(&reader);
    memset(out, 0, sizeof *out);
    if (reader.bad) return BEL_ECORRUPT;
    if (version != VERSION) return version > VERSION ? BEL_EUNSUPPORTED : BEL_ECORRUPT;
    out->name = bel__read_view(&reader);
    list_numbers(&out->limits, numbers);
    for (int i = 0; numbers[i] != NULL; i++) {
        *numbers[i] = bel__read_number(&reader);
    }
    uint64_t flags = bel__read_number(&reader);
    out->limits.is_open = (flags & FLAG_OPEN) != 0;
    out->limits.has_probe = (flags & FLAG_PROBE) != 0;
    if (flags > (FLAG_OPEN | FLAG_PROBE)) reader.bad = true;
    for (int i = 0; i < KEY_WORDS && out->limits.has_probe; i++) {
        out->limits.probe.words[i] = bel__read_number(&reader);
    }
    read_reports(&reader, &out->reports);
    bool is_bad = reader.bad || reader.at != reader.end || out->name.bytes == 0;
    return is_bad || !are_valid(&out->limits) ? BEL_ECORRUPT : 0;
}
