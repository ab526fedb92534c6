/* SPDX-License-Identifier: MIT */

/* What a program tells an engine about its surroundings: limits, and checks of the data. */
#include "engine/engine.h"

bool bel_engine_pressure(struct bel_engine *engine, const struct bel_pressure_sample *sample)
{
    return bel__pressure_sample(engine, sample);
}

uint64_t bel_engine_reusable_bytes(struct bel_engine *engine)
{
    return bel__store_reusable_bytes(engine->store);
}

void bel__engine_trust(struct bel_engine *engine)
{
    bel__store_trust(engine->store);
}

int bel__engine_watch_faults(void (*name)(uint64_t page))
{
    return bel__store_watch_faults(name);
}
