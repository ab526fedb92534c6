/* SPDX-License-Identifier: MIT */
#ifndef BEL_CORE_JSON_READER_H
#define BEL_CORE_JSON_READER_H

/*
 * json_reader - a pull parser of JSON (RFC 8259) that can stop at any byte and continue later.
 *
 *     struct bel_json_reader reader;
 *     bel__json_reader_init(&reader, text, depth_max);
 *     while ((err = bel__json_next(&reader, &work, &token)) == 0 && token.kind != BEL_JSON_END) ...
 *
 * The whole text is in memory; a token is a view into it. What a call may read is limited by
 * `work`, of which it subtracts one per byte. No recursion and no memory: a level takes one bit.
 *
 *     {"a": [1, "x"]}    BEGIN_OBJECT NAME BEGIN_ARRAY NUMBER STRING END_ARRAY END_OBJECT END
 *
 * The reader checks the whole grammar, UTF-8 and surrogate pairs. A name that occurs twice in an
 * object is not noticed: the caller knows its names.
 */

#include "belfry/error.h"
#include "belfry/view.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    BEL_JSON_READER_DEPTH_MAX = 512,
    BEL_JSON_READER_MORE = 1, /* call bel__json_next() again */
};

enum bel_json_token_kind {
    BEL_JSON_BEGIN_OBJECT,
    BEL_JSON_END_OBJECT,
    BEL_JSON_BEGIN_ARRAY,
    BEL_JSON_END_ARRAY,
    BEL_JSON_NAME,
    BEL_JSON_STRING,
    BEL_JSON_NUMBER,
    BEL_JSON_TRUE,
    BEL_JSON_FALSE,
    BEL_JSON_NULL,
    BEL_JSON_END, /* of the text */
};

struct bel_json_token {
    enum bel_json_token_kind kind;
    struct bel_view raw;  /* as in the text; of a NAME or STRING without the quotes */
    size_t decoded_bytes; /* of a NAME or STRING: length without escapes */
};

/* The fields are private, except where noted. */
struct bel_json_reader {
    const unsigned char *text;
    size_t bytes;
    size_t at;          /* public: position of the next byte; after an error, of the wrong one */
    uint32_t depth;     /* public: open arrays and objects */
    const char *wanted; /* public, after an error: a phrase, "a value" */
    uint32_t depth_max;
    uint8_t expects;
    bool is_in_string;
    uint32_t line;     /* public: number of the line of `at`, from 0 */
    size_t line_start; /* public: position of its first byte */
    size_t start;      /* of the string that is being read */
    size_t escaped;    /* bytes of the string that decoding will save */
    uint64_t objects[BEL_JSON_READER_DEPTH_MAX / 64]; /* bit set: the level is an object */
};

/* Starts to read a text. `depth_max` is at most BEL_JSON_READER_DEPTH_MAX. */
void bel__json_reader_init(struct bel_json_reader *reader, struct bel_view text,
                           uint32_t depth_max);

/* Reads the next token. Returns 0 and sets `*out`; BEL_JSON_READER_MORE if `*work` is used up;
 * BEL_EINVAL if the text is not JSON; or BEL_EFULL if it is nested too deeply. After an error the
 * reader must not be used. */
BEL_CHECKED int bel__json_next(struct bel_json_reader *reader, uint32_t *work,
                               struct bel_json_token *out);

/* A copy that is under way: see bel__json_copy(). */
struct bel_json_copy {
    const unsigned char *from, *end;
    unsigned char *to;
    bool is_string;    /* decode escapes; otherwise leave out space between tokens */
    bool is_in_string; /* private */
};

/* Continues to copy from `from` to `to`: the raw text of a string, decoded, or a JSON value without
 * insignificant space. The source must have been read without an error, and `to` must have room for
 * all. Returns whether the copy is complete. Subtracts one from `*work` per byte. */
bool bel__json_copy(struct bel_json_copy *copy, uint32_t *work);

#endif
