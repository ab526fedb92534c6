/* SPDX-License-Identifier: MIT */

/*
 * ACK: each token is an item of its own, because the tokens of a request may be of any topics.
 */
#include "redis/operation.h"

#include <assert.h>
#include <string.h>

/* A token of the request; one that is malformed is none. */
struct acked {
    struct bel_item item;
    struct bel_operation *operation;
    struct bel_redis_topic *topic;
    bool is_shared; /* of a topic of the layout faststream */
    union {
        struct bel_token token;
        struct bel_faststream_token shared;
    };
};

struct bel_tokens {
    size_t count;
    int err; /* the first error */
    struct acked items[];
};

static int check_result(struct bel_operation *operation, const struct bel_ack *command)
{
    if (!command->has_result) return 0;
    if (command->tokens_count != 1) {
        return bel__operation_refuse(operation, BEL_EINVAL, "a result needs exactly one token");
    }
    if (command->result.bytes <= BEL_RESULT_BYTES_MAX) return 0;
    return bel__operation_refuse(operation, BEL_EINVAL, "result too large: at most %d bytes",
                                 BEL_RESULT_BYTES_MAX);
}

static struct bel_view topic_of(const struct acked *acked)
{
    if (acked->is_shared) {
        return (struct bel_view){acked->shared.topic, acked->shared.topic_bytes};
    }
    return (struct bel_view){acked->token.topic, acked->token.topic_bytes};
}

/* Parses a token. Returns false if there is no lease that it can be of. */
static bool parse(struct bel_redis *node, struct bel_view text, struct acked *acked)
{
    acked->is_shared = bel__faststream_token_is_likely(text);
    if (!acked->is_shared) {
        return bel__lease_token_parse(text, &acked->token) && bel_topic_is_valid(topic_of(acked));
    }
    if (!bel__faststream_token_parse(text, &acked->shared)) return false;
    const struct bel_redis_topic *topic = bel__node_topic(node, topic_of(acked));
    return topic != NULL && topic->layout != NULL;
}

/* Names the topics of all tokens. */
static int name_topics(struct bel_operation *operation, struct bel_tokens *tokens)
{
    struct bel_view *names =
        bel__arena_take(&operation->arena, (tokens->count + 1) * sizeof *names);
    if (names == NULL) return bel__operation_refuse(operation, BEL_ENOMEM, "memory has run out");
    for (size_t i = 0; i < tokens->count; i++) {
        names[i] = topic_of(&tokens->items[i]);
    }
    int err = bel__operation_name_all(operation, names, tokens->count);
    for (size_t i = 0; err == 0 && i < tokens->count; i++) {
        tokens->items[i].topic = bel__node_topic(operation->node, names[i]);
        assert(tokens->items[i].topic != NULL);
    }
    return err;
}

static int prepare(struct bel_operation *operation)
{
    const struct bel_ack *command = &operation->command.ack;
    int err = check_result(operation, command);
    if (err) return err;
    struct bel_tokens *tokens = bel__arena_take(
        &operation->arena, sizeof *tokens + command->tokens_count * sizeof tokens->items[0]);
    if (tokens == NULL) return bel__operation_refuse(operation, BEL_ENOMEM, "memory has run out");
    tokens->count = 0;
    tokens->err = 0;
    for (size_t i = 0; i < command->tokens_count; i++) {
        struct acked *acked = &tokens->items[tokens->count];
        *acked = (struct acked){.operation = operation};
        if (parse(operation->node, command->tokens[i], acked)) tokens->count++;
    }
    operation->many.tokens = tokens;
    return name_topics(operation, tokens);
}

static void end(struct bel_operation *operation)
{
    int err = operation->many.tokens->err;
    uint64_t count = operation->reply.count;
    if (operation->has_moved && count == 0) {
        operation->many.tokens->err = 0;
        bel__operation_restart(operation);
        return;
    }
    if (err) {
        bel__operation_stop(operation, err, count, "acknowledged");
        return;
    }
    bel__operation_answer(operation);
}

static void answered(struct bel_item *item, const struct bel_results *results)
{
    struct acked *acked = BEL_CONTAINER_OF(item, struct acked, item);
    struct bel_operation *operation = acked->operation;
    assert(operation->many.left > 0);
    if (results->is_moved) operation->has_moved = true;
    int err = results->err;
    if (err == 0 && !bel__result_is_number(&results->items[0], 0, 1)) err = BEL_EIO;
    if (err) bel__operation_note(operation, err, results->why);
    if (err && operation->many.tokens->err == 0) operation->many.tokens->err = err;
    if (err == 0) operation->reply.count += (uint64_t)results->items[0].number;
    if (--operation->many.left == 0) end(operation);
}

static void add(struct bel_batch *batch, struct acked *acked)
{
    const struct bel_ack *command = &acked->operation->command.ack;
    const struct bel_token *token = &acked->token;
    acked->item.answered = answered;
    bel__batch_item(batch, &acked->item, 1);
    if (acked->is_shared) {
        bel__batch_text(batch,
                        (struct bel_view){acked->shared.secret, sizeof acked->shared.secret});
        return;
    }
    uint8_t *member = bel__batch_space(batch, sizeof token->prefix + token->id_bytes);
    if (member != NULL) {
        memcpy(member, token->prefix, sizeof token->prefix);
        memcpy(member + sizeof token->prefix, token->id, token->id_bytes);
    }
    struct bel_view result = command->has_result ? command->result : BEL_VIEW("");
    uint8_t *secret = bel__batch_space(batch, sizeof token->secret + result.bytes);
    if (secret == NULL) return;
    memcpy(secret, token->secret, sizeof token->secret);
    if (result.bytes > 0) memcpy(secret + sizeof token->secret, result.data, result.bytes);
}

static void begin(struct bel_operation *operation)
{
    struct bel_tokens *tokens = operation->many.tokens;
    for (size_t i = 0; i < tokens->count; i++) {
        struct acked *acked = &tokens->items[i];
        enum bel_script_name script = acked->is_shared ? BEL_SCRIPT_FASTSTREAM_ACK : BEL_SCRIPT_ACK;
        struct bel_view id = {acked->token.id, acked->token.id_bytes};
        struct bel_redis_partition *place =
            acked->is_shared ? acked->topic->partitions[0] : bel__topic_place(acked->topic, id);
        struct bel_batch *batch = bel__batch_join(operation->node, place, script);
        if (batch == NULL) {
            tokens->err = BEL_ENOMEM;
            break;
        }
        operation->many.left++;
        add(batch, acked);
        /* The end of an occurrence may let the next one run. */
        bool is_occurrence =
            !acked->is_shared && memchr(acked->token.id, '@', acked->token.id_bytes) != NULL;
        if (is_occurrence) bel__node_mark(operation->node, place);
    }
    if (operation->many.left == 0) end(operation);
}

const struct bel_redis_verb bel__redis_ack = {prepare, begin};
