/* SPDX-License-Identifier: MIT */

/* Every printed policy parses as itself, its delays stay within its limits, and the delays of whole
 * factors equal repeated multiplication. */
#include "belfry/backoff.h"
#include "property.h"

#include <string.h>

static struct bel_backoff make(uint64_t *state)
{
    struct bel_backoff backoff = {.jitter = (uint32_t)random_below(state, 1001)};
    if (random_below(state, 2) == 0) backoff.attempts_max = (uint32_t)random_magnitude(state);
    if (random_below(state, 2) == 0) {
        backoff.delays_count = 1 + (uint32_t)random_below(state, BEL_BACKOFF_DELAYS_MAX);
        for (uint32_t i = 0; i < backoff.delays_count; i++) {
            backoff.delays_ms[i] = random_magnitude(state);
        }
        return backoff;
    }
    uint64_t most = random_below(state, 2) == 0 ? 4000 : BEL_BACKOFF_FACTOR_MAX;
    uint64_t a = random_magnitude(state), b = random_magnitude(state);
    backoff.factor = 1000 + (uint32_t)random_below(state, most - 999);
    backoff.base_ms = (a < b ? a : b) | 1;
    backoff.cap_ms = (a < b ? b : a) | 1;
    return backoff;
}

static void check_round_trip(const struct bel_backoff *backoff)
{
    char text[BEL_BACKOFF_BYTES];
    struct bel_backoff again;
    size_t bytes = bel_backoff_print(backoff, text, sizeof text);
    CHECK(bytes == strlen(text));
    CHECK(bel_backoff_parse(text, bytes, &again, NULL) == 0);
    CHECK(memcmp(&again, backoff, sizeof again) == 0);
}

static void check_delays(const struct bel_backoff *backoff, uint64_t *state)
{
    struct bel_backoff plain = *backoff;
    plain.jitter = 0;
    for (int i = 0; i < 20; i++) {
        uint64_t attempt = random_magnitude(state) | 1, word = random_u64(state), ms = 0, want = 0;
        bool more = bel_backoff_delay(backoff, attempt, word, &ms);
        CHECK(more == bel_backoff_delay(&plain, attempt, word, &want));
        if (!more) continue;
        uint64_t part = want / 1000 * backoff->jitter + want % 1000 * backoff->jitter / 1000;
        CHECK(ms >= want - part && (ms <= want || ms - want <= part));
        CHECK(backoff->delays_count > 0 || (want >= backoff->base_ms && want <= backoff->cap_ms));
    }
}

/* Doubles are exact here: less than 2^53. */
static void check_whole_factor(uint64_t *state)
{
    struct bel_backoff backoff = {.cap_ms = UINT64_C(1) << 52};
    uint64_t factor = 1 + random_below(state, 12), ms = 0;
    backoff.factor = (uint32_t)(1000 * factor);
    backoff.base_ms = 1 + random_below(state, 100000);
    uint64_t want = backoff.base_ms;
    for (uint64_t attempt = 1; attempt <= 60; attempt++) {
        CHECK(bel_backoff_delay(&backoff, attempt, 0, &ms));
        CHECK_EQ(ms, want);
        want = want > backoff.cap_ms / factor ? backoff.cap_ms : want * factor;
    }
}

static void run_case(uint64_t seed)
{
    uint64_t state = seed;
    struct bel_backoff backoff = make(&state);
    check_round_trip(&backoff);
    check_delays(&backoff, &state);
    check_whole_factor(&state);
}

int main(int argc, char **argv)
{
    return run_cases(argc, argv, 20000, run_case, "policies");
}
