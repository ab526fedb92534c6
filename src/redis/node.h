/* SPDX-License-Identifier: MIT */
#ifndef BEL_REDIS_NODE_H
#define BEL_REDIS_NODE_H

/*
 * node - the state of one node: the topics that it knows, and the operations under way.
 *
 * An operation is a request that has begun. It sends items to the server (batch.h), and ends by
 * bel__operation_answer(). A node keeps nothing that another node would miss: when it dies, its
 * leases end by the time of the server.
 *
 * Order: items of one topic are executed in the order in which they were added. An operation that
 * needs more than one reply holds its topics: later requests that name one of them wait.
 */

#include "redis/redis.h"
#include "redis/scripts.h"

#include "belfry/backend.h"
#include "core/arena.h"
#include "core/entropy.h"
#include "core/list.h"
#include "core/map.h"
#include "redis/link/link.h"
#include "redis/link/poller.h"

#include <stdbool.h>
#include <stdint.h>

#define BEL_REDIS_TIME_END_MS INT64_C(253402300799999) /* the end of the year 9999 */

struct bel_batch;
struct bel_operation;

enum {
    BEL_REDIS_NEVER = -1, /* of a time in ms */
};

/* A topic that a request has named, or that the server has told of. */
struct bel_redis_topic {
    struct bel_view name;   /* after this struct */
    int64_t next_ms;        /* when something happens next, in ms of the server */
    int64_t ring_ms;        /* when a plan rings next */
    struct bel_batch *open; /* the last batch of this turn; NULL: none */
    struct bel_link dirty;  /* in node->dirty: parked claims may find something */
    uint64_t served;        /* number of the last claim that got something here; 0: none */
    uint64_t marks;         /* how often parked claims may have found something */
    uint64_t blocked_in;    /* the turn in which a request waits for the topic */
    uint32_t held;          /* operations that hold the topic */
    uint32_t parked;        /* claims that wait for it */
    bool is_registered;     /* this node has told the registry of it */
    bool is_sweeping;       /* a script is under way that was sent because of the time */
};

struct bel_redis {
    struct bel_backend backend; /* first */
    struct bel_poller poller;
    struct bel_redis_link *link;
    struct bel_entropy *entropy;
    struct bel_redis_options options;
    char registry[BEL_REDIS_NAMESPACE_BYTES_MAX + 16];
    struct bel_greeter *greeter;
    struct bel_map topics;             /* by name */
    struct bel_request *first, **last; /* submitted requests, by own.next */
    struct bel_list waiting;           /* operations that wait for a topic that another one holds */
    struct bel_list begun;             /* operations under way that are not parked */
    struct bel_list parked;            /* claims that wait, in the order in which they came */
    struct bel_list batches;           /* of this turn, in order */
    struct bel_list sent;              /* batches that wait for a reply */
    struct bel_list dirty;             /* topics */
    struct bel_now now;
    int64_t ahead_ms; /* the clock of the server minus that of the node */
    uint64_t served;  /* number of the last claim that got something */
    uint64_t made;    /* ids made so far */
    uint64_t turns;   /* taken so far */
};

/* Returns the time of the server, about, in ms; under a virtual clock exactly. */
int64_t bel__node_now(const struct bel_redis *node);

/* Finds or makes a topic. Returns NULL if memory has run out. */
struct bel_redis_topic *bel__node_topic(struct bel_redis *node, struct bel_view name);

/* Notes that parked claims of a topic may find something. */
void bel__node_mark(struct bel_redis *node, struct bel_redis_topic *topic);

/* Tells the registry of a topic that is about to exist. Returns 0 or BEL_ENOMEM. */
BEL_CHECKED int bel__node_register(struct bel_redis *node, struct bel_redis_topic *topic);

/* Returns the key of the set of all topics of the namespace. */
struct bel_view bel__node_registry(const struct bel_redis *node);

/* Sends scripts to topics in which something happens by now. */
void bel__node_wake(struct bel_redis *node);

/* Lets plans of a topic ring that are due. Holds the topic until they have. */
void bel__rings_begin(struct bel_redis *node, struct bel_redis_topic *topic);

/* Returns when something happens next, in ms of the server; BEL_REDIS_NEVER: nothing will. */
int64_t bel__node_next(const struct bel_redis *node);

/* Frees all topics. */
void bel__node_forget_topics(struct bel_redis *node);

#endif
