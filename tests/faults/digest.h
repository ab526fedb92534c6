/* SPDX-License-Identifier: MIT */
#ifndef BEL_TESTS_FAULTS_DIGEST_H
#define BEL_TESTS_FAULTS_DIGEST_H

/*
 * digest - prints replies as text, to compare them and to show differences.
 *
 * Random values (tokens) are left out. So is the distinction of ready and scheduled timers in the
 * counts of a topic, which may be late after a failed allocation. A coarse digest has no times.
 */

#include "belfry/backend.h"

struct text {
    char *bytes; /* ends with 0 */
    size_t count, room;
    bool is_coarse;
};

void text_clear(struct text *text);
void text_free(struct text *text);
bool text_is_same(const struct text *one, const struct text *other);

/* Appends the reply to a verb. */
void digest_reply(struct text *text, enum bel_verb verb, const struct bel_reply *reply);

#endif
