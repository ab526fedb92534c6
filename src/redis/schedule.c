/* SPDX-License-Identifier: MIT */

/*
 * SCHEDULE: the node checks everything that needs no state and packs the body; the script decides
 * between the new timer and an old one with its id.
 */
#include "redis/cursor.h"
#include "redis/operation.h"
#include "redis/outcome.h"
#include "redis/record.h"
#include "redis/rule.h"

#include "belfry/backoff.h"
#include "core/parse.h"
#include "core/view.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

enum {
    MADE_ID_BYTES = 26,
    MADE_ID_DUE = 10, /* characters of the due, so that ids sort by it */
    MADE_ID_BITS = 5, /* of a character */
    PRIORITY_DEFAULT = 128,
};

static int refuse_unsupported(struct bel_operation *operation, const char *what)
{
    return bel__operation_refuse(operation, BEL_EUNSUPPORTED,
                                 "%s is not supported by a store on Redis", what);
}

static int check_names(struct bel_operation *operation, const struct bel_schedule_spec *spec)
{
    if (spec->has_empty_id) {
        return bel__operation_refuse(operation, BEL_EINVAL,
                                     "ID is empty: leave it out, or give it a value");
    }
    if (spec->group.bytes > BEL_GROUP_BYTES_MAX) {
        return bel__operation_refuse(operation, BEL_EINVAL, "group too long: at most %d bytes",
                                     BEL_GROUP_BYTES_MAX);
    }
    if (spec->resource.bytes > 0 && !bel_resource_is_valid(spec->resource)) {
        return bel__operation_refuse(operation, BEL_EINVAL, "invalid resource");
    }
    if (spec->correlation.bytes > BEL_TEXT_BYTES_MAX) {
        return bel__operation_refuse(operation, BEL_EINVAL,
                                     "correlation too long: at most %d bytes", BEL_TEXT_BYTES_MAX);
    }
    if (spec->group.bytes > 0) return refuse_unsupported(operation, "GROUP");
    if (spec->resource.bytes > 0) return refuse_unsupported(operation, "RESOURCE");
    return 0;
}

/* Returns whether a name is one of those that only the server gives: belfry-plan and others. */
static bool is_reserved(struct bel_view name)
{
    static const char prefix[] = "belfry-";
    return name.bytes >= sizeof prefix - 1 &&
           strncasecmp(name.data, prefix, sizeof prefix - 1) == 0;
}

static int check_header(struct bel_operation *operation, const struct bel_header *header)
{
    if (header->name.bytes == 0) {
        return bel__operation_refuse(operation, BEL_EINVAL, "a header needs a name");
    }
    if (!operation->command.schedule.is_imported && is_reserved(header->name)) {
        return bel__operation_refuse(operation, BEL_EINVAL,
                                     "invalid header: names that begin with belfry- are reserved");
    }
    return 0;
}

int bel__schedule_check_headers(struct bel_operation *operation,
                                const struct bel_schedule_spec *spec)
{
    size_t left = BEL_HEADERS_BYTES_MAX;
    if (spec->headers_count > BEL_HEADERS_MAX) {
        return bel__operation_refuse(operation, BEL_EINVAL, "too many headers: at most %d",
                                     BEL_HEADERS_MAX);
    }
    for (size_t i = 0; i < spec->headers_count; i++) {
        const struct bel_header *header = &spec->headers[i];
        int err = check_header(operation, header);
        if (err) return err;
        if (header->name.bytes > left || header->value.bytes > left - header->name.bytes) {
            return bel__operation_refuse(operation, BEL_EINVAL,
                                         "headers too large: at most %d bytes in total",
                                         BEL_HEADERS_BYTES_MAX);
        }
        left -= header->name.bytes + header->value.bytes;
    }
    return 0;
}

static int check_retry(struct bel_operation *operation, struct bel_view retry)
{
    struct bel_backoff policy;
    struct bel_text_error why;
    if (retry.bytes == 0) return 0;
    if (retry.bytes >= BEL_BACKOFF_BYTES) {
        return bel__operation_refuse(operation, BEL_EINVAL, "retry: expected a shorter policy");
    }
    if (bel_backoff_parse(retry.data, retry.bytes, &policy, &why) == 0) return 0;
    return bel__operation_refuse(operation, BEL_EINVAL, "retry: at byte %zu, expected %s",
                                 why.position + 1, why.expected);
}

