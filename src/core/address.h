/* SPDX-License-Identifier: MIT */
#ifndef BEL_CORE_ADDRESS_H
#define BEL_CORE_ADDRESS_H

/*
 * address - an address to listen on: "127.0.0.1:7878", "[::1]:7878" or "localhost:7878"; ":7878"
 * and "7878" are ports of 127.0.0.1. Host names are not looked up, so that a listening address does
 * not depend on a DNS reply.
 */

#include "belfry/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

enum {
    BEL_ADDRESS_BYTES = 64, /* room for any address as text, including the final 0 */
};

struct bel_address {
    struct sockaddr_storage socket; /* as for bind() */
    socklen_t socket_bytes;
};

/* Parses an address with its port; port 0 means any free port. Returns 0 and sets `*out`, or
 * returns BEL_EINVAL. */
BEL_CHECKED int bel__address_parse(const char *text, struct bel_address *out);

/* Prints an address in a form that parses back to it. */
void bel__address_print(const struct bel_address *address, char out[BEL_ADDRESS_BYTES]);

uint16_t bel__address_port(const struct bel_address *address);
void bel__address_set_port(struct bel_address *address, uint16_t port);

/* Returns whether only this machine can reach the address. */
bool bel__address_is_loopback(const struct bel_address *address);

#endif
