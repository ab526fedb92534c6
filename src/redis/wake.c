/* SPDX-License-Identifier: MIT */

/*
 * A partition in which something happens by now: its plans ring, or a script ends what is past and
 * replies what comes next. Every node does this for every one, so that leases end and plans ring
 * without any claim.
 */
#include "redis/batch.h"
#include "redis/node.h"

#include <stdlib.h>

enum {
    AGAIN_MS = 1000, /* after an error */
};

struct sweeping {
    struct bel_item item;
    struct bel_redis_partition *partition;
    struct bel_redis *node;
};

static void swept(struct bel_item *item, const struct bel_results *results)
{
    struct sweeping *sweeping = BEL_CONTAINER_OF(item, struct sweeping, item);
    struct bel_redis_partition *partition = sweeping->partition;
    struct bel_redis *node = sweeping->node;
    bel__partition_swept(node, partition);
    if (results->err && !results->is_moved) {
        bel__partition_expect(node, partition, bel__partition_now(node, partition) + AGAIN_MS);
    }
    bool has_layout = results->err == BEL_ECONFLICT; /* then nothing ever happens here */
    if (has_layout) bel__partition_expect(node, partition, BEL_REDIS_NEVER);
    free(sweeping);
}

/* Lets the server end what is past in a topic. */
static void sweep(struct bel_redis *node, struct bel_redis_partition *partition)
{
    struct sweeping *sweeping = malloc(sizeof *sweeping);
    struct bel_batch *batch =
        sweeping == NULL ? NULL : bel__batch_alone(node, partition, BEL_SCRIPT_SWEEP);
    if (batch == NULL) {
        free(sweeping);
        return;
    }
    *sweeping =
        (struct sweeping){.item = {.answered = swept}, .partition = partition, .node = node};
    bel__batch_item(batch, &sweeping->item, 0);
    bel__partition_sweeping(node, partition);
}

/* Lets parked claims of a topic of the layout faststream look for timers. When the last of them is
 * served, nobody polls. */
static void poll(struct bel_redis *node, struct bel_redis_partition *partition)
{
    bel__partition_expect(node, partition, BEL_REDIS_NEVER); /* until the reply */
    if (partition->topic->parked > 0) bel__node_mark(node, partition);
}

static void wake(struct bel_redis *node, struct bel_redis_partition *partition, int64_t now)
{
    if (partition->topic->layout != NULL) {
        poll(node, partition);
        return;
    }
    if (partition->ring_ms != BEL_REDIS_NEVER && partition->ring_ms <= now) {
        bel__rings_begin(node, partition);
    } else {
        sweep(node, partition);
    }
    bool lacks_memory = !partition->is_sweeping;
    if (lacks_memory) bel__partition_expect(node, partition, now + AGAIN_MS);
    bel__node_mark(node, partition);
}

static void wake_by(struct bel_redis *node, const struct bel_node_clock *clock)
{
    int64_t now = bel__clock_now(node, clock);
    struct bel_timetable_entry *first;
    while ((first = bel__timetable_first(&clock->timetable)) != NULL && first->time_ms <= now) {
        wake(node, BEL_CONTAINER_OF(first, struct bel_redis_partition, waking), now);
    }
}

void bel__node_wake(struct bel_redis *node)
{
    for (struct bel_link *link = bel__list_first(&node->clocks); link != NULL;
         link = bel__list_next(&node->clocks, link)) {
        wake_by(node, BEL_CONTAINER_OF(link, struct bel_node_clock, link));
    }
}
