/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_STATE_PICKER_H
#define BEL_ENGINE_STATE_PICKER_H

/*
 * picker - chooses which ready timer of a topic is delivered next.
 *
 * A picker holds the topic's ready timers and counts its leased ones. Both belong to shares: each
 * group is a share, each job is a share, and so is "no group", whose name is empty. A job and a
 * group with equal names are two shares. Inside a share, timers are picked in the order of
 *
 *     group or no group    (due, priority, sequence)
 *     job                  (score, priority, sequence)
 *
 * Between shares, the picker chooses
 *
 *     without a concurrency    the share with the fewest leases, then with the lowest static score,
 *     with a concurrency of C  the share with the lowest score, if fewer than C timers are leased:
 *
 *         score   = static score + penalty; static: 50, or the score of the job's first timer
 *         penalty = 20 x (leases - fair + 1) if leases >= fair, else 0
 *         fair    = max(1, C / shares with unfinished timers)
 *
 *         passed over if leases >= max(1, floor(2 x fair))
 *
 * Equal shares take turns. A turn is max(1, ceil(C / shares)) deliveries, 1 without a concurrency,
 * and need not be in one piece. The share whose last turn ended longest ago is next, shares that
 * have not ended a turn before all others; among these, the one whose first timer comes first by
 * (due, priority, sequence).
 *
 * Inside a share, timers stand in lines: one line for each resource, one for timers without. A
 * resource is known here by its gate. The caller checks the gate of the timer that was picked, and
 * parks the line if the gate is closed:
 *
 *     err = bel__picker_add(&topic->picker, &standing, &ready);
 *     ...
 *     while (bel__picker_pick(&topic->picker, concurrency, shares, &pick)) {
 *         if (pick.line != NULL && is_closed(gate)) {
 *             bel__picker_park(pick.line, gate);
 *             continue;
 *         }
 *         turn = bel__picker_turn(concurrency, shares);
 *         err = bel__picker_lease(&topic->picker, &standing, turn, &lease->share);
 *         bel__picker_remove(&topic->picker, &standing, &pick.ready);
 *     }
 *     ...
 *     while ((picker = bel__gate_unpark(gate)) != NULL) ...      the gate opens: line by line
 *     bel__picker_unlease(&topic->picker, lease->share);
 *
 * A share can be held, as a paused job is: its timers stay, and are not picked.
 *
 *     struct bel_standing task = {.share = job_id, .is_job = true, .gate = gate};
 *     struct bel_ready ready = {..., .score = 10.0 * job_priority + depth - ... };
 *     err = bel__picker_add(&topic->picker, &task, &ready);
 *     err = bel__picker_hold(&topic->picker, &task, true);
 *     leases = bel__picker_leases(&topic->picker, &task);
 *
 * Memory: a ready timer takes 33 to 47 bytes. A share takes 88 bytes and its name if it is the only
 * one, else 270; a line with a resource takes 150 more. A picker that never had a timer has no
 * memory; with a single timer it has only the share. Memory that many timers have used is kept
 * until no timer is ready. To know its turns, a share without timers is kept: the only
 * share, or the last 256.
 *
 * Threads: a picker belongs to one thread.
 */

#include "belfry/error.h"
#include "belfry/view.h"
#include "core/list.h"
#include "core/siphash.h"
#include "core/sorted.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A timer that is ready. */
struct bel_ready {
    uint64_t time; /* when the timer is due, in ms of its lane; 63 bits */
    uint8_t lane;  /* BEL_LANE_ENGINE or BEL_LANE_WALL */
    uint8_t priority;
    uint64_t sequence; /* 56 bits, unique in a topic */
    double score;      /* of a job's timer: lower first, not NaN; of others ignored, shown as 50 */
};

/* A resource as pickers see it. */
struct bel_gate {
    struct bel_gate *above; /* api for api/search, which must outlive this gate; NULL: none */
    struct bel_list parked; /* lines that wait for this gate to open */
    uint64_t parked_timers; /* in these lines */
    uint64_t timers;        /* with this resource, or one below it, parked or not */
    uint64_t lines;         /* lines of timers with this resource: the gate must outlive them */
};

/* Where a timer stands. */
struct bel_standing {
    struct bel_view share; /* name of the group or of the job; empty: no group */
    bool is_job;
    struct bel_gate *gate; /* NULL: no resource */
};

struct bel_share; /* opaque */
struct bel_line;  /* opaque; exists while it has timers */
struct bel_crowd; /* private */

struct bel_pick {
    struct bel_ready ready;
    struct bel_line *line; /* NULL: no resource */
    struct bel_gate *gate; /* of the line */
};

