/* SPDX-License-Identifier: MIT */

/* What a server tells the engine's store about checks of its data. */
#include "engine/engine.h"

void bel__engine_trust(struct bel_engine *engine)
{
    bel__store_trust(engine->store);
}

int bel__engine_watch_faults(void (*name)(uint64_t page))
{
    return bel__store_watch_faults(name);
}
