/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_STATE_PICKER_H
#define BEL_ENGINE_STATE_PICKER_H

/*
 * picker - who is next in a topic.
 *
 * A picker has the topic's timers that are ready, and counts those that are leased. Both belong
 * to shares: each group is one, and so is "no group", whose name is empty. A share's own timers
 * come in the order of (due, priority, sequence); between shares it is the turn of
 *
 *     without a concurrency    the one with the fewest leases,
 *     with a concurrency of C  the one with the lowest score, as long as fewer than C are leased:
 *
 *         score   = 50 + penalty
 *         penalty = 20 x (leases - fair + 1) if leases >= fair, else 0
 *         fair    = max(1, C / shares with unfinished timers)
 *
 *         passed over if leases >= max(1, floor(2 x fair))
 *
 * and of the one with the first head if that is the same.
 *
 *     err = bel__picker_add(&topic->picker, group, &ready);
 *     ...
 *     if (bel__picker_pick(&topic->picker, concurrency, shares, &ready)) {
 *         err = bel__picker_lease(&topic->picker, group, &lease->share);
 *         bel__picker_remove(&topic->picker, group, &ready);
 *     }
 *     ...
 *     bel__picker_unlease(&topic->picker, lease->share);
 *
 * Memory: a timer that is ready takes 33 to 47 bytes, a share some 100 and its name when it is
 * the only one, and 300 if not. A picker with neither has no memory; one with a single timer has
 * only its share. What was used by many is kept until none is ready.
 *
 * Threads: a picker belongs to one thread.
 */

#include "belfry/error.h"
#include "belfry/view.h"
#include "core/siphash.h"
#include "core/sorted.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A timer that is ready. */
struct bel_ready {
    int64_t due_ms; /* on the wall */
    uint8_t priority;
    uint64_t sequence; /* 56 bits; no two of a topic have the same */
    uint64_t user;     /* the caller's */
};

struct bel_share; /* opaque: there is one as long as something of it is ready or leased */
struct bel_crowd; /* private */

/* A picker. The fields are private. */
struct bel_picker {
    struct bel_sorted ready; /* under (share's number, due, priority and sequence): user */
    struct bel_share *only;  /* the one share there is, if there is no crowd */
    struct bel_crowd *crowd; /* from the second share on */
    struct bel_siphash_key secret;
    uint64_t leased;      /* of all shares */
    uint64_t next_number; /* of shares */
};

/* Makes an empty picker. `secret` is for the hashes of groups. */
void bel__picker_init(struct bel_picker *picker, struct bel_siphash_key secret);

/* Releases the memory, shares with leases too. */
void bel__picker_finish(struct bel_picker *picker);

/* Adds a timer, which is not there. Returns 0; or BEL_ENOMEM or BEL_EFULL, and nothing has
 * changed. */
BEL_CHECKED int bel__picker_add(struct bel_picker *picker, struct bel_view group,
                                const struct bel_ready *ready);

/* Removes a timer. `user` does not matter. False if it is not there. */
bool bel__picker_remove(struct bel_picker *picker, struct bel_view group,
                        const struct bel_ready *ready);

/* Removes all timers. What is leased stays. */
void bel__picker_clear(struct bel_picker *picker);

/* How many timers are ready. */
uint64_t bel__picker_count(const struct bel_picker *picker);

/* Counts a lease for a share. Returns 0 and sets `*out`, which is good until it is no longer
 * leased; or BEL_ENOMEM or BEL_EFULL. */
BEL_CHECKED int bel__picker_lease(struct bel_picker *picker, struct bel_view group,
                                  struct bel_share **out);

/* The end of a lease of `share`. */
void bel__picker_unlease(struct bel_picker *picker, struct bel_share *share);

/* The timer whose turn it is; it stays. `concurrency`: 0 for none. `shares`: how many have
 * unfinished timers, those not in the picker too. False if it is nobody's turn. */
bool bel__picker_pick(const struct bel_picker *picker, uint32_t concurrency, uint64_t shares,
                      struct bel_ready *out);

/* The first timer by (due, priority, sequence), whoever's turn it is. False if there is none. */
bool bel__picker_first(const struct bel_picker *picker, struct bel_ready *out);

/* How many timers of its share are before one that is there or not, as far as `max`. */
uint64_t bel__picker_ahead(const struct bel_picker *picker, struct bel_view group,
                           const struct bel_ready *ready, uint64_t max);

/* Visits all timers, share by share. The first one behind `*place`, which is moved there and is
 * {{0, 0, 0}} before the first. Timers may come and go meanwhile: each that stays is visited
 * once. False if there are no more. */
bool bel__picker_next(const struct bel_picker *picker, struct bel_key *place,
                      struct bel_ready *out);

/* Memory held, in bytes, besides the picker itself. */
size_t bel__picker_bytes(const struct bel_picker *picker);

/* Checks every invariant, in more than linear time. For tests. */
bool bel__picker_valid(const struct bel_picker *picker);

#endif
