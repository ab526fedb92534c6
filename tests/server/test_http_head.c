/* SPDX-License-Identifier: MIT */

/*
 * The HTTP parser without a socket. Each request is parsed as a whole and in two parts, split at
 * every byte, with the same result. The attacks by a real client are in web_attacks.py.
 */
#include "http/head.h"

#include "core/view.h"

#include "../check.h"

#include <stdbool.h>
#include <string.h>

enum {
    BODY_BYTES_MAX = 100,
    REQUEST_BYTES_MAX = 1 << 16,
};

#define HOST "Host: localhost\r\n"

static const struct bel_http_limits limits = {200, 600, 10};

/* What became of a request. */
struct result {
    unsigned status;  /* 0: it is complete; 1: more is needed; otherwise it is refused */
    size_t used;      /* bytes of a complete request */
    uint64_t content; /* a checksum of the body */
    size_t content_bytes;
};

static struct result refused(const struct bel_http_refusal *refusal)
{
    CHECK(refusal->status >= 400 && strlen(refusal->text) > 0);
    return (struct result){.status = refusal->status};
}

/* Parses a request whose bytes arrive in parts, each in a block of its own. */
static struct result parse(const char *text, size_t bytes, size_t split)
{
    struct bel_http_scan scan = {0};
    struct bel_http_head head;
    struct bel_http_refusal refusal;
    enum bel_http_progress what = BEL_HTTP_MORE;
    size_t given = split < bytes ? split : bytes, used = 0;
    for (;;) {
        char *copy = malloc(given + 1);
        CHECK(copy != NULL);
        if (given > 0) memcpy(copy, text, given);
        what = bel__http_head_scan(&scan, (struct bel_view){copy, given}, &limits, &refusal);
        free(copy);
        if (what != BEL_HTTP_MORE || given == bytes) break;
        given = bytes;
    }
    if (what == BEL_HTTP_MORE) return (struct result){.status = 1};
    if (what == BEL_HTTP_REFUSED) return refused(&refusal);
    CHECK(scan.start < scan.bytes && scan.bytes <= bytes);
    struct bel_view view = {text + scan.start, scan.bytes - scan.start};
    if (bel__http_head_parse(view, &head, &refusal) != BEL_HTTP_WHOLE) return refused(&refusal);
    struct result result = {.used = scan.bytes};
    struct bel_http_body body = bel__http_body_of(&head.headers);
    struct bel_buffer content;
    bel__buffer_init(&content, BODY_BYTES_MAX);
    what = body.is_chunked || body.left > 0 ? BEL_HTTP_MORE : BEL_HTTP_WHOLE;
    for (size_t end = split; what == BEL_HTTP_MORE && result.used < bytes; end = bytes) {
        if (end <= result.used) continue;
        struct bel_view part = {text + result.used, (end < bytes ? end : bytes) - result.used};
        what = bel__http_body_take(&body, part, &content, &used, &refusal);
        CHECK(used <= part.bytes);
        result.used += used;
    }
    if (what == BEL_HTTP_MORE) result = (struct result){.status = 1};
    if (what == BEL_HTTP_REFUSED) result = refused(&refusal);
    for (size_t i = 0; what == BEL_HTTP_WHOLE && i < content.count; i++) {
        result.content = result.content * 31 + bel__buffer_data(&content)[i];
    }
    if (what == BEL_HTTP_WHOLE) result.content_bytes = content.count;
    bel__buffer_finish(&content);
    return result;
}

static struct result parse_every_way(const char *text, size_t bytes)
{
    struct result whole = parse(text, bytes, bytes);
    for (size_t split = 0; split < bytes; split++) {
        struct result parts = parse(text, bytes, split);
        CHECK_NOTE("split at %zu: %.200s", split, text);
        CHECK_EQ(parts.status, whole.status);
        CHECK_EQ(parts.used, whole.used);
        CHECK_EQ(parts.content, whole.content);
        CHECK_EQ(parts.content_bytes, whole.content_bytes);
    }
    return whole;
}

