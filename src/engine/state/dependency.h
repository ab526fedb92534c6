/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_STATE_DEPENDENCY_H
#define BEL_ENGINE_STATE_DEPENDENCY_H

/*
 * dependency - the batch that must be durable before the answer to a request may be given.
 *
 *     the request changed something       the batch of its change
 *     GET                                 the last change of the timer's rows, deletions included
 *     LIST, TOPIC, AGENDA, EXPLAIN        the last change of the topic
 *     CLAIM without deliveries            the last change of its topics
 *     TOPICS                              the last topic that was made
 *     anything else                       the last change of all
 *
 * Only used while rows.changes.is_on: otherwise every batch is durable when its turn ends.
 */

#include "belfry/backend.h"

#include <stdint.h>

struct bel_engine;

/* Returns the batch for a request that has changed nothing. */
uint64_t bel__dependency(struct bel_engine *engine, const struct bel_request *request);

#endif
