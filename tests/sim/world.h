/* SPDX-License-Identifier: MIT */
#ifndef BEL_TESTS_SIM_WORLD_H
#define BEL_TESTS_SIM_WORLD_H

/*
 * world - all there is in one history: an engine on a disk that breaks, its clocks, those who
 * ask it, and two who watch.
 *
 *     run.c      phases, turns, crashes        orders.c   what is asked
 *     world.c    clocks, disk, opening         memory.c   malloc that fails when told
 *     judge.c    the model beside the engine   tree.c disk.c   what breaks
 *     book.c     what is always true           main.c     seeds and swarms
 *     speakers.c clients of a server           tap.c      between their sessions and the engine
 *     listen.c   what they hear                drain.c    how a history begins and ends
 *     keys.c     what they may do              copy.c     backups
 *     web.c      orders over HTTP              press.c    how close limits are
 *     walk.c     lists, page by page           watch.c    what an engine shows of itself
 *     foreman.c  what is always true of jobs   slabs.c    memory that openings share
 *
 * The judge is exact: it gives a naive model the same requests at the same times and compares
 * every answer; after a crash the engine must be where the model was after some turn, from the
 * last one that was answered on. Where the engine may differ from the model, because it lacks
 * room or memory, there is no judge. The book knows less, and is always there.
 *
 * All of it follows from the seed.
 */

#include "../conformance/differ.h"
#include "../conformance/heard.h"
#include "../random.h"
#include "belfry/backend.h"
#include "belfry/engine.h"
#include "core/entropy.h"
#include "core/why.h"
#include "disk.h"
#include "model.h"
#include "tree.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    TOPICS = 4,
    TOPIC_BYTES = 8,
    LOOKS = 3, /* for each topic: TOPIC, LIST, TOPIC */
    LOOKS_LIST = 1,
    LOOKS_TOPICS = TOPICS * LOOKS, /* then LIMIT, of all resources, and JOB LIST */
    LOOK_TURNS_MAX = 400,          /* without a page of a look */
    ORDER_NAMES = 3,               /* ids, tokens or topics of one order, at most */
    ENGINE_SIDE = 0,
    MODEL_SIDE = 1,
    SIDES = 2,
};

#define START_MS INT64_C(1767225600000)

/* What can go wrong; a seed has each with a chance of 1/2. */
enum fault {
    FAULT_CRASH,    /* the power fails, or the process is killed */
    FAULT_RECOVERY, /* the same, while it recovers */
    FAULT_SYNC,     /* a sync fails */
    FAULT_WRITE,    /* a write fails */
    FAULT_CLOCK,    /* somebody sets the wall clock */
    FAULT_SUSPEND,  /* hours pass in one turn */
    FAULT_REPLY,    /* a reply is lost */
    FAULT_RETRY,    /* clients ask again with the same id */
    FAULT_WORKER,   /* workers are slow, crash, use old tokens */
    FAULT_REOPEN,   /* an orderly close and open */
    FAULT_SPACE,    /* the disk is full for a while; no judge from here on */
    FAULT_MEMORY,   /* malloc fails */
    FAULT_TINY,     /* hardly anything fits into memory or a segment */
    FAULTS,
};

/* What is asked for at all; some exclude each other for the judge, as in prop_engine.c. */
enum feature {
    FEATURE_PLANS,
    FEATURE_EXPIRY,
    FEATURE_GROUPS,
    FEATURE_CONCURRENCY,
    FEATURE_RETENTION,
    FEATURE_DEPTH,
    FEATURE_WAITS,
    FEATURE_SPREAD,
    FEATURE_BIG, /* payloads that take chunks */
    FEATURE_PURGE,
    FEATURE_LATE_SYNC, /* answers come a turn later */
    FEATURE_SLOW_SYNC, /* or several, as if a thread were at it */
    FEATURE_PAGES,     /* lists of few, from cursor to cursor */
    FEATURE_ZONES,     /* plans in zones, at a time when clocks change */
    FEATURE_RRULE,     /* plans with recurrence rules */
    FEATURE_WEB,       /* orders over HTTP, unless they are spoken */
    FEATURE_BACKUP,    /* copies, onto disks that break */
    FEATURE_LAZY,      /* answers come before the sync: a power cut may lose them */
    FEATURE_LIMITS,    /* resources, and LIMIT */
    FEATURE_JOBS,
    FEATURES,
};

