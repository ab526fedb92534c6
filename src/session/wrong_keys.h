/* SPDX-License-Identifier: MIT */
#ifndef BEL_SESSION_WRONG_KEYS_H
#define BEL_SESSION_WRONG_KEYS_H

/*
 * wrong_keys - counts the wrong API keys per address, in a table of fixed size.
 *
 * An address may send BEL_WRONG_KEYS_BURST wrong keys at once, and one more per second after that.
 * Beyond this rate the server delays its replies and closes the connection. A right key is not
 * counted and never delayed, because a key is checked before the table is asked.
 *
 * An IPv6 address counts with its /64 network, because one machine has all addresses of a network.
 * When the table has no room, the address that has been quiet for longest is forgotten.
 */

#include "belfry/clock.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    BEL_WRONG_KEYS_BURST = 20,
    BEL_WRONG_KEYS_INTERVAL_MS = 1000, /* per further wrong key */
    BEL_WRONG_KEYS_SETS = 256,
    BEL_WRONG_KEYS_WAYS = 4,
};

/* All fields are private. Starts zeroed. */
struct bel_wrong_keys {
    struct bel_wrong_keys_place {
        uint64_t network;
        uint64_t paid_ns; /* mono time at which the burst is whole again; 0: unused */
        uint8_t family;
        bool is_reported; /* the address has exceeded the rate since its burst was whole */
    } places[BEL_WRONG_KEYS_SETS][BEL_WRONG_KEYS_WAYS];
};

enum bel_wrong_keys_verdict {
    BEL_WRONG_KEYS_FEW,
    BEL_WRONG_KEYS_MANY_NOW, /* the first beyond the rate */
    BEL_WRONG_KEYS_MANY,
};

/* Counts a wrong key from an address, which is text with a port: "10.0.0.1:5000". */
enum bel_wrong_keys_verdict bel__wrong_keys_count(struct bel_wrong_keys *table, const char *address,
                                                  struct bel_mono now);

#endif
