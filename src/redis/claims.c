/* SPDX-License-Identifier: MIT */

/*
 * CLAIM. A claim of one topic is one call. A claim of several topics asks each of them first how
 * much it has, shares its count among them by turns, and then claims exactly its share of each: so
 * it never holds more than it returns.
 *
 * A claim that finds nothing and may wait is parked in the node. It is tried again when something
 * has happened in one of its topics (bel__node_mark), in the order in which the claims came.
 */
#include "redis/operation.h"
#include "redis/reading.h"

#include "core/units.h"
#include "core/utf8.h"

#include <assert.h>
#include <stdio.h>

enum {
    TOPICS_MAX = 100,
    LOAD_BYTES_MAX = 1 << 20, /* of payloads and headers, after which a claim gets no more */
    SERVED_MAX = 1000,        /* deliveries to parked claims in one call */
};

/* What a claim does in one of its topics. */
struct part {
    struct bel_item item;
    struct bel_operation *operation;
    struct bel_redis_topic *topic;
    uint64_t ready; /* timers that a claim would find */
    uint64_t share; /* of these, how many to claim */
    uint64_t order; /* of the topic's marks when the claim was sent */
    struct bel_delivery *deliveries;
    size_t count;
};

struct bel_claiming {
    uint8_t secret[BEL_TOKEN_SECRET_BYTES];
    uint64_t wait_end_ns; /* real time */
    size_t first;         /* index of the topic to serve first */
    size_t left;          /* parts without an answer */
    bool is_parked;
    int err; /* the first error */
    char why[BEL_REPLY_WHY_BYTES];
    struct part parts[];
};

static int check(struct bel_operation *operation, const struct bel_claim *claim)
{
    if (claim->topics_count == 0 || claim->topics_count > TOPICS_MAX) {
        return bel__operation_refuse(operation, BEL_EINVAL, "a claim needs 1 to %d topics",
                                     TOPICS_MAX);
    }
    if (claim->count > BEL_CLAIM_COUNT_MAX) {
        return bel__operation_refuse(operation, BEL_EINVAL, "count too large: at most %d",
                                     BEL_CLAIM_COUNT_MAX);
    }
    if (!bel__operation_reaches(operation, claim->lease_ms)) {
        return bel__operation_refuse(operation, BEL_EINVAL, "a duration is too long");
    }
    return 0;
}

static uint64_t wait_end(const struct bel_operation *operation)
{
    uint64_t now = operation->node->now.real.ns, wait_ms = operation->command.claim.wait_ms;
    uint64_t most_ms = (BEL_NEVER - 1 - now) / NS_PER_MS;
    return now + (wait_ms < most_ms ? wait_ms : most_ms) * NS_PER_MS;
}

static int prepare(struct bel_operation *operation)
{
    struct bel_claim *claim = &operation->command.claim;
    int err = check(operation, claim);
    if (err == 0) err = bel__operation_name_all(operation, claim->topics, claim->topics_count);
    if (err) return err;
    if (claim->count == 0) claim->count = 1;
    struct bel_claiming *claiming = bel__arena_take(
        &operation->arena, sizeof *claiming + operation->topics_count * sizeof claiming->parts[0]);
    struct bel_view worker = bel__utf8_head(claim->worker, BEL_TEXT_BYTES_MAX);
    claim->worker = bel__arena_copy(&operation->arena, worker); /* outlives a withdrawal */
    if (claiming == NULL || claim->worker.data == NULL ||
        bel__entropy_fill(operation->node->entropy, claiming->secret, sizeof claiming->secret)) {
        return bel__operation_refuse(operation, BEL_ENOMEM, "memory or entropy has run out");
    }
    claiming->wait_end_ns = wait_end(operation);
    claiming->first = claiming->left = 0;
    claiming->is_parked = false;
    claiming->err = 0;
    for (size_t i = 0; i < operation->topics_count; i++) {
        struct part *part = &claiming->parts[i];
        *part = (struct part){.operation = operation, .topic = operation->topics[i]};
    }
    operation->claiming = claiming;
    return 0;
}

/* --- What has come --- */

static size_t delivered(const struct bel_operation *operation)
{
    size_t count = 0;
    for (size_t i = 0; i < operation->topics_count; i++) {
        count += operation->claiming->parts[i].count;
    }
    return count;
}

/* Gives back a lease that nobody waits for any more. The server ends it in any case. */
static void given_back(struct bel_item *item, const struct bel_results *results)
{
    struct part *part = BEL_CONTAINER_OF(item, struct part, item);
    (void)results;
    bel__operation_answer(part->operation);
}

