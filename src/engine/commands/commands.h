/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_COMMANDS_COMMANDS_H
#define BEL_ENGINE_COMMANDS_COMMANDS_H

/*
 * commands - the commands of an engine, one function each. A function fills in the reply in the
 * request and returns 0, an error, or one of these:
 */

#include "belfry/backend.h"

struct bel_engine;

enum {
    BEL_DO_LATER = 1, /* call it again in the next turn */
    BEL_DO_WAIT = 2,  /* the claim is parked */
};

int bel__do_schedule(struct bel_engine *engine, struct bel_request *request);
int bel__do_cancel(struct bel_engine *engine, struct bel_request *request);
int bel__do_reschedule(struct bel_engine *engine, struct bel_request *request);
int bel__do_get(struct bel_engine *engine, struct bel_request *request);
int bel__do_claim(struct bel_engine *engine, struct bel_request *request);
int bel__do_ack(struct bel_engine *engine, struct bel_request *request);
int bel__do_fail(struct bel_engine *engine, struct bel_request *request);
int bel__do_release(struct bel_engine *engine, struct bel_request *request);
int bel__do_extend(struct bel_engine *engine, struct bel_request *request);
int bel__do_list(struct bel_engine *engine, struct bel_request *request);
int bel__do_revive(struct bel_engine *engine, struct bel_request *request);
int bel__do_purge(struct bel_engine *engine, struct bel_request *request);
int bel__do_topics(struct bel_engine *engine, struct bel_request *request);
int bel__do_topic(struct bel_engine *engine, struct bel_request *request);
int bel__do_configure(struct bel_engine *engine, struct bel_request *request);
int bel__do_pause(struct bel_engine *engine, struct bel_request *request);
int bel__do_resume(struct bel_engine *engine, struct bel_request *request);
int bel__do_explain(struct bel_engine *engine, struct bel_request *request);
int bel__do_agenda(struct bel_engine *engine, struct bel_request *request);
int bel__do_job_submit(struct bel_engine *engine, struct bel_request *request);
int bel__do_job_get(struct bel_engine *engine, struct bel_request *request);
int bel__do_job_cancel(struct bel_engine *engine, struct bel_request *request);
int bel__do_job_list(struct bel_engine *engine, struct bel_request *request);
int bel__do_job_pause(struct bel_engine *engine, struct bel_request *request);
int bel__do_job_resume(struct bel_engine *engine, struct bel_request *request);
int bel__do_limit(struct bel_engine *engine, struct bel_request *request);

/* Checks what SCHEDULE checks of names, headers and sizes. Returns 0 or BEL_EINVAL. */
BEL_CHECKED int bel__schedule_check(struct bel_engine *engine, const struct bel_schedule_spec *spec,
                                    struct bel_reply *reply);

/* Frees the agendas that are not finished. */
void bel__agendas_close(struct bel_engine *engine);

/* SCHEDULE of a whole timer. */
int bel__do_restore(struct bel_engine *engine, struct bel_request *request);

/* Refuses a name that no resource may have. Returns BEL_EINVAL. */
int bel__refuse_resource(struct bel_reply *reply, struct bel_view name);

/* Serves parked claims in the order in which they came. */
void bel__claims_serve(struct bel_engine *engine);

#endif
