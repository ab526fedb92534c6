/* SPDX-License-Identifier: MIT */

/*
 * The bytes of a connection: requests one after the other, until one is refused or incomplete.
 *
 * The first byte says where the bytes are split. Each request must be understood in the same way
 * however its bytes arrive: at once, or in two parts. A request that is accepted must be one that
 * can be read in one way only, which is checked by a second, slower reading of its lines.
 */
#include "http/head.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    BODY_BYTES_MAX = 1 << 16,
};

static const struct bel_http_limits limits = {100, 300, 8};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What became of a request. */
struct result {
    enum bel_http_progress what;
    size_t used, content_bytes;
    unsigned status;
};

/* Counts the lines of a head that begin with a name and a colon. */
static unsigned count_headers(struct bel_view head, const char *name)
{
    const char *text = head.data;
    size_t bytes = strlen(name);
    unsigned count = 0;
    for (size_t at = 0; at + bytes < head.bytes; at++) {
        bool is_start = at > 0 && text[at - 1] == '\n';
        bool is_it = is_start && strncasecmp(text + at, name, bytes) == 0;
        if (is_it && text[at + bytes] == ':') count++;
    }
    return count;
}

/* Checks what every accepted head has. */
static void check_head(struct bel_view view, const struct bel_http_head *head)
{
    const char *text = view.data;
    for (size_t i = 0; i < view.bytes; i++) {
        bool is_end = text[i] == '\r' && text[i + 1] == '\n';
        assert(text[i] != 0 && text[i] != 0x7f);
        assert((unsigned char)text[i] >= ' ' || text[i] == '\t' || text[i] == '\n' || is_end);
        assert(text[i] != '\n' || text[i - 1] == '\r');
    }
    unsigned lengths = count_headers(view, "Content-Length");
    unsigned codings = count_headers(view, "Transfer-Encoding");
    assert(lengths + codings <= 1);
    assert(head->headers.is_chunked == (codings == 1));
    assert(count_headers(view, "Host") <= 1 && (head->minor == 0 || head->headers.host.data));
    assert(head->path.bytes > 0 && head->method.bytes > 0);
    assert(head->headers.fault == NULL);
}

static struct result take_body(const struct bel_http_headers *headers, struct bel_view view,
                               size_t split)
{
    struct bel_http_body body = bel__http_body_of(headers);
    struct bel_http_refusal refusal = {0};
    struct bel_buffer content;
    struct result result = {.what = BEL_HTTP_MORE};
    bel__buffer_init(&content, BODY_BYTES_MAX);
    if (!body.is_chunked && body.left == 0) result.what = BEL_HTTP_WHOLE;
    for (int i = 0; i < 2 && result.what == BEL_HTTP_MORE; i++) {
        size_t end = i == 0 && split < view.bytes ? split : view.bytes, used;
        if (end < result.used) continue;
        struct bel_view part = {(const char *)view.data + result.used, end - result.used};
        result.what = bel__http_body_take(&body, part, &content, &used, &refusal);
        assert(used <= part.bytes);
        result.used += used;
    }
    result.content_bytes = content.count;
    result.status = refusal.status;
    assert(headers->is_chunked || result.content_bytes <= headers->length);
    if (result.what == BEL_HTTP_REFUSED) result.used = result.content_bytes = 0;
    bel__buffer_finish(&content);
    return result;
}

/* Reads a request whose bytes arrive in two parts. */
static struct result take_request(struct bel_view view, size_t split)
{
    struct bel_http_scan scan = {0};
    struct bel_http_head head;
    struct bel_http_refusal refusal = {0};
    struct bel_view part = {view.data, split < view.bytes ? split : view.bytes};
    struct result result = {.what = BEL_HTTP_MORE};
    result.what = bel__http_head_scan(&scan, part, &limits, &refusal);
    if (result.what == BEL_HTTP_MORE) {
        result.what = bel__http_head_scan(&scan, view, &limits, &refusal);
    }
    if (result.what == BEL_HTTP_WHOLE) {
        struct bel_view text = {(const char *)view.data + scan.start, scan.bytes - scan.start};
        result.what = bel__http_head_parse(text, &head, &refusal);
        if (result.what == BEL_HTTP_WHOLE) {
            check_head(text, &head);
            struct bel_view rest = {(const char *)view.data + scan.bytes, view.bytes - scan.bytes};
            result = take_body(&head.headers, rest, split > scan.bytes ? split - scan.bytes : 0);
            result.used += scan.bytes;
            if (result.what == BEL_HTTP_REFUSED) refusal.status = result.status;
        }
    }
    if (result.what == BEL_HTTP_REFUSED) {
        result = (struct result){BEL_HTTP_REFUSED, 0, 0, refusal.status};
        assert(result.status >= 400 && result.status < 600);
    }
    return result;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1) return 0;
    size_t split = data[0];
    char *copy = malloc(size);
    if (copy == NULL) abort();
    memcpy(copy, data + 1, size - 1);
    struct bel_view rest = {copy, size - 1};
    for (;;) {
        struct result whole = take_request(rest, rest.bytes), parts = take_request(rest, split);
        assert(whole.what == parts.what && whole.status == parts.status);
        if (whole.what != BEL_HTTP_WHOLE) break;
        assert(whole.used == parts.used && whole.content_bytes == parts.content_bytes);
        assert(whole.used > 0 && whole.used <= rest.bytes);
        rest.data = (const char *)rest.data + whole.used;
        rest.bytes -= whole.used;
    }
    free(copy);
    return 0;
}