struct config {
    uint64_t seed;
    uint64_t orders; /* how many are to be asked */
    bool faults[FAULTS];
    bool features[FEATURES];
    uint64_t segment_bytes;
    uint32_t segment_count;
    size_t transaction_rows;
    uint32_t bulk_changes; /* by PURGE or REVIVE in one turn; 0: as many as the engine likes */
    uint32_t page_timers;  /* on a page, when the simulator itself looks at a topic */
    uint32_t ready_max;
    bool has_direct;
    uint64_t interval_ms;   /* from a write to its sync, if lazy; 0: any time */
    unsigned turn_max;      /* orders of a turn */
    unsigned crash_in_1000; /* chance of a turn, as are the next */
    unsigned sync_in_1000;
    unsigned reopen_in_1000;
    unsigned worker_in_100; /* that a worker does the wrong thing */
    uint64_t pace_ms;       /* typical durations */
    int64_t start_ms;       /* wall time when it begins */
    bool is_loud;
    bool is_calm;            /* what is due is done before anybody asks */
    bool is_spoken;          /* asked in bytes, through sessions, by so many clients at most */
    unsigned speakers_max;   /* who hang up, do not read, and whose bytes are cut so often: */
    unsigned hang_up_in_100; /* chance of a turn */
    unsigned stall_in_100;   /* of a client and a turn, as is the next */
    unsigned cut_in_100;
    size_t output_bytes_max, commands_max; /* of a session */
    bool has_keys;                         /* clients must authenticate */
    bool has_pressure;                     /* limits are close, now and then */
    bool is_judged;                        /* there is a judge, at first */
};

struct bel_store;
struct world;
struct speaker;

/* One request, to both sides, and all that it points to. */
struct order {
    struct bel_request requests[SIDES];
    struct heard *heard[SIDES];
    struct bel_request *request; /* that the engine has: its own, or a session's; NULL: none */
    void (*done)(struct bel_request *request, const struct bel_reply *reply); /* the session's */
    void *user;                                                               /* the session's */
    struct web *web;         /* if it is asked over HTTP; or NULL */
    struct speaker *speaker; /* who asks; NULL: the simulator itself */
    struct heard *passed;    /* what the engine told the session */
    struct order *claim;     /* a session takes back a delivery of this one, and which; or NULL */
    size_t claim_place;
    uint64_t taken_back; /* a set of deliveries */
    size_t first_handed; /* of its deliveries; SIZE_MAX: none yet */
    struct world *world;
    uint64_t number;
    size_t event;      /* after how many the model has answered */
    bool is_told;      /* the engine has answered */
    bool is_over;      /* it never will */
    bool is_lost;      /* who asked does not get the answer */
    bool is_look;      /* asked by the simulator itself; a list is asked to its last page */
    bool has_more;     /* pages of a look that the engine has not told yet */
    bool is_answered;  /* by the model */
    bool is_page;      /* may be a part of what the model, which lists all, has */
    bool is_refused;   /* for want of room; the model does not hear of it */
    bool is_sliced;    /* the engine has taken several turns for it */
    bool is_sent_home; /* a claim that waited when the server was stopped */
    bool is_read;      /* it has changed nothing, and shows what there is */
    uint64_t shows;    /* the batch that changed that last, if it is a read */
    struct bel_view ids[SIDES][ORDER_NAMES], tokens[SIDES][ORDER_NAMES], topics[ORDER_NAMES];
    size_t handed[ORDER_NAMES]; /* whose tokens; SIZE_MAX: of nobody */
    struct bel_setting settings[1];
    struct bel_header headers[2];
    char id[BEL_ID_BYTES + 1];
    char *payload;
};

