/* SPDX-License-Identifier: MIT */

/* The store makes the copies. At the end of a turn, all state of an engine is in rows. */
#include "engine/engine.h"

#include "core/why.h"

#include <stdio.h>

static int pass_why(int err, const struct bel_why *found, struct bel_engine_why *why)
{
    return bel__why_pass(why != NULL ? why->text : NULL, err, found);
}

int bel_engine_backup_begin(struct bel_engine *engine, const char *folder,
                            struct bel_engine_why *why)
{
    struct bel_why found = {0};
    return pass_why(bel__store_backup_begin(engine->store, folder, &found), &found, why);
}

int bel_engine_backup_poll(struct bel_engine *engine, struct bel_engine_why *why)
{
    struct bel_why found = {0};
    (void)bel__store_work(engine->store);
    (void)bel__store_commit(engine->store); /* empty: called between turns */
    return pass_why(bel__store_backup_poll(engine->store, &found), &found, why);
}

int bel_engine_backup(struct bel_engine *engine, const char *folder, struct bel_engine_why *why)
{
    struct bel_why found = {0};
    return pass_why(bel__store_backup(engine->store, folder, &found), &found, why);
}
