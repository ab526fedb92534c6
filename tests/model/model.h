/* SPDX-License-Identifier: MIT */
#ifndef BEL_TESTS_MODEL_H
#define BEL_TESTS_MODEL_H

/*
 * model - durable timers, done the obvious way: the judge of every other backend.
 *
 * It keeps all timers in one array and looks at all of them whenever something is asked. It
 * writes nothing down, is slow, and is meant to be read beside docs/SEMANTICS.md: where the two
 * differ, one of them is wrong.
 *
 *     struct model *model = model_create(&(struct model_options){.now = now});
 *     bel_backend_submit(model_backend(model), &request);
 *     next = bel_backend_turn(model_backend(model), now);
 *
 * The files: model.c is the turn, topics.c the settings, timers.c what happens to a timer,
 * plans.c how plans ring, schedule.c, claims.c, leases.c and looking.c the verbs.
 */

#include "belfry/backend.h"
#include "belfry/zone.h"

#include <stdint.h>

struct model; /* opaque */

struct model_options {
    struct bel_now now;                /* when it is opened */
    uint64_t (*random)(void *context); /* for jitter; NULL: always 0 */
    void *context;
    struct bel_zones *zones; /* borrowed; NULL: UTC is the only zone */
};

/* Makes an empty model. It never fails: a test that is out of memory is aborted. */
struct model *model_create(const struct model_options *options);

/* Frees it and forgets the requests that it has. */
void model_destroy(struct model *model);

/* The model as a backend; it lives as long as the model. */
struct bel_backend *model_backend(struct model *model);

/* Closes it after its last turn, and opens it again at `now`, whose boot clock may have started
 * anew. There may be no requests. */
void model_reopen(struct model *model, struct bel_now now);

#endif
