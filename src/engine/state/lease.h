/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_STATE_LEASE_H
#define BEL_ENGINE_STATE_LEASE_H

/*
 * lease - which worker has a timer, and until when.
 */

#include "belfry/clock.h"
#include "belfry/wheel.h"
#include "core/map.h"
#include "core/slab.h"
#include "engine/rows/key.h"
#include "engine/state/limits.h"

struct bel_engine;
struct bel_found;
struct bel_resource;
struct bel_share;
struct bel_topic_state;
struct bel_work;

/* A lease in memory. */
struct bel_lease {
    struct bel_key key; /* of the leased timer */
    struct bel_topic_state *topic;
    struct bel_share *share;       /* whose leases include it */
    struct bel_resource *resource; /* NULL: none */
    bel_timer_t timer;             /* in leases.wheel */
    uint64_t end, lease_ms, due;
    uint64_t job; /* number of the task's job, or 0 */
    uint8_t secret[BEL_TOKEN_SECRET_BYTES];
    uint64_t start;                 /* of the claim, in open time */
    struct bel_work *group;         /* the work of the timer's group; or NULL */
    struct bel_work *resource_work; /* of its resource; or NULL */
    uint8_t end_kind;               /* enum bel_work_end: how the lease is about to end */
    bool is_counted;                /* by the work of its topic */
    bool is_bare;                   /* the timer is bare: bel__record_is_bare() */
    bool is_old;                    /* was loaded when the engine was opened */
    enum bel_lease_end ending; /* how the lease ends, for the resource; set before it is dropped */
};

enum {
    BEL_SECRETS_MAX = 128,
};

struct bel_leases {
    struct bel_map map; /* key -> index in the slab */
    struct bel__slab slab;
    struct bel_wheel *wheel; /* by end, in open time */
    uint8_t secrets[BEL_SECRETS_MAX][BEL_TOKEN_SECRET_BYTES];
    uint32_t secrets_left; /* secrets[0] to [secrets_left - 1] are unused */
};

BEL_CHECKED int bel__leases_open(struct bel_engine *engine);
void bel__leases_close(struct bel_engine *engine);

/* Return the lease of a timer; the lease at an index of the slab; the lease that a token names,
 * unless it is over. The first and the last return NULL if there is none. */
struct bel_lease *bel__lease_find(const struct bel_engine *engine, const struct bel_key *key);
struct bel_lease *bel__lease_at(const struct bel_engine *engine, uint32_t index);
struct bel_lease *bel__lease_by_token(struct bel_engine *engine, struct bel_view token);

struct bel_lease_terms {
    uint64_t lease_ms;
    struct bel_wall due; /* due time at delivery */
    struct bel_view worker;
};

/* Leases a ready timer from now on, in memory and in the store. A row of BEL_RECORD_BYTES_MAX must
 * be reserved. Returns 0, BEL_ENOMEM, BEL_EFULL or BEL_EIO. */
BEL_CHECKED int bel__lease_make(struct bel_engine *engine, const struct bel_found *found,
                                const struct bel_lease_terms *terms, struct bel_lease **out);
BEL_CHECKED int bel__lease_extend(struct bel_engine *engine, struct bel_lease *lease,
                                  uint64_t lease_ms);

/* Ends a lease, in memory and in the store. */
void bel__lease_drop(struct bel_engine *engine, struct bel_lease *lease);

#endif
