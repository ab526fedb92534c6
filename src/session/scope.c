/* SPDX-License-Identifier: MIT */

/* Every verb is listed by name. A new verb is therefore outside of every scope until its topics are
 * listed here. */
#include "session/scope.h"

#include "commands/commands.h"

#include <string.h>

bool bel__scope_add(struct bel_scope *scope, struct bel_view pattern)
{
    const char *text = pattern.data;
    bool is_prefix = pattern.bytes > 0 && text[pattern.bytes - 1] == '*';
    size_t bytes = pattern.bytes - is_prefix;
    if (scope->count == BEL_SCOPE_PATTERNS_MAX) return false;
    if (!bel_topic_is_valid((struct bel_view){text, bytes})) return false;
    memcpy(scope->patterns[scope->count].text, text, bytes);
    scope->patterns[scope->count].bytes = bytes;
    scope->patterns[scope->count].is_prefix = is_prefix;
    scope->count++;
    return true;
}

static bool has_topic(const struct bel_scope *scope, struct bel_view topic)
{
    for (size_t i = 0; i < scope->count; i++) {
        size_t bytes = scope->patterns[i].bytes;
        bool may_fit = scope->patterns[i].is_prefix ? topic.bytes >= bytes : topic.bytes == bytes;
        if (may_fit && memcmp(topic.data, scope->patterns[i].text, bytes) == 0) return true;
    }
    return false;
}

bool bel__scope_has_topic(const struct bel_scope *scope, struct bel_view topic)
{
    return scope == NULL || has_topic(scope, topic);
}

bool bel__scope_equals(const struct bel_scope *scope, const struct bel_scope *other)
{
    if (scope->count != other->count) return false;
    for (size_t i = 0; i < scope->count; i++) {
        size_t bytes = scope->patterns[i].bytes;
        if (bytes != other->patterns[i].bytes) return false;
        if (scope->patterns[i].is_prefix != other->patterns[i].is_prefix) return false;
        if (memcmp(scope->patterns[i].text, other->patterns[i].text, bytes) != 0) return false;
    }
    return true;
}

static bool has_topics(const struct bel_scope *scope, const struct bel_view *topics, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!has_topic(scope, topics[i])) return false;
    }
    return true;
}

static bool has_job_topic(const void *context, struct bel_view topic)
{
    return has_topic(context, topic);
}

void bel__scope_set(const struct bel_scope *scope, struct bel_command *command)
{
    struct bel_job_scope jobs = {.has = scope != NULL ? has_job_topic : NULL, .context = scope};
    switch (command->verb) {
    case BEL_VERB_JOB_SUBMIT:
        command->job_submit.scope = jobs;
        break;
    case BEL_VERB_JOB_GET:
        command->job_get.scope = jobs;
        break;
    case BEL_VERB_JOB_LIST:
        command->job_list.scope = jobs;
        break;
    case BEL_VERB_JOB_CANCEL:
    case BEL_VERB_JOB_PAUSE:
    case BEL_VERB_JOB_RESUME:
        command->job_target.scope = jobs;
        break;
    default:
        break;
    }
}

bool bel__grant_allows(const struct bel_grant *grant, const struct bel_command *command)
{
    const struct bel_limit *limit = &command->limit;
    if (command->verb != BEL_VERB_LIMIT || limit->action == BEL_LIMIT_LIST) return true;
    bool changes = limit->action != BEL_LIMIT_SET || limit->has_rate || limit->has_burst ||
                   limit->has_concurrency || limit->has_until || limit->has_breaker;
    return !changes || (grant->permissions & 1U << BEL_PERMISSION_ADMIN) != 0;
}

bool bel__scope_has(const struct bel_scope *scope, const struct bel_command *command)
{
    if (scope == NULL) return true;
    switch (command->verb) {
    case BEL_VERB_SCHEDULE:
        return has_topic(scope, command->schedule.topic);
    case BEL_VERB_CANCEL:
        return has_topic(scope, command->cancel.topic);
    case BEL_VERB_RESCHEDULE:
        return has_topic(scope, command->reschedule.topic);
    case BEL_VERB_CLAIM:
        return has_topics(scope, command->claim.topics, command->claim.topics_count);
    case BEL_VERB_LIST:
        return has_topic(scope, command->list.topic);
    case BEL_VERB_PURGE:
        return has_topic(scope, command->purge.topic);
    case BEL_VERB_CONFIGURE:
        return has_topic(scope, command->configure.topic);
    case BEL_VERB_AGENDA:
        return command->agenda.topic.bytes > 0 && has_topic(scope, command->agenda.topic);
    case BEL_VERB_GET:
    case BEL_VERB_REVIVE:
    case BEL_VERB_TOPIC:
    case BEL_VERB_PAUSE:
    case BEL_VERB_RESUME:
    case BEL_VERB_EXPLAIN:
        return has_topic(scope, command->target.topic);
    case BEL_VERB_ACK:
    case BEL_VERB_FAIL:
    case BEL_VERB_RELEASE:
    case BEL_VERB_EXTEND: /* the token is proof enough */
    case BEL_VERB_JOB_SUBMIT:
    case BEL_VERB_JOB_GET:
    case BEL_VERB_JOB_CANCEL:
    case BEL_VERB_JOB_LIST:
    case BEL_VERB_JOB_PAUSE:
    case BEL_VERB_JOB_RESUME:
        return true; /* of a job, the backend compares the topics: bel__scope_set() */
    default:
        return false;
    }
}
