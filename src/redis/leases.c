/* SPDX-License-Identifier: MIT */

/*
 * Commands that name one lease by its token: FAIL, RELEASE, EXTEND.
 *
 * FAIL takes two calls: the first reads the attempts and the policy, from which the node computes
 * the delay; the second changes the timer if the number of attempts is the same. So the policy and
 * its jitter are computed in one place, for every backend. FAILs that begin in one turn share both
 * calls, because none changes what another one has read, except that it makes the token stale.
 */
#include "redis/operation.h"

#include "redis/outcome.h"
#include "redis/record.h"

#include "belfry/backoff.h"
#include "core/utf8.h"
#include "plan/backoff.h"

#include <assert.h>
#include <string.h>

enum {
    LIMITED_MS = 60000, /* default delay of a FAIL of kind `limited` */
};

static int refuse_stale(struct bel_operation *operation)
{
    return bel__operation_refuse(operation, BEL_ESTALE, "no live lease has this token");
}

/* Parses the token of a command with one token. */
static int name_token(struct bel_operation *operation, struct bel_view text)
{
    if (!bel__lease_token_parse(text, &operation->token)) return refuse_stale(operation);
    struct bel_view topic = {operation->token.topic, operation->token.topic_bytes};
    if (!bel_topic_is_valid(topic)) return refuse_stale(operation);
    return bel__operation_name(operation, topic);
}

static void add_token(struct bel_batch *batch, const struct bel_token *token)
{
    bel__batch_text(batch, (struct bel_view){token->prefix, sizeof token->prefix});
    bel__batch_text(batch, (struct bel_view){token->id, token->id_bytes});
    bel__batch_text(batch, (struct bel_view){token->secret, sizeof token->secret});
}

static struct bel_redis_partition *place(struct bel_operation *operation)
{
    struct bel_view id = {operation->token.id, operation->token.id_bytes};
    return bel__operation_place(operation, id);
}

/* Adds an item with the token; its other arguments follow. Returns NULL after an error, which has
 * ended the operation. */
static struct bel_batch *add_item(struct bel_operation *operation, enum bel_script_name script,
                                  void (*answered)(struct bel_item *item,
                                                   const struct bel_results *results))
{
    struct bel_batch *batch = bel__batch_join(operation->node, place(operation), script);
    if (batch == NULL) {
        bel__operation_fail(operation, BEL_ENOMEM, NULL);
        return NULL;
    }
    operation->item.answered = answered;
    bel__batch_item(batch, &operation->item, 1);
    add_token(batch, &operation->token);
    return batch;
}

/* Returns whether the token was stale, and then answers so. */
static bool is_stale(struct bel_operation *operation, const struct bel_value *result)
{
    if (result->type != BEL_VALUE_NIL) return false;
    (void)refuse_stale(operation);
    bel__operation_answer(operation);
    return true;
}

/* Returns whether a result is not what the script replies with, and then answers so. */
static bool is_odd(struct bel_operation *operation, bool is_good)
{
    if (!is_good) bel__operation_fail(operation, BEL_EIO, BEL_OUTCOME_MISLED);
    return !is_good;
}

static bool is_time(const struct bel_value *value)
{
    return bel__result_is_number(value, 0, 2 * BEL_REDIS_TIME_END_MS);
}

/* A duration that is too long is an error only if the token is not stale. */
static void peeked_too_long(struct bel_item *item, const struct bel_results *results)
{
    struct bel_operation *operation = BEL_CONTAINER_OF(item, struct bel_operation, item);
    if (bel__operation_is_refused(operation, results)) return;
    if (is_stale(operation, &results->items[0])) return;
    bel__operation_fail(operation, BEL_EINVAL, "a duration is too long");
}

/* --- RELEASE --- */

static int prepare_release(struct bel_operation *operation)
{
    return name_token(operation, operation->command.release.token);
}

static void released(struct bel_item *item, const struct bel_results *results)
{
    struct bel_operation *operation = BEL_CONTAINER_OF(item, struct bel_operation, item);
    if (bel__operation_is_refused(operation, results)) return;
    if (is_stale(operation, &results->items[0])) return;
    if (is_odd(operation, is_time(&results->items[0]))) return;
    operation->reply.count = 1;
    bel__operation_answer(operation);
}

