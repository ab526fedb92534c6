/* SPDX-License-Identifier: MIT */

/*
 * A script announces the time of a new timer on the channel {namespace:topic:partition}:wake, if
 * it is before the time that was announced last. A pattern covers all topics, also those to come.
 * Sharded channels have no patterns: in a Cluster a node that makes a topic announces it on a
 * channel with the name of the registry. When messages may have been missed, all topics of the
 * registry are looked at. Every minute or two the registry is compared with what is known, in case
 * somebody has deleted it: a topic that it does not have is registered again. Under a virtual
 * clock there is only one node, which needs no news.
 */
#include "redis/news.h"

#include "core/buffer.h"
#include "core/parse.h"
#include "core/units.h"
#include "core/view.h"
#include "redis/layouts.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    COMMAND_BYTES_MAX = 4 << 20,
    AGAIN_MS = 1000,
    CHECK_MS = 60000, /* and up to as much again, so that nodes do not check together */
};

static const char channel_end[] = "}:wake";

struct bel_news {
    struct bel_redis *node;
    struct bel_view loading[BEL_SCRIPTS]; /* SCRIPT LOAD for each script, in `commands` */
    struct bel_server_call members;       /* SMEMBERS of the registry */
    struct bel_buffer commands, asking;
    struct bel_server_call time;
    int64_t time_asked_ms; /* by the boot clock */
    bool is_asking_time;   /* `time` is under way */
    char pattern[BEL_NEWS_PATTERN_BYTES];
    bool is_asking;               /* `members` is under way */
    bool asks_another;            /* messages were missed since */
    bool has_failed;              /* ask again, at `again` */
    bool is_check;                /* `members` is compared only: no message was missed */
    struct bel_mono again, check; /* check: 0: no turn was taken */
};

/* Appends a command whose last argument follows the text of the others. */
static int encode(struct bel_buffer *buffer, const char *others, struct bel_view last)
{
    int err = bel__buffer_append_format(buffer, "%s$%zu\r\n", others, last.bytes);
    if (err == 0) err = bel__buffer_append(buffer, last.data, last.bytes);
    return err ? err : bel__buffer_append(buffer, "\r\n", 2);
}

static int encode_loading(struct bel_news *news)
{
    size_t starts[BEL_SCRIPTS + 1] = {0};
    for (size_t i = 0; i < BEL_SCRIPTS; i++) {
        int err =
            encode(&news->commands, "*3\r\n$6\r\nSCRIPT\r\n$4\r\nLOAD\r\n", bel__scripts[i].text);
        if (err) return err;
        starts[i + 1] = news->commands.count;
    }
    const uint8_t *data = bel__buffer_data(&news->commands); /* moves no more */
    for (size_t i = 0; i < BEL_SCRIPTS; i++) {
        news->loading[i] = (struct bel_view){data + starts[i], starts[i + 1] - starts[i]};
    }
    return 0;
}

static int encode_asking(struct bel_news *news)
{
    return encode(&news->asking, "*2\r\n$8\r\nSMEMBERS\r\n", bel__node_registry(news->node));
}

void bel__news_pattern(const char *name_space, char out[BEL_NEWS_PATTERN_BYTES])
{
    int bytes = snprintf(out, BEL_NEWS_PATTERN_BYTES, "{%s:*%s", name_space, channel_end);
    assert(bytes > 0 && bytes < BEL_NEWS_PATTERN_BYTES);
    (void)bytes;
}

struct bel_news *bel__news_create(struct bel_redis *node)
{
    struct bel_news *news = calloc(1, sizeof *news);
    if (news == NULL) return NULL;
    news->node = node;
    bel__buffer_init(&news->commands, COMMAND_BYTES_MAX);
    bel__buffer_init(&news->asking, (size_t)2 * BEL_NEWS_PATTERN_BYTES);
    bel__news_pattern(node->options.name_space, news->pattern);
    if (encode_loading(news) == 0 && encode_asking(news) == 0) return news;
    bel__news_destroy(news);
    return NULL;
}

void bel__news_destroy(struct bel_news *news)
{
    if (news == NULL) return;
    assert(!news->is_asking && !news->is_asking_time);
    bel__buffer_finish(&news->commands);
    bel__buffer_finish(&news->asking);
    free(news);
}

/* --- The registry --- */

