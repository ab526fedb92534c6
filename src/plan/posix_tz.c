/* SPDX-License-Identifier: MIT */

/*
 *     rule     name offset [ name [offset] , date [/ time] , date [/ time] ]
 *     name     three letters or more, or < letters, digits, + and - >
 *     offset   [+-] hours [: minutes [: seconds]]       west is positive; 24 hours at most
 *     date     J number | number | M month . week . weekday
 *     time     as offset, 167 hours at most; 2:00 if there is none
 *
 * POSIX does not define DST without dates, and no known file uses it, so it is invalid here. Times
 * before 0:00 and after 24:00 were introduced in version 3 of the files and are accepted in all
 * versions.
 */
#include "plan/posix_tz.h"

#include "plan/civil.h"
#include "plan/text.h"
#include "plan/tzif.h"

#include <assert.h>

enum {
    NAME_BYTES_MIN = 3,
    OFFSET_HOURS_MAX = 24,
    TIME_HOURS_MAX = 167,
    TIME_DEFAULT = 2 * 3600,
    DST_DEFAULT = 3600, /* ahead of standard time */
};

static bool is_digit(char byte)
{
    return byte >= '0' && byte <= '9';
}

static bool is_letter(char byte)
{
    return (byte >= 'A' && byte <= 'Z') || (byte >= 'a' && byte <= 'z');
}

/* Reads a number of up to three digits. */
static bool read_number(struct reader *reader, int32_t min, int32_t max, int32_t *out)
{
    assert(max < 1000);
    int32_t number = 0;
    int digits = 0;
    while (is_digit(reader_peek(reader)) && digits < 3) {
        number = number * 10 + (reader_peek(reader) - '0');
        reader->at++;
        digits++;
    }
    if (digits == 0 || number < min || number > max) return false;
    *out = number;
    return true;
}

static bool read_name(struct reader *reader)
{
    bool quoted = reader_skip(reader, '<');
    size_t start = reader->at;
    for (;;) {
        char byte = reader_peek(reader);
        bool more = quoted && (is_digit(byte) || byte == '+' || byte == '-');
        if (!is_letter(byte) && !more) break;
        reader->at++;
    }
    if (reader->at - start < NAME_BYTES_MIN) return false;
    return !quoted || reader_skip(reader, '>');
}

/* Reads hours, minutes and seconds as seconds. */
static bool read_time(struct reader *reader, int32_t hours_max, int32_t *out)
{
    int32_t hours, minutes = 0, seconds = 0;
    bool negative = reader_skip(reader, '-');
    if (!negative) (void)reader_skip(reader, '+');
    if (!read_number(reader, 0, hours_max, &hours)) return false;
    if (reader_skip(reader, ':')) {
        if (!read_number(reader, 0, 59, &minutes)) return false;
        if (reader_skip(reader, ':') && !read_number(reader, 0, 59, &seconds)) return false;
    }
    int32_t total = hours * 3600 + minutes * 60 + seconds;
    *out = negative ? -total : total;
    return true;
}

static bool read_month_day(struct reader *reader, struct tz_day *out)
{
    int32_t month, week, day;
    if (!read_number(reader, 1, 12, &month) || !reader_skip(reader, '.')) return false;
    if (!read_number(reader, 1, 5, &week) || !reader_skip(reader, '.')) return false;
    if (!read_number(reader, 0, 6, &day)) return false;
    out->kind = TZ_DAY_MONTH;
    out->month = (uint8_t)month;
    out->week = (uint8_t)week;
    out->day = (uint16_t)day;
    return true;
}

static bool read_year_day(struct reader *reader, struct tz_day *out)
{
    int32_t day;
    bool julian = reader_skip(reader, 'J');
    if (!read_number(reader, julian ? 1 : 0, 365, &day)) return false;
    out->kind = julian ? TZ_DAY_JULIAN : TZ_DAY_ZERO;
    out->day = (uint16_t)day;
    return true;
}

static bool read_day(struct reader *reader, struct tz_day *out)
{
    if (!reader_skip(reader, ',')) return false;
    bool ok = reader_skip(reader, 'M') ? read_month_day(reader, out) : read_year_day(reader, out);
    if (!ok) return false;
    out->time = TIME_DEFAULT;
    return !reader_skip(reader, '/') || read_time(reader, TIME_HOURS_MAX, &out->time);
}

/* Reads an offset and negates it: it is written as west of UTC. */
static bool read_offset(struct reader *reader, int32_t *out)
{
    int32_t west;
    if (!read_time(reader, OFFSET_HOURS_MAX, &west)) return false;
    *out = -west;
    return -west >= TZIF_OFFSET_MIN && -west <= TZIF_OFFSET_MAX;
}

static bool read_dst(struct reader *reader, struct tz_rule *out)
{
    if (!read_name(reader)) return false;
    out->has_dst = true;
    out->dst_offset = out->offset + DST_DEFAULT;
    if (reader_peek(reader) != ',' && !read_offset(reader, &out->dst_offset)) return false;
    if (out->dst_offset > TZIF_OFFSET_MAX) return false;
    return read_day(reader, &out->start) && read_day(reader, &out->end);
}

int bel__tz_rule_parse(const char *text, size_t bytes, struct tz_rule *out)
{
    assert(text != NULL);
    struct reader reader = {.text = text, .bytes = bytes};
    struct tz_rule rule = {0};
    if (!read_name(&reader) || !read_offset(&reader, &rule.offset)) return BEL_ECORRUPT;
    if (!reader_at_end(&reader) && !read_dst(&reader, &rule)) return BEL_ECORRUPT;
    if (!reader_at_end(&reader)) return BEL_ECORRUPT;
    *out = rule;
    return 0;
}

/* Returns the day number of a rule's day in a year. */
static int64_t day_in(const struct tz_day *day, int32_t year)
{
    if (day->kind == TZ_DAY_MONTH) {
        int64_t first = civil_to_days(year, day->month, 1);
        unsigned of_month = (day->day + 7 - weekday_of(first)) % 7 + 7 * (day->week - 1U);
        if (of_month >= days_in_month(year, day->month)) of_month -= 7;
        return first + of_month;
    }
    int64_t first = civil_to_days(year, 1, 1);
    if (day->kind == TZ_DAY_ZERO) return first + day->day;
    bool after_february = day->day >= 31 + 29;
    return first + day->day - 1 + (after_february && is_leap_year(year));
}

int64_t bel__tz_rule_start(const struct tz_rule *rule, int32_t year)
{
    assert(rule->has_dst);
    return day_in(&rule->start, year) * SECONDS_PER_DAY + rule->start.time - rule->offset;
}

int64_t bel__tz_rule_end(const struct tz_rule *rule, int32_t year)
{
    assert(rule->has_dst);
    return day_in(&rule->end, year) * SECONDS_PER_DAY + rule->end.time - rule->dst_offset;
}
