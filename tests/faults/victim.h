/* SPDX-License-Identifier: MIT */
#ifndef BEL_TESTS_FAULTS_VICTIM_H
#define BEL_TESTS_FAULTS_VICTIM_H

/*
 * victim - an engine on real files that is put to work until it dies, and the check of what is
 * left of it.
 *
 *     victim_open(&victim, &options);
 *     victim_work(&victim, seed, turns);      schedules, claims, acks, fails, cancels in batches
 *     victim_check(&victim);                  against the book
 *     victim_close(&victim);
 *
 * Its segments are small, so that the tree gets its share. Time is made up: a round begins an
 * hour after the one before, and a turn takes 10 ms.
 *
 * A check that fails says so on stderr and ends the process by abort().
 */

#include "book.h"

#include "belfry/backend.h"
#include "belfry/engine.h"
#include "core/entropy.h"
#include "store/store.h"

enum {
    VICTIM_BATCH_MAX = 8,
    VICTIM_HELD_MAX = 256, /* leases that it has the tokens of */
    VICTIM_LIVE_MAX = 600, /* timers; with more it ends some first */
};

typedef void victim_tell(void *context, const struct line *line);

struct victim_options {
    const char *folder;
    uint64_t round;    /* says when it is */
    struct book *book; /* borrowed */
    victim_tell *tell; /* is told each line; may be NULL */
    void *context;
    uint64_t segment_bytes;      /* of the log; 0: 512 KiB */
    bool has_no_thread;          /* the same calls in the same order each time */
    uint64_t disk_reserve_bytes; /* 0: as ever */
    bool is_lazy;                /* answers do not wait for syncs, */
    uint64_t sync_interval_ns;   /* which come so much later; 0: when they must */
    bool never_waits; /* for the tree to catch up: things may be refused for lack of room */
};

struct victim_held {
    uint32_t number;
    uint64_t since; /* turns */
    size_t bytes;
    char token[BEL_TOKEN_BYTES_MAX];
};

struct victim;

struct victim_order {
    struct bel_request request; /* first */
    struct victim *victim;
    uint32_t number;
    uint16_t told; /* the line that says that it has been done */
    bool is_answered;
    char id[BOOK_TEXT_BYTES];
    char token[BEL_TOKEN_BYTES_MAX];
    struct bel_view view, topics[BOOK_TOPICS];
    uint8_t payload[BOOK_PAYLOAD_BYTES_MAX];
};

struct victim {
    struct victim_options options;
    struct book *book; /* of the options */
    struct bel_store *store;
    struct bel_engine *engine;
    struct bel_backend *backend;
    struct bel_entropy_seeded entropy;
    struct bel_now now;
    uint64_t random, turns;
    struct victim_held held[VICTIM_HELD_MAX];
    size_t held_count;
    uint32_t *live; /* numbers of those that are there */
    size_t live_count;
    struct victim_order *orders;
    size_t orders_count;
    uint64_t refused; /* orders that were answered with an error; the last one */
    int last_error;
    char last_why[sizeof((struct bel_reply *)0)->why];
    uint64_t refused_by[BEL_VERBS], taken_by[BEL_VERBS];
    bool may_fail; /* errors of the engine are expected */
    char why[256];
};

/* Opens an engine in a folder, which is made if it is not there. Returns what bel_engine_open()
 * does, and then `why` says more. */
int victim_open(struct victim *victim, const struct victim_options *options);
void victim_close(struct victim *victim);

/* Works for so many turns, on what follows from the seed; or until an error, if it may fail. */
void victim_work(struct victim *victim, uint64_t seed, uint64_t turns);

/* Notes in the book what is there: is_seen and attempts_seen. All of it must be something that was
 * asked for, as it was asked for. Returns how many timers there are. */
uint64_t victim_see(struct victim *victim);

/* Compares what is there with the book, in which nothing is in doubt any more afterwards: lines
 * are told that say what has become of what was. Returns how many timers there are. */
uint64_t victim_check(struct victim *victim);

#endif
