/* SPDX-License-Identifier: MIT */

/*
 * Both forms are a sequence of amounts with decreasing units: `1h30m` and `PT1H30M` differ only in
 * how a unit is spelled. An amount is a number and a fraction. The fraction is kept as text until
 * the unit is known, because the unit determines whether it is a whole number of milliseconds.
 */
#include "belfry/duration.h"

#include "core/parse.h"
#include "plan/text.h"
#include "plan/writer.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

enum {
    WEEKS,
    DAYS,
    HOURS,
    MINUTES,
    SECONDS,
    MILLISECONDS,
    UNIT_COUNT,
    NO_UNIT = -1,

    /* Without trailing zeros, a longer fraction is never whole: a week is 189 * 2^10 * 5^5 ms. */
    FRACTION_DIGITS_MAX = 10,
};

static const struct {
    const char *name;
    uint64_t ms;
} UNITS[UNIT_COUNT] = {
    {"w", UINT64_C(604800000)},
    {"d", 86400000},
    {"h", 3600000},
    {"m", 60000},
    {"s", 1000},
    {"ms", 1},
};

static const char ISO_UNITS[] = "WDHMS";

struct amount {
    size_t at; /* position of the first digit */
    uint64_t whole;
    const char *fraction; /* its digits, without trailing zeros */
    size_t fraction_bytes;
    bool has_fraction;
};

/* The state of parsing a duration. */
struct sum {
    struct reader reader;
    uint64_t ms;
    int unit; /* the last unit read */
    struct bel_text_error *why;
};

static size_t skip_digits(struct reader *reader)
{
    size_t start = reader->at;
    while (reader_peek(reader) >= '0' && reader_peek(reader) <= '9') {
        reader->at++;
    }
    return reader->at - start;
}

static int refuse_size(struct sum *sum, size_t at)
{
    return bel__text_refuse(sum->why, at, "a duration of at most %" PRIu64 " ms", UINT64_MAX);
}

static int read_amount(struct sum *sum, struct amount *out)
{
    struct reader *reader = &sum->reader;
    struct amount amount = {.at = reader->at};
    size_t digits = skip_digits(reader);
    if (digits == 0 && reader_peek(reader) == '-') {
        return bel__text_refuse(sum->why, amount.at, "a duration that is not negative");
    }
    if (digits == 0) return bel__text_refuse(sum->why, amount.at, "a number, as in 5m or PT5M");
    if (bel__parse_u64(reader->text + amount.at, digits, 0, UINT64_MAX, &amount.whole) != 0) {
        return refuse_size(sum, amount.at);
    }
    amount.has_fraction = reader_skip(reader, '.');
    if (amount.has_fraction) {
        amount.fraction = reader->text + reader->at;
        amount.fraction_bytes = skip_digits(reader);
        if (amount.fraction_bytes == 0) {
            return bel__text_refuse(sum->why, reader->at, "digits after the point");
        }
        while (amount.fraction_bytes > 0 && amount.fraction[amount.fraction_bytes - 1] == '0') {
            amount.fraction_bytes--;
        }
    }
    *out = amount;
    return 0;
}

/* Converts a fraction to milliseconds. Returns false if the result is not whole. */
static bool scale_fraction(const struct amount *amount, uint64_t unit_ms, uint64_t *out)
{
    uint64_t number = 0, scale = 1;
    if (amount->fraction_bytes > FRACTION_DIGITS_MAX) return false;
    for (size_t i = 0; i < amount->fraction_bytes; i++) {
        number = number * 10 + (uint64_t)(amount->fraction[i] - '0');
        scale *= 10;
    }
    *out = number * unit_ms / scale; /* less than 10^10 times a week: fits */
    return number * unit_ms % scale == 0;
}

static int add(struct sum *sum, const struct amount *amount, int unit)
{
    uint64_t ms, fraction_ms;
    assert(unit >= 0 && unit < UNIT_COUNT);
    if (!scale_fraction(amount, UNITS[unit].ms, &fraction_ms)) {
        return bel__text_refuse(sum->why, amount->at, "whole milliseconds");
    }
    if (__builtin_mul_overflow(amount->whole, UNITS[unit].ms, &ms) ||
        __builtin_add_overflow(ms, fraction_ms, &ms) ||
        __builtin_add_overflow(ms, sum->ms, &sum->ms)) {
        return refuse_size(sum, amount->at);
    }
    sum->unit = unit;
    if (amount->has_fraction && !reader_at_end(&sum->reader)) {
        return bel__text_refuse(sum->why, sum->reader.at, "nothing after a fraction");
    }
    return 0;
}

