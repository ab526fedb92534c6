/* SPDX-License-Identifier: MIT */
#include "redis/layouts.h"

#include "redis/batch.h"
#include "redis/faststream_token.h"
#include "redis/outcome.h"

#include "core/utf8.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TOPICS_MAX = 100, /* of a claim; more are refused */
};

struct bel_view bel__layouts_key(const struct bel_redis *node, char out[BEL_LAYOUTS_KEY_BYTES])
{
    int bytes = snprintf(out, BEL_LAYOUTS_KEY_BYTES, "{%s}:layouts", node->options.name_space);
    assert(bytes > 0 && bytes < BEL_LAYOUTS_KEY_BYTES);
    return (struct bel_view){out, (size_t)bytes};
}

bool bel__layouts_may_name(struct bel_view topic)
{
    return topic.bytes > 0 && topic.bytes <= BEL_TOPIC_BYTES_MAX && bel__utf8_is_text(topic);
}

/* --- Asking --- */

struct asking {
    struct bel_item item;
    struct bel_redis_topic *topic;
    struct bel_redis *node;
};

/* Reads the layout of a topic. Returns 0, BEL_ENOMEM or BEL_ECORRUPT. */
static int read_layout(const struct bel_redis *node, const struct bel_redis_topic *topic,
                       const struct bel_value *value, struct bel_layout **out)
{
    struct bel_layout_settings settings;
    char revision[BEL_LAYOUT_REVISION_BYTES + 1];
    *out = NULL;
    if (value->type == BEL_VALUE_NIL) return 0;
    if (value->type != BEL_VALUE_TEXT) return BEL_ECORRUPT;
    int err = bel__layout_unpack(value->text, &settings, revision);
    if (err) return err;
    *out = bel__layout_create(&settings, revision, node->options.name_space, topic->name);
    return *out == NULL ? BEL_ENOMEM : 0;
}

/* Takes over a layout. One that has not changed stays. */
static void set_layout(struct bel_redis *node, struct bel_redis_topic *topic,
                       struct bel_layout *layout)
{
    bel__layout_release(topic->layout);
    topic->layout = layout;
    topic->knows_layout = true;
    if (layout == NULL) return;
    topic->is_registered = false;
    topic->partitions[0]->ring_ms = BEL_REDIS_NEVER;
    bel__partition_expect(node, topic->partitions[0], BEL_REDIS_NEVER);
    topic->poll_ms = layout->settings.poll_min_ms;
}

/* Keeps the reason for which a layout was not told. */
static void note_why(struct bel_redis *node, const struct bel_results *results)
{
    struct bel_why why;
    if (results->err == 0) bel__outcome_misled(node->servers, node->registry_slot, true, &why);
    (void)snprintf(node->layout_why, sizeof node->layout_why, "%s",
                   results->err == 0 ? why.text : results->why);
}

static void told(struct bel_item *item, const struct bel_results *results)
{
    struct asking *asking = BEL_CONTAINER_OF(item, struct asking, item);
    struct bel_redis_topic *topic = asking->topic;
    struct bel_layout *layout = NULL;
    int err = results->err;
    if (err == 0) err = read_layout(asking->node, topic, &results->items[0], &layout);
    topic->asks_layout = false;
    asking->node->waits_for_layout = false; /* the first request goes on, or ends with an error */
    if (err) {
        topic->asked_in_vain = asking->node->turns;
        note_why(asking->node, results);
    } else if (!topic->changes_layout) {
        set_layout(asking->node, topic, layout);
        if (topic->parked > 0) bel__node_mark_all(asking->node, topic);
    } else {
        bel__layout_release(layout);
    }
    free(asking);
}

static int ask(struct bel_redis *node, struct bel_redis_topic *topic)
{
    char key[BEL_LAYOUTS_KEY_BYTES];
    if (topic->asks_layout || topic->changes_layout) return 0;
    struct asking *asking = malloc(sizeof *asking);
    struct bel_batch *batch = asking == NULL ? NULL : bel__batch_reading(node);
    if (batch == NULL) {
        free(asking);
        return BEL_ENOMEM;
    }
    *asking = (struct asking){.item = {.answered = told}, .topic = topic, .node = node};
    topic->asks_layout = true;
    bel__batch_item(batch, &asking->item, 0);
    bel__batch_word(batch, "HGET");
    bel__batch_text(batch, bel__layouts_key(node, key));
    bel__batch_text(batch, topic->name);
    return 0;
}

/* --- The topics of a command --- */

/* What is known about the topics that were looked at so far. */
struct knowledge {
    struct bel_redis *node;
    const char *why; /* something could not be found out */
    bool is_missing; /* something is not known yet */
};

/* Returns whether the question for a layout has failed: in this turn, or at the end of the last
 * one, when calls end that are late. */
