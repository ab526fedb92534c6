/* SPDX-License-Identifier: MIT */
#ifndef BEL_HTTP_CALL_H
#define BEL_HTTP_CALL_H

/*
 * http_call - the inside of HTTP: one request from its first line to the last byte of its answer.
 *
 *     route --> words --> bel__bind(), bel__build() --> backend --> page --> response
 *     (path)    (path, query, body)                                 (JSON)
 *
 * The words are those that RESP would have had, so both mean the same and refuse the same.
 */

#include "core/buffer.h"
#include "core/list.h"
#include "http/http.h"
#include "session/bind.h"
#include "session/unsent_claims.h"

#include <jansson.h>
#include <microhttpd.h>

enum {
    BEL_HTTP_CAPTURES_MAX = 2,
};

/* What a route leads to: a command of the table, or one of these. */
enum bel_http_own {
    BEL_HTTP_COMMAND,
    BEL_HTTP_LIVEZ,
    BEL_HTTP_READYZ,
    BEL_HTTP_METRICS,
    BEL_HTTP_OPENAPI,
};

struct bel_http_route {
    const char *method, *path; /* {topic} and so on stand for one segment */
    enum bel_http_own own;
    enum bel_command_place command; /* of BEL_HTTP_COMMAND */
    bool is_made;                   /* answers 201 and says where it is */
};

extern const struct bel_http_route bel__http_routes[];
extern const size_t bel__http_routes_count;

/* A part of the path, decoded. */
struct bel_http_capture {
    const char *name; /* in the route, with the } behind it */
    struct bel_view text;
};

/* Where a path leads. `path` is changed: captures point into it. NULL if nowhere; then `allow` has
 * the methods that lead somewhere, or is empty. */
const struct bel_http_route *
bel__http_route(const char *method, char *path,
                struct bel_http_capture captures[BEL_HTTP_CAPTURES_MAX], char allow[64]);

/* What the headers of a request say of where it ends. Starts as all zero. */
struct bel_http_headers {
    const char *fault; /* why it is not read; NULL: it is */
    uint64_t length;   /* of its body, if it is not in chunks */
    bool is_chunked;
    unsigned singles; /* the headers that were there, of those that may be there once */
};

/* Takes one header after the other. */
void bel__http_headers_take(struct bel_http_headers *headers, struct bel_view name,
                            struct bel_view value);

/* An answer that is ready. */
struct bel_http_page {
    unsigned status;
    json_t *json;    /* owned; NULL: there is nothing to say */
    bool is_problem; /* its type is problem+json */
    bool is_lost;    /* there was no memory for it: nothing is said, and the client is cut off,
                              who must expect that it was done */
    struct bel_view place; /* of what was made: its id */
};

/*
 * The life of a call, which starts when its head has come:
 *
 *     RECEIVING --.-- all is there ------------------------------> ANSWERED --> SENDING --> gone
 *       |  |      |-- the backend is asked --> RUNNING --reply--------^           ^
 *       |  |      '-- topics are counted ----> COUNTING --counts------|           |
 *       |  '-- the body is too large --> TOO_LARGE -- all is there ---'           |
 *       '-- the head is refused -------> REFUSED -- all is there, or at once -----'
 *
 * A connection that is gone ends its call. A call that is RUNNING then becomes ORPHANED, until the
 * backend has replied. A call that is ANSWERED without a response closes its connection.
 */
enum bel_http_call_state {
    BEL_HTTP_CALL_RECEIVING,
    BEL_HTTP_CALL_TOO_LARGE, /* the rest of the body is dropped, as is that of the next */
    BEL_HTTP_CALL_REFUSED,
    BEL_HTTP_CALL_RUNNING, /* the connection is suspended, as is that of the next */
    BEL_HTTP_CALL_COUNTING,
    BEL_HTTP_CALL_ANSWERED,
    BEL_HTTP_CALL_SENDING,
    BEL_HTTP_CALL_ORPHANED,
};

/* What is known of the query, from good to bad. */
enum bel_http_query_state {
    BEL_HTTP_QUERY_NONE,
    BEL_HTTP_QUERY_READ,
    BEL_HTTP_QUERY_TWICE, /* a name is in it twice */
    BEL_HTTP_QUERY_LOST,  /* there was no memory for it */
};

struct bel_http_call {
    struct bel_request request;
    struct bel_link link, waiting; /* of all; of those that wait for the census */
    struct bel_http *http;         /* NULL: HTTP has been stopped */
    struct bel_backend *backend;   /* borrowed, as is the next */
    const struct bel_service *service;
    struct MHD_Connection *connection; /* NULL: it is gone */
    const struct bel_http_route *route;
    struct bel_http_capture captures[BEL_HTTP_CAPTURES_MAX];
    struct bel_grant grant; /* of the key */
    char *path;
    struct bel_buffer body;
    json_t *fields; /* of the query, or the body */
    json_t *kept;   /* texts that words point to */
    char *payload;  /* one that was made from a JSON value or base64 */
    struct bel_view *words;
    void *pairs;
    struct bel_unsent_claims unsent; /* of an answer that is not sent */
    void *tokens;                    /* of these; may be NULL */
    size_t words_count, words_capacity;
    struct MHD_Response *response; /* to be queued */
    unsigned status;
    enum bel_http_call_state state;
    enum bel_http_query_state query;
    bool is_watched; /* while RUNNING: for its client to hang up */
    bool is_last;    /* the connection ends behind it */
    bool is_lost;    /* its deliveries are not in the answer */
};

/* Takes a pair of the query, as it was sent: each before bel__http_words(), which says what is
 * wrong with it. */
void bel__http_query(struct bel_http_call *call, const char *name, const char *value);

/* Makes the command of a call from its route, query and body. Returns 0, or BEL_EINVAL and says
 * why. */
BEL_CHECKED int bel__http_words(struct bel_http_call *call, struct bel_command *out,
                                struct bel_why *why);

/* Frees what the two above have made. */
void bel__http_words_finish(struct bel_http_call *call);

/* What the backend has replied. */
struct bel_http_page bel__http_page(const struct bel_http_call *call,
                                    const struct bel_reply *reply);

/* An error, as RFC 9457 has it, with the status of its code; or with another, unless that is 0. */
struct bel_http_page bel__http_problem(const char *code, const char *text);
struct bel_http_page bel__http_problem_as(unsigned status, const char *code, const char *text);

/* The description of all routes; NULL without memory. */
json_t *bel__http_openapi(void);

/* Reads a text. NULL if it is not JSON, and `error` says why; or if `*is_memory` was missing. */
json_t *bel__http_load(struct bel_view text, size_t flags, json_error_t *error, bool *is_memory);

/* The text of a value, with a 0 behind it; NULL without memory. The caller frees it. Unlike
 * json_dumps() it does not go on behind something that is missing. */
char *bel__http_dump(const json_t *value, size_t flags);

#endif
