/* SPDX-License-Identifier: MIT */

/*
 * Parses rules, and rejects those that could not be evaluated in bounded time.
 *
 *     text  := ("RRULE:")? part (";" part)* (space "EXDATE" zone? ":" time ("," time)*)*
 *     zone  := ";TZID=" name            with a Z after a time, the zone does not matter
 *     part  := name "=" value
 *
 * The first step reads each part into a set. The second step checks the combination of parts, fills
 * in what is left open from the start, and selects one of the kinds of dates in rrule_dates.c. The
 * third step tries the rule: it must match a time. The end of a COUNT is found once, so that later
 * searches need not count.
 */
#include "plan/rrule.h"

#include "plan/civil.h"
#include "plan/text.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum part {
    PART_FREQ,
    PART_INTERVAL,
    PART_COUNT,
    PART_UNTIL,
    PART_WKST,
    PART_BYSECOND,
    PART_BYMINUTE,
    PART_BYHOUR,
    PART_BYDAY,
    PART_BYMONTHDAY,
    PART_BYYEARDAY,
    PART_BYWEEKNO,
    PART_BYMONTH,
    PART_BYSETPOS,
    PARTS,
};

/* The values of a list of numbers. */
struct numbers {
    const char *what; /* for error messages */
    uint16_t min, max;
    bool is_signed;
};

static const char *const part_names[PARTS] = {
    "FREQ",   "INTERVAL", "COUNT",      "UNTIL",     "WKST",     "BYSECOND", "BYMINUTE",
    "BYHOUR", "BYDAY",    "BYMONTHDAY", "BYYEARDAY", "BYWEEKNO", "BYMONTH",  "BYSETPOS"};

static const struct numbers numbers[PARTS] = {
    [PART_BYSECOND] = {"a second from 0 to 59", 0, 59, false},
    [PART_BYMINUTE] = {"a minute from 0 to 59", 0, 59, false},
    [PART_BYHOUR] = {"an hour from 0 to 23", 0, 23, false},
    [PART_BYMONTHDAY] = {"a day from 1 to 31 or -31 to -1", 1, 31, true},
    [PART_BYYEARDAY] = {"a day from 1 to 366 or -366 to -1", 1, 366, true},
    [PART_BYWEEKNO] = {"a week from 1 to 53 or -53 to -1", 1, 53, true},
    [PART_BYMONTH] = {"a month from 1 to 12", 1, 12, false},
    [PART_BYSETPOS] = {"a position from 1 to 366 or -366 to -1", 1, RRULE_POSITION_MAX, true},
};

#define BIT(part) (1U << (part))

enum {
    TIMES = BIT(PART_BYSECOND) | BIT(PART_BYMINUTE) | BIT(PART_BYHOUR),
    ALWAYS = BIT(PART_FREQ) | BIT(PART_INTERVAL) | BIT(PART_COUNT) | BIT(PART_UNTIL) |
             BIT(PART_WKST) | BIT(PART_BYSETPOS) | TIMES,
    DAYS = BIT(PART_BYMONTH) | BIT(PART_BYMONTHDAY) | BIT(PART_BYDAY),
    DIGITS_MAX = 9,
};

static const struct {
    const char *name;
    uint32_t interval_max; /* at most a hundred years */
    unsigned parts;        /* that are allowed with it */
} freqs[RRULE_FREQS] = {
    [RRULE_SECONDLY] = {"SECONDLY", BEL_RRULE_INTERVAL_MAX, ALWAYS | DAYS},
    [RRULE_MINUTELY] = {"MINUTELY", BEL_RRULE_INTERVAL_MAX, ALWAYS | DAYS},
    [RRULE_HOURLY] = {"HOURLY", BEL_RRULE_INTERVAL_MAX, ALWAYS | DAYS},
    [RRULE_DAILY] = {"DAILY", 36500, ALWAYS | DAYS},
    [RRULE_WEEKLY] = {"WEEKLY", 5200, ALWAYS | BIT(PART_BYMONTH) | BIT(PART_BYDAY)},
    [RRULE_MONTHLY] = {"MONTHLY", 1200, ALWAYS | DAYS},
    [RRULE_YEARLY] = {"YEARLY", 100, BIT(PARTS) - 1},
};

