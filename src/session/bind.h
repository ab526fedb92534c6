/* SPDX-License-Identifier: MIT */
#ifndef BEL_SESSION_BIND_H
#define BEL_SESSION_BIND_H

/*
 * bind - from words to what they mean, by the table of commands.
 *
 *     SCHEDULE mail hello IN 5s ID a      the words of a request
 *         -> values: topic, payload, IN = 5000, ID = a       bel__bind(), by the table
 *         -> struct bel_command                              bel__build(), for a backend's verb
 *
 * Options may come in any order and case, each once unless the table says otherwise. What is not
 * right is refused with a text that says what to do.
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

/* All zeros unless it is there. */
struct bel_bound_value {
    struct bel_view text;
    union {
        uint64_t number;      /* of a number, a duration in ms; the place of a word or a state */
        struct bel_wall time; /* of a time */
    };
};

struct bel_bound {
    const struct bel_command_entry *entry;
    uint32_t there; /* a set of 1 << place: the values there are */
    struct bel_bound_value values[BEL_ARGUMENTS_MAX]; /* by their places in the table */
    const struct bel_view *repeated;                  /* of the last position, if it can be: all */
    size_t repeated_count;
    struct bel_header *pairs; /* of the option that has pairs */
    size_t pairs_count;
};
static_assert(BEL_ARGUMENTS_MAX <= 32, "a set has room for all");

/* Takes the first place out of a set that is not empty. */
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

/* The words of a request, the first one its name; and room for half as many pairs. Both live as
 * long as what is made of them. */
struct bel_words {
    const struct bel_view *items;
    size_t count;
    void *pairs;             /* for headers or settings */
    struct bel_zones *zones; /* for times; may be NULL */
};

/* Binds the words of a command. Returns 0 and sets all of `*out`; or BEL_EINVAL, and says why. */
BEL_CHECKED int bel__bind(const struct bel_command_entry *entry, const struct bel_words *words,
                          struct bel_bound *out, struct bel_why *why);

/* Whether it is a verb of the backend, and which. */
bool bel__build_has(const struct bel_command_entry *entry, enum bel_verb *out);

/* Makes a command of a verb. Returns 0 and sets `*out`; or BEL_EINVAL, and says why. */
BEL_CHECKED int bel__build(const struct bel_bound *bound, struct bel_command *out,
                           struct bel_why *why);

#endif
