/* SPDX-License-Identifier: MIT */

/*
 * The first byte selects the input: a duration, a time or a retry policy. What parses must
 * print and parse again as the same value; an error must have a position.
 */
#include "belfry/backoff.h"
#include "belfry/duration.h"
#include "belfry/instant.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_refusal(const struct bel_text_error *why, size_t bytes)
{
    assert(why->position <= bytes);
    assert(why->expected[0] != '\0');
    assert(memchr(why->expected, '\0', sizeof why->expected) != NULL);
}

static void check_duration(const char *text, size_t bytes)
{
    char printed[BEL_DURATION_BYTES];
    struct bel_text_error why = {0};
    uint64_t ms, again;
    int err = bel_duration_parse(text, bytes, &ms, &why);
    if (err) {
        check_refusal(&why, bytes);
        return;
    }
    size_t printed_bytes = bel_duration_print(ms, printed, sizeof printed);
    assert(printed_bytes < sizeof printed);
    err = bel_duration_parse(printed, printed_bytes, &again, NULL);
    assert(err == 0 && again == ms);
}

static void check_instant(const char *text, size_t bytes)
{
    static struct bel_zones *zones; /* the system's; without them zone names are refused */
    char printed[BEL_INSTANT_BYTES];
    struct bel_text_error why = {0};
    struct bel_wall instant, again;
    if (zones == NULL && bel_zones_open(NULL, &zones) != 0) zones = NULL;
    struct bel_instant_options options = {.zones = zones, .gap = (enum bel_gap)(bytes & 1)};
    int err = bel_instant_parse(text, bytes, &options, &instant, &why);
    if (err) {
        if (err == BEL_EINVAL) check_refusal(&why, bytes);
        return;
    }
    size_t printed_bytes = bel_instant_print(instant, printed, sizeof printed);
    assert(printed_bytes < sizeof printed);
    err = bel_instant_parse(printed, printed_bytes, NULL, &again, NULL);
    assert(err == 0 && again.ms == instant.ms);
}

static void check_backoff(const char *text, size_t bytes)
{
    char printed[BEL_BACKOFF_BYTES];
    struct bel_text_error why = {0};
    struct bel_backoff backoff, again;
    int err = bel_backoff_parse(text, bytes, &backoff, &why);
    if (err) {
        check_refusal(&why, bytes);
        return;
    }
    size_t printed_bytes = bel_backoff_print(&backoff, printed, sizeof printed);
    assert(printed_bytes < sizeof printed);
    err = bel_backoff_parse(printed, printed_bytes, &again, NULL);
    assert(err == 0 && memcmp(&again, &backoff, sizeof again) == 0);
    for (uint64_t attempt = 1; attempt < UINT64_MAX / 3; attempt = attempt * 3 - 1) {
        uint64_t first, second;
        bool more = bel_backoff_delay(&backoff, attempt, bytes, &first);
        bool same = bel_backoff_delay(&again, attempt, bytes, &second) == more;
        assert(same && (!more || first == second));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) return 0;
    const char *text = (const char *)data + 1;
    switch (data[0]) {
    case 'd':
        check_duration(text, size - 1);
        break;
    case 'i':
        check_instant(text, size - 1);
        break;
    case 'b':
        check_backoff(text, size - 1);
        break;
    default:
        break;
    }
    return 0;
}
