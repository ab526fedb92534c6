/* SPDX-License-Identifier: MIT */

/*
 * What a node learns of the partitions of a topic. Partition 0 knows how many there are, and the
 * settings; the others have copies. A node believes in a number, 1 at first, and each script
 * compares it with that of its partition. If they differ, nothing is done, the node asks partition
 * 0, and the operation begins again. ADR 30 says how the number is changed.
 *
 * The settings are copied when a node meets a topic of several partitions for the first time. So
 * what a node that died has left half done is completed by the next one.
 */
#include "redis/batch.h"
#include "redis/node.h"

#include <assert.h>
#include <stdlib.h>

enum {
    AGAIN_MS = 20, /* while the number is being changed */
};

void bel__topic_learn(struct bel_redis *node, struct bel_redis_partition *partition, int64_t count)
{
    struct bel_redis_topic *topic = partition->topic;
    bool is_known = partition->index == 0 && count > 0 && count <= BEL_REDIS_PARTITIONS_MAX;
    bool is_news = is_known && count != (int64_t)topic->count;
    topic->is_checked = is_known && topic->is_checked;
    if (bel__topic_divide(node, topic, is_known ? (uint32_t)count : 1) != 0) return;
    for (uint32_t i = 0; i < topic->count; i++) {
        bel__partition_expect(node, topic->partitions[i],
                              bel__partition_now(node, topic->partitions[i]) +
                                  (is_news ? 0 : AGAIN_MS));
    }
    bel__node_mark_all(node, topic);
    if (is_known) bel__topic_heal(node, topic);
}

/* --- Healing --- */

struct healing {
    struct bel_item item; /* reads partition 0 */
    struct bel_redis *node;
    struct bel_redis_topic *topic;
    size_t left; /* copies under way */
    bool has_failed;
    struct bel_item copies[BEL_REDIS_PARTITIONS_MAX];
};

static void end(struct healing *healing)
{
    healing->topic->is_healing = false;
    if (healing->has_failed) healing->topic->is_checked = false;
    free(healing);
}

static void copied(struct bel_item *item, const struct bel_results *results)
{
    struct healing *healing = item->owner;
    if (results->err) healing->has_failed = true;
    assert(healing->left > 0);
    if (--healing->left == 0) end(healing);
}

static void told(struct bel_item *item, const struct bel_results *results)
{
    struct healing *healing = BEL_CONTAINER_OF(item, struct healing, item);
    struct bel_redis_topic *topic = healing->topic;
    struct bel_settings_copy copy;
    if (results->err || bel__settings_of(results, &copy) != 0) {
        healing->has_failed = true;
        end(healing);
        return;
    }
    for (uint32_t i = 1; i < topic->count; i++) {
        struct bel_item *next = &healing->copies[i];
        *next = (struct bel_item){.answered = copied, .owner = healing};
        if (bel__settings_send(healing->node, topic->partitions[i], &copy, next) == 0) {
            healing->left++;
        } else {
            healing->has_failed = true;
        }
    }
    if (healing->left == 0) end(healing);
}

void bel__topic_heal(struct bel_redis *node, struct bel_redis_topic *topic)
{
    if (topic->count == 1 || topic->is_checked || topic->is_healing) return;
    struct healing *healing = calloc(1, sizeof *healing);
    if (healing == NULL) return;
    struct bel_batch *batch = bel__batch_alone(node, topic->partitions[0], BEL_SCRIPT_CONFIGURE);
    if (batch == NULL) {
        free(healing);
        return;
    }
    healing->node = node;
    healing->topic = topic;
    healing->item.answered = told;
    topic->is_checked = topic->is_healing = true;
    bel__batch_item(batch, &healing->item, 0);
    bel__batch_word(batch, "0");
}

/* --- Copies of settings --- */

int bel__settings_of(const struct bel_results *results, struct bel_settings_copy *out)
{
    if (results->count < 4 || results->items[3].type != BEL_VALUE_LIST) return BEL_EIO;
    if (results->items[0].number != 1) return BEL_ENOTFOUND;
    out->version = results->items[1].number;
    out->partitions = results->items[2].number;
    out->fields = &results->items[3];
    return 0;
}

int bel__settings_send(struct bel_redis *node, struct bel_redis_partition *partition,
                       const struct bel_settings_copy *copy, struct bel_item *item)
{
    struct bel_batch *batch = bel__batch_alone(node, partition, BEL_SCRIPT_ADOPT);
    if (batch == NULL) return BEL_ENOMEM;
    bel__batch_item(batch, item, 0);
    bel__batch_number(batch, copy->version);
    bel__batch_number(batch, copy->partitions);
    for (size_t i = 0; i < copy->fields->count; i++) {
        bel__batch_text(batch, copy->fields->items[i].text);
    }
    return 0;
}
