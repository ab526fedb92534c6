/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_ENGINE_H
#define BEL_ENGINE_ENGINE_H

/*
 * engine - what the files of this folder share: the engine's parts, the steps that change a
 * timer, and the commands.
 *
 *     engine.c     open, close, a turn            schedule.c  cancel.c  claim.c  finish.c
 *     times.c      the three timelines            list.c  topics_verbs.c  bulk.c  agenda.c
 *     topic.c      topics in memory               explain.c   (the commands)
 *     timer.c      find, write, move, end a timer
 *     ready.c      what has come due              record.c  key.c  wire.h   (rows)
 *     lease.c      leases in memory               picker.c    who is next
 *     plan.c       plans and their occurrences    wait.c      claims that wait
 *
 * Every command has three parts: look (may fail), reserve (may fail), change (cannot). So a command
 * that fails has changed nothing.
 */

#include "belfry/backend.h"
#include "belfry/engine.h"
#include "core/entropy.h"
#include "core/list.h"
#include "core/slab.h"
#include "engine/arena.h"
#include "engine/counts.h"
#include "engine/key.h"
#include "engine/record.h"
#include "engine/topic.h"
#include "store/store.h"

enum {
    BEL_HOUR_MS = 3600 * 1000,
    BEL_DO_LATER = 1, /* of a command: it goes on in the next turn */
    BEL_DO_WAIT = 2,  /* it is a claim that waits */
};

/* The present, on every timeline, in ms. A time that something is measured from is rounded up,
 * so that what is counted from it is never early. */
struct bel_times {
    int64_t wall;
    uint64_t engine, engine_up;
    uint64_t open, open_up;
    struct bel_boot boot;
    struct bel_mono real;
    uint64_t engine_base, open_base; /* what they are ahead of the boot clock */
    uint64_t open_start;             /* open time when it was opened */
    int64_t offset;                  /* wall - engine, as of the last step */
};

/* A lease in memory. */
struct bel_lease {
    struct bel_key key; /* the timer's */
    struct bel_topic_state *topic;
    struct bel_share *share; /* that it counts for */
    bel_timer_t timer;       /* in the wheel of leases */
    uint64_t end, lease_ms, due;
    uint8_t secret[BEL_TOKEN_SECRET_BYTES];
};

struct bel_leases {
    struct bel_map map; /* key -> index */
    struct bel__slab slab;
    struct bel_wheel *wheel; /* by open time */
};

struct bel_waiting {
    struct bel_list orphans; /* waiters for topics that do not exist */
    struct bel_list hot;     /* topics whose waiters may be served */
    struct bel_wheel *wheel; /* by real time, ns */
    uint64_t parked;         /* claims so far: says who came first */
    uint64_t served;         /* deliveries so far: topics remember theirs */
};

/* Where a request is, and what the engine notes in it: request->own.words. */
enum bel_stage {
    BEL_STAGE_SUBMITTED,
    BEL_STAGE_WAITING,
    BEL_STAGE_BULK,
    BEL_STAGE_ANSWERED,
};

enum bel_own {
    BEL_OWN_STAGE,
    BEL_OWN_WAITERS, /* of a claim that waits: their memory, the entry in the wheel, which one */
    BEL_OWN_TIMER,
    BEL_OWN_PARKED,
    BEL_OWN_FREE, /* from here on a command's own */
};

/* The hourly look at what nobody else looks at. */
struct bel_expiry {
    bool is_armed, is_running;
    bool has_seen;  /* one that can expire, since it began */
    uint64_t at;    /* engine time, if armed */
    uint32_t topic; /* where it is, if it runs */
    struct bel_key place;
};

/* The answers of one batch, and what they point to. */
struct bel_answers {
    struct bel_answers *next;
    struct bel_request *first, **last;
    struct bel_arena arena;
    uint64_t batch;
};

struct bel_engine {
    struct bel_backend backend; /* first */
    struct bel_engine_options options;
    struct bel_store *store;
    struct bel_entropy *entropy;
    struct bel_times now;
    struct bel_topics topics;
    struct bel_counts counts;
    struct bel_leases leases;
    struct bel_waiting waiting;
    struct bel_expiry expiry;
    struct bel_wheel *wakes[BEL_LANES_TIMED]; /* of topics; user: number, what */
    struct bel_siphash_key alias_keys[2];
    uint64_t sequence;   /* the next */
    uint64_t saved_open; /* open time as it was last written */
    struct bel_request *submitted, **submitted_last;
    struct bel_request *bulk, **bulk_last; /* purges and revivals under way */
    struct bel_answers *answering;         /* of the batch that is being made */
    struct bel_answers *unsynced;          /* of earlier ones, from old to new */
    struct bel_answers *spare;
    uint32_t load_left; /* rows that may still be loaded in this turn */
    bool is_behind;     /* there is more to do than a turn does */
    bool has_changed;   /* something was put in this batch */
    int broken;         /* an error after which nothing can be trusted */
};

