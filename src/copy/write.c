/* SPDX-License-Identifier: MIT */

/*
 * A topic of the target:
 *
 *     unknown, or without timers ---> mark ---> page, mark ---> page, mark ---> ... ---> no mark
 *     has the mark of this source     it is continued
 *     has timers                      refused, unless they are those of the source
 *
 * A page is written before the mark that comes after it. When a copy is continued the last page may
 * be written again: its ids are in use, and nothing changes.
 *
 * While it is written the topic keeps ended timers for ever, or at least until the clock moves: its
 * settings follow at the end.
 */
#include "copy/topic.h"

#include "core/view.h"

#include <assert.h>
#include <string.h>

#define MARK_DUE_MS INT64_C(253402300799000) /* the end of the year 9999 */

static const char source_header[] = "source", after_header[] = "after", complete[] = "complete";

/* --- marks --- */

struct mark {
    bool is_there;
    char source[BEL_COPY_CURSOR_BYTES], after[BEL_COPY_CURSOR_BYTES];
};

static void keep_text(char out[BEL_COPY_CURSOR_BYTES], struct bel_view text)
{
    struct bel_view head = bel__view_head(text, BEL_COPY_CURSOR_BYTES - 1);
    if (head.bytes > 0) memcpy(out, head.data, head.bytes);
    out[head.bytes] = 0;
}

static int see_mark(void *context, const struct bel_reply *reply)
{
    struct mark *mark = context;
    if (reply->timers.count == 0) return 0;
    const struct bel_timer *timer = &reply->timers.items[0];
    mark->is_there = timer->state < BEL_DONE;
    for (size_t i = 0; i < timer->headers_count; i++) {
        const struct bel_header *header = &timer->headers[i];
        if (bel__view_is(header->name, source_header)) keep_text(mark->source, header->value);
        if (bel__view_is(header->name, after_header)) keep_text(mark->after, header->value);
    }
    return 0;
}

static int read_mark(struct bel_copy *copy, const struct bel_copy_topic *topic, struct mark *out)
{
    struct bel_command get = {.verb = BEL_VERB_GET,
                              .target = {.topic = topic->name, .id = BEL_VIEW(BEL_COPY_MARK)}};
    *out = (struct mark){.is_there = false};
    return bel__ask(&copy->target, &get, see_mark, out, copy->why);
}

/* --- meeting a topic --- */

/* What the target says of a topic. */
struct told {
    struct bel_copy_topic *topic;
    uint64_t records;
    bool has_partitions; /* it has this setting */
};

static int see_topic(void *context, const struct bel_reply *reply)
{
    struct told *told = context;
    told->topic->is_there = true;
    for (unsigned state = 0; state < BEL_STATES; state++) {
        told->records += reply->topic->counts[state];
    }
    for (size_t i = 0; i < reply->topic->settings_count; i++) {
        const struct bel_setting *setting = &reply->topic->settings[i];
        if (!bel__view_is(setting->name, "partitions")) continue;
        told->has_partitions = true;
        if (!bel__view_is(setting->value, "1")) told->topic->is_partitioned = true;
    }
    return 0;
}

static int ask_topic(struct bel_copy *copy, struct bel_copy_topic *topic, struct told *out)
{
    struct bel_command command = {.verb = BEL_VERB_TOPIC, .target = {.topic = topic->name}};
    *out = (struct told){.topic = topic};
    return bel__ask(&copy->target, &command, see_topic, out, copy->why);
}

/* Compares a topic that has timers: the last copy may have been stopped after its mark was
 * removed. */
static int compare(struct bel_copy *copy, struct bel_copy_topic *topic, uint64_t records)
{
    struct bel_copy_sum found;
    if (records == topic->sum.count) {
        int err = bel__copy_sum(copy, &copy->target, topic, BEL_COPY_VERIFY, &found);
        if (err) return err;
        topic->is_written = bel__copy_is_same(topic, &found);
        if (topic->is_written) return 0;
    }
    return bel__why_say(
        copy->why, BEL_ECONFLICT,
        "topic '%.*s' of the target has %llu timer%s; to keep what is there, and to add "
        "those whose ids are free: --merge%s",
        (int)topic->name.bytes, (const char *)topic->name.data, (unsigned long long)records,
        records == 1 ? "" : "s",
        copy->options->moves ? "; a --move that was stopped while it deleted goes on with --merge "
                               "--move"
                             : "");
}

