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

#include "redis/layouts.h"
#include "redis/news.h"
#include "redis/operation.h"
#include "redis/outcome.h"

#include "core/units.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    REQUESTS_PER_TURN = 10000,
    CALL_MS = 5000, /* without such an option, as of a link */
    REPLY_BYTES_MIN = 128 << 20,
    RESULT_BYTES = 512 << 10, /* of a result besides payload and headers: outcomes, texts */
    PAYLOADS_MIN = 4,
    PAYLOADS_MAX = 100,
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
    int bytes = snprintf(request->own.reply.why, sizeof request->own.reply.why, "%s", why);
    bel__why_cut(request->own.reply.why, sizeof request->own.reply.why, bytes);
    request->done(request, &request->own.reply);
}

/* Returns whether an operation begins although its topic is held: all that hold it began in this
 * turn, and are of its kind. Parked claims would have to be served in between. */
static bool may_share(const struct bel_operation *operation, const struct bel_redis_topic *topic)
{
    bool is_shared = topic->shared_in == operation->node->turns && topic->parked == 0;
    return operation->shares_hold && is_shared;
}

/* Returns whether an earlier request holds or waits for a topic of the operation; then later ones
 * wait, too. */
static bool must_wait(struct bel_operation *operation)
{
    uint64_t turn = operation->node->turns;
    bool waits = operation->begin_at.ns > operation->node->now.real.ns;
    for (size_t i = 0; i < operation->topics_count; i++) {
        const struct bel_redis_topic *topic = operation->topics[i];
        if (topic->held > 0 && !may_share(operation, topic)) waits = true;
        if (topic->blocked_in == turn) waits = true;
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
        enum bel_script_name script =
            topic->layout != NULL ? BEL_SCRIPT_FASTSTREAM_SCHEDULE : BEL_SCRIPT_SCHEDULE;
        for (uint32_t k = 0; topic->parked > 0 && k < topic->count; k++) {
            struct bel_redis_partition *partition = topic->partitions[k];
            if (!bel__link_is_linked(&partition->dirty)) continue;
            if (is_schedule && bel__batch_is_open(partition, script)) continue;
            bel__parked_serve(operation->node, partition);
        }
    }
}

/* Begins an operation, or lets it wait. */
static void try_to_begin(struct bel_operation *operation)
{
    struct bel_redis *node = operation->node;
    if (must_wait(operation)) {
        if (operation->begin_at.ns > node->now.real.ns && operation->begin_at.ns < node->retry.ns) {
            node->retry = operation->begin_at;
        }
        if (!bel__link_is_linked(&operation->link)) {
            bel__list_append(&node->waiting, &operation->link);
        }
        return;
    }
    if (bel__link_is_linked(&operation->link)) bel__link_remove(&operation->link);
    bel__list_append(&node->begun, &operation->link);
    serve_before(operation);
    operation->functions->begin(operation);
}

/* Answers a verb that this backend does not know, with its name: "JOB LIST is not ...". */
static void refuse_verb(struct bel_request *request, enum bel_redis_layout_name layout)
{
    const char *by =
        layout == BEL_LAYOUT_NATIVE ? "a store on Redis" : "a topic of the layout faststream";
    char why[BEL_WHY_BYTES];
    int name = snprintf(why, sizeof why, "%s", bel_verb_name(request->command.verb));
    for (int i = 0; i < name; i++) {
        if (why[i] == '_') why[i] = ' ';
        if (why[i] >= 'a' && why[i] <= 'z') why[i] = (char)(why[i] & ~0x20);
    }
    (void)snprintf(why + name, sizeof why - (size_t)name, " is not supported by %s", by);
    answer_at_once(request, BEL_EUNSUPPORTED, why);
}

static void process(struct bel_redis *node, struct bel_request *request)
{
    enum bel_redis_layout_name layout =
        bel__layouts_concern(node, &request->command) ? BEL_LAYOUT_FASTSTREAM : BEL_LAYOUT_NATIVE;
    const struct bel_redis_verb *verb = bel__redis_verb_of(layout, &request->command);
    if (verb == NULL) {
        refuse_verb(request, layout);
        return;
    }
    struct bel_operation *operation = bel__operation_create(node, request);
    if (operation == NULL) {
        answer_at_once(request, BEL_ENOMEM, "memory has run out");
        return;
    }
    operation->functions = verb;
    if (verb->prepare(operation) != 0) {
        bel__operation_answer(operation);
        return;
    }
    try_to_begin(operation);
}

/* Returns when a call that begins at a time ends at the latest. */
static struct bel_mono call_end(const struct bel_redis *node, struct bel_mono start)
{
    uint32_t call_ms = node->options.servers.call_ms;
    if (call_ms == 0) call_ms = CALL_MS;
    return (struct bel_mono){start.ns + (uint64_t)call_ms * NS_PER_MS};
}

/* Requests wait for the first contact with the server, because some of them compute with its time;
 * but not longer than a call may take. */
static struct bel_mono first_contact_end(const struct bel_redis *node)
{
    return call_end(node, node->opened);
}

