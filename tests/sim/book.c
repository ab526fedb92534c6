/* SPDX-License-Identifier: MIT */

/*
 * What clients can know without a model. For every id there is an entry, with what is certain
 * and what is possible: an answer makes things certain, a request without an answer possible.
 *
 *     present   it was answered that it is there, and nothing was asked since that could end it
 *     ended     it was answered that it is done or cancelled, and nobody has asked for it since
 *     failures  between so many and so many
 *     lease     nobody can have ended it before this open time
 */
#include "world.h"

#include "engine/engine.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ENTRIES_MAX = 4096,
    TOKENS_MAX = 1 << 14,
};

struct entry {
    char topic[TOPIC_BYTES], id[BEL_ID_BYTES + 1];
    bool is_present;
    bool is_ended;
    uint64_t fails_min, fails_max;
    bool has_boot_due, has_wall_due; /* never before */
    uint64_t boot_due_ns, opens;
    int64_t wall_due_ms;
    bool is_leased;
    uint64_t lease_end_ms; /* open time */
    size_t handed;
    bool is_task; /* when it was delivered last */
};

struct book {
    struct world *world;
    struct entry *entries;
    size_t count;
    uint64_t *tokens; /* hashes of all there were */
    size_t tokens_count;
    bool has_retention[TOPICS]; /* what has ended may be gone */
};

struct book *book_create(struct world *world)
{
    struct book *book = calloc(1, sizeof *book);
    if (book == NULL) abort();
    book->world = world;
    book->entries = calloc(ENTRIES_MAX, sizeof *book->entries);
    book->tokens = calloc(TOKENS_MAX, sizeof *book->tokens);
    if (book->entries == NULL || book->tokens == NULL) abort();
    return book;
}

void book_destroy(struct book *book)
{
    free(book->entries);
    free(book->tokens);
    free(book);
}

static bool is_text(struct bel_view view, const char *text)
{
    return strlen(text) == view.bytes && memcmp(text, view.data, view.bytes) == 0;
}

static size_t topic_index(struct bel_view topic)
{
    for (size_t i = 0; i < TOPICS; i++) {
        if (is_text(topic, topic_name(i))) return i;
    }
    return TOPICS;
}

/* The entry of an id, which is made if it must be; NULL if there is no room. */
static struct entry *find(struct book *book, struct bel_view topic, struct bel_view id, bool makes)
{
    for (size_t i = 0; i < book->count; i++) {
        struct entry *entry = &book->entries[i];
        if (is_text(topic, entry->topic) && is_text(id, entry->id)) return entry;
    }
    if (!makes || book->count == ENTRIES_MAX || id.bytes == 0) return NULL;
    if (id.bytes >= sizeof book->entries->id || topic.bytes >= TOPIC_BYTES) return NULL;
    struct entry *entry = &book->entries[book->count++];
    *entry = (struct entry){.fails_max = UINT64_MAX};
    memcpy(entry->topic, topic.data, topic.bytes);
    memcpy(entry->id, id.data, id.bytes);
    return entry;
}

static bool is_occurrence(const struct entry *entry)
{
    return strchr(entry->id, '@') != NULL;
}

/* --- what is asked --- */

/* Anything may have become of it. */
static void doubt(struct entry *entry)
{
    if (entry == NULL) return;
    entry->is_present = entry->is_ended = entry->is_leased = false;
    entry->has_boot_due = entry->has_wall_due = false;
    entry->fails_min = 0;
    entry->fails_max = UINT64_MAX;
}

static void doubt_topic(struct book *book, struct bel_view topic)
{
    for (size_t i = 0; i < book->count; i++) {
        if (is_text(topic, book->entries[i].topic)) doubt(&book->entries[i]);
    }
}

static void doubt_occurrences(struct book *book, struct bel_view topic, struct bel_view plan)
{
    if (plan.bytes == 0) return; /* one that is to be made has none yet */
    for (size_t i = 0; i < book->count; i++) {
        struct entry *entry = &book->entries[i];
        if (!is_occurrence(entry) || !is_text(topic, entry->topic)) continue;
        if (strncmp(entry->id, plan.data, plan.bytes) != 0 || entry->id[plan.bytes] != '@') {
            continue;
        }
        doubt(entry);
    }
}

