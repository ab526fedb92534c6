/* SPDX-License-Identifier: MIT */

/*
 * A policy consists of durations and keywords. Decimals are stored in thousandths, so that a policy
 * is printed exactly as it was written.
 *
 * exp() computes its power by squaring, in doubles: at most 64 steps for any attempt, and an
 * overflow becomes infinity, which the cap limits. It uses only multiplications, which IEEE 754
 * rounds the same everywhere. The relative error below the cap is less than 1e-11, while two
 * different factors differ by at least a thousandth, so delays never shrink.
 */
#include "plan/backoff.h"

#include "belfry/duration.h"
#include "belfry/spread.h"
#include "core/parse.h"
#include "plan/text.h"
#include "plan/writer.h"

#include <assert.h>
#include <string.h>

enum {
    THOUSAND = 1000,
    DECIMALS_MAX = 3,
};

struct bel_backoff bel_backoff_default(void)
{
    return (struct bel_backoff){
        .attempts_max = 20,
        .jitter = 100,
        .factor = 2 * THOUSAND,
        .base_ms = UINT64_C(10) * 1000,
        .cap_ms = UINT64_C(3600) * 1000,
    };
}

static void skip_spaces(struct reader *reader)
{
    while (reader_skip(reader, ' ')) {}
}

static bool skip_word(struct reader *reader, const char *word)
{
    size_t bytes = strlen(word);
    if (reader->bytes - reader->at < bytes) return false;
    if (memcmp(reader->text + reader->at, word, bytes) != 0) return false;
    reader->at += bytes;
    return true;
}

/* Returns the length of the text up to the next comma, parenthesis or space. */
static size_t value_bytes(const struct reader *reader)
{
    size_t end = reader->at;
    while (end < reader->bytes && strchr(",() ", reader->text[end]) == NULL) {
        end++;
    }
    return end - reader->at;
}

static int read_duration(struct reader *reader, uint64_t *out_ms, struct bel_text_error *why)
{
    size_t bytes = value_bytes(reader);
    int err = bel_duration_parse(reader->text + reader->at, bytes, out_ms, why);
    if (err) {
        if (why != NULL) why->position += reader->at;
        return err;
    }
    reader->at += bytes;
    return 0;
}

/* Reads a number such as 2, 1.5 or 0.125 as thousandths. Returns false if it is invalid. */
static bool read_thousandths(struct reader *reader, uint32_t min, uint32_t max, uint32_t *out)
{
    const char *text = reader->text + reader->at;
    size_t bytes = value_bytes(reader);
    const char *point = bytes == 0 ? NULL : memchr(text, '.', bytes);
    size_t whole_bytes = point == NULL ? bytes : (size_t)(point - text);
    uint32_t whole = 0, decimals = 0;
    if (bel__parse_u32(text, whole_bytes, 0, max / THOUSAND, &whole) != 0) return false;
    if (point != NULL) {
        size_t count = bytes - whole_bytes - 1;
        if (count > DECIMALS_MAX) return false;
        if (bel__parse_u32(point + 1, count, 0, THOUSAND - 1, &decimals) != 0) return false;
        for (size_t i = count; i < DECIMALS_MAX; i++) {
            decimals *= 10;
        }
    }
    uint32_t number = whole * THOUSAND + decimals;
    if (number < min || number > max) return false;
    reader->at += bytes;
    *out = number;
    return true;
}

static int expect(struct reader *reader, char byte, struct bel_text_error *why)
{
    if (reader_skip(reader, byte)) return 0;
    return bel__text_refuse(why, reader->at, "'%c'", byte);
}

static int expect_comma(struct reader *reader, struct bel_text_error *why)
{
    int err = expect(reader, ',', why);
    if (err) return err;
    skip_spaces(reader);
    return 0;
}

