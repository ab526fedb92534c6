/* SPDX-License-Identifier: MIT */
#ifndef BEL_REDIS_SERVERS_SERVERS_H
#define BEL_REDIS_SERVERS_SERVERS_H

/*
 * servers - the Redis servers of a store, as one: a call names the slot of its keys, and is sent to
 * the server that has them.
 *
 *     err = bel__servers_parse("redis://10.0.0.7", 16, &options, &why);
 *     err = bel__servers_open(&options, &owner, &servers);
 *     bel__servers_receive(servers, now);            replies arrive, callbacks send more calls
 *     err = bel__servers_send(servers, call, now);
 *     next = bel__servers_flush(servers, now);       all calls of the turn leave
 *
 * Order: calls of one slot are executed in the order in which they were sent, also while the slot
 * is being moved. calls.c says which refusals may break this.
 *
 * Wake-ups: the scripts publish on channels. Their messages are passed to `heard`, and so is the
 * fact that some may have been missed, which is the case after each connection.
 *
 * Threads: belong to one thread. Nothing blocks.
 */

#include "redis/link/call.h"
#include "redis/link/greeting.h"
#include "redis/link/url.h"

#include "belfry/clock.h"
#include "belfry/error.h"
#include "belfry/view.h"

#include "core/entropy.h"
#include "core/list.h"
#include "core/why.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bel_server;         /* private */
struct bel_kept;           /* private */
struct bel_servers;        /* opaque */
struct bel_servers_memory; /* opaque */
struct bel_tls;

enum {
    BEL_SERVER_NAME_BYTES = 112, /* of an address and a port; longer ones are cut */
};

enum bel_durability {
    BEL_DURABILITY_ASYNC, /* a change is answered when the primary has made it */
    BEL_DURABILITY_WAIT,  /* when so many replicas have it, too */
};

enum {
    BEL_REDIS_HEALTH_MS = 10000 /* health_ms of those that hold timers */
};

/* Which servers, and how they are reached. All texts are borrowed until the servers are closed. */
struct bel_servers_options {
    enum bel_redis_mode mode;
    struct bel_redis_host hosts[BEL_REDIS_HOSTS_MAX]; /* as of struct bel_redis_url */
    size_t hosts_count;                               /* 0: `path` */
    const char *path;                                 /* of a Unix socket */
    const char *user, *password;                      /* NULL: none */
    uint32_t db;
    const struct bel_tls *tls; /* NULL: without TLS. Not with a path */
    const char *name;          /* of the connections, for CLIENT LIST; NULL: none */
    const char *master;        /* Sentinel: the name of the primary */
    const char *sentinel_user, *sentinel_password; /* NULL: none */
    enum bel_durability durability;
    uint32_t replicas;      /* WAIT: how many; 0: as many as are connected at the start */
    uint32_t connect_ms;    /* for one attempt to connect; 0: the default of a link */
    uint32_t call_ms;       /* for calls that have no timeout; 0: the default of a link */
    size_t reply_bytes_max; /* of one reply; 0: the default of a link */
    uint32_t health_ms;     /* how often a primary is asked how it is; 0: never */
    const char *name_space; /* as the URL has it; NULL: it has none */
    struct bel_servers_memory *memory; /* private: of what bel__servers_parse() has set */
};

/*
 * Fills the options with what a URL says, see url.h, and reads the files that it names; all other
 * fields become 0. Returns 0, and the caller must call bel__servers_forget() when no servers use
 * the options any more. Otherwise `*out` is unchanged, and `*why` is set: BEL_EINVAL, BEL_EIO if a
 * file cannot be read, or BEL_ENOMEM. No message contains a password or a host.
 */
BEL_CHECKED int bel__servers_parse(const char *text, size_t bytes, struct bel_servers_options *out,
                                   struct bel_why *why);

/* Frees what bel__servers_parse() has allocated; zeroed options are allowed. */
void bel__servers_forget(struct bel_servers_options *options);

/* Whom the servers serve. All of it is borrowed. */
struct bel_servers_owner {
    void *owner;
    struct bel_entropy *entropy;
    const struct bel_view *first; /* commands that are sent first on each connection; no reply of
                                     theirs matters */
    size_t first_count;
    struct bel_view pattern; /* of all channels, for servers that are not a Cluster; empty: none */
    /* A message of a channel has arrived. If the text is empty, messages may have been missed: on
     * all channels if `channel` is empty, too. Called at least once after opening, as soon as the
     * servers can be reached. May send calls. */
    void (*heard)(void *owner, struct bel_view channel, struct bel_view text);
};