static void begin_release(struct bel_operation *operation)
{
    const struct bel_release *command = &operation->command.release;
    if (command->has_delay && !bel__operation_reaches(operation, command->delay_ms)) {
        (void)add_item(operation, BEL_SCRIPT_PEEK, peeked_too_long);
        return;
    }
    bel__node_mark(operation->node, place(operation));
    struct bel_batch *batch = add_item(operation, BEL_SCRIPT_RELEASE, released);
    if (batch == NULL) return;
    if (command->has_delay) {
        bel__batch_number(batch, (int64_t)command->delay_ms);
    } else {
        bel__batch_word(batch, "");
    }
}

const struct bel_redis_verb bel__redis_release = {prepare_release, begin_release};

/* --- EXTEND --- */

static int prepare_extend(struct bel_operation *operation)
{
    return name_token(operation, operation->command.extend.token);
}

static void extended(struct bel_item *item, const struct bel_results *results)
{
    struct bel_operation *operation = BEL_CONTAINER_OF(item, struct bel_operation, item);
    if (bel__operation_is_refused(operation, results)) return;
    if (is_stale(operation, &results->items[0])) return;
    if (is_odd(operation, bel__result_is_number(&results->items[0], 0, BEL_REDIS_TIME_END_MS))) {
        return;
    }
    operation->reply.count = (uint64_t)results->items[0].number;
    bel__operation_answer(operation);
}

static void begin_extend(struct bel_operation *operation)
{
    uint64_t lease_ms = operation->command.extend.lease_ms;
    if (!bel__operation_reaches(operation, lease_ms)) {
        (void)add_item(operation, BEL_SCRIPT_PEEK, peeked_too_long);
        return;
    }
    struct bel_batch *batch = add_item(operation, BEL_SCRIPT_EXTEND, extended);
    if (batch != NULL) bel__batch_number(batch, (int64_t)lease_ms);
}

const struct bel_redis_verb bel__redis_extend = {prepare_extend, begin_extend};

/* --- FAIL --- */

static bool is_limited(const struct bel_fail *command)
{
    return command->kind == BEL_FAIL_LIMITED && !command->dead;
}

static int prepare_fail(struct bel_operation *operation)
{
    operation->shares_hold = !is_limited(&operation->command.fail);
    return name_token(operation, operation->command.fail.token);
}

/* What the first call has found out. */
struct policy {
    struct bel_backoff backoff;
    uint64_t attempts;
};

static int read_policy(struct bel_operation *operation, const struct bel_value *result,
                       struct policy *out)
{
    struct bel_stored stored = {0};
    if (result->type != BEL_VALUE_LIST || result->count != 3) return BEL_ECORRUPT;
    int err = bel__stored_read(result->items[0].text, &operation->arena, &stored);
    if (err) return err;
    struct bel_view text = stored.retry.bytes > 0 ? stored.retry : result->items[2].text;
    if (!bel__result_is_number(&result->items[1], 0, UINT32_MAX)) return BEL_ECORRUPT;
    out->backoff = bel_backoff_default();
    out->attempts = (uint64_t)result->items[1].number;
    if (text.bytes == 0) return 0;
    return bel__backoff_parse_stored(text.data, text.bytes, &out->backoff, NULL) ? BEL_ECORRUPT : 0;
}

/* Sets the delay until the next attempt; `*out_is_last` if there is none. */
static int find_delay(struct bel_operation *operation, const struct policy *policy,
                      uint64_t *out_ms, bool *out_is_last)
{
    const struct bel_fail *command = &operation->command.fail;
    uint64_t word = 0;
    *out_is_last = command->dead;
    if (command->dead) return 0;
    if (policy->backoff.jitter > 0 && !command->has_delay &&
        bel__entropy_u64(operation->node->entropy, &word) != 0) {
        return bel__operation_refuse(operation, BEL_EIO, "the system has no entropy");
    }
    *out_is_last = !bel_backoff_delay(&policy->backoff, policy->attempts + 1, word, out_ms);
    if (*out_is_last) return 0;
    if (command->has_delay) *out_ms = command->delay_ms;
    if (bel__operation_reaches(operation, *out_ms)) return 0;
    return bel__operation_refuse(operation, BEL_EINVAL, "a duration is too long");
}

