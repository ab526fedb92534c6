/* SPDX-License-Identifier: MIT */
#ifndef BEL_SESSION_REPLY_H
#define BEL_SESSION_REPLY_H

/*
 * answer - what a backend has replied, as it goes over the wire; docs/PROTOCOL.md names each
 * field. Fields of a map that say nothing are left out, and fields may be added to maps and at the
 * end of arrays.
 */

#include "belfry/backend.h"
#include "session/resp.h"

/* Writes a reply to a command of this verb, an error too. */
void bel__reply_write(struct bel_resp_writer *writer, enum bel_verb verb,
                      const struct bel_reply *reply);

/* "BADARG" and so on. */
const char *bel__reply_code(int err);

#endif