/* The state of parsing a rule. */
struct reading {
    struct reader reader;
    struct bel_text_error *why;
    struct bel_rrule rrule;
    size_t positions[PARTS];
    unsigned parts; /* found so far, one bit each */
    uint32_t count;
    bool has_nth;
    unsigned nth_max; /* the largest number of a weekday, without its sign */
    int64_t excluded[2][BEL_RRULE_EXDATES_MAX];
    const char *zone; /* that TZID= may name; or NULL */
};

static int refuse(struct reading *reading, const char *expected)
{
    return bel__text_refuse(reading->why, reading->reader.at, "%s", expected);
}

static bool has(const struct reading *reading, enum part part)
{
    return (reading->parts & BIT(part)) != 0;
}

static char upper(char byte)
{
    if (byte < 'a' || byte > 'z') return byte;
    return "ABCDEFGHIJKLMNOPQRSTUVWXYZ"[byte - 'a'];
}

static bool is_digit(char byte)
{
    return byte >= '0' && byte <= '9';
}

/* Skips a word if it comes next. */
static bool skip_word(struct reader *reader, const char *word)
{
    size_t bytes = strlen(word);
    if (bytes > reader->bytes - reader->at) return false;
    for (size_t i = 0; i < bytes; i++) {
        if (upper(reader->text[reader->at + i]) != word[i]) return false;
    }
    reader->at += bytes;
    return true;
}

/* Reads a number from `min` to `max`. Returns false and reads nothing if there is none. */
static bool read_number(struct reader *reader, uint32_t min, uint32_t max, uint32_t *out)
{
    size_t at = reader->at;
    uint32_t value = 0;
    while (is_digit(reader_peek(reader)) && reader->at - at < DIGITS_MAX) {
        value = value * 10 + (uint32_t)(reader->text[reader->at++] - '0');
    }
    if (reader->at > at && !is_digit(reader_peek(reader)) && value >= min && value <= max) {
        *out = value;
        return true;
    }
    reader->at = at;
    return false;
}

/* Reads exactly `digits` digits; returns -1 if there are fewer. */
static int read_digits(struct reader *reader, unsigned digits)
{
    int value = 0;
    for (; digits > 0; digits--) {
        if (!is_digit(reader_peek(reader))) return -1;
        value = value * 10 + (reader->text[reader->at++] - '0');
    }
    return value;
}

/* Reads 20260131T090000, with or without a Z. */
static int read_time(struct reading *reading, int64_t *out, bool *out_is_utc)
{
    struct reader *reader = &reading->reader;
    struct bel_zone_instants instants;
    size_t at = reader->at;
    int fields[6]; /* year, month, day, hour, minute, second */
    for (unsigned i = 0; i < 6; i++) {
        bool has_t = i != 3 || skip_word(reader, "T");
        fields[i] = has_t ? read_digits(reader, i == 0 ? 4 : 2) : -1;
        if (fields[i] < 0) {
            return refuse(reading, "a time like 20260131T090000, or with a Z for UTC");
        }
    }
    struct bel_civil civil = {
        .year = fields[0],
        .month = (uint8_t)fields[1],
        .day = (uint8_t)fields[2],
        .hour = (uint8_t)fields[3],
        .minute = (uint8_t)fields[4],
        .second = (uint8_t)fields[5],
    };
    if (bel_zone_at(bel_zone_utc(), &civil, &instants) != 0) {
        return bel__text_refuse(reading->why, at, "a time that exists");
    }
    *out = instants.first;
    *out_is_utc = skip_word(reader, "Z");
    return 0;
}

/* Returns the set of a part; for signed parts the one selected by `sign`. */
static uint64_t *set_of(struct bel_rrule *rrule, enum part part, unsigned sign)
{
    switch (part) {
    case PART_BYSECOND:
        return &rrule->seconds;
    case PART_BYMINUTE:
        return &rrule->minutes;
    case PART_BYHOUR:
        return &rrule->hours;
    case PART_BYMONTHDAY:
        return &rrule->month_days[sign];
    case PART_BYYEARDAY:
        return rrule->year_days[sign];
    case PART_BYWEEKNO:
        return &rrule->weeks[sign];
    case PART_BYMONTH:
        return &rrule->months;
    default:
        assert(part == PART_BYSETPOS);
        return rrule->positions[sign];
    }
}

