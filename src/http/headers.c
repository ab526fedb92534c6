/* SPDX-License-Identifier: MIT */

/*
 * Protection against request smuggling. The headers of a request say where its body ends, and a
 * proxy in front of this server reads them too. If the proxy and the server disagree, an attacker's
 * body becomes a request that the server attributes to somebody else. Requests that could be read
 * in two ways are therefore rejected: no header that matters may occur twice, Content-Length
 * consists of digits, the only transfer coding is `chunked`, and it excludes Content-Length.
 */
#include "http/head.h"

#include "core/parse.h"

#include <string.h>
#include <strings.h>

enum place {
    LENGTH,
    CODING,
    EXPECT,
    HOST,
    ORIGIN,
    AUTHORIZATION,
    RETRY_KEY,
    ENCODING,
    OTHERS, /* the first of the other headers that may occur only once */
};

static const char *const singles[] = {
    [LENGTH] = "Content-Length",
    [CODING] = "Transfer-Encoding",
    [EXPECT] = "Expect",
    [HOST] = "Host",
    [ORIGIN] = "Origin",
    [AUTHORIZATION] = "Authorization",
    [RETRY_KEY] = "Idempotency-Key",
    [ENCODING] = "Content-Encoding",
    [OTHERS] = "Content-Type",
};

static bool is_called(struct bel_view text, const char *name)
{
    return text.bytes == strlen(name) && strncasecmp(text.data, name, text.bytes) == 0;
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

static const char *take_length(struct bel_http_headers *headers, struct bel_view value)
{
    int err = bel__parse_u64(value.data, value.bytes, 0, UINT64_MAX, &headers->length);
    if (err == BEL_ERANGE) headers->length = UINT64_MAX;
    return err == BEL_EINVAL ? "Content-Length: expected digits" : NULL;
}

static const char *take_single(struct bel_http_headers *headers, size_t place,
                               struct bel_view value)
{
    switch (place) {
    case LENGTH:
        return take_length(headers, value);
    case CODING:
        headers->is_chunked = true;
        return is_called(value, "chunked") ? NULL : "Transfer-Encoding: only chunked is supported";
    case EXPECT:
        headers->expects_continue = true;
        return is_called(value, "100-continue") ? NULL : "Expect: expected 100-continue";
    case HOST:
        headers->host = value;
        return NULL;
    case ORIGIN:
        headers->origin = value;
        return NULL;
    case AUTHORIZATION:
        headers->authorization = value;
        return NULL;
    case RETRY_KEY:
        headers->retry_key = value;
        return NULL;
    case ENCODING:
        headers->is_encoded = !is_called(value, "identity") && value.bytes > 0;
        return NULL;
    default:
        return NULL;
    }
}

/* Takes a header that may occur only once. Returns why it is wrong, or NULL. */
static const char *check_single(struct bel_http_headers *headers, size_t place,
                                struct bel_view value)
{
    unsigned bit = 1U << place, both = 1U << LENGTH | 1U << CODING;
    if (headers->singles & bit) return "a header occurs twice that may occur only once";
    headers->singles |= bit;
    const char *fault = take_single(headers, place, value);
    if (fault != NULL) return fault;
    return (headers->singles & both) == both
               ? "Content-Length and Transfer-Encoding exclude each other"
               : NULL;
}

/* Takes the options of a Connection header, a list with commas. */
static void take_connection(struct bel_http_headers *headers, struct bel_view value)
{
    const char *text = value.data;
    for (size_t at = 0; at < value.bytes; at++) {
        size_t start = at, bytes;
        while (at < value.bytes && text[at] != ',') {
            at++;
        }
        while (start < at && (text[start] == ' ' || text[start] == '\t')) {
            start++;
        }
        for (bytes = at - start; bytes > 0; bytes--) {
            if (text[start + bytes - 1] != ' ' && text[start + bytes - 1] != '\t') break;
        }
        struct bel_view option = {text + start, bytes};
        if (is_called(option, "close")) headers->wants_close = true;
        if (is_called(option, "keep-alive")) headers->wants_keep_alive = true;
    }
}

void bel__http_headers_take(struct bel_http_headers *headers, struct bel_view name,
                            struct bel_view value)
{
    if (headers->fault != NULL) return;
    if (!is_line(value)) headers->fault = "a header value has control characters";
    if (is_called(name, "Connection")) take_connection(headers, value);
    for (size_t i = 0; i < sizeof singles / sizeof singles[0] && headers->fault == NULL; i++) {
        if (is_called(name, singles[i])) headers->fault = check_single(headers, i, value);
    }
}
