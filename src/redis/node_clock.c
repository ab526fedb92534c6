/* SPDX-License-Identifier: MIT */

/*
 * The time of the server, as a node knows it from replies. A virtual clock is that of the turns.
 */
#include "redis/node.h"

#include "core/units.h"

bool bel__node_gives_time(const struct bel_redis *node)
{
    return node->options.is_virtual || node->options.is_quiet;
}

int64_t bel__node_now(const struct bel_redis *node)
{
    if (bel__node_gives_time(node) || !node->clock.is_known) return node->now.wall.ms;
    return bel__server_clock_now(&node->clock, bel__node_boot_ms(node));
}

int64_t bel__node_boot_ms(const struct bel_redis *node)
{
    return (int64_t)(node->now.boot.ns / NS_PER_MS);
}

void bel__node_learn_time(struct bel_redis *node, int64_t server_ms, int64_t sent_ms)
{
    if (bel__node_gives_time(node) || server_ms < 0 || server_ms > BEL_REDIS_TIME_END_MS) return;
    bel__server_clock_learn(&node->clock, server_ms, sent_ms, bel__node_boot_ms(node));
}

bool bel__node_knows_time(const struct bel_redis *node)
{
    return bel__node_gives_time(node) || node->clock.is_known;
}
