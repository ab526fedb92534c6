/* SPDX-License-Identifier: MIT */
#ifndef BEL_CLIENT_CLIENT_H
#define BEL_CLIENT_CLIENT_H

/*
 * What the files of the client share: sockets that are waited for until a deadline.
 */

#include "belfry/client.h"

/* When a call that begins now is over. */
struct bel_mono bel__client_deadline(const struct bel_clock *clock, uint32_t timeout_ms);

/* Waits until a socket is ready for `events` (poll), and sets which it is ready for. Returns 0,
 * BEL_EBUSY if the deadline has come, or BEL_EIO. */
BEL_CHECKED int bel__client_wait(int fd, short events, const struct bel_clock *clock,
                                 struct bel_mono deadline, short *out);

/* Says why, as printf. `why` may be NULL. Returns `err`. */
int bel__client_say(struct bel_client_why *why, int err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Connects a socket. Returns as bel_client_connect() does. */
BEL_CHECKED int bel__client_dial(const char *address, const struct bel_clock *clock,
                                 struct bel_mono deadline, int *out_fd, struct bel_client_why *why);

#endif
