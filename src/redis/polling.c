/* SPDX-License-Identifier: MIT */

/*
 * Polling, in case messages get lost. Messages are enough as a rule, so a node looks at one
 * partition every five seconds, in rotation, and before it at ten of those that claims wait for.
 * When it finds that something happens earlier than it was told, it looks at the next ones at once,
 * then at longer and longer intervals up to five seconds again, and each time at five of them.
 *
 *     told of all      1 every 5 s
 *     told too late    1 after 50 ms, 100 ms, 200 ms ... then 5 every 5 s, for a minute
 *     claims wait      1 more each time, and 10 more every 5 s
 *
 * So a node sends at most 40 polls a second, however many topics there are.
 */
#include "redis/node.h"

#include "core/entropy.h"
#include "core/units.h"

enum {
    POLL_MS_MIN = 50,
    POLL_MS_MAX = 5000,
    PARTITIONS_MAX = 5,    /* at a time */
    AWAITED_MAX = 10,      /* at a time, of those that claims wait for */
    POLLS_AFTER_NEWS = 12, /* of the longest interval, until the node trusts messages again */
};

/* Returns the partition after the last one polled, of all topics; NULL: there is none. */
static struct bel_redis_partition *next_partition(struct bel_redis *node)
{
    uint32_t topics = bel__map_count(&node->topics);
    for (uint32_t i = 0; i <= topics && topics > 0; i++) {
        if (node->polling.topic >= topics) node->polling.topic = 0;
        uint64_t value = bel__map_at(&node->topics, node->polling.topic)->value;
        struct bel_redis_topic *topic = (struct bel_redis_topic *)(uintptr_t)value;
        bool is_ours = topic->layout == NULL && topic->is_registered;
        if (is_ours && node->polling.partition < topic->count) {
            return topic->partitions[node->polling.partition++];
        }
        node->polling.partition = 0;
        node->polling.topic++;
    }
    return NULL;
}

static void look_at(struct bel_redis *node, struct bel_redis_partition *partition)
{
    int64_t now = bel__partition_now(node, partition);
    bool is_due = partition->next_ms != BEL_REDIS_NEVER && partition->next_ms <= now;
    if (partition->is_sweeping || is_due) return;
    partition->told_ms = partition->next_ms;
    partition->is_polled = true;
    bel__partition_expect(node, partition, now);
}

/* Looks at the next partitions that claims wait for. One of a topic that is not registered may have
 * come to be without the node being told. */
static void look_at_awaited(struct bel_redis *node, unsigned count)
{
    struct bel_link *link;
    for (unsigned i = 0; i < count && (link = bel__list_first(&node->awaited)) != NULL; i++) {
        struct bel_redis_topic *topic = BEL_CONTAINER_OF(link, struct bel_redis_topic, awaited);
        if (topic->polled >= topic->count) topic->polled = 0;
        if (topic->layout == NULL) look_at(node, topic->partitions[topic->polled]);
        if (++topic->polled < topic->count) continue;
        bel__link_remove(link);
        bel__list_append(&node->awaited, link);
    }
}

/* Sets when the next polls are: a random time, so that many nodes do not poll together. */
static void set_next(struct bel_redis *node)
{
    uint64_t word, ms = node->polling.interval_ms;
    if (bel__entropy_u64(node->entropy, &word) != 0) word = 0;
    node->polling.at.ns = node->now.real.ns + (ms / 2 + word % (ms + 1)) * NS_PER_MS;
}

struct bel_mono bel__node_poll(struct bel_redis *node)
{
    struct bel_polling *polling = &node->polling;
    if (bel__node_gives_time(node) || node->options.is_quiet) return (struct bel_mono){BEL_NEVER};
    if (polling->interval_ms == 0) {
        polling->interval_ms = POLL_MS_MAX;
        set_next(node);
    }
    if (node->now.real.ns < polling->at.ns) return polling->at;
    bool is_longest = polling->interval_ms == POLL_MS_MAX;
    unsigned count = is_longest && polling->left > 0 ? PARTITIONS_MAX : 1;
    look_at_awaited(node, is_longest ? AWAITED_MAX : 1);
    for (unsigned i = 0; i < count; i++) {
        struct bel_redis_partition *partition = next_partition(node);
        if (partition == NULL) break;
        look_at(node, partition);
    }
    if (is_longest && polling->left > 0) polling->left--;
    polling->interval_ms = 2 * polling->interval_ms;
    if (polling->interval_ms > POLL_MS_MAX) polling->interval_ms = POLL_MS_MAX;
    set_next(node);
    return polling->at;
}

void bel__node_polled(struct bel_redis *node, struct bel_redis_partition *partition)
{
    int64_t next = partition->next_ms, told = partition->told_ms;
    bool is_news = next != BEL_REDIS_NEVER && (told == BEL_REDIS_NEVER || next < told);
    partition->is_polled = false;
    if (!is_news) return;
    node->polling.interval_ms = POLL_MS_MIN;
    node->polling.left = POLLS_AFTER_NEWS;
    set_next(node);
}
