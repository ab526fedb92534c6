/* SPDX-License-Identifier: MIT */

/*
 * Lines end in CR LF and nothing else. A CR or LF elsewhere, a NUL or another control character, a
 * folded header and a space before a colon are errors, as RFC 9112 allows or demands.
 */
#include "http/head.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

enum {
    VERSION_BYTES = 8, /* HTTP/1.1 */
};

static enum bel_http_progress refuse(struct bel_http_refusal *refusal, unsigned status,
                                     const char *text)
{
    *refusal = (struct bel_http_refusal){status, text};
    return BEL_HTTP_REFUSED;
}

/* --- characters --- */

static bool is_token_char(unsigned char c)
{
    unsigned char letter = c | 0x20;
    if ((letter >= 'a' && letter <= 'z') || (c >= '0' && c <= '9')) return true;
    return c != 0 && strchr("!#$%&'*+-.^_`|~", c) != NULL;
}

static bool is_token(struct bel_view text)
{
    const unsigned char *bytes = text.data;
    for (size_t i = 0; i < text.bytes; i++) {
        if (!is_token_char(bytes[i])) return false;
    }
    return text.bytes > 0;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static int hex_value(char c)
{
    char letter = (char)(c | 0x20);
    if (is_digit(c)) return c - '0';
    return letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : -1;
}

size_t bel__http_unescape(char *text, size_t bytes)
{
    size_t count = 0;
    for (size_t i = 0; i < bytes; i++) {
        char c = text[i];
        if (c == '%') {
            int high = i + 2 < bytes ? hex_value(text[i + 1]) : -1;
            int low = i + 2 < bytes ? hex_value(text[i + 2]) : -1;
            if (high < 0 || low < 0) return SIZE_MAX;
            c = (char)(high << 4 | low);
            i += 2;
        }
        text[count++] = c;
    }
    return count;
}

/* --- the request line --- */

/* Returns whether a target has only characters that may be in a line. Bytes above 0x7f are left to
 * the checks of topics and ids. */
static bool is_target(struct bel_view text)
{
    const unsigned char *bytes = text.data;
    for (size_t i = 0; i < text.bytes; i++) {
        if (bytes[i] <= ' ' || bytes[i] == 0x7f) return false;
    }
    return text.bytes > 0;
}

static enum bel_http_progress take_version(struct bel_view text, struct bel_http_head *out,
                                           struct bel_http_refusal *refusal)
{
    const char *bytes = text.data;
    bool is_version = text.bytes == VERSION_BYTES && memcmp(bytes, "HTTP/", 5) == 0 &&
                      is_digit(bytes[5]) && bytes[6] == '.' && is_digit(bytes[7]);
    if (!is_version) return refuse(refusal, 400, "the request line has no HTTP version");
    if (bytes[5] != '1') return refuse(refusal, 505, "only HTTP/1.1 and HTTP/1.0 are supported");
    out->minor = bytes[7] == '0' ? 0 : 1;
    return BEL_HTTP_WHOLE;
}

/* Takes the scheme and the authority off a target in absolute form, as clients of a proxy send it
 * (RFC 9112, 3.2.2). Any other target stays as it is. */
static enum bel_http_progress take_authority(struct bel_view *target, struct bel_http_head *out,
                                             struct bel_http_refusal *refusal)
{
    static const char *const schemes[] = {"http://", "https://"};
    const char *text = target->data, *end = text + target->bytes;
    size_t skip = 0;
    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
        size_t bytes = strlen(schemes[i]);
        if (target->bytes >= bytes && strncasecmp(text, schemes[i], bytes) == 0) skip = bytes;
    }
    if (skip == 0) return BEL_HTTP_WHOLE;
    const char *start = text + skip, *at = start;
    while (at < end && *at != '/' && *at != '?') {
        if (*at == '@' || *at == '#') return refuse(refusal, 400, "the target has a wrong host");
        at++;
    }
    if (at == start) return refuse(refusal, 400, "the target has no host");
    out->authority = (struct bel_view){start, (size_t)(at - start)};
    *target = (struct bel_view){at, (size_t)(end - at)};
    return BEL_HTTP_WHOLE;
}

