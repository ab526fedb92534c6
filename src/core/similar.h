/* SPDX-License-Identifier: MIT */
#ifndef BEL_CORE_SIMILAR_H
#define BEL_CORE_SIMILAR_H

/*
 * similar - finds the name that a mistyped word most likely means:
 *
 *     struct bel_similar similar;
 *     bel__similar_begin(&similar, "schedul");
 *     for (...) bel__similar_offer(&similar, name, name);
 *     if (similar.name != NULL) printf("did you mean '%s'?\n", similar.name);
 */

#include <stdbool.h>
#include <stddef.h>

enum {
    BEL_SIMILAR_BYTES_MAX = 64, /* longer words are not compared */
};

struct bel_similar {
    const char *word;         /* borrowed */
    unsigned distance, cases; /* of the best name; letters that it has in another case */
    bool has_name;            /* there was a best name, though the caller may have taken it away */
    const char *name;         /* the best name so far, borrowed; NULL: none is similar */
};

void bel__similar_begin(struct bel_similar *similar, const char *word);

/* Compares the word with `text`, and keeps `name`, which may be longer, if no earlier name was as
 * similar. Upper and lower case are the same, but of two such names the nearer one is kept. Never
 * keeps the word itself. */
void bel__similar_offer(struct bel_similar *similar, const char *text, const char *name);

#endif
