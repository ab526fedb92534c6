/* SPDX-License-Identifier: MIT */

/*
 * Digits are read into an unsigned 64-bit number: the first 19, which always fit, in a loop without
 * overflow checks. The rest is read to the end even after an overflow, because a number that is too
 * large (BEL_ERANGE) differs from a text that is not a number (BEL_EINVAL). A signed number is a
 * sign and an unsigned magnitude, which also covers INT64_MIN.
 */
#include "core/parse.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

enum {
    DIGITS_SURE = 19, /* 9999999999999999999 fits */
};

/* Reads up to `digits_max` digits and returns the number read. */
static size_t parse_sure(const char *text, size_t digits_max, uint64_t *out)
{
    uint64_t number = 0;
    size_t i = 0;
    for (; i < digits_max; i++) {
        unsigned digit = (unsigned)text[i] - '0';
        if (digit > 9) break;
        number = 10 * number + digit;
    }
    *out = number;
    return i;
}

static int parse_magnitude(const char *text, size_t text_bytes, uint64_t *out)
{
    uint64_t number;
    bool overflow = false;
    assert(text != NULL || text_bytes == 0);
    size_t i = parse_sure(text, text_bytes < DIGITS_SURE ? text_bytes : DIGITS_SURE, &number);
    if (text_bytes == 0) return BEL_EINVAL;
    for (; i < text_bytes; i++) {
        if (text[i] < '0' || text[i] > '9') return BEL_EINVAL;
        overflow |= __builtin_mul_overflow(number, UINT64_C(10), &number);
        overflow |= __builtin_add_overflow(number, (uint64_t)(text[i] - '0'), &number);
    }
    if (overflow) return BEL_ERANGE;
    *out = number;
    return 0;
}

int bel__parse_u64(const char *text, size_t text_bytes, uint64_t min, uint64_t max, uint64_t *out)
{
    uint64_t number;
    assert(min <= max);
    int err = parse_magnitude(text, text_bytes, &number);
    if (err) return err;
    if (number < min || number > max) return BEL_ERANGE;
    *out = number;
    return 0;
}

int bel__parse_u32(const char *text, size_t text_bytes, uint32_t min, uint32_t max, uint32_t *out)
{
    uint64_t number;
    int err = bel__parse_u64(text, text_bytes, min, max, &number);
    if (err) return err;
    *out = (uint32_t)number;
    return 0;
}

int bel__parse_i64(const char *text, size_t text_bytes, int64_t min, int64_t max, int64_t *out)
{
    uint64_t magnitude;
    int64_t number;
    assert(min <= max);
    bool negative = text_bytes > 0 && text[0] == '-';
    int err = parse_magnitude(text + negative, text_bytes - negative, &magnitude);
    if (err) return err;
    bool overflow = negative ? __builtin_sub_overflow(INT64_C(0), magnitude, &number)
                             : __builtin_add_overflow(INT64_C(0), magnitude, &number);
    if (overflow || number < min || number > max) return BEL_ERANGE;
    *out = number;
    return 0;
}

void bel__print_digits(char *out, uint64_t number, size_t digits)
{
    static const char pairs[] = "00010203040506070809101112131415161718192021222324"
                                "25262728293031323334353637383940414243444546474849"
                                "50515253545556575859606162636465666768697071727374"
                                "75767778798081828384858687888990919293949596979899";
    for (; digits >= 2; number /= 100) {
        digits -= 2;
        memcpy(out + digits, &pairs[2 * (number % 100)], 2);
    }
    if (digits == 1) out[0] = (char)('0' + number);
}

size_t bel__print_u64(char out[BEL_PRINT_BYTES_MAX], uint64_t number)
{
    size_t digits = bel__count_digits(number);
    bel__print_digits(out, number, digits);
    return digits;
}

size_t bel__print_i64(char out[BEL_PRINT_BYTES_MAX], int64_t number)
{
    if (number >= 0) return bel__print_u64(out, (uint64_t)number);
    uint64_t magnitude = UINT64_C(0) - (uint64_t)number;
    size_t digits = bel__count_digits(magnitude); /* at most 19: leaves room for the sign */
    out[0] = '-';
    bel__print_digits(out + 1, magnitude, digits);
    return 1 + digits;
}
