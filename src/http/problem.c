/* SPDX-License-Identifier: MIT */

/*
 * Errors as problem details (RFC 9457). Every error of this server has such a body, also the ones
 * of the protocol itself.
 */
#include "http/page.h"

#include "core/utf8.h"

#include <assert.h>
#include <string.h>

enum {
    DETAIL_BYTES_MAX = 1024,
};

static const struct {
    const char *code, *title;
    unsigned status;
} problems[] = {
    {"ERR", "Bad request", 400},           {"BADARG", "Bad value", 400},
    {"NOTFOUND", "Not found", 404},        {"CONFLICT", "Conflict", 409},
    {"STALE", "Lease has ended", 409},     {"LIMITED", "Too many requests", 429},
    {"FULL", "A limit is reached", 507},   {"NOAUTH", "Key required", 401},
    {"NOPERM", "Not allowed", 403},        {"IO", "Storage has failed", 500},
    {"UNSUPPORTED", "Not supported", 501},
};

/* The titles of statuses that are not those of a code. */
static const struct {
    unsigned status;
    const char *title;
} titles[] = {
    {405, "Method not allowed"},
    {408, "Request timeout"},
    {413, "Body too large"},
    {414, "Request line too long"},
    {415, "Unsupported encoding"},
    {431, "Headers too large"},
    {501, "Not supported"},
    {503, "Too many connections"},
    {505, "HTTP version not supported"},
};

static const char *title_of(unsigned status, const char *title)
{
    for (size_t i = 0; i < sizeof titles / sizeof titles[0]; i++) {
        if (titles[i].status == status) return titles[i].title;
    }
    return title;
}

static void set(struct bel_json_stream *body, const char *name, const char *text)
{
    bel__json_name(body, (struct bel_view){name, strlen(name)});
    bel__json_text(body, (struct bel_view){text, strlen(text)});
}

/* Sets the detail. A text that quotes a client's bytes may be no UTF-8, or be cut inside a
 * character: such bytes become \xff. A control character becomes the same. */
static void set_detail(struct bel_json_stream *body, const char *text)
{
    static const char digits[] = "0123456789abcdef";
    char shown[DETAIL_BYTES_MAX];
    size_t used = 0, bytes = strlen(text);
    for (size_t at = 0, next; at < bytes && used + 4 < sizeof shown; at += next) {
        const unsigned char *start = (const unsigned char *)text + at;
        next = bel__utf8_bytes(start, bytes - at);
        if (next > 0 && !bel__utf8_is_control(start, next)) {
            memcpy(shown + used, start, next);
            used += next;
            continue;
        }
        if (next == 0) next = 1;
        for (size_t i = 0; i < next && used + 4 < sizeof shown; i++) {
            shown[used++] = '\\';
            shown[used++] = 'x';
            shown[used++] = digits[start[i] >> 4];
            shown[used++] = digits[start[i] & 15];
        }
    }
    shown[used] = 0;
    set(body, "detail", shown);
}

struct bel_http_page bel__http_problem_as(unsigned status, const char *code, const char *text)
{
    size_t i = 0;
    while (i + 1 < sizeof problems / sizeof problems[0] && strcmp(problems[i].code, code) != 0) {
        i++;
    }
    if (status == 0) status = problems[i].status;
    struct bel_http_page page = {
        .status = status, .type = "application/problem+json", .is_problem = true, .code = code};
    assert(status >= 400 && status < 600);
    bel__json_init(&page.body);
    bel__json_open(&page.body, '{');
    set(&page.body, "type", "about:blank");
    set(&page.body, "title", title_of(status, problems[i].title));
    bel__json_name(&page.body, BEL_VIEW("status"));
    bel__json_number(&page.body, status);
    set_detail(&page.body, text);
    set(&page.body, "code", code);
    bel__json_close(&page.body, '}');
    page.is_lost = page.body.is_lost;
    return page;
}

struct bel_http_page bel__http_problem(const char *code, const char *text)
{
    return bel__http_problem_as(0, code, text);
}