/* Tasks of a job, and of those that may follow it, may begin anew. */
static void doubt_job(struct book *book, const char *text)
{
    const char *id = text + strlen("{\"id\":\"");
    for (size_t i = 0; i < book->count; i++) {
        struct entry *entry = &book->entries[i];
        if (strncmp(entry->id, id, 2) != 0 || strchr(entry->id, '/') == NULL) continue;
        doubt(entry);
    }
}

/* The tasks of a job lose their leases. */
static void doubt_leases(struct book *book, struct bel_view id)
{
    for (size_t i = 0; i < book->count; i++) {
        struct entry *entry = &book->entries[i];
        if (strncmp(entry->id, id.data, id.bytes) == 0) entry->is_leased = false;
    }
}

static struct entry *entry_of_token(struct book *book, const struct order *order, size_t place)
{
    if (order->handed[place] == SIZE_MAX) return NULL;
    const struct handed *handed = book->world->handed[order->handed[place]];
    return find(book, view_of(handed->topic), view_of(handed->id), false);
}

static void submitted_token(struct book *book, const struct order *order, enum bel_verb verb)
{
    size_t count = verb == BEL_VERB_ACK ? order->requests[0].command.ack.tokens_count : 1;
    for (size_t i = 0; i < count; i++) {
        struct entry *entry = entry_of_token(book, order, i);
        if (entry == NULL || entry->handed != order->handed[i]) continue; /* it is stale */
        entry->is_leased = false;
        if (verb == BEL_VERB_ACK) entry->is_present = false;
        if (verb == BEL_VERB_EXTEND) continue;
        entry->has_boot_due = entry->has_wall_due = false;
        if (verb == BEL_VERB_FAIL && entry->fails_max < UINT64_MAX) entry->fails_max++;
    }
}

static void submitted(struct book *book, const struct order *order)
{
    const struct bel_command *command = &order->requests[ENGINE_SIDE].command;
    size_t topic;
    switch (command->verb) {
    case BEL_VERB_SCHEDULE:
        doubt(find(book, command->schedule.topic, command->schedule.id, false));
        doubt_occurrences(book, command->schedule.topic, command->schedule.id);
        break;
    case BEL_VERB_CANCEL:
        doubt(find(book, command->cancel.topic, command->cancel.ids[0], false));
        doubt_occurrences(book, command->cancel.topic, command->cancel.ids[0]);
        break;
    case BEL_VERB_RESCHEDULE:
        doubt(find(book, command->reschedule.topic, command->reschedule.id, false));
        doubt_occurrences(book, command->reschedule.topic, command->reschedule.id);
        break;
    case BEL_VERB_REVIVE:
    case BEL_VERB_PURGE:
        doubt_topic(book, command->target.topic);
        break;
    case BEL_VERB_JOB_SUBMIT:
        doubt_job(book, command->job_submit.text.data);
        break;
    case BEL_VERB_JOB_CANCEL:
        doubt_leases(book, command->job_target.id);
        break;
    case BEL_VERB_CONFIGURE:
        topic = topic_index(command->configure.topic);
        if (topic < TOPICS && has_feature(book->world, FEATURE_RETENTION)) {
            book->has_retention[topic] = true;
        }
        break;
    case BEL_VERB_ACK:
    case BEL_VERB_FAIL:
    case BEL_VERB_RELEASE:
    case BEL_VERB_EXTEND:
        submitted_token(book, order, command->verb);
        break;
    default:
        break;
    }
}

void book_submitted(struct book *book, const struct order *order)
{
    submitted(book, order);
    foreman_submitted(book->world->foreman, order);
}

void book_lost(struct book *book, const struct order *order)
{
    submitted(book, order); /* it is as if it were asked now: anything is possible */
    foreman_lost(book->world->foreman, order);
}

void book_opened(struct book *book)
{
    for (size_t i = 0; i < book->count; i++) {
        book->entries[i].has_boot_due = false; /* engine time may have been ahead */
    }
}

void book_cut(struct book *book)
{
    foreman_cut(book->world->foreman);
    for (size_t i = 0; i < book->count; i++) {
        doubt(&book->entries[i]);
        book->entries[i].handed = SIZE_MAX; /* an older one may be good again */
    }
}

/* --- what is answered --- */

