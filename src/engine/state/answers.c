/* SPDX-License-Identifier: MIT */

/*
 * If a batch is durable when its turn ends, all answers of the turn are given then. Otherwise:
 *
 *     turn --commit--> now, if what the reply shows is durable
 *                      changes, reads --its sync begins--> unsynced, unsynced --durable--> given
 *
 * Turns whose batches will be synced together share `changes` and `reads`: on a slow disk there are
 * thousands of turns during one sync. A reply that depends on an earlier batch joins the answers of
 * the sync of that batch. Memory of reads is apart from that of changes, so that it can be freed at
 * once when no read waits.
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
    bel__request_list_append(engine->answers.open, request);
}

/* --- batches --- */

static struct bel_batch_answers *create(void)
{
    struct bel_batch_answers *batch = calloc(1, sizeof *batch);
    if (batch != NULL) bel__request_list_init(&batch->requests);
    return batch;
}

void bel__answers_init(struct bel_answers *answers)
{
    *answers = (struct bel_answers){0};
    bel__request_list_init(&answers->turn);
    bel__request_list_init(&answers->now.requests);
}

/* Takes a spare batch, or creates one. Returns NULL if out of memory. */
static struct bel_batch_answers *take(struct bel_answers *answers)
{
    struct bel_batch_answers *batch = answers->spare;
    if (batch == NULL) return create();
    answers->spare = batch->next;
    batch->next = NULL;
    return batch;
}

/* Adds a batch to the unsynced ones. */
static void enter(struct bel_answers *answers, struct bel_batch_answers *batch)
{
    struct bel_batch_answers **at = &answers->unsynced;
    assert(batch->is_waiting);
    while (*at != NULL && (*at)->batch <= batch->batch) {
        at = &(*at)->next;
    }
    batch->next = *at;
    *at = batch;
}

/* Replaces answers whose sync has begun, and missing ones. Later answers wait for a later sync. */
static int renew(struct bel_answers *answers, struct bel_batch_answers **batch, uint64_t syncing)
{
    bool is_begun = *batch != NULL && (*batch)->is_waiting && (*batch)->batch <= syncing;
    if (*batch != NULL && !is_begun) return 0;
    struct bel_batch_answers *fresh = take(answers);
    if (fresh == NULL) return *batch == NULL ? BEL_ENOMEM : 0;
    if (is_begun) enter(answers, *batch);
    *batch = fresh;
    return 0;
}

int bel__answers_begin(struct bel_engine *engine)
{
    struct bel_answers *answers = &engine->answers;
    uint64_t syncing = 0;
    int err = 0;
    if (engine->rows.changes.is_on) {
        syncing = bel__store_syncing(engine->store);
        err = renew(answers, &answers->reads, syncing);
    }
    if (err == 0) err = renew(answers, &answers->changes, syncing);
    if (err) return err;
    answers->current = answers->changes;
    answers->open = engine->rows.changes.is_on ? &answers->turn : &answers->changes->requests;
    return 0;
}

void bel__answers_choose(struct bel_answers *answers, bool is_read)
{
    answers->current = is_read ? answers->reads : answers->changes;
    assert(answers->current != NULL);
}

/* Separates answers whose sync has begun since the turn began. Their memory stays where it is, and
 * is used longer. */
static void part(struct bel_answers *answers, struct bel_batch_answers *batch, uint64_t syncing)
{
    if (!batch->is_waiting || batch->batch > syncing || batch->requests.first == NULL) return;
    struct bel_batch_answers *begun = take(answers);
    if (begun == NULL) return; /* they wait for the next sync, too */
    bel__request_list_join(&begun->requests, &batch->requests);
    begun->batch = batch->batch;
    begun->is_waiting = true;
    enter(answers, begun);
}

static void wait_for(struct bel_batch_answers *batch, uint64_t number)
{
    if (!batch->is_waiting || batch->batch < number) batch->batch = number;
    batch->is_waiting = true;
}

/* Returns the answers that wait for a sync which has begun and covers batch `after`; NULL if there
 * is no memory for any. */
static struct bel_batch_answers *find_begun(struct bel_answers *answers, uint64_t after)
{
    struct bel_batch_answers *batch = answers->unsynced;
    while (batch != NULL && batch->batch < after) {
        batch = batch->next;
    }
    if (batch != NULL) return batch;
    batch = take(answers);
    if (batch == NULL) return NULL;
    wait_for(batch, after);
    enter(answers, batch);
    return batch;
}

/* Lets an answer wait for batch `after`, which is not durable. Answers whose sync has not begun are
 * together with their memory: one sync will cover them all. */
static void defer(struct bel_answers *answers, struct bel_request *request, uint64_t after,
                  uint64_t syncing)
{
    bool is_read = bel_verb_effect(request->command.verb) == BEL_EFFECT_READ;
    struct bel_batch_answers *own = is_read ? answers->reads : answers->changes;
    struct bel_batch_answers *batch = after <= syncing ? find_begun(answers, after) : NULL;
    if (batch == NULL) batch = own;
    wait_for(own, batch == own ? after : batch->batch);
    bel__request_list_append(&batch->requests, request);
}

void bel__answers_end(struct bel_engine *engine, uint64_t number)
{
    struct bel_answers *answers = &engine->answers;
    struct bel_batch_answers *changes = answers->changes;
    struct bel_request *request;
    if (!engine->rows.changes.is_on) {
        if (changes->requests.first != NULL) wait_for(changes, number);
        return;
    }
    uint64_t durable = bel__store_answerable(engine->store);
    uint64_t syncing = bel__store_syncing(engine->store);
    part(answers, changes, syncing);
    part(answers, answers->reads, syncing);
    while ((request = bel__request_list_take(&answers->turn)) != NULL) {
        uint64_t after = engine->broken ? 0 : request->own.words[BEL_OWN_AFTER];
        if (after == BEL_AFTER_TURN) after = number;
        assert(after <= number);
        if (after <= durable) {
            bel__request_list_append(&answers->now.requests, request);
        } else {
            defer(answers, request, after, syncing);
        }
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

/* Gives the answers of a batch if it is durable. Returns whether its memory is free now. */
static bool give_batch(const struct bel_engine *engine, struct bel_batch_answers *batch,
                       uint64_t durable)
{
    struct bel_request *request;
    if (batch->is_waiting && batch->batch > durable && !engine->broken) return false;
    while ((request = bel__request_list_take(&batch->requests)) != NULL) {
        give(engine, request);
    }
    bel__arena_reset(&batch->arena);
    batch->is_waiting = false;
    return true;
}

void bel__answers_give(struct bel_engine *engine)
{
    struct bel_answers *answers = &engine->answers;
    struct bel_batch_answers *batch;
    uint64_t durable = bel__store_answerable(engine->store);
    (void)give_batch(engine, &answers->now, durable);
    while ((batch = answers->unsynced) != NULL && give_batch(engine, batch, durable)) {
        answers->unsynced = batch->next;
        batch->next = answers->spare;
        answers->spare = batch;
    }
    if (answers->changes != NULL) (void)give_batch(engine, answers->changes, durable);
    if (answers->reads != NULL) (void)give_batch(engine, answers->reads, durable);
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
    destroy(answers->changes);
    destroy(answers->reads);
    destroy(answers->unsynced);
    destroy(answers->spare);
    *answers = (struct bel_answers){0};
}