/* Sets the due, about: the script computes it again from the time of the server. */
static bool find_due(const struct bel_operation *operation, const struct bel_schedule_spec *spec,
                     int64_t *out)
{
    int64_t now = bel__operation_now(operation);
    *out = now;
    if (spec->when == BEL_WHEN_AT) {
        *out = spec->at.ms < 0 ? 0 : spec->at.ms;
        return spec->at.ms <= BEL_REDIS_TIME_END_MS;
    }
    if (spec->when == BEL_WHEN_NOW) return true;
    if (spec->when != BEL_WHEN_IN || !bel__operation_reaches(operation, spec->delay_ms)) {
        return false;
    }
    *out = now + (int64_t)spec->delay_ms;
    return true;
}

static int check_times(struct bel_operation *operation, const struct bel_schedule_spec *spec)
{
    int64_t due;
    if (!bel__operation_reaches(operation, spec->lease_ms) ||
        spec->expires_ms > (uint64_t)BEL_REDIS_TIME_END_MS) {
        return bel__operation_refuse(operation, BEL_EINVAL, "a duration is too long");
    }
    if (!find_due(operation, spec, &due) ||
        (int64_t)spec->expires_ms > BEL_REDIS_TIME_END_MS - due) {
        return bel__operation_refuse(operation, BEL_EINVAL, "the time is after the year 9999");
    }
    return 0;
}

static int check_rest(struct bel_operation *operation, const struct bel_schedule_spec *spec)
{
    uint32_t payload_max = operation->node->options.payload_bytes_max;
    if (spec->payload.bytes > payload_max) {
        return bel__operation_refuse(operation, BEL_EINVAL, "payload too large: at most %u bytes",
                                     payload_max);
    }
    if ((unsigned)spec->conflict > BEL_CONFLICT_LATEST) {
        return bel__operation_refuse(operation, BEL_EINVAL, "unknown conflict policy");
    }
    if ((unsigned)spec->plan.overlap > BEL_OVERLAP_ALLOW ||
        (unsigned)spec->plan.misfire > BEL_MISFIRE_ALL) {
        return bel__operation_refuse(operation, BEL_EINVAL, "unknown overlap or misfire policy");
    }
    if (spec->plan.rule.bytes > BEL_RULE_BYTES_MAX || spec->plan.zone.bytes > BEL_ZONE_NAME_MAX) {
        return bel__operation_refuse(operation, BEL_EINVAL, "rule too long: at most %d bytes",
                                     BEL_RULE_BYTES_MAX);
    }
    if (spec->plan.spread_ms > (uint64_t)BEL_REDIS_TIME_END_MS) {
        return bel__operation_refuse(operation, BEL_EINVAL, "a duration is too long");
    }
    return 0;
}

/* Finds the first time of a plan. */
static int begin_rule(struct bel_operation *operation)
{
    const struct bel_schedule_spec *spec = &operation->command.schedule;
    struct bel_text_error why = {.position = SIZE_MAX}; /* it stays so if the zone is wrong */
    if (spec->plan.rule.bytes == 0) return 0;
    if (!bel__node_knows_time(operation->node)) {
        return bel__operation_refuse(
            operation, BEL_EIO, "nothing was changed: the time of the server is not known yet");
    }
    struct bel_rule *rule = bel__arena_take(&operation->arena, sizeof *rule);
    if (rule == NULL) return bel__operation_refuse(operation, BEL_ENOMEM, "memory has run out");
    *rule = (struct bel_rule){.said = spec->plan, .id = spec->id};
    rule->created.ms = bel__operation_now(operation);
    operation->rule = rule;
    int err = bel__rule_begin(rule, spec, operation->node->options.zones, &why);
    bool is_far = err == 0 && rule->next.ms > BEL_REDIS_TIME_END_MS - (int64_t)spec->plan.spread_ms;
    if (err == BEL_ERANGE || is_far) {
        return bel__operation_refuse(operation, BEL_EINVAL, "the rule has no future time");
    }
    if (err == BEL_EINVAL && why.position != SIZE_MAX) {
        return bel__operation_refuse(operation, err, "rule: at byte %zu, expected %s",
                                     why.position + 1, why.expected);
    }
    if (err == 0) return 0;
    if (err != BEL_EINVAL) return bel__operation_refuse(operation, err, "memory has run out");
    struct bel_view zone = spec->plan.zone;
    return bel__operation_refuse(operation, err, "unknown time zone '%.*s'; %s", (int)zone.bytes,
                                 (const char *)zone.data, why.expected);
}