static void split_target(struct bel_view target, struct bel_http_head *out)
{
    const char *text = target.data;
    const char *query = target.bytes > 0 ? memchr(text, '?', target.bytes) : NULL;
    out->path = target;
    if (query == NULL) return;
    out->path.bytes = (size_t)(query - text);
    out->query = (struct bel_view){query + 1, target.bytes - out->path.bytes - 1};
}

/* Parses a line without its end: method, target and version, with one space between them. */
static enum bel_http_progress parse_line(struct bel_view line, struct bel_http_head *out,
                                         struct bel_http_refusal *refusal)
{
    const char *text = line.data, *end = text + line.bytes;
    const char *first = memchr(text, ' ', line.bytes);
    const char *second = first != NULL ? memchr(first + 1, ' ', (size_t)(end - first - 1)) : NULL;
    if (second == NULL) {
        return refuse(refusal, 400, "the request line is not METHOD TARGET HTTP/1.1");
    }
    struct bel_view target = {first + 1, (size_t)(second - first - 1)};
    out->method = (struct bel_view){text, (size_t)(first - text)};
    if (!is_token(out->method)) return refuse(refusal, 400, "the method has invalid characters");
    if (!is_target(target)) return refuse(refusal, 400, "the target has invalid characters");
    enum bel_http_progress what = take_authority(&target, out, refusal);
    if (what != BEL_HTTP_WHOLE) return what;
    split_target(target, out);
    if (out->path.bytes == 0 && out->authority.data != NULL) out->path = BEL_VIEW("/");
    if (out->path.bytes == 0) return refuse(refusal, 400, "the target has no path");
    return take_version((struct bel_view){second + 1, (size_t)(end - second - 1)}, out, refusal);
}

/* --- scanning --- */

/* Checks the start of a request line, complete or not, without its LF. */
static enum bel_http_progress scan_start(const struct bel_http_scan *scan, struct bel_view part,
                                         const struct bel_http_limits *limits,
                                         struct bel_http_refusal *refusal)
{
    const unsigned char *bytes = part.data;
    if (scan->has_line || part.bytes == 0) return BEL_HTTP_MORE;
    /* Another protocol, such as TLS or RESP, is recognized by its first byte. */
    if (bytes[0] != '\r' && (!is_token_char(bytes[0]) || bytes[0] == '*')) {
        return refuse(refusal, 400, "this is not HTTP");
    }
    if (part.bytes > limits->line_bytes_max + 1) { /* and a CR */
        return refuse(refusal, 414, "the request line is too long");
    }
    return BEL_HTTP_MORE;
}

/* Takes a complete line, without its end. */
static enum bel_http_progress scan_line(struct bel_http_scan *scan, struct bel_view line,
                                        const struct bel_http_limits *limits,
                                        struct bel_http_refusal *refusal)
{
    struct bel_http_head head = {0};
    if (!scan->has_line && line.bytes == 0) {
        scan->start = scan->bytes; /* an empty line before a request is ignored */
        return BEL_HTTP_MORE;
    }
    if (!scan->has_line) {
        scan->has_line = true;
        enum bel_http_progress what = parse_line(line, &head, refusal);
        return what == BEL_HTTP_WHOLE ? BEL_HTTP_MORE : what;
    }
    if (line.bytes == 0) return BEL_HTTP_WHOLE;
    if (++scan->headers > limits->headers_max) return refuse(refusal, 431, "too many headers");
    return BEL_HTTP_MORE;
}

