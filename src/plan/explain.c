/* SPDX-License-Identifier: MIT */

/*
 * A sentence has up to three parts: times, days and months. Each is written in the shortest exact
 * form: a few times of day one by one, many by their fields; a step as a step, if it divides the
 * day, hour or minute evenly, otherwise with its ends; neighbours as a range, which may wrap.
 *
 *     At 09:00 and 17:30 on Monday to Friday in January and July
 *     Every 15 minutes of hours 9 to 17 on the last Friday of the month
 *     Every 2 hours on Friday to Sunday
 */
#include "plan/explain.h"

enum {
    TIMES_MAX = 4, /* that are listed one by one */
    STEPS_MIN = 5, /* values in equal steps that are not listed */
};

const char *const bel__month_names[13] = {
    "",     "January", "February",  "March",   "April",    "May",      "June",
    "July", "August",  "September", "October", "November", "December",
};

const char *const bel__weekday_names[7] = {
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

/* A set of values that may wrap: after `max` comes `min`. */
struct values {
    uint64_t bits;
    unsigned min, max;
};

/* Takes the range that wraps out of a set: at least three values, from `*first` over the end of the
 * field to `*last`. Returns whether there is one. */
static bool take_wrapped(struct values *values, unsigned *first, unsigned *last)
{
    uint64_t all = ((UINT64_C(2) << values->max) - 1) & ~((UINT64_C(1) << values->min) - 1);
    uint64_t unset = all & ~values->bits;
    bool has_ends = (values->bits >> values->min & values->bits >> values->max & 1) != 0;
    if (!has_ends || unset == 0) return false;
    *first = 64 - (unsigned)__builtin_clzll(unset);
    *last = (unsigned)__builtin_ctzll(unset) - 1;
    unsigned count = values->max - *first + 1 + *last - values->min + 1;
    if (count < 3) return false;
    values->bits &= (UINT64_C(1) << *first) - 1;
    values->bits &= ~((UINT64_C(2) << *last) - 1);
    return true;
}

static unsigned count_runs(struct values values)
{
    unsigned first, last, count = take_wrapped(&values, &first, &last);
    for (uint64_t bits = values.bits; bits != 0; count++) {
        first = (unsigned)__builtin_ctzll(bits);
        last = run_end(bits, first);
        bits = last < 63 ? bits >> (last + 1) << (last + 1) : 0;
    }
    return count;
}

static void put_run(struct list *list, unsigned first, unsigned last, const char *const *names)
{
    next_item(list);
    put_value(list->writer, first, names);
    if (last == first) return;
    writer_text(list->writer, " to ");
    put_value(list->writer, last, names);
}

static void put_runs(struct list *list, struct values values, const char *const *names)
{
    unsigned wrapped_first = 0, wrapped_last = 0;
    bool wraps = take_wrapped(&values, &wrapped_first, &wrapped_last);
    for (uint64_t bits = values.bits; bits != 0;) {
        unsigned first = (unsigned)__builtin_ctzll(bits), last = run_end(bits, first);
        put_run(list, first, last, names);
        bits = last < 63 ? bits >> (last + 1) << (last + 1) : 0;
    }
    if (wraps) put_run(list, wrapped_first, wrapped_last, names);
}

static void put_values(struct writer *writer, struct values values, const char *const *names)
{
    struct list list = {writer, count_runs(values), 0};
    put_runs(&list, values, names);
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

/* Returns the step of many values in equal steps of at least 2; 0 for any other set. */
static unsigned step_of(uint64_t bits)
{
    if (count_bits(bits) < STEPS_MIN) return 0;
    unsigned first = (unsigned)__builtin_ctzll(bits);
    unsigned step = (unsigned)__builtin_ctzll(bits & (bits - 1)) - first, next = first;
    for (uint64_t rest = bits; rest != 0; rest &= rest - 1, next += step) {
        if ((unsigned)__builtin_ctzll(rest) != next) return 0;
    }
    return step > 1 ? step : 0;
}

void bel__explain_ordinal(struct writer *writer, unsigned number)
{
    static const char *const ends[] = {"th", "st", "nd", "rd"};
    bool is_teen = number % 100 >= 11 && number % 100 <= 13;
    writer_number(writer, number);
    writer_text(writer, number % 10 <= 3 && !is_teen ? ends[number % 10] : "th");
}

static void put_listed(struct writer *writer, struct values values, const char *unit)
{
    unsigned step = step_of(values.bits);
    if (step > 0) {
        writer_text(writer, "every ");
        bel__explain_ordinal(writer, step);
        writer_put(writer, ' ');
        writer_text(writer, unit);
        writer_text(writer, " from ");
        writer_number(writer, (unsigned)__builtin_ctzll(values.bits));
        writer_text(writer, " to ");
        writer_number(writer, 63 - (unsigned)__builtin_clzll(values.bits));
        return;
    }
    writer_text(writer, unit);
    if (count_bits(values.bits) > 1) writer_put(writer, 's');
    writer_put(writer, ' ');
    put_values(writer, values, NULL);
}

/* Returns the step of a field that names every n-th of `count` values from 0 on, evenly: with a
 * step of 7, the distance from minute 56 to 0 is 4. Otherwise returns 0. */
static unsigned even_step(const struct bel_cron *cron, unsigned field, uint64_t bits,
                          unsigned count)
{
    unsigned step = cron->star_steps[field] > 0 ? cron->star_steps[field] : step_of(bits);
    uint64_t covered = 0;
    if (step == 0 || count % step != 0) return 0;
    for (unsigned value = 0; value < count; value += step) {
        covered |= UINT64_C(1) << value;
    }
    return bits == covered ? step : 0;
}

/* Writes a field in words: "every second", "every 15 minutes", "minutes 5 and 10"; at the beginning
 * of the sentence or later. */
static void put_unit(struct writer *writer, uint64_t bits, unsigned step, const char *unit)
{
    bool begins = writer->bytes == 0;
    if (!begins) writer_text(writer, " of ");
    if (step > 0) {
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
    put_listed(writer, (struct values){bits, 0, 59}, unit);
}

static void put_hours(struct writer *writer, const struct bel_cron *cron, unsigned step)
{
    writer_text(writer, " of ");
    if (step == 0) {
        put_listed(writer, (struct values){cron->hours, 0, 23}, "hour");
        return;
    }
    writer_text(writer, "every ");
    if (step > 1) {
        bel__explain_ordinal(writer, step);
        writer_put(writer, ' ');
    }
    writer_text(writer, "hour");
}

static void put_hour(struct writer *writer, unsigned hour)
{
    writer_padded(writer, hour, 2);
    writer_text(writer, ":00");
}

/* Writes full hours that are one range, or in equal steps: "Every hour from 22:00 to 06:00".
 * Returns false if they are neither. */
static bool put_full_hours(struct writer *writer, uint64_t hours)
{
    struct values rest = {hours, 0, 23};
    unsigned step = step_of(hours), first, last;
    bool wraps = take_wrapped(&rest, &first, &last);
    if (!wraps) {
        first = (unsigned)__builtin_ctzll(hours);
        last = 63 - (unsigned)__builtin_clzll(hours);
    }
    if (count_runs((struct values){hours, 0, 23}) > 1 && step == 0) return false;
    put_unit(writer, hours, step > 0 ? step : 1, "hour");
    writer_text(writer, " from ");
    put_hour(writer, first);
    writer_text(writer, " to ");
    put_hour(writer, last);
    return true;
}

/* Writes many times of day, by their fields. */
static void put_fields(struct writer *writer, const struct bel_cron *cron)
{
    unsigned second = even_step(cron, CRON_SECOND, cron->seconds, 60);
    unsigned minute = even_step(cron, CRON_MINUTE, cron->minutes, 60);
    unsigned hour = even_step(cron, CRON_HOUR, cron->hours, 24);
    bool has_seconds = cron->has_seconds && cron->seconds != 1;
    if (hour > 0 && !has_seconds && cron->minutes == 1) {
        put_unit(writer, cron->hours, hour, "hour");
        return;
    }
    if (!has_seconds && cron->minutes == 1 && put_full_hours(writer, cron->hours)) return;
    if (has_seconds) put_unit(writer, cron->seconds, second, "second");
    if (writer->bytes == 0 || minute != 1 || second == 0) {
        put_unit(writer, cron->minutes, minute, "minute");
    }
    if (hour != 1 || minute == 0) put_hours(writer, cron, hour);
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
    list.count += count_bits(cron->nearest_before_last);
    if (has_plain) {
        next_item(&list);
        put_listed(writer, (struct values){cron->days, 1, 31}, "day");
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
    for (uint32_t rest = cron->nearest_before_last; rest != 0; rest &= rest - 1) {
        unsigned before = (unsigned)__builtin_ctz(rest);
        next_item(&list);
        writer_text(writer, "the weekday nearest to ");
        writer_number(writer, before);
        writer_text(writer, before > 1 ? " days before" : " day before");
        writer_text(writer, " the last of the month");
    }
    if (cron->nearest_last) {
        next_item(&list);
        writer_text(writer, "the last weekday of the month");
    }
}

static void put_weekdays(struct writer *writer, const struct bel_cron *cron)
{
    struct values weekdays = {cron->weekdays, 0, 6};
    struct list list = {writer, count_runs(weekdays) + count_bits(cron->last_weekdays), 0};
    for (unsigned nth = 0; nth < 5; nth++) {
        list.count += count_bits(cron->nth_weekdays[nth]);
    }
    put_runs(&list, weekdays, bel__weekday_names);
    for (unsigned nth = 0; nth < 5; nth++) {
        for (unsigned rest = cron->nth_weekdays[nth]; rest != 0; rest &= rest - 1) {
            next_item(&list);
            writer_text(writer, "the ");
            writer_text(writer, nth_names[nth]);
            writer_put(writer, ' ');
            writer_text(writer, bel__weekday_names[__builtin_ctz(rest)]);
            writer_text(writer, " of the month");
        }
    }
    for (unsigned rest = cron->last_weekdays; rest != 0; rest &= rest - 1) {
        next_item(&list);
        writer_text(writer, "the last ");
        writer_text(writer, bel__weekday_names[__builtin_ctz(rest)]);
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

/* Writes many years in equal steps: "every 2nd year from 2030". Returns false if they are not. */
static bool put_year_steps(struct writer *writer, const struct bel_cron *cron)
{
    int32_t first = 0, last = 0, step = 0;
    unsigned count = 0;
    for (int32_t year = CRON_YEAR_MIN; year <= CRON_YEAR_MAX; year++) {
        if (!cron_has_year(cron, year)) continue;
        if (count == 0) first = year;
        if (count == 1) step = year - first;
        if (count > 1 && year - last != step) return false;
        last = year;
        count++;
    }
    if (count < STEPS_MIN || step < 2) return false;
    writer_text(writer, "every ");
    bel__explain_ordinal(writer, (unsigned)step);
    writer_text(writer, " year from ");
    writer_number(writer, (uint64_t)first);
    if (last + step > CRON_YEAR_MAX) return true; /* to the end of the field */
    writer_text(writer, " to ");
    writer_number(writer, (uint64_t)last);
    return true;
}

/* Writes the years: "2030", "2030 to 2032 and 2040". */
static void put_years(struct writer *writer, const struct bel_cron *cron)
{
    struct list list = {writer, 0, 0};
    if (put_year_steps(writer, cron)) return;
    for (int pass = 0; pass < 2; pass++) { /* first count, then write */
        for (int32_t year = CRON_YEAR_MIN; year <= CRON_YEAR_MAX; year++) {
            int32_t last = year;
            if (!cron_has_year(cron, year)) continue;
            while (cron_has_year(cron, last + 1)) {
                last++;
            }
            if (pass == 0) {
                list.count++;
            } else {
                put_run(&list, (unsigned)year, (unsigned)last, NULL);
            }
            year = last;
        }
    }
}

void bel__explain_cron(struct writer *writer, const struct bel_cron *cron)
{
    unsigned times =
        count_bits(cron->hours) * count_bits(cron->minutes) * count_bits(cron->seconds);
    bool steps_hours = cron->star_steps[CRON_HOUR] != 0 && count_bits(cron->hours) > 1;
    if (times <= TIMES_MAX && !steps_hours) {
        put_times(writer, cron);
    } else {
        put_fields(writer, cron);
    }
    if (!names_all_days(cron)) put_dates(writer, cron);
    bool has_months = cron->star_steps[CRON_MONTH] != 1;
    if (has_months) {
        writer_text(writer, " in ");
        put_values(writer, (struct values){cron->months, 1, 12}, bel__month_names);
    }
    if (!cron->has_years) return;
    writer_text(writer, has_months ? " of " : " in ");
    put_years(writer, cron);
}

void bel__explain_values(struct writer *writer, uint64_t bits, unsigned min, unsigned max,
                         const char *const *names)
{
    put_values(writer, (struct values){bits, min, max}, names);
}

void bel__explain_listed(struct writer *writer, uint64_t bits, unsigned min, unsigned max,
                         const char *unit)
{
    put_listed(writer, (struct values){bits, min, max}, unit);
}
