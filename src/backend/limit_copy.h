/* SPDX-License-Identifier: MIT */
#ifndef BEL_BACKEND_LIMIT_COPY_H
#define BEL_BACKEND_LIMIT_COPY_H

/*
 * limit_copy - copies of replies to LIMIT that their holder owns.
 */

#include "belfry/limit.h"

/* Copies a reply and everything that it points to into one block of memory. Each text of the copy
 * is followed by a 0 byte. Returns NULL if memory is out; bel_limit_reply_destroy() frees the
 * copy. */
struct bel_limit_reply *bel__limit_reply_copy(const struct bel_limit_reply *from);

#endif
