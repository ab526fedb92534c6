/* SPDX-License-Identifier: MIT */

/*
 * Commands that name timers by id: GET; CANCEL and RESCHEDULE, also in topics of the layout
 * faststream, for which only the script is another one.
 */
#include "redis/operation.h"

#include "redis/outcome.h"
#include "redis/reading.h"

#include <assert.h>

/* --- GET --- */

static int prepare_target(struct bel_operation *operation)
{
    return bel__operation_name(operation, operation->command.target.topic);
}

static void got(struct bel_item *item, const struct bel_results *results)
{
    struct bel_operation *operation = BEL_CONTAINER_OF(item, struct bel_operation, item);
    if (bel__operation_is_refused(operation, results)) return;
    int err = bel__reading_timers(operation, results->items, 1);
    if (err) {
        bel__operation_fail(operation, err, NULL);
        return;
    }
    bel__operation_answer(operation);
}

static void begin_get(struct bel_operation *operation)
{
    struct bel_batch *batch = bel__batch_join(
        operation->node, bel__operation_place(operation, operation->command.target.id),
        BEL_SCRIPT_GET);
    if (batch == NULL) {
        bel__operation_fail(operation, BEL_ENOMEM, NULL);
        return;
    }
    operation->item.answered = got;
    bel__batch_item(batch, &operation->item, 1);
    bel__batch_text(batch, operation->command.target.id);
}

const struct bel_redis_verb bel__redis_get = {prepare_target, begin_get};

/* Returns the script of a topic with or without a layout. */
static enum bel_script_name choose(const struct bel_operation *operation,
                                   enum bel_script_name native, enum bel_script_name shared)
{
    return operation->topic->layout != NULL ? shared : native;
}

/* --- CANCEL --- */

static int prepare_cancel(struct bel_operation *operation)
{
    return bel__operation_name(operation, operation->command.cancel.topic);
}

static void counted(struct bel_item *item, const struct bel_results *results)
{
    struct bel_operation *operation = BEL_CONTAINER_OF(item, struct bel_operation, item);
    if (bel__operation_is_refused(operation, results)) return;
    for (size_t i = 0; i < results->count; i++) {
        if (!bel__result_is_number(&results->items[i], 0, 1)) {
            bel__operation_fail(operation, BEL_EIO, BEL_OUTCOME_MISLED);
            return;
        }
        operation->reply.count += (uint64_t)results->items[i].number;
    }
    bel__operation_answer(operation);
}

static void cancelled(struct bel_item *item, const struct bel_results *results)
{
    struct bel_operation *operation = item->owner;
    struct bel_cancelling *cancelling = operation->cancelling;
    if (results->is_moved) operation->has_moved = true;
    if (results->err == 0) operation->reply.count += (uint64_t)results->items[0].number;
    if (results->err) bel__operation_note(operation, results->err, results->why);
    if (results->err && cancelling->err == 0) cancelling->err = results->err;
    assert(cancelling->left > 0);
    if (--cancelling->left > 0) return;
    uint64_t count = operation->reply.count;
    if (operation->has_moved && count == 0) {
        bel__operation_restart(operation);
        return;
    }
    if (cancelling->err) {
        bel__operation_stop(operation, cancelling->err, count, "cancelled");
        return;
    }
    bel__operation_answer(operation);
}

/* Each id is an item of its own, because they may be in several partitions, and no call is to have
 * too many. */
static void begin_cancel(struct bel_operation *operation)
{
    const struct bel_cancel *cancel = &operation->command.cancel;
    enum bel_script_name script =
        choose(operation, BEL_SCRIPT_CANCEL, BEL_SCRIPT_FASTSTREAM_CANCEL);
    size_t count = cancel->ids_count;
    struct bel_cancelling *cancelling = bel__arena_take(
        &operation->arena, sizeof *cancelling + count * sizeof cancelling->items[0]);
    if (count == 0) {
        bel__operation_answer(operation);
        return;
    }
    if (cancelling != NULL) cancelling->left = 0;
    operation->cancelling = cancelling;
    for (size_t i = 0; cancelling != NULL && i < count; i++) {
        struct bel_redis_partition *place = bel__operation_place(operation, cancel->ids[i]);
        struct bel_batch *batch = bel__batch_join(operation->node, place, script);
        cancelling->err = batch == NULL ? BEL_ENOMEM : 0;
        if (batch == NULL) break;
        struct bel_item *item = &cancelling->items[i];
        *item = (struct bel_item){.answered = cancelled, .owner = operation};
        cancelling->left++;
        bel__batch_item(batch, item, 1);
        bel__batch_text(batch, cancel->ids[i]);
        bel__node_mark(operation->node, place); /* a blocked occurrence may run */
    }
    if (cancelling == NULL || cancelling->left == 0) {
        bel__operation_fail(operation, BEL_ENOMEM, NULL);
    }
}

const struct bel_redis_verb bel__redis_cancel = {prepare_cancel, begin_cancel};

/* --- RESCHEDULE --- */

static int prepare_reschedule(struct bel_operation *operation)
{
    const struct bel_reschedule *command = &operation->command.reschedule;
    int err = bel__operation_name(operation, command->topic);
    if (err) return err;
    bool is_valid = command->when == BEL_WHEN_AT
                        ? command->at.ms <= BEL_REDIS_TIME_END_MS
                        : bel__operation_reaches(operation, command->delay_ms);
    if (command->when == BEL_WHEN_NOW) {
        return bel__operation_refuse(operation, BEL_EINVAL, "RESCHEDULE needs a time");
    }
    if (is_valid) return 0;
    return bel__operation_refuse(operation, BEL_EINVAL, "the time is after the year 9999");
}

static void begin_reschedule(struct bel_operation *operation)
{
    const struct bel_reschedule *command = &operation->command.reschedule;
    enum bel_script_name script =
        choose(operation, BEL_SCRIPT_RESCHEDULE, BEL_SCRIPT_FASTSTREAM_RESCHEDULE);
    struct bel_batch *batch =
        bel__batch_join(operation->node, bel__operation_place(operation, command->id), script);
    if (batch == NULL) {
        bel__operation_fail(operation, BEL_ENOMEM, NULL);
        return;
    }
    bool is_at = command->when == BEL_WHEN_AT;
    int64_t at_ms = command->at.ms < 0 ? 0 : command->at.ms;
    operation->item.answered = counted;
    bel__batch_item(batch, &operation->item, 1);
    bel__batch_text(batch, command->id);
    bel__batch_word(batch, is_at ? "a" : "i");
    bel__batch_number(batch, is_at ? at_ms : (int64_t)command->delay_ms);
    bel__node_mark(operation->node, operation->partition);
}

const struct bel_redis_verb bel__redis_reschedule = {prepare_reschedule, begin_reschedule};
