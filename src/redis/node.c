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

struct bel_redis_topic *bel__node_topic(struct bel_redis *node, struct bel_view name)
{
    const uint64_t *found = bel__map_find(&node->topics, name.data, name.bytes);
    if (found != NULL) return (struct bel_redis_topic *)(uintptr_t)*found;
    struct bel_redis_topic *topic = calloc(1, sizeof *topic + name.bytes);
    if (topic == NULL) return NULL;
    char *copy = (char *)(topic + 1);
    memcpy(copy, name.data, name.bytes);
    topic->name = (struct bel_view){copy, name.bytes};
    topic->first_ms = BEL_REDIS_NEVER;
    if (bel__topic_divide(node, topic, 1) != 0 ||
        bel__map_put(&node->topics, copy, name.bytes, (uintptr_t)topic) != 0) {
        if (topic->partitions[0] != NULL) bel__partition_leave_clock(topic->partitions[0]);
        free(topic->partitions[0]);
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
        bel__layout_release(topic->layout);
        for (size_t k = 0; k < BEL_REDIS_PARTITIONS_MAX; k++) {
            free(topic->partitions[k]);
        }
        free(topic);
    }
    bel__map_finish(&node->topics);
}

void bel__node_mark(struct bel_redis *node, struct bel_redis_partition *partition)
{
    partition->marks++;
    if (bel__link_is_linked(&partition->dirty)) return;
    bel__list_append(&node->dirty, &partition->dirty);
}

void bel__node_mark_all(struct bel_redis *node, struct bel_redis_topic *topic)
{
    for (uint32_t i = 0; i < topic->count; i++) {
        bel__node_mark(node, topic->partitions[i]);
    }
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

/* Sends a command with the registry and the name of a topic. Returns 0 or BEL_ENOMEM. */
static int tell(struct bel_redis *node, struct bel_redis_topic *topic, const char *command)
{
    struct aside *aside = malloc(sizeof *aside);
    struct bel_batch *batch = aside == NULL ? NULL : bel__batch_plain(node);
    if (batch == NULL) {
        free(aside);
        return BEL_ENOMEM;
    }
    *aside = (struct aside){.item = {.answered = registered}, .topic = topic};
    bel__batch_item(batch, &aside->item, 0);
    bel__batch_word(batch, command);
    bel__batch_text(batch, bel__node_registry(node));
    bel__batch_text(batch, topic->name);
    return 0;
}

int bel__node_register(struct bel_redis *node, struct bel_redis_topic *topic)
{
    if (topic->is_registered || node->options.is_quiet) return 0;
    int err = tell(node, topic, "SADD");
    if (err == 0 && bel__servers_is_sharded(node->servers)) err = tell(node, topic, "SPUBLISH");
    topic->is_registered = err == 0;
    return err;
}
