/* SPDX-License-Identifier: MIT */
#ifndef BEL_REDIS_READING_H
#define BEL_REDIS_READING_H

/*
 * reading - from the results of scripts to timers and deliveries in replies.
 */

#include "redis/operation.h"
#include "redis/rule.h"
#include "telling/steps.h"

/* Fills in the timers of the reply from results of the scripts get and list; a result of nil is
 * none. Returns 0, BEL_ENOMEM or BEL_ECORRUPT. */
BEL_CHECKED int bel__reading_timers(struct bel_operation *operation, const struct bel_value *items,
                                    size_t count);

/* Fills in a timer from one such result. Returns 0, BEL_ENOMEM or BEL_ECORRUPT. */
BEL_CHECKED int bel__reading_timer(struct bel_operation *operation, const struct bel_value *item,
                                   struct bel_timer *out);

/* Of such a result, which bel__reading_timer() has read: set the length of the lease, 0 without
 * one; and the rule of a plan. Return 0 or BEL_ECORRUPT. */
BEL_CHECKED int bel__reading_lease(const struct bel_value *item, uint64_t *out_ms);
BEL_CHECKED int bel__reading_rule(const struct bel_value *item, const struct bel_timer *timer,
                                  struct bel_rule *out);

/* A result of the script claim, which is read from the first delivery on: see claim.lua. */
struct bel_claimed {
    const struct bel_value *list;
    size_t count;      /* of deliveries */
    size_t index;      /* of the next one */
    size_t extra;      /* index of the next of those that are told more of, times three */
    uint64_t lease_ms; /* of the others */
};

/* Begins to read a result. Returns 0, or BEL_EIO if it is something else. */
BEL_CHECKED int bel__reading_claimed(const struct bel_value *list, struct bel_claimed *out);

/* Fills in the next delivery. Its texts point into the result or the operation's arena. Returns 0,
 * BEL_ENOMEM or BEL_ECORRUPT. */
BEL_CHECKED int bel__reading_delivery(struct bel_operation *operation, struct bel_view topic,
                                      const uint8_t secret[BEL_TOKEN_SECRET_BYTES],
                                      struct bel_claimed *claimed, struct bel_delivery *out);

/* Adds counts to the steps after the first `done`, from {index, number, ...} or 'full'. Returns 0,
 * BEL_EFULL or BEL_EIO. */
BEL_CHECKED int bel__reading_steps(struct bel_steps *steps, const struct bel_value *counts,
                                   size_t done);

#endif
