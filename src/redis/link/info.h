/* SPDX-License-Identifier: MIT */
#ifndef BEL_REDIS_LINK_INFO_H
#define BEL_REDIS_LINK_INFO_H

/*
 * info - the reply to INFO: lines of `name:value`.
 */

#include "belfry/view.h"

#include <stddef.h>

/* Copies a value, cut to the room; empty if there is no such line. */
void bel__info_find(struct bel_view info, const char *name, char *out, size_t room);

#endif
