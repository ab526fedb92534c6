/* SPDX-License-Identifier: MIT */

/*
 * What all verbs have in common: the topics of an operation, its reply, and its end.
 */
#include "redis/operation.h"

#include "redis/layouts.h"
#include "redis/outcome.h"

#include "core/units.h"
#include "telling/telling.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Verbs that may name topics of several layouts are native, and look at each topic. */
static const struct bel_redis_verb *const native_verbs[BEL_VERBS] = {
    [BEL_VERB_SCHEDULE] = &bel__redis_schedule,
    [BEL_VERB_CANCEL] = &bel__redis_cancel,
    [BEL_VERB_RESCHEDULE] = &bel__redis_reschedule,
    [BEL_VERB_GET] = &bel__redis_get,
    [BEL_VERB_CLAIM] = &bel__redis_claim,
    [BEL_VERB_ACK] = &bel__redis_ack,
    [BEL_VERB_FAIL] = &bel__redis_fail,
    [BEL_VERB_RELEASE] = &bel__redis_release,
    [BEL_VERB_EXTEND] = &bel__redis_extend,
    [BEL_VERB_LIST] = &bel__redis_list,
    [BEL_VERB_REVIVE] = &bel__redis_revive,
    [BEL_VERB_PURGE] = &bel__redis_purge,
    [BEL_VERB_TOPICS] = &bel__redis_topics,
    [BEL_VERB_TOPIC] = &bel__redis_topic,
    [BEL_VERB_AGENDA] = &bel__redis_agenda,
    [BEL_VERB_EXPLAIN] = &bel__redis_explain,
    [BEL_VERB_CONFIGURE] = &bel__redis_configure,
    [BEL_VERB_PAUSE] = &bel__redis_pause,
    [BEL_VERB_RESUME] = &bel__redis_resume,
};

static const struct bel_redis_verb *const faststream_verbs[BEL_VERBS] = {
    [BEL_VERB_SCHEDULE] = &bel__faststream_schedule,
    [BEL_VERB_CANCEL] = &bel__redis_cancel,
    [BEL_VERB_RESCHEDULE] = &bel__redis_reschedule,
    [BEL_VERB_GET] = &bel__faststream_get,
    [BEL_VERB_FAIL] = &bel__faststream_fail,
    [BEL_VERB_RELEASE] = &bel__faststream_release,
    [BEL_VERB_EXTEND] = &bel__faststream_extend,
    [BEL_VERB_LIST] = &bel__faststream_list,
    [BEL_VERB_REVIVE] = &bel__faststream_revive,
    [BEL_VERB_PURGE] = &bel__faststream_purge,
    [BEL_VERB_TOPIC] = &bel__faststream_topic,
    [BEL_VERB_AGENDA] = &bel__faststream_agenda,
    [BEL_VERB_EXPLAIN] = &bel__faststream_explain,
    [BEL_VERB_CONFIGURE] = &bel__faststream_configure,
    [BEL_VERB_PAUSE] = &bel__faststream_pause,
    [BEL_VERB_RESUME] = &bel__faststream_resume,
};

const struct bel_redis_verb *bel__redis_verb(enum bel_redis_layout_name layout, enum bel_verb verb)
{
    if ((unsigned)verb >= BEL_VERBS) return NULL;
    return layout == BEL_LAYOUT_FASTSTREAM ? faststream_verbs[verb] : native_verbs[verb];
}

const struct bel_redis_verb *bel__redis_verb_of(enum bel_redis_layout_name layout,
                                                const struct bel_command *command)
{
    bool is_whole = command->verb == BEL_VERB_SCHEDULE && command->schedule.whole != NULL;
    bool is_restored = is_whole && layout == BEL_LAYOUT_NATIVE;
    return is_restored ? &bel__redis_restore : bel__redis_verb(layout, command->verb);
}

struct bel_operation *bel__operation_create(struct bel_redis *node, struct bel_request *request)
{
    struct bel_operation *operation = calloc(1, sizeof *operation);
    if (operation == NULL) return NULL;
    operation->node = node;
    operation->request = request;
    operation->command = request->command;
    operation->asked = node->now.real;
    return operation;
}

