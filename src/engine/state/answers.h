/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_STATE_ANSWERS_H
#define BEL_ENGINE_STATE_ANSWERS_H

/*
 * answers - replies that wait until their batch is durable.
 *
 * A command fills in request->own.reply. Memory that the reply points to is taken from the batch's
 * arena, and stays valid until the reply has been given.
 */

#include "belfry/backend.h"
#include "core/arena.h"
#include "engine/state/request_list.h"

struct bel_engine;

/* The answered requests of one batch, and the memory of their replies. */
struct bel_batch_answers {
    struct bel_batch_answers *next;
    struct bel_request_list requests;
    struct bel_arena arena;
    uint64_t batch; /* the store's number of the batch */
};

struct bel_answers {
    struct bel_batch_answers *current;  /* of the current batch */
    struct bel_batch_answers *unsynced; /* of committed batches, oldest first */
    struct bel_batch_answers *spare;    /* empty, for later batches */
};

/* Starts the answers of a batch. Returns 0 or BEL_ENOMEM. */
BEL_CHECKED int bel__answers_begin(struct bel_answers *answers);

/* Ends the answers of the current batch. They wait until the store reports batch `number` as
 * durable. */
void bel__answers_end(struct bel_answers *answers, uint64_t number);

/* Gives the answers of batches that are durable, or as durable as the options require. If the
 * engine is broken, gives all answers, as errors. */
void bel__answers_give(struct bel_engine *engine);

void bel__answers_finish(struct bel_answers *answers);

/* Adds a request with a complete reply to the answers of the current batch. */
void bel__answer(struct bel_engine *engine, struct bel_request *request);

/* Memory for replies: the arena of the current batch; bytes of it; a copy in it. Without memory the
 * second returns NULL, and the third a view whose data is NULL. */
struct bel_arena *bel__answer_arena(struct bel_engine *engine);
void *bel__answer_take(struct bel_engine *engine, size_t bytes);
struct bel_view bel__answer_copy(struct bel_engine *engine, struct bel_view view);

/* Sets the error of a reply, with its text, and returns the error. */
int bel__refuse(struct bel_reply *reply, int err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Returns the error of a bulk command that cannot go on after `count` timers. If the batch is full,
 * the command is called again with the next batch, in BEL_STAGE_BULK. */
int bel__break_off(struct bel_request *request, int err, uint64_t count);

#endif
