/* SPDX-License-Identifier: MIT */

/*
 * ACK, FAIL, RELEASE and EXTEND: commands with the token of a lease. Only the token of a lease that
 * is not over is accepted.
 */
#include "core/utf8.h"
#include "core/view.h"
#include "engine/commands/commands.h"
#include "engine/jobs/results.h"
#include "engine/rows/blob.h"
#include "engine/state/state.h"
#include "engine/state/timer.h"
#include "engine/state/work.h"
#include "plan/backoff.h"

#include <assert.h>

enum {
    LIMITED_MS = 60 * 1000, /* default delay of a FAIL of kind `limited` */
};

static int load_leased(struct bel_engine *engine, struct bel_lease *lease, struct bel_found *out)
{
    int err = bel__timer_load_leased(engine, &lease->key, lease, out);
    return err == BEL_ENOTFOUND ? BEL_ECORRUPT : err;
}

/* Finds the leased timer of a token. Returns BEL_ESTALE if the lease is over. */
static int find_leased(struct bel_engine *engine, struct bel_view token, struct bel_found *out)
{
    struct bel_lease *lease = bel__lease_by_token(engine, token);
    if (lease == NULL) return BEL_ESTALE;
    lease->ending = BEL_LEASE_END_OTHER;
    return load_leased(engine, lease, out);
}

static int refuse_stale(struct bel_reply *reply)
{
    return bel__refuse(reply, BEL_ESTALE, "the lease has ended; claim again");
}

/* Finds the leased timer of a token, to be given back after `delay_ms`. On an error, sets the
 * reply's text. */
static int find_given_back(struct bel_engine *engine, struct bel_view token, uint64_t delay_ms,
                           struct bel_reply *reply, struct bel_found *out)
{
    uint64_t time;
    int err = bel__times_after(&engine->now, delay_ms, &time);
    if (err) {
        (void)bel__refuse(reply, err, "the delay is too long");
        return err;
    }
    err = find_leased(engine, token, out);
    if (err == BEL_ESTALE) (void)refuse_stale(reply);
    return err;
}

/* The lease stays, because the command has failed. Returns its error. */
static int keep_lease(struct bel_found *found, int err)
{
    found->lease->end_kind = BEL_WORK_WITHDRAWN; /* if nothing else ends it */
    return err;
}

static int ack(struct bel_engine *engine, struct bel_view token, const struct bel_view *result,
               struct bel_reply *reply)
{
    uint64_t bytes = result != NULL ? result->bytes : 0;
    struct bel_lease *lease = bel__lease_by_token(engine, token);
    struct bel_found found;
    if (lease == NULL) return BEL_ESTALE;
    bool is_kept = bel__timer_is_kept(lease->topic, BEL_DONE);
    lease->ending = BEL_LEASE_END_ACK;
    if (lease->is_bare && !is_kept) {
        lease->end_kind = BEL_WORK_DONE;
        int failed = bel__timer_end_bare(engine, lease);
        if (failed) lease->end_kind = BEL_WORK_WITHDRAWN; /* if nothing else ends it */
        return failed;
    }
    int err = load_leased(engine, lease, &found);
    if (err) return err;
    err = bel__timer_reserve(engine, &found, bytes, BEL_STORE_END);
    if (err) return err;
    bool is_task = found.record.job.number != 0;
    if (is_task && !bel__results_fit(&found, bytes)) {
        return bel__refuse(
            reply, BEL_EFULL,
            "the results of a job have at most %d MiB: ack the task without a result",
            BEL_RESULTS_OF_JOB_MAX >> 20);
    }
    struct bel_ending ending = {.state = BEL_DONE, .has_result = result != NULL};
    if (result != NULL) ending.result = *result;
    lease->end_kind = BEL_WORK_DONE;
    bel__timer_end(engine, &found, &ending);
    return 0;
}

int bel__do_ack(struct bel_engine *engine, struct bel_request *request)
{
    const struct bel_ack *command = &request->command.ack;
    struct bel_reply *reply = &request->own.reply;
    const struct bel_view *result = command->has_result ? &command->result : NULL;
    if (result != NULL) {
        if (command->tokens_count != 1) {
            return bel__refuse(reply, BEL_EINVAL, "a result needs exactly one token");
        }
        if (result->bytes > BEL_RESULT_BYTES_MAX) {
            return bel__refuse(reply, BEL_EINVAL, "a result has at most %d bytes",
                               BEL_RESULT_BYTES_MAX);
        }
    }
    uint64_t *next = &request->own.words[BEL_OWN_FREE], count = reply->count;
    if (request->own.words[BEL_OWN_STAGE] != BEL_STAGE_BULK) *next = 0;
    for (uint64_t first = *next; *next < command->tokens_count; ++*next) {
        bool is_over = *next > first && bel__must_break_off(engine);
        int err = is_over ? BEL_EBUSY : ack(engine, command->tokens[*next], result, reply);
        if (err == BEL_ESTALE) continue;
        if (err) return bel__break_off(request, err, count);
        count++;
    }
    reply->count = count;
    return 0;
}