static void release(struct bel_operation *operation)
{
    for (size_t i = 0; operation->holds && i < operation->topics_count; i++) {
        assert(operation->topics[i]->held > 0);
        operation->topics[i]->held--;
    }
    operation->holds = false;
}

void bel__operation_answer(struct bel_operation *operation)
{
    struct bel_request *request = operation->request;
    release(operation);
    if (bel__link_is_linked(&operation->link)) bel__link_remove(&operation->link);
    if (operation->ended != NULL) operation->ended(operation);
    if (request != NULL) {
        request->own.reply = operation->reply;
        request->done(request, &request->own.reply);
    }
    bel__arena_finish(&operation->arena);
    free(operation->topics);
    free(operation);
}

int bel__operation_refuse(struct bel_operation *operation, int err, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int bytes = vsnprintf(operation->reply.why, sizeof operation->reply.why, format, args);
    va_end(args);
    bel__why_cut(operation->reply.why, sizeof operation->reply.why, bytes);
    operation->reply.err = err;
    return err;
}

void bel__operation_fail(struct bel_operation *operation, int err, const char *why)
{
    const char *text = why != NULL && why[0] != 0 ? why : bel_error_text(err);
    (void)bel__operation_refuse(operation, err, "%s", text);
    bel__operation_answer(operation);
}

void bel__operation_answer_missing(struct bel_operation *operation)
{
    struct bel_view topic = operation->topic->name;
    (void)bel__operation_refuse(operation, BEL_ENOTFOUND, "no timer '%s' in topic '%.*s'",
                                bel__said(operation->command.target.id).text, (int)topic.bytes,
                                (const char *)topic.data);
    bel__operation_answer(operation);
}

void bel__operation_note(struct bel_operation *operation, int err, const char *why)
{
    char *noted = operation->reply.why;
    if (noted[0] != 0) return;
    const char *text = why != NULL && why[0] != 0 ? why : bel_error_text(err);
    int bytes = snprintf(noted, sizeof operation->reply.why, "%s", text);
    bel__why_cut(noted, sizeof operation->reply.why, bytes);
}

void bel__operation_stop(struct bel_operation *operation, int err, uint64_t count, const char *done)
{
    char why[BEL_REPLY_WHY_BYTES];
    memcpy(why, operation->reply.why, sizeof why);
    if (count == 0) {
        (void)bel__operation_refuse(operation, err, "%s", why);
    } else {
        (void)bel__operation_refuse(operation, err, "%llu %s, then: %s", (unsigned long long)count,
                                    done, why);
    }
    bel__operation_answer(operation);
}

static int refuse_name(struct bel_operation *operation)
{
    return bel__operation_refuse(
        operation, BEL_EINVAL,
        "invalid topic: use 1 to %d of A-Z a-z 0-9 . _ : / -; options of CLAIM are reserved",
        BEL_TOPIC_BYTES_MAX);
}

