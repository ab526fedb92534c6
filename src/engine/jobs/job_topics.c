/* SPDX-License-Identifier: MIT */

/*
 * The list is rows in EDGES, with topics in the place of tasks. Jobs that were written before the
 * list had the topics of `then` have a list too, of their tasks alone, and recurring ones had none.
 * The policy of an edge tells them apart: it is MARK in a list with all topics, else zero.
 *
 *     job with `then`    marked: all topics           not marked: the rest is not known
 *     recurring job      marked: all of its text      no list: nothing is known
 *
 * A key with a scope does not see a job of which a topic is not known. A program that does not know
 * MARK reads the numbers alone.
 */
#include "engine/jobs/job_topics.h"

#include "engine/jobs/state.h"
#include "engine/state/state.h"

#include <assert.h>
#include <stdlib.h>

#define MARK BEL_EDGE_FAILURE

static_assert(MARK != 0, "the list of an older version has zeros");

int bel__job_topics_init(struct bel_job_topics *topics, const struct bel_job_graph *graph)
{
    size_t count = bel__job_graph_topics(graph, NULL), room = count > 0 ? count : 1;
    topics->names = calloc(room, sizeof topics->names[0]);
    topics->states = calloc(room, sizeof(struct bel_topic_state *));
    topics->numbers = calloc(room, sizeof topics->numbers[0]);
    if (topics->names == NULL || topics->states == NULL || topics->numbers == NULL) {
        bel__job_topics_finish(topics);
        return BEL_ENOMEM;
    }
    (void)bel__job_graph_topics(graph, topics->names);
    topics->count = (uint32_t)count;
    return 0;
}

void bel__job_topics_finish(struct bel_job_topics *topics)
{
    free(topics->names);
    free(topics->states);
    free(topics->numbers);
    *topics = (struct bel_job_topics){0};
}

static int compare_numbers(const void *a, const void *b)
{
    const uint32_t *left = a, *right = b;
    return *left < *right ? -1 : *left > *right;
}

/* Collects the numbers of all topics, each once. */
static void number(struct bel_job_topics *topics)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < topics->count; i++) {
        topics->numbers[i] = topics->states[i]->number;
    }
    qsort(topics->numbers, topics->count, sizeof topics->numbers[0], compare_numbers);
    for (uint32_t i = 0; i < topics->count; i++) {
        bool is_again = count > 0 && topics->numbers[count - 1] == topics->numbers[i];
        if (!is_again) topics->numbers[count++] = topics->numbers[i];
    }
    topics->numbers_count = count;
}

int bel__job_topics_make(struct bel_engine *engine, struct bel_job_topics *topics,
                         struct bel_reply *reply)
{
    uint32_t *left = &engine->jobs->left;
    for (; topics->made < topics->count; topics->made++) {
        struct bel_topic_state *topic;
        bool is_new;
        if (*left == 0) return BEL_JOB_TOPICS_MORE;
        int err = bel__rows_reserve(&engine->rows, 1, BEL_TOPIC_ROW_BYTES, BEL_STORE_ADD);
        if (err) return err;
        err = bel__topic_make(engine, topics->names[topics->made], &topic, &is_new);
        if (err == BEL_EFULL) return bel__refuse(reply, err, "too many topics");
        if (err) return err;
        topics->states[topics->made] = topic;
        uint32_t units = is_new ? BEL_UNITS_TIMER : BEL_UNITS_EDGE;
        *left = *left < units ? 0 : *left - units;
        if (!is_new) continue;
        bel__topic_save(engine, topic);
        bel__wait_adopt(engine, topic);
    }
    number(topics);
    return 0;
}

void bel__job_topics_put(struct bel_engine *engine, const struct bel_job_topics *topics,
                         uint64_t job)
{
    uint32_t count = topics->numbers_count;
    assert(topics->made == topics->count);
    for (uint32_t chunk = 0; chunk < bel__edges_rows(count); chunk++) {
        struct bel_edge edges[BEL_EDGES_OF_ROW];
        uint8_t bytes[BEL_EDGES_ROW_BYTES_MAX];
        size_t items = bel__edges_in_row(count, chunk);
        for (size_t i = 0; i < items; i++) {
            size_t index = (size_t)chunk * BEL_EDGES_OF_ROW + i;
            edges[i] = (struct bel_edge){.task = topics->numbers[index], .on = MARK};
        }
        struct bel_key key = bel__edges_key(job, BEL_EDGES_TOPICS, 0, chunk);
        struct bel_view value = {bytes, bel__edges_write(edges, items, bytes)};
        bel__rows_put(&engine->rows, &key, value, BEL_ROW_NEW);
    }
}

/* Sets `*out` to whether a job without a list has a text, of `then` or of a recurring job: then
 * its topics are not known. */
static int has_text(struct bel_engine *engine, const struct bel_job_found *job, bool *out)
{
    struct bel_key key = bel__edges_key(job->row.number, BEL_EDGES_THEN, 0, 0);
    struct bel_view text;
    int err = bel__store_get(engine->store, &key, &text);
    *out = err == 0;
    return err == BEL_ENOTFOUND ? 0 : err;
}

/* Reads a row of the list of a job, and sets `*out_count` to how many topics it has. */
static int read_chunk(struct bel_engine *engine, const struct bel_job_found *job, uint32_t chunk,
                      struct bel_edge out[BEL_EDGES_OF_ROW], size_t *out_count)
{
    struct bel_key key = bel__edges_key(job->row.number, BEL_EDGES_TOPICS, 0, chunk);
    struct bel_view bytes;
    *out_count = bel__edges_in_row(job->row.topics, chunk);
    int err = bel__store_get(engine->store, &key, &bytes);
    if (err == 0) err = bel__edges_read(bytes, *out_count, out);
    return err == BEL_ENOTFOUND ? BEL_ECORRUPT : err;
}

int bel__job_has_topic(struct bel_engine *engine, const struct bel_job_found *job, uint32_t topic,
                       bool *out)
{
    struct bel_edge topics[BEL_EDGES_OF_ROW];
    *out = false;
    for (uint32_t chunk = 0; chunk < bel__edges_rows(job->row.topics); chunk++) {
        size_t count;
        int err = read_chunk(engine, job, chunk, topics, &count);
        if (err) return err;
        for (size_t i = 0; i < count; i++) {
            *out |= topics[i].task == topic;
        }
    }
    return 0;
}

int bel__job_is_in_scope(struct bel_engine *engine, const struct bel_job_found *job,
                         const struct bel_job_scope *scope, bool *out)
{
    struct bel_edge topics[BEL_EDGES_OF_ROW];
    bool is_unknown = false;
    *out = true;
    if (scope == NULL || scope->has == NULL) return 0;
    if (job->row.topics == 0) {
        int err = has_text(engine, job, &is_unknown);
        *out = !is_unknown;
        return err;
    }
    for (uint32_t chunk = 0; chunk < bel__edges_rows(job->row.topics); chunk++) {
        size_t count;
        int err = read_chunk(engine, job, chunk, topics, &count);
        if (err) return err;
        for (size_t i = 0; i < count; i++) {
            const struct bel_topic_state *topic = bel__topic_at(&engine->topics, topics[i].task);
            if (topic == NULL) return BEL_ECORRUPT;
            *out = scope->has(scope->context, bel__topic_name(topic)) &&
                   (job->row.thens == 0 || topics[i].on == MARK);
            if (!*out) return 0;
        }
    }
    return 0;
}
