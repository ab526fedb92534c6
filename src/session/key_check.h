/* SPDX-License-Identifier: MIT */
#ifndef BEL_SESSION_KEY_CHECK_H
#define BEL_SESSION_KEY_CHECK_H

/*
 * key_check - checks the key of a client, and closes connections that guess: RESP and HTTP allow
 * the same number of wrong keys on a connection.
 */

#include "session/session.h"

enum bel_key_result {
    BEL_KEY_RIGHT,
    BEL_KEY_WRONG,
    BEL_KEY_WRONG_LAST, /* too many wrong keys: the connection is to be closed */
};

/* Checks a key of a service that has keys. A right one sets `*out`. `*wrong` counts the wrong keys
 * of a connection, from 0; NULL if there was no memory for a counter: then one is too many. */
enum bel_key_result bel__key_check(const struct bel_service *service, struct bel_view user,
                                   struct bel_view key, unsigned *wrong, struct bel_grant *out);

#endif