/* Returns whether the timer expires at or before an engine time. */
static bool is_past_expiry(const struct bel_engine *engine, const struct bel_record *record,
                           uint64_t time)
{
    if (record->expires_ms == 0) return false;
    if (record->expires_lane == BEL_LANE_WALL) {
        time = bel__lane_wall(&engine->now, BEL_LANE_ENGINE, time);
    }
    return time >= record->expires_at;
}

/* Moves a leased timer to a later time and ends its lease. */
static int put_off(struct bel_engine *engine, struct bel_found *found, uint64_t time)
{
    struct bel_place old = bel__place_of(&found->key);
    assert(found->state == BEL_LEASED && time >= engine->now.engine);
    struct bel_place place = {.topic = old.topic, .lane = BEL_LANE_ENGINE, .time = time};
    int err = bel__timer_hold(engine, found->topic, &place, bel__record_share(&found->record));
    if (err) return err;
    err = bel__timer_reserve(engine, found, 0, BEL_STORE_END);
    if (err) return err;
    place = bel__timer_place(engine, found->topic, BEL_LANE_ENGINE, time, old.priority);
    bel__timer_move(engine, found, &place);
    return 0;
}

static struct bel_wall wall_of(const struct bel_engine *engine, uint64_t time)
{
    return (struct bel_wall){(int64_t)bel__lane_wall(&engine->now, BEL_LANE_ENGINE, time)};
}

/* Sets `*out` to the timer's retry policy, or else the topic's. */
static int policy_of(struct bel_engine *engine, const struct bel_found *found,
                     struct bel_backoff *out)
{
    struct bel_view bytes;
    struct bel_body body;
    int err = bel__blob_get(engine->store, &found->record.body, bel__answer_arena(engine), &bytes);
    if (err == 0) err = bel__body_read(bytes, &body);
    if (err) return err;
    *out = bel__topic_settings(found->topic)->retry;
    if (body.retry.bytes == 0) return 0;
    int bad = bel__backoff_parse_stored(body.retry.data, body.retry.bytes, out, NULL);
    return bad ? BEL_ECORRUPT : 0;
}

/* Sets `*out` to the time of the next attempt. Returns BEL_ENOTFOUND if there is none. */
static int retry_at(struct bel_engine *engine, const struct bel_found *found,
                    const struct bel_fail *fail, uint64_t *out)
{
    struct bel_backoff policy;
    uint64_t delay_ms, random;
    if (fail->dead) return BEL_ENOTFOUND;
    int err = policy_of(engine, found, &policy);
    if (err) return err;
    err = bel__entropy_u64(engine->entropy, &random);
    if (err) return err;
    if (!bel_backoff_delay(&policy, found->record.attempts, random, &delay_ms)) {
        return BEL_ENOTFOUND;
    }
    return bel__times_after(&engine->now, fail->has_delay ? fail->delay_ms : delay_ms, out);
}

/* Ends a timer that has failed, as dead or expired. */
static int end_failed(struct bel_engine *engine, struct bel_found *found, enum bel_state state,
                      struct bel_view reason)
{
    int err = bel__timer_reserve(engine, found, 0, BEL_STORE_END);
    if (err) return err;
    struct bel_ending ending = {.state = state, .reason = reason};
    bel__timer_end(engine, found, &ending);
    return 0;
}

static int fail(struct bel_engine *engine, struct bel_found *found, const struct bel_fail *command,
                struct bel_verdict *out)
{
    struct bel_view reason = bel__utf8_head(command->reason, BEL_TEXT_BYTES_MAX);
    uint64_t time = 0;
    found->record.attempts++;
    bel__record_note(&found->record, (struct bel_outcome){.kind = BEL_OUTCOME_FAILED,
                                                          .at = {engine->now.wall},
                                                          .reason = reason});
    int err = retry_at(engine, found, command, &time);
    if (err == BEL_ENOTFOUND) {
        *out = (struct bel_verdict){.state = BEL_DEAD};
        return end_failed(engine, found, BEL_DEAD, reason);
    }
    if (err) return err;
    if (is_past_expiry(engine, &found->record, time)) {
        *out = (struct bel_verdict){.state = BEL_EXPIRED};
        return end_failed(engine, found, BEL_EXPIRED, BEL_VIEW("expired"));
    }
    *out = (struct bel_verdict){.state = BEL_SCHEDULED, .due = wall_of(engine, time)};
    return put_off(engine, found, time);
}

