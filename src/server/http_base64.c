/* SPDX-License-Identifier: MIT */

/* Base64 as RFC 4648 has it, section 4: three bytes are four characters, and padding is needed. */
#include "server/http_call.h"

#include <stdlib.h>
#include <string.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static int digit_of(char c)
{
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    if (c == '+') return 62;
    return c == '/' ? 63 : -1;
}

bool bel__base64_decode(char *text, size_t *bytes)
{
    size_t count = *bytes, used = 0, padding = 0;
    if (count % 4 != 0) return false;
    while (padding < 2 && count > 0 && text[count - 1] == '=') {
        padding++;
        count--;
    }
    uint32_t group = 0;
    for (size_t i = 0; i < count; i++) {
        int digit = digit_of(text[i]);
        if (digit < 0) return false;
        group = (group << 6 | (uint32_t)digit) & 0xffffff;
        if (i % 4 == 1) text[used++] = (char)(unsigned char)(group >> 4);
        if (i % 4 == 2) text[used++] = (char)(unsigned char)(group >> 2);
        if (i % 4 == 3) text[used++] = (char)(unsigned char)group;
    }
    *bytes = used;
    return true;
}

char *bel__base64_encode(struct bel_view data)
{
    const uint8_t *from = data.data;
    char *text = malloc((data.bytes + 2) / 3 * 4 + 1), *to = text;
    if (text == NULL) return NULL;
    for (size_t i = 0; i < data.bytes; i += 3) {
        size_t left = data.bytes - i;
        uint32_t group = (uint32_t)from[i] << 16;
        if (left > 1) group |= (uint32_t)from[i + 1] << 8;
        if (left > 2) group |= from[i + 2];
        *to++ = digits[group >> 18];
        *to++ = digits[group >> 12 & 63];
        to[0] = to[1] = '=';
        if (left > 1) to[0] = digits[group >> 6 & 63];
        if (left > 2) to[1] = digits[group & 63];
        to += 2;
    }
    *to = 0;
    return text;
}
