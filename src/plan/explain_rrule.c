/* SPDX-License-Identifier: MIT */

/*
 * A sentence of a recurrence rule has the frequency, the months, the days, the times of day and the
 * end, each unless it is unrestricted:
 *
 *     Every 2 weeks on Monday and Friday at 09:00
 *     Every month on the last Friday at 09:00, until 2027-12-31 23:59:59
 *     Every 15 minutes on Monday to Friday of hours 9 to 17
 */
#include "plan/civil.h"
#include "plan/explain.h"
#include "plan/rrule.h"

enum {
    TIMES_MAX = 4, /* that are listed one by one */
    DAYS_MAX = 12, /* days of the year that are listed */
};

static unsigned count_bits(uint64_t bits)
{
    return (unsigned)__builtin_popcountll(bits);
}

static void put_frequency(struct writer *writer, const struct bel_rrule *rrule)
{
    static const char *const units[] = {"second", "minute", "hour", "day", "week", "month", "year"};
    writer_text(writer, "Every ");
    if (rrule->interval > 1) {
        writer_number(writer, rrule->interval);
        writer_put(writer, ' ');
    }
    writer_text(writer, units[rrule->freq]);
    if (rrule->interval > 1) writer_put(writer, 's');
}

/* Writes what comes before the next item of a list: " on ", ", ". */
static void begin_item(struct writer *writer, bool *is_first)
{
    writer_text(writer, *is_first ? " on " : ", ");
    *is_first = false;
}

/* Writes "last", "2nd to last". */
static void put_from_end(struct writer *writer, unsigned number)
{
    if (number > 1) {
        bel__explain_ordinal(writer, number);
        writer_text(writer, " to ");
    }
    writer_text(writer, "last");
}

static void put_month_days(struct writer *writer, const struct bel_rrule *rrule, bool *is_first)
{
    if (rrule->month_days[0] != 0) {
        begin_item(writer, is_first);
        bel__explain_listed(writer, rrule->month_days[0], 1, 31, "day");
    }
    for (unsigned back = 1; back <= 31; back++) {
        if ((rrule->month_days[1] >> back & 1) == 0) continue;
        begin_item(writer, is_first);
        writer_text(writer, "the ");
        put_from_end(writer, back);
        writer_text(writer, " day");
    }
}

/* Writes a number from the start or the end: "2nd", "last". */
static void put_place(struct writer *writer, unsigned sign, unsigned number)
{
    if (sign == 0) {
        bel__explain_ordinal(writer, number);
    } else {
        put_from_end(writer, number);
    }
}

/* Writes weekdays with numbers: "the 1st Monday", "the last Friday". */
static void put_nth(struct writer *writer, const struct bel_rrule *rrule, bool *is_first)
{
    for (unsigned i = 0; i < 2 * RRULE_NTH_MAX; i++) {
        unsigned sign = i / RRULE_NTH_MAX, number = i % RRULE_NTH_MAX;
        for (unsigned rest = rrule->nth[sign][number]; rest != 0; rest &= rest - 1) {
            begin_item(writer, is_first);
            writer_text(writer, "the ");
            put_place(writer, sign, number + 1);
            writer_put(writer, ' ');
            writer_text(writer, bel__weekday_names[__builtin_ctz(rest)]);
        }
    }
}

static void put_year_days(struct writer *writer, const struct bel_rrule *rrule, bool *is_first)
{
    unsigned said = 0;
    for (unsigned sign = 0; sign < 2; sign++) {
        for (unsigned day = 1; day <= 366; day++) {
            if ((rrule->year_days[sign][day / 64] >> day % 64 & 1) == 0) continue;
            if (++said > DAYS_MAX) continue;
            begin_item(writer, is_first);
            writer_text(writer, "the ");
            put_place(writer, sign, day);
            writer_text(writer, " day of the year");
        }
    }
    if (said <= DAYS_MAX) return;
    writer_text(writer, " and ");
    writer_number(writer, said - DAYS_MAX);
    writer_text(writer, " more");
}

