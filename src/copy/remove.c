/* SPDX-License-Identifier: MIT */

/*
 * The source after a move: CANCEL takes timers out of every state, leases included, and PURGE
 * deletes what has ended.
 */
#include "copy/topic.h"

#include <string.h>

/* The unfinished timers of a page. */
struct unfinished {
    struct bel_arena arena;
    struct bel_view *ids;
    size_t count;
};

static int see_unfinished(void *context, const struct bel_reply *reply)
{
    struct unfinished *found = context;
    found->count = 0;
    found->ids = bel__arena_take(&found->arena, (reply->timers.count + 1) * sizeof *found->ids);
    if (found->ids == NULL) return BEL_ENOMEM;
    for (size_t i = 0; i < reply->timers.count; i++) {
        if (reply->timers.items[i].state >= BEL_DONE) continue;
        struct bel_view id = bel__arena_copy(&found->arena, reply->timers.items[i].id);
        if (id.data == NULL) return BEL_ENOMEM;
        found->ids[found->count++] = id;
    }
    return 0;
}

static int see_count(void *context, const struct bel_reply *reply)
{
    uint64_t *total = context;
    *total += reply->count;
    return 0;
}

/* Cancels the unfinished timers of the first page. Sets `*out` to their number. */
static int cancel_page(struct bel_copy *copy, struct bel_copy_topic *topic,
                       struct unfinished *found, size_t *out)
{
    struct bel_command list = {.verb = BEL_VERB_LIST,
                               .list = {.topic = topic->name, .count = BEL_COPY_PAGE}};
    bel__arena_reset(&found->arena);
    int err = bel__ask(&copy->source, &list, see_unfinished, found, copy->why);
    *out = found->count;
    if (err || found->count == 0) return err;
    struct bel_command cancel = {
        .verb = BEL_VERB_CANCEL,
        .cancel = {.topic = topic->name, .ids = found->ids, .ids_count = found->count}};
    uint64_t cancelled = 0;
    err = bel__ask(&copy->source, &cancel, see_count, &cancelled, copy->why);
    if (err == 0 && cancelled == 0) {
        return bel__why_say(copy->why, BEL_EIO, "timers of the source cannot be cancelled");
    }
    copy->done += found->count;
    bel__copy_progress(copy, BEL_COPY_REMOVE);
    return err;
}

int bel__copy_cancel(struct bel_copy *copy, struct bel_copy_topic *topic)
{
    struct unfinished found = {.count = 0};
    size_t count = 0;
    int err;
    do {
        err = cancel_page(copy, topic, &found, &count);
    } while (err == 0 && count > 0);
    bel__arena_finish(&found.arena);
    return err;
}

int bel__copy_purge(struct bel_copy *copy, struct bel_copy_topic *topic)
{
    struct bel_command purge = {.verb = BEL_VERB_PURGE, .purge = {.topic = topic->name}};
    int err = bel__ask(&copy->source, &purge, NULL, NULL, copy->why);
    if (err == 0) copy->counts.removed += topic->sum.count;
    return err;
}