static bool may_begin(const struct bel_redis *node)
{
    return bel__node_knows_time(node) || node->now.real.ns >= first_contact_end(node).ns;
}

/* Returns when an operation that waits for others is given up: when no server has replied for as
 * long as a call may take. Otherwise each would wait for the ends of all calls before it. */
static struct bel_mono wait_end(const struct bel_operation *operation)
{
    const struct bel_redis *node = operation->node;
    bool is_heard = node->heard.ns > operation->asked.ns;
    return call_end(node, is_heard ? node->heard : operation->asked);
}

static void give_up(struct bel_operation *operation)
{
    const struct bel_redis_topic *topic = operation->topics_count > 0 ? operation->topics[0] : NULL;
    uint16_t slot = topic != NULL ? topic->partitions[0]->slot : operation->node->registry_slot;
    const struct bel_redis_reply late = {.err = BEL_EIO,
                                         .why = "no reply in time to the requests before"};
    bool is_harmless = operation->restarts == 0; /* otherwise a part may have been carried out */
    struct bel_why why;
    bel__outcome_unanswered(operation->node->servers, slot, is_harmless, &late, &why);
    bel__operation_fail(operation, BEL_EIO, why.text);
}

static void begin_waiting(struct bel_redis *node)
{
    struct bel_link *link = bel__list_first(&node->waiting), *next;
    node->retry.ns = BEL_NEVER;
    for (; link != NULL; link = next) {
        struct bel_operation *operation = BEL_CONTAINER_OF(link, struct bel_operation, link);
        next = bel__list_next(&node->waiting, link);
        if (node->now.real.ns > wait_end(operation).ns) {
            give_up(operation);
        } else {
            try_to_begin(operation);
        }
    }
}

/* Asks for the layouts that the next requests will need, all at once. */
static void ask_layouts(struct bel_redis *node)
{
    const struct bel_request *request = node->first;
    for (unsigned i = 0; i < REQUESTS_PER_TURN && request != NULL; i++) {
        const char *why;
        (void)bel__layouts_know(node, &request->command, &why);
        request = request->own.next;
    }
}

static void begin_requests(struct bel_redis *node)
{
    if (!may_begin(node)) return;
    begin_waiting(node);
    node->waits_for_layout = false;
    for (unsigned i = 0; i < REQUESTS_PER_TURN && node->first != NULL; i++) {
        const char *why;
        if (!bel__layouts_know(node, &node->first->command, &why)) {
            node->waits_for_layout = true;
            ask_layouts(node);
            return;
        }
        struct bel_request *request = take_request(node);
        if (why == NULL) {
            process(node, request);
        } else {
            answer_at_once(request, BEL_EIO, why);
        }
    }
}

/* --- Turns --- */

/* Returns when some ms are over, by the node's boot clock. */
static struct bel_boot boot_time(const struct bel_redis *node, int64_t left_ms)
{
    if (left_ms == BEL_REDIS_NEVER) return (struct bel_boot){BEL_NEVER};
    if (left_ms == 0) return node->now.boot;
    uint64_t rest_ns = node->now.boot.ns % NS_PER_MS;
    if (bel__node_gives_time(node)) rest_ns = node->now.wall_rest_ns;
    if ((uint64_t)left_ms > (BEL_NEVER - 1 - node->now.boot.ns) / NS_PER_MS) {
        return (struct bel_boot){BEL_NEVER - 1};
    }
    uint64_t left_ns = (uint64_t)left_ms * NS_PER_MS - rest_ns;
    return (struct bel_boot){node->now.boot.ns + left_ns};
}

/* Returns when the wait of a request for others, or for the first contact, ends. */
static struct bel_mono next_of_waiting(const struct bel_redis *node)
{
    struct bel_mono next = {BEL_NEVER};
    struct bel_link *first = bel__list_first(&node->waiting); /* has waited longest */
    if (first != NULL) {
        next.ns = wait_end(BEL_CONTAINER_OF(first, struct bel_operation, link)).ns + 1;
    }
    if (node->first != NULL && !may_begin(node)) {
        uint64_t end_ns = first_contact_end(node).ns;
        if (end_ns < next.ns) next.ns = end_ns;
    }
    return next;
}

static struct bel_next turn(struct bel_backend *backend, struct bel_now now)
{
    struct bel_redis *node = node_of(backend);
    node->now = now;
    node->turns++;
    bel__servers_receive(node->servers, now.real);
    struct bel_mono polls = bel__node_poll(node);
    bel__node_wake(node);
    bel__parked_serve_marked(node);
    begin_requests(node);
    bel__parked_serve_marked(node);
    bel__claims_end_waits(node);
    bel__batches_send(node);
    struct bel_mono flushed = bel__servers_flush(node->servers, now.real);
    struct bel_next next = {.due = boot_time(node, bel__node_next(node)),
                            .wait = bel__claims_next(node)};
    if (flushed.ns < next.wait.ns) next.wait = flushed;
    if (node->retry.ns < next.wait.ns) next.wait = node->retry;
    if (node->kept_until.ns < next.wait.ns) next.wait = node->kept_until;
    if (polls.ns < next.wait.ns) next.wait = polls;
    bool may_go_on = may_begin(node) && !node->waits_for_layout;
    bool has_more = flushed.ns <= now.real.ns; /* as when only a part of the replies was handled */
    if (has_more || (node->first != NULL && may_go_on)) next.due = now.boot;
    struct bel_mono other = next_of_waiting(node), told = bel__news_turn(node->news, now.real);
    if (other.ns < next.wait.ns) next.wait = other;
    if (told.ns < next.wait.ns) next.wait = told;
    return next;
}

