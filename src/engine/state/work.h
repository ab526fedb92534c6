/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_STATE_WORK_H
#define BEL_ENGINE_STATE_WORK_H

/*
 * work - counts what workers do with timers, for the engine, each topic, each group and each
 * resource: claims and how they end, how long timers waited, how long handlers ran.
 *
 *     claim    begin: running + 1, claimed + 1, waited
 *     ACK ...  lease->end_kind says how the lease ends; end: running - 1, done + 1, ran
 *
 * Numbers are in memory only, and begin at 0 when an engine is opened. At most BEL_WORK_TOPICS_MAX
 * topics, BEL_WORK_GROUPS_MAX groups and BEL_WORK_RESOURCES_MAX resources, in the order of their
 * first claims, have numbers of their own. Jobs are no groups here: each would take a place for
 * good, and JOB GET has the numbers of a job. Other topics count only for the engine, other groups
 * for the nameless group of their topic, and other resources for the nameless one. A resource
 * counts the timers that name it, not those of resources below it.
 */

#include "belfry/stats.h"
#include "belfry/view.h"
#include "core/map.h"

#include <stdint.h>

struct bel_engine;
struct bel_lease;
struct bel_record;

enum {
    BEL_WORK_TOPICS_MAX = 10000,
    BEL_WORK_GROUPS_MAX = 10000,
    BEL_WORK_RESOURCES_MAX = 1000,
};

/* How a lease ends. */
enum bel_work_end {
    BEL_WORK_WITHDRAWN, /* the timer was cancelled, replaced or deleted */
    BEL_WORK_DONE,
    BEL_WORK_FAILED,
    BEL_WORK_RELEASED,
    BEL_WORK_LOST,
};

/* The work of things with names. */
struct bel_work_names {
    struct bel_map map;                    /* name -> struct bel_named_work */
    struct bel_named_work *first, *others; /* the list of all; the one without a name, or NULL */
};

struct bel_topic_work {
    struct bel_work all;
    struct bel_work_names groups;
};

void bel__work_free(struct bel_topic_work *work);
void bel__work_finish(struct bel_engine *engine);

/* A lease begins: a claim, or a lease that was loaded. */
void bel__work_begin(struct bel_engine *engine, struct bel_lease *lease,
                     const struct bel_record *record);

/* A lease ends, as lease->end_kind says. */
void bel__work_end(struct bel_engine *engine, const struct bel_lease *lease);

/* Returns the numbers of a resource; NULL if it has none of its own, or none of its timers was
 * claimed. */
const struct bel_work *bel__work_of_resource(const struct bel_engine *engine, struct bel_view name);

/* Count a span; something that happened in a minute. */
void bel__spans_note(struct bel_spans *spans, uint64_t ms);
void bel__rate_note(struct bel_rate *rate, uint64_t minute);

/* Returns an upper bound, in ms, that `thousandths` of the spans do not exceed: a power of two. 0
 * without any. */
uint64_t bel__spans_quantile(const struct bel_spans *spans, unsigned thousandths);
uint64_t bel__spans_count(const struct bel_spans *spans);

/* Returns how often something happened in the minute before `now_ms`, about: the minute before
 * counts in proportion. */
uint64_t bel__rate_of(const struct bel_rate *rate, uint64_t now_ms);

#endif
