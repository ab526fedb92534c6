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
    /* Ids that were made for the same request, by either backend. */
    struct {
        char one[BEL_ID_BYTES + 1], other[BEL_ID_BYTES + 1];
    } made[DIFFER_IDS_MAX];
    size_t made_count;
    bool is_lazy;   /* that a timer has expired may have been noticed at different times */
    char text[400]; /* the first difference, for people */
};

/* Whether two answers to the same request differ; then `differ->text` says in what. */
bool differ_in(struct differ *differ, const struct heard *one, const struct heard *other);

/* The same for two lists of timers, wherever they come from. */
bool differ_in_timers(struct differ *differ, const struct bel_timer *one, size_t one_count,
                      const struct bel_timer *other, size_t other_count);

#endif
