/* SPDX-License-Identifier: MIT */

/*
 * A place holds one time instead of a count and a time: when the burst will be whole again. Each
 * wrong key moves it one interval further. The address exceeds the rate when the time is more than
 * a burst ahead.
 *
 * An address belongs to one set of places, by a hash without a key: addresses that are chosen to
 * share a set can only make the server forget each other.
 */
#include "session/wrong_keys.h"

#include "core/address.h"
#include "core/units.h"

#include <assert.h>
#include <netinet/in.h>
#include <string.h>

struct network {
    uint64_t bits;
    uint8_t family;
};

/* Returns the network of an address; all addresses that do not parse share one. */
static struct network network_of(const char *text)
{
    struct bel_address address;
    struct network network = {0};
    if (bel__address_parse(text, &address) != 0) return network;
    const struct sockaddr_in *v4 = (const void *)&address.socket;
    const struct sockaddr_in6 *v6 = (const void *)&address.socket;
    bool is_mapped = address.socket.ss_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr);
    network.family = is_mapped || address.socket.ss_family == AF_INET ? 4 : 6;
    if (is_mapped) {
        memcpy(&network.bits, v6->sin6_addr.s6_addr + 12, 4);
    } else if (network.family == 4) {
        memcpy(&network.bits, &v4->sin_addr, 4);
    } else {
        memcpy(&network.bits, v6->sin6_addr.s6_addr, 8);
    }
    return network;
}

/* Returns the place of a network; takes the place of the quietest network if there is none. */
static struct bel_wrong_keys_place *place_of(struct bel_wrong_keys *table, struct network network)
{
    uint64_t hash = (network.bits ^ network.family) * UINT64_C(0x9e3779b97f4a7c15);
    struct bel_wrong_keys_place *set = table->places[(hash >> 32) % BEL_WRONG_KEYS_SETS];
    struct bel_wrong_keys_place *quietest = &set[0];
    for (unsigned i = 0; i < BEL_WRONG_KEYS_WAYS; i++) {
        if (set[i].network == network.bits && set[i].family == network.family) return &set[i];
        if (set[i].paid_ns < quietest->paid_ns) quietest = &set[i];
    }
    *quietest = (struct bel_wrong_keys_place){.network = network.bits, .family = network.family};
    return quietest;
}

enum bel_wrong_keys_verdict bel__wrong_keys_count(struct bel_wrong_keys *table, const char *address,
                                                  struct bel_mono now)
{
    const uint64_t interval_ns = (uint64_t)BEL_WRONG_KEYS_INTERVAL_MS * NS_PER_MS;
    struct bel_wrong_keys_place *place = place_of(table, network_of(address));
    if (place->paid_ns <= now.ns) {
        place->paid_ns = now.ns;
        place->is_reported = false;
    }
    if (place->paid_ns + interval_ns <= now.ns + BEL_WRONG_KEYS_BURST * interval_ns) {
        place->paid_ns += interval_ns;
        return BEL_WRONG_KEYS_FEW;
    }
    if (place->is_reported) return BEL_WRONG_KEYS_MANY;
    place->is_reported = true;
    return BEL_WRONG_KEYS_MANY_NOW;
}
