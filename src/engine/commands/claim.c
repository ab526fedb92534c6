/* SPDX-License-Identifier: MIT */

/*
 * A claim goes round its topics, one delivery from each, until it has enough or a whole round finds
 * nothing. It begins after the topic that was served last.
 *
 * The delivery is built first, because its memory may not be available. Making the lease is the
 * only change.
 */
#include "core/utf8.h"
#include "core/view.h"
#include "engine/commands/commands.h"
#include "engine/commands/describe.h"
#include "engine/jobs/job.h"
#include "engine/jobs/results.h"
#include "engine/rows/blob.h"
#include "engine/state/ready.h"
#include "engine/state/state.h"
#include "engine/state/timer.h"

#include <assert.h>

enum {
    TOPICS_MAX = 100,
    BYTES_MAX = 1 << 20, /* of payloads, headers and results; then a claim gets no more */
    BYTES_OF_ROW = 1024, /* bytes of a body that take as long as one more row, about */
    RESULT_BYTES = 256,  /* added for each task before: it is read also if it has no result */
};

struct round {
    struct bel_topic_state *topics[TOPICS_MAX];
    size_t topics_count;
    struct bel_delivery *deliveries;
    size_t count, count_max;
    size_t bytes;
};

static bool is_listed(const struct round *round, const struct bel_topic_state *topic)
{
    for (size_t i = 0; i < round->topics_count; i++) {
        if (round->topics[i] == topic) return true;
    }
    return false;
}

/* Lists the existing topics of a claim, each once, beginning after the topic that was served
 * last. */
static void order_topics(struct bel_engine *engine, const struct bel_claim *claim,
                         struct round *round)
{
    struct bel_topic_state *rest[TOPICS_MAX];
    size_t last = 0, count = 0;
    for (size_t i = 0; i < claim->topics_count; i++) {
        struct bel_topic_state *topic = bel__topic_find(&engine->topics, claim->topics[i]);
        if (topic == NULL || is_listed(round, topic)) continue;
        round->topics[round->topics_count++] = topic;
    }
    for (size_t i = 0; i < round->topics_count; i++) {
        if (round->topics[i]->served > round->topics[last]->served) last = i;
    }
    if (round->topics_count == 0 || round->topics[last]->served == 0) return;
    for (size_t i = 1; i <= round->topics_count; i++) {
        rest[count++] = round->topics[(last + i) % round->topics_count];
    }
    for (size_t i = 0; i < count; i++) {
        round->topics[i] = rest[i];
    }
}

/* Holds the share of a job whose tasks are not to be delivered. When the job is released, its
 * topics are taken back. */
static int hold(struct bel_engine *engine, const struct bel_found *found)
{
    struct bel_standing standing = bel__ready_standing(engine, &found->record);
    struct bel_topic_state *topic = found->topic;
    int err = bel__job_note_topic(&engine->job_marks, found->record.job.number, topic->number);
    return err ? err : bel__picker_hold(&topic->picker, &standing, true);
}

/* Returns whether `*` is closed. Then no topic delivers. */
static bool is_all_closed(struct bel_engine *engine)
{
    struct bel_closed closed;
    if (!engine->resources.is_active) return false;
    if (!bel__resources_are_closed(engine, &closed)) return false;
    bel__resource_expect(engine, &closed);
    return true;
}

/* Finds the next timer of a topic; ends expired ones and parks those of closed resources on the
 * way. Returns BEL_ENOTFOUND if there is none; or BEL_DO_LATER if this turn may end or park no
 * more. */
static int next_timer(struct bel_engine *engine, struct bel_topic_state *topic,
                      struct bel_found *found)
{
    const struct bel_settings *settings = bel__topic_settings(topic);
    struct bel_pick pick;
    struct bel_closed closed;
    if (topic->is_paused || is_all_closed(engine)) return BEL_ENOTFOUND;
    while (bel__picker_pick(&topic->picker, settings->concurrency,
                            topic->numbers[BEL_NUMBER_SHARES], &pick)) {
        if (pick.line != NULL &&
            bel__resource_is_closed(engine, bel__resource_of(pick.gate), &closed)) {
            if (!bel__resource_park(engine, pick.line, &closed)) return BEL_DO_LATER;
            bel__ready_read_on(engine, topic);
            continue;
        }
        struct bel_key key = bel__ready_key(topic, &pick.ready);
        int err = bel__timer_load_leased(engine, &key, NULL, found);
        if (err) return err == BEL_ENOTFOUND ? BEL_ECORRUPT : err;
        if (bel__job_holds(&engine->job_marks, found->record.job.number) != 0) {
            err = hold(engine, found);
            if (err) return err;
            continue;
        }
        if (!bel__timer_is_expired(engine, found)) return 0;
        if (!bel__expiry_may_end(engine, topic)) return BEL_DO_LATER;
        err = bel__timer_expire(engine, found);
        if (err) return err;
    }
    return BEL_ENOTFOUND;
}

