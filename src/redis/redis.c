/* SPDX-License-Identifier: MIT */

/*
 * A turn:
 *
 *     receive ---> wake topics ---> begin requests ---> serve parked claims ---> send
 *        '--- results end operations, or send their next items
 *
 * All items of a turn leave together, in as few calls of scripts as their order allows.
 */
#include "redis/redis.h"

#include "redis/greeter.h"
#include "redis/operation.h"

#include "core/units.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    REQUESTS_PER_TURN = 10000,
};

static struct bel_redis *node_of(struct bel_backend *backend)
{
    return (struct bel_redis *)backend;
}

/* --- Requests --- */

static void submit(struct bel_backend *backend, struct bel_request *request)
{
    struct bel_redis *node = node_of(backend);
    request->own.next = NULL;
    *node->last = request;
    node->last = (struct bel_request **)&request->own.next;
}

static struct bel_request *take_request(struct bel_redis *node)
{
    struct bel_request *request = node->first;
    if (request == NULL) return NULL;
    node->first = request->own.next;
    if (node->first == NULL) node->last = &node->first;
    return request;
}

static bool withdraw_submitted(struct bel_redis *node, const struct bel_request *request)
{
    for (struct bel_request **at = &node->first; *at != NULL;
         at = (struct bel_request **)&(*at)->own.next) {
        if (*at != request) continue;
        *at = request->own.next;
        if (*at == NULL) node->last = at;
        return true;
    }
    return false;
}

/* Withdraws an operation that waits for a topic. */
static bool withdraw_waiting(struct bel_redis *node, const struct bel_request *request)
{
    struct bel_link *link = bel__list_first(&node->waiting);
    for (; link != NULL; link = bel__list_next(&node->waiting, link)) {
        struct bel_operation *operation = BEL_CONTAINER_OF(link, struct bel_operation, link);
        if (operation->request != request) continue;
        operation->request = NULL;
        bel__operation_answer(operation);
        return true;
    }
    return false;
}

static bool withdraw(struct bel_backend *backend, struct bel_request *request)
{
    struct bel_redis *node = node_of(backend);
    return withdraw_submitted(node, request) || withdraw_waiting(node, request) ||
           bel__claims_withdraw(node, request);
}

static void answer_at_once(struct bel_request *request, int err, const char *why)
{
    request->own.reply = (struct bel_reply){.err = err};
    (void)snprintf(request->own.reply.why, sizeof request->own.reply.why, "%s", why);
    request->done(request, &request->own.reply);
}

/* Returns whether an earlier request holds or waits for a topic of the operation; then later ones
 * wait, too. */
static bool must_wait(struct bel_operation *operation)
{
    uint64_t turn = operation->node->turns;
    bool waits = false;
    for (size_t i = 0; i < operation->topics_count; i++) {
        const struct bel_redis_topic *topic = operation->topics[i];
        if (topic->held > 0 || topic->blocked_in == turn) waits = true;
    }
    for (size_t i = 0; waits && i < operation->topics_count; i++) {
        operation->topics[i]->blocked_in = turn;
    }
    return waits;
}

/* Claims that are parked see what earlier requests of the turn have changed before this one does.
 * Schedules that follow each other are one change. */
static void serve_before(struct bel_operation *operation)
{
    bool is_schedule = operation->command.verb == BEL_VERB_SCHEDULE;
    for (size_t i = 0; i < operation->topics_count; i++) {
        struct bel_redis_topic *topic = operation->topics[i];
        if (!bel__link_is_linked(&topic->dirty) || topic->parked == 0) continue;
        if (is_schedule && bel__batch_is_open(topic, BEL_SCRIPT_SCHEDULE)) continue;
        bel__claims_serve(operation->node, topic);
    }
}

/* Begins an operation, or lets it wait. */
static void try_to_begin(struct bel_operation *operation)
{
    struct bel_redis *node = operation->node;
    if (must_wait(operation)) {
        if (!bel__link_is_linked(&operation->link)) {
            bel__list_append(&node->waiting, &operation->link);
        }
        return;
    }
    if (bel__link_is_linked(&operation->link)) bel__link_remove(&operation->link);
    bel__list_append(&node->begun, &operation->link);
    serve_before(operation);
    bel__redis_verb(operation->command.verb)->begin(operation);
}

static void process(struct bel_redis *node, struct bel_request *request)
{
    const struct bel_redis_verb *verb = bel__redis_verb(request->command.verb);
    if (verb == NULL) {
        bool is_invalid = request->command.verb == BEL_VERB_EXPLAIN &&
                          !bel_topic_is_valid(request->command.target.topic);
        answer_at_once(request, is_invalid ? BEL_EINVAL : BEL_EUNSUPPORTED,
                       is_invalid ? "invalid topic" : "not supported by a store on Redis");
        return;
    }
    struct bel_operation *operation = bel__operation_create(node, request);
    if (operation == NULL) {
        answer_at_once(request, BEL_ENOMEM, "memory has run out");
        return;
    }
    if (verb->prepare(operation) != 0) {
        bel__operation_answer(operation);
        return;
    }
    try_to_begin(operation);
}

static void begin_requests(struct bel_redis *node)
{
    struct bel_link *link = bel__list_first(&node->waiting), *next;
    for (; link != NULL; link = next) {
        next = bel__list_next(&node->waiting, link);
        try_to_begin(BEL_CONTAINER_OF(link, struct bel_operation, link));
    }
    for (unsigned i = 0; i < REQUESTS_PER_TURN && node->first != NULL; i++) {
        process(node, take_request(node));
    }
}

/* --- Turns --- */

