/* SPDX-License-Identifier: MIT */

/*
 * The suite against the embedded engine, which keeps what it has in memory.
 */
#include "belfry/engine.h"
#include "conformance.h"

static void open_engine(struct subject *s)
{
    struct bel_engine *engine;
    struct bel_engine_options options = {.now = s->now};
    CHECK(bel_engine_open(&options, &engine, NULL) == 0);
    s->context = engine;
    s->backend = bel_engine_backend(engine);
}

static void close_engine(struct subject *s)
{
    bel_engine_close(s->context);
}

int main(int argc, char **argv)
{
    static const struct kind kind = {"the engine", CAN_STEP_WALL | CAN_GROUP, open_engine,
                                     close_engine, NULL};
    return conformance_run(&kind, argc, argv);
}
