/* SPDX-License-Identifier: MIT */
#ifndef BEL_CORE_DELIVERY_H
#define BEL_CORE_DELIVERY_H

/*
 * delivery - copies of deliveries that their holder owns.
 */

#include "belfry/delivery.h"

/* Copies a delivery and all that it points to into one block of memory. Each text of the copy is
 * followed by a 0 byte. Returns NULL if memory is out; bel_delivery_destroy() frees the copy. */
struct bel_delivery *bel__delivery_copy(const struct bel_delivery *from);

#endif
