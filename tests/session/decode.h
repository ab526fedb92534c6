/* SPDX-License-Identifier: MIT */
#ifndef BEL_TESTS_DECODE_H
#define BEL_TESTS_DECODE_H

/*
 * decode - replies as a client reads them, for tests: each is a tree, and can be shown in one
 * line:
 *
 *     "text"   OK   42   nil   true   [1, "a"]   {"a": 1}   -ERR text
 */

#include "belfry/view.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum answer_kind {
    ANSWER_SIMPLE,
    ANSWER_ERROR,
    ANSWER_INTEGER,
    ANSWER_BULK,
    ANSWER_NIL,
    ANSWER_ARRAY,
    ANSWER_MAP,
    ANSWER_BOOLEAN,
};

struct answer {
    enum answer_kind kind;
    char mark;            /* the byte that it begins with */
    struct bel_view text; /* borrowed from the bytes that were decoded */
    int64_t number;
    struct answer *items; /* of an array; names and values of a map */
    size_t count;
};

/* Decodes one reply. Returns the bytes it has; 0 if some are missing. What is no reply fails the
 * test. */
size_t answer_decode(struct bel_view bytes, struct answer *out);
void answer_free(struct answer *answer);

/* The value of a field of a map, or of an array of names and values; NULL if there is none. */
const struct answer *answer_field(const struct answer *map, const char *name);

void answer_show(const struct answer *answer, FILE *out);

#endif
