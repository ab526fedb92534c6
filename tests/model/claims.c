/* SPDX-License-Identifier: MIT */

/*
 * Claims: which timer is next, and which claim gets it.
 *
 *     topics of the claim --in turn--> topic --shares--> group --(due, priority, sequence)--> timer
 *
 * Each delivery is chosen from all ready timers. Without a concurrency the share with the fewest
 * leases is next; with a concurrency, the share with the lowest score. Equal shares take turns: of
 * one delivery, or of as many as their fair part of the concurrency, rounded up.
 */
#include "inside.h"

#include "core/units.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TOPICS_MAX = 100,
    CLAIM_BYTES_MAX = 1 << 20,
    RESULT_BYTES = 256,
    NOMINAL_BYTES = 24,
    SHARE_SCORE = 50,
    SHARE_PENALTY = 20,
    SCORE_END = 1000 * 1000, /* no static score is larger */
};

static bool same_share(const struct timer *a, const struct timer *b)
{
    if (a->topic != b->topic || (a->job != NULL) != (b->job != NULL)) return false;
    if (a->job != NULL) return a->job == b->job;
    return model_same(model_view(a->group), model_view(b->group));
}

/* Returns the name of a timer's share: its group, or its job. */
static struct bel_view share_name(const struct timer *timer)
{
    return model_view(timer->job != NULL ? timer->job->id : timer->group);
}

static size_t count_leases(struct model *model, const struct topic *topic)
{
    size_t count = 0;
    for (size_t i = 0; i < model->timers.count; i++) {
        const struct timer *timer = model_timer_at(model, i);
        if (timer->topic == topic && timer->state == BEL_LEASED) count++;
    }
    return count;
}

static size_t count_leases_of_share(struct model *model, const struct timer *one)
{
    size_t count = 0;
    for (size_t i = 0; i < model->timers.count; i++) {
        const struct timer *timer = model_timer_at(model, i);
        if (timer->state == BEL_LEASED && same_share(timer, one)) count++;
    }
    return count;
}

/* Returns whether a timer is the first unfinished timer of its share in the array. */
static bool stands_for_share(struct model *model, const struct timer *one)
{
    if (!model_is_unfinished(one) || model_is_plan(one)) return false;
    for (size_t i = 0; i < model->timers.count; i++) {
        const struct timer *timer = model_timer_at(model, i);
        if (!model_is_unfinished(timer) || model_is_plan(timer)) continue;
        if (same_share(timer, one)) return timer == one;
    }
    return false;
}

static size_t count_shares(struct model *model, const struct topic *topic)
{
    size_t count = 0;
    for (size_t i = 0; i < model->timers.count; i++) {
        const struct timer *timer = model_timer_at(model, i);
        if (timer->topic == topic && stands_for_share(model, timer)) count++;
    }
    return count;
}

/* Returns the score of a share, lowest first; infinite if the share is passed over. `shares` is
 * their number in the topic. Without a concurrency, leases count more than any static score. */
static double score(struct model *model, const struct timer *head, size_t shares)
{
    double leases = (double)count_leases_of_share(model, head);
    double own = head->job != NULL ? model_task_score(head) : SHARE_SCORE;
    uint64_t concurrency = head->topic->settings.concurrency;
    if (concurrency == 0) return leases * SCORE_END + own;
    double fair = (double)concurrency / (double)shares;
    if (fair < 1) fair = 1;
    double most = floor(2 * fair) > 1 ? floor(2 * fair) : 1;
    if (leases >= most) return HUGE_VAL;
    return leases >= fair ? own + SHARE_PENALTY * (leases - fair + 1) : own;
}

static bool comes_before(const struct model *model, const struct timer *a, const struct timer *b)
{
    int64_t a_ms = model_due_ms(model, a), b_ms = model_due_ms(model, b);
    if (a_ms != b_ms) return a_ms < b_ms;
    if (a->priority != b->priority) return a->priority < b->priority;
    return a->sequence < b->sequence;
}

/* Returns whether a timer comes before another one of its share. */
static bool is_ahead(const struct model *model, const struct timer *a, const struct timer *b)
{
    if (a->job == NULL) return comes_before(model, a, b);
    double one = model_task_score(a), other = model_task_score(b);
    if (one < other || one > other) return one < other;
    if (a->priority != b->priority) return a->priority < b->priority;
    return a->sequence < b->sequence;
}

