/* SPDX-License-Identifier: MIT */

/*
 * Protection against request smuggling. The headers of a request say where its body ends, and a
 * proxy in front of this server reads them too. If the proxy and the server disagree, an attacker's
 * body becomes a request that the server attributes to somebody else. Requests that could be read
 * in two ways are therefore rejected: no header that matters may occur twice, Content-Length
 * consists of digits, the only transfer coding is `chunked`, and it excludes Content-Length.
 */
#include "http/call.h"

#include "core/parse.h"

#include <string.h>
#include <strings.h>

enum place {
    LENGTH,
    CODING,
    EXPECT,
    OTHERS, /* the first of the other headers that may occur only once */
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

/* Returns whether a text is a valid header name (token, RFC 9110). */
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

/* Returns whether a header value is free of control characters other than tab. */
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
    if (headers->singles & bit) return "a header occurs twice that may occur only once";
    headers->singles |= bit;
    switch (place) {
    case LENGTH:
        if (bel__parse_u64(value.data, value.bytes, 0, UINT64_MAX, &headers->length) == 0) break;
        return "Content-Length: expected digits";
    case CODING:
        headers->is_chunked = true;
        if (is_called(value, "chunked")) break;
        return "Transfer-Encoding: only chunked is supported";
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

/* Returns whether a Content-Length or Transfer-Encoding is folded, i.e. continued on a second line,
 * which the library appends to the name. */
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
    if (!is_token(name)) headers->fault = "a header name has invalid characters";
    if (!is_line(value)) headers->fault = "a header value has control characters";
    if (is_folded(name)) headers->fault = "a header has more than one line";
    for (size_t i = 0; i < sizeof singles / sizeof singles[0] && headers->fault == NULL; i++) {
        if (is_called(name, singles[i])) headers->fault = take_single(headers, i, value);
    }
}
