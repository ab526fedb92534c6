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
#include "engine/arena.h"
#include "engine/expiry.h"
#include "engine/lease.h"
#include "engine/plan_bounds.h"
#include "engine/rows/counts.h"
#include "engine/rows/key.h"
#include "engine/times.h"
#include "engine/topic.h"
#include "engine/wait.h"
#include "store/store.h"

/* The answers of one batch, and what they point to. */
struct bel_answers {
    struct bel_answers *next;
    struct bel_request *first, **last;
    struct bel_arena arena;
    uint64_t batch;
};

/* What is reserved in the store and not used yet. */
struct bel_room {
    size_t rows, bytes;
    enum bel_store_use use;
};

struct bel_engine {
    struct bel_backend backend; /* first */
    struct bel_engine_options options;
    struct bel_store *store;
    struct bel_room room;
    struct bel_entropy *entropy;
    struct bel_times now;
    uint32_t wall_rest_ns; /* of its millisecond; 0: not known */
    struct bel_topics topics;
    struct bel_counts counts;
    struct bel_leases leases;
    struct bel_waiting waiting;
    struct bel_expiry expiry;
    struct bel_plan_bounds bounds;
    struct bel_wheel *wakes[BEL_LANES_TIMED]; /* of topics; user: number, what */
    struct bel_siphash_key alias_keys[2];
    uint64_t sequence;   /* the next */
    uint64_t saved_open; /* open time when it was last to be written */
    struct bel_request *submitted, **submitted_last;
    struct bel_request *bulk, **bulk_last; /* purges and revivals under way */
    struct bel_answers *answering;         /* of the batch that is being made */
    struct bel_answers *unsynced;          /* of earlier ones, from old to new */
    struct bel_answers *spare;
    struct bel_engine_stats stats;
    uint32_t load_left; /* rows that may still be loaded in this turn */
    bool is_waking;     /* a topic may be due to be woken */
    bool is_behind;     /* there is more to do than a turn does */
    bool is_full;       /* the batch takes no more requests */
    bool has_changed;   /* something was put in this batch */
    int broken;         /* an error after which nothing can be trusted */
};

/* Opens an engine on a store, which is the engine's from then on, and a source of chance, which is
 * borrowed. If it fails, the store stays the caller's. */
BEL_CHECKED int bel__engine_open_on(const struct bel_engine_options *options,
                                    struct bel_store *store, struct bel_entropy *entropy,
                                    struct bel_engine **out);

/* Sets the error of a reply and returns it. */
int bel__refuse(struct bel_reply *reply, int err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* What a command on many things returns when it cannot go on, after `count` of them. If the batch
 * is full it is called again with the next one, in BEL_STAGE_BULK, and goes on. */
int bel__break_off(struct bel_request *request, int err, uint64_t count);

/* Makes room for `rows` rows of `bytes` bytes, and for the numbers that they will change. */
BEL_CHECKED int bel__engine_reserve(struct bel_engine *engine, size_t rows, size_t bytes,
                                    enum bel_store_use use);
void bel__engine_put(struct bel_engine *engine, const struct bel_key *key, struct bel_view value,
                     enum bel_row row);
void bel__engine_delete(struct bel_engine *engine, const struct bel_key *key);
uint64_t bel__engine_sequence(struct bel_engine *engine);

/* Writes down the counts that have changed. There must be room. */
void bel__engine_put_counts(struct bel_engine *engine);

/* Memory for the answer. */
void *bel__engine_take(struct bel_engine *engine, size_t bytes);
struct bel_view bel__engine_copy(struct bel_engine *engine, struct bel_view view);

/* A request is answered when this batch is durable. */
void bel__engine_answer(struct bel_engine *engine, struct bel_request *request);

#endif
