/* SPDX-License-Identifier: MIT */
#ifndef BEL_CORE_ADDRESS_H
#define BEL_CORE_ADDRESS_H

/*
 * address - where to listen: "127.0.0.1:7878", "[::1]:7878" or "localhost:7878". Names are not
 * looked up, so that what a server listens on does not depend on who answers.
 */

#include "belfry/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

enum {
    BEL_ADDRESS_BYTES = 64, /* room for any of them as text, with its end */
};

struct bel_address {
    struct sockaddr_storage socket; /* as bind() takes it */
    socklen_t socket_bytes;
};

/* Reads an address with its port, which may be 0 for any that is free. Returns 0 and sets `*out`,
 * or BEL_EINVAL. */
BEL_CHECKED int bel__address_parse(const char *text, struct bel_address *out);

/* Prints an address so that it can be parsed again. */
void bel__address_print(const struct bel_address *address, char out[BEL_ADDRESS_BYTES]);

uint16_t bel__address_port(const struct bel_address *address);
void bel__address_set_port(struct bel_address *address, uint16_t port);

/* Whether only this machine can reach it. */
bool bel__address_is_loopback(const struct bel_address *address);

#endif