/* Reports a limit of the resource of a leased timer. The name of the worker is in the lease's
 * row. */
static int report_limit(struct bel_engine *engine, const struct bel_found *found, uint64_t delay_ms)
{
    struct bel_key key = bel__key_in(&found->key, BEL_TABLE_LEASES);
    struct bel_lease_row row;
    struct bel_view value;
    int err = bel__store_get(engine->store, &key, &value);
    if (err == 0) err = bel__lease_read(value, &row);
    if (err) return err == BEL_ENOTFOUND ? BEL_ECORRUPT : err;
    return bel__resource_limit(engine, found->lease->resource, delay_ms, row.worker);
}

/* FAIL of the kind `limited`: spends no attempt. With a resource, the resource is limited, and the
 * timer waits for it at its old place; without one, the timer is put off. */
static int fail_limited(struct bel_engine *engine, struct bel_found *found,
                        const struct bel_fail *command, struct bel_verdict *out)
{
    uint64_t delay_ms = command->has_delay ? command->delay_ms : LIMITED_MS, time = 0;
    int err = bel__times_after(&engine->now, delay_ms, &time);
    if (err) return err;
    if (found->lease->resource == NULL) {
        *out = (struct bel_verdict){.state = BEL_SCHEDULED, .due = wall_of(engine, time)};
        return put_off(engine, found, time);
    }
    struct bel_resource *resource = found->lease->resource;
    err = bel__rows_reserve(&engine->rows, 1, 0, BEL_STORE_END);
    if (err == 0) err = report_limit(engine, found, delay_ms);
    if (err) return err;
    *out = (struct bel_verdict){.state = BEL_READY, .due = wall_of(engine, resource->limits.until)};
    bel__timer_give_back(engine, found);
    return 0;
}

int bel__do_fail(struct bel_engine *engine, struct bel_request *request)
{
    const struct bel_fail *command = &request->command.fail;
    struct bel_reply *reply = &request->own.reply;
    struct bel_found found;
    int err = find_given_back(engine, command->token, command->has_delay ? command->delay_ms : 0,
                              reply, &found);
    if (err) return err;
    struct bel_verdict verdict = {.state = BEL_SCHEDULED};
    found.lease->end_kind = BEL_WORK_FAILED;
    if (command->kind == BEL_FAIL_LIMITED && !command->dead) {
        err = fail_limited(engine, &found, command, &verdict);
    } else {
        if (command->kind == BEL_FAIL_RESOURCE) found.lease->ending = BEL_LEASE_END_FAIL;
        err = fail(engine, &found, command, &verdict);
    }
    if (err) return keep_lease(&found, err);
    reply->verdict = verdict;
    return 0;
}

int bel__do_release(struct bel_engine *engine, struct bel_request *request)
{
    const struct bel_release *command = &request->command.release;
    struct bel_reply *reply = &request->own.reply;
    struct bel_found found;
    uint64_t time;
    int err = find_given_back(engine, command->token, command->has_delay ? command->delay_ms : 0,
                              reply, &found);
    if (err) return err;
    found.lease->end_kind = BEL_WORK_RELEASED;
    if (command->has_delay) {
        err = bel__times_after(&engine->now, command->delay_ms, &time);
        if (err == 0) err = put_off(engine, &found, time);
        if (err) return keep_lease(&found, err);
    } else {
        err = bel__rows_reserve(&engine->rows, 1, 0, BEL_STORE_END);
        if (err) return keep_lease(&found, err);
        bel__timer_give_back(engine, &found);
    }
    reply->count = 1;
    return 0;
}

int bel__do_extend(struct bel_engine *engine, struct bel_request *request)
{
    const struct bel_extend *command = &request->command.extend;
    struct bel_reply *reply = &request->own.reply;
    uint64_t end;
    if (bel__times_after(&engine->now, command->lease_ms, &end) != 0) {
        return bel__refuse(reply, BEL_EINVAL, "the lease is too long");
    }
    struct bel_lease *lease = bel__lease_by_token(engine, command->token);
    if (lease == NULL) return refuse_stale(reply);
    uint64_t lease_ms = command->lease_ms > 0 ? command->lease_ms : lease->lease_ms;
    int err = bel__rows_reserve(&engine->rows, 1, BEL_RECORD_BYTES_MAX, BEL_STORE_END);
    if (err == 0) err = bel__lease_extend(engine, lease, lease_ms);
    if (err) return err;
    reply->count = lease_ms;
    return 0;
}
