/* SPDX-License-Identifier: MIT */

/*
 * Commands that may concern any number of timers: REVIVE and PURGE. They work in slices, so that
 * the server is never busy with one for long. The first slice sets the time up to which timers
 * count; later ones go on until a slice is not full.
 */
#include "redis/operation.h"

enum {
    SLICE = 500,
};

static void send_slice(struct bel_operation *operation);

static void sliced(struct bel_item *item, const struct bel_results *results)
{
    struct bel_operation *operation = BEL_CONTAINER_OF(item, struct bel_operation, item);
    if (results->err || results->count != 2) {
        int err = results->err ? results->err : BEL_EIO;
        (void)bel__operation_refuse(operation, err, "%llu changed, then: %s",
                                    (unsigned long long)operation->slices.count,
                                    bel_error_text(err));
        bel__operation_answer(operation);
        return;
    }
    operation->slices.count += (uint64_t)results->items[0].number;
    operation->slices.until_ms = results->items[1].number;
    bool is_one =
        operation->command.verb == BEL_VERB_REVIVE && operation->command.target.id.bytes > 0;
    if (results->items[0].number == SLICE && !is_one) {
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
    struct bel_batch *batch = bel__batch_alone(operation->node, operation->topic,
                                               is_revive ? BEL_SCRIPT_REVIVE : BEL_SCRIPT_PURGE);
    if (batch == NULL) {
        bel__operation_fail(operation, BEL_ENOMEM, NULL);
        return;
    }
    bel__node_mark(operation->node, operation->topic);
    operation->item.answered = sliced;
    bel__batch_add(batch, &operation->item, 0);
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
