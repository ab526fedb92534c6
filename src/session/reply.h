/* SPDX-License-Identifier: MIT */
#ifndef BEL_SESSION_REPLY_H
#define BEL_SESSION_REPLY_H

/*
 * reply - writes the reply of a backend in RESP. docs/PROTOCOL.md describes the fields. Empty
 * fields of a map are left out. Later versions may add fields to maps and at the end of arrays.
 */

#include "belfry/backend.h"
#include "session/resp.h"

/* Writes the reply to a command of this verb, or its error. `has_reason`: to EXPLAIN with REASON,
 * a map. */
void bel__reply_write(struct bel_resp_writer *writer, enum bel_verb verb,
                      const struct bel_reply *reply, bool has_reason);

/* Returns the protocol's code of an error, e.g. "BADARG" for BEL_EINVAL. */
const char *bel__reply_code(int err);

#endif
