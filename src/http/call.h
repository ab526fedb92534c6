/* SPDX-License-Identifier: MIT */
#ifndef BEL_HTTP_CALL_H
#define BEL_HTTP_CALL_H

/*
 * http_call - one HTTP request, from its complete head to the last byte of its response. Private to
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
#include "http/head.h"
#include "http/http.h"
#include "http/page.h"
#include "session/bind.h"
#include "session/unsent_claims.h"

#include <jansson.h>

enum {
    BEL_HTTP_CAPTURES_MAX = 2,
    BEL_HTTP_FIELD_BYTES = 32,
    BEL_HTTP_SHOWN_BYTES = 80, /* of a text of the client in an error */
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
    const char *flag;               /* an option that the route gives to the command; NULL: none */
    bool is_create;                 /* replies with 201 and a Location header */
    const char *name, *tag;         /* operationId and tag in the description */
    const char *example;            /* a body, with ' instead of "; NULL: none */
};

extern const struct bel_http_route bel__http_routes[];
extern const size_t bel__http_routes_count;

/* Returns whether a route takes an argument of its command: several routes share LIMIT. */
bool bel__http_takes(const struct bel_http_route *route, const struct bel_argument *argument);

/* Returns whether a route replies with a page of a list. */
bool bel__http_is_page(const struct bel_http_route *route);

/* Writes the name of the JSON field or query parameter that sets an argument: COUNT is `limit` for
 * a page. */
void bel__http_field_name(const struct bel_http_route *route, const struct bel_argument *argument,
                          char out[BEL_HTTP_FIELD_BYTES]);

/* Writes a message with the names of options replaced by those of the fields that a client sends;
 * at most `room` bytes with the final 0. */
void bel__http_name_fields(const struct bel_http_route *route, const char *message, char *out,
                           size_t room);

/* A segment of the path that matched a {name} of the route, decoded. */
struct bel_http_capture {
    const char *name; /* points into the route's path and ends with '}', not with NUL */
    struct bel_view text;
};

/* Finds the route of a request and decodes its captures, which point into `path`. Returns NULL if
 * there is none; then `allow` lists the methods that the path supports, or is empty. A capture that
 * cannot be decoded stays encoded.
 *
 * With an empty id, /v1/topics/{topic}/timers is the path of the timer with this id, which a topic
 * of the layout faststream may have. */
const struct bel_http_route *
bel__http_route(struct bel_view method, char *path, bool has_empty_id,
                struct bel_http_capture captures[BEL_HTTP_CAPTURES_MAX],
                char allow[BEL_HTTP_ALLOW_BYTES]);

/* What all calls of a server share. */
struct bel_http_site {
    struct bel_http_options options;
    struct bel_list counting;  /* calls that wait for a census */
    struct bel_buffer openapi; /* the description; made when it is first requested */
    bool is_draining;
    bool is_stopping; /* requests that have not begun are withdrawn */
};

/*
 * The lifecycle of a call:
 *
 *     RECEIVING --.-- head refused, or served at once ----> ANSWERED --> freed
 *                 |-- request submitted --> RUNNING --reply----^
 *                 '-- census started -----> COUNTING --counts--'
 *
 * A closed connection ends its call. A RUNNING call becomes ORPHANED until the backend has replied.
 */
enum bel_http_call_state {
    BEL_HTTP_CALL_RECEIVING,
    BEL_HTTP_CALL_RUNNING,
    BEL_HTTP_CALL_COUNTING,
    BEL_HTTP_CALL_ANSWERED,
    BEL_HTTP_CALL_ORPHANED,
};

/* The state of the query string. Ordered: the worst of its parameters counts. */
enum bel_http_query_state {
    BEL_HTTP_QUERY_NONE,
    BEL_HTTP_QUERY_READ,
    BEL_HTTP_QUERY_TWICE, /* contains a name twice */
    BEL_HTTP_QUERY_MANY,  /* has too many parameters */
    BEL_HTTP_QUERY_WRONG, /* has a % without two digits, or a name that is not UTF-8 */
    BEL_HTTP_QUERY_LOST,  /* out of memory */
};

/* Who gets the response. `answered` is called within a turn and must only set a flag. */
struct bel_http_caller {
    void (*answered)(void *context);
    void *context;
    unsigned *keys_wrong; /* counts wrong keys of the connection */
    const char *address;  /* of the client, for people */
};

