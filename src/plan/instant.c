/* SPDX-License-Identifier: MIT */

/*
 * A text is first split into parts by its form, and then resolved: the offset and the zone
 * determine the instant.
 *
 *     offset    zone      instant
 *     none      none      invalid
 *     Z         any       the time is UTC
 *     +07:00    none      the time minus the offset
 *     none      a name    the local time in the zone, by the options for gaps and folds
 *     +07:00    a name    the instant of that local time in the zone that has this offset
 *     any       +07:00    the time minus the offset; two offsets must agree
 *
 * An offset has hours and minutes, but some zones once had offsets with seconds. Such an offset is
 * printed and compared rounded to minutes.
 */
#include "belfry/instant.h"

#include "core/parse.h"
#include "core/units.h"
#include "plan/civil.h"
#include "plan/text.h"
#include "plan/writer.h"
#include "plan/zone_meant.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

enum {
    MINUTE_SECONDS = 60,
    HOUR_SECONDS = 3600,
};

enum offset_kind {
    OFFSET_NONE,
    OFFSET_UTC, /* says nothing about the local time */
    OFFSET_LOCAL,
};

struct offset {
    enum offset_kind kind;
    int32_t seconds;
};

/* The parts of a text. */
struct parts {
    struct bel_civil civil;
    uint32_t ms;
    struct offset offset;
    bool has_seconds, has_zone;
    size_t seconds_at, offset_at, zone_at; /* positions */
    size_t zone_bytes;
};

/* The form of a number. */
struct field {
    const char *name;
    size_t digits;
    unsigned min, max;
};

static const struct field YEAR = {"a year", 4, 0, 9999}, MONTH = {"a month", 2, 1, 12},
                          HOUR = {"an hour", 2, 0, 23}, MINUTE = {"a minute", 2, 0, 59},
                          SECOND = {"a second", 2, 0, 59};

static bool is_digit(char byte)
{
    return byte >= '0' && byte <= '9';
}

static int read_field(struct reader *reader, const struct field *field, unsigned *out,
                      struct bel_text_error *why)
{
    uint32_t number = 0;
    bool fits = reader->bytes - reader->at >= field->digits;
    if (!fits || bel__parse_u32(reader->text + reader->at, field->digits, field->min, field->max,
                                &number) != 0) {
        return bel__text_refuse(why, reader->at, "%s from %0*u to %u", field->name,
                                (int)field->digits, field->min, field->max);
    }
    reader->at += field->digits;
    *out = number;
    return 0;
}

static int expect(struct reader *reader, char byte, struct bel_text_error *why)
{
    if (reader_skip(reader, byte)) return 0;
    return bel__text_refuse(why, reader->at, "'%c'", byte);
}

static int read_date(struct reader *reader, struct bel_civil *out, struct bel_text_error *why)
{
    unsigned year = 0, month = 0, day = 0;
    int err = read_field(reader, &YEAR, &year, why);
    if (err) return err;
    err = expect(reader, '-', why);
    if (err) return err;
    err = read_field(reader, &MONTH, &month, why);
    if (err) return err;
    err = expect(reader, '-', why);
    if (err) return err;

    struct field field = {"a day of that month,", 2, 1, days_in_month((int32_t)year, month)};
    err = read_field(reader, &field, &day, why);
    if (err) return err;
    out->year = (int32_t)year;
    out->month = (uint8_t)month;
    out->day = (uint8_t)day;
    return 0;
}

/* Reads the digits of a fraction and uses the first three. */
static int read_fraction(struct reader *reader, uint32_t *out_ms, struct bel_text_error *why)
{
    uint32_t ms = 0, weight = MS_PER_S / 10;
    if (!is_digit(reader_peek(reader))) {
        return bel__text_refuse(why, reader->at, "digits after the point");
    }
    for (; is_digit(reader_peek(reader)); reader->at++) {
        ms += (uint32_t)(reader_peek(reader) - '0') * weight;
        weight /= 10;
    }
    *out_ms = ms;
    return 0;
}

static int read_seconds(struct reader *reader, struct parts *out, struct bel_text_error *why)
{
    unsigned second = 0;
    if (reader->bytes - reader->at >= 2 && memcmp(reader->text + reader->at, "60", 2) == 0) {
        return bel__text_refuse(why, reader->at, "a second up to 59: there are no leap seconds");
    }
    int err = read_field(reader, &SECOND, &second, why);
    if (err) return err;
    out->civil.second = (uint8_t)second;
    out->has_seconds = true;
    return reader_skip(reader, '.') ? read_fraction(reader, &out->ms, why) : 0;
}