/* Returns whether a timer is the head of its share: the first ready timer whose resource is
 * open. */
static bool is_head(struct model *model, const struct timer *one)
{
    if (one->state != BEL_READY || model_resource_closed(model, one)) return false;
    if (one->job != NULL && model_job_is_held(model, one->job)) return false;
    for (size_t i = 0; i < model->timers.count; i++) {
        const struct timer *timer = model_timer_at(model, i);
        if (timer->state != BEL_READY || !same_share(timer, one)) continue;
        if (!is_ahead(model, timer, one)) continue;
        if (!model_resource_closed(model, timer)) return false;
    }
    return true;
}

/* Returns the turns of a timer's share; NULL if it was never served. */
static struct turn *find_turn(const struct timer *timer)
{
    const struct list *turns = &timer->topic->turns;
    for (size_t i = 0; i < turns->count; i++) {
        struct turn *turn = turns->items[i];
        if (turn->is_job != (timer->job != NULL)) continue;
        if (model_same(model_view(turn->group), share_name(timer))) return turn;
    }
    return NULL;
}

static void note_turn(struct model *model, const struct timer *timer)
{
    struct turn *turn = find_turn(timer);
    if (turn == NULL) {
        turn = model_alloc(sizeof *turn);
        *turn = (struct turn){.group = model_copy(share_name(timer)), .is_job = timer->job != NULL};
        model_list_add(&timer->topic->turns, turn);
    }
    uint64_t concurrency = timer->topic->settings.concurrency, length = 1;
    if (concurrency > 0) {
        length = (uint64_t)ceil((double)concurrency / (double)count_shares(model, timer->topic));
    }
    turn->deliveries++;
    if (turn->deliveries < length) return;
    turn->end = model->served;
    turn->deliveries = 0;
}

void model_forget_turns(struct topic *topic)
{
    for (size_t i = 0; i < topic->turns.count; i++) {
        struct turn *turn = topic->turns.items[i];
        model_free(&turn->group);
        free(turn);
    }
    free(topic->turns.items);
    topic->turns = (struct list){NULL, 0};
}

/* Returns whether head `a` comes before head `b` if the scores of their shares are equal. */
static bool is_first_of_equals(const struct model *model, const struct timer *a,
                               const struct timer *b)
{
    const struct turn *last_a = find_turn(a), *last_b = find_turn(b);
    uint64_t end_a = last_a == NULL ? 0 : last_a->end;
    uint64_t end_b = last_b == NULL ? 0 : last_b->end;
    if (end_a != end_b) return end_a < end_b;
    return comes_before(model, a, b);
}

/* Returns whether a head of another share, with an equal score, comes before a timer. */
static bool has_rival(struct model *model, const struct timer *head, const struct timer *closed)
{
    size_t shares = count_shares(model, head->topic);
    double its = score(model, head, shares);
    for (size_t i = 0; i < model->timers.count; i++) {
        const struct timer *timer = model_timer_at(model, i);
        if (timer->topic != head->topic || same_share(timer, head)) continue;
        if (!is_head(model, timer) || score(model, timer, shares) > its) continue;
        if (is_first_of_equals(model, timer, closed)) return true;
    }
    return false;
}

/* Returns whether an engine may deliver another timer than the best head. The tasks of a job are in
 * the order of their scores: until a claim has met a task whose resource is closed, its due time
 * may stand for the job among equal shares, although a task after it is due earlier. */
static bool is_unclear(struct model *model, const struct timer *best)
{
    if (best->job == NULL) return false;
    for (size_t i = 0; i < best->job->tasks_count; i++) {
        const struct timer *task = best->job->tasks[i];
        if (task->topic != best->topic || task->state != BEL_READY) continue;
        if (!is_ahead(model, task, best)) continue;
        if (model_task_score(task) < model_task_score(best)) continue;
        if (has_rival(model, best, task)) return true;
    }
    return false;
}

/* Returns the timer that a topic delivers next, or NULL. */
static struct timer *pick(struct model *model, struct bel_view name)
{
    struct topic *topic = model_topic_find(model, name);
    struct timer *best = NULL;
    double lowest = HUGE_VAL;
    if (topic == NULL || topic->paused) return NULL;
    uint64_t concurrency = topic->settings.concurrency;
    if (concurrency > 0 && count_leases(model, topic) >= concurrency) return NULL;
    size_t shares = count_shares(model, topic);
    for (size_t i = 0; i < model->timers.count; i++) {
        struct timer *timer = model_timer_at(model, i);
        if (timer->topic != topic || !is_head(model, timer)) continue;
        double its = score(model, timer, shares);
        bool is_tie = best != NULL && !(its < lowest) && !(its > lowest);
        if (its < lowest || (is_tie && is_first_of_equals(model, timer, best))) {
            best = timer;
            lowest = its;
        }
    }
    if (best != NULL && is_unclear(model, best)) model->is_unclear = true;
    return best;
}