static int read_numbers(struct reading *reading, enum part part)
{
    struct reader *reader = &reading->reader;
    const struct numbers *list = &numbers[part];
    unsigned count = 0;
    do {
        size_t at = reader->at;
        unsigned sign = list->is_signed && reader_skip(reader, '-') ? 1 : 0;
        if (list->is_signed && sign == 0) (void)reader_skip(reader, '+');
        uint32_t value;
        if (!read_number(reader, list->min, list->max, &value)) {
            return bel__text_refuse(reading->why, at, "%s", list->what);
        }
        uint64_t *set = set_of(&reading->rrule, part, sign) + value / 64;
        count += (*set >> value % 64 & 1) == 0;
        *set |= UINT64_C(1) << value % 64;
        if (list->min > 0 && count > list->max) {
            return bel__text_refuse(reading->why, at, "at most %u values", list->max);
        }
    } while (reader_skip(reader, ','));
    return 0;
}

/* Reads SU to SA. Returns false if there is none. */
static bool read_weekday(struct reader *reader, unsigned *out)
{
    static const char names[7][3] = {"SU", "MO", "TU", "WE", "TH", "FR", "SA"};
    for (unsigned weekday = 0; weekday < 7; weekday++) {
        if (!skip_word(reader, names[weekday])) continue;
        *out = weekday;
        return true;
    }
    return false;
}

static int read_weekdays(struct reading *reading)
{
    struct reader *reader = &reading->reader;
    struct bel_rrule *rrule = &reading->rrule;
    unsigned count = 0;
    do {
        size_t at = reader->at;
        unsigned sign = reader_skip(reader, '-') ? 1 : 0, weekday;
        bool is_nth = sign == 1 || reader_skip(reader, '+') || is_digit(reader_peek(reader));
        uint32_t nth = 0;
        if (is_nth && !read_number(reader, 1, RRULE_NTH_MAX, &nth)) {
            return refuse(reading, "a number from 1 to 53, or a weekday");
        }
        if (!read_weekday(reader, &weekday)) return refuse(reading, "a weekday: MO, TU to SU");
        if (++count > RRULE_WEEKDAYS_MAX) {
            return bel__text_refuse(reading->why, at, "at most %d weekdays", RRULE_WEEKDAYS_MAX);
        }
        uint8_t *set = is_nth ? &rrule->nth[sign][nth - 1] : &rrule->weekdays;
        *set = (uint8_t)(*set | 1U << weekday);
        reading->has_nth |= is_nth;
        if (nth > reading->nth_max) reading->nth_max = nth;
    } while (reader_skip(reader, ','));
    return 0;
}

static int read_freq(struct reading *reading)
{
    for (unsigned freq = 0; freq < RRULE_FREQS; freq++) {
        if (!skip_word(&reading->reader, freqs[freq].name)) continue;
        reading->rrule.freq = (enum rrule_freq)freq;
        return 0;
    }
    return refuse(reading, "YEARLY, MONTHLY, WEEKLY, DAILY, HOURLY, MINUTELY or SECONDLY");
}

/* Reads a time, or a date, whose last second is the end. */
static int read_until(struct reading *reading)
{
    struct reader *reader = &reading->reader;
    struct reader ahead = *reader;
    int64_t until;
    bool is_utc;
    if (read_digits(&ahead, 8) >= 0 && !skip_word(&ahead, "T")) {
        unsigned year = (unsigned)read_digits(reader, 4), month = (unsigned)read_digits(reader, 2);
        unsigned day = (unsigned)read_digits(reader, 2);
        bool is_month = month >= 1 && month <= 12;
        if (!is_month || day < 1 || day > days_in_month((int32_t)year, month)) {
            return bel__text_refuse(reading->why, reader->at - 8, "a date that exists");
        }
        reading->rrule.last = (civil_to_days((int32_t)year, month, day) + 1) * SECONDS_PER_DAY - 1;
        return 0;
    }
    int err = read_time(reading, &until, &is_utc);
    if (err) return err;
    *(is_utc ? &reading->rrule.last_utc : &reading->rrule.last) = until;
    return 0;
}

