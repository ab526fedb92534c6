/* SPDX-License-Identifier: MIT */

/* A census allocates one block for its requests and one for its topics. The topics of the last
 * census are kept until the next is complete. A topic that is removed during a census gets an empty
 * name. */
#include "metrics/topic_counts.h"

#include "metrics/metrics.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct bel_topic_counts {
    struct bel_backend *backend; /* borrowed, during a census */
    struct bel_request names;
    struct bel_request *requests; /* one for each topic */
    struct bel_topic_counts_topic *next,
        *last; /* of the running census, of the last complete one */
    size_t next_count, last_count;
    size_t pending; /* requests without a reply */
    uint64_t next_all, last_all;
    struct bel_mono begun, taken; /* start of the running census, of the last complete one */
    bool is_under_way, has_last;
};

static void finish(struct bel_topic_counts *census, bool is_complete)
{
    if (is_complete) {
        free(census->last);
        census->last = census->next;
        census->last_count = census->next_count;
        census->last_all = census->next_all;
        census->taken = census->begun;
        census->has_last = true;
    } else {
        free(census->next);
    }
    free(census->requests);
    census->next = NULL;
    census->requests = NULL;
    census->is_under_way = false;
}

static void store_topic(struct bel_request *request, const struct bel_reply *reply)
{
    struct bel_topic_counts *census = request->user;
    size_t index = (size_t)(request - census->requests);
    struct bel_topic_counts_topic *topic = &census->next[index];
    if (reply->err == 0) {
        memcpy(topic->counts, reply->topic->counts, sizeof topic->counts);
        topic->plans = reply->topic->plans;
        topic->oldest_age_ms = reply->topic->oldest_age_ms;
        topic->claimed = reply->topic->claimed;
        topic->completed = reply->topic->completed;
        topic->failed = reply->topic->failed;
        topic->lost = reply->topic->lost;
        topic->paused = reply->topic->paused;
        memcpy(topic->waiting, reply->topic->waiting, sizeof topic->waiting);
        topic->has_work = reply->topic->work != NULL;
        if (topic->has_work) topic->work = *reply->topic->work;
        topic->groups = reply->topic->groups;
    } else {
        topic->name[0] = 0;
    }
    assert(census->pending > 0);
    if (--census->pending == 0) finish(census, true);
}

static void request_topic(struct bel_topic_counts *census, size_t index, struct bel_view name)
{
    struct bel_topic_counts_topic *topic = &census->next[index];
    assert(name.bytes < sizeof topic->name);
    memcpy(topic->name, name.data, name.bytes);
    topic->name[name.bytes] = 0;
    census->requests[index] = (struct bel_request){
        .command = {.verb = BEL_VERB_TOPIC, .target.topic = {topic->name, name.bytes}},
        .done = store_topic,
        .user = census,
        .is_early = true,
    };
    bel_backend_submit(census->backend, &census->requests[index]);
}

static void store_names(struct bel_request *request, const struct bel_reply *reply)
{
    struct bel_topic_counts *census = request->user;
    size_t count = reply->err == 0 ? reply->names.count : 0;
    census->next_all = count;
    if (count > BEL_TOPIC_COUNTS_TOPICS_MAX) count = BEL_TOPIC_COUNTS_TOPICS_MAX;
    census->next_count = count;
    if (reply->err != 0 || count == 0) {
        finish(census, reply->err == 0);
        return;
    }
    census->next = calloc(count, sizeof *census->next);
    census->requests = calloc(count, sizeof *census->requests);
    if (census->next == NULL || census->requests == NULL) {
        finish(census, false);
        return;
    }
    census->pending = count;
    for (size_t i = 0; i < count; i++) {
        request_topic(census, i, reply->names.items[i]);
    }
}

int bel__topic_counts_create(struct bel_topic_counts **out)
{
    struct bel_topic_counts *census = calloc(1, sizeof *census);
    if (census == NULL) return BEL_ENOMEM;
    *out = census;
    return 0;
}

void bel__topic_counts_destroy(struct bel_topic_counts *census)
{
    if (census == NULL) return;
    free(census->requests);
    free(census->next);
    free(census->last);
    free(census);
}

void bel__topic_counts_begin(struct bel_topic_counts *census, struct bel_backend *backend,
                             struct bel_mono now)
{
    assert(!census->is_under_way);
    census->is_under_way = true;
    census->backend = backend;
    census->begun = now;
    census->names = (struct bel_request){.command = {.verb = BEL_VERB_TOPICS},
                                         .done = store_names,
                                         .user = census,
                                         .is_early = true};
    bel_backend_submit(backend, &census->names);
}

bool bel__topic_counts_is_under_way(const struct bel_topic_counts *census)
{
    return census->is_under_way;
}

bool bel__topic_counts_taken(const struct bel_topic_counts *census, struct bel_mono *out)
{
    if (census->has_last) *out = census->taken;
    return census->has_last;
}

const struct bel_topic_counts_topic *bel__topic_counts_topics(const struct bel_topic_counts *census,
                                                              size_t *count, uint64_t *all)
{
    *count = census->last_count;
    *all = census->last_all;
    return census->last;
}
