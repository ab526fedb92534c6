/* SPDX-License-Identifier: MIT */
#ifndef BEL_CLIENT_CLIENT_H
#define BEL_CLIENT_CLIENT_H

/*
 * client - shared by the files of the client: connecting, waiting for a socket with a deadline, and
 * commands whose error replies are errors.
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

/* Sends a command and waits for a reply of type `wanted`, up to the timeout and `wait_ms` more.
 * BEL_VALUE_MAP also allows a list. Sets the error of the client. Returns 0 and sets `*out`; or
 * returns an error as the functions for commands do. Another type of reply, except an error reply,
 * ends the connection with BEL_EINVAL. */
BEL_CHECKED int bel__client_ask(struct bel_client *client, const struct bel_view *args,
                                size_t args_count, uint64_t wait_ms, enum bel_value_type wanted,
                                const struct bel_value **out);

/* Sets the error of the client to `err`, with a text. BEL_EINVAL, an invalid reply, ends the
 * connection. Returns `err`. */
int bel__client_fails(struct bel_client *client, int err, const char *text);

/* Refuses an argument before anything is sent: sets the text of the error. Returns BEL_EINVAL. */
int bel__client_refuses(struct bel_client *client, const char *text);

/* Connects a socket to an address. Returns 0 and sets `*out_fd`, or an error as described for
 * bel_client_connect(). */
BEL_CHECKED int bel__client_dial(const char *address, const struct bel_clock *clock,
                                 struct bel_mono deadline, int *out_fd, struct bel_client_why *why);

#endif