static void told_schedule(struct book *book, const struct order *order)
{
    const struct bel_schedule_spec *spec = &order->requests[ENGINE_SIDE].command.schedule;
    const struct bel_reply *reply = &order->heard[ENGINE_SIDE]->reply;
    if (reply->err) return;
    if (spec->id.bytes > 0 && !is_text(reply->id, order->id)) {
        world_fail(book->world, "schedule", "#%" PRIu64 " asked for the id %s and got %.*s",
                   order->number, order->id, (int)reply->id.bytes, (const char *)reply->id.data);
        return;
    }
    struct entry *entry = find(book, spec->topic, reply->id, true);
    if (entry == NULL) return;
    size_t topic = topic_index(spec->topic);
    doubt(entry);
    entry->is_task = false; /* until a job has the id again */
    bool may_go = spec->expires_ms > 0 || spec->plan.rule.bytes > 0 || book->has_retention[topic];
    bool may_be_old = spec->conflict != BEL_CONFLICT_REPLACE &&
                      (has_feature(book->world, FEATURE_EXPIRY) ||
                       has_feature(book->world, FEATURE_PLANS)); /* which end by themselves */
    entry->is_present = !may_go && !may_be_old;
    if (spec->conflict != BEL_CONFLICT_REPLACE || spec->plan.rule.bytes > 0) return;
    entry->fails_max = 0;
    entry->opens = book->world->opens;
    if (spec->when == BEL_WHEN_AT) {
        entry->has_wall_due = true;
        entry->wall_due_ms = spec->at.ms;
    } else if (!has_feature(book->world, FEATURE_LATE_SYNC)) {
        entry->has_boot_due = true;
        entry->boot_due_ns = book->world->now.boot.ns;
        if (spec->when == BEL_WHEN_IN) entry->boot_due_ns += spec->delay_ms * NS_PER_MS;
    }
}

static uint64_t hash_of(struct bel_view view)
{
    const uint8_t *byte = view.data;
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < view.bytes; i++) {
        hash = (hash ^ byte[i]) * UINT64_C(0x100000001b3);
    }
    return hash;
}

static void check_token(struct book *book, const struct bel_delivery *delivery)
{
    uint64_t hash = hash_of(delivery->token);
    for (size_t i = 0; i < book->tokens_count; i++) {
        if (book->tokens[i] != hash) continue;
        world_fail(book->world, "tokens", "a token of %.*s was given out before",
                   (int)delivery->id.bytes, (const char *)delivery->id.data);
    }
    if (book->tokens_count < TOKENS_MAX) book->tokens[book->tokens_count++] = hash;
}

static void check_time(struct book *book, const struct entry *entry)
{
    const struct bel_now *now = &book->world->now;
    bool is_late_sync = has_feature(book->world, FEATURE_LATE_SYNC);
    if (entry->has_boot_due && now->boot.ns < entry->boot_due_ns) {
        world_fail(book->world, "early", "%s %s is delivered %" PRIu64 " ns before its delay ends",
                   entry->topic, entry->id, entry->boot_due_ns - now->boot.ns);
    }
    if (is_late_sync && has_fault(book->world, FAULT_CLOCK)) return; /* which clock was it? */
    if (entry->has_wall_due && now->wall.ms < entry->wall_due_ms) {
        world_fail(book->world, "early", "%s %s is delivered %" PRId64 " ms before its time",
                   entry->topic, entry->id, entry->wall_due_ms - now->wall.ms);
    }
}

static void check_entry(struct book *book, const struct entry *entry,
                        const struct bel_delivery *delivery)
{
    uint64_t failures = delivery->attempt - 1;
    bool may_come_again = is_occurrence(entry) && has_fault(book->world, FAULT_CLOCK);
    if (entry->is_ended && !may_come_again) {
        world_fail(book->world, "ended", "%s %s is delivered after its end was answered",
                   entry->topic, entry->id);
    }
    if (entry->is_leased && world_open_ms(book->world) < entry->lease_end_ms) {
        world_fail(book->world, "lease", "%s %s is delivered %" PRIu64 " ms before its lease ends",
                   entry->topic, entry->id, entry->lease_end_ms - world_open_ms(book->world));
    }
    if (failures < entry->fails_min || failures > entry->fails_max) {
        world_fail(book->world, "attempts",
                   "%s %s: attempt %" PRIu64 ", failures %" PRIu64 " to %" PRIu64, entry->topic,
                   entry->id, delivery->attempt, entry->fails_min, entry->fails_max);
    }
    check_time(book, entry);
}

