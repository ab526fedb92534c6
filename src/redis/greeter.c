/* SPDX-License-Identifier: MIT */

/*
 * A script announces the time of a new timer on the channel {namespace:topic:0}:wake, if it is
 * before the time that was announced last. A pattern covers all topics, also those to come. Under a
 * virtual clock there is only one node, which needs no announcements.
 */
#include "redis/greeter.h"

#include "core/buffer.h"
#include "core/parse.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    GREETING_BYTES_MAX = 4 << 20,
    PATTERN_BYTES = BEL_REDIS_NAMESPACE_BYTES_MAX + 32,
};

static const char channel_end[] = ":0}:wake";

/* SCRIPT LOAD for each script, then SMEMBERS: a call each, because a server replies to the first
 * command before it has received the last one. */
enum {
    CALLS = BEL_SCRIPTS + 1,
};

struct bel_greeter {
    struct bel_redis *node;
    struct loading {
        struct bel_redis_call call;
        struct bel_greeter *greeter;
        size_t start, bytes; /* of the command, in `commands` */
        bool is_under_way;
    } loading[CALLS];
    struct bel_redis_call subscribe;
    struct bel_buffer commands, subscribing;
    bool is_subscribing; /* under way */
};

static int append(struct bel_buffer *buffer, struct bel_view text)
{
    int err = bel__buffer_append_format(buffer, "$%zu\r\n", text.bytes);
    if (err == 0) err = bel__buffer_append(buffer, text.data, text.bytes);
    return err ? err : bel__buffer_append(buffer, "\r\n", 2);
}

static int encode_script(struct bel_buffer *buffer, const struct bel_script *script)
{
    int err = bel__buffer_append(buffer, "*3\r\n", 4);
    if (err == 0) err = append(buffer, BEL_VIEW("SCRIPT"));
    if (err == 0) err = append(buffer, BEL_VIEW("LOAD"));
    return err ? err : append(buffer, script->text);
}

static int encode_members(struct bel_buffer *buffer, struct bel_view registry)
{
    int err = bel__buffer_append(buffer, "*2\r\n", 4);
    if (err == 0) err = append(buffer, BEL_VIEW("SMEMBERS"));
    return err ? err : append(buffer, registry);
}

static int encode_loading(struct bel_greeter *greeter)
{
    struct bel_buffer *buffer = &greeter->commands;
    for (size_t i = 0; i < CALLS; i++) {
        struct loading *loading = &greeter->loading[i];
        loading->greeter = greeter;
        loading->start = buffer->count;
        int err = i < BEL_SCRIPTS ? encode_script(buffer, &bel__scripts[i])
                                  : encode_members(buffer, bel__node_registry(greeter->node));
        if (err) return err;
        loading->bytes = buffer->count - loading->start;
    }
    return 0;
}

static int encode_subscribing(struct bel_greeter *greeter)
{
    char pattern[PATTERN_BYTES];
    int bytes = snprintf(pattern, sizeof pattern, "{%s:*%s", greeter->node->options.name_space,
                         channel_end);
    assert(bytes > 0 && (size_t)bytes < sizeof pattern);
    int err = bel__buffer_append(&greeter->subscribing, "*2\r\n", 4);
    if (err == 0) err = append(&greeter->subscribing, BEL_VIEW("PSUBSCRIBE"));
    return err ? err : append(&greeter->subscribing, (struct bel_view){pattern, (size_t)bytes});
}

struct bel_greeter *bel__greeter_create(struct bel_redis *node)
{
    struct bel_greeter *greeter = calloc(1, sizeof *greeter);
    if (greeter == NULL) return NULL;
    greeter->node = node;
    bel__buffer_init(&greeter->commands, GREETING_BYTES_MAX);
    bel__buffer_init(&greeter->subscribing, (size_t)2 * PATTERN_BYTES);
    if (encode_loading(greeter) == 0 && encode_subscribing(greeter) == 0) return greeter;
    bel__greeter_destroy(greeter);
    return NULL;
}