static void peeked(struct bel_item *item, const struct bel_results *results);

static void failed(struct bel_item *item, const struct bel_results *results)
{
    struct bel_operation *operation = BEL_CONTAINER_OF(item, struct bel_operation, item);
    if (bel__operation_is_refused(operation, results)) return;
    const struct bel_value *result = &results->items[0];
    if (bel_value_is(result, "again")) {
        (void)add_item(operation, BEL_SCRIPT_PEEK, peeked);
        return;
    }
    if (is_stale(operation, result)) return;
    bool is_verdict = result->type == BEL_VALUE_LIST && result->count == 2 &&
                      bel__result_is_number(&result->items[0], 0, BEL_STATES - 1) &&
                      is_time(&result->items[1]);
    if (is_odd(operation, is_verdict)) return;
    operation->reply.verdict.state = (enum bel_state)result->items[0].number;
    operation->reply.verdict.due.ms = result->items[1].number;
    bel__operation_answer(operation);
}

/* Sends the second call. */
static void fail(struct bel_operation *operation, const struct policy *policy)
{
    uint64_t delay_ms = 0;
    bool is_last;
    if (find_delay(operation, policy, &delay_ms, &is_last) != 0) {
        bel__operation_answer(operation);
        return;
    }
    struct bel_batch *batch = add_item(operation, BEL_SCRIPT_FAIL, failed);
    if (batch == NULL) return;
    bel__batch_number(batch, (int64_t)policy->attempts);
    if (is_last) {
        bel__batch_word(batch, "");
    } else {
        bel__batch_number(batch, (int64_t)delay_ms);
    }
    bel__batch_text(batch, bel__utf8_head(operation->command.fail.reason, BEL_TEXT_BYTES_MAX));
    bel__node_mark(operation->node, place(operation));
    bel__parked_serve(operation->node, place(operation)); /* before the next FAIL is sent */
}

static void peeked(struct bel_item *item, const struct bel_results *results)
{
    struct bel_operation *operation = BEL_CONTAINER_OF(item, struct bel_operation, item);
    struct policy policy;
    if (bel__operation_is_refused(operation, results)) return;
    if (is_stale(operation, &results->items[0])) return;
    int err = read_policy(operation, &results->items[0], &policy);
    if (err) {
        bel__operation_fail(operation, err, NULL);
        return;
    }
    fail(operation, &policy);
}

static void limited(struct bel_item *item, const struct bel_results *results)
{
    struct bel_operation *operation = BEL_CONTAINER_OF(item, struct bel_operation, item);
    if (bel__operation_is_refused(operation, results)) return;
    if (is_stale(operation, &results->items[0])) return;
    if (is_odd(operation, is_time(&results->items[0]))) return;
    operation->reply.verdict.state = BEL_SCHEDULED;
    operation->reply.verdict.due.ms = results->items[0].number;
    bel__operation_answer(operation);
}

/* A failure that spends no attempt: a release with a delay. */
static void begin_limited(struct bel_operation *operation)
{
    const struct bel_fail *command = &operation->command.fail;
    uint64_t delay_ms = command->has_delay ? command->delay_ms : LIMITED_MS;
    if (!bel__operation_reaches(operation, delay_ms)) {
        (void)add_item(operation, BEL_SCRIPT_PEEK, peeked_too_long);
        return;
    }
    bel__node_mark(operation->node, place(operation));
    struct bel_batch *batch = add_item(operation, BEL_SCRIPT_RELEASE, limited);
    if (batch != NULL) bel__batch_number(batch, (int64_t)delay_ms);
}

static void begin_fail(struct bel_operation *operation)
{
    const struct bel_fail *command = &operation->command.fail;
    if (is_limited(command)) {
        begin_limited(operation);
        return;
    }
    bel__operation_hold(operation);
    (void)add_item(operation, BEL_SCRIPT_PEEK, peeked);
}

const struct bel_redis_verb bel__redis_fail = {prepare_fail, begin_fail};