/* A job that follows another begins when that ends. Before, a timer may have had the id of one of
 * its tasks. */
static bool has_begun(const struct entry *entry, bool is_task)
{
    return is_task && !entry->is_task && strchr(entry->id, '.') != NULL;
}

static size_t hand_out(struct book *book, const struct order *order, size_t index)
{
    struct world *world = book->world;
    const struct bel_delivery *delivery = &order->heard[0]->reply.deliveries.items[index];
    struct handed *handed = calloc(1, sizeof *handed);
    world->handed = realloc(world->handed, (world->handed_count + 1) * sizeof(void *));
    if (handed == NULL || world->handed == NULL) abort();
    (void)snprintf(handed->tokens[0], sizeof handed->tokens[0], "%.*s", (int)delivery->token.bytes,
                   (const char *)delivery->token.data);
    const struct heard *other = order->heard[MODEL_SIDE];
    if (world->judge != NULL && other != NULL && index < other->reply.deliveries.count) {
        struct bel_view token = other->reply.deliveries.items[index].token;
        (void)snprintf(handed->tokens[1], sizeof handed->tokens[1], "%.*s", (int)token.bytes,
                       (const char *)token.data);
    }
    (void)snprintf(handed->topic, sizeof handed->topic, "%.*s", (int)delivery->topic.bytes,
                   (const char *)delivery->topic.data);
    (void)snprintf(handed->id, sizeof handed->id, "%.*s", (int)delivery->id.bytes,
                   (const char *)delivery->id.data);
    handed->is_known = !order->is_lost;
    world->handed[world->handed_count] = handed;
    return world->handed_count++;
}

/* What a claim got of one topic and one group comes in order; of the groups it knows nothing, so
 * where there are any it looks at times of one topic without them. */
static void check_order(struct book *book, const struct order *order)
{
    const struct bel_reply *reply = &order->heard[ENGINE_SIDE]->reply;
    if (has_feature(book->world, FEATURE_GROUPS) || has_fault(book->world, FAULT_TINY)) return;
    if (has_feature(book->world, FEATURE_JOBS)) return;   /* a job has an order of its own */
    if (has_feature(book->world, FEATURE_LIMITS)) return; /* a slice of lines returns at a time */
    for (size_t i = 0; i < reply->deliveries.count; i++) {
        for (size_t j = i + 1; j < reply->deliveries.count; j++) {
            const struct bel_delivery *a = &reply->deliveries.items[i];
            const struct bel_delivery *b = &reply->deliveries.items[j];
            if (!heard_same(a->topic, b->topic) || a->due.ms <= b->due.ms) continue;
            world_fail(book->world, "order",
                       "#%" PRIu64 ": %.*s comes before %.*s, which is due first", order->number,
                       (int)a->id.bytes, (const char *)a->id.data, (int)b->id.bytes,
                       (const char *)b->id.data);
        }
    }
}

static void told_claim(struct book *book, struct order *order)
{
    const struct bel_reply *reply = &order->heard[ENGINE_SIDE]->reply;
    if (reply->err) return;
    bool is_memory = has_fault(book->world, FAULT_MEMORY) || has_fault(book->world, FAULT_SPACE);
    if (!is_memory) check_order(book, order);
    for (size_t i = 0; i < reply->deliveries.count; i++) {
        const struct bel_delivery *delivery = &reply->deliveries.items[i];
        check_token(book, delivery);
        foreman_delivered(book->world->foreman, delivery);
        struct entry *entry = find(book, delivery->topic, delivery->id, true);
        size_t handed = hand_out(book, order, i);
        if (i == 0) order->first_handed = handed;
        book->world->deliveries++;
        if (entry == NULL) continue;
        bool is_task = foreman_is_task(delivery);
        if (has_begun(entry, is_task)) doubt(entry);
        check_entry(book, entry, delivery);
        entry->is_task = is_task;
        entry->fails_min = entry->fails_max = delivery->attempt - 1;
        entry->is_leased = !has_feature(book->world, FEATURE_LATE_SYNC);
        entry->lease_end_ms = world_open_ms(book->world) + delivery->lease_ms;
        entry->handed = handed;
    }
}

