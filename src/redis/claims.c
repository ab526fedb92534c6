/* SPDX-License-Identifier: MIT */

/*
 * CLAIM. A claim of one partition is one call. A claim of several topics asks each partition first
 * how much it has, shares its count among the topics by turns, and then claims exactly the share of
 * each: so it never holds more than it returns. A claim of one topic with several partitions claims
 * from the next one in turn, and asks the others in this way if that was not enough.
 *
 * A claim that finds nothing and may wait is parked in the node. It is tried again when something
 * has happened in one of its topics (bel__node_mark), in the order in which the claims came.
 */
#include "redis/faststream.h"
#include "redis/operation.h"
#include "redis/reading.h"

#include "core/units.h"
#include "core/utf8.h"

#include <assert.h>
#include <stdio.h>

enum {
    TOPICS_MAX = 100,
    SERVED_MAX = 1000,  /* deliveries to parked claims in one call */
    DIRECT_WEIGHT = 10, /* of one delivery, if that of a claim that waits is 1 */
};

/* What a claim does in one partition of its topics. */
struct part {
    struct bel_item item;
    struct bel_operation *operation;
    struct bel_redis_partition *partition;
    bool is_shared; /* it had the layout faststream when the claim was sent */
    uint64_t ready; /* timers that a claim would find */
    uint64_t share; /* of these, how many to claim */
    uint64_t order; /* of the partition's marks when the claim was sent */
    struct bel_delivery *deliveries;
    size_t count;
};

struct bel_claiming {
    uint8_t secret[BEL_TOKEN_SECRET_BYTES];
    uint64_t wait_end_ns; /* real time */
    size_t first;         /* index of the topic to serve first */
    size_t left;          /* parts without an answer */
    struct part *parts;   /* of each topic its partitions, from the next one in turn on */
    size_t parts_count;
    size_t starts[TOPICS_MAX + 1]; /* index of the first part of each topic */
    bool is_parked;
    bool asks_rest; /* the other partitions, if the first one does not have enough */
    int err;        /* the first error */
    char why[BEL_REPLY_WHY_BYTES];
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
    struct bel_claiming *claiming = bel__arena_take(&operation->arena, sizeof *claiming);
    struct bel_view worker = bel__utf8_head(claim->worker, BEL_TEXT_BYTES_MAX);
    claim->worker = bel__arena_copy(&operation->arena, worker); /* outlives a withdrawal */
    if (claiming == NULL || claim->worker.data == NULL ||
        bel__entropy_fill(operation->node->entropy, claiming->secret, sizeof claiming->secret)) {
        return bel__operation_refuse(operation, BEL_ENOMEM, "memory or entropy has run out");
    }
    claiming->wait_end_ns = wait_end(operation);
    claiming->first = claiming->left = 0;
    claiming->is_parked = claiming->asks_rest = false;
    claiming->err = 0;
    claiming->parts_count = 0;
    operation->claiming = claiming;
    return 0;
}

/* Lists the partitions of all topics. Returns 0 or BEL_ENOMEM. */
static int list_parts(struct bel_operation *operation)
{
    struct bel_claiming *claiming = operation->claiming;
    size_t count = 0, topics = operation->topics_count;
    for (size_t i = 0; i < topics; i++) {
        claiming->starts[i] = count;
        count += operation->topics[i]->count;
    }
    claiming->starts[topics] = count;
    claiming->parts_count = 0;
    claiming->parts = bel__arena_take(&operation->arena, count * sizeof claiming->parts[0]);
    if (claiming->parts == NULL) return BEL_ENOMEM;
    for (size_t i = 0; i < topics; i++) {
        const struct bel_redis_topic *topic = operation->topics[i];
        for (uint32_t k = 0; k < topic->count; k++) {
            claiming->parts[claiming->parts_count++] =
                (struct part){.operation = operation,
                              .partition = topic->partitions[(topic->turn + k) % topic->count]};
        }
    }
    return 0;
}

/* --- What has come --- */

