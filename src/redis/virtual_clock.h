/* SPDX-License-Identifier: MIT */
#ifndef BEL_REDIS_VIRTUAL_CLOCK_H
#define BEL_REDIS_VIRTUAL_CLOCK_H

/*
 * virtual_clock - the virtual time of a namespace. It is kept in the store, so that it does not go
 * back when a server starts again, and one server has it at a time:
 *
 *     {namespace}:clock         the time, in ms since 1970
 *     {namespace}:clock-owner   who moves it; expires when the owner has not renewed it
 *
 *     err = bel__virtual_clock_take(&asking, &clock, &why);         before there is a backend
 *     bel__virtual_clock_keep(&clock, redis, now.wall, now.real);   when time has moved, and every
 *                                                                   BEL_VIRTUAL_CLOCK_KEEP_MS
 */

#include "redis/asking.h"
#include "redis/redis.h"

#include "belfry/clock.h"
#include "core/why.h"

#include <stdbool.h>

enum {
    BEL_VIRTUAL_CLOCK_KEEP_MS = 1000,
    BEL_VIRTUAL_CLOCK_KEY_BYTES = BEL_REDIS_NAMESPACE_BYTES_MAX + 32,
    BEL_VIRTUAL_CLOCK_ID_BYTES = 33,
};

struct bel_virtual_clock {
    struct bel_wall time;                       /* read only: as it was taken */
    bool has_time;                              /* read only: false: there was none */
    bool is_lost;                               /* read only: another server has it now */
    char time_key[BEL_VIRTUAL_CLOCK_KEY_BYTES]; /* this and all below is private */
    char owner_key[BEL_VIRTUAL_CLOCK_KEY_BYTES];
    char id[BEL_VIRTUAL_CLOCK_ID_BYTES];
    struct bel_server_call call;
    struct bel_buffer command;
    struct bel_redis *redis;
    struct bel_wall wanted;
    bool is_under_way, is_stale; /* stale: time has moved while a call was under way */
    bool is_taken;
};

/* Prints the key of the time. */
void bel__virtual_clock_key(const char *name_space, char out[BEL_VIRTUAL_CLOCK_KEY_BYTES]);

/* Becomes the owner of the clock, and reads its time. Waits for a former owner to expire as long as
 * the options say, at least OWNER_MS. Returns 0; BEL_ECONFLICT if another server has the clock; or
 * an error as bel__asking_ask(). Sets `why` after an error. Finish it in any case. */
BEL_CHECKED int bel__virtual_clock_take(struct bel_virtual_clock *clock, const char *name_space,
                                        const struct bel_asking_options *options,
                                        struct bel_why *why);

/* Writes the time, and renews the ownership. What it sends counts for bel__redis_is_idle(). */
void bel__virtual_clock_keep(struct bel_virtual_clock *clock, struct bel_redis *redis,
                             struct bel_wall time, struct bel_mono now);

/* Gives up the ownership, if it was taken, so that another server need not wait. */
void bel__virtual_clock_release(struct bel_virtual_clock *clock,
                                const struct bel_asking_options *options);

/* Frees the memory; the backend must be closed. A zeroed clock is allowed. */
void bel__virtual_clock_finish(struct bel_virtual_clock *clock);

#endif
