/* SPDX-License-Identifier: MIT */
#ifndef BEL_REDIS_BATCH_H
#define BEL_REDIS_BATCH_H

/*
 * batch - one call of a script, for the items of one or more operations.
 *
 *     batch = bel__batch_join(node, partition, BEL_SCRIPT_CANCEL);
 *     bel__batch_item(batch, &operation->item, 1);
 *     bel__batch_text(batch, id);
 *     ...
 *     bel__batches_send(node);      at the end of the turn
 *
 * A script takes items of equal length, and replies with one result for each. An item of struct
 * bel_item stands for one or more of these. Nothing here fails: an error of building the command is
 * reported to the items, like an error of the server.
 */

#include "redis/node.h"

#include "belfry/value.h"
#include "core/buffer.h"

#define BEL_BATCH_FULL "the memory of the server is full (OOM): nothing was changed"

/* What an item gets back. */
struct bel_results {
    int err;                       /* 0, or the error; then there are no results */
    const char *why;               /* if err: the message */
    bool is_moved;                 /* if err: the topic has another number of partitions */
    const struct bel_value *items; /* of this item alone; nil if there are none */
    size_t count;
    const struct bel_redis_partition *partition; /* that has replied; NULL: a plain command */
};

struct bel_item {
    void (*answered)(struct bel_item *item, const struct bel_results *results);
    void *owner;           /* for the caller's use */
    struct bel_item *next; /* private, as is the rest */
    size_t results;        /* number of results; 0: all that there are */
};

/* Returns whether a result is a number between two others, both included. */
bool bel__result_is_number(const struct bel_value *value, int64_t least, int64_t most);

/* Returns a batch of a script to which items of a partition can be added: its last one of this
 * turn, if it is of this script and not full, or a new one. Returns NULL if memory has run out. */
struct bel_batch *bel__batch_join(struct bel_redis *node, struct bel_redis_partition *partition,
                                  enum bel_script_name script);

/* The same, for an item that makes the script do much: a batch has a total weight of at most
 * 1,000, or one item. So the server works on the next batch while the node reads the replies of the
 * last one. */
struct bel_batch *bel__batch_join_weighing(struct bel_redis *node,
                                           struct bel_redis_partition *partition,
                                           enum bel_script_name script, uint64_t weight);

/* Returns a new batch, to which no other operation adds. */
struct bel_batch *bel__batch_alone(struct bel_redis *node, struct bel_redis_partition *partition,
                                   enum bel_script_name script);

/* Returns a new batch of a script of the layout faststream for keys that are not, or not yet, those
 * of the topic. */
struct bel_batch *bel__batch_of_layout(struct bel_redis *node, struct bel_redis_topic *topic,
                                       struct bel_layout *layout, enum bel_script_name script);

/* Returns a batch of a plain command: its words are the texts that are added. */
struct bel_batch *bel__batch_plain(struct bel_redis *node);

/* The same, of a command that changes nothing. */
struct bel_batch *bel__batch_reading(struct bel_redis *node);

/* Returns whether bel__batch_join() would add to a batch that there is. */
bool bel__batch_is_open(const struct bel_redis_partition *partition, enum bel_script_name script);

/* Adds an item, whose arguments follow. */
void bel__batch_item(struct bel_batch *batch, struct bel_item *item, size_t results);

/* If the memory of the server is full, the batch is sent again as another script, which adds
 * nothing: its result for an item that would add something means BEL_BATCH_FULL. */
void bel__batch_may_add(struct bel_batch *batch, enum bel_script_name without);

/* Add an argument. */
void bel__batch_text(struct bel_batch *batch, struct bel_view text);
void bel__batch_word(struct bel_batch *batch, const char *word);
void bel__batch_number(struct bel_batch *batch, int64_t number);
/* Adds an argument of `bytes` bytes, which the caller writes before the next call. Returns NULL
 * after an error. */
uint8_t *bel__batch_space(struct bel_batch *batch, size_t bytes);

/* The settings of a topic, as partition 0 has told them. */
struct bel_settings_copy {
    int64_t version, partitions;
    const struct bel_value *fields; /* names and values */
};

/* Reads the results of the script configure. Returns 0, BEL_EIO, or BEL_ENOTFOUND. */
BEL_CHECKED int bel__settings_of(const struct bel_results *results, struct bel_settings_copy *out);

/* Sends the settings to another partition, unless it has newer ones. Returns 0 or BEL_ENOMEM. */
BEL_CHECKED int bel__settings_send(struct bel_redis *node, struct bel_redis_partition *partition,
                                   const struct bel_settings_copy *copy, struct bel_item *item);

/* Sends all batches of the turn. */
void bel__batches_send(struct bel_redis *node);

/* Ends the first batch that was not sent, with BEL_ECLOSED. There must be one. */
void bel__batches_drop_first(struct bel_redis *node);

#endif
