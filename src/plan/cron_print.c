/* SPDX-License-Identifier: MIT */

/*
 * Prints a rule from its bits: the star that the field starts with, the values that the star does
 * not cover, with neighbours as ranges, and then the items that depend on the month. Parsing the
 * result gives the same bits and stars, and so the same rule.
 */
#include "plan/cron.h"
#include "plan/writer.h"

/* Writes the separator before an item of a list. */
static void begin_item(struct writer *writer, bool *is_first)
{
    if (!*is_first) writer_put(writer, ',');
    *is_first = false;
}

static void put_ranges(struct writer *writer, uint64_t bits, bool *is_first)
{
    while (bits != 0) {
        unsigned first = (unsigned)__builtin_ctzll(bits), last = first;
        while (last < 63 && (bits >> (last + 1) & 1) != 0) {
            last++;
        }
        begin_item(writer, is_first);
        writer_number(writer, first);
        if (last > first) {
            writer_put(writer, '-');
            writer_number(writer, last);
        }
        bits = last < 63 ? bits >> (last + 1) << (last + 1) : 0;
    }
}

/* Returns the values that a star with a step covers. */
static uint64_t covered(unsigned min, unsigned max, unsigned step)
{
    uint64_t bits = 0;
    for (unsigned value = min; step > 0 && value <= max; value += step) {
        bits |= UINT64_C(1) << value;
    }
    return bits;
}

static void put_field(struct writer *writer, const struct bel_cron *cron, enum cron_field field,
                      bool *is_first)
{
    static const struct {
        uint8_t min, max;
    } ends[CRON_FIELDS] = {{0, 59}, {0, 59}, {0, 23}, {1, 31}, {1, 12}, {0, 6}};
    const uint64_t bits[CRON_FIELDS] = {cron->seconds, cron->minutes, cron->hours,
                                        cron->days,    cron->months,  cron->weekdays};
    unsigned step = cron->star_steps[field];
    if (writer->bytes > 0) writer_put(writer, ' ');
    if (step > 0) {
        begin_item(writer, is_first);
        writer_put(writer, '*');
    }
    if (step > 1) {
        writer_put(writer, '/');
        writer_number(writer, step);
    }
    uint64_t star = covered(ends[field].min, ends[field].max, step);
    put_ranges(writer, bits[field] & ~star, is_first);
}

static void put_days(struct writer *writer, const struct bel_cron *cron, bool *is_first)
{
    for (unsigned before = 0; before <= 30; before++) {
        if ((cron->before_last >> before & 1) == 0) continue;
        begin_item(writer, is_first);
        writer_put(writer, 'L');
        if (before > 0) {
            writer_put(writer, '-');
            writer_number(writer, before);
        }
    }
    for (unsigned day = 1; day <= 31; day++) {
        if ((cron->nearest >> day & 1) == 0) continue;
        begin_item(writer, is_first);
        writer_number(writer, day);
        writer_put(writer, 'W');
    }
    for (unsigned before = 1; before <= 30; before++) {
        if ((cron->nearest_before_last >> before & 1) == 0) continue;
        begin_item(writer, is_first);
        writer_text(writer, "L-");
        writer_number(writer, before);
        writer_put(writer, 'W');
    }
    if (cron->nearest_last) {
        begin_item(writer, is_first);
        writer_text(writer, "LW");
    }
}

static void put_weekdays(struct writer *writer, const struct bel_cron *cron, bool *is_first)
{
    for (unsigned weekday = 0; weekday < 7; weekday++) {
        if ((cron->last_weekdays >> weekday & 1) != 0) {
            begin_item(writer, is_first);
            writer_number(writer, weekday);
            writer_put(writer, 'L');
        }
        for (unsigned nth = 1; nth <= 5; nth++) {
            if ((cron->nth_weekdays[nth - 1] >> weekday & 1) == 0) continue;
            begin_item(writer, is_first);
            writer_number(writer, weekday);
            writer_put(writer, '#');
            writer_number(writer, nth);
        }
    }
}

static void put_years(struct writer *writer, const struct bel_cron *cron)
{
    bool is_first = true;
    writer_put(writer, ' ');
    for (int32_t year = CRON_YEAR_MIN; year <= CRON_YEAR_MAX; year++) {
        if (!cron_has_year(cron, year)) continue;
        int32_t last = year;
        while (cron_has_year(cron, last + 1)) {
            last++;
        }
        begin_item(writer, &is_first);
        writer_number(writer, (uint64_t)year);
        if (last > year) {
            writer_put(writer, '-');
            writer_number(writer, (uint64_t)last);
        }
        year = last;
    }
}

size_t bel_cron_print(const struct bel_cron *cron, char *out, size_t room)
{
    struct writer writer;
    writer_begin(&writer, out, room);
    for (unsigned i = cron->has_seconds ? CRON_SECOND : CRON_MINUTE; i < CRON_FIELDS; i++) {
        bool is_first = true;
        put_field(&writer, cron, (enum cron_field)i, &is_first);
        if (i == CRON_DAY) put_days(&writer, cron, &is_first);
        if (i == CRON_WEEKDAY) put_weekdays(&writer, cron, &is_first);
    }
    if (cron->has_years) put_years(&writer, cron);
    return writer_end(&writer);
}
