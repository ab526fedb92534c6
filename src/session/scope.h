/* SPDX-License-Identifier: MIT */
#ifndef BEL_SESSION_SCOPE_H
#define BEL_SESSION_SCOPE_H

/*
 * scope - the topics that a key is for, if it is not for all of them.
 *
 *     @mail     the topic mail
 *     @mail.*   all topics whose names begin with "mail."
 *
 * A command is within a scope if every topic that it names is. One that is about all topics is not.
 * Tokens are proof enough: who has one was given it by a claim.
 */

#include "belfry/backend.h"

#include <stdbool.h>
#include <stddef.h>

enum {
    BEL_SCOPE_PATTERNS_MAX = 8,
};

struct bel_scope {
    size_t count;
    struct {
        char text[BEL_TOPIC_BYTES_MAX + 1]; /* without the star */
        size_t bytes;
        bool is_prefix;
    } patterns[BEL_SCOPE_PATTERNS_MAX];
};

/* What a key grants. */
struct bel_grant {
    unsigned permissions;          /* a set of 1 << enum bel_permission */
    const struct bel_scope *scope; /* NULL: all topics; lives as long as the keys */
};

/* Adds a pattern, without the @. False if it is none, or there are too many. */
BEL_CHECKED bool bel__scope_add(struct bel_scope *scope, struct bel_view pattern);

/* Whether a command is within a scope; all are within NULL. */
bool bel__scope_has(const struct bel_scope *scope, const struct bel_command *command);

#endif