/* Something may happen at any time in a topic that the node does not know yet, or of which it may
 * have missed a message. */
static void learn_topic(struct bel_redis *node, struct bel_view name)
{
    struct bel_redis_topic *topic = bel_topic_is_valid(name) ? bel__node_topic(node, name) : NULL;
    if (topic == NULL) return;
    topic->is_registered = true;
    for (uint32_t i = 0; i < topic->count; i++) {
        struct bel_redis_partition *partition = topic->partitions[i];
        bel__partition_expect(node, partition, bel__partition_now(node, partition));
    }
}

/* The registry may have lost topics that it knew, when a replica took over that had not seen them:
 * they are registered again. */
static void learn_topics(struct bel_redis *node, const struct bel_value *names, bool is_check)
{
    uint32_t known = bel__map_count(&node->topics);
    for (uint32_t i = 0; i < known; i++) {
        uint64_t value = bel__map_at(&node->topics, i)->value;
        struct bel_redis_topic *topic = (struct bel_redis_topic *)(uintptr_t)value;
        topic->is_missing = topic->is_registered;
        topic->is_registered = false;
    }
    for (size_t i = 0; i < names->count; i++) {
        struct bel_view name = names->items[i].text;
        struct bel_redis_topic *topic =
            is_check && bel_topic_is_valid(name) ? bel__node_topic(node, name) : NULL;
        if (topic != NULL && topic->is_missing) {
            topic->is_registered = true;
        } else {
            learn_topic(node, name);
        }
    }
    for (uint32_t i = 0; i < known; i++) {
        uint64_t value = bel__map_at(&node->topics, i)->value;
        struct bel_redis_topic *topic = (struct bel_redis_topic *)(uintptr_t)value;
        if (topic->is_missing) (void)!bel__node_register(node, topic); /* or at its next use */
    }
}

/* A topic is new, or has another layout than before. */
static void doubt(struct bel_redis *node, struct bel_view name)
{
    struct bel_redis_topic *topic =
        bel__layouts_may_name(name) ? bel__node_topic(node, name) : NULL;
    if (topic != NULL) bel__layouts_doubt(topic);
}

static void told_time(struct bel_server_call *call, const struct bel_redis_reply *reply)
{
    struct bel_news *news = BEL_CONTAINER_OF(call, struct bel_news, time);
    int64_t seconds, micros;
    news->is_asking_time = false;
    if (reply->err || reply->value->type != BEL_VALUE_LIST || reply->value->count != 2) return;
    struct bel_view first = reply->value->items[0].text, second = reply->value->items[1].text;
    if (bel__parse_i64(first.data, first.bytes, 0, BEL_REDIS_TIME_END_MS / 1000, &seconds) != 0 ||
        bel__parse_i64(second.data, second.bytes, 0, 999999, &micros) != 0) {
        return;
    }
    bel__node_learn_time(news->node, call->from, seconds * 1000 + micros / 1000,
                         news->time_asked_ms);
}

/* Asks for the time of the server, which requests need. */
static void ask_time(struct bel_news *news)
{
    struct bel_redis *node = news->node;
    if (news->is_asking_time) return;
    news->time_asked_ms = bel__node_boot_ms(node);
    news->time = (struct bel_server_call){.command = BEL_VIEW("*1\r\n$4\r\nTIME\r\n"),
                                          .slot = node->registry_slot,
                                          .done = told_time};
    news->is_asking_time = bel__servers_send(node->servers, &news->time, node->now.real) == 0;
}

static void ask(struct bel_news *news);

static void told(struct bel_server_call *call, const struct bel_redis_reply *reply)
{
    struct bel_news *news = BEL_CONTAINER_OF(call, struct bel_news, members);
    news->is_asking = false;
    if (reply->err == 0 && reply->value->type == BEL_VALUE_LIST) {
        learn_topics(news->node, reply->value, news->is_check);
    } else { /* a server that loads its data is connected, and replies with errors */
        news->has_failed = true;
        news->again.ns = news->node->now.real.ns + (uint64_t)AGAIN_MS * NS_PER_MS;
    }
    if (news->asks_another) ask(news);
}

static void ask(struct bel_news *news)
{
    struct bel_redis *node = news->node;
    news->asks_another = news->is_asking;
    if (news->is_asking) return;
    news->is_check = false;
    news->members =
        (struct bel_server_call){.command = {bel__buffer_data(&news->asking), news->asking.count},
                                 .slot = node->registry_slot,
                                 .done = told};
    news->is_asking = bel__servers_send(node->servers, &news->members, node->now.real) == 0;
}

