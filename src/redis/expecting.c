/* SPDX-License-Identifier: MIT */

/*
 * When something happens next in each partition. The timetables have those in use that are not
 * being asked: what is told of a partition while it is asked counts when the reply has come.
 */
#include "redis/node.h"

void bel__partition_expect(struct bel_redis *node, struct bel_redis_partition *partition,
                           int64_t time_ms)
{
    (void)node;
    bool is_looked_at = partition->index < partition->topic->count && !partition->is_sweeping;
    partition->next_ms = time_ms;
    bel__timetable_set(&partition->clock->timetable, &partition->waking,
                       is_looked_at ? time_ms : BEL_REDIS_NEVER);
}

void bel__partition_sweeping(struct bel_redis *node, struct bel_redis_partition *partition)
{
    partition->is_sweeping = true;
    bel__partition_expect(node, partition, BEL_REDIS_NEVER);
}

void bel__partition_swept(struct bel_redis *node, struct bel_redis_partition *partition)
{
    partition->is_sweeping = false;
    bel__partition_expect(node, partition, partition->next_ms);
}

int64_t bel__node_next(const struct bel_redis *node)
{
    int64_t next = BEL_REDIS_NEVER;
    for (struct bel_link *link = bel__list_first(&node->clocks); link != NULL;
         link = bel__list_next(&node->clocks, link)) {
        const struct bel_node_clock *clock = BEL_CONTAINER_OF(link, struct bel_node_clock, link);
        const struct bel_timetable_entry *first = bel__timetable_first(&clock->timetable);
        if (first == NULL) continue;
        int64_t left = first->time_ms - bel__clock_now(node, clock);
        if (left < 0) left = 0;
        if (next == BEL_REDIS_NEVER || left < next) next = left;
    }
    return next;
}
