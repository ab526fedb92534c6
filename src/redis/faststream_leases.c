/* SPDX-License-Identifier: MIT */

/*
 * FAIL, RELEASE and EXTEND of leases in topics of the layout faststream. Without a delay, FAIL and
 * RELEASE leave the lease to run out, as the package does; with one the timer is due then. No
 * attempts are counted.
 */
#include "redis/faststream.h"

enum {
    LIMITED_MS = 60000, /* default delay of a FAIL of kind `limited` */
};

static int name_token(struct bel_operation *operation, struct bel_view text)
{
    struct bel_faststream_token *token = &operation->shared;
    if (!bel__faststream_token_parse(text, token)) return bel__faststream_refuse_stale(operation);
    int err = bel__operation_name(operation, (struct bel_view){token->topic, token->topic_bytes});
    if (err == BEL_ENOMEM) return err;
    if (err || operation->topic->layout == NULL) return bel__faststream_refuse_stale(operation);
    return 0;
}

static int check_delay(struct bel_operation *operation, uint64_t delay_ms)
{
    if (bel__operation_reaches(operation, delay_ms)) return 0;
    return bel__operation_refuse(operation, BEL_EINVAL, "a duration is too long");
}

static struct bel_batch *add_item(struct bel_operation *operation, enum bel_script_name script,
                                  void (*answered)(struct bel_item *item,
                                                   const struct bel_results *results))
{
    struct bel_batch *batch = bel__faststream_item(operation, script, 1, answered);
    const struct bel_faststream_token *token = &operation->shared;
    if (batch != NULL) {
        bel__batch_text(batch, (struct bel_view){token->secret, sizeof token->secret});
    }
    return batch;
}

/* Returns whether there is a result; answers otherwise. */
static bool has_result(struct bel_operation *operation, const struct bel_results *results)
{
    if (bel__operation_is_refused(operation, results)) return false;
    if (results->items[0].type == BEL_VALUE_NUMBER) return true;
    (void)bel__faststream_refuse_stale(operation);
    bel__operation_answer(operation);
    return false;
}

/* --- RELEASE --- */

static int prepare_release(struct bel_operation *operation)
{
    const struct bel_release *command = &operation->command.release;
    int err = name_token(operation, command->token);
    return err || !command->has_delay ? err : check_delay(operation, command->delay_ms);
}

static void released(struct bel_item *item, const struct bel_results *results)
{
    struct bel_operation *operation = BEL_CONTAINER_OF(item, struct bel_operation, item);
    if (!has_result(operation, results)) return;
    operation->reply.count = 1;
    bel__operation_answer(operation);
}

static void send_release(struct bel_operation *operation, bool has_delay, uint64_t delay_ms,
                         const char *statistic,
                         void (*answered)(struct bel_item *item, const struct bel_results *results))
{
    struct bel_batch *batch = add_item(operation, BEL_SCRIPT_FASTSTREAM_RELEASE, answered);
    if (batch == NULL) return;
    if (has_delay) {
        bel__batch_number(batch, (int64_t)delay_ms);
    } else {
        bel__batch_word(batch, "");
    }
    bel__batch_word(batch, statistic);
    bel__node_mark_all(operation->node, operation->topic);
}

static void begin_release(struct bel_operation *operation)
{
    const struct bel_release *command = &operation->command.release;
    send_release(operation, command->has_delay, command->delay_ms, "released", released);
}

const struct bel_redis_verb bel__faststream_release = {prepare_release, begin_release};

/* --- FAIL --- */

static int prepare_fail(struct bel_operation *operation)
{
    struct bel_fail *command = &operation->command.fail;
    int err = name_token(operation, command->token);
    if (err) return err;
    if (command->dead) return bel__faststream_prepare_burying(operation);
    if (command->kind == BEL_FAIL_LIMITED && !command->has_delay) {
        command->has_delay = true;
        command->delay_ms = LIMITED_MS;
    }
    return command->has_delay ? check_delay(operation, command->delay_ms) : 0;
}

static void failed(struct bel_item *item, const struct bel_results *results)
{
    struct bel_operation *operation = BEL_CONTAINER_OF(item, struct bel_operation, item);
    if (!has_result(operation, results)) return;
    operation->reply.verdict.state = BEL_SCHEDULED;
    operation->reply.verdict.due.ms = results->items[0].number;
    bel__operation_answer(operation);
}

static void begin_fail(struct bel_operation *operation)
{
    const struct bel_fail *command = &operation->command.fail;
    if (command->dead) {
        bel__faststream_begin_burying(operation);
        return;
    }
    bool is_limited = command->kind == BEL_FAIL_LIMITED; /* spends nothing, as a release */
    send_release(operation, command->has_delay, command->delay_ms,
                 is_limited ? "released" : "failed", failed);
}

const struct bel_redis_verb bel__faststream_fail = {prepare_fail, begin_fail};

/* --- EXTEND --- */

static int prepare_extend(struct bel_operation *operation)
{
    int err = name_token(operation, operation->command.extend.token);
    return err ? err : check_delay(operation, operation->command.extend.lease_ms);
}

static void extended(struct bel_item *item, const struct bel_results *results)
{
    struct bel_operation *operation = BEL_CONTAINER_OF(item, struct bel_operation, item);
    if (!has_result(operation, results)) return;
    operation->reply.count = (uint64_t)results->items[0].number;
    bel__operation_answer(operation);
}

static void begin_extend(struct bel_operation *operation)
{
    struct bel_batch *batch = add_item(operation, BEL_SCRIPT_FASTSTREAM_EXTEND, extended);
    if (batch != NULL) bel__batch_number(batch, (int64_t)operation->command.extend.lease_ms);
}

const struct bel_redis_verb bel__faststream_extend = {prepare_extend, begin_extend};
