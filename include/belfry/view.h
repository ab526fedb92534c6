/* SPDX-License-Identifier: MIT */
#ifndef BEL_VIEW_H
#define BEL_VIEW_H

/*
 * view - a borrowed range of bytes: a pointer and a length. The bytes may have any value and need
 * not end in 0. An empty view may have a NULL pointer.
 */

#include <stddef.h>

struct bel_view {
    const void *data; /* borrowed */
    size_t bytes;
};

/* The view of a string literal, or of an array of char that ends in 0, without that 0. */
#ifdef __cplusplus
#    define BEL_VIEW(literal) (bel_view{(literal), sizeof(literal) - 1})
#else
#    define BEL_VIEW(literal) ((struct bel_view){.data = (literal), .bytes = sizeof(literal) - 1})
#endif

#endif
