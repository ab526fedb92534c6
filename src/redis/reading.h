/* SPDX-License-Identifier: MIT */
#ifndef BEL_REDIS_READING_H
#define BEL_REDIS_READING_H

/*
 * reading - from the results of scripts to timers and deliveries in replies.
 */

#include "redis/operation.h"

/* Fills in the timers of the reply from results of the scripts get and list; a result of nil is
 * none. Returns 0, BEL_ENOMEM or BEL_ECORRUPT. */
BEL_CHECKED int bel__reading_timers(struct bel_operation *operation, const struct bel_value *items,
                                    size_t count);

/* Fills in one delivery from a result of the script claim. Its texts point into the result or the
 * operation's arena. Returns 0, BEL_ENOMEM or BEL_ECORRUPT. */
BEL_CHECKED int bel__reading_delivery(struct bel_operation *operation, struct bel_view topic,
                                      const uint8_t secret[BEL_TOKEN_SECRET_BYTES],
                                      const struct bel_value *item, struct bel_delivery *out);

#endif