static bool has_at_sign(struct bel_view id)
{
    return id.bytes > 0 && memchr(id.data, '@', id.bytes) != NULL;
}

static int refuse_id(struct bel_operation *operation)
{
    return bel__operation_refuse(operation, BEL_EINVAL,
                                 "invalid id: use 1 to %d of A-Z a-z 0-9 . _ : / -",
                                 BEL_ID_BYTES_MAX);
}

/* An id that is unique and sorts by its due: the due, a counter of the node, chance. */
int bel__schedule_make_id(struct bel_operation *operation, struct bel_view *out)
{
    static const char digits[] = "0123456789abcdefghijklmnopqrstuv";
    struct bel_redis *node = operation->node;
    char *id = bel__arena_take(&operation->arena, MADE_ID_BYTES);
    uint64_t chance;
    int64_t due;
    if (id == NULL || bel__entropy_u64(node->entropy, &chance) != 0) {
        return bel__operation_refuse(operation, BEL_ENOMEM, "memory or entropy has run out");
    }
    (void)find_due(operation, &operation->command.schedule, &due);
    uint64_t parts[] = {(uint64_t)due, ++node->made, chance};
    static const size_t ends[] = {MADE_ID_DUE, MADE_ID_DUE + 4, MADE_ID_BYTES};
    for (size_t part = 0, from = 0; part < 3; from = ends[part++]) {
        for (size_t i = ends[part]; i-- > from;) {
            id[i] = digits[parts[part] % (1U << MADE_ID_BITS)];
            parts[part] >>= MADE_ID_BITS;
        }
    }
    *out = (struct bel_view){id, MADE_ID_BYTES};
    return 0;
}

static int prepare(struct bel_operation *operation)
{
    struct bel_schedule_spec *spec = &operation->command.schedule;
    int err = bel__operation_name(operation, spec->topic);
    if (err == 0) err = check_names(operation, spec);
    if (err == 0) err = bel__schedule_check_headers(operation, spec);
    if (err == 0) err = check_retry(operation, spec->retry);
    if (err == 0) err = check_times(operation, spec);
    if (err == 0) err = check_rest(operation, spec);
    if (err) return err;
    if (spec->id.bytes == 0) err = bel__schedule_make_id(operation, &spec->id);
    if (err) return err;
    (void)bel__operation_place(operation, spec->id);
    if (bel_id_is_valid(spec->id)) return begin_rule(operation);
    return has_at_sign(spec->id) ? 0 : refuse_id(operation);
}

static void scheduled(struct bel_item *item, const struct bel_results *results)
{
    struct bel_operation *operation = BEL_CONTAINER_OF(item, struct bel_operation, item);
    if (bel__operation_is_refused(operation, results)) return;
    if (bel_value_is(&results->items[0], "taken")) {
        bel__operation_fail(operation, BEL_ECONFLICT, "a timer with this id already exists");
    } else if (bel_value_is(&results->items[0], "full")) {
        bel__operation_fail(operation, BEL_EFULL, "the topic has reached its depth");
    } else if (bel_value_is(&results->items[0], "oom")) {
        bel__operation_fail(operation, BEL_EFULL, BEL_BATCH_FULL);
    } else if (bel__result_is_number(&results->items[0], 1, 1) ||
               bel_value_is(&results->items[0], "kept")) {
        operation->reply.id = operation->command.schedule.id;
        bel__operation_answer(operation);
    } else {
        bel__operation_fail(operation, BEL_EIO, BEL_OUTCOME_MISLED);
    }
}

/* An id with an @ is only asked for: it is in use by an occurrence, or it is invalid. */
static void looked_up(struct bel_item *item, const struct bel_results *results)
{
    struct bel_operation *operation = BEL_CONTAINER_OF(item, struct bel_operation, item);
    if (bel__operation_is_refused(operation, results)) return;
    if (results->items[0].type == BEL_VALUE_LIST) {
        bel__operation_fail(operation, BEL_ECONFLICT, "the id belongs to an occurrence");
        return;
    }
    (void)refuse_id(operation);
    bel__operation_answer(operation);
}

/* Adds how the timer is scheduled, in three letters, its priority, and of a plan when it was
 * created, its state and its rule; then the ms of its due: see schedule.lua. */