static int read_value(struct reading *reading, enum part part)
{
    struct reader *reader = &reading->reader;
    unsigned weekday;
    switch (part) {
    case PART_FREQ:
        return read_freq(reading);
    case PART_INTERVAL:
        if (read_number(reader, 1, BEL_RRULE_INTERVAL_MAX, &reading->rrule.interval)) return 0;
        return bel__text_refuse(reading->why, reader->at, "a number from 1 to %d",
                                BEL_RRULE_INTERVAL_MAX);
    case PART_COUNT:
        if (read_number(reader, 1, BEL_RRULE_COUNT_MAX, &reading->count)) return 0;
        return bel__text_refuse(reading->why, reader->at, "a number from 1 to %d",
                                BEL_RRULE_COUNT_MAX);
    case PART_UNTIL:
        return read_until(reading);
    case PART_WKST:
        if (!read_weekday(reader, &weekday)) return refuse(reading, "a weekday: MO, TU to SU");
        reading->rrule.week_start = (uint8_t)weekday;
        return 0;
    case PART_BYDAY:
        return read_weekdays(reading);
    default:
        return read_numbers(reading, part);
    }
}

static int read_part(struct reading *reading)
{
    struct reader *reader = &reading->reader;
    size_t at = reader->at;
    for (unsigned part = 0; part < PARTS; part++) {
        reader->at = at;
        if (!skip_word(reader, part_names[part]) || !reader_skip(reader, '=')) continue;
        if (has(reading, (enum part)part)) {
            return bel__text_refuse(reading->why, at, "%s only once", part_names[part]);
        }
        reading->parts |= BIT(part);
        reading->positions[part] = at;
        return read_value(reading, (enum part)part);
    }
    reader->at = at;
    return refuse(reading, "FREQ=, INTERVAL=, COUNT=, UNTIL=, WKST=, BYDAY= or another BY part");
}

static bool is_space(char byte)
{
    return byte == ' ' || byte == '\t' || byte == '\r' || byte == '\n';
}

/* Reads EXDATE: or EXDATE;TZID=zone: with the zone of the rule. */
static int read_exdate(struct reading *reading)
{
    struct reader *reader = &reading->reader;
    size_t at = reader->at;
    if (skip_word(reader, "EXDATE:")) return 0;
    if (reading->zone == NULL || !skip_word(reader, "EXDATE;TZID=")) {
        return bel__text_refuse(reading->why, at, "EXDATE: or the end");
    }
    size_t zone_at = reader->at, bytes = strlen(reading->zone);
    while (!reader_at_end(reader) && reader_peek(reader) != ':') {
        reader->at++;
    }
    bool is_same =
        reader->at - zone_at == bytes && memcmp(reader->text + zone_at, reading->zone, bytes) == 0;
    if (!is_same) {
        return bel__text_refuse(reading->why, zone_at, "the time zone of the rule: %s",
                                reading->zone);
    }
    return reader_skip(reader, ':') ? 0 : refuse(reading, ": and a time");
}

static int read_exceptions(struct reading *reading)
{
    struct reader *reader = &reading->reader;
    size_t *counts = reading->rrule.excluded_count;
    int exdate = read_exdate(reading);
    if (exdate) return exdate;
    do {
        int64_t at = 0;
        bool is_utc = false;
        if (counts[0] + counts[1] == BEL_RRULE_EXDATES_MAX) {
            return bel__text_refuse(reading->why, reader->at, "at most %d exceptions",
                                    BEL_RRULE_EXDATES_MAX);
        }
        int err = read_time(reading, &at, &is_utc);
        if (err) return err;
        reading->excluded[is_utc][counts[is_utc]++] = at;
    } while (reader_skip(reader, ','));
    return 0;
}

static int read_text(struct reading *reading)
{
    struct reader *reader = &reading->reader;
    (void)skip_word(reader, "RRULE:");
    do {
        int err = read_part(reading);
        if (err) return err;
    } while (reader_skip(reader, ';'));
    if (!has(reading, PART_FREQ)) return refuse(reading, "; and FREQ=");
    for (;;) {
        if (reader_at_end(reader)) return 0;
        if (!is_space(reader_peek(reader))) return refuse(reading, "; or , or a space or the end");
        while (is_space(reader_peek(reader))) {
            reader->at++;
        }
        if (reader_at_end(reader)) return 0;
        int err = read_exceptions(reading);
        if (err) return err;
    }
}