static uint64_t lease_of(const struct timer *timer, const struct bel_claim *claim)
{
    if (claim->lease_ms > 0) return claim->lease_ms;
    return timer->lease_ms > 0 ? timer->lease_ms : timer->topic->settings.lease_ms;
}

static void lease(struct model *model, struct timer *timer, const struct bel_claim *claim)
{
    struct bel_view worker = model_cut(claim->worker);
    timer->state = BEL_LEASED;
    timer->worker = model_copy(worker);
    timer->lease_length_ms = lease_of(timer, claim);
    timer->lease_end_ms = model->open_ms + (int64_t)timer->lease_length_ms;
    timer->lease_is_old = false;
    (void)snprintf(timer->token, sizeof timer->token, "lease-%018" PRIu64, ++model->tokens);
    timer->topic->served = ++model->served;
    note_turn(model, timer);
    model_resource_take(model, timer);
    if (timer->job != NULL) model_job_pace(model, timer);
}

struct bel_header *model_headers(struct model *model, const struct timer *timer, size_t *out_count)
{
    struct bel_header *headers = model_piece(model, (timer->headers_count + 2) * sizeof *headers);
    size_t count = 0;
    for (; count < timer->headers_count; count++) {
        headers[count].name = model_kept(model, timer->headers[count].name);
        headers[count].value = model_kept(model, timer->headers[count].value);
    }
    if (timer->plan_id.count > 0) {
        char *nominal = model_piece(model, NOMINAL_BYTES);
        (void)snprintf(nominal, NOMINAL_BYTES, "%" PRId64, timer->nominal_ms);
        headers[count].name = BEL_VIEW("belfry-plan");
        headers[count++].value = model_kept(model, timer->plan_id);
        headers[count].name = BEL_VIEW("belfry-nominal");
        headers[count++].value = model_text(nominal);
    }
    if (timer->job != NULL) {
        struct bel_view id = model_task_id(timer);
        struct bytes task = model_copy(id);
        headers[count].name = BEL_VIEW("belfry-job");
        headers[count++].value = model_kept(model, timer->job->id);
        headers[count].name = BEL_VIEW("belfry-task");
        headers[count++].value = model_kept(model, task);
        model_free(&task);
    }
    *out_count = count;
    return headers;
}

static struct bel_delivery deliver(struct model *model, const struct timer *timer)
{
    struct bytes token = {model_piece(model, TOKEN_BYTES), TOKEN_BYTES};
    struct bytes topic = {timer->topic->name, strlen(timer->topic->name)};
    memcpy(token.data, timer->token, TOKEN_BYTES);
    struct bel_delivery delivery = {
        .token = model_view(token),
        .topic = model_kept(model, topic),
        .id = model_kept(model, timer->id),
        .payload = model_kept(model, timer->payload),
        .correlation = model_kept(model, timer->correlation),
        .due = {model_in_wall_ms(model, timer->due)},
        .attempt = timer->attempts + 1,
        .lease_ms = timer->lease_length_ms,
    };
    delivery.headers = model_headers(model, timer, &delivery.headers_count);
    if (timer->job != NULL) model_task_results(model, timer, &delivery);
    return delivery;
}

/* Returns the index of the first topic to serve: after the topic that was served last. */
static size_t first_in_turn(struct model *model, const struct bel_claim *claim)
{
    size_t first = 0;
    uint64_t last = 0;
    for (size_t i = 0; i < claim->topics_count; i++) {
        const struct topic *topic = model_topic_find(model, claim->topics[i]);
        if (topic == NULL || topic->served <= last) continue;
        last = topic->served;
        first = (i + 1) % claim->topics_count;
    }
    return first;
}

static bool is_repeated(const struct bel_claim *claim, size_t index)
{
    for (size_t i = 0; i < index; i++) {
        if (model_same(claim->topics[i], claim->topics[index])) return true;
    }
    return false;
}