static size_t delivered(const struct bel_operation *operation)
{
    size_t count = 0;
    for (size_t i = 0; i < operation->claiming->parts_count; i++) {
        count += operation->claiming->parts[i].count;
    }
    return count;
}

/* Scripts for topics of each layout. */
static const enum bel_script_name claims[] = {BEL_SCRIPT_CLAIM, BEL_SCRIPT_FASTSTREAM_CLAIM},
                                  counts[] = {BEL_SCRIPT_COUNT, BEL_SCRIPT_FASTSTREAM_COUNT},
                                  releases[] = {BEL_SCRIPT_RELEASE, BEL_SCRIPT_FASTSTREAM_RELEASE};

static enum bel_script_name script_of(struct part *part, const enum bel_script_name *scripts)
{
    part->is_shared = part->partition->topic->layout != NULL;
    return scripts[part->is_shared];
}

/* Gives back a lease that nobody waits for any more. The server ends it in any case. */
static void given_back(struct bel_item *item, const struct bel_results *results)
{
    struct part *part = BEL_CONTAINER_OF(item, struct part, item);
    (void)results;
    bel__operation_answer(part->operation);
}

static void add_release(struct bel_batch *batch, const struct part *part, struct bel_view text)
{
    struct bel_token token;
    struct bel_faststream_token shared;
    bool is_token = part->is_shared ? bel__faststream_token_parse(text, &shared)
                                    : bel__lease_token_parse(text, &token);
    assert(is_token);
    (void)is_token;
    if (part->is_shared) {
        bel__batch_text(batch, (struct bel_view){shared.secret, sizeof shared.secret});
        bel__batch_number(batch, 0);
        bel__batch_word(batch, "released");
        return;
    }
    bel__batch_text(batch, (struct bel_view){token.prefix, sizeof token.prefix});
    bel__batch_text(batch, (struct bel_view){token.id, token.id_bytes});
    bel__batch_text(batch, (struct bel_view){token.secret, sizeof token.secret});
    bel__batch_word(batch, "");
}

/* A claim that was withdrawn while a call was under way: a parked one, which asks one topic. */
static void give_back(struct bel_operation *operation)
{
    struct part *part = operation->claiming->parts;
    while (part->count == 0) {
        part++;
    }
    struct bel_batch *batch =
        bel__batch_join(operation->node, part->partition, releases[part->is_shared]);
    if (batch == NULL) {
        bel__operation_answer(operation);
        return;
    }
    part->item.answered = given_back;
    bel__batch_item(batch, &part->item, part->count);
    for (size_t i = 0; i < part->count; i++) {
        add_release(batch, part, part->deliveries[i].token);
    }
    bel__node_mark(operation->node, part->partition);
}

/* Returns a delivery from a topic by its number among all of the topic; NULL: it has fewer. */
static const struct bel_delivery *take_nth(struct bel_operation *operation, size_t topic,
                                           size_t nth)
{
    struct bel_claiming *claiming = operation->claiming;
    for (size_t i = claiming->starts[topic]; i < claiming->starts[topic + 1]; i++) {
        struct part *part = &claiming->parts[i];
        if (nth < part->count) {
            struct bel_redis_topic *its = part->partition->topic;
            its->turn = (part->partition->index + 1U) % its->count;
            its->served = ++operation->node->served;
            return &part->deliveries[nth];
        }
        nth -= part->count;
    }
    return NULL;
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
            size_t topic = (claiming->first + i) % topics;
            const struct bel_delivery *next = take_nth(operation, topic, round);
            if (next != NULL) all[count++] = *next;
        }
    }
    operation->reply.deliveries.items = all;
    operation->reply.deliveries.count = total;
    return 0;
}