/* A delivery that a worker has. */
struct handed {
    char tokens[SIDES][BEL_TOKEN_BYTES_MAX + 1];
    char topic[TOPIC_BYTES], id[BEL_ID_BYTES + 1];
    bool is_known; /* the worker has heard of it */
};

struct list_of_orders {
    struct order **items;
    size_t count;
};

/* Chance for the engine: a seeded source, but a word, which is asked for by retries alone, is
 * the one that the model gets too. */
struct sim_entropy {
    struct bel_entropy entropy; /* first */
    struct bel_entropy_seeded seeded;
    uint64_t word;
};

struct bel_store;
struct judge;
struct book;
struct speakers;
struct walk;
struct copy;
struct web;
struct foreman;

struct world {
    struct config config;
    uint64_t random;
    uint64_t press_random; /* of press.c */
    struct bel_now now;
    struct disk *disk;
    struct sim_tree tree;
    struct sim_entropy entropy;
    struct bel_entropy_seeded store_entropy;
    struct bel_engine *engine; /* NULL: it is not open */
    struct bel_next next;
    struct judge *judge;  /* NULL: there is none any more */
    const char *unjudged; /* why there is no judge; or NULL */
    struct book *book;
    struct foreman *foreman;
    struct speakers *speakers; /* NULL: there are none */
    struct walk *walk;
    struct copy *copy;

    struct list_of_orders orders; /* all of them */
    struct list_of_orders fresh;  /* submitted to the engine, and not yet to the model */
    struct list_of_orders taken;  /* deliveries that were taken back, and not yet noted */
    struct list_of_orders asked;  /* those that the engine has */
    struct list_of_orders told;   /* in this turn */
    struct handed **handed;
    size_t handed_count;
    char (*seen)[BEL_ID_BYTES + 1]; /* ids of occurrences and the like, from answers */
    size_t seen_count;

    uint64_t drawn; /* orders so far */
    uint64_t work;  /* turns of the engine and of the model, again and again after a crash */
    uint64_t pages; /* of lists that were told */
    uint64_t turns, crashes, opens, deliveries, refusals;
    uint64_t recovered;               /* the last batch that the last opening has found */
    uint64_t synced;                  /* the last one that is durable, as the store has it */
    uint64_t unsynced_ns;             /* since when there is a later one; UINT64_MAX: never */
    uint64_t boot_opened_ns, open_ms; /* how long it was open before, and when this time began */
    uint64_t held_until_ns;           /* real time until which requests are held back */
    bool is_sync_armed, is_write_armed;
    bool is_healed;      /* nothing breaks any more */
    bool is_inside;      /* of the engine */
    bool is_tight;       /* the last turn may have had no room to add */
    struct bel_now calm; /* when that was done last */
    bool is_short;       /* a turn was not enough for what was due in it */
    bool has_caught_up;  /* this turn took several of the engine, for what was due */
    bool has_gone_on;    /* this turn took several of the engine, for an order */
    uint64_t hash;

    bool has_failed;
    char invariant[40], detail[700];
};

/* --- world.c --- */

/* `faults` instead of those that the seed would have, unless it is NULL. */
struct config config_draw(uint64_t seed, uint64_t orders, const bool *faults);
/* Asks in bytes, whatever the seed says. */
void config_speak(struct config *config);
bool fault_find(const char *name, size_t bytes, enum fault *out);
const char *fault_name(enum fault fault);

void world_init(struct world *world, const struct config *config);
void world_finish(struct world *world);

