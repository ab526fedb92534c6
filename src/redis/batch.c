/* SPDX-License-Identifier: MIT */

/*
 * The arguments of items are encoded as they are added, and copied once, behind the head of the
 * command, which has their number:
 *
 *     EVALSHA sha 17 key ... now | arguments of items
 *
 * A server that does not know a script (NOSCRIPT: it was restarted, or another one took over) gets
 * the same command again as EVAL, with the text, and knows the script from then on.
 */
#include "redis/batch.h"

#include "core/parse.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ITEMS_MAX = 100,             /* of a batch that several operations share */
    ARGUMENTS_BYTES = 256 << 10, /* from which on a batch is full */
    COMMAND_BYTES_MAX = 128 << 20,
    LENGTH_BYTES = 32, /* of the head of a bulk string */
};

static const char *const keys[] = {
    "pend", "lease", "rec",  "tok",  "att",       "exp",     "plan",    "hour", "block",
    "cfg",  "st",    "done", "dead", "cancelled", "expired", "skipped", "occ",
};

enum {
    KEYS = sizeof keys / sizeof keys[0],
};

struct bel_batch {
    struct bel_redis_call call;
    struct bel_link link; /* in node->batches or node->sent */
    struct bel_redis *node;
    struct bel_redis_topic *topic;   /* NULL: a plain command */
    const struct bel_script *script; /* NULL: a plain command */
    struct bel_item *first, **last;
    size_t items_count;
    struct bel_buffer arguments, command;
    size_t arguments_count;
    int err;      /* of building the command */
    bool is_text; /* sent as EVAL */
    bool is_alone;
};

/* --- Building --- */

static struct bel_batch *open_batch(struct bel_redis *node, struct bel_redis_topic *topic,
                                    const struct bel_script *script)
{
    struct bel_batch *batch = calloc(1, sizeof *batch);
    if (batch == NULL) return NULL;
    batch->node = node;
    batch->topic = topic;
    batch->script = script;
    batch->last = &batch->first;
    bel__buffer_init(&batch->arguments, COMMAND_BYTES_MAX);
    bel__buffer_init(&batch->command, COMMAND_BYTES_MAX);
    bel__list_append(&node->batches, &batch->link);
    if (topic != NULL) topic->open = batch;
    return batch;
}

bool bel__batch_is_open(const struct bel_redis_topic *topic, enum bel_script_name script)
{
    const struct bel_batch *batch = topic->open;
    if (batch == NULL || batch->script != &bel__scripts[script] || batch->is_alone) return false;
    return batch->items_count < ITEMS_MAX && batch->arguments.count < ARGUMENTS_BYTES;
}

struct bel_batch *bel__batch_join(struct bel_redis *node, struct bel_redis_topic *topic,
                                  enum bel_script_name script)
{
    if (bel__batch_is_open(topic, script)) return topic->open;
    return open_batch(node, topic, &bel__scripts[script]);
}

struct bel_batch *bel__batch_alone(struct bel_redis *node, struct bel_redis_topic *topic,
                                   enum bel_script_name script)
{
    struct bel_batch *batch = open_batch(node, topic, &bel__scripts[script]);
    if (batch != NULL) batch->is_alone = true;
    return batch;
}

struct bel_batch *bel__batch_plain(struct bel_redis *node)
{
    return open_batch(node, NULL, NULL);
}

void bel__batch_add(struct bel_batch *batch, struct bel_item *item, size_t results)
{
    item->next = NULL;
    item->results = results;
    *batch->last = item;
    batch->last = &item->next;
    batch->items_count++;
}

static void append(struct bel_batch *batch, struct bel_buffer *buffer, struct bel_view text)
{
    char head[LENGTH_BYTES];
    int bytes = snprintf(head, sizeof head, "$%zu\r\n", text.bytes);
    assert(bytes > 0 && (size_t)bytes < sizeof head);
    if (batch->err == 0) batch->err = bel__buffer_reserve(buffer, text.bytes + sizeof head);
    if (batch->err == 0) batch->err = bel__buffer_append(buffer, head, (size_t)bytes);
    if (batch->err == 0 && text.bytes > 0) {
        batch->err = bel__buffer_append(buffer, text.data, text.bytes);
    }
    if (batch->err == 0) batch->err = bel__buffer_append(buffer, "\r\n", 2);
}