static int read_exp(struct reader *reader, struct bel_backoff *out, struct bel_text_error *why)
{
    size_t base_at = reader->at;
    int err = read_duration(reader, &out->base_ms, why);
    if (err) return err;
    if (out->base_ms == 0) return bel__text_refuse(why, base_at, "a base of 1 ms or more");
    err = expect_comma(reader, why);
    if (err) return err;

    if (!read_thousandths(reader, THOUSAND, BEL_BACKOFF_FACTOR_MAX, &out->factor)) {
        return bel__text_refuse(why, reader->at, "a factor from 1 to 1000, such as 2 or 1.5");
    }
    err = expect_comma(reader, why);
    if (err) return err;

    size_t cap_at = reader->at;
    err = read_duration(reader, &out->cap_ms, why);
    if (err) return err;
    if (out->cap_ms < out->base_ms) {
        return bel__text_refuse(why, cap_at, "a cap that is not below the base");
    }
    return expect(reader, ')', why);
}

static int read_fixed(struct reader *reader, struct bel_backoff *out, struct bel_text_error *why)
{
    size_t at = reader->at;
    int err = read_duration(reader, &out->base_ms, why);
    if (err) return err;
    if (out->base_ms == 0) return bel__text_refuse(why, at, "a delay of 1 ms or more");
    out->cap_ms = out->base_ms;
    out->factor = THOUSAND;
    return expect(reader, ')', why);
}

static int read_list(struct reader *reader, struct bel_backoff *out, struct bel_text_error *why)
{
    do {
        skip_spaces(reader);
        if (out->delays_count == BEL_BACKOFF_DELAYS_MAX) {
            return bel__text_refuse(why, reader->at, "at most %d delays", BEL_BACKOFF_DELAYS_MAX);
        }
        int err = read_duration(reader, &out->delays_ms[out->delays_count], why);
        if (err) return err;
        out->delays_count++;
    } while (reader_skip(reader, ','));
    return 0;
}

static int read_max(struct reader *reader, uint32_t *out, struct bel_text_error *why)
{
    size_t bytes = value_bytes(reader);
    if (bel__parse_u32(reader->text + reader->at, bytes, 0, UINT32_MAX, out) != 0) {
        return bel__text_refuse(why, reader->at, "a number of attempts");
    }
    reader->at += bytes;
    if (*out == 0) *out = 1;
    return expect(reader, ')', why);
}

static int read_jitter(struct reader *reader, uint32_t *out, struct bel_text_error *why)
{
    if (!read_thousandths(reader, 0, THOUSAND, out)) {
        return bel__text_refuse(why, reader->at, "a jitter from 0 to 1, such as 0.1");
    }
    return expect(reader, ')', why);
}

/* Reads jitter() and max(), which may come first if `is_first`, otherwise after a space. */
static int read_options(struct reader *reader, struct bel_backoff *out, bool is_first,
                        struct bel_text_error *why)
{
    bool has_jitter = false, has_max = false;
    while (!reader_at_end(reader)) {
        int err = is_first ? 0 : expect(reader, ' ', why);
        if (err) return err;
        is_first = false;
        skip_spaces(reader);
        if (!has_jitter && skip_word(reader, "jitter(")) {
            has_jitter = true;
            err = read_jitter(reader, &out->jitter, why);
        } else if (!has_max && skip_word(reader, "max(")) {
            has_max = true;
            err = read_max(reader, &out->attempts_max, why);
        } else {
            err = bel__text_refuse(why, reader->at, "jitter(0.1) or max(20), each once");
        }
        if (err) return err;
    }
    return 0;
}

static bool begins_with(struct reader reader, const char *word)
{
    return skip_word(&reader, word);
}

int bel__backoff_parse_stored(const char *text, size_t bytes, struct bel_backoff *out,
                              struct bel_text_error *why)
{
    struct reader reader = {.text = text, .bytes = bytes};
    struct bel_backoff backoff = {0};
    assert(text != NULL || bytes == 0);
    if (bytes == 0 || text[0] == ' ') {
        return bel__text_refuse(why, 0, "a retry policy, such as 5s,30s,5m or exp(10s,2,1h)");
    }
    bool has_only_options = begins_with(reader, "max(") || begins_with(reader, "jitter(");
    int err = 0;
    if (has_only_options) {
        backoff = bel_backoff_default();
    } else if (skip_word(&reader, "exp(")) {
        err = read_exp(&reader, &backoff, why);
    } else if (skip_word(&reader, "fixed(")) {
        err = read_fixed(&reader, &backoff, why);
    } else {
        err = read_list(&reader, &backoff, why);
    }
    if (err == 0) err = read_options(&reader, &backoff, has_only_options, why);
    if (err) return err;
    *out = backoff;
    return 0;
}

