/* SPDX-License-Identifier: MIT */
#include "http/response.h"

#include <assert.h>
#include <stdio.h>
#include <time.h>

enum {
    HEAD_BYTES = 2048,
    DATE_BYTES = 32,
};

static const char *reason_of(unsigned status)
{
    static const struct {
        unsigned status;
        const char *reason;
    } reasons[] = {
        {200, "OK"},
        {201, "Created"},
        {204, "No Content"},
        {400, "Bad Request"},
        {401, "Unauthorized"},
        {403, "Forbidden"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {408, "Request Timeout"},
        {409, "Conflict"},
        {413, "Content Too Large"},
        {414, "URI Too Long"},
        {415, "Unsupported Media Type"},
        {429, "Too Many Requests"},
        {431, "Request Header Fields Too Large"},
        {500, "Internal Server Error"},
        {501, "Not Implemented"},
        {503, "Service Unavailable"},
        {505, "HTTP Version Not Supported"},
        {507, "Insufficient Storage"},
    };
    for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++) {
        if (reasons[i].status == status) return reasons[i].reason;
    }
    return "Unknown";
}

/* Prints a date as HTTP wants it, in English whatever the locale. */
static void print_date(struct bel_wall date, char out[DATE_BYTES])
{
    static const char days[] = "SunMonTueWedThuFriSat";
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    time_t seconds = (time_t)(date.ms / 1000);
    struct tm tm;
    out[0] = 0;
    if (gmtime_r(&seconds, &tm) == NULL) return;
    (void)snprintf(out, DATE_BYTES, "%.3s, %02d %.3s %04d %02d:%02d:%02d GMT",
                   days + 3 * (size_t)tm.tm_wday, tm.tm_mday, months + 3 * (size_t)tm.tm_mon,
                   (tm.tm_year + 1900) % 10000, tm.tm_hour, tm.tm_min, tm.tm_sec);
}

static int put_header(struct bel_buffer *out, const char *name, const char *value)
{
    return value[0] != 0 ? bel__buffer_append_format(out, "%s: %s\r\n", name, value) : 0;
}

/* Writes the header that frames the body. */
static int put_framing(const struct bel_http_response *response, const struct bel_http_page *page,
                       size_t body_bytes, struct bel_buffer *out)
{
    if (page->type == NULL) return 0; /* 204 has neither */
    if (response->is_chunked) return put_header(out, "Transfer-Encoding", "chunked");
    if (!bel__json_is_over(&page->body)) return 0; /* until the connection is closed */
    return bel__buffer_append_format(out, "Content-Length: %zu\r\n", body_bytes);
}

static int put_head(const struct bel_http_response *response, const struct bel_http_page *page,
                    size_t body_bytes, struct bel_buffer *out)
{
    const struct bel_http_terms *terms = &response->terms;
    char date[DATE_BYTES];
    print_date(terms->date, date);
    bool is_kept_1_0 = terms->minor == 0 && !terms->is_last;
    int err =
        bel__buffer_append_format(out, "HTTP/1.1 %u %s\r\nDate: %s\r\nCache-Control: no-store\r\n",
                                  page->status, reason_of(page->status), date);
    if (err == 0) err = put_header(out, "X-Content-Type-Options", "nosniff");
    if (err == 0) err = put_header(out, "Content-Type", page->type != NULL ? page->type : "");
    if (err == 0) err = put_header(out, "Allow", page->allow);
    if (err == 0) err = put_header(out, "Location", page->location);
    if (err == 0 && page->status == 401) err = put_header(out, "WWW-Authenticate", "Bearer");
    if (err == 0 && page->status == 503) err = put_header(out, "Retry-After", "1");
    if (err == 0 && terms->is_last) err = put_header(out, "Connection", "close");
    if (err == 0 && is_kept_1_0) err = put_header(out, "Connection", "keep-alive");
    if (err == 0) err = put_framing(response, page, body_bytes, out);
    return err == 0 ? bel__buffer_append(out, "\r\n", 2) : err;
}

/* Appends a part of the body. */
static int put_body(const struct bel_http_response *response, const struct bel_buffer *part,
                    struct bel_buffer *out)
{
    if (response->terms.is_head || part->count == 0) return 0;
    if (!response->is_chunked) return bel__buffer_append(out, bel__buffer_data(part), part->count);
    int err = bel__buffer_append_format(out, "%zx\r\n", part->count);
    if (err == 0) err = bel__buffer_append(out, bel__buffer_data(part), part->count);
    return err == 0 ? bel__buffer_append(out, "\r\n", 2) : err;
}

int bel__http_response_next(struct bel_http_response *response, struct bel_http_page *page,
                            struct bel_buffer *scratch, struct bel_buffer *out, size_t *work)
{
    assert(!response->is_over && !page->is_lost && scratch->count == 0);
    int err = bel__buffer_reserve(out, HEAD_BYTES + BEL_HTTP_SCRATCH_BYTES);
    if (err) return err;
    *work = 0;
    if (!bel__json_is_over(&page->body)) {
        *work = bel__json_read(&page->body, scratch, BEL_HTTP_SLICE_BYTES);
    }
    bool is_over = bel__json_is_over(&page->body);
    if (!response->is_begun) {
        response->is_begun = true;
        if (!is_over && response->terms.minor > 0) response->is_chunked = true;
        if (!is_over && response->terms.minor == 0) response->terms.is_last = true;
        err = put_head(response, page, scratch->count, out);
        if (response->terms.is_head) is_over = true;
    }
    if (err == 0) err = put_body(response, scratch, out);
    if (err == 0 && is_over && response->is_chunked && !response->terms.is_head) {
        err = bel__buffer_append(out, "0\r\n\r\n", 5);
    }
    bel__buffer_consume(scratch, scratch->count);
    response->is_over = is_over;
    return err;
}
