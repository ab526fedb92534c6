/* SPDX-License-Identifier: MIT */
#ifndef BEL_CORE_VIEW_H
#define BEL_CORE_VIEW_H

/*
 * view - helpers for struct bel_view.
 */

#include "belfry/view.h"

#include <stdbool.h>
#include <string.h>

static inline bool bel__view_equal(struct bel_view a, struct bel_view b)
{
    return a.bytes == b.bytes && (a.bytes == 0 || memcmp(a.data, b.data, a.bytes) == 0);
}

/* Returns whether a view equals a string. */
static inline bool bel__view_is(struct bel_view view, const char *text)
{
    return bel__view_equal(view, (struct bel_view){.data = text, .bytes = strlen(text)});
}

/* Returns the first `bytes_max` bytes of a view, or all if it is shorter. */
static inline struct bel_view bel__view_head(struct bel_view view, size_t bytes_max)
{
    if (view.bytes > bytes_max) view.bytes = bytes_max;
    return view;
}

#endif
