/* SPDX-License-Identifier: MIT */
#ifndef BEL_REDIS_OUTCOME_H
#define BEL_REDIS_OUTCOME_H

/*
 * outcome - the message for a request that a server did not execute: whether something was
 * changed, then the server, then the reason. A reply has little room, so the reason comes last.
 *
 *     nothing was changed: 10.0.0.7:6379: NOREPLICAS Not enough good replicas to write.
 *     the outcome is unknown: 10.0.0.7:6379: no reply in time
 */

#include "redis/link/call.h"
#include "redis/servers/servers.h"

#include "core/why.h"

#define BEL_OUTCOME_MISLED "the outcome is unknown: the reply of the server makes no sense"
#define BEL_OUTCOME_MOVED  "nothing was changed: the partitions of the topic are being changed"

/* Say why a call to the server of a slot has failed: its reply is an error; it has not replied; its
 * reply makes no sense. `is_harmless`: the call changes nothing, with any result. */
void bel__outcome_refused(const struct bel_servers *servers, uint16_t slot, bool is_harmless,
                          const struct bel_value *error, struct bel_why *out);
void bel__outcome_unanswered(const struct bel_servers *servers, uint16_t slot, bool is_harmless,
                             const struct bel_redis_reply *reply, struct bel_why *out);
void bel__outcome_misled(const struct bel_servers *servers, uint16_t slot, bool is_harmless,
                         struct bel_why *out);

#endif
