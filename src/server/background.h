/* SPDX-License-Identifier: MIT */
#ifndef BEL_SERVER_BACKGROUND_H
#define BEL_SERVER_BACKGROUND_H

/*
 * background - what a server does on the side, a slice at a time between two polls, so that nobody
 * else has to wait for it.
 *
 *     BACKUP          a thread copies; the loop looks now and then how far it is. One at a time
 *     CLOCK ADVANCE   time moves on for some ms of real time, then the others have their turn, at
 *                     the time that it is on the way. One after the other
 *
 *     bel__background_..() ----> bel__loop_begin_chore() ----> bel__background_run() ----> done()
 *
 * Threads: all of it belongs to the thread of the loop.
 */

#include "belfry/engine.h"
#include "core/why.h"
#include "server/logger.h"
#include "server/loop.h"
#include "server/server_clock.h"
#include "session/request_tracker.h"
#include "session/session.h"

enum {
    BEL_BACKGROUND_PATH_BYTES = 1024,
};

/* The fields are private. */
struct bel_background {
    struct bel_engine *engine; /* borrowed, as are the next two */
    struct bel_loop *loop;
    const struct bel_server_clock *clock;
    const struct bel_logger *log;
    struct bel_background_task *backup; /* that is under way; or NULL */
    struct bel_mono backup_begun;
    char backup_folder[BEL_BACKGROUND_PATH_BYTES];
    struct bel_list advances; /* the first is under way */
    uint64_t advance_turns;   /* of it, so far */
};

void bel__background_init(struct bel_background *background, struct bel_engine *engine,
                          struct bel_loop *loop, const struct bel_server_clock *clock,
                          const struct bel_logger *log);

/* Begin one, as struct bel_service wants it. */
BEL_CHECKED int bel__background_backup(struct bel_background *background, struct bel_view path,
                                       struct bel_background_task *task, struct bel_why *why);
BEL_CHECKED int bel__background_advance(struct bel_background *background,
                                        const struct bel_clock_move *move,
                                        struct bel_background_task *task);

/* Does a slice of what is under way. Returns in how many ms to call it again: 0 at once, UINT64_MAX
 * when another was begun. */
uint64_t bel__background_run(struct bel_background *background);

/* Gives up all that is under way, and says so. */
void bel__background_end(struct bel_background *background);

#endif