void bel__batch_text(struct bel_batch *batch, struct bel_view text)
{
    append(batch, &batch->arguments, text);
    batch->arguments_count++;
}

void bel__batch_word(struct bel_batch *batch, const char *word)
{
    bel__batch_text(batch, (struct bel_view){word, strlen(word)});
}

void bel__batch_number(struct bel_batch *batch, int64_t number)
{
    char text[BEL_PRINT_BYTES_MAX];
    bel__batch_text(batch, (struct bel_view){text, bel__print_i64(text, number)});
}

uint8_t *bel__batch_space(struct bel_batch *batch, size_t bytes)
{
    struct bel_buffer *buffer = &batch->arguments;
    uint8_t *out = NULL;
    assert(bytes > 0);
    batch->arguments_count++;
    if (batch->err == 0) batch->err = bel__buffer_reserve(buffer, bytes + LENGTH_BYTES);
    if (batch->err == 0) batch->err = bel__buffer_append_format(buffer, "$%zu\r\n", bytes);
    if (batch->err == 0) batch->err = bel__buffer_extend(buffer, bytes + 2, &out);
    if (batch->err) return NULL;
    out[bytes] = '\r';
    out[bytes + 1] = '\n';
    return out;
}

/* --- Sending --- */

static void append_keys(struct bel_batch *batch)
{
    const struct bel_redis *node = batch->node;
    struct bel_view topic = batch->topic->name;
    char key[BEL_REDIS_NAMESPACE_BYTES_MAX + BEL_TOPIC_BYTES_MAX + 32];
    for (size_t i = 0; i < KEYS; i++) {
        int bytes = snprintf(key, sizeof key, "{%s:%.*s:0}:%s", node->options.name_space,
                             (int)topic.bytes, (const char *)topic.data, keys[i]);
        assert(bytes > 0 && (size_t)bytes < sizeof key);
        append(batch, &batch->command, (struct bel_view){key, (size_t)bytes});
    }
}

static void append_now(struct bel_batch *batch)
{
    char text[BEL_PRINT_BYTES_MAX];
    size_t bytes = 0;
    if (batch->node->options.is_virtual) bytes = bel__print_i64(text, batch->node->now.wall.ms);
    append(batch, &batch->command, (struct bel_view){text, bytes});
}

static void append_script(struct bel_batch *batch)
{
    struct bel_view sha = {batch->script->sha, strlen(batch->script->sha)};
    char count[BEL_PRINT_BYTES_MAX];
    append(batch, &batch->command, batch->is_text ? BEL_VIEW("EVAL") : BEL_VIEW("EVALSHA"));
    append(batch, &batch->command, batch->is_text ? batch->script->text : sha);
    append(batch, &batch->command, (struct bel_view){count, bel__print_u64(count, KEYS)});
    append_keys(batch);
    append_now(batch);
}

static void encode(struct bel_batch *batch)
{
    size_t count = batch->arguments_count + (batch->script != NULL ? 3 + KEYS + 1 : 0);
    struct bel_buffer *command = &batch->command;
    bel__buffer_finish(command);
    if (batch->err == 0) batch->err = bel__buffer_append_format(command, "*%zu\r\n", count);
    if (batch->script != NULL) append_script(batch);
    if (batch->err == 0 && batch->arguments.count > 0) {
        batch->err = bel__buffer_append(command, bel__buffer_data(&batch->arguments),
                                        batch->arguments.count);
    }
}

static void finish(struct bel_batch *batch)
{
    if (bel__link_is_linked(&batch->link)) bel__link_remove(&batch->link);
    bel__buffer_finish(&batch->arguments);
    bel__buffer_finish(&batch->command);
    free(batch);
}

/* Ends a batch with an error. */
static void fail(struct bel_batch *batch, int err, const char *why)
{
    struct bel_item *item = batch->first, *next;
    struct bel_results results = {.err = err, .why = why};
    for (; item != NULL; item = next) {
        next = item->next;
        item->answered(item, &results);
    }
    finish(batch);
}

