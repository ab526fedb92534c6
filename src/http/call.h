/* SPDX-License-Identifier: MIT */
#ifndef BEL_HTTP_CALL_H
#define BEL_HTTP_CALL_H

/*
 * http_call - one HTTP request, from its first line to the last byte of its response. Private to
 * src/http.
 *
 *     route --> words --> bel__bind(), bel__build() --> backend --> page --> response
 *     (path)    (path, query, body)                                 (JSON)
 *
 * The words are the arguments that a RESP client would send. HTTP and RESP share bel__bind() and
 * bel__build(), and therefore accept and reject the same commands.
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

/* The handler of a route: a command of the table, or a resource of the server itself. */
enum bel_http_own {
    BEL_HTTP_COMMAND,
    BEL_HTTP_LIVEZ,
    BEL_HTTP_READYZ,
    BEL_HTTP_METRICS,
    BEL_HTTP_OPENAPI,
};

struct bel_http_route {
    const char *method, *path; /* {topic} etc. match one segment */
    enum bel_http_own own;
    enum bel_command_place command; /* if BEL_HTTP_COMMAND; BEL_HTTP_METRICS: for its permission */
    bool is_create;                 /* replies with 201 and a Location header */
};

extern const struct bel_http_route bel__http_routes[];
extern const size_t bel__http_routes_count;

/* A segment of the path that matched a {name} of the route, decoded. */
struct bel_http_capture {
    const char *name; /* points into the route's path and ends with '}', not with NUL */
    struct bel_view text;
};

/* Finds the route of a request and decodes its captures, which point into `path`. Returns NULL if
 * there is none; then `allow` lists the methods that the path supports, or is empty. */
const struct bel_http_route *
bel__http_route(const char *method, char *path,
                struct bel_http_capture captures[BEL_HTTP_CAPTURES_MAX], char allow[64]);

/* The framing of a request, from its headers: where does its body end? Starts as all zero. */
struct bel_http_headers {
    const char *fault; /* why the request is rejected; NULL: it is not */
    uint64_t length;   /* of the body, unless it is chunked */
    bool is_chunked;
    unsigned singles; /* bit set: which of the headers allowed only once were seen */
};

/* Checks one header and notes its value if the header concerns framing. Call it for each header. */
void bel__http_headers_take(struct bel_http_headers *headers, struct bel_view name,
                            struct bel_view value);

/* A complete reply: status and JSON body. */
struct bel_http_page {
    unsigned status;
    json_t *json;    /* owned; NULL: no body */
    bool is_problem; /* the content type is application/problem+json */
    bool is_lost;    /* out of memory: the connection is closed without a response, and the client
                        must assume that the command may have been executed */
    struct bel_view created_id; /* the id of the timer that was created; for Location */
};

/*
 * The lifecycle of a call, which starts when the head of the request is complete:
 *
 *     RECEIVING --.-- body complete -----------------------------> ANSWERED --> SENDING --> freed
 *       |  |      |-- request submitted -----> RUNNING --reply--------^           ^
 *       |  |      '-- census started --------> COUNTING --counts------|           |
 *       |  '-- body too large ---------> TOO_LARGE -- body complete --'           |
 *       '-- head refused --------------> REFUSED -- body complete, or at once ----'
 *
 * A closed connection ends its call. A RUNNING call becomes ORPHANED until the backend has replied.
 * A call that is ANSWERED without a response closes its connection.
 */
enum bel_http_call_state {
    BEL_HTTP_CALL_RECEIVING,
    BEL_HTTP_CALL_TOO_LARGE, /* the rest of the body is discarded, as in the next state */
    BEL_HTTP_CALL_REFUSED,
    BEL_HTTP_CALL_RUNNING, /* the connection is suspended, as in the next state */
    BEL_HTTP_CALL_COUNTING,
    BEL_HTTP_CALL_ANSWERED,
    BEL_HTTP_CALL_SENDING,
    BEL_HTTP_CALL_ORPHANED,
};

/* The state of the query string. Ordered: the worst of its parameters counts. */
enum bel_http_query_state {
    BEL_HTTP_QUERY_NONE,
    BEL_HTTP_QUERY_READ,
    BEL_HTTP_QUERY_TWICE, /* contains a name twice */
    BEL_HTTP_QUERY_LOST,  /* out of memory */
};

struct bel_http_call {
    struct bel_request request;
    struct bel_link link, waiting; /* in the lists `calls` and `counting` of the server */
    struct bel_http *http;         /* NULL: the connection is closed */
    struct bel_backend *backend;   /* borrowed, as is the next */
    const struct bel_service *service;
    struct MHD_Connection *connection; /* NULL: closed */
    const struct bel_http_route *route;
    struct bel_http_capture captures[BEL_HTTP_CAPTURES_MAX];
    struct bel_grant grant; /* permissions of the API key */
    char *path;
    struct bel_buffer body;
    json_t *fields; /* of the query, or the body */
    json_t *kept;   /* copied texts that `words` point to */
    char *payload;  /* decoded from base64; `words` point to it */
    struct bel_view *words;
    void *pairs;                     /* memory for bel__bind() */
    struct bel_unsent_claims unsent; /* deliveries whose response is not sent */
    void *tokens;                    /* memory of `unsent`; may be NULL */
    size_t words_count, words_capacity;
    struct MHD_Response *response; /* not yet queued; owned */
    unsigned status;
    enum bel_http_call_state state;
    enum bel_http_query_state query;
    bool is_watched; /* while RUNNING: the socket is polled for a hangup of the client */
    bool is_last;    /* the connection is closed after the response */
    bool is_lost;    /* the response does not contain the deliveries */
};

/* Adds a parameter of the query string, still percent-encoded. Call it for each parameter before
 * bel__http_words(), which reports errors in the query. */
void bel__http_query(struct bel_http_call *call, const char *name, const char *value);

/* Builds the command of a call from its route, query and body. Returns 0, or BEL_EINVAL and sets
 * `*why`. */
BEL_CHECKED int bel__http_words(struct bel_http_call *call, struct bel_command *out,
                                struct bel_why *why);

/* Frees the memory allocated by bel__http_query() and bel__http_words(). */
void bel__http_words_finish(struct bel_http_call *call);

/* Converts a reply of the backend. */
struct bel_http_page bel__http_page(const struct bel_http_call *call,
                                    const struct bel_reply *reply);

/* Returns an error (RFC 9457) with the status of its code, or with `status` unless that is 0. */
struct bel_http_page bel__http_problem(const char *code, const char *text);
struct bel_http_page bel__http_problem_as(unsigned status, const char *code, const char *text);

/* Returns the OpenAPI description of all routes; NULL if out of memory. */
json_t *bel__http_openapi(void);

/* Parses JSON. Returns NULL on failure: out of memory if `*is_memory`, otherwise invalid JSON and
 * `*error` says where. */
json_t *bel__http_load(struct bel_view text, size_t flags, json_error_t *error, bool *is_memory);

/* Returns a value as NUL-terminated text that the caller frees; NULL if out of memory. Unlike
 * json_dumps() it never returns a text with a part missing. */
char *bel__http_dump(const json_t *value, size_t flags);

#endif