static int refuse_part(struct reading *reading, enum part part, const char *expected)
{
    return bel__text_refuse(reading->why, reading->positions[part], "%s", expected);
}

/* Checks that the parts are allowed with the frequency and with each other. */
static int check_parts(struct reading *reading)
{
    const struct bel_rrule *rrule = &reading->rrule;
    unsigned wrong = reading->parts & ~freqs[rrule->freq].parts;
    if (wrong != 0) {
        unsigned part = (unsigned)__builtin_ctz(wrong);
        return bel__text_refuse(reading->why, reading->positions[part], "no %s with FREQ=%s",
                                part_names[part], freqs[rrule->freq].name);
    }
    if (rrule->interval > freqs[rrule->freq].interval_max) {
        return bel__text_refuse(reading->why, reading->positions[PART_INTERVAL],
                                "an INTERVAL up to %" PRIu32, freqs[rrule->freq].interval_max);
    }
    if (has(reading, PART_COUNT) && has(reading, PART_UNTIL)) {
        return refuse_part(reading, PART_UNTIL, "COUNT or UNTIL, not both");
    }
    unsigned of_month = BIT(PART_BYMONTH) | BIT(PART_BYMONTHDAY);
    if (has(reading, PART_BYYEARDAY) && (reading->parts & (of_month | BIT(PART_BYWEEKNO))) != 0) {
        return refuse_part(reading, PART_BYYEARDAY,
                           "no BYYEARDAY with BYMONTH, BYMONTHDAY or BYWEEKNO");
    }
    if (has(reading, PART_BYWEEKNO) && (reading->parts & of_month) != 0) {
        return refuse_part(reading, PART_BYWEEKNO, "no BYWEEKNO with BYMONTH or BYMONTHDAY");
    }
    return 0;
}

/* Checks that weekdays with numbers are counted in a month or a year. */
static int check_nth(struct reading *reading)
{
    enum rrule_freq freq = reading->rrule.freq;
    if (!reading->has_nth) return 0;
    if (freq < RRULE_MONTHLY) {
        return refuse_part(reading, PART_BYDAY, "weekdays without numbers, or MONTHLY or YEARLY");
    }
    bool in_month = freq == RRULE_MONTHLY || has(reading, PART_BYMONTH);
    if (in_month && reading->nth_max > 5) {
        return refuse_part(reading, PART_BYDAY, "numbers from 1 to 5 for weekdays of a month");
    }
    unsigned limits = BIT(PART_BYMONTHDAY) | BIT(PART_BYYEARDAY) | BIT(PART_BYWEEKNO);
    if (!in_month && (reading->parts & limits) != 0) {
        return refuse_part(reading, PART_BYDAY, "weekdays without numbers, or BYDAY alone");
    }
    return 0;
}

/* Checks that positions choose from what other parts name. */
static int check_positions(struct reading *reading)
{
    unsigned others = TIMES | DAYS | BIT(PART_BYYEARDAY) | BIT(PART_BYWEEKNO);
    reading->rrule.has_positions = has(reading, PART_BYSETPOS);
    if (!reading->rrule.has_positions || (reading->parts & others) != 0) return 0;
    return refuse_part(reading, PART_BYSETPOS, "BYSETPOS with another BY part");
}

/* Fills in the times of day that a rule leaves open. */
static void fill_times(struct bel_rrule *rrule)
{
    const struct {
        enum rrule_freq freq;
        uint64_t *set;
        int64_t unit, count;
    } units[] = {
        {RRULE_SECONDLY, &rrule->seconds, 1, 60},
        {RRULE_MINUTELY, &rrule->minutes, 60, 60},
        {RRULE_HOURLY, &rrule->hours, 3600, 24},
    };
    int64_t second = floor_mod(rrule->start, SECONDS_PER_DAY);
    rrule->is_real_time = rrule->freq < RRULE_DAILY && rrule->hours == 0;
    for (unsigned i = 0; i < 3; i++) {
        if (*units[i].set != 0) continue;
        *units[i].set = rrule->freq > units[i].freq
                            ? UINT64_C(1) << second / units[i].unit % units[i].count
                            : (UINT64_C(1) << units[i].count) - 1;
    }
}

