/* SPDX-License-Identifier: MIT */

/*
 * The two framings of a body: a length, or chunks.
 *
 *     5;extension CR LF  hello CR LF  0 CR LF  trailer: x CR LF  CR LF
 *
 * Extensions and trailers are checked and discarded; both are limited.
 */
#include "http/head.h"

#include <assert.h>

enum {
    DIGITS_MAX = 16,
    EXTENSION_BYTES_MAX = 256,
    TRAILER_BYTES_MAX = 8 << 10,
};

struct bel_http_body bel__http_body_of(const struct bel_http_headers *headers)
{
    assert(headers->fault == NULL && (!headers->is_chunked || headers->length == 0));
    return (struct bel_http_body){.is_chunked = headers->is_chunked, .left = headers->length};
}

static enum bel_http_progress refuse(struct bel_http_refusal *refusal, unsigned status,
                                     const char *text)
{
    *refusal = (struct bel_http_refusal){status, text};
    return BEL_HTTP_REFUSED;
}

static int hex_value(char c)
{
    char letter = (char)(c | 0x20);
    if (c >= '0' && c <= '9') return c - '0';
    return letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : -1;
}

/* Appends content. */
static enum bel_http_progress append(struct bel_http_body *body, struct bel_view data,
                                     struct bel_buffer *out, size_t *used,
                                     struct bel_http_refusal *refusal)
{
    size_t bytes = data.bytes < body->left ? data.bytes : (size_t)body->left;
    int err = bytes > 0 ? bel__buffer_append(out, data.data, bytes) : 0;
    if (err == BEL_EFULL) return refuse(refusal, 413, "the body is too large");
    if (err) return refuse(refusal, 507, "out of memory: try again");
    body->left -= bytes;
    *used += bytes;
    return body->left == 0 ? BEL_HTTP_WHOLE : BEL_HTTP_MORE;
}

static enum bel_http_progress take_size(struct bel_http_body *body, char c, size_t bytes_max,
                                        struct bel_http_refusal *refusal)
{
    int value = hex_value(c);
    if (value >= 0) {
        if (++body->digits > DIGITS_MAX || body->left > UINT64_MAX >> 4) {
            return refuse(refusal, 413, "the body is too large");
        }
        body->left = body->left << 4 | (unsigned)value;
        return BEL_HTTP_MORE;
    }
    if (body->digits == 0 || (c != ';' && c != '\r')) {
        return refuse(refusal, 400, "the size of a chunk is wrong");
    }
    if (body->left > bytes_max) return refuse(refusal, 413, "the body is too large");
    body->line_bytes = 0;
    body->state = c == ';' ? BEL_HTTP_CHUNK_EXTENSION : BEL_HTTP_CHUNK_SIZE_END;
    return BEL_HTTP_MORE;
}

static bool is_control(char c)
{
    unsigned char byte = (unsigned char)c;
    return (byte < ' ' && byte != '\t') || byte == 0x7f;
}

static enum bel_http_progress take_trailer(struct bel_http_body *body, char c,
                                           struct bel_http_refusal *refusal)
{
    if (++body->trailer_bytes > TRAILER_BYTES_MAX) {
        return refuse(refusal, 431, "the trailers are too long");
    }
    if (c == '\r') {
        body->state = BEL_HTTP_CHUNK_TRAILER_LF;
    } else if (is_control(c)) {
        return refuse(refusal, 400, "a trailer has control characters");
    } else {
        body->line_bytes++;
    }
    return BEL_HTTP_MORE;
}

/* Takes the LF at the end of a line. */
static enum bel_http_progress take_line_end(struct bel_http_body *body, char c,
                                            struct bel_http_refusal *refusal)
{
    if (c != '\n') return refuse(refusal, 400, "a line of a chunk does not end in CR LF");
    if (body->state == BEL_HTTP_CHUNK_SIZE_END) {
        body->state = body->left > 0 ? BEL_HTTP_CHUNK_DATA : BEL_HTTP_CHUNK_TRAILER;
    } else if (body->state == BEL_HTTP_CHUNK_DATA_LF) {
        body->state = BEL_HTTP_CHUNK_SIZE;
        body->digits = 0;
    } else {
        assert(body->state == BEL_HTTP_CHUNK_TRAILER_LF);
        body->state = body->line_bytes > 0 ? BEL_HTTP_CHUNK_TRAILER : BEL_HTTP_CHUNK_END;
    }
    body->line_bytes = 0;
    return body->state == BEL_HTTP_CHUNK_END ? BEL_HTTP_WHOLE : BEL_HTTP_MORE;
}

/* Takes a byte of a chunked body that is not content. */
static enum bel_http_progress take_frame(struct bel_http_body *body, char c, size_t bytes_max,
                                         struct bel_http_refusal *refusal)
{
    switch (body->state) {
    case BEL_HTTP_CHUNK_SIZE:
        return take_size(body, c, bytes_max, refusal);
    case BEL_HTTP_CHUNK_EXTENSION:
        if (c == '\r') {
            body->state = BEL_HTTP_CHUNK_SIZE_END;
        } else if (is_control(c) || ++body->line_bytes > EXTENSION_BYTES_MAX) {
            return refuse(refusal, 400, "the extension of a chunk is wrong");
        }
        return BEL_HTTP_MORE;
    case BEL_HTTP_CHUNK_DATA_CR:
        if (c != '\r') return refuse(refusal, 400, "a chunk is longer than its size");
        body->state = BEL_HTTP_CHUNK_DATA_LF;
        return BEL_HTTP_MORE;
    case BEL_HTTP_CHUNK_TRAILER:
        return take_trailer(body, c, refusal);
    default:
        return take_line_end(body, c, refusal);
    }
}

static enum bel_http_progress take_chunks(struct bel_http_body *body, struct bel_view data,
                                          struct bel_buffer *out, size_t *used,
                                          struct bel_http_refusal *refusal)
{
    const char *text = data.data;
    enum bel_http_progress what = BEL_HTTP_MORE;
    while (*used < data.bytes && what == BEL_HTTP_MORE) {
        if (body->state == BEL_HTTP_CHUNK_DATA) {
            struct bel_view rest = {text + *used, data.bytes - *used};
            what = append(body, rest, out, used, refusal);
            if (what != BEL_HTTP_WHOLE) continue;
            body->state = BEL_HTTP_CHUNK_DATA_CR;
            what = BEL_HTTP_MORE;
        } else {
            what = take_frame(body, text[*used], out->count_max, refusal);
            if (what != BEL_HTTP_REFUSED) ++*used;
        }
    }
    return what;
}

enum bel_http_progress bel__http_body_take(struct bel_http_body *body, struct bel_view data,
                                           struct bel_buffer *out, size_t *used,
                                           struct bel_http_refusal *refusal)
{
    *used = 0;
    if (body->is_chunked) return take_chunks(body, data, out, used, refusal);
    return append(body, data, out, used, refusal);
}
