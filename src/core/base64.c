/* SPDX-License-Identifier: MIT */

/* A group is three bytes in a 24-bit number. Decoding never writes ahead of where it reads, so that
 * the output may overwrite the input. */
#include "core/base64.h"

#include <assert.h>
#include <stdlib.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static int digit_of(char c)
{
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    if (c == '+') return 62;
    return c == '/' ? 63 : -1;
}

void bel__base64_group(const uint8_t *bytes, size_t count, char out[BEL_BASE64_CHARS])
{
    assert(count > 0);
    uint32_t group = (uint32_t)bytes[0] << 16;
    if (count > 1) group |= (uint32_t)bytes[1] << 8;
    if (count > 2) group |= bytes[2];
    out[0] = digits[group >> 18];
    out[1] = digits[group >> 12 & 63];
    out[2] = '=';
    out[3] = '=';
    if (count > 1) out[2] = digits[group >> 6 & 63];
    if (count > 2) out[3] = digits[group & 63];
}

char *bel__base64_encode(struct bel_view data)
{
    const uint8_t *bytes = data.data;
    size_t groups = (data.bytes + BEL_BASE64_BYTES - 1) / BEL_BASE64_BYTES;
    char *text = malloc(groups * BEL_BASE64_CHARS + 1);
    if (text == NULL) return NULL;
    for (size_t i = 0; i < groups; i++) {
        size_t at = i * BEL_BASE64_BYTES;
        bel__base64_group(bytes + at, data.bytes - at, text + i * BEL_BASE64_CHARS);
    }
    text[groups * BEL_BASE64_CHARS] = 0;
    return text;
}

bool bel__base64_decode(struct bel_view text, void *out, size_t *out_bytes)
{
    const char *from = text.data;
    uint8_t *to = out;
    size_t count = text.bytes, used = 0;
    if (count % BEL_BASE64_CHARS != 0) return false;
    for (int padding = 0; padding < 2 && count > 0 && from[count - 1] == '='; padding++) {
        count--;
    }
    uint32_t group = 0;
    for (size_t i = 0; i < count; i++) {
        int digit = digit_of(from[i]);
        if (digit < 0) return false;
        group = (group << 6 | (uint32_t)digit) & 0xffffff;
        if (i % 4 == 1) to[used++] = (uint8_t)(group >> 4);
        if (i % 4 == 2) to[used++] = (uint8_t)(group >> 2);
        if (i % 4 == 3) to[used++] = (uint8_t)group;
    }
    *out_bytes = used;
    return true;
}