/* Returns the kind of dates of a rule, after the open parts were filled in. */
static enum rrule_dates dates_of(const struct reading *reading)
{
    const struct bel_rrule *rrule = &reading->rrule;
    bool is_of_month = rrule->months != 0 || rrule->month_days[0] != 0 ||
                       rrule->month_days[1] != 0 || rrule->freq == RRULE_MONTHLY;
    bool is_nth = reading->has_nth && rrule->weekdays != 0x7f;
    if (has(reading, PART_BYWEEKNO)) return RRULE_WEEKS;
    if (is_of_month) return RRULE_MONTHS;
    if (has(reading, PART_BYYEARDAY) || is_nth) return RRULE_YEARS;
    return rrule->weekdays == 0x7f ? RRULE_EVERY_DAY : RRULE_WEEKDAYS;
}

/* Fills in the dates that a rule leaves open. */
static void fill_dates(struct reading *reading)
{
    struct bel_rrule *rrule = &reading->rrule;
    int64_t day = floor_div(rrule->start, SECONDS_PER_DAY);
    struct civil_date date = civil_from_days(day);
    unsigned days =
        BIT(PART_BYDAY) | BIT(PART_BYMONTHDAY) | BIT(PART_BYYEARDAY) | BIT(PART_BYWEEKNO);
    bool has_days = (reading->parts & days) != 0;
    bool is_by_week = rrule->freq == RRULE_WEEKLY || has(reading, PART_BYWEEKNO);
    if (!has_days && rrule->freq >= RRULE_MONTHLY) {
        rrule->month_days[0] = UINT64_C(1) << date.day;
        if (rrule->freq == RRULE_YEARLY && rrule->months == 0) rrule->months = 1U << date.month;
    }
    if (!has(reading, PART_BYDAY)) {
        rrule->weekdays = (uint8_t)(is_by_week ? 1U << weekday_of(day) : 0x7fU);
    }
    rrule->dates = dates_of(reading);
    if (rrule->months == 0) rrule->months = 0x1ffe;
}

/* Returns the number of days that match in a month of `count` days whose first weekday is
 * `first`. */
static unsigned days_named(const struct bel_rrule *rrule, unsigned count, unsigned first)
{
    unsigned named = 0;
    bool any_day = rrule->month_days[0] == 0 && rrule->month_days[1] == 0;
    for (unsigned day = 1; day <= count; day++) {
        unsigned weekday = (first + day - 1) % 7, back = count - day;
        bool is_day = any_day || (rrule->month_days[0] >> day & 1) != 0 ||
                      (rrule->month_days[1] >> (back + 1) & 1) != 0;
        unsigned weekdays = rrule->weekdays;
        weekdays |= rrule->nth[0][(day - 1) / 7] | (unsigned)rrule->nth[1][back / 7];
        named += is_day && (weekdays >> weekday & 1) != 0;
    }
    return named;
}

/* Returns whether some month has a date that matches. Every month begins on every weekday at some
 * time. */
static bool can_happen(const struct bel_rrule *rrule)
{
    for (unsigned month = 1; month <= 12; month++) {
        if ((rrule->months >> month & 1) == 0) continue;
        for (int32_t year = 2000; year <= 2001; year++) { /* a leap year and another */
            for (unsigned first = 0; first < 7; first++) {
                if (days_named(rrule, days_in_month(year, month), first) > 0) return true;
            }
        }
    }
    return false;
}

/* Finds the last of `count` local times; LOCAL_NONE if the search takes too long. */
static int64_t last_of_count(struct rrule_search *search, int64_t first, uint32_t count)
{
    int64_t horizon = first + (int64_t)RRULE_CYCLE * SECONDS_PER_DAY, local = first;
    search->calls_max = RRULE_COUNT_CALLS;
    search->steps_max = RRULE_COUNT_STEPS;
    while (--count > 0 && local != LOCAL_NONE && local < horizon) {
        local = bel__rrule_next_local(search, local);
    }
    return local < horizon ? local : LOCAL_NONE;
}

