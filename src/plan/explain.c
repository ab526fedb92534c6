/* SPDX-License-Identifier: MIT */

/*
 * A sentence has up to three parts: times, days and months. Each is written in the shortest exact
 * form: a few times of day one by one, many by their fields; a step as a step, if it divides the
 * hour or minute evenly; neighbours as a range.
 *
 *     At 09:00 and 17:30 on Monday to Friday in January and July
 *     Every 15 minutes of hours 9 to 17 on the last Friday of the month
 */
#include "plan/explain.h"

enum {
    TIMES_MAX = 4 /* that are listed one by one */
};

static const char *const month_names[] = {
    "",     "January", "February",  "March",   "April",    "May",      "June",
    "July", "August",  "September", "October", "November", "December",
};

static const char *const weekday_names[] = {
    "Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday",
};

static const char *const nth_names[] = {"first", "second", "third", "fourth", "fifth"};

/* A list in words: the number of items, and the number written so far. */
struct list {
    struct writer *writer;
    unsigned count, said;
};

static void next_item(struct list *list)
{
    list->said++;
    if (list->said == 1) return;
    writer_text(list->writer, list->said == list->count ? " and " : ", ");
}

static void put_value(struct writer *writer, unsigned value, const char *const *names)
{
    if (names != NULL) {
        writer_text(writer, names[value]);
    } else {
        writer_number(writer, value);
    }
}

/* Returns the end of the range that begins with `first`; a range has at least three values. */
static unsigned run_end(uint64_t bits, unsigned first)
{
    unsigned last = first;
    while (last < 63 && (bits >> (last + 1) & 1) != 0) {
        last++;
    }
    return last >= first + 2 ? last : first;
}

static unsigned count_runs(uint64_t bits)
{
    unsigned count = 0;
    while (bits != 0) {
        unsigned first = (unsigned)__builtin_ctzll(bits), last = run_end(bits, first);
        bits = last < 63 ? bits >> (last + 1) << (last + 1) : 0;
        count++;
    }
    return count;
}

static void put_runs(struct list *list, uint64_t bits, const char *const *names)
{
    while (bits != 0) {
        unsigned first = (unsigned)__builtin_ctzll(bits), last = run_end(bits, first);
        next_item(list);
        put_value(list->writer, first, names);
        if (last > first) {
            writer_text(list->writer, " to ");
            put_value(list->writer, last, names);
        }
        bits = last < 63 ? bits >> (last + 1) << (last + 1) : 0;
    }
}

static void put_values(struct writer *writer, uint64_t bits, const char *const *names)
{
    struct list list = {writer, count_runs(bits), 0};
    put_runs(&list, bits, names);
}

static unsigned count_bits(uint64_t bits)
{
    return (unsigned)__builtin_popcountll(bits);
}

static void put_clock(struct writer *writer, const struct bel_cron *cron, unsigned hour,
                      unsigned minute, unsigned second)
{
    writer_padded(writer, hour, 2);
    writer_put(writer, ':');
    writer_padded(writer, minute, 2);
    if (!cron->has_seconds) return;
    writer_put(writer, ':');
    writer_padded(writer, second, 2);
}

/* Writes a few times of day, one by one. */
static void put_times(struct writer *writer, const struct bel_cron *cron)
{
    struct list list = {writer, 0, 0};
    list.count = count_bits(cron->hours) * count_bits(cron->minutes) * count_bits(cron->seconds);
    writer_text(writer, "At ");
    for (uint64_t h = cron->hours; h != 0; h &= h - 1) {
        for (uint64_t m = cron->minutes; m != 0; m &= m - 1) {
            for (uint64_t s = cron->seconds; s != 0; s &= s - 1) {
                next_item(&list);
                put_clock(writer, cron, (unsigned)__builtin_ctzll(h), (unsigned)__builtin_ctzll(m),
                          (unsigned)__builtin_ctzll(s));
            }
        }
    }
}

static void put_listed(struct writer *writer, uint64_t bits, const char *unit)
{
    writer_text(writer, unit);
    if (count_bits(bits) > 1) writer_put(writer, 's');
    writer_put(writer, ' ');
    put_values(writer, bits, NULL);
}

/* Returns the step of a field if it divides 60, otherwise 0: with a step of 7, the distance from 56
 * to 0 is 4. */
static unsigned even_step(const struct bel_cron *cron, unsigned field)
{
    unsigned step = cron->star_steps[field];
    return step > 0 && 60 % step == 0 ? step : 0;
}

/* Writes a field in words: "every second", "every 15 minutes", "minutes 5 and 10"; at the beginning
 * of the sentence or later. */