int bel__copy_meet(struct bel_copy *copy, struct bel_copy_topic *topic)
{
    const struct bel_copy_options *options = copy->options;
    struct told told;
    struct mark mark;
    if (copy->target.backend == NULL) return 0;
    int err = ask_topic(copy, topic, &told);
    if (err == BEL_ENOTFOUND) {
        copy->why->text[0] = 0;
        return 0;
    }
    if (err == 0) err = read_mark(copy, topic, &mark);
    if (err) return err;
    if (mark.is_there && (options->merges || strcmp(mark.source, options->source_name) != 0)) {
        return bel__why_say(copy->why, BEL_ECONFLICT,
                            "topic '%.*s' of the target is an unfinished copy of %s: finish it "
                            "with --from %s, or cancel its timer %s to keep what is there",
                            (int)topic->name.bytes, (const char *)topic->name.data, mark.source,
                            mark.source, BEL_COPY_MARK);
    }
    topic->is_known = options->merges;
    if (options->merges || told.records == 0) return 0;
    if (!mark.is_there) return compare(copy, topic, told.records);
    memcpy(topic->after, mark.after, sizeof topic->after);
    return 0;
}

/* --- writing --- */

/* The answers to the requests of a page. */
struct answers {
    struct bel_copy *copy;
    size_t left;
    int err;
};

/* Says which timer was refused. */
static void refuse(struct answers *answers, const struct bel_request *request,
                   const struct bel_reply *reply)
{
    const struct bel_schedule_spec *spec = &request->command.schedule;
    const char *text = reply->why[0] != 0 ? reply->why : bel_error_text(reply->err);
    struct bel_view id = spec->whole->id;
    if (answers->err) return;
    answers->err = bel__why_say(answers->copy->why, reply->err, "timer '%.*s' of topic '%.*s': %s",
                                (int)id.bytes, (const char *)id.data, (int)spec->topic.bytes,
                                (const char *)spec->topic.data, text);
}

static void written(struct bel_request *request, const struct bel_reply *reply)
{
    struct answers *answers = request->user;
    answers->left--;
    if (reply->err == BEL_ECONFLICT) {
        answers->copy->counts.kept++;
    } else if (reply->err) {
        refuse(answers, request, reply);
    } else {
        answers->copy->counts.written++;
    }
}

static int set_mark(struct bel_copy *copy, const struct bel_copy_topic *topic,
                    struct bel_view after)
{
    const char *source = copy->options->source_name;
    const struct bel_header headers[] = {{BEL_VIEW(source_header), {source, strlen(source)}},
                                         {BEL_VIEW(after_header), after}};
    struct bel_command command = {
        .verb = BEL_VERB_SCHEDULE,
        .schedule = {.topic = topic->name,
                     .id = BEL_VIEW(BEL_COPY_MARK),
                     .payload = BEL_VIEW("a copy that is not finished; belfry copy removes this"),
                     .when = BEL_WHEN_AT,
                     .at = {MARK_DUE_MS},
                     .headers = headers,
                     .headers_count = 2}};
    return bel__ask(&copy->target, &command, NULL, NULL, copy->why);
}

static int write_page(struct bel_copy *copy, struct bel_copy_topic *topic,
                      const struct bel_copy_page *page)
{
    struct answers answers = {.copy = copy};
    size_t count = 0;
    assert(page->count <= BEL_COPY_PAGE);
    for (size_t i = 0; i < page->count; i++) {
        if (bel__copy_leaves_out(copy, &page->items[i])) continue;
        copy->timers[count] = bel__copy_whole(copy, &page->items[i]);
        copy->requests[count] = (struct bel_request){
            .command = {.verb = BEL_VERB_SCHEDULE,
                        .schedule = {.topic = topic->name,
                                     .conflict = BEL_CONFLICT_REJECT,
                                     .whole = &copy->timers[count]}},
            .done = written,
            .user = &answers,
        };
        count++;
    }
    answers.left = count;
    if (count > 0) bel__ask_all(&copy->target, copy->requests, count, &answers.left);
    if (answers.err) return answers.err;
    copy->done += page->count;
    bel__copy_progress(copy, BEL_COPY_WRITE);
    if (copy->options->merges) return 0;
    return set_mark(copy, topic, page->next.bytes > 0 ? page->next : BEL_VIEW(complete));
}

