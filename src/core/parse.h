/* SPDX-License-Identifier: MIT */
#ifndef BEL_CORE_PARSE_H
#define BEL_CORE_PARSE_H

/*
 * parse - numbers from text that cannot be trusted, and back.
 *
 * A number is decimal digits, one at least, and for the signed ones a minus before
 * them: no space, no plus, no other base, no locale, and nothing after it. Zeros in
 * front are allowed. The text is a pointer and a length; it needs no end mark and may
 * have any byte in it.
 *
 *     err = bel__parse_u32(text, text_bytes, 1, ATTEMPTS_MAX, &attempts);
 *
 * Each returns 0 and sets `*out`. Otherwise it leaves it alone and returns BEL_EINVAL if
 * the text is no number, or BEL_ERANGE if it is one but not from `min` to `max`, both
 * included. What is no number is never out of range, however long.
 */

#include "belfry/error.h"

#include <stddef.h>
#include <stdint.h>

enum {
    BEL_PRINT_BYTES_MAX = 20, /* of any 64-bit number: 18446744073709551615 */
};

BEL_CHECKED int bel__parse_u64(const char *text, size_t text_bytes, uint64_t min, uint64_t max,
                               uint64_t *out);
BEL_CHECKED int bel__parse_i64(const char *text, size_t text_bytes, int64_t min, int64_t max,
                               int64_t *out);
BEL_CHECKED int bel__parse_u32(const char *text, size_t text_bytes, uint32_t min, uint32_t max,
                               uint32_t *out);

/* Prints the shortest text that parses as `number` and returns its length. There is no
 * end mark. */
size_t bel__print_u64(char out[BEL_PRINT_BYTES_MAX], uint64_t number);
size_t bel__print_i64(char out[BEL_PRINT_BYTES_MAX], int64_t number);

/* The same in two steps, to print where the text belongs: how many digits a number has, and
 * these. */
static inline size_t bel__count_digits(uint64_t number)
{
    size_t digits = 1;
    for (; number >= 10000; number /= 10000) {
        digits += 4;
    }
    return digits + (number >= 10) + (number >= 100) + (number >= 1000);
}

void bel__print_digits(char *out, uint64_t number, size_t digits);

#endif
