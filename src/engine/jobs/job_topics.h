/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_JOBS_JOB_TOPICS_H
#define BEL_ENGINE_JOBS_JOB_TOPICS_H

/*
 * job_topics - the topics of a job and of its `then`, inner ones included: found or made by name
 * when the job is submitted, stored as a list of numbers, and compared with the scope of a key.
 *
 *     bel__job_topics_init      names of the graph
 *     bel__job_topics_make      finds or makes each topic, in slices
 *     bel__job_topics_put       writes the list
 *     bel__job_is_in_scope      reads the list, at every command of a key with a scope
 */

#include "belfry/backend.h"
#include "engine/jobs/job.h"
#include "jobs/graph.h"

struct bel_topic_state;

enum {
    BEL_JOB_TOPICS_MORE = 1, /* bel__job_topics_make() has not finished */
};

struct bel_job_topics {
    struct bel_view *names; /* the job's own in the order of the graph, then those of `then` */
    struct bel_topic_state **states; /* of these names; NULL: not found or made yet */
    uint32_t *numbers;               /* of all topics, each once; valid when all are made */
    uint32_t count;                  /* of names, which may repeat: at most one a task */
    uint32_t made;                   /* how many of them have been found or made */
    uint32_t numbers_count;
};

/* Collects the names of a graph, which must outlive the topics. Returns 0 or BEL_ENOMEM. */
BEL_CHECKED int bel__job_topics_init(struct bel_job_topics *topics,
                                     const struct bel_job_graph *graph);

/* Frees the memory; topics that are all zero are allowed. */
void bel__job_topics_finish(struct bel_job_topics *topics);

/* Finds each topic, or reserves its row and makes it, as long as the turn has units of work.
 * Returns 0 if all are made, BEL_JOB_TOPICS_MORE, or an error with its text in the reply. */
BEL_CHECKED int bel__job_topics_make(struct bel_engine *engine, struct bel_job_topics *topics,
                                     struct bel_reply *reply);

/* Writes the list of a job whose topics are all made. The caller has reserved
 * bel__edges_rows(numbers_count) rows of BEL_EDGES_ROW_BYTES_MAX, and stores numbers_count in the
 * row of the job. */
void bel__job_topics_put(struct bel_engine *engine, const struct bel_job_topics *topics,
                         uint64_t job);

/* Sets `*out` to whether a topic is one of a job, of its `then`, or of the text of a recurring
 * job. */
BEL_CHECKED int bel__job_has_topic(struct bel_engine *engine, const struct bel_job_found *job,
                                   uint32_t topic, bool *out);

/* Sets `*out` to whether a scope has every topic of a job, of its `then`, and of the text of a
 * recurring job. A job whose topics are not all known, because an older version has written it, is
 * not in any scope. */
BEL_CHECKED int bel__job_is_in_scope(struct bel_engine *engine, const struct bel_job_found *job,
                                     const struct bel_job_scope *scope, bool *out);

#endif
