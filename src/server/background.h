/* SPDX-License-Identifier: MIT */
#ifndef BEL_SERVER_BACKGROUND_H
#define BEL_SERVER_BACKGROUND_H

/*
 * background - operations that outlast a turn: BACKUP and CLOCK ADVANCE. They run in slices between
 * two polls, so that other clients do not wait.
 *
 *     BACKUP          a thread copies; the loop polls it. One at a time
 *     CLOCK ADVANCE   advances for some ms of real time; then other clients are served, at the time
 *                     reached so far. One after the other
 *
 *     bel__background_..() ----> bel__loop_begin_chore() ----> bel__background_run() ----> done()
 *
 * Threads: only the loop thread may use it.
 */

#include "core/why.h"
#include "server/logger.h"
#include "server/loop.h"
#include "server/server_clock.h"
#include "server/store.h"
#include "session/request_tracker.h"
#include "session/session.h"

enum {
    BEL_BACKGROUND_PATH_BYTES = 1024,
};

/* The fields are private. */
struct bel_background {
    struct bel_server_store *store; /* borrowed, like the next three */
    struct bel_loop *loop;
    const struct bel_server_clock *clock;
    const struct bel_logger *log;
    struct bel_background_task *backup; /* the running one; or NULL */
    struct bel_mono backup_begun;
    char backup_folder[BEL_BACKGROUND_PATH_BYTES];
    struct bel_list advances; /* the first is running */
    uint64_t advance_turns;   /* turns of the running advance so far */
};

void bel__background_init(struct bel_background *background, struct bel_server_store *store,
                          struct bel_loop *loop, const struct bel_server_clock *clock,
                          const struct bel_logger *log);

/* Start an operation, for struct bel_service. Return BEL_BACKGROUND_LATER, or an error. */
BEL_CHECKED int bel__background_backup(struct bel_background *background, struct bel_view path,
                                       struct bel_background_task *task, struct bel_why *why);
BEL_CHECKED int bel__background_advance(struct bel_background *background,
                                        const struct bel_clock_move *move,
                                        struct bel_background_task *task);

/* Does a slice of the running operations. Returns in how many ms to call it again: 0 for at once,
 * UINT64_MAX for not before another operation begins. */
uint64_t bel__background_run(struct bel_background *background);

/* Stops all running operations; their requests fail. */
void bel__background_end(struct bel_background *background);

#endif