/* An ack or cancel that was good for exactly what it named ends it. */
static void told_end(struct book *book, const struct order *order)
{
    const struct bel_command *command = &order->requests[ENGINE_SIDE].command;
    const struct bel_reply *reply = &order->heard[ENGINE_SIDE]->reply;
    struct entry *entry;
    if (reply->err != 0 || reply->count == 0) return;
    if (command->verb == BEL_VERB_CANCEL) {
        entry = find(book, command->cancel.topic, command->cancel.ids[0], true);
        doubt(entry);
        if (entry != NULL) entry->is_ended = true;
        return;
    }
    if (command->ack.tokens_count != 1 || reply->count != 1) return;
    entry = entry_of_token(book, order, 0);
    if (entry != NULL && entry->handed == SIZE_MAX) entry->handed = order->handed[0];
    if (entry == NULL || entry->handed != order->handed[0]) {
        if (entry != NULL) {
            world_fail(book->world, "tokens", "#%" PRIu64 ": an old token of %s %s is taken",
                       order->number, entry->topic, entry->id);
        }
        return;
    }
    doubt(entry);
    entry->is_ended = true;
}

static void told_fail(struct book *book, const struct order *order)
{
    const struct bel_fail *fail = &order->requests[ENGINE_SIDE].command.fail;
    const struct bel_reply *reply = &order->heard[ENGINE_SIDE]->reply;
    struct entry *entry = entry_of_token(book, order, 0);
    if (reply->err != 0 || entry == NULL || entry->handed != order->handed[0]) return;
    if (fail->kind == BEL_FAIL_LIMITED && !fail->dead) {
        if (entry->fails_max < UINT64_MAX) entry->fails_max--;
        return;
    }
    entry->fails_min++;
}

/* A REVIVE or PURGE of many takes several turns. What it has done so far is seen by claims that are
 * told before it. */
static void doubt_again(struct book *book)
{
    const struct list_of_orders *asked = &book->world->asked;
    for (size_t i = 0; i < asked->count; i++) {
        enum bel_verb verb = asked->items[i]->requests[ENGINE_SIDE].command.verb;
        bool may_go_on = verb == BEL_VERB_REVIVE || verb == BEL_VERB_PURGE ||
                         verb == BEL_VERB_JOB_SUBMIT || verb == BEL_VERB_JOB_CANCEL;
        if (may_go_on) submitted(book, asked->items[i]);
    }
}

void book_told(struct book *book, struct order *order)
{
    enum bel_verb verb = order->heard[ENGINE_SIDE]->verb;
    bool ends = verb == BEL_VERB_ACK || verb == BEL_VERB_CANCEL || verb == BEL_VERB_RESCHEDULE ||
                verb == BEL_VERB_REVIVE || verb == BEL_VERB_PURGE || verb == BEL_VERB_JOB_SUBMIT;
    foreman_told(book->world->foreman, order);
    if (ends) submitted(book, order); /* others were answered between the two */
    switch (verb) {
    case BEL_VERB_SCHEDULE:
        told_schedule(book, order);
        break;
    case BEL_VERB_CLAIM:
        told_claim(book, order);
        doubt_again(book);
        break;
    case BEL_VERB_ACK:
    case BEL_VERB_CANCEL:
        told_end(book, order);
        break;
    case BEL_VERB_FAIL:
        told_fail(book, order);
        break;
    default:
        break;
    }
}

/* --- all there is --- */

static bool is_listed(const struct heard *list, const struct entry *entry)
{
    for (size_t i = 0; i < list->reply.timers.count; i++) {
        if (is_text(list->reply.timers.items[i].id, entry->id)) return true;
    }
    return false;
}

static void check_present(struct book *book, const char *topic, const struct heard *list)
{
    for (size_t i = 0; i < book->count; i++) {
        const struct entry *entry = &book->entries[i];
        if (!entry->is_present || strcmp(entry->topic, topic) != 0) continue;
        if (book->has_retention[topic_index(view_of(topic))]) continue;
        if (is_listed(list, entry)) continue;
        world_fail(book->world, "lost", "%s %s was scheduled and is gone", topic, entry->id);
    }
}

