/* SPDX-License-Identifier: MIT */
#ifndef BEL_CLIENT_CLIENT_H
#define BEL_CLIENT_CLIENT_H

/*
 * client - shared by the files of the client: connecting, and waiting for a socket with a deadline.
 */

#include "belfry/client.h"

/* Returns the deadline of a call that begins now. */
struct bel_mono bel__client_deadline(const struct bel_clock *clock, uint32_t timeout_ms);

/* Waits until a socket is ready for one of `events` (of poll) and sets `*out` to the ready ones.
 * Returns 0, BEL_EBUSY if the deadline has passed, or BEL_EIO. */
BEL_CHECKED int bel__client_wait(int fd, short events, const struct bel_clock *clock,
                                 struct bel_mono deadline, short *out);

/* Sets the text of `why`, formatted as by printf. `why` may be NULL. Returns `err`. */
int bel__client_say(struct bel_client_why *why, int err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Connects a socket to an address. Returns 0 and sets `*out_fd`, or an error as described for
 * bel_client_connect(). */
BEL_CHECKED int bel__client_dial(const char *address, const struct bel_clock *clock,
                                 struct bel_mono deadline, int *out_fd, struct bel_client_why *why);

#endif
