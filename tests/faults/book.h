/* SPDX-License-Identifier: MIT */
#ifndef BEL_TESTS_FAULTS_BOOK_H
#define BEL_TESTS_FAULTS_BOOK_H

/*
 * book - what a client knows of its timers: what it has asked, and what was acknowledged.
 *
 *     line: "I am about to ask for ..."  ---> in doubt
 *     line: "I was told ..."             ---> known for good
 *
 * Timers have numbers, and their ids, topics and payloads follow from these. The book is kept by
 * the judge, who does not die; the victim sends it lines, each of them before or after the fact.
 * Lines are of one size, and a pipe takes one whole.
 *
 * What was asked in one turn is one batch: of what is in doubt, all has happened or nothing; and
 * all has if anything of it was acknowledged.
 */

#include "belfry/view.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    BOOK_TIMERS_MAX = 1 << 17,
    BOOK_TOPICS = 3,
    BOOK_PAYLOAD_BYTES_MAX = 20000,
    BOOK_TEXT_BYTES = 16, /* of an id */
};

enum line_kind {
    LINE_TURN, /* another turn begins: nothing is in doubt */
    LINE_ASK_SCHEDULE,
    LINE_ASK_END, /* an ack or a cancel */
    LINE_ASK_FAIL,
    LINE_SCHEDULED,
    LINE_ENDED,
    LINE_FAILED,
    LINE_REFUSED, /* nothing has changed */
    LINE_CHECKED, /* the judge's own: the store was as it must be; the line before each says how */
};

struct line {
    uint32_t number;
    uint16_t attempts; /* of LINE_FAILED and LINE_SCHEDULED */
    uint16_t kind;
};

struct book_entry {
    bool is_there, is_gone; /* neither: it was never acknowledged */
    uint8_t doubt;          /* 0 or LINE_ASK_... */
    bool is_seen;           /* by the check that is under way */
    uint16_t attempts, attempts_seen;
};

struct book {
    struct book_entry entries[BOOK_TIMERS_MAX];
    uint32_t end;        /* the numbers so far */
    bool is_turn_known;  /* something of the last turn was acknowledged */
    uint64_t told_count; /* acknowledgements */
};

/* It may be shared with the processes that are forked: then what they write in it is there,
 * whatever becomes of them. */
struct book *book_create(bool is_shared);
void book_copy(const struct book *from, struct book *to);
void book_destroy(struct book *book);

/* Takes note of a line. */
void book_take(struct book *book, const struct line *line);

/* What follows from a number. The text ends in 0; the payload is of at most
 * BOOK_PAYLOAD_BYTES_MAX bytes. */
const char *book_topic(uint32_t number);
struct bel_view book_id(uint32_t number, char out[BOOK_TEXT_BYTES]);
struct bel_view book_payload(uint32_t number, uint8_t *out);

/* The number of an id; false if it is none of ours. */
bool book_number(struct bel_view id, uint32_t *out);

#endif