static bool failed_just_now(const struct bel_redis *node, const struct bel_redis_topic *topic)
{
    return topic->asked_in_vain != 0 && topic->asked_in_vain + 1 >= node->turns;
}

static void look_at(struct knowledge *known, struct bel_view name)
{
    if (!bel__layouts_may_name(name)) return; /* no layout has such a topic */
    struct bel_redis_topic *topic = bel__node_topic(known->node, name);
    if (topic != NULL && topic->knows_layout) return;
    if (topic != NULL && failed_just_now(known->node, topic)) {
        known->why = known->node->layout_why;
    } else if (topic == NULL || ask(known->node, topic) != 0) {
        known->why = "memory has run out";
    } else {
        known->is_missing = true;
    }
}

static void look_at_token(struct knowledge *known, struct bel_view text)
{
    struct bel_faststream_token token;
    if (!bel__faststream_token_parse(text, &token)) return;
    look_at(known, (struct bel_view){token.topic, token.topic_bytes});
}

/* Returns the topic of a command that names one; an empty view: it names none, or several. */
static struct bel_view topic_of(const struct bel_command *command)
{
    switch (command->verb) {
    case BEL_VERB_SCHEDULE:
        return command->schedule.topic;
    case BEL_VERB_CANCEL:
        return command->cancel.topic;
    case BEL_VERB_RESCHEDULE:
        return command->reschedule.topic;
    case BEL_VERB_GET:
    case BEL_VERB_REVIVE:
    case BEL_VERB_TOPIC:
    case BEL_VERB_PAUSE:
    case BEL_VERB_RESUME:
    case BEL_VERB_EXPLAIN:
        return command->target.topic;
    case BEL_VERB_LIST:
        return command->list.topic;
    case BEL_VERB_PURGE:
        return command->purge.topic;
    case BEL_VERB_CONFIGURE:
        return command->configure.topic;
    case BEL_VERB_AGENDA:
        return command->agenda.topic;
    default:
        return (struct bel_view){NULL, 0};
    }
}

/* Returns the token of a command that has one. */
static struct bel_view token_of(const struct bel_command *command)
{
    switch (command->verb) {
    case BEL_VERB_FAIL:
        return command->fail.token;
    case BEL_VERB_RELEASE:
        return command->release.token;
    case BEL_VERB_EXTEND:
        return command->extend.token;
    default:
        return (struct bel_view){NULL, 0};
    }
}

bool bel__layouts_know(struct bel_redis *node, const struct bel_command *command,
                       const char **out_why)
{
    struct knowledge known = {.node = node};
    look_at(&known, topic_of(command));
    look_at_token(&known, token_of(command));
    if (command->verb == BEL_VERB_CLAIM) {
        for (size_t i = 0; i < command->claim.topics_count && i < TOPICS_MAX; i++) {
            look_at(&known, command->claim.topics[i]);
        }
    }
    if (command->verb == BEL_VERB_ACK) {
        for (size_t i = 0; i < command->ack.tokens_count; i++) {
            look_at_token(&known, command->ack.tokens[i]);
        }
    }
    *out_why = known.why;
    return known.why != NULL || !known.is_missing;
}

static bool has_layout(struct bel_redis *node, struct bel_view name)
{
    if (!bel__layouts_may_name(name)) return false;
    const struct bel_redis_topic *topic = bel__node_topic(node, name);
    return topic != NULL && topic->layout != NULL;
}

static bool configures_layout(const struct bel_configure *command)
{
    for (size_t i = 0; i < command->settings_count; i++) {
        if (bel__layout_has_alone(command->settings[i].name)) return true;
    }
    return false;
}

bool bel__layouts_concern(struct bel_redis *node, const struct bel_command *command)
{
    if (command->verb == BEL_VERB_CONFIGURE && configures_layout(&command->configure)) return true;
    struct bel_view token = token_of(command);
    if (token.bytes > 0) return bel__faststream_token_is_likely(token);
    return has_layout(node, topic_of(command));
}

/* --- Changes --- */

void bel__layouts_doubt_all(struct bel_redis *node)
{
    for (uint32_t i = 0; i < bel__map_count(&node->topics); i++) {
        uint64_t value = bel__map_at(&node->topics, i)->value;
        ((struct bel_redis_topic *)(uintptr_t)value)->knows_layout = false;
    }
}

void bel__layouts_begin_change(struct bel_redis_topic *topic)
{
    topic->changes_layout = true;
    topic->knows_layout = false;
}

void bel__layouts_end_change(struct bel_redis *node, struct bel_redis_topic *topic,
                             struct bel_layout *layout)
{
    topic->changes_layout = false;
    set_layout(node, topic, layout);
}