static void put_dates(struct writer *writer, const struct bel_rrule *rrule)
{
    bool is_first = true;
    bool has_days = rrule->month_days[0] != 0 || rrule->month_days[1] != 0;
    if (rrule->weeks[0] != 0 || rrule->weeks[1] != 0) writer_text(writer, " in ");
    if (rrule->weeks[0] != 0) bel__explain_listed(writer, rrule->weeks[0], 1, 53, "week");
    for (unsigned back = 1, said = rrule->weeks[0] != 0; back <= 53; back++) {
        if ((rrule->weeks[1] >> back & 1) == 0) continue;
        writer_text(writer, said++ > 0 ? ", the " : "the ");
        put_from_end(writer, back);
        writer_text(writer, " week");
    }
    if (rrule->months != 0x1ffe) {
        writer_text(writer, " in ");
        bel__explain_values(writer, rrule->months, 1, 12, bel__month_names);
    }
    put_month_days(writer, rrule, &is_first);
    put_year_days(writer, rrule, &is_first);
    if (rrule->weekdays != 0x7f && rrule->weekdays != 0) {
        if (has_days) {
            writer_text(writer, " if that is ");
        } else {
            begin_item(writer, &is_first);
        }
        bel__explain_values(writer, rrule->weekdays, 0, 6, bel__weekday_names);
    }
    put_nth(writer, rrule, &is_first);
}

static void put_clock(struct writer *writer, unsigned hour, unsigned minute, unsigned second)
{
    writer_padded(writer, hour, 2);
    writer_put(writer, ':');
    writer_padded(writer, minute, 2);
    if (second == 0) return;
    writer_put(writer, ':');
    writer_padded(writer, second, 2);
}

/* Writes a few times of day one by one. */
static void put_times(struct writer *writer, const struct bel_rrule *rrule)
{
    const char *before = " at ";
    unsigned left = bel__rrule_times(rrule);
    for (uint64_t h = rrule->hours; h != 0; h &= h - 1) {
        for (uint64_t m = rrule->minutes; m != 0; m &= m - 1) {
            for (uint64_t s = rrule->seconds; s != 0; s &= s - 1) {
                writer_text(writer, before);
                put_clock(writer, (unsigned)__builtin_ctzll(h), (unsigned)__builtin_ctzll(m),
                          (unsigned)__builtin_ctzll(s));
                before = --left == 1 ? " and " : ", ";
            }
        }
    }
}

/* Writes the fields of many times of day that are restricted. */
static void put_fields(struct writer *writer, const struct bel_rrule *rrule)
{
    const struct {
        uint64_t bits;
        unsigned max;
        const char *unit;
    } fields[] = {
        {rrule->seconds, 59, "second"}, {rrule->minutes, 59, "minute"}, {rrule->hours, 23, "hour"}};
    const char *before = " at ";
    for (unsigned i = 0; i < 3; i++) {
        bool is_all = count_bits(fields[i].bits) == fields[i].max + 1;
        bool is_zero = i == 0 && fields[i].bits == 1; /* second 0 goes without saying */
        if (is_all || is_zero) continue;
        writer_text(writer, before);
        bel__explain_listed(writer, fields[i].bits, 0, fields[i].max, fields[i].unit);
        before = " of ";
    }
}

static void put_positions(struct writer *writer, const struct bel_rrule *rrule)
{
    const char *before = ", of these the ";
    for (unsigned sign = 0; sign < 2; sign++) {
        for (unsigned place = 1; place <= RRULE_POSITION_MAX; place++) {
            if ((rrule->positions[sign][place / 64] >> place % 64 & 1) == 0) continue;
            writer_text(writer, before);
            put_place(writer, sign, place);
            before = ", ";
        }
    }
}

static void put_end(struct writer *writer, int64_t last, const char *zone)
{
    struct civil_date date = civil_from_days(floor_div(last, SECONDS_PER_DAY));
    unsigned second = (unsigned)floor_mod(last, SECONDS_PER_DAY);
    writer_text(writer, ", until ");
    writer_padded(writer, (uint64_t)(date.year > 0 ? date.year : 0), 4);
    writer_put(writer, '-');
    writer_padded(writer, date.month, 2);
    writer_put(writer, '-');
    writer_padded(writer, date.day, 2);
    writer_put(writer, ' ');
    put_clock(writer, second / 3600, second / 60 % 60, second % 60);
    writer_text(writer, zone);
}

void bel__explain_rrule(struct writer *writer, const struct bel_rrule *rrule)
{
    size_t exceptions = rrule->excluded_count[0] + rrule->excluded_count[1];
    put_frequency(writer, rrule);
    put_dates(writer, rrule);
    if (bel__rrule_times(rrule) <= TIMES_MAX) {
        put_times(writer, rrule);
    } else {
        put_fields(writer, rrule);
    }
    put_positions(writer, rrule);
    if (rrule->last != INT64_MAX) put_end(writer, rrule->last, "");
    if (rrule->last_utc != INT64_MAX) put_end(writer, rrule->last_utc, " UTC");
    if (exceptions == 0) return;
    writer_text(writer, ", with ");
    writer_number(writer, exceptions);
    writer_text(writer, exceptions > 1 ? " exceptions" : " exception");
}
