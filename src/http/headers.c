/* SPDX-License-Identifier: MIT */

/*
 * Where a request ends is said by its headers, and whoever stands before this server has read them
 * too. If the two do not agree, what is a body for one is a request for the other, and maybe in
 * somebody else's name. So what could be read in two ways is not read at all: none of the headers
 * that matter is there twice, lengths are digits, the only coding is `chunked`, and it has no
 * length beside it.
 */
#include "http/call.h"

#include "core/parse.h"

#include <string.h>
#include <strings.h>

enum place {
    LENGTH,
    CODING,
    EXPECT,
    OTHERS, /* that may be there once */
};

static const char *const singles[] = {
    [LENGTH] = "Content-Length",
    [CODING] = "Transfer-Encoding",
    [EXPECT] = "Expect",
    [OTHERS] = "Host",
    "Origin",
    "Authorization",
    "Content-Type",
    "Idempotency-Key",
};

static bool is_called(struct bel_view text, const char *name)
{
    return text.bytes == strlen(name) && strncasecmp(text.data, name, text.bytes) == 0;
}

/* Names, as RFC 9110 has them. */
static bool is_token(struct bel_view text)
{
    const char *bytes = text.data;
    for (size_t i = 0; i < text.bytes; i++) {
        char c = bytes[i], letter = (char)(c | 0x20);
        bool is_plain = (letter >= 'a' && letter <= 'z') || (c >= '0' && c <= '9');
        if (!is_plain && (c == 0 || strchr("!#$%&'*+-.^_`|~", c) == NULL)) return false;
    }
    return text.bytes > 0;
}

/* Values: anything but what ends a line, or looks as if. */
static bool is_line(struct bel_view text)
{
    const unsigned char *bytes = text.data;
    for (size_t i = 0; i < text.bytes; i++) {
        if ((bytes[i] < ' ' && bytes[i] != '\t') || bytes[i] == 0x7f) return false;
    }
    return true;
}

static const char *take_single(struct bel_http_headers *headers, size_t place,
                               struct bel_view value)
{
    unsigned bit = 1U << place;
    if (headers->singles & bit) return "a header is there twice that may be there once";
    headers->singles |= bit;
    switch (place) {
    case LENGTH:
        if (bel__parse_u64(value.data, value.bytes, 0, UINT64_MAX, &headers->length) == 0) break;
        return "Content-Length: expected digits";
    case CODING:
        headers->is_chunked = true;
        if (is_called(value, "chunked")) break;
        return "Transfer-Encoding: expected chunked, and nothing else";
    case EXPECT:
        if (is_called(value, "100-continue")) break;
        return "Expect: expected 100-continue";
    default:
        break;
    }
    unsigned both = 1U << LENGTH | 1U << CODING;
    return (headers->singles & both) == both
               ? "Content-Length and Transfer-Encoding exclude each other"
               : NULL;
}

/* Of a header that goes on in a second line, the library appends that line to the name. */
static bool is_folded(struct bel_view name)
{
    for (size_t i = LENGTH; i <= CODING; i++) {
        size_t bytes = strlen(singles[i]);
        if (name.bytes > bytes && is_called((struct bel_view){name.data, bytes}, singles[i])) {
            return true;
        }
    }
    return false;
}

void bel__http_headers_take(struct bel_http_headers *headers, struct bel_view name,
                            struct bel_view value)
{
    if (headers->fault != NULL) return;
    if (!is_token(name)) headers->fault = "a header has other characters in its name than names do";
    if (!is_line(value)) headers->fault = "a header has control characters in it";
    if (is_folded(name)) headers->fault = "a header has more than one line";
    for (size_t i = 0; i < sizeof singles / sizeof singles[0] && headers->fault == NULL; i++) {
        if (is_called(name, singles[i])) headers->fault = take_single(headers, i, value);
    }
}