/* A claim that was withdrawn while a call was under way: a parked one, which asks one topic. */
static void give_back(struct bel_operation *operation)
{
    struct part *part = operation->claiming->parts;
    struct bel_token token;
    while (part->count == 0) {
        part++;
    }
    struct bel_batch *batch = bel__batch_join(operation->node, part->topic, BEL_SCRIPT_RELEASE);
    if (batch == NULL) {
        bel__operation_answer(operation);
        return;
    }
    part->item.answered = given_back;
    bel__batch_add(batch, &part->item, part->count);
    for (size_t i = 0; i < part->count; i++) {
        bool is_token = bel__token_parse(part->deliveries[i].token, &token);
        assert(is_token);
        bel__batch_text(batch, (struct bel_view){token.prefix, sizeof token.prefix});
        bel__batch_text(batch, (struct bel_view){token.id, token.id_bytes});
        bel__batch_text(batch, (struct bel_view){token.secret, sizeof token.secret});
        bel__batch_word(batch, "");
        (void)is_token;
    }
    bel__node_mark(operation->node, part->topic);
}

/* Puts the deliveries of all parts in turns, in the order of the topics. */
static int collect(struct bel_operation *operation)
{
    struct bel_claiming *claiming = operation->claiming;
    size_t total = delivered(operation), count = 0, topics = operation->topics_count;
    struct bel_delivery *all = bel__arena_take(&operation->arena, (total + 1) * sizeof *all);
    if (all == NULL) return BEL_ENOMEM;
    for (size_t round = 0; count < total; round++) {
        for (size_t i = 0; i < topics; i++) {
            const struct part *part = &claiming->parts[(claiming->first + i) % topics];
            if (round < part->count) {
                all[count++] = part->deliveries[round];
                part->topic->served = ++operation->node->served;
            }
        }
    }
    operation->reply.deliveries.items = all;
    operation->reply.deliveries.count = total;
    return 0;
}

/* Parks a claim, or answers that there is nothing. */
static void park(struct bel_operation *operation)
{
    struct bel_claiming *claiming = operation->claiming;
    bool is_over = claiming->wait_end_ns <= operation->node->now.real.ns;
    if (operation->request == NULL || is_over) {
        bel__operation_answer(operation);
        return;
    }
    if (claiming->is_parked) return;
    claiming->is_parked = true;
    for (size_t i = 0; i < operation->topics_count; i++) {
        operation->topics[i]->parked++;
        if (operation->holds) operation->topics[i]->held--;
    }
    operation->holds = false;
    if (bel__link_is_linked(&operation->link)) bel__link_remove(&operation->link);
    bel__list_append(&operation->node->parked, &operation->link);
}

static void unpark(struct bel_operation *operation)
{
    if (!operation->claiming->is_parked) return;
    operation->claiming->is_parked = false;
    for (size_t i = 0; i < operation->topics_count; i++) {
        assert(operation->topics[i]->parked > 0);
        operation->topics[i]->parked--;
    }
}

/* All parts have their answers. */
static void end(struct bel_operation *operation)
{
    struct bel_claiming *claiming = operation->claiming;
    size_t total = delivered(operation);
    if (total == 0 && claiming->err == 0) {
        park(operation);
        return;
    }
    if (total == 0 && claiming->is_parked && claiming->err == BEL_EIO) {
        claiming->err = 0; /* the connection broke: wait on */
        return;
    }
    unpark(operation);
    if (total == 0) {
        bel__operation_fail(operation, claiming->err, claiming->why);
        return;
    }
    if (operation->request == NULL) {
        give_back(operation);
        return;
    }
    int err = collect(operation);
    if (err) {
        bel__operation_fail(operation, err, NULL);
        return;
    }
    bel__operation_answer(operation);
}

static int read_deliveries(struct part *part, const struct bel_value *list)
{
    struct bel_operation *operation = part->operation;
    if (list->type != BEL_VALUE_LIST) return BEL_EIO;
    struct bel_delivery *deliveries =
        bel__arena_take(&operation->arena, (list->count + 1) * sizeof *deliveries);
    if (deliveries == NULL) return BEL_ENOMEM;
    for (size_t i = 0; i < list->count; i++) {
        int err = bel__reading_delivery(operation, part->topic->name, operation->claiming->secret,
                                        &list->items[i], &deliveries[i]);
        if (err) return err;
    }
    part->deliveries = deliveries;
    part->count = list->count;
    return 0;
}

