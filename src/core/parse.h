/* SPDX-License-Identifier: MIT */
#ifndef BEL_CORE_PARSE_H
#define BEL_CORE_PARSE_H

/*
 * parse - parses numbers from untrusted text, and prints them.
 *
 * A number is at least one decimal digit; a signed number may have a minus in front. No spaces, no
 * plus, no other base, no locale, and nothing after the digits. Leading zeros are allowed. The text
 * is a pointer and a length; it needs no final 0 and may contain any byte.
 *
 *     err = bel__parse_u32(text, text_bytes, 1, ATTEMPTS_MAX, &attempts);
 *
 * Each function returns 0 and sets `*out`. On failure it leaves `*out` unchanged and returns
 * BEL_EINVAL if the text is not a number, or BEL_ERANGE if the number is not from `min` to `max`,
 * both included.
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

/* Print the shortest text that parses as `number` and return its length. They add no final 0. */
size_t bel__print_u64(char out[BEL_PRINT_BYTES_MAX], uint64_t number);
size_t bel__print_i64(char out[BEL_PRINT_BYTES_MAX], int64_t number);

/* The two steps of bel__print_u64(), to print in place: count the digits, then print that number of
 * digits. */
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
