/* SPDX-License-Identifier: MIT */
#ifndef BEL_TESTS_SPOKEN_H
#define BEL_TESTS_SPOKEN_H

/*
 * spoken - commands as a client says them, and replies as it understands them.
 */

#include "belfry/backend.h"
#include "core/buffer.h"
#include "decode.h"

enum {
    SPOKEN_PIECES_MAX = 4096,
};

/* Appends a command as an array of strings. */
void spoken_command(const struct bel_command *command, struct bel_buffer *out);

/* A reply whose texts are those of the answer. */
struct spoken_reply {
    struct bel_reply reply;
    void *pieces[SPOKEN_PIECES_MAX]; /* private */
    size_t pieces_count;
};

void spoken_answer(enum bel_verb verb, const struct answer *answer, struct spoken_reply *out);
void spoken_free(struct spoken_reply *reply);

#endif
