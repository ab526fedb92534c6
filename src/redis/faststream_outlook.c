/* SPDX-License-Identifier: MIT */

/*
 * AGENDA and EXPLAIN in topics of the layout faststream. A lease is a due to the package: an agenda
 * counts a leased timer when its lease ends. EXPLAIN knows leases of ours; those of the package it
 * cannot tell from timers that are due later.
 */
#include "redis/faststream.h"
#include "redis/reading.h"
#include "telling/steps.h"
#include "telling/timer.h"

#include <assert.h>

enum {
    SLICE = 1000,        /* steps in one call */
    EXPLAIN_RESULTS = 5, /* timer, length of the lease, paused, leases, rank */
};

/* --- AGENDA --- */

struct bel_outlook {
    struct bel_steps steps;
    size_t done; /* steps that were counted */
};

static int prepare_agenda(struct bel_operation *operation)
{
    const struct bel_agenda *command = &operation->command.agenda;
    int err = bel__operation_name(operation, command->topic);
    if (err) return err;
    struct bel_outlook *outlook = bel__arena_take(&operation->arena, sizeof *outlook);
    if (outlook == NULL) return bel__operation_refuse(operation, BEL_ENOMEM, "memory has run out");
    *outlook = (struct bel_outlook){.done = 0};
    operation->outlook = outlook;
    struct bel_wall now = {bel__node_now(operation->node)};
    return bel__steps_divide(&outlook->steps, command, now, &operation->reply);
}

static void send_steps(struct bel_operation *operation);

static size_t slice_of(const struct bel_outlook *outlook)
{
    size_t left = outlook->steps.count - outlook->done;
    return left < SLICE ? left : SLICE;
}

static void counted(struct bel_item *item, const struct bel_results *results)
{
    struct bel_operation *operation = BEL_CONTAINER_OF(item, struct bel_operation, item);
    struct bel_outlook *outlook = operation->outlook;
    if (bel__operation_is_refused(operation, results)) return;
    int err = results->count != 1
                  ? BEL_EIO
                  : bel__reading_steps(&outlook->steps, &results->items[0], outlook->done);
    if (err) {
        bel__operation_fail(operation, err, NULL);
        return;
    }
    outlook->done += slice_of(outlook);
    send_steps(operation);
}

static void send_steps(struct bel_operation *operation)
{
    const struct bel_outlook *outlook = operation->outlook;
    const struct bel_steps *steps = &outlook->steps;
    if (outlook->done == steps->count) {
        operation->reply.steps.items = steps->items;
        operation->reply.steps.count = steps->count;
        bel__operation_answer(operation);
        return;
    }
    struct bel_batch *batch =
        bel__faststream_item(operation, BEL_SCRIPT_FASTSTREAM_AGENDA, 0, counted);
    if (batch == NULL) return;
    bel__batch_number(batch, steps->from + (int64_t)outlook->done * steps->step);
    bel__batch_number(batch, steps->step);
    bel__batch_number(batch, (int64_t)slice_of(outlook));
}

static void begin_agenda(struct bel_operation *operation)
{
    struct bel_steps *steps = &operation->outlook->steps;
    struct bel_agenda_step *items =
        bel__arena_take(&operation->arena, (steps->count + 1) * sizeof items[0]);
    if (items == NULL) {
        bel__operation_fail(operation, BEL_ENOMEM, NULL);
        return;
    }
    bel__steps_begin(steps, items);
    send_steps(operation);
}

const struct bel_redis_verb bel__faststream_agenda = {prepare_agenda, begin_agenda};

/* --- EXPLAIN --- */

static int prepare_explain(struct bel_operation *operation)
{
    return bel__operation_name(operation, operation->command.target.topic);
}

static struct bel_view copy(void *memory, struct bel_view text)
{
    return bel__arena_copy(memory, text);
}

static void tell_leased(struct bel_telling *telling, uint64_t length_ms)
{
    struct bel_wall end = telling->timer->due;
    struct bel_reason reason = {.word = "leased", .has_until = true, .until = end};
    uint64_t left = bel__distance((uint64_t)telling->now.ms, (uint64_t)end.ms);
    bel__give_reason(telling, &reason);
    bel__say(telling,
             "The timer is leased: a worker of Belfry has it for another %s of %s. Programs of "
             "faststream-redis-timers see it as scheduled for the end of the lease.",
             bel__lasting(left).text, bel__lasting(length_ms).text);
    bel__say(telling, "If the lease ends first, the timer is ready again.");
}

static void tell_timer(struct bel_telling *telling, const struct bel_operation *operation,
                       const struct bel_value *items)
{
    bool is_paused = items[2].number == 1;
    if (items[1].number > 0) {
        tell_leased(telling, (uint64_t)items[1].number);
    } else if (telling->timer->state == BEL_SCHEDULED) {
        bel__tell_scheduled(telling);
        if (is_paused) bel__tell_paused(telling);
        bel__say(telling,
                 "A Python worker may have leased the timer until then: in this layout a lease "
                 "looks like a later due time.");
    } else {
        if (is_paused) bel__tell_paused(telling);
        bel__tell_workers(telling, operation->topic->parked > 0, (uint64_t)items[3].number);
        bel__tell_ahead(telling, (uint64_t)items[4].number);
    }
}

static int tell(struct bel_operation *operation, const struct bel_value *items)
{
    struct bel_arena *arena = &operation->arena;
    struct bel_timer timer;
    for (size_t i = 1; i < EXPLAIN_RESULTS; i++) {
        if (!bel__result_is_number(&items[i], 0, INT64_MAX)) return BEL_ECORRUPT;
    }
    int err = bel__faststream_timers(operation, items, 1);
    if (err) return err;
    timer = operation->reply.timers.items[0];
    struct bel_telling telling = {
        .timer = &timer, .now = {bel__node_now(operation->node)}, .copy = copy, .memory = arena};
    struct bel_reason *reason = bel__arena_take(arena, sizeof *reason);
    telling.lines = bel__arena_take(arena, BEL_TELLING_LINES * sizeof telling.lines[0]);
    if (reason == NULL || telling.lines == NULL) return BEL_ENOMEM;
    tell_timer(&telling, operation, items);
    *reason = telling.reason;
    operation->reply.names.reason = reason;
    operation->reply.names.items = telling.lines;
    operation->reply.names.count = telling.count;
    return telling.err;
}

static void explained(struct bel_item *item, const struct bel_results *results)
{
    struct bel_operation *operation = BEL_CONTAINER_OF(item, struct bel_operation, item);
    if (bel__operation_is_refused(operation, results)) return;
    if (results->count > 0 && results->items[0].type == BEL_VALUE_NIL) {
        bel__operation_answer_missing(operation);
        return;
    }
    int err = results->count == EXPLAIN_RESULTS ? tell(operation, results->items) : BEL_ECORRUPT;
    if (err) {
        bel__operation_fail(operation, err, NULL);
    } else {
        bel__operation_answer(operation);
    }
}

static void begin_explain(struct bel_operation *operation)
{
    struct bel_batch *batch =
        bel__faststream_item(operation, BEL_SCRIPT_FASTSTREAM_EXPLAIN, 0, explained);
    if (batch != NULL) bel__batch_text(batch, operation->command.target.id);
}

const struct bel_redis_verb bel__faststream_explain = {prepare_explain, begin_explain};
