/* SPDX-License-Identifier: MIT */

/*
 * SCHEDULE and GET in topics of the layout faststream; timers.c has CANCEL and RESCHEDULE. Leased
 * timers look like scheduled ones: the package does not tell them apart, either.
 */
#include "redis/faststream.h"

#include "core/utf8.h"

#include <assert.h>
#include <string.h>

enum {
    TIMER_FIELDS = 3,
    PRIORITY_DEFAULT = 128,
};

struct bel_batch *
bel__faststream_item(struct bel_operation *operation, enum bel_script_name script, size_t results,
                     void (*answered)(struct bel_item *item, const struct bel_results *results))
{
    struct bel_batch *batch =
        results == 0 ? bel__batch_alone(operation->node, operation->topic->partitions[0], script)
                     : bel__batch_join(operation->node, operation->topic->partitions[0], script);
    if (batch == NULL) {
        bel__operation_fail(operation, BEL_ENOMEM, NULL);
        return NULL;
    }
    operation->item.answered = answered;
    bel__batch_item(batch, &operation->item, results);
    return batch;
}

int bel__faststream_refuse_stale(struct bel_operation *operation)
{
    return bel__operation_refuse(operation, BEL_ESTALE, "no live lease has this token");
}

/* --- SCHEDULE --- */

static int refuse_option(struct bel_operation *operation, const char *option)
{
    return bel__operation_refuse(
        operation, BEL_EINVAL,
        "%s: a topic of the layout faststream takes ID, IN, AT, HEADER, CORRELATION and CONFLICT "
        "replace, keep or reject",
        option);
}

/* Returns an option that timers of the package do not have, or NULL. */
static const char *foreign_option(const struct bel_schedule_spec *spec)
{
    static const char *const plans[] = {
        [BEL_PLAN_EVERY] = "EVERY", [BEL_PLAN_CRON] = "CRON", [BEL_PLAN_RRULE] = "RRULE"};
    if (spec->plan.rule.bytes > 0) {
        size_t kind = (size_t)spec->plan.kind;
        return kind < sizeof plans / sizeof plans[0] ? plans[kind] : "EVERY";
    }
    if (spec->has_priority) return "PRIORITY";
    if (spec->group.bytes > 0) return "GROUP";
    if (spec->resource.bytes > 0) return "RESOURCE";
    if (spec->retry.bytes > 0) return "RETRY";
    if (spec->lease_ms > 0) return "LEASE";
    if (spec->expires_ms > 0) return "EXPIRES";
    if (spec->conflict == BEL_CONFLICT_EARLIEST) return "CONFLICT earliest";
    if (spec->conflict == BEL_CONFLICT_LATEST) return "CONFLICT latest";
    return NULL;
}

static int check_times(struct bel_operation *operation, const struct bel_schedule_spec *spec)
{
    bool is_valid = spec->when != BEL_WHEN_AT || spec->at.ms <= BEL_REDIS_TIME_END_MS;
    if (spec->when == BEL_WHEN_IN) is_valid = bel__operation_reaches(operation, spec->delay_ms);
    if (is_valid) return 0;
    return bel__operation_refuse(operation, BEL_EINVAL, "the time is after the year 9999");
}

static int check_payload(struct bel_operation *operation, const struct bel_schedule_spec *spec)
{
    uint32_t most = operation->node->options.payload_bytes_max;
    if (spec->payload.bytes <= most) return 0;
    return bel__operation_refuse(operation, BEL_EINVAL, "payload too large: at most %u bytes",
                                 most);
}

static int make_envelope(struct bel_operation *operation, const struct bel_schedule_spec *spec)
{
    struct bel_envelope *envelope = bel__arena_take(&operation->arena, sizeof *envelope);
    if (envelope == NULL) return bel__operation_refuse(operation, BEL_ENOMEM, "memory has run out");
    *envelope = (struct bel_envelope){.body = spec->payload};
    int err =
        bel__envelope_arrange(envelope, spec->correlation.bytes > 0 ? spec->correlation : spec->id,
                              spec->headers, spec->headers_count, &operation->arena);
    operation->envelope = envelope;
    if (err == BEL_EINVAL) {
        return bel__operation_refuse(operation, err,
                                     "a header is not UTF-8, or longer than %d bytes: a topic of "
                                     "the layout faststream has headers of text",
                                     BEL_ENVELOPE_TEXT_MAX);
    }
    return err ? bel__operation_refuse(operation, err, "memory has run out") : 0;
}

static int prepare_schedule(struct bel_operation *operation)
{
    struct bel_schedule_spec *spec = &operation->command.schedule;
    int err = bel__operation_name(operation, spec->topic);
    const char *foreign = foreign_option(spec);
    if (err == 0 && spec->whole != NULL) {
        return bel__operation_refuse(operation, BEL_EUNSUPPORTED,
                                     "nothing is copied into a topic of the layout faststream");
    }
    if (err == 0 && foreign != NULL) err = refuse_option(operation, foreign);
    if (err == 0) err = bel__schedule_check_headers(operation, spec);
    if (err == 0) err = check_times(operation, spec);
    if (err == 0) err = check_payload(operation, spec);
    if (err) return err;
    bool is_id_made = spec->id.bytes == 0 && !spec->has_empty_id;
    if (is_id_made) err = bel__schedule_make_id(operation, &spec->id);
    if (err) return err;
    if (spec->id.bytes > BEL_ENVELOPE_TEXT_MAX || !bel__utf8_is_text(spec->id)) {
        return bel__operation_refuse(operation, BEL_EINVAL,
                                     "invalid id: use up to %d bytes of UTF-8",
                                     BEL_ENVELOPE_TEXT_MAX);
    }
    return make_envelope(operation, spec);
}