static int read_time(struct reader *reader, struct parts *out, struct bel_text_error *why)
{
    unsigned hour = 0, minute = 0;
    int err = read_field(reader, &HOUR, &hour, why);
    if (err) return err;
    err = expect(reader, ':', why);
    if (err) return err;
    err = read_field(reader, &MINUTE, &minute, why);
    if (err) return err;
    out->civil.hour = (uint8_t)hour;
    out->civil.minute = (uint8_t)minute;
    out->seconds_at = reader->at;
    return reader_skip(reader, ':') ? read_seconds(reader, out, why) : 0;
}

/* Reads an optional offset. */
static int read_offset(struct reader *reader, struct offset *out, struct bel_text_error *why)
{
    unsigned hour = 0, minute = 0;
    *out = (struct offset){.kind = OFFSET_UTC};
    if (reader_skip(reader, 'Z') || reader_skip(reader, 'z')) return 0;
    bool is_negative = reader_skip(reader, '-');
    if (!is_negative && !reader_skip(reader, '+')) {
        out->kind = OFFSET_NONE;
        return 0;
    }
    int err = read_field(reader, &HOUR, &hour, why);
    if (err) return err;
    err = expect(reader, ':', why);
    if (err) return err;
    err = read_field(reader, &MINUTE, &minute, why);
    if (err) return err;
    int32_t seconds = (int32_t)(hour * HOUR_SECONDS + minute * MINUTE_SECONDS);
    if (is_negative && seconds == 0) return 0; /* RFC 3339, 4.3: the local offset is unknown */
    *out = (struct offset){.kind = OFFSET_LOCAL, .seconds = is_negative ? -seconds : seconds};
    return 0;
}

/* Returns whether a text is key=value. A key has lower-case letters, digits, _ and -; a value has
 * letters, digits and -. */
static bool is_suffix(const char *text, size_t bytes)
{
    const char *equals = memchr(text, '=', bytes);
    if (equals == NULL || equals == text || equals == text + bytes - 1) return false;
    for (const char *byte = text; byte < text + bytes; byte++) {
        bool is_small = *byte >= 'a' && *byte <= 'z', is_large = *byte >= 'A' && *byte <= 'Z';
        bool is_shared = is_small || is_digit(*byte) || *byte == '-';
        if (byte < equals && !is_shared && *byte != '_') return false;
        if (byte > equals && !is_shared && !is_large) return false;
    }
    return true;
}

/* Reads a suffix in brackets; the first may be a zone. */
static int read_suffix(struct reader *reader, bool is_first, struct parts *out,
                       struct bel_text_error *why)
{
    int err = expect(reader, '[', why);
    if (err) return err;
    bool is_critical = reader_skip(reader, '!');
    const char *text = reader->text + reader->at;
    const char *end = memchr(text, ']', reader->bytes - reader->at);
    if (end == NULL) return bel__text_refuse(why, reader->bytes, "']'");
    size_t bytes = (size_t)(end - text);
    if (is_suffix(text, bytes)) {
        if (is_critical) return bel__text_refuse(why, reader->at, "no suffix with a '!'");
    } else if (is_first && bytes > 0) {
        out->has_zone = true;
        out->zone_at = reader->at;
        out->zone_bytes = bytes;
    } else {
        return bel__text_refuse(why, reader->at, is_first ? "a zone" : "a key and a value");
    }
    reader->at += bytes + 1;
    return 0;
}

static int take_apart(struct reader *reader, struct parts *out, struct bel_text_error *why)
{
    int err = read_date(reader, &out->civil, why);
    if (err) return err;
    if (!reader_skip(reader, 'T') && !reader_skip(reader, 't')) {
        return bel__text_refuse(why, reader->at, "T and a time of day");
    }
    err = read_time(reader, out, why);
    if (err) return err;
    out->offset_at = reader->at;
    err = read_offset(reader, &out->offset, why);
    if (err) return err;
    if (reader_at_end(reader) && out->offset.kind != OFFSET_NONE) return 0;
    if (reader_peek(reader) != '[') {
        return bel__text_refuse(why, reader->at,
                                out->offset.kind == OFFSET_NONE
                                    ? "an offset or a zone: Z, +07:00 or [Europe/Berlin]"
                                    : "a zone in brackets, or nothing more");
    }
    for (bool is_first = true; !reader_at_end(reader); is_first = false) {
        err = read_suffix(reader, is_first, out, why);
        if (err) return err;
    }
    return 0;
}

/* Returns the seconds since 1970 if the local time were UTC. */
static int64_t local_seconds(const struct bel_civil *civil)
{
    int64_t days = civil_to_days(civil->year, civil->month, civil->day);
    int of_day = civil->hour * HOUR_SECONDS + civil->minute * MINUTE_SECONDS + civil->second;
    return days * SECONDS_PER_DAY + of_day;
}