/* What a delivery counts of the bytes of a claim. */
static size_t bytes_of(const struct bel_delivery *delivery)
{
    size_t bytes = delivery->payload.bytes + delivery->results_count * RESULT_BYTES;
    for (size_t i = 0; i < delivery->results_count; i++) {
        bytes += delivery->results[i].result.bytes;
    }
    for (size_t i = 0; i < delivery->headers_count; i++) {
        bytes += delivery->headers[i].name.bytes + delivery->headers[i].value.bytes;
    }
    return bytes;
}

/* Fills in as many deliveries as there are and as the claim wants. Returns their number. */
static size_t serve(struct model *model, const struct bel_claim *claim, struct bel_delivery *out)
{
    size_t most = claim->count > 0 ? claim->count : 1;
    size_t count = 0, bytes = 0, empty = 0;
    for (size_t at = first_in_turn(model, claim); empty < claim->topics_count;
         at = (at + 1) % claim->topics_count) {
        if (count == most || bytes > CLAIM_BYTES_MAX) break;
        struct timer *timer = is_repeated(claim, at) ? NULL : pick(model, claim->topics[at]);
        if (timer == NULL) {
            empty++;
            continue;
        }
        empty = 0;
        lease(model, timer, claim);
        out[count] = deliver(model, timer);
        bytes += bytes_of(&out[count++]);
    }
    return count;
}

static void answer(struct model *model, struct bel_request *request, int err, const char *why)
{
    struct answer *answer = model_alloc(sizeof *answer);
    answer->request = request;
    if (err) answer->reply.err = model_refuse(&answer->reply, err, why);
    model_list_add(&model->answers, answer);
}

/* Serves a claim, and answers it if it got a delivery. Returns whether it did. */
static bool try_to_serve(struct model *model, struct bel_request *request)
{
    const struct bel_claim *claim = &request->command.claim;
    size_t most = claim->count > 0 ? claim->count : 1;
    struct bel_delivery *deliveries = model_piece(model, most * sizeof *deliveries);
    size_t count = serve(model, claim, deliveries);
    if (count == 0) return false;
    answer(model, request, 0, NULL);
    struct answer *last = model->answers.items[model->answers.count - 1];
    last->reply.deliveries.items = deliveries;
    last->reply.deliveries.count = count;
    return true;
}

static const char *find_fault(const struct model *model, const struct bel_claim *claim)
{
    if (claim->topics_count == 0 || claim->topics_count > TOPICS_MAX) return "topics";
    for (size_t i = 0; i < claim->topics_count; i++) {
        if (!bel_topic_is_valid(claim->topics[i])) return "topic";
    }
    if (claim->count > BEL_CLAIM_COUNT_MAX) return "count";
    if (!model_reaches(model, claim->lease_ms)) return "lease";
    return NULL;
}

static uint64_t wait_end(const struct model *model, uint64_t wait_ms)
{
    uint64_t most_ms = (BEL_NEVER - 1 - model->real_ns) / NS_PER_MS;
    return model->real_ns + (wait_ms < most_ms ? wait_ms : most_ms) * NS_PER_MS;
}

void model_claim(struct model *model, struct bel_request *request)
{
    const struct bel_claim *claim = &request->command.claim;
    const char *fault = find_fault(model, claim);
    if (fault != NULL) {
        answer(model, request, BEL_EINVAL, fault);
        return;
    }
    if (try_to_serve(model, request)) return;
    if (claim->wait_ms == 0) {
        answer(model, request, 0, NULL);
        return;
    }
    struct waiting *waiting = model_alloc(sizeof *waiting);
    *waiting = (struct waiting){request, wait_end(model, claim->wait_ms)};
    model_list_add(&model->waiting, waiting);
}

void model_serve_waiting(struct model *model)
{
    for (size_t i = 0; i < model->waiting.count;) {
        struct waiting *waiting = model->waiting.items[i];
        if (!try_to_serve(model, waiting->request)) {
            i++;
            continue;
        }
        model_list_remove(&model->waiting, i);
        free(waiting);
    }
}

void model_end_waits(struct model *model)
{
    for (size_t i = 0; i < model->waiting.count;) {
        struct waiting *waiting = model->waiting.items[i];
        if (waiting->end_ns > model->real_ns) {
            i++;
            continue;
        }
        answer(model, waiting->request, 0, NULL);
        model_list_remove(&model->waiting, i);
        free(waiting);
    }
}
