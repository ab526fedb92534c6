/* SPDX-License-Identifier: MIT */
#ifndef BEL_COPY_TOPIC_H
#define BEL_COPY_TOPIC_H

/*
 * topic - a topic that is being copied, and what the steps of a copy share.
 */

#include "copy/copy.h"
#include "copy/whole.h"

#include "core/arena.h"

enum {
    BEL_COPY_PAGE = BEL_LIST_COUNT_MAX, /* timers */
    BEL_COPY_CURSOR_BYTES = 512,
    BEL_COPY_NAMES_BYTES = 200,
};

/* What is compared of a topic. */
struct bel_copy_sum {
    uint64_t count, chain, sum;
};

struct bel_copy_topic {
    struct bel_view name;
    bool is_paused;
    const struct bel_setting *settings;
    size_t settings_count;
    struct bel_copy_sum sum; /* of its records in the source, without what is left out */
    bool is_partitioned;     /* in the source or the target: the order of ties is not promised */
    bool is_there;           /* the target has the topic */
    bool is_known;           /* merges: and the topic keeps its settings */
    bool is_written;         /* the target has all of it */
    char after[BEL_COPY_CURSOR_BYTES]; /* where an earlier copy has stopped; empty: at the start */
};

struct bel_copy {
    const struct bel_copy_options *options;
    struct bel_copy_store source, target;
    struct bel_copy_counts counts;
    struct bel_why *why;
    struct bel_arena arena;
    struct bel_copy_topic *topics;
    size_t topics_count;
    char limited[BEL_COPY_NAMES_BYTES]; /* names of resources with limits, the first ones */
    uint64_t total, done;               /* records of the current step */
    struct bel_buffer scratch;
    struct bel_timer *timers;     /* a page */
    struct bel_request *requests; /* one for each, and one for the mark */
};

/* A page of LIST. `next` is the cursor of the next page; empty: there is none. */
struct bel_copy_page {
    const struct bel_timer *items;
    size_t count;
    struct bel_view next;
};

/* Passes all pages of a topic to `see`, from a cursor on, until it returns an error. */
typedef int bel_copy_see(struct bel_copy *copy, struct bel_copy_topic *topic,
                         const struct bel_copy_page *page);
BEL_CHECKED int bel__copy_pages(struct bel_copy *copy, const struct bel_copy_store *store,
                                struct bel_copy_topic *topic, const char *from, bel_copy_see *see);

/* Reads a topic of a store: its count and its digest, without a mark. Progress counts on. */
BEL_CHECKED int bel__copy_sum(struct bel_copy *copy, const struct bel_copy_store *store,
                              struct bel_copy_topic *topic, enum bel_copy_step step,
                              struct bel_copy_sum *out);

/* Returns whether the target has what the source has. */
bool bel__copy_is_same(const struct bel_copy_topic *topic, const struct bel_copy_sum *target);

/* Returns whether a timer is a mark; whether it is left out of a copy; and the timer as it
 * arrives. */
bool bel__copy_is_mark(const struct bel_timer *timer);
bool bel__copy_leaves_out(const struct bel_copy *copy, const struct bel_timer *timer);
struct bel_timer bel__copy_whole(const struct bel_copy *copy, const struct bel_timer *timer);

void bel__copy_progress(const struct bel_copy *copy, enum bel_copy_step step);

/* Counts the jobs of the source, and the resources with limits. */
BEL_CHECKED int bel__copy_count_others(struct bel_copy *copy);
/* Refuses a source with something that a copy does not have, and that was not left out. */
BEL_CHECKED int bel__copy_check_left_out(const struct bel_copy *copy);

/* Steps. Each works on one topic. */

/* Finds out what the target has of a topic. */
BEL_CHECKED int bel__copy_meet(struct bel_copy *copy, struct bel_copy_topic *topic);
/* Writes the timers of a topic. */
BEL_CHECKED int bel__copy_write(struct bel_copy *copy, struct bel_copy_topic *topic);
/* Removes the mark, and gives the topic its settings and its pause. */
BEL_CHECKED int bel__copy_finish(struct bel_copy *copy, struct bel_copy_topic *topic);
/* Cancels the unfinished timers of a topic in the source; deletes the ended ones. */
BEL_CHECKED int bel__copy_cancel(struct bel_copy *copy, struct bel_copy_topic *topic);
BEL_CHECKED int bel__copy_purge(struct bel_copy *copy, struct bel_copy_topic *topic);

#endif
