/* SPDX-License-Identifier: MIT */
#ifndef BEL_SERVER_NOTIFY_H
#define BEL_SERVER_NOTIFY_H

/*
 * notify - tells the service manager that the server is ready: the protocol of sd_notify(3), one
 * datagram to the socket that NOTIFY_SOCKET names.
 */

/* Sends a state, e.g. "READY=1". Returns 0, also if there is no service manager; or returns BEL_EIO
 * and sets errno. */
int bel__notify(const char *state);

#endif
