/* SPDX-License-Identifier: MIT */

/*
 * The answers of a batch move from list to list:
 *
 *     current ---commit---> unsynced, unsynced ---durable---> given ---> spare
 *
 * Memory is reused: an answered batch becomes a spare one.
 */
#include "engine/state/answers.h"

#include "engine/state/state.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* --- replies --- */

int bel__refuse(struct bel_reply *reply, int err, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(reply->why, sizeof reply->why, format, args);
    va_end(args);
    reply->err = err;
    return err;
}

int bel__break_off(struct bel_request *request, int err, uint64_t count)
{
    struct bel_reply *reply = &request->own.reply;
    reply->count = count;
    if (err == BEL_EBUSY) request->own.words[BEL_OWN_STAGE] = BEL_STAGE_BULK;
    if (err == BEL_EBUSY || count == 0) return err;
    return bel__refuse(reply, err, "%s, after %llu timers", bel_error_text(err),
                       (unsigned long long)count);
}

struct bel_arena *bel__answer_arena(struct bel_engine *engine)
{
    return &engine->answers.current->arena;
}

void *bel__answer_take(struct bel_engine *engine, size_t bytes)
{
    return bel__arena_take(&engine->answers.current->arena, bytes);
}

struct bel_view bel__answer_copy(struct bel_engine *engine, struct bel_view view)
{
    return bel__arena_copy(&engine->answers.current->arena, view);
}

void bel__answer(struct bel_engine *engine, struct bel_request *request)
{
    assert(request->own.words[BEL_OWN_STAGE] != BEL_STAGE_ANSWERED);
    request->own.words[BEL_OWN_STAGE] = BEL_STAGE_ANSWERED;
    bel__request_list_append(&engine->answers.current->requests, request);
}

/* --- batches --- */

static struct bel_batch_answers *create(void)
{
    struct bel_batch_answers *batch = calloc(1, sizeof *batch);
    if (batch != NULL) bel__request_list_init(&batch->requests);
    return batch;
}

int bel__answers_begin(struct bel_answers *answers)
{
    if (answers->current != NULL) return 0;
    answers->current = answers->spare;
    if (answers->current == NULL) {
        answers->current = create();
        return answers->current == NULL ? BEL_ENOMEM : 0;
    }
    answers->spare = answers->current->next;
    answers->current->next = NULL;
    return 0;
}

void bel__answers_end(struct bel_answers *answers, uint64_t number)
{
    struct bel_batch_answers **last = &answers->unsynced, *spare = answers->spare;
    while (*last != NULL) {
        assert((*last)->batch <= number || number == 0);
        last = &(*last)->next;
    }
    answers->current->batch = number;
    answers->current->next = NULL;
    *last = answers->current;
    answers->current = spare; /* NULL: the next turn creates one */
    if (spare != NULL) {
        answers->spare = spare->next;
        spare->next = NULL;
    }
}

static void give(const struct bel_engine *engine, struct bel_request *request)
{
    struct bel_reply *reply = &request->own.reply;
    if (engine->broken) *reply = (struct bel_reply){.err = engine->broken};
    if (reply->err == BEL_EFULL && reply->why[0] == 0 && engine->stats.is_disk_low) {
        (void)snprintf(reply->why, sizeof reply->why,
                       "the disk of the data directory is nearly full");
    }
    if (reply->err != 0 && reply->why[0] == 0) {
        (void)snprintf(reply->why, sizeof reply->why, "%s", bel_error_text(reply->err));
    }
    request->done(request, reply);
}

void bel__answers_give(struct bel_engine *engine)
{
    struct bel_answers *answers = &engine->answers;
    struct bel_batch_answers *batch;
    struct bel_request *request;
    uint64_t synced = bel__store_answerable(engine->store);
    while ((batch = answers->unsynced) != NULL && (batch->batch <= synced || engine->broken)) {
        answers->unsynced = batch->next;
        while ((request = bel__request_list_take(&batch->requests)) != NULL) {
            give(engine, request);
        }
        bel__arena_reset(&batch->arena);
        batch->next = answers->spare;
        answers->spare = batch;
    }
}

static void destroy(struct bel_batch_answers *batch)
{
    while (batch != NULL) {
        struct bel_batch_answers *next = batch->next;
        bel__arena_finish(&batch->arena);
        free(batch);
        batch = next;
    }
}

void bel__answers_finish(struct bel_answers *answers)
{
    destroy(answers->current);
    destroy(answers->unsynced);
    destroy(answers->spare);
    *answers = (struct bel_answers){0};
}
