/* SPDX-License-Identifier: MIT */
#ifndef BEL_SERVER_CONFIG_H
#define BEL_SERVER_CONFIG_H

/*
 * config - what a server is told when it starts: by flags, and by a file of the same names.
 *
 *     belfry serve --config belfry.conf --resp 127.0.0.1:7878
 *
 *     # belfry.conf
 *     data = /var/lib/belfry
 *     resp = 127.0.0.1:7000         ; flags win
 *
 * One table has every name, what it means and how it is read; the help is printed from it.
 */

#include "belfry/error.h"
#include "core/address.h"
#include "server/logger.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum bel_config_store {
    BEL_CONFIG_EMBEDDED,
    BEL_CONFIG_MEMORY,
};

enum bel_config_durability {
    BEL_DURABILITY_COMMIT,   /* acknowledged is synced */
    BEL_DURABILITY_INTERVAL, /* acknowledged is written, and synced soon */
    BEL_DURABILITY_NONE,     /* acknowledged is written */
};

enum bel_config_sync {
    BEL_CONFIG_SYNC_AUTO, /* by how long one takes */
    BEL_CONFIG_SYNC_LOOP,
    BEL_CONFIG_SYNC_THREAD,
};

enum {
    BEL_CONFIG_PATH_BYTES = 1024,
    BEL_CONFIG_FILE_BYTES_MAX = 1 << 20,
};

struct bel_config {
    char data[BEL_CONFIG_PATH_BYTES];
    char keys[BEL_CONFIG_PATH_BYTES]; /* empty: there are none */
    char file[BEL_CONFIG_PATH_BYTES]; /* empty: there is none */
    char port_file[BEL_CONFIG_PATH_BYTES];
    struct bel_address resp, http;
    bool has_http, was_http_asked; /* not by default */
    enum bel_config_store store;
    enum bel_config_durability durability;
    uint32_t durability_interval_ms; /* of BEL_DURABILITY_INTERVAL */
    enum bel_config_sync sync;
    bool is_virtual;
    enum bel_log_format log_format;
    enum bel_log_level log_level;
    uint32_t clients_max;
    uint32_t payload_bytes_max;
    uint64_t output_bytes_max;
    uint32_t check_rows_max; /* that are looked at after a crash, before it opens */
};

/* What is wrong, for a person: where it was said, what, and what was expected. */
struct bel_config_error {
    char text[256];
};

/* What it is if nobody says anything. */
void bel__config_init(struct bel_config *config);

/*
 * Each returns 0; or BEL_EINVAL, having said what is wrong, and `config` is worth nothing.
 */

/* Reads the text of a file, whose name is for messages. */
BEL_CHECKED int bel__config_read_file(struct bel_config *config, const char *name,
                                      struct bel_view text, struct bel_config_error *error);

/* Reads flags, `--name value` or `--name=value`; `arguments` ends in NULL. */
BEL_CHECKED int bel__config_read_flags(struct bel_config *config, char *const *arguments,
                                       struct bel_config_error *error);

/* Checks what no single name can be blamed for. */
BEL_CHECKED int bel__config_check(const struct bel_config *config, struct bel_config_error *error);

/* The lines of the help about flags. */
void bel__config_print_help(void (*print)(const char *line));

#endif
