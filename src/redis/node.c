/* SPDX-License-Identifier: MIT */

/*
 * The topics of a node. A topic stays known until the node is closed: there are few, and each is a
 * name and a time.
 */
#include "redis/node.h"

#include "redis/batch.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int64_t bel__node_now(const struct bel_redis *node)
{
    return node->now.wall.ms + node->ahead_ms;
}

struct bel_redis_topic *bel__node_topic(struct bel_redis *node, struct bel_view name)
{
    const uint64_t *found = bel__map_find(&node->topics, name.data, name.bytes);
    if (found != NULL) return (struct bel_redis_topic *)(uintptr_t)*found;
    struct bel_redis_topic *topic = calloc(1, sizeof *topic + name.bytes);
    if (topic == NULL) return NULL;
    char *copy = (char *)(topic + 1);
    memcpy(copy, name.data, name.bytes);
    topic->name = (struct bel_view){copy, name.bytes};
    topic->next_ms = topic->ring_ms = BEL_REDIS_NEVER;
    if (bel__map_put(&node->topics, copy, name.bytes, (uintptr_t)topic) != 0) {
        free(topic);
        return NULL;
    }
    return topic;
}

void bel__node_forget_topics(struct bel_redis *node)
{
    for (uint32_t i = bel__map_count(&node->topics); i-- > 0;) {
        const struct bel_map_entry *entry = bel__map_at(&node->topics, i);
        struct bel_redis_topic *topic = (struct bel_redis_topic *)(uintptr_t)entry->value;
        (void)bel__map_remove(&node->topics, entry->key, entry->key_bytes, NULL);
        free(topic);
    }
    bel__map_finish(&node->topics);
}

void bel__node_mark(struct bel_redis *node, struct bel_redis_topic *topic)
{
    topic->marks++;
    if (!bel__link_is_linked(&topic->dirty)) bel__list_append(&node->dirty, &topic->dirty);
}

struct bel_view bel__node_registry(const struct bel_redis *node)
{
    return (struct bel_view){node->registry, strlen(node->registry)};
}

/* A command that no operation waits for. */
struct aside {
    struct bel_item item;
    struct bel_redis_topic *topic;
};

static void registered(struct bel_item *item, const struct bel_results *results)
{
    struct aside *aside = BEL_CONTAINER_OF(item, struct aside, item);
    if (results->err) aside->topic->is_registered = false;
    free(aside);
}

int bel__node_register(struct bel_redis *node, struct bel_redis_topic *topic)
{
    if (topic->is_registered) return 0;
    struct aside *aside = malloc(sizeof *aside);
    struct bel_batch *batch = aside == NULL ? NULL : bel__batch_plain(node);
    if (batch == NULL) {
        free(aside);
        return BEL_ENOMEM;
    }
    *aside = (struct aside){.item = {.answered = registered}, .topic = topic};
    bel__batch_add(batch, &aside->item, 0);
    bel__batch_word(batch, "SADD");
    bel__batch_text(batch, bel__node_registry(node));
    bel__batch_text(batch, topic->name);
    topic->is_registered = true;
    return 0;
}

int64_t bel__node_next(const struct bel_redis *node)
{
    int64_t first = BEL_REDIS_NEVER;
    for (uint32_t i = 0; i < bel__map_count(&node->topics); i++) {
        uint64_t value = bel__map_at(&node->topics, i)->value;
        const struct bel_redis_topic *topic = (const struct bel_redis_topic *)(uintptr_t)value;
        if (topic->next_ms == BEL_REDIS_NEVER) continue;
        if (first == BEL_REDIS_NEVER || topic->next_ms < first) first = topic->next_ms;
    }
    return first;
}
