/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_STATE_RESOURCE_H
#define BEL_ENGINE_STATE_RESOURCE_H

/*
 * resource - what timers use and share: a database, an API. A resource has limits, and a gate at
 * which the lines of pickers are parked while it is closed.
 *
 * Resources nest by their names: a timer with the resource api/search needs api/search, api, and
 * `*`, the resource of all timers. All of them must be open.
 *
 *   ready, claim --- closed? ---> the line is parked at the first closed gate ---. time, ack, LIMIT
 *       |                                                                        |
 *       '--- open: all count the lease, rates move <--- the line returns <-------'
 *
 * A resource is in memory while it has a row, a lease, a line of ready timers, or one below it. Its
 * row is written when the batch ends, once, if it has changed.
 */

#include "belfry/wheel.h"
#include "core/list.h"
#include "core/map.h"
#include "core/treap.h"
#include "engine/state/picker.h"
#include "engine/state/resource_row.h"

#include <stdbool.h>
#include <stdint.h>

struct bel_engine;
struct bel_lease;

struct bel_resource {
    struct bel_gate gate; /* first */
    struct bel_limits limits;
    struct bel_resource *above; /* api for api/search; NULL: none */
    uint64_t leases;            /* of timers with this resource or one below it */
    uint32_t below;             /* resources right below it in memory */
    bool has_row, is_dirty;
    bool is_probed;       /* is in engine->rows.probes */
    bool has_passed_over; /* ready timers were not loaded, as this resource was closed */
    struct bel_resource *next_dirty;
    bel_timer_t wake; /* BEL_TIMER_NONE: not set */
    struct bel_link opening;
    struct bel_link limited;              /* in resources.limited, if LIMIT CLEAR has to look */
    struct bel_resource_reports *reports; /* NULL: none */
    struct bel_treap_node by_name;
    uint32_t name_bytes;
    char name[];
};

struct bel_resources {
    struct bel_map map; /* name -> struct bel_resource */
    struct bel_treap_node *by_name;
    struct bel_resource *all; /* the resource `*`, always there */
    struct bel_wheel *wheel;  /* of resources that open at a known time, by engine time */
    struct bel_list opening;  /* resources whose lines are to be taken back */
    struct bel_list limited;
    uint64_t limited_count;
    struct bel_resource *dirty;
    uint64_t drawn;      /* weights drawn so far */
    uint32_t moves_left; /* lines that may be parked or taken back in this turn */
    bool is_active;      /* some resource was in memory, or `*` had a limit: else nothing to do */
    bool must_reread;    /* timers that were passed over can be loaded */
};

BEL_CHECKED int bel__resources_open(struct bel_engine *engine);
void bel__resources_close(struct bel_engine *engine);

/* Finds a resource; finds or makes it. The empty name has none: `*out` is NULL. */
struct bel_resource *bel__resource_find(const struct bel_engine *engine, struct bel_view name);
BEL_CHECKED int bel__resource_take(struct bel_engine *engine, struct bel_view name,
                                   struct bel_resource **out);

/* Frees a resource that is no longer needed, and those above it. */
void bel__resource_leave(struct bel_engine *engine, struct bel_resource *resource);

/* Returns the first resource with a name after `name`, in the order of bytes; NULL: none. */
struct bel_resource *bel__resource_after(const struct bel_engine *engine, struct bel_view name);

/* A closed resource. */
struct bel_closed {
    struct bel_resource *resource;
    enum bel_closed_by by;
    uint64_t until; /* engine time; BEL_NEVER: until a lease ends */
};

/* Returns whether a resource, or one above it, is closed, and sets `*out` to the first that is.
 * Does not look at `*`. */
bool bel__resource_is_closed(const struct bel_engine *engine, struct bel_resource *resource,
                             struct bel_closed *out);

/* Returns whether `*` is closed; then no timer may be delivered. */
bool bel__resources_are_closed(const struct bel_engine *engine, struct bel_closed *out);

