/* SPDX-License-Identifier: MIT */
#ifndef BEL_REDIS_SERVERS_STATE_H
#define BEL_REDIS_SERVERS_STATE_H

/*
 * state - what the files of this folder share: the servers, the slots, and the calls that wait.
 *
 *     servers.c     opening, closing, turns
 *     cluster.c     which server has which slot        channels.c    wake-ups
 *     sentinel.c    which server is the primary        probe.c       what role a server has
 *     calls.c       the way of a call                  proof.c       WAIT
 *     server.c      one server                         redirect.c    what an error reply says
 *     health.c      what a server says about itself
 *
 * A file calls those below it.
 */

#include "redis/servers/servers.h"
#include "redis/servers/slot.h"

#include "redis/link/link.h"

#include "core/buffer.h"
#include "core/list.h"
#include "core/map.h"
#include "core/why.h"

/* A server that has slots or may have some: the primary, those of the Cluster, and those from which
 * the others are learnt. */
struct bel_server {
    struct bel_link link; /* in servers->all */
    struct bel_servers *servers;
    struct bel_redis_link *connection; /* NULL: closed */
    uint32_t number;                   /* no other server has or had it */
    char *host;                        /* NULL: the path of the options */
    uint16_t port;
    struct bel_list calls; /* that were sent to it and have not ended, in order */
    struct bel_first *first;
    uint32_t slots_count; /* that it has */
    uint32_t askers;      /* parked calls that ASK sends to it */
    bool is_seed;         /* an address of the options */
    bool is_listed;       /* the last map has named it */
    bool is_replica;      /* it must not be written */
    bool knows_replicas;  /* its role was asked on this connection */
    uint32_t replicas;    /* that are connected to it */
    struct bel_redis_call role;
    struct bel_mono probe_at;     /* when to ask for its role again */
    bool is_probing;              /* `role` is under way */
    struct bel_redis_call health; /* see health.h, as are the next five */
    struct bel_mono health_at;    /* when to ask again */
    bool is_examined;             /* `health` is under way */
    bool is_new;                  /* it is the first one of this connection */
    bool has_disk_failed;
    char policy[32]; /* maxmemory-policy; empty: not known */
    struct bel_redis_call wait;
    struct bel_buffer wait_command;
    struct bel_list kept;      /* calls with a reply that is not proved yet */
    uint64_t changes, covered; /* sent to it; of these, before the last WAIT */
    bool is_waiting;           /* `wait` is under way */
    bool is_plain_wait;        /* it has refused WAITAOF on this connection */
    struct bel_mono used;      /* when something last pointed to it */
};

/* A slot; all keys are in the only slot 0 if there is no Cluster. */
struct bel_redis_slot {
    struct bel_server *server; /* NULL: not known */
    struct bel_server *at; /* that has the calls that were sent; may be gone if there are none */
    uint32_t sent;         /* calls of the slot that were sent and have not come back */
    uint32_t parked;       /* calls of the slot that wait to be sent */
    uint32_t pass;         /* the last pass in which one of them has to wait on */
    bool is_disturbed;     /* a call came back unexecuted: nothing is sent before all others
                                  have come back */
};

/* The map of a Cluster. */
struct bel_cluster {
    struct bel_redis_call call; /* CLUSTER SLOTS */
    struct bel_server *asked;   /* by this call, or by the last one */
    struct bel_mono ask_at;     /* not before, unless no map is wanted */
    bool is_asking, is_wanted;
    bool is_known; /* there was a map */
    bool is_fresh; /* calls, channels and connections do not follow the map yet */
};

struct bel_sentinel;

struct bel_sentinels {
    struct bel_sentinel *items;
    size_t count;
    struct bel_buffer command; /* that asks for the primary */
    struct bel_mono ask_at;    /* not before */
    struct bel_mono stirred;   /* until then they are asked although there is a primary */
    bool is_fresh;             /* one has answered */
};

struct bel_channel;

struct bel_channels {
    struct bel_map by_name;
    struct bel_list lost; /* channels without a subscription */
    uint32_t asked_count; /* channels that are being subscribed */
    struct bel_redis_call pattern;
    struct bel_buffer pattern_command;
    bool is_subscribing; /* `pattern` is under way */
};

struct bel_servers {
    struct bel_poller poller;
    struct bel_servers_options options;
    struct bel_servers_owner owner;
    /* What a connection calls: it has become ready or was lost; a message has arrived. */
    void (*changed)(struct bel_redis_link *link, void *server);
    void (*pushed)(struct bel_redis_link *link, void *server, const struct bel_value *message);
    struct bel_mono now;
    struct bel_list all; /* servers */
    struct bel_redis_slot *slots;
    uint32_t slots_count;
    uint32_t calls_count;   /* that have not ended */
    uint64_t numbers;       /* given to calls */
    uint32_t servers_count; /* that there were so far */
    struct bel_list parked;
    size_t parked_bytes;
    struct bel_mono pump_at; /* parked calls have nothing to do before; 0: now */
    uint32_t passes;
    struct bel_cluster cluster;
    struct bel_sentinels sentinels;
    uint32_t replicas_wanted; /* under `wait`; 0: not known yet */
    struct bel_channels channels;
    struct bel_why why; /* the last trouble */
    bool is_closing;
};

static inline bool bel__servers_are_cluster(const struct bel_servers *servers)
{
    return servers->options.mode == BEL_REDIS_CLUSTER;
}

static inline struct bel_redis_slot *bel__servers_slot(struct bel_servers *servers, uint16_t slot)
{
    return &servers->slots[servers->slots_count == 1 ? 0 : slot];
}

/* Returns `now + ms`, or the last instant. */
struct bel_mono bel__servers_after(struct bel_mono now, uint64_t ms);

#endif
