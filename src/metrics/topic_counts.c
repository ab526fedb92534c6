/* SPDX-License-Identifier: MIT */

/* Requests and topics of one census are two blocks; those of the last are kept until the next
 * is complete. A topic that goes away in between is left out. */
#include "metrics/topic_counts.h"

#include "metrics/metrics.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct bel_topic_counts {
    struct bel_backend *backend; /* borrowed, while it is under way */
    struct bel_request names;
    struct bel_request *requests; /* one for each topic */
    struct bel_topic_counts_topic *making, *made;
    size_t making_count, made_count;
    size_t left; /* requests that are not done */
    uint64_t making_all, made_all;
    struct bel_mono begun, taken;
    bool is_under_way, has_made;
};

static void finish(struct bel_topic_counts *census, bool is_complete)
{
    if (is_complete) {
        free(census->made);
        census->made = census->making;
        census->made_count = census->making_count;
        census->made_all = census->making_all;
        census->taken = census->begun;
        census->has_made = true;
    } else {
        free(census->making);
    }
    free(census->requests);
    census->making = NULL;
    census->requests = NULL;
    census->is_under_way = false;
}

static void take_topic(struct bel_request *request, const struct bel_reply *reply)
{
    struct bel_topic_counts *census = request->user;
    size_t index = (size_t)(request - census->requests);
    struct bel_topic_counts_topic *topic = &census->making[index];
    if (reply->err == 0) {
        memcpy(topic->counts, reply->topic->counts, sizeof topic->counts);
        topic->plans = reply->topic->plans;
        topic->oldest_age_ms = reply->topic->oldest_age_ms;
        topic->paused = reply->topic->paused;
    } else {
        topic->name[0] = 0;
    }
    assert(census->left > 0);
    if (--census->left == 0) finish(census, true);
}

static void ask(struct bel_topic_counts *census, size_t index, struct bel_view name)
{
    struct bel_topic_counts_topic *topic = &census->making[index];
    assert(name.bytes < sizeof topic->name);
    memcpy(topic->name, name.data, name.bytes);
    topic->name[name.bytes] = 0;
    census->requests[index] = (struct bel_request){
        .command = {.verb = BEL_VERB_TOPIC, .target.topic = {topic->name, name.bytes}},
        .done = take_topic,
        .user = census,
    };
    bel_backend_submit(census->backend, &census->requests[index]);
}

static void take_names(struct bel_request *request, const struct bel_reply *reply)
{
    struct bel_topic_counts *census = request->user;
    size_t count = reply->err == 0 ? reply->names.count : 0;
    census->making_all = count;
    if (count > BEL_TOPIC_COUNTS_TOPICS_MAX) count = BEL_TOPIC_COUNTS_TOPICS_MAX;
    census->making_count = count;
    if (reply->err != 0 || count == 0) {
        finish(census, reply->err == 0);
        return;
    }
    census->making = calloc(count, sizeof *census->making);
    census->requests = calloc(count, sizeof *census->requests);
    if (census->making == NULL || census->requests == NULL) {
        finish(census, false);
        return;
    }
    census->left = count;
    for (size_t i = 0; i < count; i++) {
        ask(census, i, reply->names.items[i]);
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
    free(census->making);
    free(census->made);
    free(census);
}

void bel__topic_counts_begin(struct bel_topic_counts *census, struct bel_backend *backend,
                             struct bel_mono now)
{
    assert(!census->is_under_way);
    census->is_under_way = true;
    census->backend = backend;
    census->begun = now;
    census->names = (struct bel_request){
        .command = {.verb = BEL_VERB_TOPICS}, .done = take_names, .user = census};
    bel_backend_submit(backend, &census->names);
}

bool bel__topic_counts_is_under_way(const struct bel_topic_counts *census)
{
    return census->is_under_way;
}

bool bel__topic_counts_taken(const struct bel_topic_counts *census, struct bel_mono *out)
{
    if (census->has_made) *out = census->taken;
    return census->has_made;
}

const struct bel_topic_counts_topic *bel__topic_counts_topics(const struct bel_topic_counts *census,
                                                              size_t *count, uint64_t *all)
{
    *count = census->made_count;
    *all = census->made_all;
    return census->made;
}
