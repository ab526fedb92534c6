/* SPDX-License-Identifier: MIT */
#ifndef BEL_HTTP_PAGE_H
#define BEL_HTTP_PAGE_H

/*
 * page - a complete answer: status, a few headers, and a body that is made in slices. Private to
 * src/http.
 */

#include "belfry/backend.h"
#include "commands/commands.h"
#include "http/json_stream.h"

#include <stdbool.h>

enum {
    BEL_HTTP_ALLOW_BYTES = 64,
    BEL_HTTP_LOCATION_BYTES = 3 * (BEL_TOPIC_BYTES_MAX + BEL_ID_BYTES) + 32,
};

struct bel_http_page {
    unsigned status;
    const char *type;            /* of the content; NULL: no body */
    struct bel_json_stream body; /* owned */
    bool is_problem;             /* an error, application/problem+json */
    const char *code;            /* of a problem: "BADARG" and so on; NULL otherwise */
    bool is_lost; /* out of memory: the connection is closed without a response, and the client must
                     assume that the command may have been executed */
    char allow[BEL_HTTP_ALLOW_BYTES];       /* the header Allow; empty: none */
    char location[BEL_HTTP_LOCATION_BYTES]; /* the header Location; empty: none */
};

/* A request and what is needed of it to answer. */
struct bel_http_question {
    const struct bel_command *command;
    struct bel_view topic; /* of a timer that is created, for Location */
    bool is_create;
};

/* Converts a reply of the backend. The page does not point into the reply. */
struct bel_http_page bel__http_page(const struct bel_http_question *question,
                                    const struct bel_reply *reply);

/* Returns a page with this text, copied. */
struct bel_http_page bel__http_page_of_text(unsigned status, const char *type,
                                            struct bel_view text);

/* Returns an error (RFC 9457) with the status of its code, or with `status` unless that is 0. */
struct bel_http_page bel__http_problem(const char *code, const char *text);
struct bel_http_page bel__http_problem_as(unsigned status, const char *code, const char *text);

/* Frees the body. */
void bel__http_page_finish(struct bel_http_page *page);

#endif