/* Fills in a delivery, without its token, in memory of the answer. */
static int describe(struct bel_engine *engine, const struct bel_found *found,
                    struct bel_delivery *out)
{
    struct bel_view bytes;
    struct bel_body body;
    int err = bel__blob_get(engine->store, &found->record.body, bel__answer_arena(engine), &bytes);
    if (err) return err;
    if (found->record.body.number == 0) {
        bytes = bel__answer_copy(engine, bytes);
        if (bytes.data == NULL) return BEL_ENOMEM;
    }
    err = bel__body_read(bytes, &body);
    if (err) return err;
    struct bel_delivery delivery = {
        .topic = bel__topic_name(found->topic),
        .id = bel__answer_copy(engine, found->record.id),
        .payload = body.payload,
        .correlation = body.correlation,
        .due = {bel__timer_due(engine, found)},
        .attempt = found->record.attempts + 1,
    };
    if (delivery.id.data == NULL) return BEL_ENOMEM;
    err = bel__describe_headers(engine, found, &body, &delivery.headers, &delivery.headers_count);
    if (err == 0 && found->record.job.number != 0) {
        err = bel__results_get(engine, found, &delivery.results, &delivery.results_count);
    }
    if (err) return err;
    bel__count_rows(engine, bytes.bytes / BYTES_OF_ROW);
    *out = delivery;
    return 0;
}

static uint64_t lease_ms_of(const struct bel_claim *claim, const struct bel_found *found)
{
    if (claim->lease_ms > 0) return claim->lease_ms;
    if (found->record.lease_ms > 0) return found->record.lease_ms;
    return bel__topic_settings(found->topic)->lease_ms;
}

/* Under pressure, the tasks of one job start some time apart. The rows are reserved. */
static int pace(struct bel_engine *engine, const struct bel_found *found)
{
    uint64_t job = found->record.job.number;
    uint64_t pace_ms = bel__pressure_pace_ms(engine->stats.pressure.level);
    struct bel_job_found paced;
    if (pace_ms == 0) return 0;
    int err = bel__job_load(engine, job, &paced);
    if (err == 0) err = bel__job_keep_mark(&engine->job_marks, job);
    if (err) return err == BEL_ENOTFOUND ? BEL_ECORRUPT : err;
    bel__job_pace(engine, &paced, engine->now.engine_up + pace_ms);
    bel__job_put(engine, &paced);
    return 0;
}

static int deliver(struct bel_engine *engine, const struct bel_claim *claim,
                   struct bel_topic_state *topic, struct bel_delivery *out)
{
    struct bel_found found;
    struct bel_lease *lease;
    int err = next_timer(engine, topic, &found);
    if (err) return err;
    err = describe(engine, &found, out);
    if (err) return err;
    char *token = bel__answer_take(engine, BEL_TOKEN_BYTES);
    if (token == NULL) return BEL_ENOMEM;
    bool is_task = found.record.job.number != 0;
    err = bel__rows_reserve(&engine->rows, is_task ? 1 + BEL_JOB_ROWS : 1,
                            BEL_RECORD_BYTES_MAX + (is_task ? BEL_JOB_BYTES : 0), BEL_STORE_END);
    if (err == 0 && is_task) err = pace(engine, &found);
    if (err) return err;
    out->lease_ms = lease_ms_of(claim, &found);
    struct bel_lease_terms terms = {.lease_ms = out->lease_ms,
                                    .due = out->due,
                                    .worker = bel__utf8_head(claim->worker, BEL_TEXT_BYTES_MAX)};
    err = bel__lease_make(engine, &found, &terms, &lease);
    if (err) return err;
    topic->served = ++engine->waiting.served;
    bel__token_print(&lease->key, lease->secret, token);
    out->token = (struct bel_view){.data = token, .bytes = BEL_TOKEN_BYTES};
    return 0;
}

/* Allocates the deliveries: as many as the claim wants and the topics have. */
static int make_room(struct bel_engine *engine, const struct bel_claim *claim, struct round *round)
{
    uint64_t ready = 0;
    for (size_t i = 0; i < round->topics_count; i++) {
        ready += bel__picker_count(&round->topics[i]->picker);
    }
    round->count_max = claim->count == 0 ? 1 : claim->count;
    if (round->count_max > ready) round->count_max = (size_t)ready;
    if (round->count_max == 0) return 0;
    round->deliveries = bel__answer_take(engine, round->count_max * sizeof round->deliveries[0]);
    return round->deliveries == NULL ? BEL_ENOMEM : 0;
}

/* Returns what a delivery counts for BYTES_MAX. */
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

