/* SPDX-License-Identifier: MIT */

/*
 * What all verbs have in common: the topics of an operation, its reply, and its end.
 */
#include "redis/operation.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct bel_redis_verb *bel__redis_verb(enum bel_verb verb)
{
    static const struct bel_redis_verb *const verbs[BEL_VERBS] = {
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
        [BEL_VERB_CONFIGURE] = &bel__redis_configure,
        [BEL_VERB_PAUSE] = &bel__redis_pause,
        [BEL_VERB_RESUME] = &bel__redis_resume,
    };
    return (unsigned)verb < BEL_VERBS ? verbs[verb] : NULL;
}

struct bel_operation *bel__operation_create(struct bel_redis *node, struct bel_request *request)
{
    struct bel_operation *operation = calloc(1, sizeof *operation);
    if (operation == NULL) return NULL;
    operation->node = node;
    operation->request = request;
    operation->command = request->command;
    return operation;
}

void bel__operation_answer(struct bel_operation *operation)
{
    struct bel_request *request = operation->request;
    for (size_t i = 0; operation->holds && i < operation->topics_count; i++) {
        assert(operation->topics[i]->held > 0);
        operation->topics[i]->held--;
    }
    if (bel__link_is_linked(&operation->link)) bel__link_remove(&operation->link);
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
    (void)vsnprintf(operation->reply.why, sizeof operation->reply.why, format, args);
    va_end(args);
    operation->reply.err = err;
    return err;
}

void bel__operation_fail(struct bel_operation *operation, int err, const char *why)
{
    const char *text = why != NULL && why[0] != 0 ? why : bel_error_text(err);
    (void)bel__operation_refuse(operation, err, "%s", text);
    bel__operation_answer(operation);
}

static int add_topic(struct bel_operation *operation, struct bel_view name)
{
    struct bel_redis_topic *topic;
    if (!bel_topic_is_valid(name)) {
        return bel__operation_refuse(
            operation, BEL_EINVAL,
            "invalid topic: use 1 to %d of A-Z a-z 0-9 . _ : / -; options of CLAIM are reserved",
            BEL_TOPIC_BYTES_MAX);
    }
    topic = bel__node_topic(operation->node, name);
    if (topic == NULL) return bel__operation_refuse(operation, BEL_ENOMEM, "memory has run out");
    for (size_t i = 0; i < operation->topics_count; i++) {
        if (operation->topics[i] == topic) return 0;
    }
    operation->topics[operation->topics_count++] = topic;
    return 0;
}

int bel__operation_name_all(struct bel_operation *operation, const struct bel_view *topics,
                            size_t count)
{
    assert(operation->topics == NULL);
    operation->topics = calloc(count + 1, sizeof(struct bel_redis_topic *));
    if (operation->topics == NULL) {
        return bel__operation_refuse(operation, BEL_ENOMEM, "memory has run out");
    }
    for (size_t i = 0; i < count; i++) {
        int err = add_topic(operation, topics[i]);
        if (err) return err;
    }
    operation->topic = operation->topics_count == 1 ? operation->topics[0] : NULL;
    return 0;
}

int bel__operation_name(struct bel_operation *operation, struct bel_view topic)
{
    return bel__operation_name_all(operation, &topic, 1);
}

void bel__operation_hold(struct bel_operation *operation)
{
    if (operation->holds) return;
    operation->holds = true;
    for (size_t i = 0; i < operation->topics_count; i++) {
        operation->topics[i]->held++;
    }
}

bool bel__operation_reaches(const struct bel_operation *operation, uint64_t delay_ms)
{
    int64_t now = bel__node_now(operation->node);
    return now <= BEL_REDIS_TIME_END_MS && delay_ms <= (uint64_t)(BEL_REDIS_TIME_END_MS - now);
}

bool bel__operation_is_refused(struct bel_operation *operation, const struct bel_results *results)
{
    if (results->err == 0) return false;
    bel__operation_fail(operation, results->err, results->why);
    return true;
}
