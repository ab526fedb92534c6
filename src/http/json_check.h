/* SPDX-License-Identifier: MIT */
#ifndef BEL_HTTP_JSON_CHECK_H
#define BEL_HTTP_JSON_CHECK_H

/*
 * json_check - decides whether bytes are one JSON value (RFC 8259), a part at a time, without
 * memory and without recursion. The bytes must be UTF-8, which the caller checks.
 *
 *     struct bel_json_check check = {0};
 *     while (... && bel__json_check_take(&check, part)) { ... }
 *     is_json = bel__json_check_end(&check);
 *
 * Arrays and objects may be BEL_JSON_DEPTH_MAX deep. A \u escape of half a surrogate pair is an
 * error, because many readers reject it. A name that occurs twice in an object is not noticed.
 */

#include "belfry/view.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    BEL_JSON_DEPTH_MAX = 2048,
};

/* Starts as all zero. */
struct bel_json_check {
    uint8_t state;                           /* private, as are all */
    uint8_t after;                           /* the state after the string */
    uint8_t digits;                          /* of a \u escape so far */
    uint16_t code;                           /* of a \u escape so far */
    uint16_t depth;                          /* open arrays and objects */
    const char *literal;                     /* the rest of true, false or null */
    uint8_t objects[BEL_JSON_DEPTH_MAX / 8]; /* bit set: the level is an object */
};

/* Checks the next bytes. Returns false if no JSON value begins like this. */
bool bel__json_check_take(struct bel_json_check *check, struct bel_view part);

/* Returns whether the bytes so far are a complete JSON value. */
bool bel__json_check_end(const struct bel_json_check *check);

#endif
