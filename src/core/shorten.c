/* SPDX-License-Identifier: MIT */

/*
 * One pass from left to right, in place. Writing never overtakes reading, because a number only
 * gets shorter. A number of up to 16 characters cannot have superfluous digits.
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
    DIGITS_MAX = 17, /* always enough for a double */
};

/* Writes a number, shortened if possible, to `out`, which may be where it is. Returns its length
 * there. */
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

/* Returns the length of the JSON string that begins here, quotes included. */
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
