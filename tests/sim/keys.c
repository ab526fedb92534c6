/* SPDX-License-Identifier: MIT */

/*
 * The API keys of a server, and what each may do: written down here once more, so that a session
 * that lets somebody do too much, or too little, is found.
 */
#include "speakers.h"

#include <string.h>

static const struct {
    const char *user, *key;
    unsigned permissions;
    bool is_scoped; /* to the first topic */
} keys[KEYS] = {
    [KEY_ALL] = {"ann", "open sesame", ~0U, false},
    [KEY_READER] = {"bob", "just looking", 1U << BEL_PERMISSION_READ, false},
    [KEY_TOPIC] = {"eve", "one door only", ~0U, true},
};

const char *key_user(enum key key)
{
    return keys[key].user;
}

const char *key_text(enum key key)
{
    return keys[key].key;
}

bool key_check(void *context, const struct bel_key_attempt *attempt, struct bel_grant *out)
{
    struct speaker *speaker = context;
    struct bel_scope *scope = &speaker->world->speakers->scope;
    for (unsigned i = KEY_NONE + 1; i < KEYS; i++) {
        bool has_user = attempt->user.bytes > 0;
        if (has_user && !heard_same(attempt->user, view_of(keys[i].user))) continue;
        if (!heard_same(attempt->key, view_of(keys[i].key))) continue;
        *out = (struct bel_grant){.permissions = keys[i].permissions,
                                  .scope = keys[i].is_scoped ? scope : NULL,
                                  .key_id = i};
        return true;
    }
    return false;
}

bool key_scope(struct bel_scope *out)
{
    return bel__scope_add(out, view_of(topic_name(0)));
}

static bool is_reading(enum bel_verb verb)
{
    return verb == BEL_VERB_GET || verb == BEL_VERB_LIST || verb == BEL_VERB_TOPICS ||
           verb == BEL_VERB_TOPIC || verb == BEL_VERB_AGENDA || verb == BEL_VERB_EXPLAIN;
}

/* LIMIT shows with the permission to read, and changes with another. */
static bool is_showing(const struct bel_limit *limit)
{
    if (limit->action == BEL_LIMIT_LIST) return true;
    return limit->action == BEL_LIMIT_SET && !limit->has_rate && !limit->has_burst &&
           !limit->has_concurrency && !limit->has_until && !limit->has_breaker;
}

static bool is_first(struct bel_view topic)
{
    return heard_same(topic, view_of(topic_name(0)));
}

/* Whether a command names the first topic, no other, or only a token. */
static bool is_in_scope(const struct bel_command *command)
{
    switch (command->verb) {
    case BEL_VERB_SCHEDULE:
        return is_first(command->schedule.topic);
    case BEL_VERB_CANCEL:
        return is_first(command->cancel.topic);
    case BEL_VERB_RESCHEDULE:
        return is_first(command->reschedule.topic);
    case BEL_VERB_LIST:
        return is_first(command->list.topic);
    case BEL_VERB_PURGE:
        return is_first(command->purge.topic);
    case BEL_VERB_CONFIGURE:
        return is_first(command->configure.topic);
    case BEL_VERB_AGENDA:
        return is_first(command->agenda.topic);
    case BEL_VERB_TOPICS:
    case BEL_VERB_LIMIT:
        return false;
    case BEL_VERB_ACK:
    case BEL_VERB_FAIL:
    case BEL_VERB_RELEASE:
    case BEL_VERB_EXTEND:
        return true;
    case BEL_VERB_CLAIM:
        for (size_t i = 0; i < command->claim.topics_count; i++) {
            if (!is_first(command->claim.topics[i])) return false;
        }
        return true;
    default:
        return is_first(command->target.topic);
    }
}

const char *key_refusal(enum key key, const struct bel_command *command)
{
    switch (key) {
    case KEY_NONE:
        return "NOAUTH ";
    case KEY_READER:
        if (command->verb == BEL_VERB_LIMIT && is_showing(&command->limit)) return NULL;
        return is_reading(command->verb) ? NULL : "NOPERM ";
    case KEY_TOPIC:
        return is_in_scope(command) ? NULL : "NOPERM ";
    default:
        return NULL;
    }
}
