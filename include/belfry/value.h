/* SPDX-License-Identifier: MIT */
#ifndef BEL_VALUE_H
#define BEL_VALUE_H

/*
 * value - a reply in RESP as a tree of values.
 */

#include "belfry/declare.h"
#include "belfry/view.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

BEL_BEGIN_DECLARATIONS

enum bel_value_type {
    BEL_VALUE_NIL,
    BEL_VALUE_STATUS,  /* text, e.g. OK */
    BEL_VALUE_ERROR,   /* text: code and message, see bel_value_code() */
    BEL_VALUE_NUMBER,  /* number */
    BEL_VALUE_BOOLEAN, /* number: 0 or 1 */
    BEL_VALUE_DECIMAL, /* text: a number with a fraction, or too large for 64 bits */
    BEL_VALUE_TEXT,    /* text: any bytes */
    BEL_VALUE_LIST,    /* items */
    BEL_VALUE_MAP,     /* items: name, value, name, value ...; with RESP2 the type is LIST */
};

/* A reply or a part of one. Fields that its type does not use are 0. */
struct bel_value {
    enum bel_value_type type;
    int64_t number;
    struct bel_view text;
    const struct bel_value *items;
    size_t count; /* number of items */
};

/* Return the code ("NOTFOUND") and the message ("no such timer") of an error reply. If an
 * error has no code, its code is empty. */
struct bel_view bel_value_code(const struct bel_value *error);
struct bel_view bel_value_message(const struct bel_value *error);

/* Finds the value for a name in a map, or in a list of names and values. Returns NULL if it has no
 * such name. */
const struct bel_value *bel_value_find(const struct bel_value *map, const char *name);

/* Returns whether a text or status equals `text`. */
bool bel_value_is(const struct bel_value *value, const char *text);

BEL_END_DECLARATIONS
#endif
