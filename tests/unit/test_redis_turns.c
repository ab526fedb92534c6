/* SPDX-License-Identifier: MIT */

/*
 * A turn costs what has changed and what is due, not what is known: looks at topics are counted.
 * There is no server. A topic whose time has come is asked for, and its reply never comes.
 */
#include "../check.h"
#include "belfry/backend.h"
#include "redis/node.h"

#include <stdio.h>

enum {
    TOPICS = 10000,
    DUE = 10,
    TURNS = 1000,
    HOUR_MS = 3600000,
};

/* The linker calls this instead of bel__map_at(). */
const struct bel_map_entry *__real_bel__map_at(const struct bel_map *map, uint32_t index);
const struct bel_map_entry *__wrap_bel__map_at(const struct bel_map *map, uint32_t index);

static unsigned long looks;

const struct bel_map_entry *__wrap_bel__map_at(const struct bel_map *map, uint32_t index)
{
    looks++;
    return __real_bel__map_at(map, index);
}

static struct bel_redis *node;
static struct bel_now now;
static struct bel_redis_topic *topics[TOPICS];

static void open_node(void)
{
    struct bel_redis_options options = {.name_space = "turns", .is_virtual = true};
    options.servers.path = "/nowhere/redis.sock";
    now.real.ns = now.boot.ns = 1;
    now.wall.ms = INT64_C(1767225600000);
    CHECK(bel__redis_open(&options, now, &node) == 0);
    for (int i = 0; i < TOPICS; i++) {
        char name[32];
        int bytes = snprintf(name, sizeof name, "topic-%d", i);
        topics[i] = bel__node_topic(node, (struct bel_view){name, (size_t)bytes});
        CHECK(topics[i] != NULL);
        bel__partition_expect(node, topics[i]->partitions[0], now.wall.ms + HOUR_MS + i);
    }
}

static struct bel_next turn(void)
{
    return bel_backend_turn(bel__redis_backend(node), now);
}

static void jump(uint64_t ms)
{
    now.wall.ms += (int64_t)ms;
    now.boot.ns += ms * 1000000;
    node->now = now; /* without a turn */
}

static void a_turn_without_news_looks_at_no_topic(void)
{
    open_node();
    looks = 0;
    for (int i = 0; i < TURNS; i++) {
        CHECK(turn().due.ns == now.boot.ns + (uint64_t)HOUR_MS * 1000000);
    }
    CHECK_EQ(looks, 0);
    bel__redis_close(node);
}

static void the_next_time_is_the_earliest(void)
{
    open_node();
    int64_t soon = now.wall.ms + 5;
    bel__partition_expect(node, topics[TOPICS / 2]->partitions[0], soon);
    CHECK(bel__node_next(node) == soon - now.wall.ms);
    bel__partition_expect(node, topics[TOPICS / 2]->partitions[0], BEL_REDIS_NEVER);
    CHECK(bel__node_next(node) == HOUR_MS);
    CHECK(topics[TOPICS / 2]->partitions[0]->next_ms == BEL_REDIS_NEVER);
    bel__redis_close(node);
}

static void only_what_is_due_is_woken(void)
{
    open_node();
    jump(HOUR_MS + DUE - 1);
    looks = 0;
    bel__node_wake(node);
    CHECK_EQ(looks, 0);
    for (int i = 0; i < TOPICS; i++) {
        CHECK(topics[i]->partitions[0]->is_sweeping == (i < DUE));
    }
    CHECK(bel__node_next(node) == 1);
    bel__redis_close(node);
}

/* What is told of a partition while it is asked for counts when the reply has come: until then
 * nothing can be done, and a node that was told to take a turn at once would spin. */
static void what_is_told_during_a_sweep_waits_for_its_reply(void)
{
    open_node();
    struct bel_redis_partition *partition = topics[0]->partitions[0];
    jump(HOUR_MS);
    bel__node_wake(node);
    CHECK(partition->is_sweeping);
    bel__partition_expect(node, partition, now.wall.ms);
    CHECK(bel__node_next(node) == 1);
    bel__partition_swept(node, partition);
    CHECK(bel__node_next(node) == 0);
    bel__redis_close(node);
}

/* A partition that is not in use keeps its time for when it is in use again. */
static void partitions_that_are_not_in_use_are_not_woken(void)
{
    open_node();
    CHECK(bel__topic_divide(node, topics[0], 4) == 0);
    struct bel_redis_partition *last = topics[0]->partitions[3];
    bel__partition_expect(node, last, now.wall.ms + 5);
    CHECK(bel__node_next(node) == 5);
    CHECK(bel__topic_divide(node, topics[0], 1) == 0);
    CHECK(bel__node_next(node) == HOUR_MS);
    bel__partition_expect(node, last, now.wall.ms + 6); /* a late reply */
    CHECK(bel__node_next(node) == HOUR_MS);
    CHECK(bel__topic_divide(node, topics[0], 4) == 0);
    CHECK(bel__node_next(node) == 6);
    bel__redis_close(node);
}

int main(void)
{
    RUN(a_turn_without_news_looks_at_no_topic);
    RUN(the_next_time_is_the_earliest);
    RUN(only_what_is_due_is_woken);
    RUN(what_is_told_during_a_sweep_waits_for_its_reply);
    RUN(partitions_that_are_not_in_use_are_not_woken);
    return EXIT_SUCCESS;
}
