/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_ENGINE_H
#define BEL_ENGINE_ENGINE_H

/*
 * engine - the engine's parts in one place, and what all of them use.
 *
 *     engine.c     open, close, a turn            schedule.c  cancel.c  claim.c  finish.c
 *     times.c      the three timelines            list.c  configure.c  bulk.c  agenda.c
 *     topic.c      topics in memory               explain.c   (the commands)
 *     timer.c      find, write, move, end a timer
 *     ready.c      what has come due              record.c  key.c  wire.h   (rows)
 *     lease.c      leases in memory               picker.c    who is next
 *     plan.c       plans and their occurrences    wait.c      claims that wait
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
#include "engine/times.h"
#include "engine/topic.h"
#include "engine/wait.h"
#include "store/store.h"

struct bel_engine {
    struct bel_backend backend; /* first */
    struct bel_engine_options options;
    struct bel_store *store;
    struct bel_rows rows;
    struct bel_entropy *entropy;
    struct bel_times now;
    uint32_t wall_rest_ns; /* of its millisecond; 0: not known */
    struct bel_topics topics;
    struct bel_leases leases;
    struct bel_waiting waiting;
    struct bel_expiry expiry;
    struct bel_plan_bounds bounds;
    struct bel_wheel *wakes[BEL_LANES_TIMED]; /* of topics; user: number, what */
    struct bel_siphash_key alias_keys[2];
    uint64_t saved_open; /* open time when it was last to be written */
    struct bel_request_list submitted;
    struct bel_request_list bulk; /* purges and revivals under way */
    struct bel_answers answers;
    struct bel_engine_stats stats;
    uint32_t load_left; /* rows that may still be loaded in this turn */
    bool is_waking;     /* a topic may be due to be woken */
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
