/* SPDX-License-Identifier: MIT */

/*
 * Commands that may concern any number of timers: REVIVE and PURGE. They work in slices, so that
 * the server is never busy with one for long. The first slice sets the time up to which timers
 * count; later ones go on until a slice is not full, one partition after the other.
 */
#include "redis/operation.h"

enum {
    SLICE = 500,
};

static void send_slice(struct bel_operation *operation);

/* Returns whether the command names one timer, whose partition alone is asked. */
static bool is_one(const struct bel_operation *operation)
{
    return operation->command.verb == BEL_VERB_REVIVE && operation->command.target.id.bytes > 0;
}

static void sliced(struct bel_item *item, const struct bel_results *results)
{
    struct bel_operation *operation = BEL_CONTAINER_OF(item, struct bel_operation, item);
    if (results->is_moved && operation->slices.count == 0) {
        bel__operation_restart(operation);
        return;
    }
    bool is_good = results->err == 0 && results->count == 2 &&
                   bel__result_is_number(&results->items[0], 0, SLICE) &&
                   bel__result_is_number(&results->items[1], 0, BEL_REDIS_TIME_END_MS);
    if (!is_good) {
        int err = results->err ? results->err : BEL_EIO;
        bel__operation_note(operation, err, results->why);
        bel__operation_stop(operation, err, operation->slices.count, "changed");
        return;
    }
    operation->slices.count += (uint64_t)results->items[0].number;
    operation->slices.until_ms = results->items[1].number;
    bool is_done = results->items[0].number < SLICE || is_one(operation);
    if (is_done) operation->slices.partition++;
    if (!is_done || (!is_one(operation) && operation->slices.partition < operation->topic->count)) {
        send_slice(operation);
        return;
    }
    operation->reply.count = operation->slices.count;
    bel__operation_answer(operation);
}

static void send_slice(struct bel_operation *operation)
{
    const struct bel_command *command = &operation->command;
    bool is_revive = command->verb == BEL_VERB_REVIVE;
    struct bel_redis_partition *partition =
        is_one(operation) ? bel__operation_place(operation, command->target.id)
                          : operation->topic->partitions[operation->slices.partition];
    struct bel_batch *batch = bel__batch_alone(operation->node, partition,
                                               is_revive ? BEL_SCRIPT_REVIVE : BEL_SCRIPT_PURGE);
    if (batch == NULL) {
        bel__operation_fail(operation, BEL_ENOMEM, NULL);
        return;
    }
    bel__node_mark(operation->node, partition);
    operation->item.answered = sliced;
    bel__batch_item(batch, &operation->item, 0);
    if (is_revive) {
        bel__batch_text(batch, command->target.id);
    } else {
        bel__batch_number(batch, command->purge.has_state ? (int64_t)command->purge.state : -1);
    }
    if (operation->slices.until_ms == 0) {
        bel__batch_word(batch, "");
    } else {
        bel__batch_number(batch, operation->slices.until_ms);
    }
    bel__batch_number(batch, SLICE);
}

static void begin(struct bel_operation *operation)
{
    operation->slices.count = 0;
    operation->slices.until_ms = 0;
    operation->slices.partition = 0;
    bel__operation_hold(operation);
    send_slice(operation);
}

static int prepare_revive(struct bel_operation *operation)
{
    return bel__operation_name(operation, operation->command.target.topic);
}

static int prepare_purge(struct bel_operation *operation)
{
    const struct bel_purge *command = &operation->command.purge;
    int err = bel__operation_name(operation, command->topic);
    if (err || !command->has_state) return err;
    if ((unsigned)command->state < BEL_STATES && command->state != BEL_LEASED &&
        command->state != BEL_BLOCKED) {
        return 0;
    }
    return bel__operation_refuse(operation, BEL_EINVAL,
                                 "timers of this state cannot be purged: cancel them");
}

const struct bel_redis_verb bel__redis_revive = {prepare_revive, begin};
const struct bel_redis_verb bel__redis_purge = {prepare_purge, begin};
