/* SPDX-License-Identifier: MIT */
#ifndef BEL_HTTP_RESPONSE_H
#define BEL_HTTP_RESPONSE_H

/*
 * response - a page as the bytes of an HTTP response, in slices. Private to src/http.
 *
 *     struct bel_http_response response = {.terms = ...};
 *     do {
 *         work = bel__http_response_next(&response, &page, &scratch, &out);
 *         ... send out, let others work ...
 *     } while (!response.is_over);
 *
 * A body that fits into the first slice has a Content-Length. A longer one is sent in chunks, or to
 * an HTTP/1.0 client until the connection is closed.
 */

#include "http/page.h"

enum {
    BEL_HTTP_SLICE_BYTES = 64 << 10, /* checked or expanded for a slice */
    BEL_HTTP_SCRATCH_BYTES = BEL_HTTP_SLICE_BYTES + BEL_JSON_SLACK,
};

/* What the response depends on besides the page. */
struct bel_http_terms {
    unsigned minor; /* HTTP/1.x */
    bool is_head;   /* a response to HEAD: no body */
    bool is_last;   /* the connection is closed after it */
    struct bel_wall date;
};

/* Starts with its terms, and otherwise all zero. */
struct bel_http_response {
    struct bel_http_terms terms;
    bool is_begun, is_chunked;
    bool is_over; /* everything is in the output */
};

/* Makes the next slice and appends it to `out`. `scratch` is empty, with memory for
 * BEL_HTTP_SCRATCH_BYTES. Sets `*work` to the bytes checked and made. Returns 0, or BEL_ENOMEM or
 * BEL_EFULL: then the response cannot be completed. */
BEL_CHECKED int bel__http_response_next(struct bel_http_response *response,
                                        struct bel_http_page *page, struct bel_buffer *scratch,
                                        struct bel_buffer *out, size_t *work);

#endif
