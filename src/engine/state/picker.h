/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_STATE_PICKER_H
#define BEL_ENGINE_STATE_PICKER_H

/*
 * picker - chooses which ready timer of a topic is delivered next.
 *
 * A picker holds the topic's ready timers and counts its leased ones. Both belong to shares: each
 * group is a share, and so is "no group", whose name is empty. Timers of one share are picked in
 * the order of (due, priority, sequence). Between shares, the picker chooses
 *
 *     without a concurrency    the share with the fewest leases,
 *     with a concurrency of C  the share with the lowest score, if fewer than C timers are leased:
 *
 *         score   = 50 + penalty
 *         penalty = 20 x (leases - fair + 1) if leases >= fair, else 0
 *         fair    = max(1, C / shares with unfinished timers)
 *
 *         passed over if leases >= max(1, floor(2 x fair))
 *
 * and among equal shares the one whose first timer comes first.
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
 * Memory: a ready timer takes 33 to 47 bytes. A share takes about 100 bytes and its name if it is
 * the only one, else 300. A picker with neither has no memory; with a single timer it has only the
 * share. Memory that many timers have used is kept until no timer is ready.
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
    int64_t due_ms; /* wall ms */
    uint8_t priority;
    uint64_t sequence; /* 56 bits, unique in a topic */
    uint64_t user;     /* a word for the caller */
};

struct bel_share; /* opaque; exists while it has ready or leased timers */
struct bel_crowd; /* private */

/* A picker. The fields are private. */
struct bel_picker {
    struct bel_sorted ready; /* (share's number, due, priority and sequence) -> user */
    struct bel_share *only;  /* the only share, if there is no crowd */
    struct bel_crowd *crowd; /* all shares, from the second share on */
    struct bel_siphash_key secret;
    uint64_t leased;      /* of all shares */
    uint64_t next_number; /* number of the next share */
};

/* Makes an empty picker. `secret` keys the hashes of group names. */
void bel__picker_init(struct bel_picker *picker, struct bel_siphash_key secret);

/* Frees all memory, including shares that have leases. */
void bel__picker_finish(struct bel_picker *picker);

/* Adds a timer that is not in the picker. Returns 0; or BEL_ENOMEM or BEL_EFULL, and nothing has
 * changed. */
BEL_CHECKED int bel__picker_add(struct bel_picker *picker, struct bel_view group,
                                const struct bel_ready *ready);

/* Removes a timer; ignores `ready->user`. Returns false if it is not in the picker. */
bool bel__picker_remove(struct bel_picker *picker, struct bel_view group,
                        const struct bel_ready *ready);

/* Removes all timers. Leases are still counted. */
void bel__picker_clear(struct bel_picker *picker);

/* Returns the number of ready timers. */
uint64_t bel__picker_count(const struct bel_picker *picker);

/* Counts a lease for a group's share. Returns 0 and sets `*out`, valid until its last lease ends;
 * or BEL_ENOMEM or BEL_EFULL. */
BEL_CHECKED int bel__picker_lease(struct bel_picker *picker, struct bel_view group,
                                  struct bel_share **out);

/* Ends one lease of `share`. */
void bel__picker_unlease(struct bel_picker *picker, struct bel_share *share);

/* Sets `*out` to the timer to deliver next, which stays in the picker. `concurrency`: 0 for no
 * limit. `shares`: number of the topic's shares with unfinished timers. Returns false if no timer
 * may be delivered. */
bool bel__picker_pick(const struct bel_picker *picker, uint32_t concurrency, uint64_t shares,
                      struct bel_ready *out);

/* Sets `*out` to the first timer by (due, priority, sequence) of all shares. Returns false if there
 * is none. */
bool bel__picker_first(const struct bel_picker *picker, struct bel_ready *out);

/* Returns how many timers of the share come before `ready`, counting up to `max`. `ready` need not
 * be in the picker. */
uint64_t bel__picker_ahead(const struct bel_picker *picker, struct bel_view group,
                           const struct bel_ready *ready, uint64_t max);

/* Visits all timers, share by share: finds the first timer after `*place` and moves `*place` to it.
 * Begin with {{0, 0, 0}}. Timers may come and go meanwhile: each timer that stays is visited once.
 * Returns false at the end. */
bool bel__picker_next(const struct bel_picker *picker, struct bel_key *place,
                      struct bel_ready *out);

/* Returns the memory held, in bytes, without the picker itself. */
size_t bel__picker_bytes(const struct bel_picker *picker);

/* Returns whether every invariant holds. Slower than linear; for tests. */
bool bel__picker_valid(const struct bel_picker *picker);

#endif