static void scheduled(struct bel_item *item, const struct bel_results *results)
{
    struct bel_operation *operation = BEL_CONTAINER_OF(item, struct bel_operation, item);
    if (bel__operation_is_refused(operation, results)) return;
    if (bel_value_is(&results->items[0], "taken")) {
        bel__operation_fail(operation, BEL_ECONFLICT, "a timer with this id already exists");
        return;
    }
    if (bel_value_is(&results->items[0], "oom")) {
        bel__operation_fail(operation, BEL_EFULL, BEL_BATCH_FULL);
        return;
    }
    operation->reply.id = operation->command.schedule.id;
    bel__operation_answer(operation);
}

static void begin_schedule(struct bel_operation *operation)
{
    const struct bel_schedule_spec *spec = &operation->command.schedule;
    struct bel_batch *batch =
        bel__faststream_item(operation, BEL_SCRIPT_FASTSTREAM_SCHEDULE, 1, scheduled);
    if (batch == NULL) return;
    bool is_replacing = spec->conflict == BEL_CONFLICT_REPLACE;
    if (!is_replacing) bel__batch_may_add(batch, BEL_SCRIPT_FASTSTREAM_KEEP);
    bool is_at = spec->when == BEL_WHEN_AT;
    int64_t at_ms = spec->at.ms < 0 ? 0 : spec->at.ms;
    bel__batch_text(batch, spec->id);
    bel__batch_number(batch, spec->conflict);
    bel__batch_word(batch, is_at ? "a" : spec->when == BEL_WHEN_IN ? "i" : "n");
    bel__batch_number(batch, is_at ? at_ms : (int64_t)spec->delay_ms);
    uint8_t *value = bel__batch_space(batch, bel__envelope_bytes(operation->envelope));
    if (value != NULL) bel__envelope_write(operation->envelope, value);
    bel__node_mark_all(operation->node, operation->topic);
}

const struct bel_redis_verb bel__faststream_schedule = {prepare_schedule, begin_schedule};

/* --- GET --- */

static int read_timer(struct bel_operation *operation, const struct bel_value *item,
                      struct bel_timer *out)
{
    struct bel_faststream_content content;
    if (item->type != BEL_VALUE_LIST || item->count != TIMER_FIELDS) return BEL_ECORRUPT;
    const struct bel_value *fields = item->items;
    if (fields[0].type != BEL_VALUE_TEXT || fields[1].type != BEL_VALUE_NUMBER ||
        fields[2].type != BEL_VALUE_TEXT) {
        return BEL_ECORRUPT;
    }
    int err = bel__faststream_read(operation, fields[0].text, fields[2].text, &content);
    if (err) return err;
    bool is_due = fields[1].number <= bel__operation_now(operation);
    *out = (struct bel_timer){.topic = operation->topic->name,
                              .id = fields[0].text,
                              .payload = content.body,
                              .correlation = content.correlation,
                              .state = is_due ? BEL_READY : BEL_SCHEDULED,
                              .priority = PRIORITY_DEFAULT,
                              .headers = content.headers,
                              .headers_count = content.headers_count};
    out->due.ms = fields[1].number;
    return 0;
}

int bel__faststream_timers(struct bel_operation *operation, const struct bel_value *items,
                           size_t count)
{
    struct bel_timer *timers = bel__arena_take(&operation->arena, (count + 1) * sizeof *timers);
    size_t found = 0;
    if (timers == NULL) return BEL_ENOMEM;
    for (size_t i = 0; i < count; i++) {
        if (items[i].type == BEL_VALUE_NIL) continue;
        int err = read_timer(operation, &items[i], &timers[found]);
        if (err) return err;
        found++;
    }
    operation->reply.timers.items = timers;
    operation->reply.timers.count = found;
    return 0;
}

static int prepare_target(struct bel_operation *operation)
{
    return bel__operation_name(operation, operation->command.target.topic);
}

static void got(struct bel_item *item, const struct bel_results *results)
{
    struct bel_operation *operation = BEL_CONTAINER_OF(item, struct bel_operation, item);
    if (bel__operation_is_refused(operation, results)) return;
    int err = bel__faststream_timers(operation, results->items, 1);
    if (err) {
        bel__operation_fail(operation, err, NULL);
        return;
    }
    bel__operation_answer(operation);
}

static void begin_get(struct bel_operation *operation)
{
    struct bel_batch *batch = bel__faststream_item(operation, BEL_SCRIPT_FASTSTREAM_GET, 1, got);
    if (batch != NULL) bel__batch_text(batch, operation->command.target.id);
}

const struct bel_redis_verb bel__faststream_get = {prepare_target, begin_get};