/* Takes over what every reply of a script begins with. */
static void learn(struct bel_batch *batch, const struct bel_value *reply)
{
    struct bel_redis *node = batch->node;
    assert(reply->count >= 3);
    if (!node->options.is_virtual) {
        node->ahead_ms = reply->items[0].number - node->now.wall.ms;
    }
    batch->topic->next_ms = reply->items[1].number;
    batch->topic->ring_ms = reply->items[2].number;
}

static bool is_reply(const struct bel_value *value)
{
    return value->type == BEL_VALUE_LIST && value->count >= 3 &&
           value->items[0].type == BEL_VALUE_NUMBER && value->items[1].type == BEL_VALUE_NUMBER &&
           value->items[2].type == BEL_VALUE_NUMBER;
}

static void deal(struct bel_batch *batch, const struct bel_value *items, size_t count)
{
    struct bel_item *item = batch->first, *next;
    size_t at = 0;
    for (; item != NULL; item = next) {
        size_t results = item->results > 0 ? item->results : count;
        struct bel_results part = {.items = items + at, .count = results};
        next = item->next;
        if (results > count - at) {
            part =
                (struct bel_results){.err = BEL_EIO, .why = "the server replied with too little"};
        } else {
            at += results;
        }
        item->answered(item, &part);
    }
    finish(batch);
}

static void send_batch(struct bel_batch *batch);

/* Ends a batch with an error reply of the server, or sends it again. */
static void refuse(struct bel_batch *batch, const struct bel_value *error)
{
    char why[BEL_WHY_BYTES];
    struct bel_view code = bel_value_code(error), text = error->text;
    if (batch->script != NULL && !batch->is_text && code.bytes == 8 &&
        memcmp(code.data, "NOSCRIPT", 8) == 0) {
        batch->is_text = true;
        send_batch(batch);
        return;
    }
    bool is_full = code.bytes == 3 && memcmp(code.data, "OOM", 3) == 0;
    int shown = (int)(text.bytes < sizeof why / 2 ? text.bytes : sizeof why / 2);
    (void)snprintf(why, sizeof why, "the server replied: %.*s", shown, (const char *)text.data);
    fail(batch, is_full ? BEL_EFULL : BEL_EIO, why);
}

static void replied(struct bel_redis_call *call, const struct bel_redis_reply *reply)
{
    struct bel_batch *batch = BEL_CONTAINER_OF(call, struct bel_batch, call);
    assert(reply->is_last);
    if (reply->err) {
        fail(batch, reply->err == BEL_ECLOSED ? BEL_ECLOSED : BEL_EIO, reply->why);
    } else if (reply->value->type == BEL_VALUE_ERROR) {
        refuse(batch, reply->value);
    } else if (batch->script == NULL) {
        deal(batch, reply->value, 1);
    } else if (is_reply(reply->value)) {
        learn(batch, reply->value);
        deal(batch, reply->value->items + 3, reply->value->count - 3);
    } else {
        fail(batch, BEL_EIO, "the server replied with something else than a list");
    }
}

static void send_batch(struct bel_batch *batch)
{
    struct bel_redis *node = batch->node;
    encode(batch);
    if (batch->err) {
        fail(batch, batch->err, "the command is too large, or memory has run out");
        return;
    }
    batch->call = (struct bel_redis_call){.done = replied};
    batch->call.command.data = bel__buffer_data(&batch->command);
    batch->call.command.bytes = batch->command.count;
    int err = bel__redis_link_send(node->link, &batch->call, node->now.real);
    if (err) fail(batch, err, "too many commands wait for the server");
}

void bel__batches_send(struct bel_redis *node)
{
    for (struct bel_link *link; (link = bel__list_first(&node->batches)) != NULL;) {
        struct bel_batch *batch = BEL_CONTAINER_OF(link, struct bel_batch, link);
        bel__link_remove(link);
        bel__list_append(&node->sent, link);
        if (batch->topic != NULL && batch->topic->open == batch) batch->topic->open = NULL;
        send_batch(batch);
    }
}

void bel__batches_drop_first(struct bel_redis *node)
{
    struct bel_link *link = bel__list_take_first(&node->batches);
    assert(link != NULL);
    fail(BEL_CONTAINER_OF(link, struct bel_batch, link), BEL_ECLOSED, "the backend is closed");
}