/* Takes a claim out of those that wait, if it does: nobody serves it any more. */
static void unpark(struct bel_operation *operation)
{
    if (!operation->claiming->is_parked) return;
    operation->claiming->is_parked = false;
    for (size_t i = 0; i < operation->topics_count; i++) {
        struct bel_redis_topic *topic = operation->topics[i];
        assert(topic->parked > 0);
        if (--topic->parked == 0) bel__link_remove(&topic->awaited);
    }
    bel__link_remove(&operation->link);
    bel__list_append(&operation->node->begun, &operation->link);
}

/* Parks a claim, or answers that there is nothing. */
static void park(struct bel_operation *operation)
{
    struct bel_claiming *claiming = operation->claiming;
    bool is_over = claiming->wait_end_ns <= operation->node->now.real.ns;
    if (operation->request == NULL || is_over) {
        unpark(operation);
        bel__operation_answer(operation);
        return;
    }
    /* What has happened since a part was asked may have come too late for it. */
    for (size_t i = 0; i < claiming->parts_count; i++) {
        struct part *part = &claiming->parts[i];
        if (part->order < part->partition->marks) bel__node_mark(operation->node, part->partition);
    }
    if (claiming->is_parked) return;
    claiming->is_parked = true;
    for (size_t i = 0; i < operation->topics_count; i++) {
        struct bel_redis_topic *topic = operation->topics[i];
        if (topic->parked++ == 0) bel__list_append(&operation->node->awaited, &topic->awaited);
        if (operation->holds) topic->held--;
    }
    operation->holds = false;
    if (bel__link_is_linked(&operation->link)) bel__link_remove(&operation->link);
    bel__list_append(&operation->node->parked, &operation->link);
}

