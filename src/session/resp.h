/* SPDX-License-Identifier: MIT */
#ifndef BEL_SESSION_RESP_H
#define BEL_SESSION_RESP_H

/*
 * resp - the server's side of the Redis protocol: a request parser and a reply writer.
 *
 * A request is an array of bulk strings, or a line of words (an inline command):
 *
 *     *2\r\n$3\r\nGET\r\n$4\r\nmail\r\n
 *     GET mail "an id"\r\n
 *
 * The caller passes all buffered bytes, old and new, until the parser returns a request:
 *
 *     switch (bel__resp_parse(&parser, bel__buffer_data(&in), in.count, &used)) {
 *     case BEL_RESP_REQUEST: ... bel__resp_argument(&parser, bel__buffer_data(&in), 0) ...
 *     }
 *     bel__buffer_consume(&in, used);
 *
 * The parser continues at its last position, so its work is linear in the number of bytes, however
 * they are split. It allocates memory for received arguments, never for announced ones.
 */

#include "belfry/view.h"
#include "core/buffer.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    BEL_RESP_SLOTS = 12,                 /* arguments without allocation */
    BEL_RESP_ERROR_BYTES_MAX = 512,      /* longer error texts are cut */
    BEL_RESP_INLINE_BYTES_MAX = 1 << 16, /* maximum size of an inline command */
    BEL_RESP_HEAD_BYTES = 16,            /* of a request that was skipped */
};

enum bel_resp_event {
    BEL_RESP_MORE,    /* the request is incomplete */
    BEL_RESP_REQUEST, /* complete; `count` arguments, 0 if the line or the array is empty */
    BEL_RESP_REFUSED, /* the request exceeded a limit and was skipped: reply with `why`, continue */
    BEL_RESP_BROKEN,  /* the start of the next request is unknown: reply with `why`, then close */
};

struct bel_resp_limits {
    size_t arguments_max;
    size_t argument_bytes_max;
    size_t request_bytes_max; /* the most that the caller has to buffer */
    bool is_lenient;          /* skip a request that exceeds a limit; otherwise it is BROKEN */
};

struct bel_resp_slot {
    size_t start, bytes; /* from the start of the request */
};

struct bel_resp_parser {
    struct bel_resp_limits limits;  /* may be changed between requests */
    size_t count;                   /* read only: arguments of the request */
    const char *why;                /* read only: the reason for REFUSED and BROKEN */
    char head[BEL_RESP_HEAD_BYTES]; /* read only: the first two arguments of a request that is too
                                       large, "JOB SUBMIT"; empty if they are longer */
    int state;                      /* private, as is the rest */
    bool is_over;
    size_t position, argument_bytes;
    uint64_t arguments_left;
    size_t slots_capacity;
    struct bel_resp_slot *slots; /* NULL: few */
    struct bel_resp_slot few[BEL_RESP_SLOTS];
};

void bel__resp_init(struct bel_resp_parser *parser, const struct bel_resp_limits *limits);
void bel__resp_finish(struct bel_resp_parser *parser);

/* Parses `data`, which contains all received bytes from the start of a request. May write to
 * `data`: words of a line are unescaped in place. Sets `*out_used` to the number of bytes to remove
 * after the arguments have been used. It may be greater than 0 even for BEL_RESP_MORE, while a
 * request is skipped. */
enum bel_resp_event bel__resp_parse(struct bel_resp_parser *parser, void *data, size_t bytes,
                                    size_t *out_used);

/* Returns how many bytes, at least, an incomplete request lacks of the argument that it has
 * announced; `bytes` as for bel__resp_parse(). */
size_t bel__resp_missing(const struct bel_resp_parser *parser, size_t bytes);

/* Returns an argument of the request that was just parsed. */
static inline struct bel_view bel__resp_argument(const struct bel_resp_parser *parser,
                                                 const void *data, size_t index)
{
    assert(data != NULL && index < parser->count);
    const struct bel_resp_slot *slots = parser->slots != NULL ? parser->slots : parser->few;
    return (struct bel_view){(const char *)data + slots[index].start, slots[index].bytes};
}

/*
 * The writer. The first error is kept in `err`, and later writes do nothing, so a caller checks for
 * errors once, at the end of a reply. Version 2 has no maps, booleans and doubles: they become
 * arrays of names and values, integers 0 and 1, and strings.
 */
struct bel_resp_writer {
    struct bel_buffer *out; /* borrowed */
    int version;            /* 2 or 3 */
    int err;                /* 0, BEL_EFULL or BEL_ENOMEM */
    const char *code;       /* of the last error reply; NULL: none */
};

void bel__resp_simple(struct bel_resp_writer *writer, const char *text);

/* Writes "-CODE text". Control characters are replaced by spaces. */
void bel__resp_error(struct bel_resp_writer *writer, const char *code, const char *text);
void bel__resp_integer(struct bel_resp_writer *writer, int64_t number);
void bel__resp_count(struct bel_resp_writer *writer, uint64_t number); /* at most 2^63 - 1 */
void bel__resp_bulk(struct bel_resp_writer *writer, struct bel_view bytes);
void bel__resp_text(struct bel_resp_writer *writer, const char *text); /* as a bulk string */
void bel__resp_null(struct bel_resp_writer *writer);
void bel__resp_null_array(struct bel_resp_writer *writer);
void bel__resp_array(struct bel_resp_writer *writer, size_t count);
void bel__resp_map(struct bel_resp_writer *writer, size_t pairs);
void bel__resp_boolean(struct bel_resp_writer *writer, bool is_true);

#endif
