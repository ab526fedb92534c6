/* SPDX-License-Identifier: MIT */
#ifndef BEL_REDIS_FASTSTREAM_H
#define BEL_REDIS_FASTSTREAM_H

/*
 * faststream - what the verbs of topics of the layout faststream have in common, and what verbs of
 * several topics need of them. A timer of the package has no more than an id, a due and an
 * envelope; scripts/faststream/prelude.lua says what we keep besides.
 */

#include "redis/envelope.h"
#include "redis/operation.h"

/* Reads one delivery, the `index`-th of a claim in a topic, from a result of the script claim. Its
 * texts point into the result or the operation's arena. Returns 0, BEL_ENOMEM or BEL_ECORRUPT. */
BEL_CHECKED int bel__faststream_delivery(struct bel_operation *operation, struct bel_view topic,
                                         const uint8_t secret[BEL_TOKEN_SECRET_BYTES], size_t index,
                                         const struct bel_value *item, struct bel_delivery *out);

/* Reads timers into the reply from results of the scripts get and list; a result of nil is none.
 * Returns 0, BEL_ENOMEM or BEL_ECORRUPT. */
BEL_CHECKED int bel__faststream_timers(struct bel_operation *operation,
                                       const struct bel_value *items, size_t count);

/* Splits an envelope into a body, the correlation id and all other headers. `id` is the correlation
 * id if there is none. Returns 0 or BEL_ENOMEM. */
struct bel_faststream_content {
    struct bel_view body, correlation;
    const struct bel_header *headers;
    size_t headers_count;
};
BEL_CHECKED int bel__faststream_read(struct bel_operation *operation, struct bel_view id,
                                     struct bel_view value, struct bel_faststream_content *out);

/* A claim in a topic got an answer: an error, nothing, or something. Sets when parked claims look
 * again, at the latest. */
void bel__faststream_polled(struct bel_redis *node, struct bel_redis_topic *topic, int err,
                            bool found);

/* Begins to move the timer of a lease to the dead ones of the topic `<topic>:dead`: FAIL DEAD. */
BEL_CHECKED int bel__faststream_prepare_burying(struct bel_operation *operation);
void bel__faststream_begin_burying(struct bel_operation *operation);

/* Adds the item of an operation to a batch. Returns NULL after an error, which has ended the
 * operation. */
struct bel_batch *
bel__faststream_item(struct bel_operation *operation, enum bel_script_name script, size_t results,
                     void (*answered)(struct bel_item *item, const struct bel_results *results));

/* Sets the reply to a token that is not of a live lease, and returns BEL_ESTALE. */
int bel__faststream_refuse_stale(struct bel_operation *operation);

#endif