static void add_how(struct bel_batch *batch, const struct bel_operation *operation)
{
    const struct bel_schedule_spec *spec = &operation->command.schedule;
    const struct bel_rule *rule = operation->rule;
    bool is_plain = rule == NULL && spec->expires_ms == 0;
    char how[] = {'a', (char)('0' + spec->conflict), is_plain ? 'p' : 'x'};
    int64_t ms = 0;
    if (rule != NULL) {
        ms = rule->next.ms;
    } else if (spec->when == BEL_WHEN_AT) {
        ms = spec->at.ms < 0 ? 0 : spec->at.ms;
    } else if (spec->when == BEL_WHEN_IN) {
        how[0] = 'i';
        ms = (int64_t)spec->delay_ms;
    } else {
        how[0] = 'n';
    }
    size_t plan_bytes = rule == NULL ? 0 : 7 + bel__rule_bytes(rule);
    uint8_t *at = bel__batch_space(batch, sizeof how + 1 + plan_bytes);
    if (at == NULL) return;
    at = bel__put_view(at, (struct bel_view){how, sizeof how});
    at = bel__put_number(at, spec->has_priority ? spec->priority : PRIORITY_DEFAULT, 1);
    if (rule != NULL) at = bel__put_number(at, (uint64_t)rule->created.ms, 7);
    if (rule != NULL) bel__rule_write(rule, at);
    bel__batch_number(batch, ms);
}

static bool rings_now(const struct bel_operation *operation)
{
    const struct bel_rule *rule = operation->rule;
    if (rule == NULL) return false;
    return rule->next.ms + (int64_t)bel__rule_place(rule) <= bel__operation_now(operation);
}

static void begin(struct bel_operation *operation);

static void met(struct bel_item *item, const struct bel_results *results)
{
    struct bel_operation *operation = BEL_CONTAINER_OF(item, struct bel_operation, item);
    if (bel__operation_is_refused(operation, results)) return;
    if (begin_rule(operation) == 0) {
        begin(operation);
    } else {
        bel__operation_answer(operation);
    }
}

/* Asks the server of a plan for anything, because its times are computed by the clock of that
 * server, which is not known before its first reply. Returns false if it is known. */
static bool meets_server(struct bel_operation *operation)
{
    const struct bel_redis *node = operation->node;
    struct bel_redis_partition *place = bel__operation_place(operation, operation->rule->id);
    if (place->has_replied || !bel__servers_is_sharded(node->servers)) return false;
    if (bel__node_gives_time(node)) return false;
    bel__operation_hold(operation);
    struct bel_batch *batch = bel__batch_join(operation->node, place, BEL_SCRIPT_GET);
    if (batch == NULL) {
        bel__operation_fail(operation, BEL_ENOMEM, NULL);
        return true;
    }
    operation->item.answered = met;
    bel__batch_item(batch, &operation->item, 1);
    bel__batch_text(batch, operation->rule->id);
    return true;
}

static void begin(struct bel_operation *operation)
{
    const struct bel_schedule_spec *spec = &operation->command.schedule;
    bool is_asked = has_at_sign(spec->id);
    if (!is_asked && operation->rule != NULL && meets_server(operation)) return;
    int err = is_asked ? 0 : bel__node_register(operation->node, operation->topic);
    struct bel_batch *batch =
        bel__batch_join(operation->node, bel__operation_place(operation, spec->id),
                        is_asked ? BEL_SCRIPT_GET : BEL_SCRIPT_SCHEDULE);
    if (err || batch == NULL) {
        bel__operation_fail(operation, BEL_ENOMEM, NULL);
        return;
    }
    operation->item.answered = is_asked ? looked_up : scheduled;
    bel__batch_item(batch, &operation->item, 1);
    bel__batch_text(batch, spec->id);
    if (is_asked) return;
    if (spec->conflict != BEL_CONFLICT_REPLACE) bel__batch_may_add(batch, BEL_SCRIPT_KEEP);
    add_how(batch, operation);
    bool is_plan = operation->rule != NULL;
    uint8_t *rest = bel__batch_space(batch, bel__record_rest_bytes(spec));
    if (rest != NULL) bel__record_rest_write(spec, is_plan, rest);
    if (rings_now(operation)) bel__operation_hold(operation); /* until the plan has rung */
    bel__node_mark(operation->node, operation->partition);
}

const struct bel_redis_verb bel__redis_schedule = {prepare, begin};
