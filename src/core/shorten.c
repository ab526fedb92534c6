/* SPDX-License-Identifier: MIT */

/*
 * One pass from left to right. What was read is never behind what is written, since a number only
 * gets shorter. A number of up to 16 characters has no digit too many.
 */
#include "core/shorten.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SHORT_BYTES = 16,
    NUMBER_BYTES = 32, /* -2.2250738585072014e-308 has 24 */
    DIGITS_ENOUGH = 15,
    DIGITS_MAX = 17, /* which are always enough */
};

/* Writes a number to `out`, which may be where it is, and returns how long it is there. */
static size_t put_number(const char *number, size_t bytes, char *out)
{
    char copy[NUMBER_BYTES] = {0}, shorter[NUMBER_BYTES];
    memmove(out, number, bytes);
    if (bytes <= SHORT_BYTES || bytes >= sizeof copy) return bytes;
    memcpy(copy, out, bytes);
    if (strpbrk(copy, ".eE") == NULL) return bytes;
    double value = strtod(copy, NULL);
    for (int digits = DIGITS_ENOUGH; digits < DIGITS_MAX; digits++) {
        size_t count = (size_t)snprintf(shorter, sizeof shorter, "%.*g", digits, value);
        bool is_real = strpbrk(shorter, ".e") != NULL && strchr(shorter, ',') == NULL;
        if (!is_real || count >= bytes || strtod(shorter, NULL) != value) continue;
        memcpy(out, shorter, count);
        return count;
    }
    return bytes;
}

/* How long the text is that begins here, quotes included. */
static size_t text_bytes(const char *text)
{
    size_t i = 1;
    while (text[i] != 0 && text[i] != '"') {
        i += text[i] == '\\' && text[i + 1] != 0 ? 2 : 1;
    }
    return text[i] == 0 ? i : i + 1;
}

void bel__shorten_numbers(char *json)
{
    const char *in = json;
    char *out = json;
    while (*in != 0) {
        size_t bytes = strspn(in, "-0123456789.eE+");
        if (bytes > 0) {
            out += put_number(in, bytes, out);
        } else {
            bytes = *in == '"' ? text_bytes(in) : 1;
            memmove(out, in, bytes);
            out += bytes;
        }
        in += bytes;
    }
    *out = 0;
}
