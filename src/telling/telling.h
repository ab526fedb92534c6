/* SPDX-License-Identifier: MIT */
#ifndef BEL_TELLING_TELLING_H
#define BEL_TELLING_TELLING_H

/*
 * telling - the lines of EXPLAIN, the reason that the first of them tells, and the short texts that
 * are inserted into lines.
 *
 *     reason of a ready timer     line 1     The timer is ready, but the topic mail is paused: ...
 *     further reasons             then       The resource api is limited until ...
 */

#include "belfry/backend.h"
#include "belfry/duration.h"
#include "belfry/instant.h"

#include <stdint.h>

enum {
    BEL_TELLING_LINES = 40,
    BEL_TELLING_BYTES = 700, /* of a line */
    BEL_SAID_BYTES = 128,    /* text from users in one line, at most */
};

enum bel_telling_subject {
    BEL_TELLING_TIMER,
    BEL_TELLING_PLAN,
    BEL_TELLING_TASK,
};

struct bel_telling {
    const struct bel_timer *timer;
    enum bel_telling_subject subject;
    struct bel_wall now;
    /* Copies a text into the memory of the reply; a text without data: memory has run out. */
    struct bel_view (*copy)(void *memory, struct bel_view text);
    void *memory;
    struct bel_view *lines; /* room for BEL_TELLING_LINES */
    size_t count;
    struct bel_reason reason; /* word NULL: not told yet */
    int err;                  /* the first error; no line is added after it */
};

/* Short texts that are inserted into lines. */
struct bel_said_time {
    char text[BEL_INSTANT_BYTES];
};

struct bel_said_span {
    char text[BEL_DURATION_BYTES];
};

struct bel_said {
    char text[BEL_SAID_BYTES + 4];
};

/* Return a time; a duration, from a minute on rounded to seconds; text from a user without control
 * characters, shortened; the ending of a plural. */
struct bel_said_time bel__when(int64_t ms);
struct bel_said_span bel__lasting(uint64_t ms);
struct bel_said bel__said(struct bel_view view);
const char *bel__plural(uint64_t count);

/* Returns what EXPLAIN is about, as the first word of a sentence or inside one: "The timer", "the
 * task", "The plan". */
const char *bel__subject(const struct bel_telling *telling, bool is_first);

static inline uint64_t bel__distance(uint64_t from, uint64_t to)
{
    return to > from ? to - from : 0;
}

/* Adds a line. */
void bel__say(struct bel_telling *telling, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Sets the reason, which the caller tells in the first line. Copies `by`. */
void bel__give_reason(struct bel_telling *telling, const struct bel_reason *reason);

/* Adds a line for one reason why a timer does not start: a clause with a small first letter. The
 * first one of a ready timer is the reason of the reply, and begins with the state. */
void bel__hold(struct bel_telling *telling, const struct bel_reason *reason, const char *clause,
               ...) __attribute__((format(printf, 3, 4)));

#endif
