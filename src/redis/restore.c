/* SPDX-License-Identifier: MIT */

/*
 * SCHEDULE of a whole timer: the node packs record and `att` as scripts would have left them, and
 * the script stores them if the id is free.
 */
#include "redis/cursor.h"
#include "redis/operation.h"
#include "redis/outcome.h"
#include "redis/record.h"
#include "redis/rule.h"

#include "core/view.h"
#include "plan/backoff.h"

#include <assert.h>
#include <string.h>

enum {
    HEAD_BYTES = 48,
    ATT_BYTES = 1 + 7 + 4 + 4 + 2 + 2 + 4, /* without texts */
    OUTCOME_BYTES = 1 + 7 + 2,
    ADDED_HEADERS = 2, /* belfry-plan and belfry-nominal, which only deliveries have */
    KIND_TIMER = 0,
    KIND_PLAN = 1,
    KIND_OCCURRENCE = 2,
};

static bool is_plan(const struct bel_timer *timer)
{
    return timer->plan.rule.bytes > 0;
}

static bool is_occurrence(const struct bel_timer *timer)
{
    return timer->plan_id.bytes > 0;
}

/* Returns what SCHEDULE was given, as far as it is in the body of a record. */
static struct bel_schedule_spec body_of(const struct bel_timer *timer)
{
    struct bel_schedule_spec spec = {
        .payload = timer->payload,
        .correlation = timer->correlation,
        .retry = timer->retry,
        .headers = timer->headers,
        .headers_count = timer->headers_count,
    };
    if (!is_occurrence(timer) || spec.headers_count < ADDED_HEADERS) return spec;
    const struct bel_header *added = &timer->headers[spec.headers_count - ADDED_HEADERS];
    bool is_added =
        bel__view_is(added[0].name, "belfry-plan") && bel__view_is(added[1].name, "belfry-nominal");
    if (is_added) spec.headers_count -= ADDED_HEADERS;
    return spec;
}

static struct bel_rule rule_of(const struct bel_timer *timer)
{
    return (struct bel_rule){
        .said = timer->plan,
        .id = timer->id,
        .created = timer->created,
        .has_next = timer->has_next,
        .has_start = timer->has_start,
        .is_catching_up = timer->is_catching_up,
        .next = timer->has_next ? timer->due : (struct bel_wall){0},
        .start = timer->has_start ? timer->start : (struct bel_wall){0},
        .made = timer->made,
        .skipped = timer->skipped,
        .missed = timer->missed,
    };
}

static bool is_time(int64_t ms)
{
    return ms >= 0 && ms <= BEL_REDIS_TIME_END_MS;
}

/* Returns whether the id is one of a user, or that of an occurrence of the plan that the timer
 * names. */
static bool has_valid_id(const struct bel_timer *timer)
{
    if (!is_occurrence(timer)) return bel_id_is_valid(timer->id);
    if (timer->id.bytes > BEL_ID_BYTES || timer->id.bytes < timer->plan_id.bytes + 2) return false;
    return bel__view_equal(bel__view_head(timer->id, timer->plan_id.bytes), timer->plan_id) &&
           ((const char *)timer->id.data)[timer->plan_id.bytes] == '@';
}

static bool has_valid_times(const struct bel_timer *timer)
{
    const uint64_t end = (uint64_t)BEL_REDIS_TIME_END_MS;
    return is_time(timer->due.ms) && is_time(timer->created.ms) && is_time(timer->finished.ms) &&
           is_time(timer->expires.ms) && is_time(timer->nominal.ms) && timer->expires_ms <= end &&
           timer->lease_ms <= end && timer->spread_by_ms <= end;
}

/* Returns whether a retry policy can be read, also one that an earlier version has accepted. */
static bool is_retry(struct bel_view text)
{
    struct bel_backoff policy;
    if (text.bytes == 0) return true;
    if (text.bytes >= BEL_BACKOFF_BYTES) return false;
    return bel__backoff_parse_stored(text.data, text.bytes, &policy, NULL) == 0;
}