static int descriptor(const struct bel_backend *backend)
{
    return bel__servers_descriptor(((const struct bel_redis *)backend)->servers);
}

/* --- Opening and closing --- */

/* A reply that is longer than its limit breaks the connection, with all calls that are under way.
 * So the limit has room for a few of the longest results, and no batch has more of them. */
static void set_limits(struct bel_redis *node)
{
    size_t result_bytes = BEL_REDIS_LOAD_BYTES_MAX + node->options.payload_bytes_max +
                          BEL_HEADERS_BYTES_MAX + RESULT_BYTES;
    size_t *bytes = &node->options.servers.reply_bytes_max;
    if (*bytes == 0) *bytes = REPLY_BYTES_MIN;
    if (*bytes < PAYLOADS_MIN * result_bytes) *bytes = PAYLOADS_MIN * result_bytes;
    node->payloads_max = *bytes / result_bytes;
    if (node->payloads_max > PAYLOADS_MAX) node->payloads_max = PAYLOADS_MAX;
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
    set_limits(node);
    node->now = now;
    node->opened = now.real;
    node->last = &node->first;
    node->retry.ns = node->kept_until.ns = BEL_NEVER;
    node->moved = bel__topic_learn;
    bel__list_init(&node->waiting);
    bel__list_init(&node->begun);
    bel__list_init(&node->parked);
    bel__list_init(&node->awaited);
    bel__list_init(&node->batches);
    bel__list_init(&node->sent);
    bel__list_init(&node->dirty);
    bel__list_init(&node->clocks);
    (void)snprintf(node->registry, sizeof node->registry, "{%s}:topics", options->name_space);
    node->registry_slot = bel__slot_of(bel__node_registry(node));
}

static int open_servers(struct bel_redis *node)
{
    struct bel_servers_owner owner;
    node->news = bel__news_create(node);
    if (node->news == NULL) return BEL_ENOMEM;
    bel__news_fill(node->news, &owner);
    int err = bel__servers_open(&node->options.servers, &owner, &node->servers);
    if (err == 0 && !bel__node_gives_time(node)) {
        err = bel__servers_listen(node->servers, bel__node_registry(node));
    }
    if (err) {
        bel__servers_close(node->servers);
        bel__news_destroy(node->news);
    }
    return err;
}

static bool is_name_space(const char *name)
{
    return name[0] != 0 && strpbrk(name, "{}*?[]\\") == NULL;
}

int bel__redis_parse(const char *text, size_t bytes, struct bel_redis_options *out,
                     struct bel_why *why)
{
    struct bel_servers_options servers;
    int err = bel__servers_parse(text, bytes, &servers, why);
    if (err) return err;
    *out = (struct bel_redis_options){.servers = servers};
    (void)snprintf(out->name_space, sizeof out->name_space, "%s",
                   servers.name_space != NULL ? servers.name_space : "belfry");
    return 0;
}

void bel__redis_forget(struct bel_redis_options *options)
{
    bel__servers_forget(&options->servers);
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
    err = bel__clocks_open(node);
    if (err == 0) err = open_servers(node);
    if (err) goto free_node;
    *out = node;
    return 0;

free_node:
    bel__clocks_close(node);
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
    bel__servers_close(redis->servers);
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
    bel__news_destroy(redis->news);
    bel__node_forget_topics(redis);
    bel__clocks_close(redis);
    free(redis);
}

struct bel_backend *bel__redis_backend(struct bel_redis *redis)
{
    return &redis->backend;
}

int bel__redis_send(struct bel_redis *redis, struct bel_server_call *call, struct bel_mono now)
{
    return bel__servers_send(redis->servers, call, now);
}

bool bel__redis_does(enum bel_verb verb)
{
    return bel__redis_verb(BEL_LAYOUT_NATIVE, verb) != NULL;
}

const struct bel_servers *bel__redis_servers(const struct bel_redis *redis)
{
    return redis->servers;
}

const struct bel_redis_refusals *bel__redis_refusals(const struct bel_redis *redis)
{
    return &redis->refusals;
}

bool bel__redis_is_idle(const struct bel_redis *redis)
{
    if (bel__node_next(redis) == 0) return false;
    return redis->first == NULL && bel__list_is_empty(&redis->waiting) &&
           bel__list_is_empty(&redis->begun) && bel__list_is_empty(&redis->batches) &&
           bel__list_is_empty(&redis->sent) && bel__list_is_empty(&redis->dirty) &&
           bel__servers_is_idle(redis->servers);
}
