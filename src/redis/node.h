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
#include "redis/layout.h"
#include "redis/server_clock.h"
#include "redis/servers/servers.h"
#include "redis/servers/slot.h"
#include "redis/timetable.h"

#include <stdbool.h>
#include <stdint.h>

#define BEL_REDIS_TIME_END_MS INT64_C(253402300799999) /* the end of the year 9999 */

struct bel_batch;
struct bel_operation;

enum {
    BEL_REDIS_NEVER = -1, /* of a time in ms */
    BEL_REDIS_PARTITIONS_MAX = 64,
};

/* The clock of a server, and what happens when by it. */
struct bel_node_clock {
    struct bel_link link; /* in node->clocks */
    uint32_t server;      /* its number; 0: none has told its time yet */
    uint32_t partitions;  /* that follow it */
    struct bel_server_clock clock;
    struct bel_timetable timetable; /* of partitions in use that are not being asked */
};

/* One of the partitions of a topic. All its keys have one hash tag. */
struct bel_redis_partition {
    struct bel_redis_topic *topic;
    struct bel_node_clock *clock; /* of the server that has it; all its times are by it */
    bool has_replied;             /* its server, which is known from that */
    int64_t next_ms; /* when something happens next, in ms of the server: bel__partition_expect() */
    struct bel_timetable_entry waking; /* `next_ms`, if it is looked at then */
    int64_t ring_ms;                   /* when a plan rings next */
    uint32_t rings_passed;             /* due plans that come first, and cannot be computed */
    struct bel_batch *open;            /* the last batch that is not sent; NULL: none */
    uint32_t under_way;                /* batches that were sent and have no reply */
    struct bel_link dirty;             /* in node->dirty: parked claims may find something */
    uint64_t marks;                    /* how often parked claims may have found something */
    uint16_t slot;                     /* of its keys */
    uint8_t index;
    int64_t told_ms;   /* `next_ms` before it was polled */
    bool is_polled;    /* its next script is a poll */
    bool is_sweeping;  /* a script is under way that was sent because of the time */
    bool has_unserved; /* parked claims were not asked for when the others were */
};

/* A topic that a request has named, or that the server has told of. */
struct bel_redis_topic {
    struct bel_view name;                                             /* after this struct */
    struct bel_redis_partition *partitions[BEL_REDIS_PARTITIONS_MAX]; /* NULL: none so far */
    uint32_t count;          /* of partitions in use, as the node believes */
    uint32_t turn;           /* the partition that the next claim asks first, modulo `count` */
    uint64_t served;         /* number of the last claim that got something here; 0: none */
    uint64_t blocked_in;     /* the turn in which a request waits for the topic */
    uint32_t held;           /* operations that hold the topic */
    uint64_t shared_in;      /* the turn in which operations began that share the hold; 0: none */
    uint32_t parked;         /* claims that wait for it */
    struct bel_link awaited; /* in node->awaited: there are any */
    uint32_t polled;         /* the partition to poll next while claims wait */
    bool is_registered;      /* the registry knows it */
    bool is_missing;         /* the registry knew it, and knows it no longer */
    bool is_checked;         /* its partitions have, or are about to get, equal settings */
    bool is_healing;         /* settings are being copied */

    struct bel_layout *layout; /* NULL: native. Set by layouts.c alone, as are the next four */
    uint64_t asked_in_vain;    /* the turn in which the server did not tell the layout */
    bool knows_layout;         /* and it was not said to have changed */
    bool asks_layout;          /* a question is under way */
    bool changes_layout;       /* this node changes it */
    uint64_t poll_ms;          /* with a layout: how long to sleep when nothing is found */
    uint64_t polled_in;        /* the turn in which this was set last */
    uint32_t failed_polls;     /* since the last one that did not fail */
    int64_t first_ms;          /* with a layout: the first due after now, or BEL_REDIS_NEVER */
};

/* The state of polling.c. */
struct bel_polling {
    struct bel_mono at;        /* when the next poll is */
    uint64_t interval_ms;      /* 0: nothing was polled so far */
    uint32_t topic, partition; /* the next one to poll */
    uint32_t left;             /* polls of several partitions */
};

struct bel_redis {
    struct bel_backend backend; /* first */
    struct bel_servers *servers;
    struct bel_entropy *entropy;
    struct bel_redis_options options;
    char registry[BEL_REDIS_NAMESPACE_BYTES_MAX + 16];
    uint16_t registry_slot;
    struct bel_news *news;
    struct bel_map topics;             /* by name */
    struct bel_list clocks;            /* struct bel_node_clock */
    struct bel_node_clock *clock;      /* in it: where no partition is meant */
    struct bel_request *first, **last; /* submitted requests, by own.next */
    struct bel_list waiting;           /* operations that wait for a topic that another one holds */
    struct bel_list begun;             /* operations under way that are not parked */
    struct bel_list parked;            /* claims that wait, in the order in which they came */
    struct bel_list awaited;           /* the topics that they wait for; polled last is last */
    struct bel_list batches;           /* of this turn, in order */
    struct bel_list sent;              /* batches that wait for a reply */
    struct bel_list dirty;             /* partitions */
    /* A script was called for another number of partitions: bel__topic_learn(). */
    void (*moved)(struct bel_redis *node, struct bel_redis_partition *partition, int64_t count);
    struct bel_now now;
    struct bel_mono opened;
    struct bel_mono heard; /* when a server replied last */
    size_t payloads_max;   /* items of a batch whose results have payloads */
    struct bel_polling polling;
    struct bel_mono kept_until; /* when the first batch is sent that is kept back; or BEL_NEVER */
    struct bel_mono retry;      /* when operations that met a change of partitions begin again */
    struct bel_redis_refusals refusals;
    uint64_t served;                /* number of the last claim that got something */
    uint64_t made;                  /* ids made so far */
    uint64_t turns;                 /* taken so far */
    bool waits_for_layout;          /* the first request does, and so all others */
    char layout_why[BEL_WHY_BYTES]; /* why the last one was not told */
};