/* Finds the first time of the rule, and the last of a COUNT. */
static int try_out(struct reading *reading)
{
    struct bel_rrule *rrule = &reading->rrule;
    struct rrule_search search;
    bel__rrule_search_begin(&search, rrule);
    int64_t first = bel__rrule_next_local(&search, rrule->start - 1), last = rrule->last;
    if (first != LOCAL_NONE && reading->count > 0) {
        last = last_of_count(&search, first, reading->count);
    }
    bel__rrule_search_end(&search);
    if (search.err) return search.err;
    if (first == LOCAL_NONE) {
        return refuse_part(reading, PART_FREQ, "a rule that names a time within 400 years");
    }
    if (last == LOCAL_NONE) {
        bool is_much = search.calls >= search.calls_max || search.steps >= search.steps_max;
        return refuse_part(reading, PART_COUNT,
                           is_much ? "a smaller COUNT: too many dates to search"
                                   : "a COUNT that is reached within 400 years");
    }
    rrule->last = last;
    return 0;
}

static int check_rule(struct reading *reading)
{
    int err = check_parts(reading);
    if (err == 0) err = check_nth(reading);
    if (err) return err;
    fill_times(&reading->rrule);
    err = check_positions(reading);
    if (err) return err;
    fill_dates(reading);
    if (reading->rrule.dates == RRULE_MONTHS && !can_happen(&reading->rrule)) {
        return refuse_part(reading, PART_FREQ, "a rule with a date that exists");
    }
    return try_out(reading);
}

static int compare_times(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Allocates the rule that was read, with its lists in one block of memory. */
static struct bel_rrule *keep(const struct reading *reading)
{
    const struct bel_rrule *from = &reading->rrule;
    size_t count = from->excluded_count[0] + from->excluded_count[1];
    size_t bytes = reading->reader.bytes;
    struct bel_rrule *rrule = malloc(sizeof *rrule + count * sizeof(int64_t) + bytes + 1);
    if (rrule == NULL) return NULL;
    *rrule = *from;
    rrule->excluded[0] = (int64_t *)(rrule + 1);
    rrule->excluded[1] = rrule->excluded[0] + from->excluded_count[0];
    for (unsigned kind = 0; kind < 2; kind++) {
        size_t kind_count = from->excluded_count[kind];
        memcpy(rrule->excluded[kind], reading->excluded[kind], kind_count * sizeof(int64_t));
        qsort(rrule->excluded[kind], kind_count, sizeof(int64_t), compare_times);
    }
    rrule->text = (char *)(rrule->excluded[0] + count);
    memcpy(rrule->text, reading->reader.text, bytes);
    rrule->text[bytes] = '\0';
    return rrule;
}

int bel__rrule_parse(struct bel_view text, const struct bel_civil *start, const char *zone,
                     struct bel_rrule **out, struct bel_text_error *why)
{
    struct bel_zone_instants local;
    int err = bel_zone_at(bel_zone_utc(), start, &local);
    if (err) return bel__text_refuse(why, 0, "a start that is a date and time");
    if (text.bytes > BEL_RRULE_TEXT_MAX) {
        return bel__text_refuse(why, BEL_RRULE_TEXT_MAX, "at most %d bytes", BEL_RRULE_TEXT_MAX);
    }
    struct reading reading = {
        .reader = {text.data, text.bytes, 0},
        .why = why,
        .zone = zone,
        .rrule = {.interval = 1,
                  .week_start = 1,
                  .start = local.first,
                  .last = INT64_MAX,
                  .last_utc = INT64_MAX},
    };
    err = read_text(&reading);
    if (err == 0) err = check_rule(&reading);
    if (err) return err;
    struct bel_rrule *rrule = keep(&reading);
    if (rrule == NULL) return BEL_ENOMEM;
    *out = rrule;
    return 0;
}

int bel_rrule_parse(const char *text, size_t bytes, const struct bel_civil *start,
                    struct bel_rrule **out, struct bel_text_error *why)
{
    return bel__rrule_parse((struct bel_view){text, bytes}, start, NULL, out, why);
}

bool bel_rrule_is_supported(void)
{
    return true;
}

void bel_rrule_destroy(struct bel_rrule *rrule)
{
    free(rrule);
}

const char *bel_rrule_text(const struct bel_rrule *rrule)
{
    return rrule->text;
}
