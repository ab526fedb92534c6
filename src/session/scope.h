/* SPDX-License-Identifier: MIT */
#ifndef BEL_SESSION_SCOPE_H
#define BEL_SESSION_SCOPE_H

/*
 * scope - the topics that an API key is limited to.
 *
 *     @mail     the topic mail
 *     @mail.*   all topics whose names begin with "mail."
 *
 * A scope allows a command if it contains every topic that the command names. It allows no command
 * on all topics. Commands on a lease token are always allowed: the client got the token by a claim.
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

/* The permissions of an API key. */
struct bel_grant {
    unsigned permissions;          /* a set of 1 << enum bel_permission */
    const struct bel_scope *scope; /* NULL: all topics; lives as long as the server */
    uint64_t key_id;               /* identifies the key when the keys are read again */
};

/* Adds a pattern, without the @. Returns false if it is invalid or there are too many. */
BEL_CHECKED bool bel__scope_add(struct bel_scope *scope, struct bel_view pattern);

/* Returns whether a scope contains a topic; a NULL scope contains all. */
bool bel__scope_has_topic(const struct bel_scope *scope, struct bel_view topic);

/* Returns whether two scopes have the same patterns in the same order. */
bool bel__scope_equals(const struct bel_scope *scope, const struct bel_scope *other);

/* Gives a command on jobs the scope, by which the backend decides: only it knows the topics of a
 * job. Does nothing to other commands. */
void bel__scope_set(const struct bel_scope *scope, struct bel_command *command);

/* Returns whether the permissions of a grant allow a command that may need more than its entry in
 * the table says: LIMIT shows with `read`, and changes with `admin`. */
bool bel__grant_allows(const struct bel_grant *grant, const struct bel_command *command);

/* Returns whether a scope allows a command; a NULL scope allows all. */
bool bel__scope_has(const struct bel_scope *scope, const struct bel_command *command);

#endif