static bool has_valid_sizes(const struct bel_timer *timer)
{
    for (size_t i = 0; i < timer->outcomes_count && i < BEL_OUTCOMES_MAX; i++) {
        if (timer->outcomes[i].reason.bytes > BEL_TEXT_BYTES_MAX) return false;
    }
    return timer->outcomes_count <= BEL_OUTCOMES_MAX && timer->reason.bytes <= BEL_TEXT_BYTES_MAX &&
           timer->correlation.bytes <= BEL_TEXT_BYTES_MAX && is_retry(timer->retry) &&
           timer->result.bytes <= BEL_RESULT_BYTES_MAX &&
           timer->headers_count <= BEL_HEADERS_MAX + ADDED_HEADERS &&
           timer->plan.rule.bytes <= BEL_RULE_BYTES_MAX &&
           timer->plan.zone.bytes <= BEL_ZONE_NAME_MAX;
}

/* Checks that an unfinished plan can ring. */
static int check_rule(struct bel_operation *operation, const struct bel_timer *timer)
{
    struct bel_rule rule = rule_of(timer);
    struct bel_text_error why = {.position = SIZE_MAX};
    struct bel_plan *plan = NULL;
    if (!is_plan(timer) || timer->state >= BEL_DONE) return 0;
    int err = bel__rule_plan(&rule, operation->node->options.zones, &plan, &why);
    if (err) return bel__operation_refuse(operation, err, "plan: expected %s", why.expected);
    bel_plan_destroy(plan);
    return 0;
}

static int prepare(struct bel_operation *operation)
{
    const struct bel_schedule_spec *spec = &operation->command.schedule;
    const struct bel_timer *timer = spec->whole;
    uint32_t payload_max = operation->node->options.payload_bytes_max;
    int err = bel__operation_name(operation, spec->topic);
    if (err) return err;
    if (spec->conflict != BEL_CONFLICT_KEEP && spec->conflict != BEL_CONFLICT_REJECT) {
        return bel__operation_refuse(operation, BEL_EINVAL,
                                     "a whole timer is kept or rejected on a conflict");
    }
    if (timer->is_task || timer->group.bytes > 0 || timer->resource.bytes > 0) {
        return bel__operation_refuse(operation, BEL_EUNSUPPORTED,
                                     "%s not supported by a store on Redis",
                                     timer->is_task           ? "jobs are"
                                     : timer->group.bytes > 0 ? "GROUP is"
                                                              : "RESOURCE is");
    }
    if (!has_valid_id(timer)) return bel__operation_refuse(operation, BEL_EINVAL, "invalid id");
    if (timer->payload.bytes > payload_max) {
        return bel__operation_refuse(operation, BEL_EINVAL, "payload too large: at most %u bytes",
                                     payload_max);
    }
    if ((unsigned)timer->state >= BEL_STATES || !has_valid_times(timer) ||
        !has_valid_sizes(timer)) {
        return bel__operation_refuse(operation, BEL_EINVAL, "the timer is not as LIST has it");
    }
    return check_rule(operation, timer);
}

static void restored(struct bel_item *item, const struct bel_results *results)
{
    struct bel_operation *operation = BEL_CONTAINER_OF(item, struct bel_operation, item);
    if (bel__operation_is_refused(operation, results)) return;
    if (bel_value_is(&results->items[0], "taken")) {
        bel__operation_fail(operation, BEL_ECONFLICT, "a timer with this id already exists");
    } else if (bel_value_is(&results->items[0], "new") ||
               bel_value_is(&results->items[0], "kept")) {
        operation->reply.id = operation->command.schedule.whole->id;
        bel__operation_answer(operation);
    } else {
        bel__operation_fail(operation, BEL_EIO, BEL_OUTCOME_MISLED);
    }
}

static int64_t due_of(const struct bel_timer *timer)
{
    if (timer->state == BEL_BLOCKED) return timer->nominal.ms + (int64_t)timer->spread_by_ms;
    if (is_plan(timer) && !timer->has_next) return timer->created.ms;
    return timer->due.ms;
}