/* All parts have their answers. */
static void end(struct bel_operation *operation)
{
    struct bel_claiming *claiming = operation->claiming;
    size_t total = delivered(operation);
    if (total == 0 && operation->has_moved) {
        unpark(operation);
        bel__operation_restart(operation);
        return;
    }
    if (total == 0 && claiming->err == 0) {
        park(operation);
        return;
    }
    bool is_wanted = operation->request != NULL;
    if (total == 0 && claiming->is_parked && is_wanted && claiming->err == BEL_EIO) {
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

/* Reads the deliveries of a result. Those of a topic of the layout faststream are a list each. */
static int read_deliveries(struct part *part, const struct bel_value *list)
{
    struct bel_operation *operation = part->operation;
    const uint8_t *secret = operation->claiming->secret;
    struct bel_view topic = part->partition->topic->name;
    struct bel_claimed claimed = {.count = list->count};
    int err = list->type == BEL_VALUE_LIST ? 0 : BEL_EIO;
    if (err == 0 && !part->is_shared) err = bel__reading_claimed(list, &claimed);
    size_t count = claimed.count;
    if (err || count > operation->command.claim.count) return BEL_EIO;
    struct bel_delivery *deliveries =
        bel__arena_take(&operation->arena, (count + 1) * sizeof *deliveries);
    if (deliveries == NULL) return BEL_ENOMEM;
    for (size_t i = 0; i < count; i++) {
        const struct bel_value *item = &list->items[i];
        err = part->is_shared
                  ? bel__faststream_delivery(operation, topic, secret, i, item, &deliveries[i])
                  : bel__reading_delivery(operation, topic, secret, &claimed, &deliveries[i]);
        if (err) return err;
    }
    part->deliveries = deliveries;
    part->count = count;
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

static void ask_rest(struct bel_operation *operation, struct part *first);

static void claimed(struct bel_item *item, const struct bel_results *results)
{
    struct part *part = BEL_CONTAINER_OF(item, struct part, item);
    struct bel_operation *operation = part->operation;
    struct bel_claiming *claiming = operation->claiming;
    int err = results->err;
    if (err == 0) err = read_deliveries(part, &results->items[0]);
    if (err == 0 && claiming->left > 1) err = keep(part);
    if (results->is_moved) operation->has_moved = true;
    if (err && !results->is_moved) note_error(claiming, err, results->why);
    if (part->is_shared) {
        bel__faststream_polled(operation->node, part->partition->topic, err, part->count > 0);
    }
    /* There may be more for parked claims that were not asked for. */
    if (part->count > 0 && part->partition->has_unserved) {
        bel__node_mark(operation->node, part->partition);
    }
    assert(claiming->left > 0);
    if (--claiming->left > 0) return;
    if (claiming->asks_rest && !operation->has_moved) {
        ask_rest(operation, part);
    } else {
        end(operation);
    }
}

/* --- Sending --- */

static void send_claim(struct part *part, uint64_t count, size_t bytes_max)
{
    struct bel_operation *operation = part->operation;
    const struct bel_claim *claim = &operation->command.claim;
    struct bel_claiming *claiming = operation->claiming;
    /* Most claims that wait find less than they want. */
    uint64_t weight = claiming->is_parked ? count : count * DIRECT_WEIGHT;
    struct bel_batch *batch =
        bel__batch_join_weighing(operation->node, part->partition, script_of(part, claims), weight);
    if (batch == NULL) {
        note_error(claiming, BEL_ENOMEM, NULL);
        return;
    }
    part->item.answered = claimed;
    part->count = 0;
    part->order = part->partition->marks;
    claiming->left++;
    bel__batch_item(batch, &part->item, 1);
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

/* Returns the first part of a topic of which more can be claimed; NULL: there is none. */
static struct part *next_of(const struct bel_claiming *claiming, size_t topic)
{
    for (size_t i = claiming->starts[topic]; i < claiming->starts[topic + 1]; i++) {
        struct part *part = &claiming->parts[i];
        if (part->share < part->ready) return part;
    }
    return NULL;
}

/* Shares what is left of the count of the claim among the topics, one at a time in turns, and among
 * the partitions of each in order. */
static void share(struct bel_operation *operation)
{
    struct bel_claiming *claiming = operation->claiming;
    size_t topics = operation->topics_count, empty = 0;
    uint64_t left = operation->command.claim.count - delivered(operation);
    for (size_t at = claiming->first; left > 0 && empty < topics; at = (at + 1) % topics) {
        struct part *part = next_of(claiming, at);
        if (part == NULL) {
            empty++;
            continue;
        }
        empty = 0;
        part->share++;
        left--;
    }
}

static size_t load_of(const struct part *part)
{
    size_t bytes = 0;
    for (size_t i = 0; i < part->count; i++) {
        bytes += part->deliveries[i].payload.bytes;
    }
    return bytes;
}

/* Claims the shares of all parts. What was claimed before, and the parts together, have about the
 * bytes of one claim. */
static void send_shares(struct bel_operation *operation)
{
    struct bel_claiming *claiming = operation->claiming;
    size_t sharing = 0, load = 0;
    for (size_t i = 0; i < claiming->parts_count; i++) {
        sharing += claiming->parts[i].share > 0;
        load += load_of(&claiming->parts[i]);
    }
    size_t left = load < BEL_REDIS_LOAD_BYTES_MAX ? BEL_REDIS_LOAD_BYTES_MAX - load : 0;
    for (size_t i = 0; i < claiming->parts_count; i++) {
        struct part *part = &claiming->parts[i];
        if (part->share > 0) send_claim(part, part->share, left / sharing);
    }
}

static void counted(struct bel_item *item, const struct bel_results *results)
{
    struct part *part = BEL_CONTAINER_OF(item, struct part, item);
    struct bel_operation *operation = part->operation;
    struct bel_claiming *claiming = operation->claiming;
    if (results->is_moved) operation->has_moved = true;
    int err = results->err;
    if (err == 0 && !bel__result_is_number(&results->items[0], 0, INT64_MAX)) err = BEL_EIO;
    if (err && !results->is_moved) note_error(claiming, err, results->why);
    part->ready = err ? 0 : (uint64_t)results->items[0].number;
    part->share = 0;
    assert(claiming->left > 0);
    if (--claiming->left > 0) return;
    find_first(operation);
    if (!operation->has_moved) share(operation);
    send_shares(operation);
    if (claiming->left == 0) end(operation);
}

/* Asks parts how much they have. */
static void count_parts(struct bel_operation *operation, size_t first)
{
    struct bel_claiming *claiming = operation->claiming;
    for (size_t i = first; i < claiming->parts_count; i++) {
        struct part *part = &claiming->parts[i];
        struct bel_batch *batch =
            bel__batch_alone(operation->node, part->partition, script_of(part, counts));
        if (batch == NULL) break;
        part->item.answered = counted;
        part->order = part->partition->marks;
        bel__batch_item(batch, &part->item, 1);
        claiming->left++;
    }
}

/* The first partition in turn has given less than the claim wants. */
static void ask_rest(struct bel_operation *operation, struct part *first)
{
    struct bel_claiming *claiming = operation->claiming;
    claiming->asks_rest = false;
    bool is_met = first->count == operation->command.claim.count || claiming->err != 0 ||
                  load_of(first) >= BEL_REDIS_LOAD_BYTES_MAX;
    first->share = first->ready = 0;
    if (!is_met && keep(first) == 0) count_parts(operation, 1);
    if (claiming->left == 0) end(operation);
}

static void begin(struct bel_operation *operation)
{
    struct bel_claiming *claiming = operation->claiming;
    claiming->err = list_parts(operation);
    if (claiming->err == 0 && operation->topics_count == 1) {
        claiming->asks_rest = claiming->parts_count > 1;
        send_claim(&claiming->parts[0], operation->command.claim.count, BEL_REDIS_LOAD_BYTES_MAX);
        if (claiming->left == 0) end(operation);
        return;
    }
    bel__operation_hold(operation);
    if (claiming->err == 0) count_parts(operation, 0);
    if (claiming->left == 0) bel__operation_fail(operation, BEL_ENOMEM, NULL);
}

const struct bel_redis_verb bel__redis_claim = {prepare, begin};

/* --- Parked claims --- */

/* Returns the part of a claim that asks a partition; one that is new to it takes the place of
 * another of its topic. NULL: the claim does not ask this topic. */
static struct part *part_of(struct bel_operation *operation, struct bel_redis_partition *partition)
{
    struct bel_claiming *claiming = operation->claiming;
    for (size_t i = 0; i < operation->topics_count; i++) {
        if (operation->topics[i] != partition->topic) continue;
        for (size_t k = claiming->starts[i]; k < claiming->starts[i + 1]; k++) {
            if (claiming->parts[k].partition == partition) return &claiming->parts[k];
        }
        struct part *first = &claiming->parts[claiming->starts[i]];
        first->partition = partition;
        return first;
    }
    return NULL;
}

void bel__parked_serve(struct bel_redis *node, struct bel_redis_partition *partition)
{
    uint64_t asked = 0;
    if (bel__link_is_linked(&partition->dirty)) bel__link_remove(&partition->dirty);
    if (partition->topic->parked == 0) return;
    struct bel_link *link = bel__list_first(&node->parked);
    for (; link != NULL && asked < SERVED_MAX; link = bel__list_next(&node->parked, link)) {
        struct bel_operation *operation = BEL_CONTAINER_OF(link, struct bel_operation, link);
        bool is_busy = operation->claiming->left > 0;
        struct part *part = is_busy ? NULL : part_of(operation, partition);
        if (part == NULL) continue;
        for (size_t i = 0; i < operation->claiming->parts_count; i++) {
            operation->claiming->parts[i].count = 0;
        }
        operation->claiming->err = 0;
        send_claim(part, operation->command.claim.count, BEL_REDIS_LOAD_BYTES_MAX);
        asked += operation->command.claim.count;
    }
    partition->has_unserved = link != NULL;
}

void bel__parked_serve_marked(struct bel_redis *node)
{
    for (struct bel_link *link; (link = bel__list_first(&node->dirty)) != NULL;) {
        bel__parked_serve(node, BEL_CONTAINER_OF(link, struct bel_redis_partition, dirty));
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
