/* SPDX-License-Identifier: MIT */
#ifndef BEL_VIEW_H
#define BEL_VIEW_H

/*
 * view - bytes that belong to someone else: where they are and how many. They need no end
 * mark and may have any value. A view of no bytes may have a NULL pointer.
 */

#include <stddef.h>

struct bel_view {
    const void *data; /* borrowed */
    size_t bytes;
};

/* The view of a string literal, or of any array of char that ends in 0. */
#define BEL_VIEW(literal) ((struct bel_view){.data = (literal), .bytes = sizeof(literal) - 1})

#endif