/* Returns a time of the server as a time of the node's boot clock. */
static struct bel_boot boot_time(const struct bel_redis *node, int64_t time_ms)
{
    int64_t left_ms = time_ms - bel__node_now(node);
    if (time_ms == BEL_REDIS_NEVER) return (struct bel_boot){BEL_NEVER};
    if (left_ms <= 0) return node->now.boot;
    uint64_t left_ns = (uint64_t)left_ms * NS_PER_MS - node->now.wall_rest_ns;
    return (struct bel_boot){node->now.boot.ns + left_ns};
}

static struct bel_next turn(struct bel_backend *backend, struct bel_now now)
{
    struct bel_redis *node = node_of(backend);
    node->now = now;
    node->turns++;
    bel__poller_receive(&node->poller, now.real);
    bel__node_wake(node);
    bel__claims_serve_marked(node);
    begin_requests(node);
    bel__claims_serve_marked(node);
    bel__claims_end_waits(node);
    bel__batches_send(node);
    struct bel_mono flushed = bel__poller_flush(&node->poller, now.real);
    struct bel_next next = {.due = boot_time(node, bel__node_next(node)),
                            .wait = bel__claims_next(node)};
    if (flushed.ns < next.wait.ns) next.wait = flushed;
    if (node->first != NULL) next.due = now.boot;
    return next;
}

static int descriptor(const struct bel_backend *backend)
{
    return ((const struct bel_redis *)backend)->poller.descriptor;
}

/* --- Opening and closing --- */

static void changed(struct bel_redis_link *link, void *owner)
{
    struct bel_redis *node = owner;
    if (bel__redis_link_state(link) == BEL_REDIS_LINK_READY) bel__greeter_send(node->greeter);
}

static void pushed(struct bel_redis_link *link, void *owner, const struct bel_value *message)
{
    struct bel_redis *node = owner;
    (void)link;
    bel__greeter_hear(node->greeter, message);
}

static void init(struct bel_redis *node, const struct bel_redis_options *options,
                 struct bel_now now)
{
    node->backend = (struct bel_backend){submit, withdraw, turn, descriptor};
    node->options = *options;
    node->entropy = options->entropy != NULL ? options->entropy : bel__entropy_system();
    if (node->options.payload_bytes_max == 0) {
        node->options.payload_bytes_max = BEL_PAYLOAD_BYTES_DEFAULT;
    }
    node->now = now;
    node->last = &node->first;
    bel__list_init(&node->waiting);
    bel__list_init(&node->begun);
    bel__list_init(&node->parked);
    bel__list_init(&node->batches);
    bel__list_init(&node->sent);
    bel__list_init(&node->dirty);
    (void)snprintf(node->registry, sizeof node->registry, "{%s}:topics", options->name_space);
}

static int open_link(struct bel_redis *node)
{
    struct bel_redis_link_options options = node->options.link;
    options.poller = &node->poller;
    options.entropy = node->entropy;
    options.owner = node;
    options.changed = changed;
    options.pushed = pushed;
    int err = bel__redis_link_open(&options, &node->link);
    if (err == 0) bel__redis_link_connect(node->link);
    return err;
}

static bool is_name_space(const char *name)
{
    return name[0] != 0 && strpbrk(name, "{}*?[]\\") == NULL;
}

int bel__redis_open(const struct bel_redis_options *options, struct bel_now now,
                    struct bel_redis **out)
{
    struct bel_siphash_key secret;
    if (!is_name_space(options->name_space)) return BEL_EINVAL;
    struct bel_redis *node = calloc(1, sizeof *node);
    if (node == NULL) return BEL_ENOMEM;
    init(node, options, now);
    int err = bel__entropy_fill(node->entropy, &secret, sizeof secret);
    if (err) goto free_node;
    bel__map_init(&node->topics, secret);
    err = bel__poller_open(&node->poller);
    if (err) goto free_node;
    node->greeter = bel__greeter_create(node);
    err = node->greeter == NULL ? BEL_ENOMEM : open_link(node);
    if (err) goto close_poller;
    *out = node;
    return 0;

close_poller:
    bel__greeter_destroy(node->greeter);
    bel__poller_close(&node->poller);
free_node:
    free(node);
    return err;
}

static void answer_all(struct bel_list *list)
{
    for (struct bel_link *link; (link = bel__list_first(list)) != NULL;) {
        bel__operation_fail(BEL_CONTAINER_OF(link, struct bel_operation, link), BEL_ECLOSED,
                            "the backend is closed");
    }
}

void bel__redis_close(struct bel_redis *redis)
{
    if (redis == NULL) return;
    bel__redis_link_close(redis->link);
    assert(bel__list_is_empty(&redis->sent));
    while (!bel__list_is_empty(&redis->batches)) {
        bel__batches_drop_first(redis);
    }
    answer_all(&redis->waiting);
    answer_all(&redis->begun);
    answer_all(&redis->parked);
    for (struct bel_request *request; (request = take_request(redis)) != NULL;) {
        answer_at_once(request, BEL_ECLOSED, "the backend is closed");
    }
    bel__greeter_destroy(redis->greeter);
    bel__poller_close(&redis->poller);
    bel__node_forget_topics(redis);
    free(redis);
}

struct bel_backend *bel__redis_backend(struct bel_redis *redis)
{
    return &redis->backend;
}

bool bel__redis_is_idle(const struct bel_redis *redis)
{
    int64_t next = bel__node_next(redis);
    if (next != BEL_REDIS_NEVER && next <= bel__node_now(redis)) return false;
    return redis->first == NULL && bel__list_is_empty(&redis->waiting) &&
           bel__list_is_empty(&redis->begun) && bel__list_is_empty(&redis->batches) &&
           bel__list_is_empty(&redis->sent) && bel__list_is_empty(&redis->dirty) &&
           bel__redis_link_state(redis->link) == BEL_REDIS_LINK_READY &&
           bel__redis_link_calls(redis->link) == 0;
}