/* Delivers to a claim. Returns 0, also if there is nothing to deliver; BEL_DO_LATER if expired
 * timers or closed resources are in the way of a delivery; or an error. */
static int deliver_all(struct bel_engine *engine, struct bel_request *request)
{
    const struct bel_claim *claim = &request->command.claim;
    struct round round = {0};
    order_topics(engine, claim, &round);
    int err = make_room(engine, claim, &round);
    size_t empty = 0;
    bool is_late = false;
    for (size_t i = 0; err == 0 && empty < round.topics_count; i++) {
        if (round.count == round.count_max || round.bytes > BYTES_MAX) break;
        assert(round.count < round.count_max);
        struct bel_delivery *delivery = &round.deliveries[round.count];
        err = deliver(engine, claim, round.topics[i % round.topics_count], delivery);
        is_late |= err == BEL_DO_LATER;
        if (err == BEL_DO_LATER) err = BEL_ENOTFOUND;
        empty = err == BEL_ENOTFOUND ? empty + 1 : 0;
        if (err == 0) {
            round.count++;
            round.bytes += bytes_of(delivery);
        }
        if (err == BEL_ENOTFOUND) err = 0;
    }
    if (err == BEL_EIO || err == BEL_ECORRUPT) engine->broken = err;
    if (err != 0 && round.count == 0) return err;
    if (is_late && round.count == 0) return BEL_DO_LATER;
    request->own.reply.deliveries.items = round.deliveries;
    request->own.reply.deliveries.count = round.count;
    return 0;
}

static int check(struct bel_engine *engine, const struct bel_claim *claim, struct bel_reply *reply)
{
    uint64_t end;
    if (claim->topics_count == 0) return bel__refuse(reply, BEL_EINVAL, "a claim needs a topic");
    if (claim->topics_count > TOPICS_MAX) {
        return bel__refuse(reply, BEL_EINVAL, "at most %d topics", TOPICS_MAX);
    }
    if (claim->count > BEL_CLAIM_COUNT_MAX) {
        return bel__refuse(reply, BEL_EINVAL, "the count is at most %d", BEL_CLAIM_COUNT_MAX);
    }
    if (bel__times_after(&engine->now, claim->lease_ms, &end) != 0) {
        return bel__refuse(reply, BEL_EINVAL, "the lease is too long");
    }
    for (size_t i = 0; i < claim->topics_count; i++) {
        if (!bel__topic_is_name(&engine->topics, claim->topics[i])) {
            return bel__refuse(reply, BEL_EINVAL, "invalid topic name");
        }
    }
    return 0;
}

/* Marks the topics of a claim that waits for `*` or for the next turn: nothing else will. */
static void stay_hot(struct bel_engine *engine, const struct bel_claim *claim)
{
    for (size_t i = 0; i < claim->topics_count; i++) {
        struct bel_topic_state *topic = bel__topic_find(&engine->topics, claim->topics[i]);
        if (topic != NULL) bel__wait_mark(engine, topic);
    }
}

int bel__do_claim(struct bel_engine *engine, struct bel_request *request)
{
    int err = check(engine, &request->command.claim, &request->own.reply);
    if (err) return err;
    err = deliver_all(engine, request);
    bool waits = request->command.claim.wait_ms > 0;
    if (err != 0 && !(err == BEL_DO_LATER && waits)) return err;
    if (request->own.reply.deliveries.count > 0 || !waits) return 0;
    bool is_late = err == BEL_DO_LATER;
    err = bel__wait_park(engine, request);
    if (err) return err;
    if (is_late || is_all_closed(engine)) stay_hot(engine, &request->command.claim);
    return BEL_DO_WAIT;
}

void bel__claims_serve(struct bel_engine *engine)
{
    struct bel_request *request;
    if (is_all_closed(engine)) return; /* hot topics stay hot */
    while (!engine->broken && (request = bel__wait_first(engine)) != NULL) {
        bool has_rows = bel__has_rows_left(engine);
        int err = has_rows ? deliver_all(engine, request) : BEL_EBUSY;
        if (err == BEL_EBUSY) { /* the batch or the turn is full: continue in the next */
            engine->is_behind = true;
            return;
        }
        bool is_empty = err == 0 && request->own.reply.deliveries.count == 0;
        if (is_empty && is_all_closed(engine)) return;
        if (err == BEL_DO_LATER && !bel__resources_may_move(&engine->resources)) {
            bel__wait_put_off(engine, request); /* closed resources were in the way */
            continue;
        }
        if (is_empty || err == BEL_DO_LATER) {
            bel__wait_cool(engine, request);
            continue;
        }
        bel__wait_leave(engine, request);
        request->own.reply.err = err;
        request->own.words[BEL_OWN_AFTER] = BEL_AFTER_TURN;
        bel__answer(engine, request);
    }
}
