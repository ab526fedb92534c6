/* SPDX-License-Identifier: MIT */

/*
 * The steps of a copy, over all topics: all are verified before the first one is finished, so that
 * a target that others may work on is complete.
 */
#include "copy/topic.h"

#include "core/view.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static int no_memory(const struct bel_copy *copy)
{
    return bel__why_say(copy->why, BEL_ENOMEM, "memory has run out");
}

void bel__copy_progress(const struct bel_copy *copy, enum bel_copy_step step)
{
    const struct bel_copy_options *options = copy->options;
    if (options->progress == NULL) return;
    options->progress(options->context, step, copy->done, copy->total);
}

/* --- topics of the source --- */

static int learn_names(void *context, const struct bel_reply *reply)
{
    struct bel_copy *copy = context;
    copy->topics = calloc(reply->names.count + 1, sizeof copy->topics[0]);
    if (copy->topics == NULL) return no_memory(copy);
    for (size_t i = 0; i < reply->names.count; i++) {
        copy->topics[i].name = bel__arena_copy(&copy->arena, reply->names.items[i]);
        if (copy->topics[i].name.data == NULL) return no_memory(copy);
    }
    copy->topics_count = reply->names.count;
    return 0;
}

struct learning {
    struct bel_copy *copy;
    struct bel_copy_topic *topic;
};

static int learn_topic(void *context, const struct bel_reply *reply)
{
    const struct learning *learning = context;
    struct bel_copy *copy = learning->copy;
    const struct bel_topic *found = reply->topic;
    struct bel_setting *settings =
        bel__arena_take(&copy->arena, (found->settings_count + 1) * sizeof *settings);
    if (settings == NULL) return no_memory(copy);
    for (size_t i = 0; i < found->settings_count; i++) {
        settings[i].name = bel__arena_copy(&copy->arena, found->settings[i].name);
        settings[i].value = bel__arena_copy(&copy->arena, found->settings[i].value);
        bool has_value = found->settings[i].value.bytes > 0;
        if (settings[i].name.data == NULL || (has_value && settings[i].value.data == NULL)) {
            return no_memory(copy);
        }
    }
    learning->topic->is_paused = found->paused;
    learning->topic->settings = settings;
    learning->topic->settings_count = found->settings_count;
    for (unsigned state = 0; state < BEL_STATES; state++) {
        copy->total += found->counts[state];
    }
    return 0;
}

static int learn_topics(struct bel_copy *copy)
{
    struct bel_command command = {.verb = BEL_VERB_TOPICS};
    int err = bel__ask(&copy->source, &command, learn_names, copy, copy->why);
    for (size_t i = 0; err == 0 && i < copy->topics_count; i++) {
        struct learning learning = {copy, &copy->topics[i]};
        command =
            (struct bel_command){.verb = BEL_VERB_TOPIC, .target = {.topic = learning.topic->name}};
        err = bel__ask(&copy->source, &command, learn_topic, &learning, copy->why);
    }
    copy->counts.topics = copy->topics_count;
    if (err == 0 && copy->topics_count == 0) {
        return bel__why_say(copy->why, BEL_ENOTFOUND, "%s has no topics",
                            copy->options->source_name);
    }
    return err ? err : bel__copy_count_others(copy);
}

/* --- pages --- */

struct paging {
    struct bel_copy *copy;
    struct bel_copy_topic *topic;
    bel_copy_see *see;
    char cursor[BEL_COPY_CURSOR_BYTES];
    size_t cursor_bytes;
};

static int see_page(void *context, const struct bel_reply *reply)
{
    struct paging *paging = context;
    struct bel_view next = reply->timers.cursor;
    struct bel_copy_page page = {reply->timers.items, reply->timers.count, next};
    if (next.bytes >= sizeof paging->cursor) return BEL_ECORRUPT;
    int err = paging->see(paging->copy, paging->topic, &page);
    if (err) return err;
    paging->cursor_bytes = next.bytes;
    if (next.bytes > 0) memcpy(paging->cursor, next.data, next.bytes);
    return 0;
}

int bel__copy_pages(struct bel_copy *copy, const struct bel_copy_store *store,
                    struct bel_copy_topic *topic, const char *from, bel_copy_see *see)
{
    struct paging paging = {.copy = copy, .topic = topic, .see = see};
    paging.cursor_bytes = strlen(from);
    memcpy(paging.cursor, from, paging.cursor_bytes);
    do {
        struct bel_command command = {.verb = BEL_VERB_LIST,
                                      .list = {.topic = topic->name,
                                               .count = BEL_COPY_PAGE,
                                               .cursor = {paging.cursor, paging.cursor_bytes}}};
        int err = bel__ask(store, &command, see_page, &paging, copy->why);
        if (err) return err;
    } while (paging.cursor_bytes > 0);
    return 0;
}

bool bel__copy_is_mark(const struct bel_timer *timer)
{
    return bel__view_is(timer->id, BEL_COPY_MARK);
}