/* A picker. The fields are private. */
struct bel_picker {
    struct bel_sorted ready; /* (line's number, due or score, priority and sequence) -> time */
    struct bel_share *only;  /* the only share, if there is no crowd */
    struct bel_crowd *crowd; /* all shares, from the second share on */
    struct bel_siphash_key secret;
    int64_t offset;       /* wall ms minus time on the engine's lane */
    uint64_t leased;      /* of all shares */
    uint64_t parked;      /* timers in parked lines */
    uint64_t served;      /* turns that have ended */
    uint64_t next_number; /* number of the next line, and of the next weight */
};

/* Makes an empty picker. `secret` keys the hashes of names. */
void bel__picker_init(struct bel_picker *picker, struct bel_siphash_key secret);

/* Frees all memory, including shares that have leases. */
void bel__picker_finish(struct bel_picker *picker);

/* Makes a gate without lines. `above` may be NULL. */
void bel__gate_init(struct bel_gate *gate, struct bel_gate *above);

/* Sets the difference of wall ms and the engine lane's time. The picker must have no ready
 * timer. */
void bel__picker_set_offset(struct bel_picker *picker, int64_t offset);

/* Returns when a timer is due, in wall ms. */
uint64_t bel__picker_due(const struct bel_picker *picker, const struct bel_ready *ready);

/* Adds a timer that is not in the picker. Returns 0; or BEL_ENOMEM or BEL_EFULL, and nothing has
 * changed. */
BEL_CHECKED int bel__picker_add(struct bel_picker *picker, const struct bel_standing *standing,
                                const struct bel_ready *ready);

/* Removes a timer. Returns false if it is not in the picker. */
bool bel__picker_remove(struct bel_picker *picker, const struct bel_standing *standing,
                        const struct bel_ready *ready);

/* Returns whether a timer is in the picker. */
bool bel__picker_has(const struct bel_picker *picker, const struct bel_standing *standing,
                     const struct bel_ready *ready);

/* Removes all timers. Leases are still counted, held shares stay held. */
void bel__picker_clear(struct bel_picker *picker);

/* Return the number of ready timers, and of those in parked lines. */
uint64_t bel__picker_count(const struct bel_picker *picker);
uint64_t bel__picker_parked(const struct bel_picker *picker);

/* Returns the number of deliveries in a turn of a share. */
uint32_t bel__picker_turn(uint32_t concurrency, uint64_t shares);

/* Counts a lease for a share. `turn`: the deliveries in a turn, of which this is one; 0 if the
 * lease is not a delivery. Returns 0 and sets `*out`, valid until its last lease ends; or
 * BEL_ENOMEM or BEL_EFULL. */
BEL_CHECKED int bel__picker_lease(struct bel_picker *picker, const struct bel_standing *standing,
                                  uint32_t turn, struct bel_share **out);

/* Ends one lease of `share`. */
void bel__picker_unlease(struct bel_picker *picker, struct bel_share *share);

/* Returns the number of leases of a share; 0 if it does not exist. */
uint32_t bel__picker_leases(const struct bel_picker *picker, const struct bel_standing *standing);

/* Holds a share, whether or not it has timers, or releases it. Releasing returns 0; holding may
 * return BEL_ENOMEM or BEL_EFULL. */
BEL_CHECKED int bel__picker_hold(struct bel_picker *picker, const struct bel_standing *standing,
                                 bool is_held);

/* Sets `*out` to the timer to deliver next, which stays in the picker. `concurrency`: 0 for no
 * limit. `shares`: number of the topic's shares with unfinished timers. Returns false if no timer
 * may be delivered. */
bool bel__picker_pick(const struct bel_picker *picker, uint32_t concurrency, uint64_t shares,
                      struct bel_pick *out);

/* Returns the line of the timers that stand as `standing`; NULL if there is none, if it is parked,
 * or if they have no resource. */
struct bel_line *bel__picker_open_line(const struct bel_picker *picker,
                                       const struct bel_standing *standing);

/* Parks a line until `gate` opens, which may be another gate than the line's own. */
void bel__picker_park(struct bel_line *line, struct bel_gate *gate);

/* Takes back the line that was parked first at a gate. Returns its picker, NULL if there is no
 * line. */
struct bel_picker *bel__gate_unpark(struct bel_gate *gate);

/* Returns how many timers of the share come before `ready` in lines that are not parked, counting
 * up to `max`. `ready` need not be in the picker. */
uint64_t bel__picker_ahead(const struct bel_picker *picker, const struct bel_standing *standing,
                           const struct bel_ready *ready, uint64_t max);

/* Visits all timers, line by line: finds the first timer after `*place` and moves `*place` to it.
 * Begin with {{0, 0, 0}}. Timers may come and go meanwhile: each timer that stays is visited once.
 * Returns false at the end. */
bool bel__picker_next(const struct bel_picker *picker, struct bel_key *place,
                      struct bel_ready *out);

/* Returns the memory held, in bytes, without the picker itself. */
size_t bel__picker_bytes(const struct bel_picker *picker);

/* Returns whether every invariant holds. Slower than linear; for tests. */
bool bel__picker_valid(const struct bel_picker *picker);

#endif