enum bel_http_progress bel__http_head_scan(struct bel_http_scan *scan, struct bel_view data,
                                           const struct bel_http_limits *limits,
                                           struct bel_http_refusal *refusal)
{
    const char *text = data.data;
    enum bel_http_progress what = BEL_HTTP_MORE;
    assert(scan->line <= scan->bytes && scan->bytes <= data.bytes);
    while (scan->bytes < data.bytes && what == BEL_HTTP_MORE) {
        const char *end = memchr(text + scan->bytes, '\n', data.bytes - scan->bytes);
        scan->bytes = end != NULL ? (size_t)(end - text) + 1 : data.bytes;
        struct bel_view line = {text + scan->line, scan->bytes - scan->line - (end != NULL)};
        what = scan_start(scan, line, limits, refusal);
        if (what != BEL_HTTP_MORE) break;
        if (scan->bytes > limits->head_bytes_max) {
            return refuse(refusal, 431, "the headers are too long");
        }
        if (end == NULL) break;
        if (line.bytes == 0 || end[-1] != '\r') {
            return refuse(refusal, 400, "a line does not end in CR LF");
        }
        line.bytes--;
        scan->line = scan->bytes;
        what = scan_line(scan, line, limits, refusal);
    }
    return what;
}

/* --- parsing --- */

/* Takes the next line, without its end. The head ends with an empty line. */
static struct bel_view take_line(struct bel_view *rest)
{
    const char *text = rest->data;
    const char *end = memchr(text, '\n', rest->bytes);
    assert(end != NULL && end > text && end[-1] == '\r');
    struct bel_view line = {text, (size_t)(end - text) - 1};
    *rest = (struct bel_view){end + 1, rest->bytes - line.bytes - 2};
    return line;
}

/* Removes spaces and tabs at both ends. */
static struct bel_view trim(struct bel_view text)
{
    const char *bytes = text.data;
    while (text.bytes > 0 && (*bytes == ' ' || *bytes == '\t')) {
        bytes++;
        text.bytes--;
    }
    while (text.bytes > 0 && (bytes[text.bytes - 1] == ' ' || bytes[text.bytes - 1] == '\t')) {
        text.bytes--;
    }
    text.data = bytes;
    return text;
}

static enum bel_http_progress parse_header(struct bel_view line, struct bel_http_headers *out,
                                           struct bel_http_refusal *refusal)
{
    const char *text = line.data, *colon = memchr(text, ':', line.bytes);
    if (text[0] == ' ' || text[0] == '\t') {
        return refuse(refusal, 400, "a header has more than one line");
    }
    if (colon == NULL) return refuse(refusal, 400, "a header has no colon");
    struct bel_view name = {text, (size_t)(colon - text)};
    struct bel_view value = {colon + 1, line.bytes - name.bytes - 1};
    if (!is_token(name)) return refuse(refusal, 400, "a header name has invalid characters");
    bel__http_headers_take(out, name, trim(value));
    return out->fault == NULL ? BEL_HTTP_WHOLE : refuse(refusal, 400, out->fault);
}

/* Checks what depends on the version. */
static enum bel_http_progress check_version(struct bel_http_head *head,
                                            struct bel_http_refusal *refusal)
{
    struct bel_http_headers *headers = &head->headers;
    if (head->minor > 0 && headers->host.data == NULL) {
        return refuse(refusal, 400, "HTTP/1.1 needs a Host");
    }
    if (head->minor == 0 && headers->is_chunked) {
        return refuse(refusal, 400, "HTTP/1.0 has no Transfer-Encoding");
    }
    if (head->authority.data != NULL) headers->host = head->authority; /* Host is ignored */
    if (head->minor == 0) {
        headers->expects_continue = false;
        if (!headers->wants_keep_alive) headers->wants_close = true;
    }
    return BEL_HTTP_WHOLE;
}

enum bel_http_progress bel__http_head_parse(struct bel_view head, struct bel_http_head *out,
                                            struct bel_http_refusal *refusal)
{
    struct bel_view rest = head, line = take_line(&rest);
    memset(out, 0, sizeof *out);
    enum bel_http_progress what = parse_line(line, out, refusal);
    if (what != BEL_HTTP_WHOLE) return what;
    for (line = take_line(&rest); line.bytes > 0; line = take_line(&rest)) {
        what = parse_header(line, &out->headers, refusal);
        if (what != BEL_HTTP_WHOLE) return what;
    }
    assert(rest.bytes == 0);
    return check_version(out, refusal);
}