static void right_requests(void)
{
    static const struct {
        const char *text;
        size_t content_bytes;
    } rows[] = {
        {"GET / HTTP/1.1\r\n" HOST "\r\n", 0},
        {"\r\n\r\nGET /a?b=c HTTP/1.1\r\n" HOST "\r\n", 0},
        {"GET / HTTP/1.0\r\n\r\n", 0},
        {"GET http://localhost HTTP/1.0\r\n\r\n", 0},
        {"GET https://localhost?a=b HTTP/1.1\r\n" HOST "\r\n", 0},
        {"get / HTTP/1.1\r\nHOST:localhost\r\n\r\n", 0},
        {"GET / HTTP/1.1\r\n" HOST "X: \t a b\xff \t\r\n\r\n", 0},
        {"PUT / HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhello", 5},
        {"PUT / HTTP/1.1\r\n" HOST "content-length:005\r\n\r\nhello", 5},
        {"PUT / HTTP/1.1\r\n" HOST "Content-Length: 0\r\n\r\n", 0},
        {"PUT / HTTP/1.1\r\n" HOST "Transfer-Encoding: Chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", 5},
        {"PUT / HTTP/1.1\r\n" HOST
         "Transfer-Encoding: chunked\r\n\r\n2;x=y\r\nhe\r\n03;\r\nllo\r\n000\r\nA: b\r\n\r\n",
         5},
        {"PUT / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct result result = parse_every_way(rows[i].text, strlen(rows[i].text));
        CHECK_NOTE("%s", rows[i].text);
        CHECK_EQ(result.status, 0);
        CHECK_EQ(result.used, strlen(rows[i].text));
        CHECK_EQ(result.content_bytes, rows[i].content_bytes);
    }
}

/* A target in absolute form is a host, a path and a query; its host takes the place of Host. */
static void absolute_targets(void)
{
    static const struct {
        const char *target, *host, *path, *query;
    } rows[] = {
        {"/a?b", "localhost", "/a", "b"},
        {"http://x:1/a?b?c", "x:1", "/a", "b?c"},
        {"HTTPS://x", "x", "/", ""},
        {"http://x?b=/c", "x", "/", "b=/c"},
        {"http://[::1]:7/", "[::1]:7", "/", ""},
        {"/http://x/", "localhost", "/http://x/", ""},
        {"httpx://x/", "localhost", "httpx://x/", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[200];
        struct bel_http_head head;
        struct bel_http_refusal refusal;
        int bytes = snprintf(text, sizeof text, "GET %s HTTP/1.1\r\n" HOST "\r\n", rows[i].target);
        struct bel_view view = {text, (size_t)bytes};
        CHECK_NOTE("%s", rows[i].target);
        CHECK(bel__http_head_parse(view, &head, &refusal) == BEL_HTTP_WHOLE);
        CHECK(bel__view_is(head.headers.host, rows[i].host));
        CHECK(bel__view_is(head.path, rows[i].path));
        CHECK(bel__view_is(head.query, rows[i].query));
    }
}

/* A request that is cut anywhere is incomplete; nothing of it is refused or complete. */
static void parts_of_requests(void)
{
    static const char text[] =
        "PUT / HTTP/1.1\r\n" HOST
        "Transfer-Encoding: chunked\r\n\r\n5;x\r\nhello\r\n0\r\nA: b\r\n\r\n";
    for (size_t bytes = 0; bytes < sizeof text - 1; bytes++) {
        struct result result = parse(text, bytes, bytes / 2);
        CHECK_NOTE("cut at %zu", bytes);
        CHECK_EQ(result.status, 1);
    }
}

/* The bytes after a request are not touched. */
static void requests_in_a_row(void)
{
    static const char text[] = "PUT / HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhelloGET / HT";
    struct result result = parse_every_way(text, sizeof text - 1);
    CHECK_EQ(result.status, 0);
    CHECK_EQ(result.used, sizeof text - 1 - strlen("GET / HT"));
}

#define PUT_CHUNKED "PUT / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"

static void wrong_requests(void)
{
    static const struct {
        unsigned status;
        const char *text;
    } rows[] = {
        {400, "GET / HTTP/1.1\nHost: a\n\n"},
        {400, "GET / HTTP/1.1\r\nHost: a\n\r\n"},
        {400, "\nGET / HTTP/1.1\r\n" HOST "\r\n"},
        {400, "GET /\r\n" HOST "\r\n"},
        {400, "GET  / HTTP/1.1\r\n" HOST "\r\n"},
        {400, " GET / HTTP/1.1\r\n" HOST "\r\n"},
        {400, "GET / HTTP/1.1 \r\n" HOST "\r\n"},
        {400, "GET / HTTP/1.\r\n" HOST "\r\n"},
        {400, "G@T / HTTP/1.1\r\n" HOST "\r\n"},
        {400, "GET /\x01 HTTP/1.1\r\n" HOST "\r\n"},
        {400, "GET ?a HTTP/1.1\r\n" HOST "\r\n"},
        {400, "GET http:// HTTP/1.1\r\n" HOST "\r\n"},
        {400, "GET http://a@b/ HTTP/1.1\r\n" HOST "\r\n"},
        {400, "GET http://localhost/ HTTP/1.1\r\n\r\n"},
        {400, "\x16\x03\x01"},
        {400, "*1\r\n$4\r\nPING\r\n"},
        {505, "GET / HTTP/2.0\r\n" HOST "\r\n"},
        {400, "GET / HTTP/1.1\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\n" HOST HOST "\r\n"},
        {400, "GET / HTTP/1.1\r\n" HOST "A\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\n" HOST ": b\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\n" HOST "A : b\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\n" HOST "A: b\r\n c\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\n" HOST "A: b\rC: d\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\n" HOST "A: b\x7f\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\n" HOST "Content-Length: 1\r\nContent-Length: 1\r\n\r\na"},
        {400, "GET / HTTP/1.1\r\n" HOST "Content-Length: 1, 1\r\n\r\na"},
        {400, "GET / HTTP/1.1\r\n" HOST "Content-Length: \r\n\r\na"},
        {400, "GET / HTTP/1.1\r\n" HOST "Content-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked, chunked\r\n\r\n"},
        {400, "GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"},
        {400, PUT_CHUNKED "\r\n"},
        {400, PUT_CHUNKED "5 \r\nhello\r\n0\r\n\r\n"},
        {400, PUT_CHUNKED "5\nhello\r\n0\r\n\r\n"},
        {400, PUT_CHUNKED "4\r\nhello\r\n0\r\n\r\n"},
        {400, PUT_CHUNKED "5\r\nhello\n0\r\n\r\n"},
        {400, PUT_CHUNKED "5;\x01\r\nhello\r\n0\r\n\r\n"},
        {400, PUT_CHUNKED "0\r\nA: \x01\r\n\r\n"},
        {413, PUT_CHUNKED "65\r\n"}, /* 101 bytes */
        {413, PUT_CHUNKED "ffffffffffffffff\r\n"},
        {413, PUT_CHUNKED "00000000000000001\r\n"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct result result = parse_every_way(rows[i].text, strlen(rows[i].text));
        CHECK_NOTE("%s", rows[i].text);
        CHECK_EQ(result.status, rows[i].status);
    }
    /* A NUL is refused wherever it is. */
    static const char good[] = "GET /path HTTP/1.1\r\n" HOST "Content-Length: 15\r\nA: b\r\n\r\n";
    for (size_t at = 0; at < sizeof good - 1; at++) {
        char text[sizeof good + 4];
        (void)snprintf(text, sizeof text, "%s\r\n\r\n", good); /* complete without one of its LF */
        text[at] = 0;
        struct result result = parse(text, sizeof text - 1, at);
        CHECK_NOTE("NUL at %zu", at);
        CHECK_EQ(result.status, 400);
    }
}

/* Fills a request with `bytes` bytes of 'a' at the place of the %. */
static size_t fill(char out[REQUEST_BYTES_MAX], const char *pattern, size_t bytes)
{
    const char *at = strchr(pattern, '%');
    size_t before = (size_t)(at - pattern), after = strlen(at + 1);
    CHECK(before + bytes + after < REQUEST_BYTES_MAX);
    memcpy(out, pattern, before);
    memset(out + before, 'a', bytes);
    memcpy(out + before + bytes, at + 1, after);
    return before + bytes + after;
}

static unsigned status_of(const char *pattern, size_t bytes)
{
    static char text[REQUEST_BYTES_MAX];
    size_t total = fill(text, pattern, bytes);
    return parse(text, total, total / 3).status;
}

static void limits_are_kept(void)
{
    char text[1024] = "GET / HTTP/1.1\r\n" HOST;
    size_t line = strlen("GET / HTTP/1.1");
    CHECK_EQ(status_of("GET /% HTTP/1.1\r\n" HOST "\r\n", limits.line_bytes_max - line), 0);
    CHECK_EQ(status_of("GET /% HTTP/1.1\r\n" HOST "\r\n", limits.line_bytes_max - line + 1), 414);
    CHECK_EQ(status_of("GET /%", 10000), 414);
    CHECK_EQ(status_of("%", limits.line_bytes_max + 2), 414);
    CHECK_EQ(status_of("GET / HTTP/1.1\r\n" HOST "A: %\r\n\r\n", 300), 0);
    CHECK_EQ(status_of("GET / HTTP/1.1\r\n" HOST "A: %\r\n\r\n", 700), 431);
    CHECK_EQ(status_of("GET / HTTP/1.1\r\n" HOST "A: %", 700), 431);
    for (unsigned i = 1; i <= limits.headers_max + 1; i++) {
        char whole[1100];
        int bytes = snprintf(whole, sizeof whole, "%s\r\n", text);
        unsigned status = i > limits.headers_max ? 431 : 0;
        CHECK_EQ(parse(whole, (size_t)bytes, 20).status, status);
        size_t used = strlen(text);
        (void)snprintf(text + used, sizeof text - used, "A: b\r\n");
    }
}

static void percent_decoding(void)
{
    static const struct {
        const char *text, *decoded; /* NULL: wrong */
    } rows[] = {{"", ""},         {"abc", "abc"}, {"%41%2f%C3", "A/\xc3"}, {"a+b", "a+b"},
                {"%", NULL},      {"%4", NULL},   {"%4g", NULL},           {"%g4", NULL},
                {"%25%34", "%4"}, {"a%", NULL},   {"%%41", NULL}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char *copy = strdup(rows[i].text);
        CHECK(copy != NULL);
        size_t bytes = bel__http_unescape(copy, strlen(copy));
        CHECK_NOTE("%s", rows[i].text);
        CHECK((bytes == SIZE_MAX) == (rows[i].decoded == NULL));
        if (rows[i].decoded != NULL) {
            CHECK_EQ(bytes, strlen(rows[i].decoded));
            CHECK(memcmp(copy, rows[i].decoded, bytes) == 0);
        }
        free(copy);
    }
}

int main(void)
{
    RUN(right_requests);
    RUN(absolute_targets);
    RUN(parts_of_requests);
    RUN(requests_in_a_row);
    RUN(wrong_requests);
    RUN(limits_are_kept);
    RUN(percent_decoding);
    return 0;
}