static int configure_all(struct bel_copy *copy, const struct bel_copy_topic *topic,
                         const struct bel_setting *settings, size_t count)
{
    struct bel_command command = {
        .verb = BEL_VERB_CONFIGURE,
        .configure = {.topic = topic->name, .settings = settings, .settings_count = count}};
    return bel__ask(&copy->target, &command, NULL, NULL, copy->why);
}

/* A topic that the target did not have gets the partitions of the source while it is empty. */
static int set_partitions(struct bel_copy *copy, struct bel_copy_topic *topic)
{
    struct told told;
    bool was_there = topic->is_there;
    int err = ask_topic(copy, topic, &told);
    if (err || was_there || !told.has_partitions) return err;
    for (size_t i = 0; err == 0 && i < topic->settings_count; i++) {
        if (!bel__view_is(topic->settings[i].name, "partitions")) continue;
        err = configure_all(copy, topic, &topic->settings[i], 1);
    }
    return err;
}

/* Makes a topic that is new: it refuses nothing, and keeps what has ended. */
static int make_topic(struct bel_copy *copy, struct bel_copy_topic *topic)
{
    const struct bel_setting settings[] = {
        {BEL_VIEW("depth"), BEL_VIEW("0")},
        {BEL_VIEW("retention"), BEL_VIEW("0s")},
        {BEL_VIEW("retention_dead"), BEL_VIEW("forever")},
    };
    int err = configure_all(copy, topic, settings, 3);
    if (err == 0) err = set_partitions(copy, topic);
    return err ? err : set_mark(copy, topic, (struct bel_view){NULL, 0});
}

int bel__copy_write(struct bel_copy *copy, struct bel_copy_topic *topic)
{
    bool is_new = !topic->is_known && topic->after[0] == 0;
    if (topic->is_written || strcmp(topic->after, complete) == 0) return 0;
    int err = is_new && !copy->options->merges ? make_topic(copy, topic) : 0;
    if (err) return err;
    return bel__copy_pages(copy, &copy->source, topic, topic->after, write_page);
}

/* --- finishing --- */

static int remove_mark(struct bel_copy *copy, const struct bel_copy_topic *topic)
{
    const struct bel_view mark = BEL_VIEW(BEL_COPY_MARK);
    struct bel_command cancel = {.verb = BEL_VERB_CANCEL,
                                 .cancel = {.topic = topic->name, .ids = &mark, .ids_count = 1}};
    return bel__ask(&copy->target, &cancel, NULL, NULL, copy->why);
}

/* Returns whether only a store on Redis has a setting. These are not changed in a topic with
 * timers; `layout` and what belongs to it have their defaults. */
static bool is_of_redis(struct bel_view name)
{
    static const char *const names[] = {"partitions", "layout",   "timeline_key", "payloads_key",
                                        "prefix",     "poll_min", "poll_max"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (bel__view_is(name, names[i])) return true;
    }
    return false;
}

static int configure(struct bel_copy *copy, const struct bel_copy_topic *topic)
{
    struct bel_setting *settings =
        bel__arena_take(&copy->arena, (topic->settings_count + 1) * sizeof *settings);
    size_t count = 0;
    if (settings == NULL) return BEL_ENOMEM;
    for (size_t i = 0; i < topic->settings_count; i++) {
        bool is_limit = bel__view_is(topic->settings[i].name, "concurrency");
        if (is_limit && copy->options->without_concurrency) continue;
        if (is_limit && bel__view_is(topic->settings[i].value, "0")) continue; /* the default */
        if (is_of_redis(topic->settings[i].name)) continue;
        settings[count++] = topic->settings[i];
    }
    return configure_all(copy, topic, settings, count);
}

int bel__copy_finish(struct bel_copy *copy, struct bel_copy_topic *topic)
{
    struct bel_command pause = {.verb = BEL_VERB_PAUSE, .target = {.topic = topic->name}};
    if (topic->is_known) return 0;
    int err = topic->is_written || copy->options->merges ? 0 : remove_mark(copy, topic);
    if (err == 0) err = configure(copy, topic);
    if (err || !topic->is_paused) return err;
    return bel__ask(&copy->target, &pause, NULL, NULL, copy->why);
}
