/* SPDX-License-Identifier: MIT */

/* A text that is only digits is refused before the parsers of plans see it; 0 needs no unit. */
#include "cli/duration.h"

#include "belfry/backoff.h"
#include "belfry/duration.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define DIGITS "0123456789"

/* Returns whether a text is a number other than 0. */
static bool is_bare(const char *text, size_t bytes)
{
    return strspn(text, DIGITS) >= bytes && strspn(text, "0") < bytes;
}

static int refuse(struct bel_text_error *why, size_t position)
{
    why->position = position;
    (void)snprintf(why->expected, sizeof why->expected, "a unit: ms, s, m, h, d or w");
    return BEL_EINVAL;
}

int bel__cli_duration(const char *text, uint64_t *out_ms, struct bel_text_error *why)
{
    size_t bytes = strlen(text);
    if (is_bare(text, bytes)) return refuse(why, bytes);
    return bel_duration_parse(text, bytes, out_ms, why);
}

int bel__cli_policy(const char *text, struct bel_text_error *why)
{
    struct bel_backoff policy;
    size_t at = 0;
    int err = bel_backoff_parse(text, strlen(text), &policy, why);
    if (err) return err;
    while (text[at] != '\0' && text[at] != '(') {
        size_t bytes = strcspn(text + at, ", (");
        if (text[at + bytes] != '(' && is_bare(text + at, bytes)) return refuse(why, at + bytes);
        at += bytes;
        at += strspn(text + at, ", ");
    }
    return 0;
}
