/* SPDX-License-Identifier: MIT */
#ifndef BEL_SESSION_BIND_H
#define BEL_SESSION_BIND_H

/*
 * bind - parses the words of a request into typed values, then into a command of the backend.
 *
 *     SCHEDULE mail hello IN 5s ID a      the words of a request
 *         -> values: topic, payload, IN = 5000, ID = a       bel__bind(), by the table
 *         -> struct bel_command                              bel__build(), for a backend's verb
 *
 * Options may come in any order and case, each once unless the table allows repetition. A wrong
 * request is refused with a message that says what to do.
 */

#include "belfry/backend.h"
#include "belfry/zone.h"
#include "commands/arguments.h"
#include "commands/commands.h"
#include "core/why.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Sets why a request is refused: a code of the protocol and a message. Returns BEL_EINVAL. */
BEL_CHECKED int bel__refusal(struct bel_why *why, const char *code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The value of an argument; all zeros if the request does not have the argument. */
struct bel_bound_value {
    struct bel_view text;
    union {
        uint64_t number;      /* a number; a duration in ms; the index of a word or a state */
        struct bel_wall time; /* a time */
    };
};

struct bel_bound {
    const struct bel_command_entry *entry;
    uint32_t there; /* the arguments that the request has: a set of 1 << place */
    struct bel_bound_value values[BEL_ARGUMENTS_MAX]; /* by place: the index in the table */
    const struct bel_view *repeated;                  /* all words of a repeated positional */
    size_t repeated_count;
    struct bel_header *pairs; /* of an option that takes a name and a value */
    size_t pairs_count;
};
static_assert(BEL_ARGUMENTS_MAX <= 32, "a set has one bit per argument");

/* Removes and returns the smallest place of a set, which must not be empty. */
static inline size_t bel__place_take(uint32_t *set)
{
    size_t place = (size_t)__builtin_ctz(*set);
    *set &= *set - 1;
    return place;
}

static inline bool bel__bound_has(const struct bel_bound *bound, size_t place)
{
    return (bound->there >> place & 1) != 0;
}

/* The words of a request. The first is the name of the command. The bound values and the command
 * point into `items` and `pairs`. */
struct bel_words {
    const struct bel_view *items;
    size_t count;
    void *pairs;             /* memory for count / 2 headers or settings */
    struct bel_zones *zones; /* for times; may be NULL */
    size_t values_count; /* words after the name that are values, even if named like an option */
};

/* Parses the words of a command. Returns 0 and sets `*out`, or BEL_EINVAL and sets `*why`. */
BEL_CHECKED int bel__bind(const struct bel_command_entry *entry, const struct bel_words *words,
                          struct bel_bound *out, struct bel_why *why);

/* Returns whether a command is executed by the backend, and sets `*out` to its verb. */
bool bel__build_has(const struct bel_command_entry *entry, enum bel_verb *out);

/* Builds the command of a verb. Returns 0 and sets `*out`, or BEL_EINVAL and sets `*why`. */
BEL_CHECKED int bel__build(const struct bel_bound *bound, struct bel_command *out,
                           struct bel_why *why);

#endif
