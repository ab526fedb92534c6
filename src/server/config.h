/* SPDX-License-Identifier: MIT */
#ifndef BEL_SERVER_CONFIG_H
#define BEL_SERVER_CONFIG_H

/*
 * config - the settings of a server, from flags and from a file with the same names.
 *
 *     belfry serve --config belfry.conf --resp 127.0.0.1:7878
 *
 *     # belfry.conf
 *     data = /var/lib/belfry
 *     resp = 127.0.0.1:7000         ; flags win
 *
 * One table has the name, the help line and the parser of every setting.
 */

#include "belfry/error.h"
#include "core/address.h"
#include "core/why.h"
#include "server/logger.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum bel_config_store {
    BEL_CONFIG_EMBEDDED,
    BEL_CONFIG_MEMORY,
    BEL_CONFIG_REDIS, /* a URL, which its store checks */
    BEL_CONFIG_STORES,
};

enum bel_config_durability {
    BEL_CONFIG_DURABILITY_COMMIT,   /* sync before the reply */
    BEL_CONFIG_DURABILITY_INTERVAL, /* write before the reply, sync within an interval */
    BEL_CONFIG_DURABILITY_NONE,     /* write before the reply */
    BEL_CONFIG_DURABILITY_ASYNC,    /* Redis: reply when the primary has it */
    BEL_CONFIG_DURABILITY_WAIT,     /* Redis: reply when its replicas have it */
};

enum bel_config_sync {
    BEL_CONFIG_SYNC_AUTO, /* by the measured duration of a sync: probe.h */
    BEL_CONFIG_SYNC_LOOP,
    BEL_CONFIG_SYNC_THREAD,
};

enum {
    BEL_CONFIG_PATH_BYTES = 1024,
    BEL_CONFIG_URL_BYTES = 4096,
    BEL_CONFIG_NAMESPACE_BYTES = 64,
    BEL_CONFIG_FILE_BYTES_MAX = 1 << 20,
};

struct bel_config {
    char data[BEL_CONFIG_PATH_BYTES];
    char keys[BEL_CONFIG_PATH_BYTES]; /* the key file; empty: no keys */
    char file[BEL_CONFIG_PATH_BYTES]; /* the configuration file; empty: none */
    char port_file[BEL_CONFIG_PATH_BYTES];
    struct bel_address resp, http;
    bool has_http, was_http_asked; /* was_http_asked: the address was given, not the default */
    enum bel_config_store store;
    char store_url[BEL_CONFIG_URL_BYTES]; /* may contain a password: never print it */
    char store_password_file[BEL_CONFIG_PATH_BYTES];
    char store_namespace[BEL_CONFIG_NAMESPACE_BYTES + 1]; /* empty: that of the URL, or belfry */
    uint32_t store_wait_ms; /* how long the start waits for a store that cannot be reached */
    uint32_t replicas;      /* of BEL_CONFIG_DURABILITY_WAIT; 0: as many as are connected */
    enum bel_config_durability durability;
    uint32_t durability_interval_ms; /* of BEL_CONFIG_DURABILITY_INTERVAL */
    enum bel_config_sync sync;
    bool is_virtual;
    enum bel_log_format log_format;
    enum bel_log_level log_level;
    uint32_t clients_max;
    uint32_t payload_bytes_max;
    size_t job_bytes_max;
    uint32_t job_tasks_max, job_edges_max, job_depth_max;
    uint64_t job_retention_ms;
    uint64_t output_bytes_max, output_total_bytes_max; /* unread replies of a client, of all */
    uint64_t input_total_bytes_max;                    /* incomplete requests of all clients */
    uint32_t auth_ms_max;                              /* time for a client to send a right key */
    uint32_t check_ms;         /* how long the data is checked before the server listens */
    uint64_t memory_bytes_max; /* of own allocations; 0: half of what there is */
    uint64_t scrub_ms; /* how long after a check of the tree the next one begins; 0: never */
    uint64_t given;    /* private: a bit for each setting that was given */
};

/* Sets the defaults. */
void bel__config_init(struct bel_config *config);

/*
 * Each function returns 0; or BEL_EINVAL, and sets `*error` and leaves `config` undefined.
 */

/* Parses the text of a file. `name` is the name of the file in messages. */
BEL_CHECKED int bel__config_read_file(struct bel_config *config, const char *name,
                                      struct bel_view text, struct bel_why *error);

/* Reads a variable for each setting: BELFRY_MAX_CLIENTS is max-clients. */
BEL_CHECKED int bel__config_read_environment(struct bel_config *config, struct bel_why *error);

/* Parses flags, `--name value` or `--name=value`; `arguments` ends with NULL. */
BEL_CHECKED int bel__config_read_flags(struct bel_config *config, char *const *arguments,
                                       struct bel_why *error);

/* Checks the settings together: an address that other machines can reach needs keys, and a setting
 * of Redis needs a store there. Sets the durability, if none was given, to that of the store. */
BEL_CHECKED int bel__config_check(struct bel_config *config, struct bel_why *error);

/* Returns the name of a setting that was given and has no effect with the store, from number `*at`
 * on, and sets `*at` behind it; NULL if there is no other one. */
const char *bel__config_find_unused(const struct bel_config *config, unsigned *at);

/* Finds the next variable of an environment that begins with BELFRY_ and is neither that of a
 * setting nor of another verb, from number `*at` on, and sets `*at` behind it. Returns its length,
 * and sets `*name` to it and `*meant` to the setting that may be meant, or NULL; returns 0 if there
 * is no other one. */
size_t bel__config_find_variable(char *const *environment, size_t *at, const char **name,
                                 const char **meant);

/* Prints the help lines of all flags. */
void bel__config_print_help(void (*print)(const char *line));

#endif
