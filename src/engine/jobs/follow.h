/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_JOBS_FOLLOW_H
#define BEL_ENGINE_JOBS_FOLLOW_H

/*
 * follow - jobs that begin when another one has ended: `then`.
 */

#include "belfry/error.h"
#include "belfry/view.h"

struct bel_engine;
struct bel_key;

/* Goes on with the jobs that follow an ended one, whose row in JOB_TIMES this is. */
BEL_CHECKED int bel__follow(struct bel_engine *engine, const struct bel_key *time_key,
                            struct bel_view value);

/* Gives up a follower that is being submitted if its parent was replaced since: nothing follows a
 * job that is gone. Returns 0, or an error of the lookup. */
BEL_CHECKED int bel__follow_check(struct bel_engine *engine);

#endif
