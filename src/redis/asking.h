/* SPDX-License-Identifier: MIT */
#ifndef BEL_REDIS_ASKING_H
#define BEL_REDIS_ASKING_H

/*
 * asking - single commands to the servers of a store, one after the other, before there is a node:
 * each blocks until its reply is there, or until the time is over.
 */

#include "redis/redis.h"

#include "belfry/clock.h"
#include "belfry/value.h"
#include "core/buffer.h"
#include "core/why.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    BEL_ASKING_ERROR_BYTES = 120,
};

/* For whom, and for how long. All pointers are borrowed. */
struct bel_asking_options {
    const struct bel_servers_options *servers;
    const struct bel_clock *clock;
    uint32_t wait_ms; /* for servers that cannot be reached */
    /* Called about once a second while they cannot; may be NULL. */
    void (*waiting)(void *context, const char *why);
    void *context;
};

struct bel_asking {
    struct bel_asking_options options;
    char why[BEL_WHY_BYTES];                    /* read only: of the last failure */
    char error[BEL_ASKING_ERROR_BYTES];         /* read only: the last reply, if it was an error */
    struct bel_servers_options servers_options; /* this and all below is private */
    struct bel_servers *servers;
    struct bel_mono deadline, told;
    struct bel_server_call call;
    struct bel_buffer command;
    bool is_under_way;
    int err; /* of the last call */
    void (*take)(void *owner, const struct bel_value *value);
    void *owner;
};

/* Begins to connect. Returns 0; or BEL_EIO, BEL_ENOMEM or BEL_EUNSUPPORTED. Close it in any case.
 */
BEL_CHECKED int bel__asking_open(struct bel_asking *asking,
                                 const struct bel_asking_options *options);

void bel__asking_close(struct bel_asking *asking);

/*
 * Sends a command, whose words end with NULL, to the server that has a slot. Returns 0 if there is
 * a reply: it went to `take`, unless that is NULL, or was an error, which is in `error`, otherwise
 * empty. Otherwise sets `why`, and returns BEL_EBUSY if the time is over; BEL_EINVAL if waiting
 * does not help: a wrong password, an untrusted certificate; or BEL_ENOMEM or BEL_EFULL. After an
 * error nothing more can be asked.
 */
BEL_CHECKED int bel__asking_ask(struct bel_asking *asking, uint16_t slot, const char *const *words,
                                void (*take)(void *owner, const struct bel_value *value),
                                void *owner);

/* Waits for a moment because of a reply that says that a server is not ready. Returns 0, or
 * BEL_EBUSY if the time is over. */
BEL_CHECKED int bel__asking_pause(struct bel_asking *asking, const char *why);

#endif