/* Returns whether a resource is in memory, or `*` has a limit: what one topic delivers may then
 * depend on others. */
static inline bool bel__resources_are_used(const struct bel_resources *resources)
{
    return bel__map_count(&resources->map) > 1 || resources->all->has_row ||
           resources->all->is_dirty;
}

/* Sets the wake of a closed resource, so that its lines are taken back in time. */
void bel__resource_expect(struct bel_engine *engine, const struct bel_closed *closed);

/* Parks a line that a claim has met until a resource opens. Returns false if this turn may park no
 * more. */
bool bel__resource_park(struct bel_engine *engine, struct bel_line *line,
                        const struct bel_closed *closed);

/* Returns whether more lines may be parked or taken back in this turn. */
static inline bool bel__resources_may_move(const struct bel_resources *resources)
{
    return resources->moves_left > 0;
}

/* Parks the line of a timer that was added to a picker, if its resource is closed, so that no claim
 * meets it. Returns whether the line is parked. Adding timers bounds these moves: a turn may do any
 * number of them. */
bool bel__resource_park_added(struct bel_engine *engine, const struct bel_picker *picker,
                              const struct bel_standing *standing);

/* Count a lease for a resource, those above it and `*`, as a delivery or as one that was loaded;
 * end it. `resource` may be NULL. Rows must be reserved: see bel__rows_reserve(). */
void bel__resource_enter(struct bel_engine *engine, struct bel_resource *resource,
                         const struct bel_key *timer, bool is_delivery);
void bel__resource_end(struct bel_engine *engine, struct bel_resource *resource,
                       const struct bel_key *timer, enum bel_lease_end end);

/* Notes that the limits of a resource have changed: its row is written, and lines return if it is
 * open. */
void bel__resource_changed(struct bel_engine *engine, struct bel_resource *resource);

/* Return whether a resource has a limit or a state worth keeping; whether it is in use or has one.
 * Forget all limits of a resource. */
bool bel__resource_has_limits(const struct bel_engine *engine, const struct bel_resource *resource);
bool bel__resource_is_shown(const struct bel_engine *engine, const struct bel_resource *resource);
void bel__resource_reset(struct bel_engine *engine, struct bel_resource *resource);

/* Return how many resources may be limited by a time or a breaker; the first of them, which is no
 * longer on the list, NULL if there is none. */
uint64_t bel__resources_limited(const struct bel_engine *engine);
struct bel_resource *bel__resources_first_limited(struct bel_engine *engine);

/* Limits a resource for a time, and notes who reported it. Returns 0 or BEL_ENOMEM. */
BEL_CHECKED int bel__resource_limit(struct bel_engine *engine, struct bel_resource *resource,
                                    uint64_t ms, struct bel_view who);

/* Returns whether a resource is closed, and notes that a ready timer is not loaded until it opens:
 * enough are parked. */
bool bel__resource_pass_over(struct bel_engine *engine, struct bel_resource *resource);

/* For an engine whose resources are active: begins a turn; takes back lines of resources that are
 * open. A turn moves a limited number of lines. */
void bel__resources_begin(struct bel_engine *engine);
void bel__resources_turn(struct bel_engine *engine);

/* Returns when lines are to be taken back next, in engine time. */
uint64_t bel__resources_next(const struct bel_engine *engine);

/* Returns the key of the row of a resource. */
struct bel_key bel__resource_key(const struct bel_engine *engine, struct bel_view name);

/* Puts the rows that have changed. */
void bel__resources_flush(struct bel_engine *engine);

static inline struct bel_view bel__resource_name(const struct bel_resource *resource)
{
    return (struct bel_view){.data = resource->name, .bytes = resource->name_bytes};
}

/* Returns the resource of a gate; NULL for none. */
static inline struct bel_resource *bel__resource_of(struct bel_gate *gate)
{
    return (struct bel_resource *)gate;
}

#endif
