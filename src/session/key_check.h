/* SPDX-License-Identifier: MIT */
#ifndef BEL_SESSION_KEY_CHECK_H
#define BEL_SESSION_KEY_CHECK_H

/*
 * key_check - checks the API key of a client, and limits the number of wrong keys per connection
 * and per address, for RESP and HTTP alike.
 */

#include "session/session.h"

enum bel_key_result {
    BEL_KEY_RIGHT,
    BEL_KEY_WRONG,
    BEL_KEY_WRONG_LAST, /* too many wrong keys of the connection: close it */
    BEL_KEY_WRONG_MANY, /* too many wrong keys of the address: reply later, then close */
};

/* Checks a key; the service must have keys. If the key is right, sets `*out` to its permissions.
 * Otherwise reports and counts the wrong key. `*wrong` counts the wrong keys of a connection, from
 * 0. If `wrong` is NULL, the first wrong key is the last. */
enum bel_key_result bel__key_check(const struct bel_service *service,
                                   const struct bel_key_attempt *attempt, unsigned *wrong,
                                   struct bel_grant *out);

#endif
