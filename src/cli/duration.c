/* SPDX-License-Identifier: MIT */

/*
 * A text that is only digits is refused before the parsers of plans see it; 0 needs no unit. Units
 * in words are replaced by those of the parser, which then checks their order and the sum.
 */
#include "cli/duration.h"

#include "belfry/backoff.h"
#include "belfry/duration.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

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

/* Returns the unit or the number that a word means; NULL if it means none. M must be small: M may
 * stand for months. */
static const char *unit_of(const char *word, size_t bytes)
{
    static const struct {
        const char *word, *unit;
    } units[] = {
        {"ms", "ms"},  {"msec", "ms"},  {"msecs", "ms"}, {"millisecond", "ms"},
        {"s", "s"},    {"sec", "s"},    {"second", "s"}, {"m", "m"},
        {"min", "m"},  {"minute", "m"}, {"h", "h"},      {"hr", "h"},
        {"hour", "h"}, {"d", "d"},      {"day", "d"},    {"w", "w"},
        {"wk", "w"},   {"week", "w"},   {"and", ""},     {"a", "1"},
        {"an", "1"},   {"one", "1"},
    };
    for (unsigned i = 0; i < sizeof units / sizeof units[0]; i++) {
        size_t length = strlen(units[i].word);
        bool is_plural = length > 1 && bytes == length + 1 && (word[length] | 0x20) == 's';
        if (bytes != length && !is_plural) continue;
        bool is_it = length > 1 ? strncasecmp(word, units[i].word, length) == 0
                                : word[0] == units[i].word[0];
        if (is_it) return units[i].unit;
    }
    return NULL;
}

bool bel__cli_duration_rewrite(const char *text, char out[CLI_DURATION_BYTES])
{
    size_t used = 0;
    uint64_t ms;
    if (bel_duration_parse(text, strlen(text), &ms, NULL) == 0) return false;
    while (*text != '\0') {
        size_t bytes = strspn(text, DIGITS "."), skip = bytes;
        const char *word = text;
        if (bytes == 0 && (*text == ' ' || *text == ',')) {
            text++;
            continue;
        }
        if (bytes == 0) {
            skip = strcspn(text, DIGITS "., ");
            word = unit_of(text, skip);
            if (skip == 0 || word == NULL) return false;
            bytes = strlen(word);
        }
        if (used + bytes >= CLI_DURATION_BYTES) return false;
        memcpy(out + used, word, bytes);
        used += bytes;
        text += skip;
    }
    out[used] = '\0';
    return bel_duration_parse(out, used, &ms, NULL) == 0 && !is_bare(out, used);
}

int bel__cli_duration(const char *text, uint64_t *out_ms, struct bel_text_error *why)
{
    char rewritten[CLI_DURATION_BYTES];
    size_t bytes = strlen(text);
    if (is_bare(text, bytes)) return refuse(why, bytes);
    if (bel__cli_duration_rewrite(text, rewritten)) text = rewritten;
    return bel_duration_parse(text, strlen(text), out_ms, why);
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