/* Notes what is wrong; the first time counts. */
void world_fail(struct world *world, const char *invariant, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void say(const struct world *world, const char *format, ...) __attribute__((format(printf, 2, 3)));

uint64_t below(struct world *world, uint64_t end);
bool chance(struct world *world, unsigned percent);
bool has_fault(const struct world *world, enum fault fault);
bool has_feature(const struct world *world, enum feature feature);
struct bel_view view_of(const char *text);
void world_hash(struct world *world, const void *data, size_t bytes);

/* Counts a turn. A history that has had far too many fails. */
void world_work(struct world *world);

/* Time passes on every clock; or the wall clock is set. */
void world_pass(struct world *world, uint64_t ms, bool is_suspended);
void world_step_wall(struct world *world, int64_t ms);
struct bel_now world_start(const struct world *world);
/* The zones of the system, for all worlds. */
struct bel_zones *world_zones(void);
/* How long the engine has been open, in all. */
uint64_t world_open_ms(const struct world *world);

/* Opens the engine on what the disk has. Returns 0, or why not. */
int world_open(struct world *world, struct bel_why *why);
/* An end in order; or as if the process had been killed, without a word to the disk. */
void world_close(struct world *world, bool is_orderly);
/* A number that stands for all rows of the store, or of another. */
uint64_t world_digest(struct world *world);
uint64_t store_digest(struct world *world, struct bel_store *store);

/* --- memory.c --- */

/* Lets the `count`-th allocation of the engine fail from now on; 0: none. */
void memory_fail_in(uint64_t count);
void memory_enter(bool is_inside);
uint64_t memory_failures(void);
/* The thread that syncs gets nowhere for now. */
void thread_hold(bool is_held);
/* Requests that add, or change anything, are held back for so long. */
void requests_hold(uint64_t add_ns, uint64_t change_ns);

/* --- orders.c --- */

struct order *order_make(struct world *world, enum bel_verb verb);
struct order *order_draw(struct world *world);
/* Whether an order is one of JOB. */
bool order_is_job(const struct order *order);
/* A look of the simulator's own, at a topic, or at all resources or jobs. */
struct order *order_look(struct world *world, enum bel_verb verb, size_t topic);
void order_free(struct order *order);
/* Frees what looks were told: all there is, again and again. Their orders stay in the history. */
void looks_free(struct list_of_orders *looks);
void order_say(const struct order *order);
/* Prints the timers, resources or jobs that a side has listed, for people; `who` before each. */
void order_say_heard(const struct order *order, unsigned side, const char *who);
void list_add(struct list_of_orders *list, struct order *order);
bool list_take(struct list_of_orders *list, const struct order *order);
bool list_is_told(const struct list_of_orders *orders);
const char *topic_name(size_t index);

/* --- judge.c --- */

struct judge *judge_create(struct world *world);
void judge_destroy(struct judge *judge);
/* What the engine's turn was told, for the model to do the same. Returns false if what it then does
 * need not be what the engine did. */
bool judge_turn(struct judge *judge, const struct list_of_orders *submitted);
/* Compares what has been told in this turn. False if something differs. */
bool judge_compare(struct judge *judge, bool is_all);
/* Prints what the model has, for people. */
void judge_say(struct judge *judge, const struct list_of_orders *looks);
void judge_withdraw(struct judge *judge, struct order *order);
/* A sample of pressure before the next turn, for the model to get the same. */
void judge_press(struct judge *judge, const struct bel_pressure_sample *sample);
/* The engine was opened and `looks` were answered: where is it? If room was tight, the last turn
 * may have been refused something. False if it is nowhere, or nobody can tell. */
bool judge_reopen(struct judge *judge, bool is_tight, const struct list_of_orders *looks);
/* The power is cut. What was answered before it was durable may be lost. */
void judge_cut(struct judge *judge);
struct bel_next judge_next(const struct judge *judge);
struct model *judge_model(const struct judge *judge);

/* --- book.c --- */

struct book *book_create(struct world *world);
void book_destroy(struct book *book);
void book_submitted(struct book *book, const struct order *order);
void book_told(struct book *book, struct order *order);
void book_lost(struct book *book, const struct order *order); /* its outcome is unknown */
void book_opened(struct book *book);
/* What was answered may be lost. */
void book_cut(struct book *book);
/* All that there is was listed: by topic, as LOOKS says. */
void book_look(struct book *book, const struct list_of_orders *looks);

/* --- foreman.c --- */

struct foreman *foreman_create(struct world *world);
void foreman_destroy(struct foreman *foreman);
void foreman_submitted(struct foreman *foreman, const struct order *order);
void foreman_told(struct foreman *foreman, const struct order *order);
void foreman_lost(struct foreman *foreman, const struct order *order);
void foreman_delivered(struct foreman *foreman, const struct bel_delivery *delivery);
/* Whether what is delivered is a task: when a job is forgotten, a timer may get the id. */
bool foreman_is_task(const struct bel_delivery *delivery);
/* What was answered may be lost. */
void foreman_cut(struct foreman *foreman);

/* --- walk.c --- */

struct walk *walk_create(struct world *world);
void walk_destroy(struct walk *walk);
/* Perhaps makes an order the next page of the walk, or the first of one through `topic`. */
bool walk_draw(struct walk *walk, struct order *order, struct bel_view topic,
               struct bel_list_query *out);
void walk_told(struct walk *walk, const struct order *order);
/* Turns are lost: of where things were, nothing is certain. */
void walk_forget(struct walk *walk);

/* --- copy.c --- */

struct copy *copy_create(struct world *world);
void copy_destroy(struct copy *copy);
/* Begins a backup now and then; and looks, between two turns, how far it is. */
void copy_draw(struct copy *copy);
void copy_poll(struct copy *copy);
/* After a turn: notes what the store has. */
void copy_note(struct copy *copy);
/* The engine is killed, and the copy stays as it is; or it was closed. */
void copy_stop(struct copy *copy);
void copy_end(struct copy *copy);

/* --- web.c --- */

/* Sends an order as an HTTP request. Returns the request for the engine; NULL if there is no such
 * request over HTTP. */
struct bel_request *web_ask(struct order *order);
/* Checks the page that the answer becomes. */
void web_told(const struct order *order, const struct bel_reply *reply);
void web_free(struct web *web);

/* --- press.c --- */

/* Now and then, before a turn: a sample of pressure. At the end: there is none any more. */
void press_draw(struct world *world);
void press_end(struct world *world);

/* --- drain.c --- */

/* After the disk was full: who adds is let in again. */
void check_space(struct world *world);

/* Short lives, so that a lot happens; and little to be made up for after a long time. */
void set_up_topics(struct world *world);
/* Lets everything be delivered that there is. */
void drain(struct world *world);

/* --- watch.c --- */

/* An error after which the engine gives up; and whether a sync that was to fail has failed. */
bool watch_is_final(int err);
bool watch_has_sync_failed(const struct world *world);
/* Whether the turn has left something that was due for later, for want of room; and whether who
 * adds may be refused. */
bool watch_is_short(const struct bel_engine *engine);
/* How far the engine is with an order: BEL_STAGE_*. */
uint64_t watch_stage(const struct order *order);
/* Whether a claim that waited got something in this turn. */
bool watch_is_wait_over(const struct world *world);
/* Whether the engine has refused what the model would have done. */
bool watch_is_refusal(const struct bel_reply *reply);
bool watch_is_tight(const struct bel_engine *engine);
/* Fail if the engine has given up without a reason, goes on after a sync has failed, syncs too late
 * or wants its next turn too late. */
void watch_reason(struct world *world);
void watch_stopped(struct world *world);
void watch_interval(struct world *world);
void watch_next(struct world *world);

/* --- reads.c --- */

/* A store was opened whose syncs are late: what is read from it is watched. NULL: nothing is. */
void reads_open(const struct bel_store *store);
/* A read was told: what it shows must be durable. */
void reads_told(struct world *world, const struct order *order);
/* A turn is over that began when batch `durable` was: who depends on no other was told. */
void reads_turn(struct world *world, uint64_t durable);

/* --- run.c --- */

void run(struct world *world);
/* A turn in which these are asked; or nothing, but by clients. */
void run_orders(struct world *world, const struct list_of_orders *orders);
void run_turn(struct world *world);
/* Looks at everything, in turns like others. False if that failed. */
bool run_look(struct world *world, struct list_of_orders *looks);
/* The engine answers an order. */
void run_told(struct bel_request *request, const struct bel_reply *reply);
bool run_is_down(const struct world *world);

#endif