/* Opens an engine on a store, which is the engine's from then on, and a source of chance, which is
 * borrowed. If it fails, the store stays the caller's. */
BEL_CHECKED int bel__engine_open_on(const struct bel_engine_options *options,
                                    struct bel_store *store, struct bel_entropy *entropy,
                                    struct bel_engine **out);

/* --- times.c --- */

/* Begins time: engine and open time go on from what was written down. */
void bel__times_open(struct bel_times *times, struct bel_now now, uint64_t engine, uint64_t open);

/* Moves the present. True if it was a step: see docs/SEMANTICS.md. */
bool bel__times_move(struct bel_times *times, struct bel_now now);

/* The present on a lane; and a time of a lane in wall ms, as of now. */
uint64_t bel__lane_now(const struct bel_times *times, uint8_t lane);
uint64_t bel__lane_wall(const struct bel_times *times, uint8_t lane, uint64_t time);

/* A time so many ms from now on the engine's lane; BEL_EINVAL after the year 9999. */
BEL_CHECKED int bel__times_after(const struct bel_times *times, uint64_t delay_ms, uint64_t *out);
bool bel__time_is_valid(uint64_t ms);

/* --- engine.c --- */

/* Sets the error of a reply and returns it. */
int bel__refuse(struct bel_reply *reply, int err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Makes room for `rows` rows of `bytes` bytes, and for the numbers that they will change. */
BEL_CHECKED int bel__engine_reserve(struct bel_engine *engine, size_t rows, size_t bytes,
                                    enum bel_store_use use);
void bel__engine_put(struct bel_engine *engine, const struct bel_key *key, struct bel_view value,
                     enum bel_row row);
void bel__engine_delete(struct bel_engine *engine, const struct bel_key *key);
uint64_t bel__engine_sequence(struct bel_engine *engine);

/* Memory for the answer. */
void *bel__engine_take(struct bel_engine *engine, size_t bytes);
struct bel_view bel__engine_copy(struct bel_engine *engine, struct bel_view view);

/* A request is answered when this batch is durable. */
void bel__engine_answer(struct bel_engine *engine, struct bel_request *request);

/* --- timer.c: what can be done to a timer --- */

/* A timer or a plan that was found: where, in what state, and its record. */
struct bel_found {
    struct bel_topic_state *topic;
    struct bel_key key; /* in TIMERS, ENDED or PLANS */
    enum bel_state state;
    struct bel_record record;   /* views into the row: good until the batch ends */
    struct bel_lease *lease;    /* if leased */
    struct bel_plan_state plan; /* of a plan that has not ended */
    struct bel_after *after;    /* what its end will do to its plan: bel__timer_reserve() */
};

/* Finds by id, ends what has expired meanwhile, and leaves out what is past its retention.
 * Returns 0; BEL_ENOTFOUND; or why it cannot look. */
BEL_CHECKED int bel__timer_find(struct bel_engine *engine, struct bel_topic_state *topic,
                                struct bel_view id, struct bel_found *out);

/* Reads what is under a key of TIMERS, ENDED or PLANS; a tick leads to its plan. */
BEL_CHECKED int bel__timer_load(struct bel_engine *engine, const struct bel_key *key,
                                struct bel_found *out);

/* As above with a row of TIMERS or ENDED at hand. */
BEL_CHECKED int bel__timer_read(struct bel_engine *engine, const struct bel_key *key,
                                struct bel_view row, struct bel_found *out);

/* Whether it has expired but nobody has looked; whether it has ended long enough ago. */
bool bel__timer_is_expired(const struct bel_engine *engine, const struct bel_found *found);
bool bel__timer_is_over(const struct bel_engine *engine, const struct bel_found *found);

/* When it is due, in wall ms. */
int64_t bel__timer_due(const struct bel_engine *engine, const struct bel_found *found);

/* Makes sure that one of the changes below can be done to a timer that was found, and that
 * `more_bytes` of a blob can be put. */
BEL_CHECKED int bel__timer_reserve(struct bel_engine *engine, struct bel_found *found,
                                   uint64_t more_bytes, enum bel_store_use use);

/* Makes sure that it can be added or moved to `place`. Reserves nothing in the store. */
BEL_CHECKED int bel__timer_hold(struct bel_engine *engine, const struct bel_topic_state *topic,
                                const struct bel_place *place, struct bel_view group);

/* How many rows and bytes adding a record takes in the store, besides its blobs. */
enum {
    BEL_TIMER_ROWS = 32,
    BEL_TIMER_BYTES = 3 * BEL_RECORD_BYTES_MAX,
};

/* Adds an unfinished timer, of whose id there is none. */
void bel__timer_add(struct bel_engine *engine, struct bel_topic_state *topic,
                    const struct bel_place *place, const struct bel_record *record);

/* Removes a timer or plan without a trace, whatever its state. */
void bel__timer_remove(struct bel_engine *engine, const struct bel_found *found);

/* Writes its record again. */
void bel__timer_rewrite(struct bel_engine *engine, const struct bel_found *found);

/* Moves an unfinished timer to another place, for which it must be held; its lease ends. */
void bel__timer_move(struct bel_engine *engine, struct bel_found *found,
                     const struct bel_place *place);

/* A new place in a topic, with a new sequence. */
struct bel_place bel__timer_place(struct bel_engine *engine, const struct bel_topic_state *topic,
                                  uint8_t lane, uint64_t time, uint8_t priority);

/* Ends an unfinished timer or plan: keeps it for its retention, or removes it. */
struct bel_ending {
    enum bel_state state;
    struct bel_view reason;
    struct bel_view result; /* of an ack */
};
void bel__timer_end(struct bel_engine *engine, struct bel_found *found,
                    const struct bel_ending *ending);

/* Reserves and ends. */
BEL_CHECKED int bel__timer_expire(struct bel_engine *engine, struct bel_found *found);

/* Aliases: from the id of a timer to its key, unless the id itself says it. */
void bel__alias_put(struct bel_engine *engine, const struct bel_key *key, struct bel_view id);
void bel__alias_delete(struct bel_engine *engine, const struct bel_key *key, struct bel_view id);

/* --- blob.c --- */

/* Rows that bytes take as chunks. */
size_t bel__blob_rows(uint64_t bytes);
struct bel_blob bel__blob_put(struct bel_engine *engine, struct bel_view bytes, size_t inline_max);
void bel__blob_delete(struct bel_engine *engine, const struct bel_blob *blob);

/* All of it in one piece: in the row, or put together in the memory of the answer. */
BEL_CHECKED int bel__blob_get(struct bel_engine *engine, const struct bel_blob *blob,
                              struct bel_view *out);

/* --- ready.c --- */

/* A timer is, or is no more, at a key that is not leased. */
void bel__ready_enter(struct bel_engine *engine, struct bel_topic_state *topic,
                      const struct bel_key *key, struct bel_view group);
void bel__ready_leave(struct bel_engine *engine, struct bel_topic_state *topic,
                      const struct bel_key *key, struct bel_view group);

/* A plan's tick is at a key; it may be one that has been read past. */
void bel__ready_tick(struct bel_engine *engine, struct bel_topic_state *topic,
                     const struct bel_key *key);

/* Something will come due in a lane. */
void bel__ready_wake(struct bel_engine *engine, struct bel_topic_state *topic, uint8_t lane,
                     uint64_t time);

/* Reads on what has come due. */
BEL_CHECKED int bel__ready_turn(struct bel_engine *engine);

/* Where the timer is that the picker has chosen. */
struct bel_key bel__ready_key(const struct bel_topic_state *topic, const struct bel_ready *ready);

/* Forgets what is ready, to be read anew. */
void bel__ready_forget(struct bel_engine *engine, struct bel_topic_state *topic);

/* When a topic's ended timers are to be looked at again, in wall ms. */
void bel__sweep_wake(struct bel_engine *engine, struct bel_topic_state *topic, uint64_t time);
BEL_CHECKED int bel__sweep_topic(struct bel_engine *engine, struct bel_topic_state *topic);

/* --- expiry.c --- */

/* A timer is about, which may expire; the hourly look for those that have, and when it is due,
 * in engine time. */
void bel__expiry_expect(struct bel_engine *engine, const struct bel_record *record);
BEL_CHECKED int bel__expiry_turn(struct bel_engine *engine);
uint64_t bel__expiry_next(const struct bel_engine *engine);

/* --- lease.c --- */

BEL_CHECKED int bel__leases_open(struct bel_engine *engine);
void bel__leases_close(struct bel_engine *engine);

/* The lease of a timer; the live one that a token names. NULL if there is none. */
struct bel_lease *bel__lease_find(const struct bel_engine *engine, const struct bel_key *key);
struct bel_lease *bel__lease_by_token(const struct bel_engine *engine, struct bel_view token);

/* A lease of a timer that is ready, from now; in memory and in the store, where a row and
 * BEL_RECORD_BYTES_MAX are reserved. BEL_ENOMEM, BEL_EIO. */
BEL_CHECKED int bel__lease_make(struct bel_engine *engine, const struct bel_found *found,
                                uint64_t lease_ms, struct bel_view worker, struct bel_lease **out);
BEL_CHECKED int bel__lease_extend(struct bel_engine *engine, struct bel_lease *lease,
                                  uint64_t lease_ms);

/* Ends a lease, in memory and in the store. */
void bel__lease_drop(struct bel_engine *engine, struct bel_lease *lease);

/* Takes back what has not been finished in time. */
BEL_CHECKED int bel__leases_turn(struct bel_engine *engine);

/* --- plan.c --- */

/* Adds a plan; its body has been put. `first` is its first nominal time. */
BEL_CHECKED int bel__plan_first(struct bel_engine *engine, const struct bel_schedule_spec *spec,
                                struct bel_record *record, struct bel_text_error *why,
                                uint64_t *out);
void bel__plan_add(struct bel_engine *engine, struct bel_topic_state *topic,
                   struct bel_record *record, uint64_t number, uint64_t first);

/* A plan's tick has come due. */
BEL_CHECKED int bel__plan_ring(struct bel_engine *engine, struct bel_found *found);

/* Sets the next nominal time. Reserved by bel__timer_reserve(). */
BEL_CHECKED int bel__plan_reschedule(struct bel_engine *engine, struct bel_found *found,
                                     uint64_t nominal);

/* Cancels the unfinished occurrences of a plan. */
BEL_CHECKED int bel__plan_cancel_occurrences(struct bel_engine *engine,
                                             const struct bel_found *found);

/* What the end of an occurrence does to its plan: looked up, and then done. */
BEL_CHECKED int bel__after_look(struct bel_engine *engine, const struct bel_found *found,
                                struct bel_after **out);
void bel__after_do(struct bel_engine *engine, struct bel_after *after);

/* A dead occurrence is revived. */
void bel__occurrence_put(struct bel_engine *engine, const struct bel_topic_state *topic,
                         const struct bel_record *record);

/* The plan that a record describes. */
BEL_CHECKED int bel__plan_of(struct bel_engine *engine, const struct bel_record *record,
                             struct bel_plan **out, struct bel_text_error *why);

/* --- wait.c --- */

BEL_CHECKED int bel__wait_open(struct bel_engine *engine);
void bel__wait_close(struct bel_engine *engine);

/* Lets a claim wait. BEL_ENOMEM. */
BEL_CHECKED int bel__wait_park(struct bel_engine *engine, struct bel_request *request);
void bel__wait_leave(struct bel_engine *engine, struct bel_request *request);

/* A topic may have something for who waits for it; a topic has come to be. */
void bel__wait_mark(struct bel_engine *engine, struct bel_topic_state *topic);
void bel__wait_adopt(struct bel_engine *engine, struct bel_topic_state *topic);

/* Serves those who wait, first come first served; and ends waits that are over. */
void bel__wait_serve(struct bel_engine *engine);
void bel__wait_turn(struct bel_engine *engine);

/* --- claim.c --- */

/* Delivers what there is to a claim. Returns 0, with or without deliveries, or why not. */
int bel__claim_deliver(struct bel_engine *engine, struct bel_request *request);

/* --- describe.c --- */

/* A timer as users see it, its memory that of the answer. */
BEL_CHECKED int bel__describe(struct bel_engine *engine, const struct bel_found *found,
                              struct bel_timer *out);
BEL_CHECKED int bel__describe_headers(struct bel_engine *engine, const struct bel_found *found,
                                      const struct bel_body *body, const struct bel_header **out,
                                      size_t *out_count);

/* --- the commands: each fills in the reply, and returns 0 or its error --- */

int bel__do_schedule(struct bel_engine *engine, struct bel_request *request);
int bel__do_cancel(struct bel_engine *engine, struct bel_request *request);
int bel__do_reschedule(struct bel_engine *engine, struct bel_request *request);
int bel__do_get(struct bel_engine *engine, struct bel_request *request);
int bel__do_claim(struct bel_engine *engine, struct bel_request *request);
int bel__do_ack(struct bel_engine *engine, struct bel_request *request);
int bel__do_fail(struct bel_engine *engine, struct bel_request *request);
int bel__do_release(struct bel_engine *engine, struct bel_request *request);
int bel__do_extend(struct bel_engine *engine, struct bel_request *request);
int bel__do_list(struct bel_engine *engine, struct bel_request *request);
int bel__do_revive(struct bel_engine *engine, struct bel_request *request);
int bel__do_purge(struct bel_engine *engine, struct bel_request *request);
int bel__do_topics(struct bel_engine *engine, struct bel_request *request);
int bel__do_topic(struct bel_engine *engine, struct bel_request *request);
int bel__do_configure(struct bel_engine *engine, struct bel_request *request);
int bel__do_pause(struct bel_engine *engine, struct bel_request *request);
int bel__do_resume(struct bel_engine *engine, struct bel_request *request);
int bel__do_explain(struct bel_engine *engine, struct bel_request *request);
int bel__do_agenda(struct bel_engine *engine, struct bel_request *request);

#endif
