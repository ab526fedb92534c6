/* SPDX-License-Identifier: MIT */
#ifndef BEL_TESTS_MODEL_H
#define BEL_TESTS_MODEL_H

/*
 * model - durable timers, implemented in the simplest way: the reference for every other backend.
 *
 * The model keeps all timers in one array and looks at all of them for every command. It stores
 * nothing on disk, is slow, and is meant to be read next to docs/SEMANTICS.md: where the two
 * differ, one of them is wrong.
 *
 *     struct model *model = model_create(&(struct model_options){.now = now});
 *     bel_backend_submit(model_backend(model), &request);
 *     next = bel_backend_turn(model_backend(model), now);
 *
 * The files: model.c is the turn, topics.c the settings, timers.c the life of a timer, plans.c the
 * rings of plans, jobs.c the life of a job, submit.c how one is made; schedule.c, claims.c,
 * leases.c, looking.c and job_verbs.c the verbs. Recurring jobs are unsupported.
 */

#include "belfry/backend.h"
#include "belfry/pressure.h"
#include "belfry/zone.h"

#include <stdint.h>

struct model; /* opaque */

struct model_options {
    struct bel_now now;                /* when the model is opened */
    uint64_t (*random)(void *context); /* for jitter; NULL: always 0 */
    void *context;
    struct bel_zones *zones;   /* borrowed; NULL: UTC is the only zone */
    uint32_t list_count_max;   /* timers of one reply to LIST; 0: BEL_LIST_COUNT_MAX. If a LIST asks
                                  for more than that, their bytes do not end the reply. */
    uint64_t job_retention_ms; /* how long a job that has ended is kept; 0: 24 h */
};

/* Creates an empty model. Never fails: a test that runs out of memory is aborted. */
struct model *model_create(const struct model_options *options);

/* Returns a copy of a model, which must have no pending requests. Given the same requests and
 * times, both behave alike. */
struct model *model_clone(const struct model *model);

/* Frees a model. Its pending requests are not answered. */
void model_destroy(struct model *model);

/* Returns the model as a backend, valid as long as the model. */
struct bel_backend *model_backend(struct model *model);

/* Closes a model after its last turn, and opens it again at `now`, whose boot clock may have
 * restarted. There must be no pending requests. */
void model_reopen(struct model *model, struct bel_now now);

/* Tells a model how much of the limits outside of it is used, between two turns. */
void model_pressure(struct model *model, const struct bel_pressure_sample *sample);

#endif
