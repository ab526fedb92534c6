/* SPDX-License-Identifier: MIT */
#ifndef BEL_SESSION_INPUT_TOTAL_H
#define BEL_SESSION_INPUT_TOTAL_H

/*
 * input_total - the memory of requests that have not arrived completely, of all connections, over
 * RESP and HTTP. Each connection has a share:
 *
 *     bel__input_share_set(&share, &now_is, now);      after each change of its request
 *     if (bel__input_share_room(&share) == 0) {        the owner does not read ...
 *         bel__input_share_block(&share);              ... until `resume` is called
 *     }
 *
 * A request of less than BEL_INPUT_SMALL_BYTES is not counted and never waits. Above a quarter of
 * the limit the other requests need a place: the oldest have one, as many as fit when all that they
 * have announced has arrived, and at least one. Requests that announce no more than a medium size
 * go on without a place, and have an eighth of the limit for themselves, so that they need not wait
 * for large ones. So the sum is bounded, and there is always a request that may go on. A request
 * that stands still or trickles is dropped, sooner if others wait for its memory: see
 * bel__input_total_tick(). Those that stand still have places together, and are dropped together.
 *
 * A request that has arrived is counted until it is answered, but does not wait for its client any
 * more. While such requests run, no other goes on above the limit.
 *
 * Threads: a total and its shares belong to one thread.
 */

#include "belfry/clock.h"
#include "core/list.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    BEL_INPUT_SMALL_BYTES = 16 << 10,
    BEL_INPUT_MEDIUM_BYTES = 2 << 20,    /* with what is missing; less below a limit of 64 MiB */
    BEL_INPUT_UNKNOWN_BYTES = 512 << 10, /* the same if a request does not announce its size */
    BEL_INPUT_WINDOW_BYTES = 64 << 10,   /* of a request must arrive in a window: */
    BEL_INPUT_STALL_MS = 30 * 1000,      /* the window */
    BEL_INPUT_STALL_SOON_MS = 5 * 1000,  /* the same in a crowd */
    BEL_INPUT_STILL_TICKS = 2,           /* without a byte, while others wait */
    BEL_INPUT_TICK_MS = 1000,            /* how often to call bel__input_total_tick() */
    BEL_INPUT_CROWDED_TICKS_MAX = 60,    /* in a crowd, in which a request is read */
};

struct bel_input_share;

/* What the owner of a share does. All functions get the share. */
struct bel_input_owner {
    /* Returns whether bytes of the client wait to be read. */
    bool (*has_input)(const struct bel_input_share *share);
    /* The owner may read again, and checks the room first. Must only note that. */
    void (*resume)(struct bel_input_share *share);
    /* Refuses the request with the text `why`, and closes the connection. The share must have no
     * bytes afterwards. */
    void (*drop)(struct bel_input_share *share, const char *why);
};

struct bel_input_total {
    size_t bytes; /* read only: of all shares */
    size_t bytes_max;
    size_t request_bytes_max;      /* memory of the largest request */
    size_t running_bytes;          /* private, as are the next: of requests that have arrived */
    struct bel_list receiving;     /* shares that wait for their clients, oldest first */
    struct bel_list blocked;       /* shares that are not read, of less than a medium request */
    struct bel_list blocked_large; /* the others */
};

struct bel_input_share {
    struct bel_input_total *total; /* NULL: nothing is counted */
    const struct bel_input_owner *owner;
    struct bel_link receiving, blocked; /* private, as are the next */
    size_t bytes, running_bytes, missing;
    uint64_t progress, marked; /* bytes now, and when the window began */
    struct bel_mono moved;     /* when the window began: bytes enough had arrived, or could not */
    uint64_t seen;             /* progress at the last tick */
    unsigned still_ticks;      /* since then it was read, and no byte has arrived */
    unsigned crowded_ticks;    /* in which the request was read in a crowd */
    bool is_spared;            /* it had stood still in this window, but its bytes wait */
};

/* A request, as its connection sees it. */
struct bel_input_state {
    size_t bytes;         /* memory of what has arrived and is not executed */
    size_t running_bytes; /* memory of requests that are executed, which end without the client */
    bool is_receiving;    /* the request waits for bytes of its client */
    size_t missing;       /* bytes that the client has announced and not sent; SIZE_MAX: unknown */
    uint64_t progress;    /* grows by one with each byte, or faster */
};

void bel__input_total_init(struct bel_input_total *total, size_t bytes_max,
                           size_t request_bytes_max);

/* Initializes a share. `total` may be NULL. The owner is borrowed. */
void bel__input_share_init(struct bel_input_share *share, struct bel_input_total *total,
                           const struct bel_input_owner *owner);

void bel__input_share_set(struct bel_input_share *share, const struct bel_input_state *state,
                          struct bel_mono now);

/* Nothing is left of the requests of a share. */
void bel__input_share_clear(struct bel_input_share *share);

/* Returns how many bytes may be read, now that the request has `bytes`; SIZE_MAX: any number. */
size_t bel__input_share_room(const struct bel_input_share *share, size_t bytes);

/* The owner has no room and does not read. `resume` is called once, when that may have changed. */
void bel__input_share_block(struct bel_input_share *share);
void bel__input_share_unblock(struct bel_input_share *share);
bool bel__input_share_is_blocked(const struct bel_input_share *share);

/* Returns whether a share that is not read may go on; resumes some of those. */
bool bel__input_total_can_go_on(const struct bel_input_total *total);
void bel__input_total_admit(struct bel_input_total *total);

/* Returns whether bel__input_total_tick() is needed: a counted request waits for its client. */
bool bel__input_total_is_watched(const struct bel_input_total *total);

/* Drops all requests of which less than BEL_INPUT_WINDOW_BYTES have arrived in BEL_INPUT_STALL_MS.
 * In a crowd, which is above half of the limit, or above a quarter while others are not read: in
 * BEL_INPUT_STALL_SOON_MS, and also those that were read in BEL_INPUT_CROWDED_TICKS_MAX such ticks,
 * and those of which nothing has arrived in BEL_INPUT_STILL_TICKS while others are not read. Time
 * in which a share was not read although its client had sent bytes does not count. Returns the
 * number of dropped requests. */
unsigned bel__input_total_tick(struct bel_input_total *total, struct bel_mono now);

#endif
