/* SPDX-License-Identifier: MIT */

/*
 * Parses rules. A field is a list of items. An item sets bits of the field's word; items for days
 * and weekdays that depend on the month are stored separately:
 *
 *     field := item ("," item)*
 *     item  := "*" step? | value step? | value "-" value step? | "H" range? step? | special
 *
 * A value with a step but no end continues to the end of the field; a range whose end comes first
 * wraps. Except for the specials, the
 * table below contains all differences between the fields.
 */
#include "plan/cron.h"

#include "core/siphash.h"
#include "plan/civil.h"
#include "plan/text.h"

#include <assert.h>
#include <string.h>

struct field {
    const char *what; /* for error messages */
    uint16_t min, max;
    const char *const *names; /* the first for the value `min`; ends with NULL */
};

static const char *const month_names[] = {"JANUARY",  "FEBRUARY", "MARCH",  "APRIL",     "MAY",
                                          "JUNE",     "JULY",     "AUGUST", "SEPTEMBER", "OCTOBER",
                                          "NOVEMBER", "DECEMBER", NULL};
static const char *const weekday_names[] = {"SUNDAY",   "MONDAY", "TUESDAY",  "WEDNESDAY",
                                            "THURSDAY", "FRIDAY", "SATURDAY", NULL};

static const struct field fields[CRON_FIELDS + 1] = {
    [CRON_SECOND] = {"a second from 0 to 59", 0, 59, NULL},
    [CRON_MINUTE] = {"a minute from 0 to 59", 0, 59, NULL},
    [CRON_HOUR] = {"an hour from 0 to 23", 0, 23, NULL},
    [CRON_DAY] = {"a day from 1 to 31, L, 15W or ?", 1, 31, NULL},
    [CRON_MONTH] = {"a month from 1 to 12 or JAN to DEC", 1, 12, month_names},
    [CRON_WEEKDAY] = {"a weekday from 0 to 7 or SUN to SAT, 5L, 5#2 or ?", 0, 7, weekday_names},
    [CRON_YEAR] = {"a year from 1970 to 2199", CRON_YEAR_MIN, CRON_YEAR_MAX, NULL},
};

static const struct {
    const char *name, *rule;
} nicknames[] = {
    {"@hourly", "0 * * * *"},   {"@daily", "0 0 * * *"},   {"@midnight", "0 0 * * *"},
    {"@weekly", "0 0 * * 0"},   {"@monthly", "0 0 1 * *"}, {"@yearly", "0 0 1 1 *"},
    {"@annually", "0 0 1 1 *"},
};

/* The state of parsing a rule. */
struct reading {
    struct reader reader;
    struct bel_cron *cron;
    struct bel_text_error *why;
    uint64_t seed;
    enum cron_field field;
    uint64_t bits; /* of the current field */
};