int bel_backoff_parse(const char *text, size_t bytes, struct bel_backoff *out,
                      struct bel_text_error *why)
{
    uint64_t number;
    if (bel__parse_u64(text, bytes, 0, UINT64_MAX, &number) == 0) {
        return bel__text_refuse(
            why, bytes, "a unit, as in 5s, or max(5) for 5 attempts; also fixed(1s) max(3)");
    }
    return bel__backoff_parse_stored(text, bytes, out, why);
}

static void write_duration(struct writer *writer, uint64_t ms)
{
    char text[BEL_DURATION_BYTES];
    size_t bytes = bel_duration_print(ms, text, sizeof text);
    assert(bytes < sizeof text);
    (void)bytes;
    writer_text(writer, text);
}

static void write_thousandths(struct writer *writer, uint32_t number)
{
    uint32_t decimals = number % THOUSAND;
    size_t digits = DECIMALS_MAX;
    writer_number(writer, number / THOUSAND);
    if (decimals == 0) return;
    while (decimals % 10 == 0) {
        decimals /= 10;
        digits--;
    }
    writer_put(writer, '.');
    writer_padded(writer, decimals, digits);
}

size_t bel_backoff_print(const struct bel_backoff *backoff, char *out, size_t room)
{
    struct writer writer;
    writer_begin(&writer, out, room);
    for (uint32_t i = 0; i < backoff->delays_count; i++) {
        if (i > 0) writer_put(&writer, ',');
        write_duration(&writer, backoff->delays_ms[i]);
    }
    bool is_fixed = backoff->factor == THOUSAND && backoff->cap_ms == backoff->base_ms;
    if (backoff->delays_count == 0 && is_fixed) {
        writer_text(&writer, "fixed(");
        write_duration(&writer, backoff->base_ms);
        writer_put(&writer, ')');
    } else if (backoff->delays_count == 0) {
        writer_text(&writer, "exp(");
        write_duration(&writer, backoff->base_ms);
        writer_put(&writer, ',');
        write_thousandths(&writer, backoff->factor);
        writer_put(&writer, ',');
        write_duration(&writer, backoff->cap_ms);
        writer_put(&writer, ')');
    }
    if (backoff->jitter > 0) {
        writer_text(&writer, " jitter(");
        write_thousandths(&writer, backoff->jitter);
        writer_put(&writer, ')');
    }
    if (backoff->attempts_max > 0) {
        writer_text(&writer, " max(");
        writer_number(&writer, backoff->attempts_max);
        writer_put(&writer, ')');
    }
    return writer_end(&writer);
}

/* Returns base * factor ^ exponent, at most the cap. */
static uint64_t grow(const struct bel_backoff *backoff, uint64_t exponent)
{
    double power = (double)backoff->base_ms, square = (double)backoff->factor / THOUSAND;
    assert(backoff->base_ms > 0 && backoff->base_ms <= backoff->cap_ms);
    assert(backoff->factor >= THOUSAND && backoff->factor <= BEL_BACKOFF_FACTOR_MAX);
    if (exponent == 0) return backoff->base_ms; /* a double may not represent it exactly */
    for (uint64_t rest = exponent; rest > 0; rest >>= 1) {
        if (rest & 1) power *= square;
        square *= square;
    }
    if (!(power < (double)backoff->cap_ms)) return backoff->cap_ms;
    uint64_t rounded = (uint64_t)(power + 0.5);
    return rounded < backoff->cap_ms ? rounded : backoff->cap_ms;
}

bool bel_backoff_delay(const struct bel_backoff *backoff, uint64_t attempt, uint64_t random_word,
                       uint64_t *out_ms)
{
    assert(attempt > 0);
    assert(backoff->delays_count <= BEL_BACKOFF_DELAYS_MAX);
    if (backoff->attempts_max > 0 && attempt >= backoff->attempts_max) return false;
    if (backoff->delays_count > 0 && attempt > backoff->delays_count) return false;
    uint64_t delay_ms =
        backoff->delays_count > 0 ? backoff->delays_ms[attempt - 1] : grow(backoff, attempt - 1);
    *out_ms = bel_spread_jitter(delay_ms, backoff->jitter, random_word);
    return true;
}