void bel__greeter_destroy(struct bel_greeter *greeter)
{
    if (greeter == NULL) return;
    assert(!greeter->is_subscribing);
    bel__buffer_finish(&greeter->commands);
    bel__buffer_finish(&greeter->subscribing);
    free(greeter);
}

/* Something may happen at any time in a topic that the node does not know yet. */
static void learn_topics(struct bel_redis *node, const struct bel_value *names)
{
    for (size_t i = 0; i < names->count; i++) {
        struct bel_view name = names->items[i].text;
        if (!bel_topic_is_valid(name)) continue;
        struct bel_redis_topic *topic = bel__node_topic(node, name);
        if (topic == NULL) continue;
        topic->is_registered = true;
        topic->next_ms = bel__node_now(node);
    }
}

static void loaded(struct bel_redis_call *call, const struct bel_redis_reply *reply)
{
    struct loading *loading = BEL_CONTAINER_OF(call, struct loading, call);
    struct bel_greeter *greeter = loading->greeter;
    bool is_members = loading == &greeter->loading[BEL_SCRIPTS];
    loading->is_under_way = false;
    if (!is_members || reply->err) return;
    if (reply->value->type == BEL_VALUE_LIST) learn_topics(greeter->node, reply->value);
}

static void send_loading(struct bel_greeter *greeter, struct loading *loading)
{
    struct bel_redis *node = greeter->node;
    if (loading->is_under_way) return;
    loading->call = (struct bel_redis_call){.done = loaded};
    loading->call.command.data = bel__buffer_data(&greeter->commands) + loading->start;
    loading->call.command.bytes = loading->bytes;
    loading->is_under_way = bel__redis_link_send(node->link, &loading->call, node->now.real) == 0;
}

static void subscribed(struct bel_redis_call *call, const struct bel_redis_reply *reply)
{
    struct bel_greeter *greeter = BEL_CONTAINER_OF(call, struct bel_greeter, subscribe);
    if (reply->is_last) greeter->is_subscribing = false;
}

void bel__greeter_send(struct bel_greeter *greeter)
{
    struct bel_redis *node = greeter->node;
    for (size_t i = 0; i < CALLS; i++) {
        send_loading(greeter, &greeter->loading[i]);
    }
    if (greeter->is_subscribing || node->options.is_virtual) return;
    greeter->subscribe = (struct bel_redis_call){
        .command = {bel__buffer_data(&greeter->subscribing), greeter->subscribing.count},
        .replies = 1,
        .confirmed_by = "psubscribe",
        .done = subscribed};
    int err = bel__redis_link_send(node->link, &greeter->subscribe, node->now.real);
    greeter->is_subscribing = err == 0;
}

/* Finds the topic of a channel. Returns an empty view if the channel is another one. */
static struct bel_view topic_of(const struct bel_redis *node, struct bel_view channel)
{
    size_t before = 1 + strlen(node->options.name_space) + 1, after = sizeof channel_end - 1;
    if (channel.bytes <= before + after) return (struct bel_view){NULL, 0};
    const char *text = channel.data;
    return (struct bel_view){text + before, channel.bytes - before - after};
}

void bel__greeter_hear(struct bel_greeter *greeter, const struct bel_value *message)
{
    struct bel_redis *node = greeter->node;
    int64_t time;
    if (message->count != 4 || !bel_value_is(&message->items[0], "pmessage")) return;
    struct bel_view name = topic_of(node, message->items[2].text);
    struct bel_view text = message->items[3].text;
    if (!bel_topic_is_valid(name)) return;
    struct bel_redis_topic *topic = bel__node_topic(node, name);
    if (topic == NULL || bel__parse_i64(text.data, text.bytes, 0, INT64_MAX, &time) != 0) return;
    if (topic->next_ms == BEL_REDIS_NEVER || time < topic->next_ms) topic->next_ms = time;
}
