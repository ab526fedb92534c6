/* SPDX-License-Identifier: MIT */
#ifndef BEL_TESTS_FAULTS_DIGEST_H
#define BEL_TESTS_FAULTS_DIGEST_H

/*
 * digest - answers as text, so that two can be compared, and a difference read.
 *
 * What chance has a part in is left out: tokens. So is what a topic counts as ready already, and
 * not as scheduled still, which is known late when there was no memory. A coarse one has no times.
 */

#include "belfry/backend.h"

struct text {
    char *bytes; /* ends in 0 */
    size_t count, room;
    bool is_coarse;
};

void text_clear(struct text *text);
void text_free(struct text *text);
bool text_is_same(const struct text *one, const struct text *other);

/* Adds an answer to a verb. */
void digest_reply(struct text *text, enum bel_verb verb, const struct bel_reply *reply);

#endif
