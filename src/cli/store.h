/* SPDX-License-Identifier: MIT */
#ifndef BEL_CLI_STORE_H
#define BEL_CLI_STORE_H

/*
 * store - verbs that work on a store directly, without a server: --store URL. What opens a store is
 * handed in by src/main.c, because this layer knows only clients of servers. The store then has an
 * address like a server, which only this process uses.
 */

#include "core/why.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CLI_FINDINGS_MAX = 32,
    CLI_STORE_FACTS_MAX = 8,
    CLI_STORE_SHOWN_BYTES = 1024,
};

/* Where a store is, by the options of all verbs. */
struct cli_store {
    const char *url;                        /* NULL: the verb uses a server */
    const char *password_file, *name_space; /* NULL: not given */
};

/* What belfry doctor has found. The texts are borrowed until the next examination. */
struct cli_examination {
    struct {
        const char *about, *what, *advice;
        bool is_refusal;
    } findings[CLI_FINDINGS_MAX];
    size_t findings_count;
    struct {
        const char *name, *value;
        bool is_number;
    } facts[CLI_STORE_FACTS_MAX];
    size_t facts_count;
};

/* Errors: BEL_EINVAL if the options are not valid, BEL_EBUSY if the store cannot be reached,
 * BEL_ECONFLICT if it must not be used; any other means a failure. All set `why`. */
struct cli_stores {
    int (*open)(const struct cli_store *store, uint32_t wait_ms, const char **out_address,
                struct bel_why *why);
    void (*close)(void);
    int (*examine)(const struct cli_store *store, uint32_t wait_ms, struct cli_examination *out,
                   struct bel_why *why);
    void (*show)(const struct cli_store *store, char out[CLI_STORE_SHOWN_BYTES]);
};

/* Sets what opens stores; NULL: no verb has the option. */
void bel__cli_store_use(const struct cli_stores *stores);
const struct cli_stores *bel__cli_stores(void);

/* Returns the address of a store, which is opened before the first call. On failure prints the
 * error, sets `*status` to an exit status, and returns NULL. */
const char *bel__cli_store_address(const struct cli_store *store, uint32_t wait_ms, int *status);

/* Fills in what is not given from the variables of belfry serve: BELFRY_STORE, if that is a URL,
 * and then BELFRY_STORE_NAMESPACE and BELFRY_STORE_PASSWORD_FILE. With --store none is read. */
void bel__cli_store_default(struct cli_store *store);

/* Returns the URL without credentials. */
const char *bel__cli_store_shown(const struct cli_store *store);

/* Returns whether an error of a store is about its password or the rights of its user. */
bool bel__cli_store_is_denied(const char *why);

/* Prints the error of an open or examine, and returns the exit status. */
int bel__cli_store_failed(const struct cli_store *store, int err, const struct bel_why *why);

/* Closes the store, if one is open. */
void bel__cli_store_close(void);

#endif
