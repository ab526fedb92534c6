/* SPDX-License-Identifier: MIT */
#ifndef BEL_TESTS_FAULTS_BOOK_H
#define BEL_TESTS_FAULTS_BOOK_H

/*
 * book - a model of what a client knows about its timers: its requests and the acknowledgements.
 *
 *     line: "I am about to ask for ..."  ---> in doubt
 *     line: "I was told ..."             ---> known for good
 *
 * Timers have numbers, which determine their ids, topics and payloads. The book belongs to the
 * process that judges; the victim, which is killed, sends it a line before each request and after
 * each reply. Lines have a fixed size, so that a write to a pipe is atomic.
 *
 * The requests of one turn are one batch: of those in doubt, all have happened or none; and all
 * have happened if one of them was acknowledged.
 */

#include "belfry/view.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    BOOK_TIMERS_MAX = 1 << 17,
    BOOK_TOPICS = 3,
    BOOK_PAYLOAD_BYTES_MAX = 20000,
    BOOK_TEXT_BYTES = 16, /* longest id */
};

enum line_kind {
    LINE_TURN, /* another turn begins: nothing is in doubt */
    LINE_ASK_SCHEDULE,
    LINE_ASK_END, /* an ack or a cancel */
    LINE_ASK_FAIL,
    LINE_SCHEDULED,
    LINE_ENDED,
    LINE_FAILED,
    LINE_REFUSED, /* the request was refused and changed nothing */
    LINE_CHECKED, /* from the judge: the store was correct, as settled by the lines before */
};

struct line {
    uint32_t number;
    uint16_t attempts; /* of LINE_FAILED and LINE_SCHEDULED */
    uint16_t kind;
};

struct book_entry {
    bool is_there, is_gone; /* neither: it was never acknowledged */
    uint8_t doubt;          /* 0 or LINE_ASK_... */
    bool is_seen;           /* by the current check */
    uint16_t attempts, attempts_seen;
};

struct book {
    struct book_entry entries[BOOK_TIMERS_MAX];
    uint32_t end;        /* one above the largest number */
    bool is_turn_known;  /* something of the last turn was acknowledged */
    uint64_t told_count; /* acknowledgements */
};

/* Creates a book. If it is shared, it is in memory shared with forked processes: what they write
 * survives them. */
struct book *book_create(bool is_shared);
void book_copy(const struct book *from, struct book *to);
void book_destroy(struct book *book);

/* Applies a line. */
void book_take(struct book *book, const struct line *line);

/* Return the topic, id and payload of a number. The id ends with 0; the payload has at most
 * BOOK_PAYLOAD_BYTES_MAX bytes. */
const char *book_topic(uint32_t number);
struct bel_view book_id(uint32_t number, char out[BOOK_TEXT_BYTES]);
struct bel_view book_payload(uint32_t number, uint8_t *out);

/* Returns the number of an id in `*out`; false if the id is not from the book. */
bool book_number(struct bel_view id, uint32_t *out);

#endif