/* Copies what points into the reply, because other parts are still to come. */
static int keep(struct part *part)
{
    struct bel_arena *arena = &part->operation->arena;
    for (size_t i = 0; i < part->count; i++) {
        struct bel_delivery *delivery = &part->deliveries[i];
        struct bel_header *headers =
            bel__arena_take(arena, (delivery->headers_count + 1) * sizeof *headers);
        if (headers == NULL) return BEL_ENOMEM;
        delivery->id = bel__arena_copy(arena, delivery->id);
        delivery->payload = bel__arena_copy(arena, delivery->payload);
        delivery->correlation = bel__arena_copy(arena, delivery->correlation);
        if (!delivery->id.data || !delivery->payload.data || !delivery->correlation.data) {
            return BEL_ENOMEM;
        }
        for (size_t k = 0; k < delivery->headers_count; k++) {
            headers[k].name = bel__arena_copy(arena, delivery->headers[k].name);
            headers[k].value = bel__arena_copy(arena, delivery->headers[k].value);
            if (!headers[k].name.data || !headers[k].value.data) return BEL_ENOMEM;
        }
        delivery->headers = headers;
    }
    return 0;
}

static void note_error(struct bel_claiming *claiming, int err, const char *why)
{
    if (claiming->err) return;
    claiming->err = err;
    (void)snprintf(claiming->why, sizeof claiming->why, "%s", why != NULL ? why : "");
}

static void claimed(struct bel_item *item, const struct bel_results *results)
{
    struct part *part = BEL_CONTAINER_OF(item, struct part, item);
    struct bel_operation *operation = part->operation;
    struct bel_claiming *claiming = operation->claiming;
    int err = results->err;
    if (err == 0) err = read_deliveries(part, &results->items[0]);
    if (err == 0 && claiming->left > 1) err = keep(part);
    if (err) note_error(claiming, err, results->why);
    /* What has happened since the claim was sent may have come too late for it. */
    if (part->count == 0 && part->order < part->topic->marks) {
        bel__node_mark(operation->node, part->topic);
    }
    assert(claiming->left > 0);
    if (--claiming->left == 0) end(operation);
}

/* --- Sending --- */

static void send_claim(struct part *part, uint64_t count, size_t bytes_max)
{
    struct bel_operation *operation = part->operation;
    const struct bel_claim *claim = &operation->command.claim;
    struct bel_claiming *claiming = operation->claiming;
    struct bel_batch *batch = bel__batch_join(operation->node, part->topic, BEL_SCRIPT_CLAIM);
    if (batch == NULL) {
        note_error(claiming, BEL_ENOMEM, NULL);
        return;
    }
    part->item.answered = claimed;
    part->count = 0;
    part->order = part->topic->marks;
    claiming->left++;
    bel__batch_add(batch, &part->item, 1);
    bel__batch_number(batch, (int64_t)count);
    bel__batch_number(batch, (int64_t)claim->lease_ms);
    bel__batch_text(batch, (struct bel_view){claiming->secret, sizeof claiming->secret});
    bel__batch_text(batch, claim->worker);
    bel__batch_number(batch, (int64_t)bytes_max);
}

/* Sets the index of the first topic to serve: after the one that was served last. */
static void find_first(struct bel_operation *operation)
{
    uint64_t last = 0;
    operation->claiming->first = 0;
    for (size_t i = 0; i < operation->topics_count; i++) {
        if (operation->topics[i]->served <= last) continue;
        last = operation->topics[i]->served;
        operation->claiming->first = (i + 1) % operation->topics_count;
    }
}

/* Shares the count of the claim among the topics, one at a time in turns. */
static void share(struct bel_operation *operation)
{
    struct bel_claiming *claiming = operation->claiming;
    size_t topics = operation->topics_count, empty = 0;
    uint64_t left = operation->command.claim.count;
    for (size_t at = claiming->first; left > 0 && empty < topics; at = (at + 1) % topics) {
        struct part *part = &claiming->parts[at];
        if (part->share == part->ready) {
            empty++;
            continue;
        }
        empty = 0;
        part->share++;
        left--;
    }
}

