/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_ENGINE_H
#define BEL_ENGINE_ENGINE_H

/*
 * engine - the engine's parts in one struct, and who calls whom: only downwards.
 *
 *     engine        open, close, a turn
 *     commands      schedule  cancel  claim  finish  bulk  configure  list  explain  agenda
 *     a turn's own  due  lease_timeout  expiry  retention
 *     reactions     what follows from a change of a timer
 *     plans         plan_ring ---> occurrence ---> plan ---> plan_rule, plan_bounds
 *     timers        timer: change one ---> timer_lookup: find one
 *     memory        ready  lease  wait  wakes  topic  picker  settings  answers  times
 *     rows          rows/: keys, records, counts, blobs, and writing them
 *
 * timer and lease report what they have changed to reactions, through a table: timer_events.h.
 *
 * Every command has three parts: look (may fail), reserve (may fail), change (cannot). So a
 * command that fails has changed nothing.
 */

#include "belfry/backend.h"
#include "belfry/engine.h"
#include "core/entropy.h"
#include "engine/answers.h"
#include "engine/expiry.h"
#include "engine/lease.h"
#include "engine/plan_bounds.h"
#include "engine/request_list.h"
#include "engine/rows/key.h"
#include "engine/rows/rows.h"
#include "engine/timer_events.h"
#include "engine/times.h"
#include "engine/topic.h"
#include "engine/wait.h"
#include "engine/wakes.h"
#include "store/store.h"

struct bel_engine {
    struct bel_backend backend; /* first */
    struct bel_engine_options options;
    struct bel_store *store;
    struct bel_rows rows;
    struct bel_entropy *entropy;
    const struct bel_timer_events *events; /* who reacts to changes */
    struct bel_times now;
    uint32_t wall_rest_ns; /* of its millisecond; 0: not known */
    struct bel_topics topics;
    struct bel_leases leases;
    struct bel_waiting waiting;
    struct bel_expiry expiry;
    struct bel_plan_bounds bounds;
    struct bel_wakes wakes;
    struct bel_siphash_key alias_keys[2];
    uint64_t saved_open; /* open time when it was last to be written */
    struct bel_request_list submitted;
    struct bel_request_list bulk; /* purges and revivals under way */
    struct bel_answers answers;
    struct bel_engine_stats stats;
    uint32_t load_left; /* rows that may still be loaded in this turn */
    bool is_behind;     /* there is more to do than a turn does */
    bool is_full;       /* the batch takes no more requests */
    int broken;         /* an error after which nothing can be trusted */
};

/* Opens an engine on a store, which is the engine's from then on, and a source of chance, which is
 * borrowed. If it fails, the store stays the caller's. */
BEL_CHECKED int bel__engine_open_on(const struct bel_engine_options *options,
                                    struct bel_store *store, struct bel_entropy *entropy,
                                    struct bel_engine **out);

#endif
