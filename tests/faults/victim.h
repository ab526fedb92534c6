/* SPDX-License-Identifier: MIT */
#ifndef BEL_TESTS_FAULTS_VICTIM_H
#define BEL_TESTS_FAULTS_VICTIM_H

/*
 * victim - runs an engine on real files until it is killed, and checks what is left.
 *
 *     victim_open(&victim, &options);
 *     victim_work(&victim, seed, turns);      schedules, claims, acks, fails, cancels in batches
 *     victim_check(&victim);                  compares with the book
 *     victim_close(&victim);
 *
 * Its log segments are small, so that there are checkpoints. Time is simulated: a round begins an
 * hour after the previous one, and a turn takes 10 ms.
 *
 * A failed check prints a message to stderr and calls abort().
 */

#include "book.h"

#include "belfry/backend.h"
#include "belfry/engine.h"
#include "core/entropy.h"
#include "store/store.h"

enum {
    VICTIM_BATCH_MAX = 8,
    VICTIM_HELD_MAX = 256, /* leases whose tokens it keeps */
    VICTIM_LIVE_MAX = 600, /* timers; with more it ends some */
};

typedef void victim_tell(void *context, const struct line *line);

struct victim_options {
    const char *folder;
    uint64_t round;    /* determines the time */
    struct book *book; /* borrowed */
    victim_tell *tell; /* is called with each line; may be NULL */
    void *context;
    uint64_t segment_bytes;      /* of the log; 0: 512 KiB */
    bool has_no_thread;          /* the same system calls in the same order in each run */
    uint64_t disk_reserve_bytes; /* 0: the default */
    bool is_lazy;                /* replies do not wait for syncs */
    uint64_t sync_interval_ns;   /* if lazy: longest delay of a sync; 0: no limit */
    bool never_waits; /* for checkpoints: requests may be refused because the log is full */
};

struct victim_held {
    uint32_t number;
    uint64_t since; /* in turns */
    size_t bytes;
    char token[BEL_TOKEN_BYTES_MAX];
};

struct victim;

struct victim_order {
    struct bel_request request; /* first */
    struct victim *victim;
    uint32_t number;
    uint16_t told; /* kind of the line that reports success */
    bool is_answered;
    char id[BOOK_TEXT_BYTES];
    char token[BEL_TOKEN_BYTES_MAX];
    struct bel_view view, topics[BOOK_TOPICS];
    uint8_t payload[BOOK_PAYLOAD_BYTES_MAX];
};

struct victim {
    struct victim_options options;
    struct book *book; /* from the options */
    struct bel_store *store;
    struct bel_engine *engine;
    struct bel_backend *backend;
    struct bel_entropy_seeded entropy;
    struct bel_now now;
    uint64_t random, turns;
    struct victim_held held[VICTIM_HELD_MAX];
    size_t held_count;
    uint32_t *live; /* numbers of the existing timers */
    size_t live_count;
    struct victim_order *orders;
    size_t orders_count;
    uint64_t refused; /* number of requests that failed; the last error */
    int last_error;
    char last_why[sizeof((struct bel_reply *)0)->why];
    uint64_t refused_by[BEL_VERBS], taken_by[BEL_VERBS];
    bool may_fail; /* errors of the engine are expected */
    char why[256];
};

/* Opens an engine in a folder, which is created if it does not exist. Returns as bel_engine_open();
 * on failure `why` has the reason. */
int victim_open(struct victim *victim, const struct victim_options *options);
void victim_close(struct victim *victim);

/* Works for `turns` turns, determined by the seed; or until an error, if it may fail. */
void victim_work(struct victim *victim, uint64_t seed, uint64_t turns);

/* Lists all timers and records them in the book: is_seen and attempts_seen. Each must be one that
 * was scheduled, with the same content. Returns the number of timers. */
uint64_t victim_see(struct victim *victim);

/* Compares the engine with the book. Sends lines that settle what was in doubt. Returns the number
 * of timers. */
uint64_t victim_check(struct victim *victim);

#endif
