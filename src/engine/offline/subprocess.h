/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_OFFLINE_SUBPROCESS_H
#define BEL_ENGINE_OFFLINE_SUBPROCESS_H

/*
 * apart - work that is done in a process of its own, because what it reads may be so damaged that
 * reading ends the process.
 *
 *     err = bel__subprocess_run(&(struct bel_subprocess_task){.run = walk, ...}, &why);
 *
 * The process is forked: it sees what the caller has, and changes nothing of it. What it sends
 * arrives in pieces as they were sent. If it does not come to an end by itself, that is
 * BEL_ECORRUPT.
 */

#include "belfry/error.h"
#include "belfry/view.h"
#include "core/why.h"

struct bel_subprocess; /* opaque: the way back */

struct bel_subprocess_task {
    /* In the other process. Returns 0 or an error, and says why. */
    int (*run)(void *context, struct bel_subprocess *apart, struct bel_why *why);
    /* In this one: called with each piece. What it returns, if not 0, ends the other process. */
    int (*receive)(void *context, struct bel_view piece);
    void *context;
};

/* Runs a task to its end. Returns what it returned; BEL_ECORRUPT if it died; BEL_EIO or BEL_ENOMEM
 * if there can be no other process. */
BEL_CHECKED int bel__subprocess_run(const struct bel_subprocess_task *task, struct bel_why *why);

/* In the other process: sends a piece. BEL_ECLOSED if nobody listens any more. */
BEL_CHECKED int bel__subprocess_send(struct bel_subprocess *apart, struct bel_view piece);

#endif
