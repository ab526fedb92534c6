/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_STATE_ANSWERS_H
#define BEL_ENGINE_STATE_ANSWERS_H

/*
 * answers - replies that wait until what they report is durable.
 *
 * A command fills in request->own.reply. Memory that the reply points to is taken from an arena,
 * and stays valid until the reply has been given.
 */

#include "belfry/backend.h"
#include "core/arena.h"
#include "engine/state/request_list.h"

struct bel_engine;

#define BEL_AFTER_TURN UINT64_MAX

/* Answered requests that wait for one batch, and memory of replies. */
struct bel_batch_answers {
    struct bel_batch_answers *next;
    struct bel_request_list requests;
    struct bel_arena arena;
    uint64_t batch;  /* if it waits: the batch that must be durable */
    bool is_waiting; /* it has requests, or others use its memory */
};

struct bel_answers {
    struct bel_batch_answers *changes;  /* of commands that change something; NULL: none yet */
    struct bel_batch_answers *reads;    /* of others, if replies wait after the turn; or NULL */
    struct bel_batch_answers *current;  /* one of the two: memory for the current command */
    struct bel_batch_answers *unsynced; /* of batches that are being synced, oldest first */
    struct bel_batch_answers *spare;    /* empty, for later batches */
    struct bel_request_list *open;      /* where answers of this turn go: `turn`, or changes */
    struct bel_request_list turn;       /* answered in this turn, if replies wait after it */
    struct bel_batch_answers now;       /* waits for nothing; without memory of its own */
};

void bel__answers_init(struct bel_answers *answers);

/* Starts the answers of a turn. Returns 0 or BEL_ENOMEM. */
BEL_CHECKED int bel__answers_begin(struct bel_engine *engine);

/* Ends the answers of a turn, whose changes are in batch `number`. */
void bel__answers_end(struct bel_engine *engine, uint64_t number);

/* Gives the answers whose batches are durable, or as durable as the options require. If the engine
 * is broken, gives all answers, as errors. */
void bel__answers_give(struct bel_engine *engine);

void bel__answers_finish(struct bel_answers *answers);

/* Chooses the memory for the replies of a command: see struct bel_answers. */
void bel__answers_choose(struct bel_answers *answers, bool is_read);

/* Adds a request with a complete reply. If replies wait after the turn, own.words[BEL_OWN_AFTER] is
 * the batch to wait for, or BEL_AFTER_TURN: the batch of this turn. */
void bel__answer(struct bel_engine *engine, struct bel_request *request);

/* Memory for replies: the arena; bytes of it; a copy in it. Without memory the
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
