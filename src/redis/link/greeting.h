/* SPDX-License-Identifier: MIT */
#ifndef BEL_REDIS_LINK_GREETING_H
#define BEL_REDIS_LINK_GREETING_H

/*
 * greeting - the first commands on a connection: protocol, credentials, name and database.
 *
 *     HELLO 3 AUTH user password SETNAME name --> SELECT db --> ready
 *         |  the server does not know HELLO                ^
 *         '--> AUTH [user] password --> CLIENT SETNAME name
 *
 * Steps that are not needed are left out.
 */

#include "redis/link/call.h"

#include "core/buffer.h"
#include "core/why.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    BEL_REDIS_WORD_BYTES = 32, /* room for a word of a server about itself */
};

/* What a server has told about itself; empty texts with RESP2. Cut off if too long. */
struct bel_redis_server {
    char name[BEL_REDIS_WORD_BYTES];    /* "redis" or "valkey" */
    char version[BEL_REDIS_WORD_BYTES]; /* "7.0.15" */
    char mode[BEL_REDIS_WORD_BYTES];    /* "standalone", "sentinel" or "cluster" */
    char role[BEL_REDIS_WORD_BYTES];    /* "master" or "replica" */
    bool is_resp3;
};

struct bel_greeting_options {
    const char *user, *password, *name; /* borrowed; NULL: none */
    uint32_t db;
};

enum bel_greeting_step {
    BEL_GREETING_HELLO,
    BEL_GREETING_AUTH,
    BEL_GREETING_SETNAME,
    BEL_GREETING_SELECT,
    BEL_GREETING_READY,
    BEL_GREETING_FAILED, /* see `why` */
};

struct bel_greeting {
    enum bel_greeting_step step;         /* read only */
    struct bel_redis_server server;      /* read only */
    struct bel_why why;                  /* read only */
    struct bel_greeting_options options; /* this and all below is private */
    struct bel_redis_call call;
    struct bel_buffer command;
    bool is_waiting; /* for a reply to `call` */
};

void bel__greeting_init(struct bel_greeting *greeting, const struct bel_greeting_options *options);
void bel__greeting_finish(struct bel_greeting *greeting);

/* Prepares for a new connection. The call must have ended. */
void bel__greeting_reset(struct bel_greeting *greeting);

/* Returns the next call to send, without a deadline; NULL if a call is under way, or if the step is
 * READY or FAILED. */
struct bel_redis_call *bel__greeting_next(struct bel_greeting *greeting);

#endif
