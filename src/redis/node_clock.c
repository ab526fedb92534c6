/* SPDX-License-Identifier: MIT */

/*
 * The clocks of the servers, as a node knows them from replies, each with a timetable of the
 * partitions that the server has. The scripts of a partition follow the clock of its server, and
 * the primaries of a Cluster may disagree: so times of one are never compared with those of another
 * one. A partition is with the clock of the server that has replied for it last; before the first
 * reply, with that of the server that has told the time. A virtual clock is that of the turns, for
 * all of them.
 */
#include "redis/node.h"

#include "core/units.h"

#include <assert.h>
#include <stdlib.h>

/* Finds the clock of a server, or adds it. Returns NULL if memory has run out. */
static struct bel_node_clock *clock_of(struct bel_redis *node, uint32_t server)
{
    for (struct bel_link *link = bel__list_first(&node->clocks); link != NULL;
         link = bel__list_next(&node->clocks, link)) {
        struct bel_node_clock *clock = BEL_CONTAINER_OF(link, struct bel_node_clock, link);
        if (clock->server == server) return clock;
    }
    struct bel_node_clock *clock = calloc(1, sizeof *clock);
    if (clock == NULL) return NULL;
    clock->server = server;
    bel__list_append(&node->clocks, &clock->link);
    return clock;
}

static void destroy(struct bel_node_clock *clock)
{
    bel__timetable_finish(&clock->timetable);
    free(clock);
}

/* Forgets a clock that nothing follows any more. */
static void leave(struct bel_redis *node, struct bel_node_clock *clock)
{
    if (clock->partitions > 0 || clock == node->clock) return;
    bel__link_remove(&clock->link);
    destroy(clock);
}

int bel__clocks_open(struct bel_redis *node)
{
    node->clock = clock_of(node, 0);
    return node->clock == NULL ? BEL_ENOMEM : 0;
}

void bel__clocks_close(struct bel_redis *node)
{
    for (struct bel_link *link = bel__list_first(&node->clocks), *next; link != NULL; link = next) {
        next = bel__list_next(&node->clocks, link);
        destroy(BEL_CONTAINER_OF(link, struct bel_node_clock, link));
    }
    bel__list_init(&node->clocks);
}

bool bel__node_gives_time(const struct bel_redis *node)
{
    return node->options.is_virtual || node->options.is_quiet;
}

int64_t bel__clock_now(const struct bel_redis *node, const struct bel_node_clock *clock)
{
    if (bel__node_gives_time(node) || !clock->clock.is_known) return node->now.wall.ms;
    return bel__server_clock_now(&clock->clock, bel__node_boot_ms(node));
}

int64_t bel__node_now(const struct bel_redis *node)
{
    return bel__clock_now(node, node->clock);
}

int64_t bel__partition_now(const struct bel_redis *node,
                           const struct bel_redis_partition *partition)
{
    return bel__clock_now(node, partition->clock);
}

int64_t bel__node_boot_ms(const struct bel_redis *node)
{
    return (int64_t)(node->now.boot.ns / NS_PER_MS);
}

static bool is_told(const struct bel_redis *node, int64_t server_ms)
{
    return !bel__node_gives_time(node) && server_ms >= 0 && server_ms <= BEL_REDIS_TIME_END_MS;
}

void bel__node_learn_time(struct bel_redis *node, uint32_t server, int64_t server_ms,
                          int64_t sent_ms)
{
    struct bel_node_clock *old = node->clock;
    struct bel_node_clock *clock = is_told(node, server_ms) ? clock_of(node, server) : NULL;
    if (clock == NULL) return;
    bel__server_clock_learn(&clock->clock, server_ms, sent_ms, bel__node_boot_ms(node));
    node->clock = clock;
    if (old != clock) leave(node, old);
}

/* Lets a partition follow another clock, unless memory has run out. */
static void follow(struct bel_redis *node, struct bel_redis_partition *partition,
                   struct bel_node_clock *clock)
{
    struct bel_timetable_entry *entry = &partition->waking;
    struct bel_node_clock *old = partition->clock;
    int64_t time_ms = entry->time_ms;
    bel__timetable_set(&old->timetable, entry, BEL_REDIS_NEVER);
    if (bel__timetable_join(&clock->timetable, entry) != 0) {
        bel__timetable_set(&old->timetable, entry, time_ms);
        return;
    }
    bel__timetable_leave(&old->timetable);
    partition->clock = clock;
    clock->partitions++;
    old->partitions--;
    bel__timetable_set(&clock->timetable, entry, time_ms);
    leave(node, old);
}

int bel__partition_join_clock(struct bel_redis *node, struct bel_redis_partition *partition)
{
    int err = bel__timetable_join(&node->clock->timetable, &partition->waking);
    if (err) return err;
    partition->clock = node->clock;
    partition->clock->partitions++;
    return 0;
}

void bel__partition_leave_clock(struct bel_redis_partition *partition)
{
    bel__timetable_leave(&partition->clock->timetable);
    partition->clock->partitions--;
}

void bel__partition_learn_time(struct bel_redis *node, struct bel_redis_partition *partition,
                               uint32_t server, int64_t server_ms, int64_t sent_ms)
{
    struct bel_node_clock *clock = partition->clock;
    if (!is_told(node, server_ms)) return;
    if (clock->server != server) clock = clock_of(node, server);
    if (clock == NULL) return;
    bel__server_clock_learn(&clock->clock, server_ms, sent_ms, bel__node_boot_ms(node));
    partition->has_replied = true;
    if (clock != partition->clock) follow(node, partition, clock);
}

bool bel__node_knows_time(const struct bel_redis *node)
{
    return bel__node_gives_time(node) || node->clock->clock.is_known;
}
