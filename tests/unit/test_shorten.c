/* SPDX-License-Identifier: MIT */
#include "core/shorten.h"

#include "../check.h"
#include "../random.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void numbers_have_no_digit_too_many(void)
{
    static const char *const rows[][2] = {
        {"0.10000000000000001", "0.1"},
        {"-19.989999999999998", "-19.99"},
        {"[0.10000000000000001,1,0.30000000000000004]", "[0.1,1,0.30000000000000004]"},
        {"{\"a\":2.2999999999999998,\"b\":true}", "{\"a\":2.3,\"b\":true}"},
        {"9.9999999999999995e-08", "1e-07"},
        {"1.7976931348623157e308", "1.7976931348623157e308"},
        {"0.66666666666666663", "0.6666666666666666"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[80];
        (void)snprintf(text, sizeof text, "%s", rows[i][0]);
        bel__shorten_numbers(text);
        CHECK_NOTE("%s is %s", rows[i][0], text);
        CHECK(strcmp(text, rows[i][1]) == 0);
    }
}

static void all_else_stays(void)
{
    static const char *const rows[] = {
        "",
        "null",
        "9223372036854775807",
        "-9223372036854775808",
        "12345678901234568.0",
        "1.0",
        "\"0.10000000000000001\"",
        "{\"0.10000000000000001\":\"\\\"0.10000000000000001\"}",
        "[\"\\\\\",\"0.10000000000000001\",[],{}]",
        "0.1000000000000000100000000000000000000000001",
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[80];
        (void)snprintf(text, sizeof text, "%s", rows[i]);
        bel__shorten_numbers(text);
        CHECK_NOTE("%s is %s", rows[i], text);
        CHECK(strcmp(text, rows[i]) == 0);
    }
}

static void every_double_reads_the_same(void)
{
    uint64_t random = 1;
    for (unsigned i = 0; i < 100000; i++) {
        uint64_t bits = random_u64(&random);
        double value, read;
        char text[64];
        memcpy(&value, &bits, sizeof value);
        if (i % 2 == 0) value = (double)(int64_t)(bits % 1000000) / 1000;
        if (!isfinite(value)) continue;
        (void)snprintf(text, sizeof text, "%.17g", value);
        size_t before = strlen(text);
        bel__shorten_numbers(text);
        read = strtod(text, NULL);
        CHECK(read == value && signbit(read) == signbit(value) && strlen(text) <= before);
        CHECK(i % 2 != 0 || before <= 16 || strlen(text) <= 8);
    }
}

int main(void)
{
    RUN(numbers_have_no_digit_too_many);
    RUN(all_else_stays);
    RUN(every_double_reads_the_same);
    return 0;
}