/* Compares the registry with what is known, if it is time to. Returns when it is. */
static struct bel_mono check(struct bel_news *news, struct bel_mono now)
{
    uint64_t word;
    struct bel_redis *node = news->node;
    if (bel__node_gives_time(node) || node->options.is_quiet) return (struct bel_mono){BEL_NEVER};
    if (now.ns < news->check.ns) return news->check;
    bool is_first = news->check.ns == 0;
    if (bel__entropy_u64(node->entropy, &word) != 0) word = 0;
    news->check.ns = now.ns + (CHECK_MS + word % CHECK_MS) * NS_PER_MS;
    if (is_first || news->is_asking || news->has_failed) return news->check;
    ask(news);
    news->is_check = news->is_asking;
    return now; /* the call leaves in the next turn */
}

struct bel_mono bel__news_turn(struct bel_news *news, struct bel_mono now)
{
    bool is_due = news->has_failed && now.ns >= news->again.ns;
    struct bel_mono next = check(news, now);
    if (is_due) {
        news->has_failed = false;
        ask_time(news);
        ask(news);
    }
    if (is_due) return now;
    return news->has_failed && news->again.ns < next.ns ? news->again : next;
}

/* --- Messages --- */

/* Finds the topic and the partition of a channel: {namespace:topic:partition}:wake. Returns an
 * empty view if the channel is another one. */
static struct bel_view topic_of(const struct bel_redis *node, struct bel_view channel,
                                uint64_t *out_partition)
{
    const struct bel_view none = {NULL, 0};
    size_t before = 1 + strlen(node->options.name_space) + 1, after = sizeof channel_end - 1;
    if (channel.bytes <= before + after) return none;
    const char *text = (const char *)channel.data + before;
    size_t bytes = channel.bytes - before - after;
    const char *colon = memrchr(text, ':', bytes);
    if (colon == NULL) return none;
    size_t name_bytes = (size_t)(colon - text);
    int err = bel__parse_u64(colon + 1, bytes - name_bytes - 1, 0, BEL_REDIS_PARTITIONS_MAX - 1,
                             out_partition);
    return err ? none : (struct bel_view){text, name_bytes};
}

static void hear(void *owner, struct bel_view channel, struct bel_view text)
{
    struct bel_news *news = owner;
    struct bel_redis *node = news->node;
    int64_t time;
    bool is_registry = bel__view_equal(channel, bel__node_registry(node));
    if (channel.bytes == 0 || (is_registry && text.bytes == 0)) {
        bel__layouts_doubt_all(node);
        ask_time(news);
        ask(news);
        return;
    }
    if (is_registry) {
        doubt(node, text);
        learn_topic(node, text);
        return;
    }
    uint64_t index = 0;
    struct bel_view name = topic_of(node, channel, &index);
    if (!bel__layouts_may_name(name)) return;
    struct bel_redis_topic *topic = bel__node_topic(node, name);
    if (topic == NULL) return;
    if (bel__view_is(text, "layout")) bel__layouts_doubt(topic);
    bool is_known = index < topic->count;
    /* Partition 0 tells of those that the node does not know. */
    struct bel_redis_partition *partition = topic->partitions[is_known ? index : 0];
    int64_t now = bel__partition_now(node, partition);
    if (text.bytes == 0 || !is_known) {
        time = now;
    } else if (bel__parse_i64(text.data, text.bytes, 0, INT64_MAX, &time) != 0) {
        return;
    }
    if (!partition->has_replied) time = now; /* by a clock that the node does not know yet */
    if (partition->next_ms == BEL_REDIS_NEVER || time < partition->next_ms) {
        bel__partition_expect(node, partition, time);
    }
}

void bel__news_fill(struct bel_news *news, struct bel_servers_owner *out)
{
    bool is_alone = bel__node_gives_time(news->node);
    *out = (struct bel_servers_owner){.owner = news,
                                      .entropy = news->node->entropy,
                                      .first = news->loading,
                                      .first_count = BEL_SCRIPTS,
                                      .heard = hear};
    if (!is_alone) out->pattern = (struct bel_view){news->pattern, strlen(news->pattern)};
}