struct bel_http_call {
    struct bel_request request;
    struct bel_link waiting;    /* in the list `counting` of the site */
    struct bel_http_site *site; /* NULL: ORPHANED; the server may be gone */
    struct bel_http_caller caller;
    struct bel_backend *backend; /* borrowed, as is the next */
    const struct bel_service *service;
    const struct bel_http_route *route;
    struct bel_http_capture captures[BEL_HTTP_CAPTURES_MAX];
    struct bel_grant grant; /* permissions of the API key */
    char *texts;            /* owned: the path, and the Idempotency-Key */
    struct bel_buffer body;
    json_t *fields; /* of the query, or the body */
    json_t *kept;   /* copied texts that `words` point to */
    char *payload;  /* decoded from base64; `words` point to it */
    struct bel_view *words;
    void *pairs;                     /* memory for bel__bind() */
    struct bel_unsent_claims unsent; /* deliveries whose response is not sent */
    void *tokens;                    /* memory of `unsent`; may be NULL */
    size_t owed_bytes;               /* reserved for the answer while RUNNING; 0: it is short */
    size_t words_count, words_capacity;
    size_t values_count;       /* of the positional arguments: never options */
    struct bel_http_page page; /* the answer, once ANSWERED; until the connection takes it */
    uint64_t turns;            /* the number of turns when the request was submitted */
    enum bel_http_call_state state;
    enum bel_http_query_state query;
    char culprit[BEL_HTTP_SHOWN_BYTES]; /* the parameter with which the query is TWICE or WRONG */
    bool is_known;                      /* the request has a right key, or the server has no keys */
    bool is_last;                       /* the connection must be closed after the response */
    bool is_lost;                       /* the response does not contain the deliveries */
    bool is_delayed; /* the response must be sent a second late: the client is guessing keys */
};

/* Creates a call; NULL if out of memory. `site` and `caller` are borrowed. */
struct bel_http_call *bel__http_call_create(struct bel_http_site *site,
                                            const struct bel_http_caller *caller);

/* Checks the head of a request. Returns true if the body may be received. Otherwise the call is
 * ANSWERED, and the body, if any, must not be read. */
bool bel__http_call_admit(struct bel_http_call *call, const struct bel_http_head *head);

/* Returns the code of an error for a body that is too large: FULL for a job, as over RESP. */
const char *bel__http_call_large_code(const struct bel_http_call *call);

/* Returns whether a request that was admitted must wait because of the answers of all connections:
 * its answer may be long, and there is no room, or others wait already. */
bool bel__http_call_must_wait(const struct bel_http_call *call, bool do_others);

/* Returns the memory of the answer, or what is reserved for it. */
size_t bel__http_call_output_bytes(const struct bel_http_call *call);

/* Executes a completely received request. */
void bel__http_call_begin(struct bel_http_call *call);

/* Returns whether a request was submitted and no turn was taken since. */
bool bel__http_call_is_fresh(const struct bel_http_call *call);

/* Withdraws a claim that waits, because its client has hung up. Returns false if the call goes on:
 * it is no waiting claim, or was not in a turn yet, or is being answered. */
bool bel__http_call_hang_up(struct bel_http_call *call);

/* Ends a call: its response was sent, or its connection is closed. Deliveries that were not sent
 * are released. The call is freed, now or when the backend has replied. */
void bel__http_call_end(struct bel_http_call *call, bool is_sent);

/* Answers the calls that wait for a census, if it is complete. */
void bel__http_end_census(struct bel_http_site *site);

/* Adds the parameters of a query string to a call. Errors are reported by bel__http_words(). */
void bel__http_query(struct bel_http_call *call, struct bel_view query);

/* Builds the command of a call from its route, query and body. Returns 0, or BEL_EINVAL and sets
 * `*why`. */
BEL_CHECKED int bel__http_words(struct bel_http_call *call, struct bel_command *out,
                                struct bel_why *why);

/* Frees the memory allocated by bel__http_query() and bel__http_words(). */
void bel__http_words_finish(struct bel_http_call *call);

/* Returns the OpenAPI description of all routes; NULL if out of memory. */
json_t *bel__http_openapi(void);

/* Returns a value as NUL-terminated text that the caller frees; NULL if out of memory. Unlike
 * json_dumps() it never returns a text with a part missing. */
char *bel__http_dump(const json_t *value, size_t flags);

#endif
