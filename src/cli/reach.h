/* SPDX-License-Identifier: MIT */
#ifndef BEL_CLI_REACH_H
#define BEL_CLI_REACH_H

/*
 * reach - which server, with which key, and what is said to the user when it does not work out.
 */

#include "belfry/client.h"
#include "cli/cli.h"

#include <stdbool.h>
#include <stdint.h>

/* How to reach a server. What is not said on the command line is in the environment: BELFRY_SERVER,
 * BELFRY_KEY_FILE. */
struct cli_reach {
    const char *server;   /* NULL: 127.0.0.1:7878 */
    const char *key_file; /* NULL: no key */
    uint32_t timeout_ms;  /* of a call; 0: 30 s */
    bool is_json;
};

enum {
    CLI_TIMEOUT_MS = 30000,
    CLI_KEY_BYTES_MAX = 1024,
};

/* An option that all of these verbs have: --server, --key-file, --timeout, --json. Sets `*out_has`
 * to whether it is one, and `*out_used` to whether it took the value. Returns CLI_OK, or has said
 * what is wrong. */
int bel__reach_option(struct cli_reach *reach, const char *name, const char *value, bool *out_has,
                      bool *out_used);

/* What to say of them in a help text. */
extern const char bel__reach_help[];

/* The address, and the key of the file, if there is one. Returns CLI_OK, or has said what is wrong.
 * The key is to be wiped. */
const char *bel__reach_address(const struct cli_reach *reach);
int bel__reach_key(const struct cli_reach *reach, char key[CLI_KEY_BYTES_MAX], size_t *out_bytes);

/* Connects. Returns CLI_OK and sets `*out`, or has said what is wrong. */
int bel__reach_connect(const struct cli_reach *reach, struct bel_client **out);

/* Says what is wrong with a call, or that the server has answered with an error. Returns what to
 * exit with. */
int bel__reach_failed(const struct cli_reach *reach, int err);
int bel__reach_refused(const struct bel_value *error);

/* What to exit with for a code of the server's. */
int bel__reach_exit(struct bel_view code);

#endif
