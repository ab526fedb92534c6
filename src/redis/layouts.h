/* SPDX-License-Identifier: MIT */
#ifndef BEL_REDIS_LAYOUTS_H
#define BEL_REDIS_LAYOUTS_H

/*
 * layouts - which layout the topics of a namespace have.
 *
 * A node asks for the layout of a topic before the first request that names it, and again when
 * another node has said that it changes. Until the answer, this request and all after it wait. A
 * layout that changes meanwhile does no harm: every script checks it.
 */

#include "redis/node.h"

enum {
    BEL_LAYOUTS_KEY_BYTES = BEL_REDIS_NAMESPACE_BYTES_MAX + 16,
};

/* Prints the key of the hash of all layouts. Returns the key, which is in `out`. */
struct bel_view bel__layouts_key(const struct bel_redis *node, char out[BEL_LAYOUTS_KEY_BYTES]);

/* Returns whether a name may be that of a topic of any layout. */
bool bel__layouts_may_name(struct bel_view topic);

/* Returns whether the layouts of all topics that a command names are known, or could not be found
 * out: then `*out_why` is the reason, otherwise NULL. If not, asks for them. */
bool bel__layouts_know(struct bel_redis *node, const struct bel_command *command,
                       const char **out_why);

/* Returns whether a command is one for topics with a layout: its only topic has one, or CONFIGURE
 * names a setting that only such topics have. Commands that may name topics of several layouts are
 * not. */
bool bel__layouts_concern(struct bel_redis *node, const struct bel_command *command);

/* The layout of a topic, or of all topics, may have changed. */
static inline void bel__layouts_doubt(struct bel_redis_topic *topic)
{
    topic->knows_layout = false;
    topic->is_registered = false; /* only native topics are */
}

void bel__layouts_doubt_all(struct bel_redis *node);

/* The layout of a topic is being changed by this node; and has been: NULL is native. Takes over the
 * use of the layout. */
void bel__layouts_begin_change(struct bel_redis_topic *topic);
void bel__layouts_end_change(struct bel_redis *node, struct bel_redis_topic *topic,
                             struct bel_layout *layout);

#endif