/* Returns whether a topic has a name that no native topic has. */
static bool has_foreign_name(struct bel_view name)
{
    static const char native[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:/-";
    if (!bel__layouts_may_name(name)) return false;
    for (size_t i = 0; i < name.bytes; i++) {
        char c = ((const char *)name.data)[i];
        if (c == 0 || strchr(native, c) == NULL) return true;
    }
    return false;
}

static int add_topic(struct bel_operation *operation, struct bel_view name, bool may_be_foreign)
{
    bool is_foreign = !bel_topic_is_valid(name);
    if (is_foreign && !has_foreign_name(name)) return refuse_name(operation);
    struct bel_redis_topic *topic = bel__node_topic(operation->node, name);
    if (topic == NULL) return bel__operation_refuse(operation, BEL_ENOMEM, "memory has run out");
    if (is_foreign && !may_be_foreign && topic->layout == NULL) return refuse_name(operation);
    for (size_t i = 0; i < operation->topics_count; i++) {
        if (operation->topics[i] == topic) return 0;
    }
    operation->topics[operation->topics_count++] = topic;
    return 0;
}

static int name_all(struct bel_operation *operation, const struct bel_view *topics, size_t count,
                    bool may_be_foreign)
{
    free(operation->topics); /* of an operation that is prepared again, as one of another layout */
    operation->topics_count = 0;
    operation->topics = calloc(count + 1, sizeof(struct bel_redis_topic *));
    if (operation->topics == NULL) {
        return bel__operation_refuse(operation, BEL_ENOMEM, "memory has run out");
    }
    for (size_t i = 0; i < count; i++) {
        int err = add_topic(operation, topics[i], may_be_foreign);
        if (err) return err;
    }
    operation->topic = operation->topics_count == 1 ? operation->topics[0] : NULL;
    return 0;
}

int bel__operation_name_all(struct bel_operation *operation, const struct bel_view *topics,
                            size_t count)
{
    return name_all(operation, topics, count, false);
}

int bel__operation_name_more(struct bel_operation *operation, const struct bel_view *topics,
                             size_t count)
{
    assert(!operation->holds);
    operation->topics_count = 0;
    free(operation->topics);
    operation->topics = NULL;
    return bel__operation_name_all(operation, topics, count);
}

int bel__operation_name(struct bel_operation *operation, struct bel_view topic)
{
    return name_all(operation, &topic, 1, false);
}

int bel__operation_name_any(struct bel_operation *operation, struct bel_view topic)
{
    return name_all(operation, &topic, 1, true);
}

void bel__operation_hold(struct bel_operation *operation)
{
    if (operation->holds) return;
    operation->holds = true;
    for (size_t i = 0; i < operation->topics_count; i++) {
        operation->topics[i]->held++;
        operation->topics[i]->shared_in = operation->shares_hold ? operation->node->turns : 0;
    }
}

struct bel_redis_partition *bel__operation_place(struct bel_operation *operation,
                                                 struct bel_view id)
{
    operation->partition = bel__topic_place(operation->topic, id);
    return operation->partition;
}

void bel__operation_restart(struct bel_operation *operation)
{
    enum {
        RESTARTS_MAX = 250,
        AGAIN_MS = 20,
    };
    struct bel_redis *node = operation->node;
    if (operation->request == NULL) { /* was withdrawn */
        bel__operation_answer(operation);
        return;
    }
    if (operation->restarts++ == RESTARTS_MAX) {
        bel__operation_fail(operation, BEL_EIO, BEL_OUTCOME_MOVED);
        return;
    }
    release(operation);
    if (bel__link_is_linked(&operation->link)) bel__link_remove(&operation->link);
    bel__list_append(&node->waiting, &operation->link);
    operation->has_moved = false;
    operation->reply.why[0] = 0;
    uint64_t wait_ns = operation->restarts > 2 ? AGAIN_MS * (uint64_t)NS_PER_MS : 0;
    operation->begin_at.ns = node->now.real.ns + wait_ns;
    if (operation->begin_at.ns < node->retry.ns) node->retry = operation->begin_at;
}

int64_t bel__operation_now(const struct bel_operation *operation)
{
    const struct bel_redis_partition *partition = operation->partition;
    if (partition == NULL && operation->topic != NULL) partition = operation->topic->partitions[0];
    if (partition == NULL) return bel__node_now(operation->node);
    return bel__partition_now(operation->node, partition);
}

bool bel__operation_reaches(const struct bel_operation *operation, uint64_t delay_ms)
{
    int64_t now = bel__operation_now(operation);
    return now <= BEL_REDIS_TIME_END_MS && delay_ms <= (uint64_t)(BEL_REDIS_TIME_END_MS - now);
}

bool bel__operation_is_refused(struct bel_operation *operation, const struct bel_results *results)
{
    if (results->err == 0) return false;
    if (results->is_moved) {
        bel__operation_restart(operation);
        return true;
    }
    bel__operation_fail(operation, results->err, results->why);
    return true;
}