static int32_t to_minutes(int64_t seconds)
{
    return (int32_t)floor_div(seconds + MINUTE_SECONDS / 2, MINUTE_SECONDS);
}

static struct bel_wall wall_of(int64_t seconds, uint32_t ms)
{
    return (struct bel_wall){seconds * MS_PER_S + ms};
}

/* Finds the instant in a zone that has the offset of the text. */
static int match_offset(const struct parts *parts, const struct bel_zone_instants *instants,
                        struct bel_wall *out, struct bel_text_error *why)
{
    int64_t local = local_seconds(&parts->civil);
    int32_t minutes = parts->offset.seconds / MINUTE_SECONDS;
    bool exists = instants->answer != BEL_ZONE_GAP;
    if (exists && to_minutes(local - instants->first) == minutes) {
        *out = wall_of(instants->first, parts->ms);
        return 0;
    }
    if (exists && to_minutes(local - instants->second) == minutes) {
        *out = wall_of(instants->second, parts->ms);
        return 0;
    }
    return bel__text_refuse(why, parts->offset_at, "an offset that the zone has at that time");
}

static int resolve_in(const struct bel_zone *zone, const struct parts *parts,
                      const struct bel_instant_options *options, struct bel_wall *out,
                      struct bel_text_error *why)
{
    struct bel_zone_instants instants = {0};
    int err = bel_zone_at(zone, &parts->civil, &instants);
    assert(err == 0); /* the date was already checked */
    if (err) return err;
    if (parts->offset.kind == OFFSET_LOCAL) return match_offset(parts, &instants, out, why);
    if (instants.answer == BEL_ZONE_GAP && options->gap == BEL_GAP_SKIP) {
        return bel__text_refuse(why, 0, "a time that exists: the clocks skip this one");
    }
    bool is_second = options->fold == BEL_FOLD_SECOND;
    uint32_t ms = instants.answer == BEL_ZONE_GAP ? 0 : parts->ms;
    *out = wall_of(is_second ? instants.second : instants.first, ms);
    return 0;
}

static int find_zone(const struct reader *reader, const struct parts *parts,
                     const struct bel_instant_options *options, const struct bel_zone **out,
                     struct bel_text_error *why)
{
    const char *name = reader->text + parts->zone_at;
    if (options->zones == NULL) {
        return bel__text_refuse(why, parts->zone_at, "no zone: zone names are not available here");
    }
    int err = bel_zones_find(options->zones, name, parts->zone_bytes, out);
    char meant[BEL_ZONE_NAME_MAX + 1];
    if (err != BEL_EINVAL) return err;
    if (bel__zone_meant(options->zones, name, parts->zone_bytes, meant)) {
        return bel__text_refuse(why, parts->zone_at, "a known time zone: did you mean %.48s?",
                                meant);
    }
    return bel__text_refuse(why, parts->zone_at, "a known time zone, such as Europe/Berlin");
}

/* Resolves a zone that is an offset; a second offset must be equal. */
static int resolve_fixed(const struct reader *reader, const struct parts *parts,
                         struct bel_wall *out, struct bel_text_error *why)
{
    struct reader zone = {reader->text, parts->zone_at + parts->zone_bytes, parts->zone_at};
    struct offset offset = {.kind = OFFSET_NONE};
    int err = read_offset(&zone, &offset, why);
    if (err) return err;
    if (!reader_at_end(&zone)) return bel__text_refuse(why, zone.at, "']'");
    if (parts->offset.kind == OFFSET_LOCAL && parts->offset.seconds != offset.seconds) {
        return bel__text_refuse(why, parts->offset_at, "the same offset as in brackets");
    }
    int64_t seconds = local_seconds(&parts->civil);
    *out =
        wall_of(parts->offset.kind == OFFSET_UTC ? seconds : seconds - offset.seconds, parts->ms);
    return 0;
}

static int resolve_zoned(const struct reader *reader, const struct parts *parts,
                         const struct bel_instant_options *options, struct bel_wall *out,
                         struct bel_text_error *why)
{
    char first = reader->text[parts->zone_at];
    if (first == '+' || first == '-') return resolve_fixed(reader, parts, out, why);
    const struct bel_zone *zone = NULL;
    int err = find_zone(reader, parts, options, &zone, why);
    if (err) return err;
    if (parts->offset.kind != OFFSET_UTC) return resolve_in(zone, parts, options, out, why);
    *out = wall_of(local_seconds(&parts->civil), parts->ms);
    return 0;
}