/* The counters of a topic against the rows. */
static void check_counts(struct book *book, const struct heard *list, const struct heard *topic)
{
    const struct bel_topic *found = topic->reply.topic;
    uint64_t counts[BEL_STATES] = {0}, plans = 0;
    for (size_t i = 0; i < list->reply.timers.count; i++) {
        const struct bel_timer *timer = &list->reply.timers.items[i];
        counts[timer->state]++;
        plans += timer->state == BEL_SCHEDULED && timer->plan.rule.bytes > 0;
    }
    bool is_sum = book->world->judge == NULL; /* there may have been no room to read on */
    for (unsigned i = 0; i < BEL_STATES; i++) {
        if (counts[i] == found->counts[i]) continue;
        if (is_sum && i >= BEL_DONE && counts[i] < found->counts[i]) continue; /* to be swept */
        if (is_sum && i <= BEL_READY && /* who is ready without having been read is scheduled */
            counts[0] + counts[1] == found->counts[0] + found->counts[1]) {
            continue;
        }
        world_fail(book->world, "counters",
                   "%.*s has %" PRIu64 " %s and counts %" PRIu64 "; scheduled %" PRIu64 "/%" PRIu64
                   " ready %" PRIu64 "/%" PRIu64 " leased %" PRIu64 "/%" PRIu64,
                   (int)found->name.bytes, (const char *)found->name.data, counts[i],
                   bel_state_name((enum bel_state)i), found->counts[i], counts[0], found->counts[0],
                   counts[1], found->counts[1], counts[2], found->counts[2]);
    }
    if (plans == found->plans) return;
    if (is_sum && plans > found->plans) return; /* it has rung for the last time in between */
    world_fail(book->world, "counters", "%.*s has %" PRIu64 " plans and counts %" PRIu64,
               (int)found->name.bytes, (const char *)found->name.data, plans, found->plans);
}

/* Whether a timer is on two pages because it has moved in between: an engine without room goes on
 * with what was due, turn by turn. */
static bool has_moved(const struct book *book, const struct bel_timer *one,
                      const struct bel_timer *other)
{
    bool is_judged = book->world->judge != NULL;
    return !is_judged && (one->due.ms != other->due.ms || one->state != other->state);
}

static int by_id(const void *a, const void *b)
{
    struct bel_view one = (*(const struct bel_timer *const *)a)->id;
    struct bel_view other = (*(const struct bel_timer *const *)b)->id;
    if (one.bytes != other.bytes) return one.bytes < other.bytes ? -1 : 1;
    return one.bytes == 0 ? 0 : memcmp(one.data, other.data, one.bytes);
}

/* Returns whether all of a list is of the same time. */
static bool check_twice(struct book *book, const struct heard *list)
{
    size_t count = list->reply.timers.count;
    const struct bel_timer **timers = malloc((count + 1) * sizeof(const struct bel_timer *));
    bool is_still = true;
    if (timers == NULL) abort();
    for (size_t i = 0; i < count; i++) {
        timers[i] = &list->reply.timers.items[i];
    }
    qsort(timers, count, sizeof(const struct bel_timer *), by_id);
    for (size_t i = 1; i < count; i++) {
        struct bel_view id = timers[i]->id;
        if (!heard_same(timers[i - 1]->id, id)) continue;
        is_still = false;
        if (has_moved(book, timers[i - 1], timers[i])) continue;
        world_fail(book->world, "twice", "%.*s is there twice", (int)id.bytes,
                   (const char *)id.data);
    }
    free(timers);
    return is_still;
}

/* Without room, what a look makes goes on with what was due: then counts are of another time. */
static bool stands_still(const struct heard *before, const struct heard *after)
{
    const struct bel_topic *one = before->reply.topic, *other = after->reply.topic;
    if (before->reply.err != 0 || after->reply.err != 0) return false;
    return memcmp(one->counts, other->counts, sizeof one->counts) == 0;
}

void book_look(struct book *book, const struct list_of_orders *looks)
{
    bool has_judge = book->world->judge != NULL;
    for (size_t i = 0; i < LOOKS_TOPICS; i += LOOKS) {
        const struct heard *before = looks->items[i]->heard[ENGINE_SIDE];
        const struct heard *list = looks->items[i + LOOKS_LIST]->heard[ENGINE_SIDE];
        const struct heard *after = looks->items[i + LOOKS - 1]->heard[ENGINE_SIDE];
        if (list->reply.err != 0) continue;
        check_present(book, topic_name(i / LOOKS), list);
        if (!check_twice(book, list) || after->reply.err != 0) continue;
        if (has_judge || stands_still(before, after)) check_counts(book, list, after);
    }
}
