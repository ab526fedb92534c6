/* SPDX-License-Identifier: MIT */

/* A program has at most one store, because it runs one verb. */
#include "cli/store.h"

#include "cli/cli.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct cli_stores *known;
static const char *open_address; /* NULL: none is open */

void bel__cli_store_use(const struct cli_stores *stores)
{
    known = stores;
}

const struct cli_stores *bel__cli_stores(void)
{
    return known;
}

static const char *variable(const char *name)
{
    const char *value = getenv(name); /* NOLINT(concurrency-mt-unsafe): nothing calls setenv */
    return value != NULL && value[0] != '\0' ? value : NULL;
}

void bel__cli_store_default(struct cli_store *store)
{
    const char *url = variable("BELFRY_STORE");
    if (store->url != NULL || url == NULL || strstr(url, "://") == NULL) return;
    store->url = url;
    if (store->name_space == NULL) store->name_space = variable("BELFRY_STORE_NAMESPACE");
    if (store->password_file == NULL) {
        store->password_file = variable("BELFRY_STORE_PASSWORD_FILE");
    }
}

const char *bel__cli_store_shown(const struct cli_store *store)
{
    static char shown[CLI_STORE_SHOWN_BYTES];
    known->show(store, shown);
    return shown[0] != '\0' ? shown : "the store";
}

bool bel__cli_store_is_denied(const char *why)
{
    /* In capitals or with spaces: names of topics and folders have none of these. */
    static const char *const words[] = {
        "WRONGPASS", "NOAUTH", "NOPERM", "invalid password", "without any password", "the user "};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strstr(why, words[i]) != NULL) return true;
    }
    return false;
}

int bel__cli_store_failed(const struct cli_store *store, int err, const struct bel_why *why)
{
    const char *text = why->text[0] != '\0' ? why->text : bel_error_text(err);
    if (err == BEL_EINVAL) {
        fprintf(stderr, "belfry: --store: %s\n", text);
        return CLI_USAGE;
    }
    fprintf(stderr, "belfry: %s: %s\n", bel__cli_store_shown(store), text);
    if (strstr(text, "see COMMAND LIST") != NULL) {
        fputs("        this is a Belfry server, not a store: use --server HOST:PORT\n", stderr);
        return CLI_USAGE;
    }
    if (bel__cli_store_is_denied(text)) return CLI_NOT_ALLOWED;
    return err == BEL_EBUSY ? CLI_UNREACHABLE : CLI_FAILED;
}

const char *bel__cli_store_address(const struct cli_store *store, uint32_t wait_ms, int *status)
{
    struct bel_why why = {0};
    assert(store->url != NULL && known != NULL);
    if (open_address != NULL) return open_address;
    int err = known->open(store, wait_ms, &open_address, &why);
    if (err == 0) return open_address;
    *status = bel__cli_store_failed(store, err, &why);
    return NULL;
}

void bel__cli_store_close(void)
{
    if (open_address == NULL) return;
    open_address = NULL;
    known->close();
}