static int parse_date(const char *text, size_t bytes, const struct bel_instant_options *options,
                      struct bel_wall *out, struct bel_text_error *why)
{
    struct reader reader = {.text = text, .bytes = bytes};
    struct parts parts = {.ms = 0};
    int err = take_apart(&reader, &parts, why);
    if (err) return err;
    if (parts.has_zone) return resolve_zoned(&reader, &parts, options, out, why);
    if (parts.offset.kind == OFFSET_NONE) {
        return bel__text_refuse(why, parts.offset_at, "an offset or a zone: Z or [Europe/Berlin]");
    }
    if (!parts.has_seconds) return bel__text_refuse(why, parts.seconds_at, "seconds");
    *out = wall_of(local_seconds(&parts.civil) - parts.offset.seconds, parts.ms);
    return 0;
}

static int parse_number(const char *text, size_t bytes, struct bel_wall *out,
                        struct bel_text_error *why)
{
    int64_t ms = 0;
    int err = bel__parse_i64(text, bytes, INT64_MIN, INT64_MAX, &ms);
    if (err == BEL_ERANGE) return bel__text_refuse(why, 0, "milliseconds that fit into 64 bits");
    if (err) return bel__text_refuse(why, 0, "a time, such as 2026-06-01T09:00:00Z");
    out->ms = ms;
    return 0;
}

int bel_instant_parse(const char *text, size_t bytes, const struct bel_instant_options *options,
                      struct bel_wall *out, struct bel_text_error *why)
{
    static const struct bel_instant_options usual = {0};
    assert(text != NULL || bytes == 0);
    bool is_date = bytes > 4 && text[4] == '-' && text[0] != '-';
    if (!is_date) return parse_number(text, bytes, out, why);
    return parse_date(text, bytes, options == NULL ? &usual : options, out, why);
}

static void write_local(struct writer *writer, const struct bel_civil *civil, uint64_t ms)
{
    writer_padded(writer, (uint64_t)civil->year, 4);
    writer_put(writer, '-');
    writer_padded(writer, civil->month, 2);
    writer_put(writer, '-');
    writer_padded(writer, civil->day, 2);
    writer_put(writer, 'T');
    writer_padded(writer, civil->hour, 2);
    writer_put(writer, ':');
    writer_padded(writer, civil->minute, 2);
    writer_put(writer, ':');
    writer_padded(writer, civil->second, 2);
    if (ms == 0) return;
    writer_put(writer, '.');
    writer_padded(writer, ms, 3);
}

static void write_offset(struct writer *writer, int32_t minutes)
{
    uint64_t magnitude = (uint64_t)(minutes < 0 ? -minutes : minutes);
    writer_put(writer, minutes < 0 ? '-' : '+');
    writer_padded(writer, magnitude / 60, 2);
    writer_put(writer, ':');
    writer_padded(writer, magnitude % 60, 2);
}

static void write_number(struct writer *writer, int64_t number)
{
    if (number < 0) writer_put(writer, '-');
    writer_number(writer, number < 0 ? UINT64_C(0) - (uint64_t)number : (uint64_t)number);
}

/* Converts an instant to local time. Returns false if its year does not have four digits. */
static bool civil_of(int64_t utc, const struct bel_zone *zone, struct bel_civil *out)
{
    return bel_zone_civil(zone, utc, out) == 0 && out->year >= 0;
}

size_t bel_instant_print(struct bel_wall instant, char *out, size_t room)
{
    struct writer writer;
    struct bel_civil civil;
    writer_begin(&writer, out, room);
    if (civil_of(floor_div(instant.ms, MS_PER_S), bel_zone_utc(), &civil)) {
        write_local(&writer, &civil, (uint64_t)floor_mod(instant.ms, MS_PER_S));
        writer_put(&writer, 'Z');
    } else {
        write_number(&writer, instant.ms);
    }
    return writer_end(&writer);
}

size_t bel_instant_print_zoned(struct bel_wall instant, const struct bel_zone *zone, char *out,
                               size_t room)
{
    struct writer writer;
    struct bel_civil civil;
    int64_t utc = floor_div(instant.ms, MS_PER_S);
    writer_begin(&writer, out, room);
    if (civil_of(utc, zone, &civil)) {
        write_local(&writer, &civil, (uint64_t)floor_mod(instant.ms, MS_PER_S));
        write_offset(&writer, to_minutes(bel_zone_offset(zone, utc)));
        writer_put(&writer, '[');
        writer_text(&writer, bel_zone_name(zone));
        writer_put(&writer, ']');
    } else {
        write_number(&writer, instant.ms);
    }
    return writer_end(&writer);
}
