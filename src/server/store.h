/* SPDX-License-Identifier: MIT */
#ifndef BEL_SERVER_STORE_H
#define BEL_SERVER_STORE_H

/*
 * store - what a server keeps its timers in: a data directory, or servers of Redis. The setting
 * `store` chooses one of the kinds that src/main.c hands in; server.c knows no other way to it.
 *
 *     check -> create -> open -> start -> [ turns, watch ... ] -> stop -> close -> destroy
 *      |         |        |       |                                |       |         |
 *   settings  signals   loop   clients                         before    no more   after the
 *   only      end the   exists can connect                     requests  requests  loop
 *             process                                          end
 *
 * Threads: only the loop thread may use a store.
 */

#include "belfry/backend.h"
#include "core/why.h"
#include "metrics/metrics.h"
#include "server/config.h"
#include "server/info_page.h"
#include "server/logger.h"
#include "server/loop.h"
#include "server/server_clock.h"
#include "session/request_tracker.h"

struct bel_server_store;

/* What a server lends to its store. */
struct bel_server_store_options {
    const struct bel_config *config;
    const struct bel_logger *log;
    struct bel_server_clock *clock;
    struct bel_metrics *metrics;
    const struct bel_request_tracker *tracker;
    struct bel_zones *zones; /* may be NULL */
    const char *program;     /* the path of this program, to run parts of it in a subprocess */
};

/* What not every store can do, as INFO and errors name it. */
enum bel_server_ability {
    BEL_ABILITY_GROUPS,
    BEL_ABILITY_CONCURRENCY, /* the setting of a topic */
    BEL_ABILITY_JOBS,
    BEL_ABILITY_LIMITS,
    BEL_ABILITY_AGENDA,
    BEL_ABILITY_EXPLAIN,
    BEL_ABILITY_BACKUP,
    BEL_ABILITIES,
};

/* Returns the name: "groups". */
const char *bel__server_ability_name(enum bel_server_ability ability);

/* The functions of a store. Those that may be NULL say so. Functions that fail log the reason. */
struct bel_server_store_functions {
    /* Sets the clock, which has the system's time, to that of the store if it is virtual. */
    int (*open_clock)(struct bel_server_store *store);
    /* Opens the backend. The loop is borrowed. */
    int (*open)(struct bel_server_store *store, struct bel_loop *loop);
    /* The tracker is in front of the backend, and clients can connect. */
    int (*start)(struct bel_server_store *store);
    /* Called after each turn: logs what has changed. Returns 0, or the error of a failure that ends
     * the server. */
    int (*watch)(struct bel_server_store *store);
    /* Returns whether requests can succeed. NULL: always. */
    bool (*is_ready)(const struct bel_server_store *store);
    /* Returns whether every effect of the turns so far is there, so that a virtual clock can move
     * on. NULL: always. */
    bool (*is_settled)(const struct bel_server_store *store);
    /* Begins a backup: returns 0, or an error with `why`. Then `poll_backup` returns BEL_EBUSY
     * while it runs, 0 when it is complete, or an error with `why`. */
    int (*begin_backup)(struct bel_server_store *store, const char *folder, struct bel_why *why);
    int (*poll_backup)(struct bel_server_store *store, const char *folder, struct bel_why *why);
    /* Appends the lines of this store to the section Store of INFO. */
    void (*tell)(const struct bel_server_store *store, struct bel_info_page *page);
    /* Prints the place for people, without secrets: the absolute path of a data directory, a URL;
     * empty for one in memory. */
    void (*place)(const struct bel_server_store *store, char *out, size_t room);
    /* Sets `why` to the reason of a failure that ended the server. NULL: there is none. */
    void (*explain)(const struct bel_server_store *store, struct bel_why *why);
    void (*stop)(struct bel_server_store *store); /* NULL: there is nothing to stop */
    void (*close)(struct bel_server_store *store);
    void (*destroy)(struct bel_server_store *store);
};

/* A store. To implement one, make this the first member and set it in `create`. */
struct bel_server_store {
    const struct bel_server_store_functions *functions;
    const char *place_name;      /* of `place`, in the log and on standard output: "data" */
    struct bel_backend *backend; /* from open() on; the following two, too */
    const struct bel_engine_stats *stats; /* NULL: it has none */
    bool is_remote;                       /* failures of requests do not end the server */
    bool lacks[BEL_ABILITIES];
};

struct bel_server_store_kind {
    /* Checks the settings, as bel__config_check(). NULL: all are valid. */
    int (*check)(const struct bel_config *config, struct bel_why *error);
    /* Checks what can be checked while a signal still ends the process, which may take as long as
     * the settings allow. Returns 0 and sets `*out`; or an error, which was logged. */
    int (*create)(const struct bel_server_store_options *options, struct bel_server_store **out);
};

/* All kinds of stores, by the setting. */
struct bel_server_stores {
    const struct bel_server_store_kind *kinds[BEL_CONFIG_STORES];
};

#endif
