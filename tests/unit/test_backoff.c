/* SPDX-License-Identifier: MIT */
#include "plan/backoff.h"

#include "../check.h"

#include <string.h>

#define SECOND UINT64_C(1000)
#define MINUTE (60 * SECOND)
#define HOUR   (60 * MINUTE)

static struct bel_backoff parse(const char *text)
{
    struct bel_backoff backoff;
    struct bel_text_error why = {0};
    memset(&backoff, 0xa5, sizeof backoff);
    int err = bel_backoff_parse(text, strlen(text), &backoff, &why);
    CHECK_NOTE("parsing '%s': %zu %s", text, why.position, why.expected);
    CHECK(err == 0);
    return backoff;
}

static void a_list_gives_its_delays_and_then_none(void)
{
    struct bel_backoff backoff = parse("5s,30s,5m");
    uint64_t ms = 0;
    CHECK(bel_backoff_delay(&backoff, 1, 99, &ms) && ms == 5 * SECOND);
    CHECK(bel_backoff_delay(&backoff, 2, 99, &ms) && ms == 30 * SECOND);
    CHECK(bel_backoff_delay(&backoff, 3, 99, &ms) && ms == 5 * MINUTE);
    CHECK(!bel_backoff_delay(&backoff, 4, 99, &ms));
    CHECK(!bel_backoff_delay(&backoff, UINT64_MAX, 99, &ms));
    CHECK_EQ(ms, 5 * MINUTE);
}

static void the_smaller_of_a_list_and_max_ends_it(void)
{
    struct bel_backoff two = parse("5s,30s,5m max(2)"), nine = parse("5s,30s,5m max(9)");
    uint64_t ms = 0;
    CHECK(bel_backoff_delay(&two, 1, 0, &ms));
    CHECK(!bel_backoff_delay(&two, 2, 0, &ms));
    CHECK(bel_backoff_delay(&nine, 3, 0, &ms));
    CHECK(!bel_backoff_delay(&nine, 4, 0, &ms));
}

static void max_counts_attempts_in_all(void)
{
    struct bel_backoff twenty = parse("exp(10s,2,1h) max(20)"), one = parse("exp(10s,2,1h) max(1)");
    struct bel_backoff zero = parse("exp(10s,2,1h) max(0)"), none = parse("exp(10s,2,1h)");
    struct bel_backoff most = parse("exp(10s,2,1h) max(4294967295)");
    uint64_t ms = 0;
    CHECK(bel_backoff_delay(&twenty, 19, 0, &ms) && ms == HOUR);
    CHECK(!bel_backoff_delay(&twenty, 20, 0, &ms));
    CHECK(!bel_backoff_delay(&one, 1, 0, &ms));
    CHECK(!bel_backoff_delay(&zero, 1, 0, &ms));
    CHECK(bel_backoff_delay(&most, UINT32_MAX - 1, 0, &ms));
    CHECK(!bel_backoff_delay(&most, UINT32_MAX, 0, &ms));
    CHECK(bel_backoff_delay(&none, UINT64_MAX, 0, &ms) && ms == HOUR);
}

static void fixed_is_one_delay_again_and_again(void)
{
    struct bel_backoff fixed = parse("fixed(1s) max(3)"), endless = parse("fixed(1s)");
    uint64_t ms = 0;
    CHECK(bel_backoff_delay(&fixed, 1, 0, &ms) && ms == SECOND);
    CHECK(bel_backoff_delay(&fixed, 2, 0, &ms) && ms == SECOND);
    CHECK(!bel_backoff_delay(&fixed, 3, 0, &ms));
    CHECK(bel_backoff_delay(&endless, UINT64_MAX, 0, &ms) && ms == SECOND);
}

static void options_alone_change_the_default_policy(void)
{
    struct bel_backoff three = parse("max(3)"), still = parse("jitter(0) max(20)");
    struct bel_backoff usual = bel_backoff_default();
    CHECK_EQ(three.attempts_max, 3);
    three.attempts_max = usual.attempts_max;
    CHECK(memcmp(&three, &usual, sizeof usual) == 0);
    usual.jitter = 0;
    CHECK(memcmp(&still, &usual, sizeof usual) == 0);
}