static void counted(struct bel_item *item, const struct bel_results *results)
{
    struct part *part = BEL_CONTAINER_OF(item, struct part, item);
    struct bel_operation *operation = part->operation;
    struct bel_claiming *claiming = operation->claiming;
    if (results->err) note_error(claiming, results->err, results->why);
    part->ready = results->err ? 0 : (uint64_t)results->items[0].number;
    part->share = 0;
    assert(claiming->left > 0);
    if (--claiming->left > 0) return;
    find_first(operation);
    share(operation);
    for (size_t i = 0; i < operation->topics_count; i++) {
        if (claiming->parts[i].share == 0) continue;
        send_claim(&claiming->parts[i], claiming->parts[i].share, LOAD_BYTES_MAX);
    }
    if (claiming->left == 0) end(operation);
}

static void begin(struct bel_operation *operation)
{
    struct bel_claiming *claiming = operation->claiming;
    if (operation->topics_count == 1) {
        send_claim(&claiming->parts[0], operation->command.claim.count, LOAD_BYTES_MAX);
        if (claiming->left == 0) end(operation);
        return;
    }
    bel__operation_hold(operation);
    for (size_t i = 0; i < operation->topics_count; i++) {
        struct part *part = &claiming->parts[i];
        struct bel_batch *batch = bel__batch_alone(operation->node, part->topic, BEL_SCRIPT_COUNT);
        if (batch == NULL) break;
        part->item.answered = counted;
        bel__batch_add(batch, &part->item, 1);
        claiming->left++;
    }
    if (claiming->left == 0) bel__operation_fail(operation, BEL_ENOMEM, NULL);
}

const struct bel_redis_verb bel__redis_claim = {prepare, begin};

/* --- Parked claims --- */

static struct part *part_of(struct bel_operation *operation, const struct bel_redis_topic *topic)
{
    for (size_t i = 0; i < operation->topics_count; i++) {
        if (operation->topics[i] == topic) return &operation->claiming->parts[i];
    }
    return NULL;
}

void bel__claims_serve(struct bel_redis *node, struct bel_redis_topic *topic)
{
    uint64_t asked = 0;
    if (bel__link_is_linked(&topic->dirty)) bel__link_remove(&topic->dirty);
    if (topic->parked == 0) return;
    struct bel_link *link = bel__list_first(&node->parked);
    for (; link != NULL && asked < SERVED_MAX; link = bel__list_next(&node->parked, link)) {
        struct bel_operation *operation = BEL_CONTAINER_OF(link, struct bel_operation, link);
        struct part *part = part_of(operation, topic);
        if (part == NULL || operation->claiming->left > 0) continue;
        for (size_t i = 0; i < operation->topics_count; i++) {
            operation->claiming->parts[i].count = 0;
        }
        operation->claiming->err = 0;
        send_claim(part, operation->command.claim.count, LOAD_BYTES_MAX);
        asked += operation->command.claim.count;
    }
}

void bel__claims_serve_marked(struct bel_redis *node)
{
    for (struct bel_link *link; (link = bel__list_first(&node->dirty)) != NULL;) {
        bel__claims_serve(node, BEL_CONTAINER_OF(link, struct bel_redis_topic, dirty));
    }
}

void bel__claims_end_waits(struct bel_redis *node)
{
    struct bel_link *link = bel__list_first(&node->parked), *next;
    for (; link != NULL; link = next) {
        struct bel_operation *operation = BEL_CONTAINER_OF(link, struct bel_operation, link);
        next = bel__list_next(&node->parked, link);
        if (operation->claiming->left > 0) continue; /* ends when it is answered */
        if (operation->claiming->wait_end_ns > node->now.real.ns) continue;
        unpark(operation);
        bel__operation_answer(operation);
    }
}

bool bel__claims_withdraw(struct bel_redis *node, struct bel_request *request)
{
    struct bel_link *link = bel__list_first(&node->parked);
    for (; link != NULL; link = bel__list_next(&node->parked, link)) {
        struct bel_operation *operation = BEL_CONTAINER_OF(link, struct bel_operation, link);
        if (operation->request != request) continue;
        operation->request = NULL;
        if (operation->claiming->left > 0) return true; /* gives back what it gets */
        unpark(operation);
        bel__operation_answer(operation);
        return true;
    }
    return false;
}

struct bel_mono bel__claims_next(const struct bel_redis *node)
{
    struct bel_mono first = {BEL_NEVER};
    struct bel_link *link = bel__list_first(&node->parked);
    for (; link != NULL; link = bel__list_next(&node->parked, link)) {
        struct bel_operation *operation = BEL_CONTAINER_OF(link, struct bel_operation, link);
        uint64_t end_ns = operation->claiming->wait_end_ns;
        if (end_ns < first.ns) first.ns = end_ns;
    }
    return first;
}