static void put_unit(struct writer *writer, uint64_t bits, unsigned step, const char *unit)
{
    bool begins = writer->bytes == 0;
    uint64_t covered = 0;
    for (unsigned value = 0; step > 0 && value < 60; value += step) {
        covered |= UINT64_C(1) << value;
    }
    if (!begins) writer_text(writer, " of ");
    if (step > 0 && bits == covered) {
        writer_text(writer, begins ? "Every " : "every ");
        if (step > 1) {
            writer_number(writer, step);
            writer_put(writer, ' ');
        }
        writer_text(writer, unit);
        if (step > 1) writer_put(writer, 's');
        return;
    }
    if (begins) writer_text(writer, "At ");
    put_listed(writer, bits, unit);
}

/* Writes many times of day, by their fields. */
static void put_fields(struct writer *writer, const struct bel_cron *cron)
{
    unsigned second = even_step(cron, CRON_SECOND), minute = even_step(cron, CRON_MINUTE);
    bool names_all_hours = cron->star_steps[CRON_HOUR] == 1;
    if (cron->has_seconds && cron->seconds != 1) {
        put_unit(writer, cron->seconds, second, "second");
    }
    if (writer->bytes == 0 || minute != 1 || second == 0) {
        put_unit(writer, cron->minutes, minute, "minute");
    }
    if (names_all_hours && minute != 0) return;
    if (names_all_hours) {
        writer_text(writer, " of every hour");
    } else {
        writer_text(writer, " of ");
        put_listed(writer, cron->hours, "hour");
    }
}

static bool names_all_days(const struct bel_cron *cron)
{
    return cron->star_steps[CRON_DAY] == 1 && cron->star_steps[CRON_WEEKDAY] == 1;
}

static void put_days(struct writer *writer, const struct bel_cron *cron)
{
    bool has_plain = cron->days != 0;
    struct list list = {writer, has_plain + count_bits(cron->before_last), 0};
    list.count += count_bits(cron->nearest) + cron->nearest_last;
    if (has_plain) {
        next_item(&list);
        put_listed(writer, cron->days, "day");
        writer_text(writer, " of the month");
    }
    for (uint32_t rest = cron->before_last; rest != 0; rest &= rest - 1) {
        unsigned before = (unsigned)__builtin_ctz(rest);
        next_item(&list);
        if (before > 0) {
            writer_number(writer, before);
            writer_text(writer, before > 1 ? " days before " : " day before ");
        }
        writer_text(writer, "the last day of the month");
    }
    for (uint32_t rest = cron->nearest; rest != 0; rest &= rest - 1) {
        next_item(&list);
        writer_text(writer, "the weekday nearest to day ");
        writer_number(writer, (unsigned)__builtin_ctz(rest));
        writer_text(writer, " of the month");
    }
    if (cron->nearest_last) {
        next_item(&list);
        writer_text(writer, "the last weekday of the month");
    }
}

static void put_weekdays(struct writer *writer, const struct bel_cron *cron)
{
    struct list list = {writer, count_runs(cron->weekdays) + count_bits(cron->last_weekdays), 0};
    for (unsigned nth = 0; nth < 5; nth++) {
        list.count += count_bits(cron->nth_weekdays[nth]);
    }
    put_runs(&list, cron->weekdays, weekday_names);
    for (unsigned nth = 0; nth < 5; nth++) {
        for (unsigned rest = cron->nth_weekdays[nth]; rest != 0; rest &= rest - 1) {
            next_item(&list);
            writer_text(writer, "the ");
            writer_text(writer, nth_names[nth]);
            writer_put(writer, ' ');
            writer_text(writer, weekday_names[__builtin_ctz(rest)]);
            writer_text(writer, " of the month");
        }
    }
    for (unsigned rest = cron->last_weekdays; rest != 0; rest &= rest - 1) {
        next_item(&list);
        writer_text(writer, "the last ");
        writer_text(writer, weekday_names[__builtin_ctz(rest)]);
        writer_text(writer, " of the month");
    }
}

/* Writes the days; day and weekday are joined by "or" or by "if that is". */
static void put_dates(struct writer *writer, const struct bel_cron *cron)
{
    bool says_day = cron->star_steps[CRON_DAY] != 1,
         says_weekday = cron->star_steps[CRON_WEEKDAY] != 1;
    if (says_day) {
        writer_text(writer, " on ");
        put_days(writer, cron);
    }
    if (says_day && says_weekday) {
        writer_text(writer, cron_either(cron) ? " or on " : " if that is ");
    } else if (says_weekday) {
        writer_text(writer, " on ");
    }
    if (says_weekday) put_weekdays(writer, cron);
}

void bel__explain_cron(struct writer *writer, const struct bel_cron *cron)
{
    unsigned times =
        count_bits(cron->hours) * count_bits(cron->minutes) * count_bits(cron->seconds);
    if (times <= TIMES_MAX && cron->star_steps[CRON_HOUR] == 0) {
        put_times(writer, cron);
    } else {
        put_fields(writer, cron);
    }
    if (!names_all_days(cron)) put_dates(writer, cron);
    if (cron->star_steps[CRON_MONTH] == 1) return;
    writer_text(writer, " in ");
    put_values(writer, cron->months, month_names);
}
