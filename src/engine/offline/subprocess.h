/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_OFFLINE_SUBPROCESS_H
#define BEL_ENGINE_OFFLINE_SUBPROCESS_H

/*
 * subprocess - runs a task in a forked process, because the data that it reads may be so damaged
 * that reading kills the process.
 *
 *     err = bel__subprocess_run(&(struct bel_subprocess_task){.run = walk, ...}, &why);
 *
 * The process sees a copy of the caller's memory. Pieces that it sends arrive one by one, as they
 * were sent. If the process dies, the result is BEL_ECORRUPT.
 */

#include "belfry/error.h"
#include "belfry/view.h"
#include "core/why.h"

#include <stdbool.h>
#include <stdint.h>

struct bel_subprocess; /* opaque: the pipe to the caller */

struct bel_subprocess_task {
    /* Runs in the subprocess. Returns 0, or an error with its reason in `why`. */
    int (*run)(void *context, struct bel_subprocess *process, struct bel_why *why);
    /* Called in this process with each piece. A result other than 0 ends the subprocess. */
    int (*receive)(void *context, struct bel_view piece);
    void *context;
    uint64_t ms_max; /* how long it may take; 0: no limit */
    bool is_late;    /* is set if that time was over, and the subprocess was killed */
};

/* Runs a task to its end. Returns its result; BEL_ECORRUPT if the subprocess died; BEL_EBUSY if
 * the time was over; BEL_EIO or BEL_ENOMEM if it could not be
 * started. */
BEL_CHECKED int bel__subprocess_run(struct bel_subprocess_task *task, struct bel_why *why);

/* In the subprocess: sends a piece. Returns BEL_ECLOSED if the caller no longer reads. */
BEL_CHECKED int bel__subprocess_send(struct bel_subprocess *process, struct bel_view piece);

#endif
