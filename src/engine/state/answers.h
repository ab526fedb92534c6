/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_STATE_ANSWERS_H
#define BEL_ENGINE_STATE_ANSWERS_H

/*
 * answers - replies, which wait until the batch that they tell of is durable.
 *
 * A command fills in request->own.reply; what the reply points to is memory of the batch's arena,
 * and good until the answer has been given.
 */

#include "belfry/backend.h"
#include "core/arena.h"
#include "engine/state/request_list.h"

struct bel_engine;

/* The answers of one batch, and what they point to. */
struct bel_batch_answers {
    struct bel_batch_answers *next;
    struct bel_request_list requests;
    struct bel_arena arena;
    uint64_t batch; /* as the store numbers them */
};

struct bel_answers {
    struct bel_batch_answers *current;  /* of the batch that is being made */
    struct bel_batch_answers *unsynced; /* of earlier ones, from old to new */
    struct bel_batch_answers *spare;    /* empty, for batches to come */
};

/* Begins those of a batch. BEL_ENOMEM. */
BEL_CHECKED int bel__answers_begin(struct bel_answers *answers);

/* Ends those of the current batch: they wait until the store says that the batch of this
 * number is durable. */
void bel__answers_end(struct bel_answers *answers, uint64_t number);

/* Gives the answers of batches that are durable, or as durable as the options want them; all of
 * them, as errors, if the engine is broken. */
void bel__answers_give(struct bel_engine *engine);

void bel__answers_finish(struct bel_answers *answers);

/* Puts a request, whose reply is complete, among the answers of the current batch. */
void bel__answer(struct bel_engine *engine, struct bel_request *request);

/* Memory for what a reply points to: the arena; so many bytes of it; a copy in it. The last two
 * return NULL, and a view whose data is NULL, if there is no memory. */
struct bel_arena *bel__answer_arena(struct bel_engine *engine);
void *bel__answer_take(struct bel_engine *engine, size_t bytes);
struct bel_view bel__answer_copy(struct bel_engine *engine, struct bel_view view);

/* Sets the error of a reply and returns it. */
int bel__refuse(struct bel_reply *reply, int err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Returns what a command on many things returns when it cannot go on, after `count` of them. If the
 * batch is full, the command is called again with the next batch, in BEL_STAGE_BULK. */
int bel__break_off(struct bel_request *request, int err, uint64_t count);

#endif