bool bel__copy_leaves_out(const struct bel_copy *copy, const struct bel_timer *timer)
{
    return copy->options->without_jobs && timer->is_task;
}

struct bel_timer bel__copy_whole(const struct bel_copy *copy, const struct bel_timer *timer)
{
    return bel__whole_of(timer, !copy->options->without_groups, !copy->options->without_resources);
}

/* --- sums --- */

struct summing {
    struct bel_copy_topic topic; /* first */
    enum bel_copy_step step;
    struct bel_digest digest;
    uint64_t count;
};

static struct bel_copy_sum sum_of(const struct summing *summing)
{
    return (struct bel_copy_sum){summing->count, summing->digest.chain, summing->digest.sum};
}

static int add_page(struct bel_copy *copy, struct bel_copy_topic *topic,
                    const struct bel_copy_page *page)
{
    struct summing *summing = (struct summing *)topic;
    for (size_t i = 0; i < page->count; i++) {
        if (bel__copy_is_mark(&page->items[i])) continue;
        if (bel__copy_leaves_out(copy, &page->items[i])) continue;
        struct bel_timer whole = bel__copy_whole(copy, &page->items[i]);
        int err = bel__digest_add(&summing->digest, &whole);
        if (err) return no_memory(copy);
        summing->count++;
    }
    copy->done += page->count;
    bel__copy_progress(copy, summing->step);
    return 0;
}

int bel__copy_sum(struct bel_copy *copy, const struct bel_copy_store *store,
                  struct bel_copy_topic *topic, enum bel_copy_step step, struct bel_copy_sum *out)
{
    struct summing summing = {.topic = *topic, .step = step, .digest = {.scratch = &copy->scratch}};
    int err = bel__copy_pages(copy, store, &summing.topic, "", add_page);
    *out = sum_of(&summing);
    return err;
}

bool bel__copy_is_same(const struct bel_copy_topic *topic, const struct bel_copy_sum *target)
{
    const struct bel_copy_sum *source = &topic->sum;
    if (source->count != target->count || source->sum != target->sum) return false;
    return topic->is_partitioned || source->chain == target->chain;
}

/* --- look --- */

static void count(struct bel_copy_counts *counts, const struct bel_timer *timer)
{
    counts->timers++;
    counts->plans += timer->plan.rule.bytes > 0 && timer->state < BEL_DONE;
    counts->leased += timer->state == BEL_LEASED;
    counts->ended += timer->state >= BEL_DONE;
}

static int refuse_mark(const struct bel_copy *copy, const struct bel_copy_topic *topic)
{
    return bel__why_say(copy->why, BEL_ECONFLICT,
                        "topic '%.*s' of the source has a timer with the id %s: it is the target "
                        "of a copy that is not finished",
                        (int)topic->name.bytes, (const char *)topic->name.data, BEL_COPY_MARK);
}

static int look_at_page(struct bel_copy *copy, struct bel_copy_topic *topic,
                        const struct bel_copy_page *page)
{
    for (size_t i = 0; i < page->count; i++) {
        const struct bel_timer *timer = &page->items[i];
        if (bel__copy_is_mark(timer)) return refuse_mark(copy, topic);
        copy->counts.tasks += timer->is_task;
        if (bel__copy_leaves_out(copy, timer)) continue;
        copy->counts.groups += timer->group.bytes > 0;
        copy->counts.resources += timer->resource.bytes > 0;
        count(&copy->counts, timer);
    }
    return add_page(copy, topic, page);
}

/* Looks for settings that a target may not have. */
static int look_at_settings(struct bel_copy *copy, struct bel_copy_topic *topic)
{
    for (size_t i = 0; i < topic->settings_count; i++) {
        const struct bel_setting *setting = &topic->settings[i];
        bool is_default = bel__view_is(setting->value, "0");
        if (bel__view_is(setting->name, "concurrency")) copy->counts.settings += !is_default;
        if (bel__view_is(setting->name, "partitions")) {
            topic->is_partitioned = !bel__view_is(setting->value, "1");
        }
        bool is_shared =
            bel__view_is(setting->name, "layout") && !bel__view_is(setting->value, "native");
        if (!is_shared) continue;
        return bel__why_say(copy->why, BEL_EUNSUPPORTED,
                            "topic '%.*s' has the layout %.*s, which other programs share: it "
                            "cannot be copied",
                            (int)topic->name.bytes, (const char *)topic->name.data,
                            (int)setting->value.bytes, (const char *)setting->value.data);
    }
    return 0;
}

static int look_at(struct bel_copy *copy, struct bel_copy_topic *topic)
{
    struct summing summing = {
        .topic = *topic, .step = BEL_COPY_LOOK, .digest = {.scratch = &copy->scratch}};
    int err = look_at_settings(copy, topic);
    if (err) return err;
    err = bel__copy_pages(copy, &copy->source, &summing.topic, "", look_at_page);
    topic->sum = sum_of(&summing);
    copy->counts.digest = copy->counts.digest * 31 + topic->sum.sum;
    return err;
}

