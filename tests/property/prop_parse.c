/* SPDX-License-Identifier: MIT */

/*
 * Every printed number parses back, with any number of leading zeros, and is rejected by limits
 * that exclude it. The C library, which reads the same decimal digits, is the model.
 */
#include "core/parse.h"
#include "property.h"

#include <stdbool.h>
#include <string.h>

enum {
    NUMBERS = 200,
    ZEROS_MAX = 30,
    CASES = 1000,
};

/* Copies text after a few zeros; returns the length. */
static size_t with_zeros(char *out, const char *text, size_t text_bytes, size_t zeros)
{
    size_t sign = text[0] == '-';
    memcpy(out, text, sign);
    memset(out + sign, '0', zeros);
    memcpy(out + sign + zeros, text + sign, text_bytes - sign);
    return text_bytes + zeros;
}

static void check_u64(uint64_t number, size_t zeros)
{
    char text[BEL_PRINT_BYTES_MAX + ZEROS_MAX], printed[BEL_PRINT_BYTES_MAX], want[32];
    uint64_t got = ~number;
    size_t printed_bytes = bel__print_u64(printed, number);
    CHECK_EQ(printed_bytes, (uint64_t)snprintf(want, sizeof want, "%" PRIu64, number));
    CHECK(memcmp(printed, want, printed_bytes) == 0);

    size_t text_bytes = with_zeros(text, printed, printed_bytes, zeros);
    CHECK(bel__parse_u64(text, text_bytes, number, number, &got) == 0);
    CHECK_EQ(got, number);
    if (number < UINT64_MAX) {
        CHECK(bel__parse_u64(text, text_bytes, number + 1, UINT64_MAX, &got) == BEL_ERANGE);
    }
    if (number > 0) CHECK(bel__parse_u64(text, text_bytes, 0, number - 1, &got) == BEL_ERANGE);
    uint32_t small;
    int err = bel__parse_u32(text, text_bytes, 0, UINT32_MAX, &small);
    CHECK(err == (number > UINT32_MAX ? BEL_ERANGE : 0));
    if (err == 0) CHECK_EQ(small, number);
}

static void check_i64(int64_t number, size_t zeros)
{
    char text[BEL_PRINT_BYTES_MAX + ZEROS_MAX], printed[BEL_PRINT_BYTES_MAX], want[32];
    int64_t got = ~number;
    size_t printed_bytes = bel__print_i64(printed, number);
    CHECK_EQ(printed_bytes, (uint64_t)snprintf(want, sizeof want, "%" PRId64, number));
    CHECK(memcmp(printed, want, printed_bytes) == 0);

    size_t text_bytes = with_zeros(text, printed, printed_bytes, zeros);
    CHECK(bel__parse_i64(text, text_bytes, number, number, &got) == 0);
    CHECK(got == number);
    if (number < INT64_MAX) {
        CHECK(bel__parse_i64(text, text_bytes, number + 1, INT64_MAX, &got) == BEL_ERANGE);
    }
    if (number > INT64_MIN) {
        CHECK(bel__parse_i64(text, text_bytes, INT64_MIN, number - 1, &got) == BEL_ERANGE);
    }
}

/* Replaces one byte of a number by one that is not a digit. */
static void check_damaged(uint64_t number, uint64_t *random_state)
{
    char text[BEL_PRINT_BYTES_MAX];
    size_t text_bytes = bel__print_u64(text, number);
    size_t at = random_below(random_state, text_bytes);
    uint64_t got;
    int64_t signed_got;
    char byte = (char)random_u64(random_state);
    if ((byte >= '0' && byte <= '9') || byte == '-') return;
    text[at] = byte;
    CHECK(bel__parse_u64(text, text_bytes, 0, UINT64_MAX, &got) == BEL_EINVAL);
    CHECK(bel__parse_i64(text, text_bytes, INT64_MIN, INT64_MAX, &signed_got) == BEL_EINVAL);
}

static void run_case(uint64_t seed)
{
    uint64_t random_state = seed;
    for (int i = 0; i < NUMBERS; i++) {
        uint64_t number = random_magnitude(&random_state);
        size_t zeros = random_below(&random_state, ZEROS_MAX + 1);
        if (random_below(&random_state, 2) == 0) number = ~number; /* close to the top */
        check_u64(number, zeros);
        check_i64((int64_t)number, zeros);
        check_damaged(number, &random_state);
    }
}

int main(int argc, char **argv)
{
    return run_cases(argc, argv, CASES, run_case, "lists of numbers");
}
