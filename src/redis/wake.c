/* SPDX-License-Identifier: MIT */

/*
 * A topic in which something happens by now: its plans ring, or a script ends what is past and
 * replies what comes next. Every node does this for every topic, so that leases end and plans ring
 * without any claim.
 */
#include "redis/batch.h"
#include "redis/node.h"

#include <stdlib.h>

struct sweeping {
    struct bel_item item;
    struct bel_redis_topic *topic;
    struct bel_redis *node;
};

static void swept(struct bel_item *item, const struct bel_results *results)
{
    enum {
        AGAIN_MS = 1000, /* after an error */
    };
    struct sweeping *sweeping = BEL_CONTAINER_OF(item, struct sweeping, item);
    sweeping->topic->is_sweeping = false;
    if (results->err) sweeping->topic->next_ms = bel__node_now(sweeping->node) + AGAIN_MS;
    free(sweeping);
}

/* Lets the server end what is past in a topic. If memory has run out, the next turn does. */
static void sweep(struct bel_redis *node, struct bel_redis_topic *topic)
{
    struct sweeping *sweeping = malloc(sizeof *sweeping);
    struct bel_batch *batch =
        sweeping == NULL ? NULL : bel__batch_alone(node, topic, BEL_SCRIPT_SWEEP);
    if (batch == NULL) {
        free(sweeping);
        return;
    }
    *sweeping = (struct sweeping){.item = {.answered = swept}, .topic = topic, .node = node};
    bel__batch_add(batch, &sweeping->item, 0);
    topic->is_sweeping = true;
    topic->next_ms = BEL_REDIS_NEVER; /* until the reply */
}

void bel__node_wake(struct bel_redis *node)
{
    int64_t now = bel__node_now(node);
    for (uint32_t i = 0; i < bel__map_count(&node->topics); i++) {
        uint64_t value = bel__map_at(&node->topics, i)->value;
        struct bel_redis_topic *topic = (struct bel_redis_topic *)(uintptr_t)value;
        if (topic->next_ms == BEL_REDIS_NEVER || topic->next_ms > now) continue;
        if (topic->is_sweeping) continue;
        if (topic->ring_ms != BEL_REDIS_NEVER && topic->ring_ms <= now) {
            bel__rings_begin(node, topic);
        } else {
            sweep(node, topic);
        }
        if (topic->parked > 0) bel__node_mark(node, topic);
    }
}