static int look(struct bel_copy *copy)
{
    copy->done = 0;
    int err = learn_topics(copy);
    for (size_t i = 0; err == 0 && i < copy->topics_count; i++) {
        err = look_at(copy, &copy->topics[i]);
    }
    return err ? err : bel__copy_check_left_out(copy);
}

/* --- verify --- */

static int verify(struct bel_copy *copy, struct bel_copy_topic *topic)
{
    struct bel_copy_sum found;
    if (copy->options->merges || topic->is_written) return 0;
    int err = bel__copy_sum(copy, &copy->target, topic, BEL_COPY_VERIFY, &found);
    if (err || bel__copy_is_same(topic, &found)) return err;
    return bel__why_say(copy->why, BEL_ECONFLICT,
                        "topic '%.*s' differs: %llu timers in the source, digest %016llx, and %llu "
                        "in the target, digest %016llx; is a server running on one of them?",
                        (int)topic->name.bytes, (const char *)topic->name.data,
                        (unsigned long long)topic->sum.count, (unsigned long long)topic->sum.chain,
                        (unsigned long long)found.count, (unsigned long long)found.chain);
}

/* --- open up --- */

/* Lets others work on the target, and tells them of its topics. */
static int open_up(struct bel_copy *copy)
{
    const struct bel_copy_options *options = copy->options;
    const struct bel_clock *before = copy->target.clock;
    if (options->thaw == NULL) return 0;
    int err = options->thaw(options->context, &copy->target, copy->why);
    if (err || copy->target.clock == before) return err;
    for (size_t i = 0; err == 0 && i < copy->topics_count; i++) {
        struct bel_command command = {.verb = BEL_VERB_CONFIGURE,
                                      .configure = {.topic = copy->topics[i].name}};
        err = bel__ask(&copy->target, &command, NULL, NULL, copy->why);
    }
    return err;
}

/* --- all --- */

static int for_all(struct bel_copy *copy,
                   int (*step)(struct bel_copy *copy, struct bel_copy_topic *topic))
{
    int err = 0;
    copy->done = 0;
    for (size_t i = 0; err == 0 && i < copy->topics_count; i++) {
        err = step(copy, &copy->topics[i]);
    }
    return err;
}

/* Deletes everything in the source. Its clock must have moved before ended timers are purged: PURGE
 * deletes what has ended by now. */
static int remove_all(struct bel_copy *copy)
{
    const struct bel_copy_options *options = copy->options;
    int err = for_all(copy, bel__copy_cancel);
    if (err == 0 && options->thaw != NULL) {
        err = options->thaw(options->context, &copy->source, copy->why);
    }
    return err ? err : for_all(copy, bel__copy_purge);
}

/* Makes a target that does not exist yet, now that nothing stands against the copy. */
static int make_target(struct bel_copy *copy)
{
    const struct bel_copy_options *options = copy->options;
    if (copy->target.backend != NULL || options->is_dry) return 0;
    return options->make(options->context, &copy->target, copy->why);
}

static int run(struct bel_copy *copy)
{
    int err = look(copy);
    if (err == 0) err = make_target(copy);
    copy->total = copy->counts.timers;
    if (err == 0) err = for_all(copy, bel__copy_meet);
    if (err || copy->options->is_dry) return err;
    err = for_all(copy, bel__copy_write);
    if (err == 0) err = for_all(copy, verify);
    if (err == 0) err = for_all(copy, bel__copy_finish);
    if (err == 0) err = open_up(copy);
    if (err || !copy->options->moves) return err;
    return remove_all(copy);
}

int bel__copy(const struct bel_copy_options *options, struct bel_copy_counts *out,
              struct bel_why *why)
{
    struct bel_copy copy = {
        .options = options, .source = options->source, .target = options->target, .why = why};
    bool leaves_out = options->without_jobs || options->without_groups ||
                      options->without_resources || options->without_concurrency;
    assert(!(options->moves && leaves_out));
    (void)leaves_out;
    bel__buffer_init(&copy.scratch, BEL_WHOLE_BYTES_MAX);
    copy.timers = calloc(BEL_COPY_PAGE, sizeof copy.timers[0]);
    copy.requests = calloc(BEL_COPY_PAGE + 1, sizeof copy.requests[0]);
    int err = BEL_ENOMEM;
    if (copy.timers == NULL || copy.requests == NULL) {
        (void)no_memory(&copy);
    } else {
        err = run(&copy);
    }
    *out = copy.counts;
    if (err != 0 && why->text[0] == 0) (void)bel__why_say(why, err, "%s", bel_error_text(err));
    free(copy.requests);
    free(copy.timers);
    free(copy.topics);
    bel__buffer_finish(&copy.scratch);
    bel__arena_finish(&copy.arena);
    return err;
}
