/* SPDX-License-Identifier: MIT */
#ifndef BEL_REDIS_SERVERS_SLOT_H
#define BEL_REDIS_SERVERS_SLOT_H

/*
 * slot - which of the 16,384 slots of a Redis Cluster a key belongs to.
 *
 * Keys with the same hash tag, the text between their first { and the } after it, are in the same
 * slot: {mail:invoices:0}:pend and {mail:invoices:0}:lease are.
 */

#include "belfry/view.h"

#include <stdint.h>

enum {
    BEL_SLOTS = 16384,
};

/* Returns the slot of a key. */
uint16_t bel__slot_of(struct bel_view key);

#endif