/* Reads the name of a unit: all lower-case letters up to another character. */
static int read_unit(struct sum *sum)
{
    const struct reader *reader = &sum->reader;
    size_t bytes = 0;
    while (reader->at + bytes < reader->bytes && reader->text[reader->at + bytes] >= 'a' &&
           reader->text[reader->at + bytes] <= 'z') {
        bytes++;
    }
    for (int unit = 0; unit < UNIT_COUNT; unit++) {
        if (strlen(UNITS[unit].name) == bytes &&
            memcmp(UNITS[unit].name, reader->text + reader->at, bytes) == 0) {
            sum->reader.at += bytes;
            return unit;
        }
    }
    return NO_UNIT;
}

static int parse_short(struct sum *sum)
{
    do {
        struct amount amount = {0};
        int err = read_amount(sum, &amount);
        if (err) return err;
        size_t unit_at = sum->reader.at;
        bool is_bare = amount.at == 0 && !amount.has_fraction && reader_at_end(&sum->reader);
        int unit = is_bare ? MILLISECONDS : read_unit(sum);
        if (unit == NO_UNIT) {
            return bel__text_refuse(sum->why, unit_at, "a unit: w, d, h, m, s or ms");
        }
        if (unit <= sum->unit) {
            return bel__text_refuse(sum->why, unit_at, "a smaller unit than the previous one");
        }
        err = add(sum, &amount, unit);
        if (err) return err;
    } while (!reader_at_end(&sum->reader));
    return 0;
}

/* Reads a letter that is a unit of a date or, after T, of a time. */
static int read_iso_unit(struct sum *sum, bool in_time, int *out)
{
    char letter = reader_peek(&sum->reader);
    const char *found = letter == '\0' ? NULL : strchr(ISO_UNITS, letter);
    int unit = found == NULL ? NO_UNIT : (int)(found - ISO_UNITS);
    size_t at = sum->reader.at;
    if (!in_time && (letter == 'Y' || letter == 'M')) {
        return bel__text_refuse(sum->why, at, "W or D: the length of years and months varies");
    }
    if (!in_time && unit != WEEKS && unit != DAYS) {
        return bel__text_refuse(sum->why, at, "W or D, or H, M or S after a T");
    }
    if (in_time && unit < HOURS) return bel__text_refuse(sum->why, at, "H, M or S");
    if (unit <= sum->unit) {
        return bel__text_refuse(sum->why, at, "a smaller unit than the previous one");
    }
    if (sum->unit == WEEKS) return bel__text_refuse(sum->why, at, "weeks alone, or days");
    sum->reader.at++;
    *out = unit;
    return 0;
}

static int parse_iso(struct sum *sum)
{
    bool in_time = false;
    do {
        struct amount amount = {0};
        int unit = NO_UNIT;
        if (!in_time) in_time = reader_skip(&sum->reader, 'T');
        int err = read_amount(sum, &amount);
        if (err) return err;
        err = read_iso_unit(sum, in_time, &unit);
        if (err) return err;
        err = add(sum, &amount, unit);
        if (err) return err;
    } while (!reader_at_end(&sum->reader));
    return 0;
}

int bel_duration_parse(const char *text, size_t bytes, uint64_t *out_ms, struct bel_text_error *why)
{
    struct sum sum = {.reader = {.text = text, .bytes = bytes}, .unit = NO_UNIT, .why = why};
    assert(text != NULL || bytes == 0);
    if (bytes == 0) return bel__text_refuse(why, 0, "a duration, such as 30s or 1h30m");
    int err = reader_skip(&sum.reader, 'P') ? parse_iso(&sum) : parse_short(&sum);
    if (err) return err;
    *out_ms = sum.ms;
    return 0;
}

size_t bel_duration_print(uint64_t ms, char *out, size_t room)
{
    struct writer writer;
    writer_begin(&writer, out, room);
    uint64_t rest = ms;
    if (ms == 0) writer_text(&writer, "0s");
    for (int unit = ms % UNITS[WEEKS].ms == 0 ? WEEKS : DAYS; unit < UNIT_COUNT; unit++) {
        uint64_t amount = rest / UNITS[unit].ms;
        if (amount == 0) continue;
        rest -= amount * UNITS[unit].ms;
        writer_number(&writer, amount);
        writer_text(&writer, UNITS[unit].name);
    }
    return writer_end(&writer);
}
