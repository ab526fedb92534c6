/* SPDX-License-Identifier: MIT */

/* Every printed duration parses as itself, and no text is read past its end. */
#include "belfry/duration.h"
#include "property.h"

#include <string.h>

static const uint64_t UNITS_MS[] = {604800000, 86400000, 3600000, 60000, 1000, 1};

static void round_trip(uint64_t ms)
{
    char text[BEL_DURATION_BYTES];
    uint64_t again = ~ms;
    size_t bytes = bel_duration_print(ms, text, sizeof text);
    CHECK_NOTE("%" PRIu64 " ms printed as %s", ms, text);
    CHECK(bytes == strlen(text));
    CHECK(bel_duration_parse(text, bytes, &again, NULL) == 0);
    CHECK_EQ(again, ms);
}

/* Numbers around multiples of units, where units appear and disappear in the text. */
static void round_trip_near_units(uint64_t *state)
{
    uint64_t unit = UNITS_MS[random_below(state, 6)];
    uint64_t ms = random_magnitude(state) / unit * unit;
    round_trip(ms - 1); /* may wrap around, which is fine */
    round_trip(ms);
    round_trip(ms + 1);
}

/* Texts of relevant bytes: valid or not, the result depends only on the text. */
static void read_noise(uint64_t *state)
{
    static const char alphabet[] = "0123456789PTWDHMSwdhms.-YM";
    char text[24];
    struct bel_text_error why = {.position = 0};
    uint64_t ms = 0, again = 0;
    size_t bytes = random_below(state, sizeof text);
    for (size_t i = 0; i < bytes; i++) {
        text[i] = alphabet[random_below(state, sizeof alphabet - 1)];
    }
    char *copy = malloc(bytes + 1); /* so that a sanitizer detects a read past the end */
    CHECK(copy != NULL);
    memcpy(copy, text, bytes);
    copy = realloc(copy, bytes > 0 ? bytes : 1);
    CHECK(copy != NULL);
    int err = bel_duration_parse(copy, bytes, &ms, &why);
    CHECK_NOTE("'%.*s'", (int)bytes, text);
    CHECK(err == bel_duration_parse(text, bytes, &again, NULL) && ms == again);
    CHECK(err == 0 || (err == BEL_EINVAL && why.position <= bytes && why.expected[0] != '\0'));
    if (err == 0) round_trip(ms);
    free(copy);
}

static void run_case(uint64_t seed)
{
    uint64_t state = seed;
    for (int i = 0; i < 100; i++) {
        round_trip(random_magnitude(&state));
        round_trip_near_units(&state);
        read_noise(&state);
    }
}

int main(int argc, char **argv)
{
    round_trip(0);
    round_trip(UINT64_MAX);
    return run_cases(argc, argv, 1000, run_case, "lists of durations");
}