/* A command, and what to do with its reply. Owned by the caller; zeroed before its first use. */
struct bel_server_call {
    struct bel_view command; /* borrowed: one whole command in RESP */
    uint16_t slot;           /* of all its keys, see slot.h */
    bool is_write;           /* a change that `wait` must prove, before its reply is given */
    bool is_adding;          /* refused while the server may evict what it adds */
    uint32_t timeout_ms;     /* until the reply; 0: as in the options */
    /* Returns commands that create all keys of the command, each of one key and without an effect
     * if its key exists, and their number, ASKING included; NULL, or 0 commands: this cannot be
     * done. They are sent first, to the server to which a slot is being moved, when no server has
     * the keys: until the slot has been moved, that server refuses commands with several keys of
     * which one is missing. Borrowed until the next call of a function. */
    struct bel_view (*birth)(struct bel_server_call *call, uint32_t *out_count);
    /* Called once, with one reply, which is the last. The call is the caller's again, who may send
     * it again at once. Must not close the servers or take a turn. */
    void (*done)(struct bel_server_call *call, const struct bel_redis_reply *reply);
    uint32_t from; /* read only, in `done`: the number of the server that has replied, from 1;
                             each has another one. 0: none has */
    struct bel_link link; /* this and all below is private */
    struct bel_servers *servers;
    struct bel_server *server; /* that has it; NULL: parked */
    struct bel_server *asked;  /* the server that ASK has named; NULL: that of the slot */
    struct bel_redis_call call;
    char *joined; /* all commands that are sent to a server that ASK has named; NULL: none */
    struct bel_mono deadline, retry_at;
    uint64_t number;       /* counts the calls */
    uint64_t change;       /* counts the changes of the server */
    struct bel_kept *kept; /* the reply, until the change is proved */
    uint32_t tries;        /* redirects so far */
    bool was_asked;        /* it was sent to a server that ASK had named */
    bool lacks_keys;       /* that server has refused it, because a key does not exist */
};

/* Opens servers and begins to connect. Returns 0 and sets `*out`; or BEL_EINVAL if the path of a
 * socket is too long, BEL_EUNSUPPORTED, BEL_EIO or BEL_ENOMEM. */
BEL_CHECKED int bel__servers_open(const struct bel_servers_options *options,
                                  const struct bel_servers_owner *owner, struct bel_servers **out);

/* Closes all connections; NULL is allowed. Calls that were sent end with BEL_EIO, the others with
 * BEL_ECLOSED. */
void bel__servers_close(struct bel_servers *servers);

/* Sends a call. Returns 0, and `done` will be called; or, without a call of `done`, BEL_EFULL if
 * too many calls are under way, or BEL_ECLOSED. A time before that of the turn counts as that of
 * the turn: {0} is allowed in `done`. */
BEL_CHECKED int bel__servers_send(struct bel_servers *servers, struct bel_server_call *call,
                                  struct bel_mono now);

/* Returns whether channels are sharded: only those of bel__servers_listen() are heard, and messages
 * must be sent by SPUBLISH. True for a Cluster, before it is reached. */
bool bel__servers_is_sharded(const struct bel_servers *servers);

/* Subscribes to a channel for ever, if channels are sharded. Whenever that has succeeded, `heard`
 * is called with an empty text. Copies the name. Returns 0 or BEL_ENOMEM. */
BEL_CHECKED int bel__servers_listen(struct bel_servers *servers, struct bel_view channel);

/* Receives what has arrived. */
void bel__servers_receive(struct bel_servers *servers, struct bel_mono now);

/* Ends a turn. Returns when the next turn is needed at the latest. */
struct bel_mono bel__servers_flush(struct bel_servers *servers, struct bel_mono now);

/* Returns the descriptor that is readable when a turn is needed. */
int bel__servers_descriptor(const struct bel_servers *servers);

/* Returns whether all keys can be reached and no call is under way. */
bool bel__servers_is_idle(const struct bel_servers *servers);

/* Returns why the last connection has failed; empty if none has. */
const char *bel__servers_why(const struct bel_servers *servers);

/* Sets `out` to what is wrong with a server that can be reached: it may evict timers, or refuses
 * changes. Returns false if nothing is known to be wrong. `out` may be NULL. */
bool bel__servers_ail(const struct bel_servers *servers, struct bel_why *out);

/* Prints the name of the server that has a slot, as messages have it: 10.0.0.7:6379; or "the
 * server" if none has. */
void bel__servers_print(const struct bel_servers *servers, uint16_t slot,
                        char out[BEL_SERVER_NAME_BYTES]);

/* Returns whether every key can be reached now. */
bool bel__servers_is_ready(const struct bel_servers *servers);

/* A primary that calls are sent to. The texts are borrowed until the next turn. */
struct bel_server_note {
    const char *host;                      /* or the path of a Unix socket */
    uint16_t port;                         /* 0: a path */
    bool is_ready;                         /* connected */
    bool is_ailing;                        /* see bel__servers_ail() */
    uint64_t connections;                  /* how many times it has become so */
    const struct bel_redis_server *server; /* what it told about itself when it became so */
};

/* Notes the primaries that are known, as many as there is room for. Returns how many there are. */
size_t bel__servers_note(const struct bel_servers *servers, struct bel_server_note *out,
                         size_t room);

#endif