/* Returns whether scripts get the time from the node. */
bool bel__node_gives_time(const struct bel_redis *node);

/* Prepare and free the clocks. Return 0 or BEL_ENOMEM. */
BEL_CHECKED int bel__clocks_open(struct bel_redis *node);
void bel__clocks_close(struct bel_redis *node);

/* Returns the time of a server, about, in ms; under a virtual clock exactly: of the one that has a
 * partition, if that is known, or of the one that has told its time last. */
int64_t bel__clock_now(const struct bel_redis *node, const struct bel_node_clock *clock);
int64_t bel__partition_now(const struct bel_redis *node,
                           const struct bel_redis_partition *partition);
int64_t bel__node_now(const struct bel_redis *node);

/* Returns the boot clock of the node, in ms. */
int64_t bel__node_boot_ms(const struct bel_redis *node);

/* Take over the time of a server from a reply to a command that was sent at a time of the boot
 * clock: to TIME, or to a script of a partition. A time that no clock has is ignored. */
void bel__node_learn_time(struct bel_redis *node, uint32_t server, int64_t server_ms,
                          int64_t sent_ms);
void bel__partition_learn_time(struct bel_redis *node, struct bel_redis_partition *partition,
                               uint32_t server, int64_t server_ms, int64_t sent_ms);

/* Lets a new partition follow a clock. Returns 0 or BEL_ENOMEM. The second one undoes it. */
BEL_CHECKED int bel__partition_join_clock(struct bel_redis *node,
                                          struct bel_redis_partition *partition);
void bel__partition_leave_clock(struct bel_redis_partition *partition);

/* Returns whether the node knows the time of a server. */
bool bel__node_knows_time(const struct bel_redis *node);

/* Finds or makes a topic. Returns NULL if memory has run out. */
struct bel_redis_topic *bel__node_topic(struct bel_redis *node, struct bel_view name);

/* Returns the partition of a topic that has the timers with an id: those of a plan and its
 * occurrences are in one. */
struct bel_redis_partition *bel__topic_place(const struct bel_redis_topic *topic,
                                             struct bel_view id);

/* Sets how many partitions a topic has. Returns 0 or BEL_ENOMEM. */
BEL_CHECKED int bel__topic_divide(struct bel_redis *node, struct bel_redis_topic *topic,
                                  uint32_t count);

/* Sets how many of the partitions that the node has made are in use. */
void bel__topic_use(struct bel_redis *node, struct bel_redis_topic *topic, uint32_t count);

/* Learns from a script that was called for a number of partitions that the topic does not have:
 * partition 0 knows the number, another one only that it is another. */
void bel__topic_learn(struct bel_redis *node, struct bel_redis_partition *partition, int64_t count);

/* Copies the settings of partition 0 to the others, if this was not done yet. */
void bel__topic_heal(struct bel_redis *node, struct bel_redis_topic *topic);

/* Note that parked claims may find something in a partition, or in any of a topic. */
void bel__node_mark(struct bel_redis *node, struct bel_redis_partition *partition);
void bel__node_mark_all(struct bel_redis *node, struct bel_redis_topic *topic);

/* Tells the registry of a topic that is about to exist. Returns 0 or BEL_ENOMEM. */
BEL_CHECKED int bel__node_register(struct bel_redis *node, struct bel_redis_topic *topic);

/* Returns the key of the set of all topics of the namespace. */
struct bel_view bel__node_registry(const struct bel_redis *node);

/* Sets when something happens next in a partition, in ms of the server, or BEL_REDIS_NEVER. */
void bel__partition_expect(struct bel_redis *node, struct bel_redis_partition *partition,
                           int64_t time_ms);

/* A script is sent because of the time: until bel__partition_swept() no other one is. */
void bel__partition_sweeping(struct bel_redis *node, struct bel_redis_partition *partition);
void bel__partition_swept(struct bel_redis *node, struct bel_redis_partition *partition);

/* Sends scripts to partitions in which something happens by now. */
void bel__node_wake(struct bel_redis *node);

/* Looks at some partitions, if it is time for that. Returns when the next time is. */
struct bel_mono bel__node_poll(struct bel_redis *node);

/* A poll of a partition was replied to. */
void bel__node_polled(struct bel_redis *node, struct bel_redis_partition *partition);

/* Lets plans of a partition ring that are due. Holds its topic until they have. */
void bel__rings_begin(struct bel_redis *node, struct bel_redis_partition *partition);

/* Returns in how many ms something happens next, 0 if it is late; BEL_REDIS_NEVER: nothing will. */
int64_t bel__node_next(const struct bel_redis *node);

/* Frees all topics. */
void bel__node_forget_topics(struct bel_redis *node);

#endif
