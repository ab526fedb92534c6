/* SPDX-License-Identifier: MIT */
#ifndef BEL_SERVER_EMBEDDED_PRESSURE_WATCH_H
#define BEL_SERVER_EMBEDDED_PRESSURE_WATCH_H

/*
 * pressure_watch - takes a sample of pressure each second, passes it to the engine, and logs a
 * change of the level.
 */

#include "belfry/engine.h"
#include "server/logger.h"

#include <uv.h>

struct bel_loop;

struct bel_pressure_watch {
    struct bel_engine *engine; /* borrowed, as are the next two */
    struct bel_loop *loop;
    const struct bel_logger *log;
    void (*measure)(void *context, struct bel_pressure_sample *out);
    void *context;
    uv_timer_t timer; /* private: of the loop, which closes it */
};

/* Takes one sample. Returns whether the engine needs a turn. */
bool bel__pressure_watch_take(struct bel_pressure_watch *watch);

/* Takes a sample now and each second from now on, until the loop ends. */
void bel__pressure_watch_start(struct bel_pressure_watch *watch);

#endif
