/* SPDX-License-Identifier: MIT */

/*
 * The partitions of topics as a node knows them. Those that are not in use any more stay,
 * because something may be under way for them.
 */
#include "redis/node.h"

#include "core/crc16.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct bel_redis_partition *bel__topic_place(const struct bel_redis_topic *topic,
                                             struct bel_view id)
{
    const char *at = id.bytes > 0 ? memchr(id.data, '@', id.bytes) : NULL;
    size_t bytes = at == NULL ? id.bytes : (size_t)(at - (const char *)id.data);
    if (topic->count == 1) return topic->partitions[0];
    return topic->partitions[bel__crc16(0, id.data, bytes) % topic->count];
}

/* Finds the slot of the keys of a partition, and listens to its wake-ups. Returns 0 or
 * BEL_ENOMEM. */
static int settle(struct bel_redis *node, struct bel_redis_partition *partition)
{
    struct bel_view name = partition->topic->name;
    char text[BEL_REDIS_NAMESPACE_BYTES_MAX + BEL_TOPIC_BYTES_MAX + 32];
    int bytes = snprintf(text, sizeof text, "{%s:%.*s:%u}:wake", node->options.name_space,
                         (int)name.bytes, (const char *)name.data, (unsigned)partition->index);
    assert(bytes > 0 && (size_t)bytes < sizeof text);
    struct bel_view channel = {text, (size_t)bytes};
    partition->slot = bel__slot_of(channel);
    return bel__node_gives_time(node) ? 0 : bel__servers_listen(node->servers, channel);
}

int bel__topic_divide(struct bel_redis *node, struct bel_redis_topic *topic, uint32_t count)
{
    assert(count > 0 && count <= BEL_REDIS_PARTITIONS_MAX);
    for (unsigned i = 0; i < count; i++) {
        if (topic->partitions[i] != NULL) continue;
        struct bel_redis_partition *partition = calloc(1, sizeof *partition);
        if (partition == NULL) return BEL_ENOMEM;
        partition->topic = topic;
        partition->index = (uint8_t)i;
        int err = bel__partition_join_clock(node, partition);
        if (err) {
            free(partition);
            return err;
        }
        err = settle(node, partition);
        if (err) {
            bel__partition_leave_clock(partition);
            free(partition);
            return err;
        }
        partition->next_ms = partition->ring_ms = BEL_REDIS_NEVER;
        topic->partitions[i] = partition;
    }
    bel__topic_use(node, topic, count);
    return 0;
}

void bel__topic_use(struct bel_redis *node, struct bel_redis_topic *topic, uint32_t count)
{
    topic->count = count;
    for (unsigned i = 0; i < BEL_REDIS_PARTITIONS_MAX; i++) {
        struct bel_redis_partition *partition = topic->partitions[i];
        if (partition != NULL) bel__partition_expect(node, partition, partition->next_ms);
    }
}