/* What 3 means is unclear, but earlier versions have stored it. */
static void a_number_alone_is_only_a_stored_policy(void)
{
    struct bel_backoff stored, delay = parse("3ms");
    CHECK(bel__backoff_parse_stored("3", 1, &stored, NULL) == 0);
    CHECK(stored.delays_count == 1 && stored.delays_ms[0] == delay.delays_ms[0]);
    CHECK_EQ(parse("5000,30000").delays_ms[1], 30000);
}

static void delays_grow_by_the_factor_up_to_the_cap(void)
{
    static const struct {
        const char *text;
        uint64_t ms[8];
    } rows[] = {
        {"exp(10s,2,1h)", {10000, 20000, 40000, 80000, 160000, 320000, 640000, 1280000}},
        {"exp(5s,3,1h)", {5000, 15000, 45000, 135000, 405000, 1215000, 3600000, 3600000}},
        {"exp(10s,1.5,60s)", {10000, 15000, 22500, 33750, 50625, 60000, 60000, 60000}},
        {"exp(10s,1.2,1h)", {10000, 12000, 14400, 17280, 20736, 24883, 29860, 35832}},
        {"exp(1ms,1.001,2ms)", {1, 1, 1, 1, 1, 1, 1, 1}},
        {"exp(5s,1,1h)", {5000, 5000, 5000, 5000, 5000, 5000, 5000, 5000}},
        {"exp(5s,1000,5s)", {5000, 5000, 5000, 5000, 5000, 5000, 5000, 5000}},
        {"exp(1ms,1000,1w)", {1, 1000, 1000000, 604800000, 604800000, 604800000}},
        {"exp(18446744073709551614,2,18446744073709551615)", {UINT64_MAX - 1, UINT64_MAX}},
        {"exp(9007199254740993,1,18446744073709551615)", {UINT64_C(9007199254740993)}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct bel_backoff backoff = parse(rows[i].text);
        for (uint64_t attempt = 1; attempt <= 8 && rows[i].ms[attempt - 1] > 0; attempt++) {
            uint64_t ms = 0;
            CHECK_NOTE("%s, attempt %" PRIu64, rows[i].text, attempt);
            CHECK(bel_backoff_delay(&backoff, attempt, 12345, &ms));
            CHECK_EQ(ms, rows[i].ms[attempt - 1]);
        }
    }
}

/* The slowest growth over the widest range, a typical policy, and very high attempts. */
static void delays_never_shrink_and_never_pass_the_cap(void)
{
    static const char *const texts[] = {
        "exp(1ms,1.001,18446744073709551615)",
        "exp(10s,2,1h)",
        "exp(1ms,1,1ms)",
        "exp(7s,1.337,18446744073709551614)",
        "exp(1ms,1000,18446744073709551615)",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct bel_backoff backoff = parse(texts[i]);
        uint64_t last = 0, ms = 0;
        for (uint64_t attempt = 1; attempt <= 50000; attempt++) {
            CHECK_NOTE("%s, attempt %" PRIu64, texts[i], attempt);
            CHECK(bel_backoff_delay(&backoff, attempt, 0, &ms));
            CHECK(ms >= last && ms >= backoff.base_ms && ms <= backoff.cap_ms);
            last = ms;
        }
        CHECK_EQ(ms, backoff.cap_ms);
        for (uint64_t attempt = 50000; attempt < UINT64_MAX / 2; attempt *= 2) {
            CHECK(bel_backoff_delay(&backoff, attempt, 0, &ms) && ms == backoff.cap_ms);
        }
        CHECK(bel_backoff_delay(&backoff, UINT32_MAX, 0, &ms) && ms == backoff.cap_ms);
        CHECK(bel_backoff_delay(&backoff, UINT64_MAX, 0, &ms) && ms == backoff.cap_ms);
    }
}

static void jitter_moves_a_delay_both_ways(void)
{
    struct bel_backoff backoff = parse("exp(10s,2,1h) jitter(0.2)"), list = parse("10s jitter(1)");
    uint64_t ms = 0;
    CHECK(bel_backoff_delay(&backoff, 1, 0, &ms) && ms == 8 * SECOND);
    CHECK(bel_backoff_delay(&backoff, 1, UINT64_MAX, &ms) && ms == 12 * SECOND);
    CHECK(bel_backoff_delay(&backoff, 99, UINT64_MAX, &ms) && ms == HOUR + HOUR / 5);
    CHECK(bel_backoff_delay(&list, 1, 0, &ms) && ms == 0);
    CHECK(bel_backoff_delay(&list, 1, UINT64_MAX, &ms) && ms == 20 * SECOND);
}

static void the_default_is_what_it_says(void)
{
    struct bel_backoff usual = bel_backoff_default();
    struct bel_backoff parsed = parse("exp(10s,2,1h) jitter(0.1) max(20)");
    char text[BEL_BACKOFF_BYTES];
    CHECK(memcmp(&usual, &parsed, sizeof usual) == 0);
    CHECK_EQ(bel_backoff_print(&usual, text, sizeof text), 33);
    CHECK(strcmp(text, "exp(10s,2,1h) jitter(0.1) max(20)") == 0);
}

static void printing_gives_the_usual_form(void)
{
    static const char *const rows[][2] = {
        {"5s,30s,5m", "5s,30s,5m"},
        {"5000,PT30S,  300s   max(2)", "5s,30s,5m max(2)"},
        {"0,0", "0s,0s"},
        {"exp(10s, 2.0, 60m) max(3) jitter(0.10)", "exp(10s,2,1h) jitter(0.1) max(3)"},
        {"exp(10s,1.05,1h) jitter(0.005)", "exp(10s,1.05,1h) jitter(0.005)"},
        {"exp(10s,1000,1h) jitter(1.000)", "exp(10s,1000,1h) jitter(1)"},
        {"exp(10s,2,1h) jitter(0) max(0)", "exp(10s,2,1h) max(1)"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct bel_backoff backoff = parse(rows[i][0]);
        char text[BEL_BACKOFF_BYTES], cut[5];
        CHECK_EQ(bel_backoff_print(&backoff, text, sizeof text), strlen(rows[i][1]));
        CHECK(strcmp(text, rows[i][1]) == 0);
        CHECK_EQ(bel_backoff_print(&backoff, NULL, 0), strlen(rows[i][1]));
        CHECK_EQ(bel_backoff_print(&backoff, cut, sizeof cut), strlen(rows[i][1]));
        CHECK(strncmp(cut, text, 4) == 0 && (strlen(text) < 4 || cut[4] == '\0'));
    }
}

static void anything_else_is_refused_where_it_begins(void)
{
    static const struct {
        const char *text;
        size_t position;
        const char *expected;
    } rows[] = {
        {"", 0, "a retry policy"},
        {"3", 1, "max(5) for 5 attempts"},
        {"0", 1, "a unit"},
        {"fixed(0s)", 6, "1 ms or more"},
        {"fixed(1s", 8, "')'"},
        {"max(3)jitter(0.1)", 6, "' '"},
        {"max(3) max(4)", 7, "each once"},
        {"max(3) 5s", 7, "jitter(0.1) or max(20)"},
        {" 5s", 0, "a retry policy"},
        {"5s,", 3, "a duration"},
        {",5s", 0, "a duration"},
        {"5s,,5s", 3, "a duration"},
        {"5s ,5s", 3, "jitter(0.1) or max(20)"},
        {"5s,30x", 5, "a unit"},
        {"5s,-3s", 3, "not negative"},
        {"exp", 0, "a number"},
        {"exp(", 4, "a duration"},
        {"exp()", 4, "a duration"},
        {"exp(10s)", 7, "','"},
        {"exp(10s,2)", 9, "','"},
        {"exp(10s,2,1h", 12, "')'"},
        {"exp(10s,2,1h,5)", 12, "')'"},
        {"exp(0s,2,1h)", 4, "1 ms or more"},
        {"exp(10s,0.5,1h)", 8, "a factor"},
        {"exp(10s,0,1h)", 8, "a factor"},
        {"exp(10s,-2,1h)", 8, "a factor"},
        {"exp(10s,1000.001,1h)", 8, "a factor"},
        {"exp(10s,1.2345,1h)", 8, "a factor"},
        {"exp(10s,1.,1h)", 8, "a factor"},
        {"exp(10s,.5,1h)", 8, "a factor"},
        {"exp(10s,1e2,1h)", 8, "a factor"},
        {"exp(10s,4294967297,1h)", 8, "a factor"},
        {"exp(10s,2,5s)", 10, "a cap"},
        {"exp(10s,2,1h)jitter(0.1)", 13, "' '"},
        {"exp(10s,2,1h) ", 14, "jitter(0.1) or max(20)"},
        {"exp(10s,2,1h) jitter(1.1)", 21, "a jitter"},
        {"exp(10s,2,1h) jitter(1.001)", 21, "a jitter"},
        {"exp(10s,2,1h) jitter()", 21, "a jitter"},
        {"exp(10s,2,1h) jitter(20%)", 21, "a jitter"},
        {"exp(10s,2,1h) jitter(0.1) jitter(0.1)", 26, "each once"},
        {"exp(10s,2,1h) max(3) max(3)", 21, "each once"},
        {"exp(10s,2,1h) max(4294967296)", 18, "a number of attempts"},
        {"exp(10s,2,1h) max(-1)", 18, "a number of attempts"},
        {"exp(10s,2,1h) max(3", 19, "')'"},
        {"exp(10s,2,1h) retry(3)", 14, "jitter(0.1) or max(20)"},
        {"EXP(10s,2,1h)", 0, "a number"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct bel_text_error why = {.position = 9999};
        struct bel_backoff backoff = {.base_ms = 7777};
        size_t bytes = strlen(rows[i].text);
        int err = bel_backoff_parse(rows[i].text, bytes, &backoff, &why);
        CHECK_NOTE("parsing '%s': %zu %s", rows[i].text, why.position, why.expected);
        CHECK(err == BEL_EINVAL && backoff.base_ms == 7777);
        CHECK_EQ(why.position, rows[i].position);
        CHECK(strstr(why.expected, rows[i].expected) != NULL);
        CHECK(bel_backoff_parse(rows[i].text, bytes, &backoff, NULL) == BEL_EINVAL);
    }
}

static void a_list_has_an_end(void)
{
    char text[3 * (BEL_BACKOFF_DELAYS_MAX + 1)] = "";
    struct bel_text_error why;
    struct bel_backoff backoff;
    uint64_t ms = 0;
    size_t bytes = 0;
    for (int i = 0; i <= BEL_BACKOFF_DELAYS_MAX; i++) {
        memcpy(text + bytes, "9s,", 3);
        bytes += 3;
    }
    CHECK(bel_backoff_parse(text, bytes - 1, &backoff, &why) == BEL_EINVAL);
    CHECK_EQ(why.position, bytes - 3);
    CHECK(strcmp(why.expected, "at most 32 delays") == 0);
    CHECK(bel_backoff_parse(text, bytes - 4, &backoff, &why) == 0);
    CHECK(bel_backoff_delay(&backoff, BEL_BACKOFF_DELAYS_MAX, 0, &ms) && ms == 9 * SECOND);
    CHECK(!bel_backoff_delay(&backoff, BEL_BACKOFF_DELAYS_MAX + 1, 0, &ms));
}

static void the_longest_policy_fits(void)
{
    struct bel_backoff backoff = {
        .attempts_max = UINT32_MAX, .jitter = 123, .delays_count = BEL_BACKOFF_DELAYS_MAX};
    char text[BEL_BACKOFF_BYTES];
    for (size_t i = 0; i < BEL_BACKOFF_DELAYS_MAX; i++) {
        backoff.delays_ms[i] = UINT64_MAX;
    }
    size_t bytes = bel_backoff_print(&backoff, text, sizeof text);
    CHECK(bytes < sizeof text);
    struct bel_backoff again = parse(text);
    CHECK(memcmp(&again, &backoff, sizeof again) == 0);
}

int main(void)
{
    RUN(a_list_gives_its_delays_and_then_none);
    RUN(the_smaller_of_a_list_and_max_ends_it);
    RUN(max_counts_attempts_in_all);
    RUN(fixed_is_one_delay_again_and_again);
    RUN(options_alone_change_the_default_policy);
    RUN(a_number_alone_is_only_a_stored_policy);
    RUN(delays_grow_by_the_factor_up_to_the_cap);
    RUN(delays_never_shrink_and_never_pass_the_cap);
    RUN(jitter_moves_a_delay_both_ways);
    RUN(the_default_is_what_it_says);
    RUN(printing_gives_the_usual_form);
    RUN(anything_else_is_refused_where_it_begins);
    RUN(a_list_has_an_end);
    RUN(the_longest_policy_fits);
    return 0;
}
