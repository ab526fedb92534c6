/* SPDX-License-Identifier: MIT */
#include "core/parse.h"

#include "../check.h"

#include <string.h>

#define LARGEST_U64  "18446744073709551615"
#define LARGEST_I64  "9223372036854775807"
#define SMALLEST_I64 "-9223372036854775808"

static int u64(const char *text, uint64_t *out)
{
    CHECK_NOTE("parsing '%s'", text);
    return bel__parse_u64(text, strlen(text), 0, UINT64_MAX, out);
}

static int i64(const char *text, int64_t *out)
{
    CHECK_NOTE("parsing '%s'", text);
    return bel__parse_i64(text, strlen(text), INT64_MIN, INT64_MAX, out);
}

static void digits_are_a_number(void)
{
    uint64_t number = 0;
    CHECK(u64("0", &number) == 0 && number == 0);
    CHECK(u64("42", &number) == 0 && number == 42);
    CHECK(u64("007", &number) == 0 && number == 7);
    CHECK(u64(LARGEST_U64, &number) == 0 && number == UINT64_MAX);
    CHECK(u64("000000000000000000000" LARGEST_U64, &number) == 0 && number == UINT64_MAX);
}

static void a_minus_makes_it_negative(void)
{
    int64_t number = 0;
    CHECK(i64("-42", &number) == 0 && number == -42);
    CHECK(i64("-0", &number) == 0 && number == 0);
    CHECK(i64("42", &number) == 0 && number == 42);
    CHECK(i64(LARGEST_I64, &number) == 0 && number == INT64_MAX);
    CHECK(i64(SMALLEST_I64, &number) == 0 && number == INT64_MIN);
}

static void anything_else_is_no_number_and_sets_nothing(void)
{
    static const char *const texts[] = {
        "",    " ",    " 1",    "1 ",    "+1", "0x10", "1e3", "1.0",   "1,000", "--1",
        "1-",  "-",    "- 1",   "1\n",   "a",  "/",    ":",   "1_000", "\xb2",  "\xd9\xa1",
        "inf", "NaN0", "-inf0", "0b101", "1u", "1L",   "0x",  "٣",     "1\t",   "-+1",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        uint64_t number = 7;
        int64_t signed_number = 7;
        CHECK(u64(texts[i], &number) == BEL_EINVAL);
        CHECK(i64(texts[i], &signed_number) == BEL_EINVAL);
        CHECK(number == 7 && signed_number == 7);
    }
    uint64_t number = 7;
    CHECK(u64("-1", &number) == BEL_EINVAL);
    CHECK(u64("-0", &number) == BEL_EINVAL);
    CHECK_EQ(number, 7);
}

static void what_does_not_fit_is_out_of_range_and_sets_nothing(void)
{
    uint64_t number = 7;
    int64_t signed_number = 7;
    CHECK(u64("18446744073709551616", &number) == BEL_ERANGE);
    CHECK(u64("18446744073709551620", &number) == BEL_ERANGE);
    CHECK(u64("99999999999999999999", &number) == BEL_ERANGE);
    CHECK(u64(LARGEST_U64 "0", &number) == BEL_ERANGE);
    CHECK(u64("36893488147419103232000000000000000000000000007", &number) == BEL_ERANGE);
    CHECK(i64("9223372036854775808", &signed_number) == BEL_ERANGE);
    CHECK(i64("-9223372036854775809", &signed_number) == BEL_ERANGE);
    CHECK(i64(LARGEST_U64, &signed_number) == BEL_ERANGE);
    CHECK(i64("-" LARGEST_U64 "0", &signed_number) == BEL_ERANGE);
    CHECK(number == 7 && signed_number == 7);
}

static void what_is_no_number_is_not_out_of_range(void)
{
    uint64_t number;
    int64_t signed_number;
    CHECK(u64("99999999999999999999999x", &number) == BEL_EINVAL);
    CHECK(i64("-99999999999999999999999 ", &signed_number) == BEL_EINVAL);
}

static void bounds_are_included(void)
{
    uint64_t number = 0;
    int64_t signed_number = 0;
    uint32_t small = 0;
    CHECK(bel__parse_u64("5", 1, 5, 6, &number) == 0 && number == 5);
    CHECK(bel__parse_u64("6", 1, 5, 6, &number) == 0 && number == 6);
    CHECK(bel__parse_u64("4", 1, 5, 6, &number) == BEL_ERANGE);
    CHECK(bel__parse_u64("7", 1, 5, 6, &number) == BEL_ERANGE);
    CHECK(bel__parse_i64("-6", 2, -6, -5, &signed_number) == 0 && signed_number == -6);
    CHECK(bel__parse_i64("-7", 2, -6, -5, &signed_number) == BEL_ERANGE);
    CHECK(bel__parse_i64("-4", 2, -6, -5, &signed_number) == BEL_ERANGE);
    CHECK(bel__parse_u32("4294967295", 10, 0, UINT32_MAX, &small) == 0 && small == UINT32_MAX);
    CHECK(bel__parse_u32("4294967296", 10, 0, UINT32_MAX, &small) == BEL_ERANGE);
    CHECK(bel__parse_u32("0", 1, 1, 9, &small) == BEL_ERANGE);
    CHECK_EQ(small, UINT32_MAX);
}

static void the_text_ends_where_its_length_says(void)
{
    uint64_t number = 0;
    CHECK(bel__parse_u64("1234", 2, 0, UINT64_MAX, &number) == 0 && number == 12);
    CHECK(bel__parse_u64("12\0", 3, 0, UINT64_MAX, &number) == BEL_EINVAL);
    CHECK(bel__parse_u64(NULL, 0, 0, UINT64_MAX, &number) == BEL_EINVAL);
}

static void printing_gives_the_shortest_text(void)
{
    char text[BEL_PRINT_BYTES_MAX];
    CHECK(bel__print_u64(text, 0) == 1 && text[0] == '0');
    CHECK(bel__print_u64(text, UINT64_MAX) == 20 && memcmp(text, LARGEST_U64, 20) == 0);
    CHECK(bel__print_i64(text, INT64_MIN) == 20 && memcmp(text, SMALLEST_I64, 20) == 0);
    CHECK(bel__print_i64(text, -1) == 2 && memcmp(text, "-1", 2) == 0);
    CHECK(bel__print_i64(text, 10) == 2 && memcmp(text, "10", 2) == 0);
}

static void digits_are_counted_before_they_are_printed(void)
{
    uint64_t power = 1;
    CHECK_EQ(bel__count_digits(0), 1);
    for (size_t digits = 1; digits <= BEL_PRINT_BYTES_MAX; digits++, power *= 10) {
        char text[BEL_PRINT_BYTES_MAX], want[BEL_PRINT_BYTES_MAX] = "10000000000000000000";
        CHECK_EQ(bel__count_digits(power), digits);
        CHECK(digits == 1 || bel__count_digits(power - 1) == digits - 1);
        bel__print_digits(text, power, digits);
        CHECK(memcmp(text, want, digits) == 0);
    }
    CHECK_EQ(bel__count_digits(UINT64_MAX), BEL_PRINT_BYTES_MAX);
}

int main(void)
{
    RUN(digits_are_a_number);
    RUN(a_minus_makes_it_negative);
    RUN(anything_else_is_no_number_and_sets_nothing);
    RUN(what_does_not_fit_is_out_of_range_and_sets_nothing);
    RUN(what_is_no_number_is_not_out_of_range);
    RUN(bounds_are_included);
    RUN(the_text_ends_where_its_length_says);
    RUN(printing_gives_the_shortest_text);
    RUN(digits_are_counted_before_they_are_printed);
    return 0;
}
