/* SPDX-License-Identifier: MIT */
#ifndef BEL_TESTS_DIFFER_H
#define BEL_TESTS_DIFFER_H

/*
 * differ - compares the replies of two backends. Tokens and texts for people are not compared. Ids
 * that the backends generated are matched by the requests that created them.
 */

#include "heard.h"

enum {
    DIFFER_IDS_MAX = 256,
};

struct differ {
    /* Ids that the two backends generated for the same request. */
    struct {
        char one[BEL_ID_BYTES + 1], other[BEL_ID_BYTES + 1];
    } made[DIFFER_IDS_MAX];
    size_t made_count;
    char text[400]; /* the first difference, for people */
};

/* Returns whether two replies to the same request differ; then `differ->text` describes the
 * difference. */
bool differ_in(struct differ *differ, const struct heard *one, const struct heard *other);

/* Returns whether two lists of timers differ, from any source. */
bool differ_in_timers(struct differ *differ, const struct bel_timer *one, size_t one_count,
                      const struct bel_timer *other, size_t other_count);

#endif
