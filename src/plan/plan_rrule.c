/* SPDX-License-Identifier: MIT */

/*
 * Recurrence rules in plans. The start of a rule is a local time: of the plan's first time if it is
 * given, otherwise of the plan's creation. A rule has a resolution of seconds, and COUNT counts its
 * start, so the start is rounded up to be not before the creation.
 */
#include "belfry/rrule.h"

#include "core/units.h"
#include "plan/civil.h"
#include "plan/plan.h"
#include "plan/rrule.h"
#include "plan/text.h"

#include <string.h>

#define DTSTART "DTSTART"

/* Returns the second in which the rule starts. */
static int64_t start_of(const struct bel_plan_options *options)
{
    if (options->has_start) return floor_div(options->start.ms, MS_PER_S);
    return floor_div(options->now.ms, MS_PER_S) + (options->now.ms % MS_PER_S != 0);
}

/* DTSTART at the beginning of a rule. */
struct dtstart {
    size_t bytes;         /* 0: there is none; otherwise with the spaces after it */
    struct bel_view zone; /* the value of TZID; may be empty */
    struct bel_civil civil;
    bool is_utc;
};

static bool is_space(char byte)
{
    return byte == ' ' || byte == '\t' || byte == '\r' || byte == '\n';
}

/* Reads `digits` digits. Returns -1 if there are fewer. */
static int read_digits(struct reader *reader, unsigned digits)
{
    int value = 0;
    for (; digits > 0; digits--, reader->at++) {
        char byte = reader_peek(reader);
        if (byte < '0' || byte > '9') return -1;
        value = value * 10 + (byte - '0');
    }
    return value;
}

/* Reads 20260131T090000, with or without a Z. */
static bool read_civil(struct reader *reader, struct dtstart *out)
{
    int fields[6];
    for (unsigned i = 0; i < 6; i++) {
        if (i == 3 && !reader_skip(reader, 'T')) return false;
        fields[i] = read_digits(reader, i == 0 ? 4 : 2);
        if (fields[i] < 0) return false;
    }
    out->civil = (struct bel_civil){fields[0],          (uint8_t)fields[1], (uint8_t)fields[2],
                                    (uint8_t)fields[3], (uint8_t)fields[4], (uint8_t)fields[5]};
    out->is_utc = reader_skip(reader, 'Z');
    return true;
}

static int read_dtstart(const char *text, size_t bytes, struct dtstart *out,
                        struct bel_text_error *why)
{
    struct reader reader = {text, bytes, strlen(DTSTART)};
    *out = (struct dtstart){0};
    if (bytes < reader.at || strncasecmp(text, DTSTART, reader.at) != 0) return 0;
    if (reader_skip(&reader, ';')) {
        size_t name = strlen("TZID=");
        if (bytes - reader.at < name || strncasecmp(text + reader.at, "TZID=", name) != 0) {
            return bel__text_refuse(why, reader.at, "TZID= or :");
        }
        reader.at += name;
        out->zone.data = text + reader.at;
        while (!reader_at_end(&reader) && reader_peek(&reader) != ':') {
            reader.at++;
            out->zone.bytes++;
        }
    }
    size_t at = reader.at + 1;
    if (!reader_skip(&reader, ':') || !read_civil(&reader, out)) {
        return bel__text_refuse(why, reader.at, "a time like :20260131T090000");
    }
    struct bel_zone_instants instants;
    if (bel_zone_at(bel_zone_utc(), &out->civil, &instants) != 0) {
        return bel__text_refuse(why, at, "a time that exists");
    }
    if (!is_space(reader_peek(&reader))) {
        return bel__text_refuse(why, reader.at, "a line below or a space, then RRULE:");
    }
    while (is_space(reader_peek(&reader))) {
        reader.at++;
    }
    out->bytes = reader.at;
    return 0;
}

bool bel_rrule_zone(struct bel_view text, struct bel_view *zone)
{
    struct dtstart start;
    int err = read_dtstart(text.data, text.bytes, &start, NULL);
    if (err || start.zone.bytes == 0) return false;
    *zone = start.zone;
    return true;
}

/* Checks a DTSTART against the options, and converts it to local time. */
static int apply_dtstart(const struct bel_plan_options *options, struct dtstart *start,
                         struct bel_text_error *why)
{
    const char *zone = bel_zone_name(options->zone);
    if (options->has_start) return bel__text_refuse(why, 0, "DTSTART or a start (AT), not both");
    bool is_same =
        strlen(zone) == start->zone.bytes && memcmp(zone, start->zone.data, start->zone.bytes) == 0;
    if (start->zone.bytes > 0 && !is_same) {
        return bel__text_refuse(why, strlen(DTSTART), "the time zone of the plan: %s", zone);
    }
    if (!start->is_utc) return 0;
    struct bel_zone_instants instants;
    int err = bel_zone_at(bel_zone_utc(), &start->civil, &instants);
    if (err == 0) err = bel_zone_civil(options->zone, instants.first, &start->civil);
    return err == 0 ? 0 : bel__text_refuse(why, 0, "a time that exists");
}

int bel__plan_read_rrule(struct bel_plan *plan, const char *text, size_t bytes,
                         struct bel_text_error *why)
{
    const struct bel_plan_options *options = &plan->options;
    struct dtstart start;
    plan->kind = BEL_PLAN_RRULE;
    int err = read_dtstart(text, bytes, &start, why);
    if (err) return err;
    if (start.bytes > 0) {
        err = apply_dtstart(options, &start, why);
        if (err) return err;
    } else if (bel_zone_civil(options->zone, start_of(options), &start.civil) != 0) {
        return bel__text_refuse(why, 0, "a start between the years -9999 and 9999");
    }
    struct bel_view rule = {text + start.bytes, bytes - start.bytes};
    const char *zone = bel_zone_name(options->zone);
    err = bel__rrule_parse(rule, &start.civil, zone, &plan->rrule, why);
    if (err == BEL_EINVAL && why != NULL) why->position += start.bytes;
    return err;
}

void bel__plan_free_rrule(struct bel_plan *plan)
{
    bel_rrule_destroy(plan->rrule);
}

int bel__plan_next_rrule(const struct bel_plan *plan, int64_t utc, int64_t *out)
{
    const struct bel_plan_options *options = &plan->options;
    struct bel_zone_when when = {options->zone, options->gap, options->fold};
    return bel_rrule_next(plan->rrule, &when, utc, out);
}