static void add_record(struct bel_batch *batch, const struct bel_timer *timer)
{
    struct bel_schedule_spec body = body_of(timer);
    uint8_t *at = bel__batch_space(batch, HEAD_BYTES + bel__record_body_bytes(&body));
    if (at == NULL) return;
    unsigned kind = is_occurrence(timer) ? KIND_OCCURRENCE : KIND_TIMER;
    if (is_plan(timer)) kind = KIND_PLAN;
    uint8_t *head = at;
    at = bel__put_number(at, timer->priority, 1);
    at = bel__put_number(at, 0, 7);
    at = bel__put_number(at, (uint64_t)due_of(timer), 7);
    at = bel__put_number(at, (uint64_t)timer->created.ms, 7);
    at = bel__put_number(at, timer->expires_ms > 0 ? (uint64_t)timer->expires.ms : 0, 7);
    at = bel__put_number(at, timer->expires_ms, 7);
    at = bel__put_number(at, timer->lease_ms, 7);
    at = bel__put_number(at, bel__record_load(&body), 4);
    at = bel__put_number(at, kind, 1);
    assert(at - head == HEAD_BYTES);
    bel__record_body_write(&body, at);
}

static size_t outcomes_bytes(const struct bel_timer *timer)
{
    size_t bytes = 0;
    for (size_t i = 0; i < timer->outcomes_count; i++) {
        bytes += OUTCOME_BYTES + timer->outcomes[i].reason.bytes;
    }
    return bytes;
}

static uint8_t *put_outcomes(uint8_t *at, const struct bel_timer *timer)
{
    for (size_t i = 0; i < timer->outcomes_count; i++) {
        const struct bel_outcome *outcome = &timer->outcomes[i];
        at = bel__put_number(at, outcome->kind == BEL_OUTCOME_CRASHED, 1);
        at = bel__put_number(at, (uint64_t)outcome->at.ms, 7);
        at = bel__put_number(at, outcome->reason.bytes, 2);
        at = bel__put_view(at, outcome->reason);
    }
    return at;
}

static bool needs_att(const struct bel_timer *timer)
{
    return is_plan(timer) || timer->state >= BEL_DONE || timer->attempts > 0 ||
           timer->crashes > 0 || timer->outcomes_count > 0;
}

static uint64_t at_most_u32(uint64_t number)
{
    return number <= UINT32_MAX ? number : UINT32_MAX;
}

static void add_att(struct bel_batch *batch, const struct bel_timer *timer)
{
    if (!needs_att(timer)) {
        bel__batch_word(batch, "");
        return;
    }
    struct bel_rule rule = rule_of(timer);
    struct bel_view reason = timer->state >= BEL_DONE ? timer->reason : (struct bel_view){0};
    size_t rule_bytes = is_plan(timer) ? bel__rule_bytes(&rule) : timer->result.bytes;
    size_t outcomes = outcomes_bytes(timer);
    uint8_t *at = bel__batch_space(batch, ATT_BYTES + reason.bytes + outcomes + rule_bytes);
    if (at == NULL) return;
    at = bel__put_number(at, timer->state >= BEL_DONE ? timer->state : 0, 1);
    at = bel__put_number(at, (uint64_t)timer->finished.ms, 7);
    at = bel__put_number(at, at_most_u32(timer->attempts), 4);
    at = bel__put_number(at, at_most_u32(timer->crashes), 4);
    at = bel__put_number(at, reason.bytes, 2);
    at = bel__put_view(at, reason);
    at = bel__put_number(at, outcomes, 2);
    at = put_outcomes(at, timer);
    at = bel__put_number(at, rule_bytes, 4);
    if (is_plan(timer)) {
        bel__rule_write(&rule, at);
    } else {
        (void)bel__put_view(at, timer->result);
    }
}

static void begin(struct bel_operation *operation)
{
    const struct bel_schedule_spec *spec = &operation->command.schedule;
    const struct bel_timer *timer = spec->whole;
    int err = bel__node_register(operation->node, operation->topic);
    struct bel_batch *batch = bel__batch_join(
        operation->node, bel__operation_place(operation, timer->id), BEL_SCRIPT_RESTORE);
    if (err || batch == NULL) {
        bel__operation_fail(operation, BEL_ENOMEM, NULL);
        return;
    }
    bool is_leased = timer->state == BEL_LEASED;
    operation->item.answered = restored;
    bel__batch_item(batch, &operation->item, 1);
    bel__batch_text(batch, timer->id);
    bel__batch_number(batch, spec->conflict);
    bel__batch_number(batch, is_leased ? BEL_READY : timer->state);
    add_record(batch, timer);
    add_att(batch, timer);
    bel__node_mark(operation->node, operation->partition);
}

const struct bel_redis_verb bel__redis_restore = {prepare, begin};
