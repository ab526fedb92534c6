/* SPDX-License-Identifier: MIT */
#ifndef BEL_TESTS_HEARD_H
#define BEL_TESTS_HEARD_H

/*
 * heard - a copy of a reply. The memory of a reply is valid only until `done` returns; this copies
 * all of it, for tests that examine it later or compare two.
 */

#include "belfry/backend.h"

struct heard {
    enum bel_verb verb;
    struct bel_reply reply;
    void **pieces; /* private, as is the rest */
    size_t pieces_count;
    struct bel_timer *timers; /* of a list, from all pages */
    size_t timers_count, timers_room;
};

/* Copies a reply to a request. Never NULL. */
struct heard *heard_copy(enum bel_verb verb, const struct bel_reply *reply);

/* Appends the timers of the next page to a copy of a LIST reply. The cursor becomes that of the
 * page. */
void heard_add_page(struct heard *heard, const struct bel_reply *page);

/* Frees a copy; NULL is allowed. */
void heard_free(struct heard *heard);

/* Returns whether two views have the same bytes. */
bool heard_same(struct bel_view a, struct bel_view b);

#endif
