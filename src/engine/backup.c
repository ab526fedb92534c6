/* SPDX-License-Identifier: MIT */

/* Copies are the store's affair; an engine has nothing that is not in rows by the end of a turn. */
#include "engine/engine.h"

#include "core/why.h"

#include <stdio.h>

static int said(int err, const struct bel_why *found, struct bel_engine_why *why)
{
    return bel__why_pass(why != NULL ? why->text : NULL, err, found);
}

int bel_engine_backup_begin(struct bel_engine *engine, const char *folder,
                            struct bel_engine_why *why)
{
    struct bel_why found = {0};
    return said(bel__store_backup_begin(engine->store, folder, &found), &found, why);
}

int bel_engine_backup_poll(struct bel_engine *engine, struct bel_engine_why *why)
{
    struct bel_why found = {0};
    (void)bel__store_work(engine->store);
    (void)bel__store_commit(engine->store); /* an empty one: this is not in a turn */
    return said(bel__store_backup_poll(engine->store, &found), &found, why);
}

int bel_engine_backup(struct bel_engine *engine, const char *folder, struct bel_engine_why *why)
{
    struct bel_why found = {0};
    return said(bel__store_backup(engine->store, folder, &found), &found, why);
}
