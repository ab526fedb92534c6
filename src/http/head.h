/* SPDX-License-Identifier: MIT */
#ifndef BEL_HTTP_HEAD_H
#define BEL_HTTP_HEAD_H

/*
 * head - a strict parser of HTTP/1.1 request heads and bodies (RFC 9112). Pure functions over
 * bytes: no socket, no clock, no allocation but the content of a body. Private to src/http.
 *
 *     struct bel_http_scan scan = {0};
 *     for (;;) {
 *         ... receive more bytes, append them to data ...
 *         what = bel__http_head_scan(&scan, data, &limits, &refusal);
 *         if (what != BEL_HTTP_MORE) break;
 *     }
 *     if (what == BEL_HTTP_WHOLE) what = bel__http_head_parse(head, &parsed, &refusal);
 *
 * A scan looks at each byte once, however the bytes are split, and refuses a request as soon as its
 * request line is wrong or a limit is exceeded. The parser refuses each request that two readers
 * could understand in two ways: see headers.c.
 */

#include "belfry/view.h"
#include "core/buffer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bel_http_limits {
    size_t line_bytes_max; /* of the request line */
    size_t head_bytes_max; /* of the request line and the headers */
    unsigned headers_max;
};

enum bel_http_progress {
    BEL_HTTP_MORE,    /* more bytes are needed */
    BEL_HTTP_WHOLE,   /* complete */
    BEL_HTTP_REFUSED, /* wrong; nothing after it can be understood */
};

/* Why a request is refused. */
struct bel_http_refusal {
    unsigned status;  /* 400, 413, 414, 431 or 505 */
    const char *text; /* for people */
};

/* The progress of a scan. Starts as all zero. */
struct bel_http_scan {
    size_t bytes;     /* scanned; if WHOLE: of the head and the empty lines before it */
    size_t line;      /* where the current line begins */
    size_t start;     /* where the request line begins, after empty lines */
    unsigned headers; /* complete header lines */
    bool has_line;    /* the request line is complete */
};

/* Scans for the end of a head. `data` has all bytes since the scan began. */
enum bel_http_progress bel__http_head_scan(struct bel_http_scan *scan, struct bel_view data,
                                           const struct bel_http_limits *limits,
                                           struct bel_http_refusal *refusal);

/* What the headers say about the body and the connection. Starts as all zero. */
struct bel_http_headers {
    const char *fault; /* why the request is refused; NULL: it is not */
    uint64_t length;   /* of the body, unless it is chunked; UINT64_MAX: beyond 64 bits, too */
    bool is_chunked;
    bool expects_continue;              /* Expect: 100-continue */
    bool wants_close, wants_keep_alive; /* Connection */
    bool is_encoded;                    /* Content-Encoding names a coding other than identity */
    unsigned singles; /* bit set: which of the headers allowed only once were seen */
    struct bel_view host, origin, authorization, retry_key; /* data is NULL: no such header */
};

/* Checks one header and notes its value if the server uses it. Call it for each header. */
void bel__http_headers_take(struct bel_http_headers *headers, struct bel_view name,
                            struct bel_view value);

/* A parsed head. The views point into the bytes it was parsed from. */
struct bel_http_head {
    struct bel_view method;
    struct bel_view path, query; /* of the target, still percent-encoded */
    struct bel_view authority;   /* of a target that is a URI; data is NULL: it is a path */
    unsigned minor;              /* HTTP/1.0: 0; otherwise 1 */
    struct bel_http_headers headers;
};

/* Parses a complete head, from its request line to its empty line. Returns WHOLE or REFUSED. */
enum bel_http_progress bel__http_head_parse(struct bel_view head, struct bel_http_head *out,
                                            struct bel_http_refusal *refusal);

/* The place of a reader in a chunked body. */
enum bel_http_chunk_state {
    BEL_HTTP_CHUNK_SIZE,
    BEL_HTTP_CHUNK_EXTENSION,
    BEL_HTTP_CHUNK_SIZE_END, /* the LF after the size */
    BEL_HTTP_CHUNK_DATA,
    BEL_HTTP_CHUNK_DATA_CR,
    BEL_HTTP_CHUNK_DATA_LF,
    BEL_HTTP_CHUNK_TRAILER, /* in a line of the trailers */
    BEL_HTTP_CHUNK_TRAILER_LF,
    BEL_HTTP_CHUNK_END,
};

/* A reader of a body. */
struct bel_http_body {
    bool is_chunked;
    uint64_t left; /* bytes of the body, or of the chunk */
    enum bel_http_chunk_state state;
    unsigned digits;      /* of the size so far */
    size_t line_bytes;    /* of the extension or the trailer line */
    size_t trailer_bytes; /* of all trailers */
};

/* Begins to read the body that the headers announce. */
struct bel_http_body bel__http_body_of(const struct bel_http_headers *headers);

/* Appends the content of the next bytes to `out` and sets `*used` to how many of them belong to the
 * body. Returns MORE, WHOLE, or REFUSED: 413 if the content exceeds the maximum of `out`, 507 if
 * memory has run out, otherwise 400. */
enum bel_http_progress bel__http_body_take(struct bel_http_body *body, struct bel_view data,
                                           struct bel_buffer *out, size_t *used,
                                           struct bel_http_refusal *refusal);

/* Percent-decodes a text in place. Returns its new length, or SIZE_MAX if a % is not followed by
 * two hexadecimal digits. */
size_t bel__http_unescape(char *text, size_t bytes);

#endif
