/* SPDX-License-Identifier: MIT */
#ifndef BEL_CLI_CONNECT_H
#define BEL_CLI_CONNECT_H

/*
 * connect - the server's address, key and timeout from options and environment; connecting; and the
 * messages and exit statuses of calls that fail.
 */

#include "belfry/client.h"
#include "cli/cli.h"
#include "cli/store.h"
#include "core/similar.h"

#include <stdbool.h>
#include <stdint.h>

/* How to reach a server. Defaults come from the environment: BELFRY_SERVER, BELFRY_KEY_FILE. */
struct cli_connect {
    struct cli_store store; /* instead of a server */
    const char *server;     /* NULL: a store, $BELFRY_SERVER, or 127.0.0.1:7878 */
    const char *key_file;   /* NULL: $BELFRY_KEY_FILE, or no key */
    uint32_t timeout_ms;    /* of a call; 0: 30 s */
    uint32_t patience_ms;   /* how long to try again if no server listens */
    bool is_json;
};

enum {
    CLI_TIMEOUT_MS = 30000,
    CLI_KEY_BYTES_MAX = 1024,
};

/* Parses an option of all verbs that connect: --server, --store and what belongs to it, --key-file,
 * --timeout, --json. Sets `*out_has` to whether `name` is one of them, and `*out_used` to whether
 * it takes a value. Returns CLI_OK, or an exit status after printing an error. */
int bel__connect_option(struct cli_connect *connect, const char *name, const char *value,
                        bool *out_has, bool *out_used);

/* Offers the names of these options for a mistyped one. */
void bel__connect_offer(struct bel_similar *similar);

/* The help lines of these options; and those of verbs that work on a server only. */
extern const char bel__connect_help[];
extern const char bel__connect_help_server[];

/* Returns whether the verb works on a store: --store, or $BELFRY_STORE without --server. */
bool bel__connect_is_store(const struct cli_connect *connect);

/* Returns the address for people: of the server, or the URL of the store. */
const char *bel__connect_address(const struct cli_connect *connect);

/* Returns the address for bel_client_connect(). With a store, bel__connect_open() was called. */
const char *bel__connect_target(const struct cli_connect *connect);

/* Reads the key, if a key file is given. Returns CLI_OK, or an exit status after printing an error.
 * The caller wipes the key. */
int bel__connect_key(const struct cli_connect *connect, char key[CLI_KEY_BYTES_MAX],
                     size_t *out_bytes);

/* Connects. Returns CLI_OK and sets `*out`, or an exit status after printing an error. */
int bel__connect_open(const struct cli_connect *connect, struct bel_client **out);

/* Print the error of a failed call, or an error reply of the server. Return the exit status. */
int bel__connect_failed(const struct cli_connect *connect, int err);
int bel__connect_refused(const struct bel_value *error);

/* The same for an error in a file, whose name comes first. */
int bel__connect_refused_in(const char *file, const struct bel_value *error);

/* Returns the exit status for an error code of the server. */
int bel__connect_exit(struct bel_view code);

#endif