static int refuse(struct reading *reading, const char *expected)
{
    return bel__text_refuse(reading->why, reading->reader.at, "%s", expected);
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

static bool skip_letter(struct reading *reading, char letter)
{
    if (upper(reader_peek(&reading->reader)) != letter) return false;
    reading->reader.at++;
    return true;
}

/* Reads a number of at most three digits, or four for a year. Returns false and reads nothing if
 * there is none. */
static bool read_number(struct reading *reading, unsigned *out)
{
    struct reader *reader = &reading->reader;
    size_t start = reader->at, digits = reading->field == CRON_YEAR ? 4 : 3;
    unsigned value = 0;
    while (is_digit(reader_peek(reader)) && reader->at < start + digits) {
        value = value * 10 + (unsigned)(reader->text[reader->at++] - '0');
    }
    if (reader->at == start || is_digit(reader_peek(reader))) {
        reader->at = start;
        return false;
    }
    *out = value;
    return true;
}

/* Reads a name of the field: its first three letters, or more. Returns false and reads nothing if
 * there is none. */
static bool read_name(struct reading *reading, unsigned *out)
{
    struct reader *reader = &reading->reader;
    const struct field *field = &fields[reading->field];
    for (unsigned i = 0; field->names != NULL && field->names[i] != NULL; i++) {
        const char *name = field->names[i];
        size_t bytes = 0;
        while (name[bytes] != '\0' && reader->at + bytes < reader->bytes &&
               upper(reader->text[reader->at + bytes]) == name[bytes]) {
            bytes++;
        }
        if (bytes < 3) continue;
        reader->at += bytes;
        *out = field->min + i;
        return true;
    }
    return false;
}

/* Reads a value of the field, as a number or a name. */
static int read_value(struct reading *reading, unsigned *out)
{
    const struct field *field = &fields[reading->field];
    size_t start = reading->reader.at;
    unsigned value;
    if (!read_name(reading, &value) && !read_number(reading, &value)) {
        return refuse(reading, field->what);
    }
    if (value < field->min || value > field->max) {
        reading->reader.at = start;
        return refuse(reading, field->what);
    }
    *out = value;
    return 0;
}

/* Reads an optional step; 0 if there is none. A step past the end of the field is valid and leaves
 * only the first value, as in other crons. */
static int read_step(struct reading *reading, unsigned *out)
{
    *out = 0;
    if (!reader_skip(&reading->reader, '/')) return 0;
    size_t start = reading->reader.at;
    if (read_number(reading, out) && *out >= 1 && *out <= 999) {
        if (*out > CRON_STEP_MAX) *out = CRON_STEP_MAX;
        return 0;
    }
    reading->reader.at = start;
    return bel__text_refuse(reading->why, start, "a step from 1 to 999");
}

static void set_range(struct reading *reading, unsigned first, unsigned last, unsigned step)
{
    for (unsigned value = first; value <= last; value += step > 0 ? step : 1) {
        bool is_sunday = reading->field == CRON_WEEKDAY && value == 7;
        assert(value < 64); /* years have their own set */
        reading->bits |= UINT64_C(1) << (is_sunday ? 0 : value);
    }
}

/* Returns the last value of a field that a star covers: weekday 7 equals 0. */
static unsigned star_max(enum cron_field field)
{
    return field == CRON_WEEKDAY ? 6 : fields[field].max;
}

/* Sets a range whose end comes before its start: it goes on after the end of the field. */
static void set_wrapped(struct reading *reading, unsigned first, unsigned last, unsigned step)
{
    unsigned min = fields[reading->field].min, size = star_max(reading->field) - min + 1;
    for (unsigned i = 0; i <= last + size - first; i += step > 0 ? step : 1) {
        reading->bits |= UINT64_C(1) << (min + (first - min + i) % size);
    }
}

/* Returns a number that depends only on the seed and the field. */
static uint64_t hash_of(const struct reading *reading)
{
    static const struct bel_siphash_key key = {"belfry cron H"};
    uint8_t message[9];
    for (unsigned i = 0; i < 8; i++) {
        message[i] = (uint8_t)(reading->seed >> 8 * i);
    }
    message[8] = (uint8_t)reading->field;
    return bel__siphash(key, message, sizeof message);
}

/* Reads H: one value, or one per step. For days the range ends at 28, which every month has. */
static int read_hash(struct reading *reading)
{
    unsigned first = fields[reading->field].min, last = star_max(reading->field), step;
    if (reading->field == CRON_DAY) last = 28;
    if (reader_skip(&reading->reader, '(')) {
        int err = read_value(reading, &first);
        if (err) return err;
        if (!reader_skip(&reading->reader, '-')) return refuse(reading, "- and the range's end");
        size_t start = reading->reader.at;
        err = read_value(reading, &last);
        if (err) return err;
        if (last < first) {
            return bel__text_refuse(reading->why, start, "a range from low to high");
        }
        if (!reader_skip(&reading->reader, ')')) return refuse(reading, ")");
    }
    int err = read_step(reading, &step);
    if (err) return err;
    unsigned count = last - first + 1, within = step > 0 && step < count ? step : count;
    first += (unsigned)(hash_of(reading) % within);
    set_range(reading, first, step > 0 ? last : first, step);
    return 0;
}

/* Reads L, L-3, LW and L-3W of the day field, after the L. */
static int read_last_day(struct reading *reading)
{
    struct bel_cron *cron = reading->cron;
    unsigned before = 0;
    if (reader_skip(&reading->reader, '-')) {
        size_t start = reading->reader.at;
        if (!read_number(reading, &before) || before > 30) {
            return bel__text_refuse(reading->why, start, "days before the last, 0 to 30");
        }
    }
    bool is_nearest = skip_letter(reading, 'W');
    if (is_nearest && before == 0) {
        cron->nearest_last = true;
    } else {
        *(is_nearest ? &cron->nearest_before_last : &cron->before_last) |= UINT32_C(1) << before;
    }
    return 0;
}

/* Reads an optional suffix of a value: W for a day, L or # for a weekday. Returns whether there was
 * one. */
static bool read_suffix(struct reading *reading, unsigned value, int *out_err)
{
    struct bel_cron *cron = reading->cron;
    *out_err = 0;
    if (reading->field == CRON_DAY && skip_letter(reading, 'W')) {
        cron->nearest |= UINT32_C(1) << value;
        return true;
    }
    if (reading->field != CRON_WEEKDAY) return false;
    if (skip_letter(reading, 'L')) {
        cron->last_weekdays |= (uint8_t)(1u << value % 7);
        return true;
    }
    if (!reader_skip(&reading->reader, '#')) return false;
    size_t start = reading->reader.at;
    unsigned nth;
    if (skip_letter(reading, 'L')) {
        cron->last_weekdays |= (uint8_t)(1u << value % 7);
    } else if (read_number(reading, &nth) && nth >= 1 && nth <= 5) {
        cron->nth_weekdays[nth - 1] |= (uint8_t)(1u << value % 7);
    } else {
        *out_err = bel__text_refuse(reading->why, start,
                                    "a number from 1 to 5, or L: which one of the month");
    }
    return true;
}

/* Reads the weekday after an L: the last one of the month. */
static int read_last_weekday(struct reading *reading)
{
    unsigned weekday;
    int err = read_value(reading, &weekday);
    if (err == 0) reading->cron->last_weekdays |= (uint8_t)(1u << weekday % 7);
    return err;
}

static int read_values(struct reading *reading)
{
    unsigned first, last, step;
    int err = read_value(reading, &first);
    if (err) return err;
    if (read_suffix(reading, first, &err)) return err;
    bool is_range = reader_skip(&reading->reader, '-');
    last = first;
    if (is_range) {
        err = read_value(reading, &last);
        if (err) return err;
    }
    err = read_step(reading, &step);
    if (err) return err;
    if (!is_range && step > 0) {
        last = star_max(reading->field);
        if (first > last) first = 0; /* weekday 7 equals 0 */
    }
    if (last < first && first > star_max(reading->field)) first = 0; /* likewise */
    if (last < first) {
        set_wrapped(reading, first, last, step);
    } else {
        set_range(reading, first, last, step);
    }
    return 0;
}

static int read_item(struct reading *reading, bool is_first)
{
    enum cron_field field = reading->field;
    bool is_day = field == CRON_DAY || field == CRON_WEEKDAY;
    if (is_day && is_first && reader_skip(&reading->reader, '?')) {
        reading->cron->star_steps[field] = 1;
        set_range(reading, fields[field].min, star_max(field), 1);
        return 0;
    }
    if (reader_skip(&reading->reader, '*')) {
        unsigned step;
        int err = read_step(reading, &step);
        if (err) return err;
        if (step == 0) step = 1;
        if (is_first) reading->cron->star_steps[field] = (uint8_t)step;
        set_range(reading, fields[field].min, star_max(field), step);
        return 0;
    }
    if (skip_letter(reading, 'H')) return read_hash(reading);
    if (field == CRON_DAY && skip_letter(reading, 'L')) return read_last_day(reading);
    if (field == CRON_WEEKDAY && skip_letter(reading, 'L')) return read_last_weekday(reading);
    return read_values(reading);
}

static bool is_space(char byte)
{
    return byte == ' ' || byte == '\t';
}

/* Reads the end of a field: spaces, or the end of the text. */
static int read_end(struct reading *reading)
{
    struct reader *reader = &reading->reader;
    if (!reader_at_end(reader) && !is_space(reader_peek(reader))) {
        return refuse(reading, reading->field >= CRON_WEEKDAY ? ", or the end" : ", or a space");
    }
    while (is_space(reader_peek(reader))) {
        reader->at++;
    }
    return 0;
}

/* Reads one item of the year field. A star alone is no restriction. */
static int read_year(struct reading *reading)
{
    unsigned first = CRON_YEAR_MIN, last = CRON_YEAR_MAX, step;
    bool is_star = reader_skip(&reading->reader, '*'), is_range = false;
    int err = is_star ? 0 : read_value(reading, &first);
    if (err) return err;
    if (!is_star) {
        size_t start = reading->reader.at;
        is_range = reader_skip(&reading->reader, '-');
        err = is_range ? read_value(reading, &last) : 0;
        if (err) return err;
        if (last < first) return bel__text_refuse(reading->why, start, "a later year");
    }
    err = read_step(reading, &step);
    if (err) return err;
    if (!is_star && !is_range && step == 0) last = first;
    if (is_star && step <= 1) return 0;
    reading->cron->has_years = true;
    for (unsigned year = first; year <= last; year += step > 0 ? step : 1) {
        unsigned bit = year - CRON_YEAR_MIN;
        reading->cron->years[bit / 64] |= UINT64_C(1) << bit % 64;
    }
    return 0;
}

static int read_years(struct reading *reading)
{
    reading->field = CRON_YEAR;
    do {
        int err = read_year(reading);
        if (err) return err;
    } while (reader_skip(&reading->reader, ','));
    return read_end(reading);
}

static int read_field(struct reading *reading, enum cron_field field)
{
    struct reader *reader = &reading->reader;
    reading->field = field;
    reading->bits = 0;
    bool is_first = true;
    do {
        int err = read_item(reading, is_first);
        if (err) return err;
        is_first = false;
    } while (reader_skip(reader, ','));
    int err = read_end(reading);
    if (err) return err;
    struct bel_cron *cron = reading->cron;
    switch (field) {
    case CRON_SECOND:
        cron->seconds = reading->bits;
        break;
    case CRON_MINUTE:
        cron->minutes = reading->bits;
        break;
    case CRON_HOUR:
        cron->hours = (uint32_t)reading->bits;
        break;
    case CRON_DAY:
        cron->days = (uint32_t)reading->bits;
        break;
    case CRON_MONTH:
        cron->months = (uint32_t)reading->bits;
        break;
    default:
        cron->weekdays = (uint8_t)reading->bits;
        break;
    }
    return 0;
}

static unsigned count_fields(struct reader reader)
{
    unsigned count = 0;
    for (bool was_space = true; !reader_at_end(&reader); reader.at++) {
        bool space = is_space(reader_peek(&reader));
        count += was_space && !space;
        was_space = space;
    }
    return count;
}

static int read_rule(struct reading *reading)
{
    struct bel_cron *cron = reading->cron;
    struct reader *reader = &reading->reader;
    while (is_space(reader_peek(reader))) {
        reader->at++;
    }
    unsigned count = count_fields(*reader);
    cron->has_seconds = count > 5;
    if (!cron->has_seconds) cron->seconds = 1;
    for (unsigned i = cron->has_seconds ? CRON_SECOND : CRON_MINUTE; i < CRON_FIELDS; i++) {
        if (reader_at_end(reader)) {
            return refuse(reading, "five fields, six with seconds, or seven with years");
        }
        int err = read_field(reading, (enum cron_field)i);
        if (err) return err;
    }
    if (reader_at_end(reader)) return 0;
    int err = read_years(reading);
    if (err) return err;
    if (!reader_at_end(reader)) return refuse(reading, "the end: a rule has seven fields at most");
    return 0;
}

/* Returns whether any date matches the rule. The calendar repeats after 400 years. */
static bool can_happen(const struct bel_cron *cron)
{
    int64_t start = civil_to_days(CRON_YEAR_MIN, 1, 1) * SECONDS_PER_DAY;
    int64_t end = civil_to_days(CRON_YEAR_MIN + 400, 1, 1) * SECONDS_PER_DAY;
    int64_t next = bel__cron_next_local(cron, start - 1);
    return next != CRON_NONE && next < end;
}

/* Replaces a nickname by its rule. */
static int look_up(struct reading *reading)
{
    struct reader *reader = &reading->reader;
    for (unsigned i = 0; i < sizeof nicknames / sizeof nicknames[0]; i++) {
        const char *name = nicknames[i].name;
        if (strlen(name) != reader->bytes) continue;
        size_t at = 0;
        while (at < reader->bytes && upper(reader->text[at]) == upper(name[at])) {
            at++;
        }
        if (at < reader->bytes) continue;
        const char *rule = nicknames[i].rule;
        *reader = (struct reader){rule, strlen(rule), 0};
        return 0;
    }
    return refuse(reading, "@hourly, @daily, @midnight, @weekly, @monthly, @yearly or @annually");
}

/* Returns whether a text is no list of fields: it begins with a word, as a sentence does ("every 5
 * minutes", "at 9"), or is one word ("9:00", "R/PT5M"). */
static bool is_prose(const char *text, size_t bytes)
{
    size_t letters = 0;
    if (bytes == 0 || text[0] == '@') return false;
    if (memchr(text, ' ', bytes) == NULL && memchr(text, '\t', bytes) == NULL) return true;
    while (letters < bytes && upper(text[letters]) >= 'A' && upper(text[letters]) <= 'Z') {
        letters++;
    }
    return letters >= 2 && (letters == bytes || text[letters] == ' ');
}

int bel_cron_parse(const char *text, size_t bytes, uint64_t seed, struct bel_cron *out,
                   struct bel_text_error *why)
{
    struct bel_cron cron = {0};
    struct reading reading = {.reader = {text, bytes, 0}, .cron = &cron, .why = why, .seed = seed};
    if (bytes > BEL_CRON_TEXT_MAX) {
        return bel__text_refuse(why, BEL_CRON_TEXT_MAX, "at most %d bytes", BEL_CRON_TEXT_MAX);
    }
    if (is_prose(text, bytes)) {
        return refuse(&reading,
                      "five fields, e.g. */5 * * * *, or @daily; an interval is 5m (EVERY)");
    }
    if (reader_peek(&reading.reader) == '@') {
        int err = look_up(&reading);
        if (err) return err;
    }
    int err = read_rule(&reading);
    if (err) return err;
    if (!can_happen(&cron)) return bel__text_refuse(why, 0, "a date that exists");
    *out = cron;
    return 0;
}

bool bel_cron_split_zone(struct bel_view *rule, struct bel_view *zone)
{
    static const char *const names[] = {"CRON_TZ=", "TZ="};
    const char *text = rule->data;
    for (unsigned i = 0; i < 2; i++) {
        size_t name = strlen(names[i]), at = name;
        if (rule->bytes < name || memcmp(text, names[i], name) != 0) continue;
        while (at < rule->bytes && !is_space(text[at])) {
            at++;
        }
        *zone = (struct bel_view){text + name, at - name};
        while (at < rule->bytes && is_space(text[at])) {
            at++;
        }
        *rule = (struct bel_view){text + at, rule->bytes - at};
        return true;
    }
    return false;
}
