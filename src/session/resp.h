/* SPDX-License-Identifier: MIT */
#ifndef BEL_SESSION_RESP_H
#define BEL_SESSION_RESP_H

/*
 * resp - the language of Redis clients, as a server hears and speaks it.
 *
 * A request is an array of bulk strings, or a line of words as people type it:
 *
 *     *2\r\n$3\r\nGET\r\n$4\r\nmail\r\n
 *     GET mail "an id"\r\n
 *
 * The parser is given the same bytes again, and more of them, until there is a request:
 *
 *     switch (bel__resp_parse(&parser, bel__buffer_data(&in), in.count, &used)) {
 *     case BEL_RESP_REQUEST: ... bel__resp_argument(&parser, bel__buffer_data(&in), 0) ...
 *     }
 *     bel__buffer_consume(&in, used);
 *
 * It goes on where it was, so that the work is linear in the bytes however they are split, and
 * takes memory for what has come, never for what was announced.
 */

#include "belfry/view.h"
#include "core/buffer.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    BEL_RESP_SLOTS = 12,                 /* arguments that need no memory of their own */
    BEL_RESP_ERROR_BYTES_MAX = 512,      /* of an error that is written; the rest is cut off */
    BEL_RESP_INLINE_BYTES_MAX = 1 << 16, /* of a line */
};

enum bel_resp_event {
    BEL_RESP_MORE,    /* bytes are missing */
    BEL_RESP_REQUEST, /* complete; `count` arguments, none if the line or the array was empty */
    BEL_RESP_REFUSED, /* it was larger than allowed and has been passed over: say so, and go on */
    BEL_RESP_BROKEN,  /* nobody knows where the next begins: say `why`, and close */
};

/* A request that goes over is passed over if `is_lenient`, else it breaks the connection. */
struct bel_resp_limits {
    size_t arguments_max;
    size_t argument_bytes_max;
    size_t request_bytes_max; /* the most that has to be kept for the parser */
    bool is_lenient;
};

struct bel_resp_slot {
    size_t start, bytes; /* from the start of the request */
};

struct bel_resp_parser {
    struct bel_resp_limits limits; /* may be changed between requests */
    size_t count;                  /* read only: arguments of the request */
    const char *why;               /* read only: if it was refused or is broken */
    int state;                     /* private, as is the rest */
    bool is_over;
    size_t position, argument_bytes;
    uint64_t arguments_left;
    size_t slots_capacity;
    struct bel_resp_slot *slots; /* NULL: few */
    struct bel_resp_slot few[BEL_RESP_SLOTS];
};

void bel__resp_init(struct bel_resp_parser *parser, const struct bel_resp_limits *limits);
void bel__resp_finish(struct bel_resp_parser *parser);

/* Looks at all bytes that there are from the start of a request, and may write to them: words of a
 * line are unescaped in place. `*out_used` is set to how many of them are to be dropped, once the
 * arguments have been used; that may be some although more are missing. */
enum bel_resp_event bel__resp_parse(struct bel_resp_parser *parser, void *data, size_t bytes,
                                    size_t *out_used);

/* An argument of the request that was just parsed. */
static inline struct bel_view bel__resp_argument(const struct bel_resp_parser *parser,
                                                 const void *data, size_t index)
{
    assert(data != NULL && index < parser->count);
    const struct bel_resp_slot *slots = parser->slots != NULL ? parser->slots : parser->few;
    return (struct bel_view){(const char *)data + slots[index].start, slots[index].bytes};
}

/*
 * Writing. The first error sticks, and nothing is written after it; so that a reply of many parts
 * is looked at once. Version 2 has no maps, booleans and doubles: they become arrays of names and
 * values, 0 and 1, and strings.
 */
struct bel_resp_writer {
    struct bel_buffer *out; /* borrowed */
    int version;            /* 2 or 3 */
    int err;                /* 0, BEL_EFULL or BEL_ENOMEM */
};

void bel__resp_simple(struct bel_resp_writer *writer, const char *text);

/* "-CODE text". What would end the line or is no text is replaced. */
void bel__resp_error(struct bel_resp_writer *writer, const char *code, const char *text);
void bel__resp_integer(struct bel_resp_writer *writer, int64_t number);
void bel__resp_count(struct bel_resp_writer *writer, uint64_t number); /* up to 2^63 - 1 */
void bel__resp_bulk(struct bel_resp_writer *writer, struct bel_view bytes);
void bel__resp_text(struct bel_resp_writer *writer, const char *text); /* as bulk */
void bel__resp_null(struct bel_resp_writer *writer);
void bel__resp_null_array(struct bel_resp_writer *writer);
void bel__resp_array(struct bel_resp_writer *writer, size_t count);
void bel__resp_map(struct bel_resp_writer *writer, size_t pairs);
void bel__resp_boolean(struct bel_resp_writer *writer, bool is_true);
void bel__resp_double(struct bel_resp_writer *writer, double number);

#endif
