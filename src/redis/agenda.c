/* SPDX-License-Identifier: MIT */

/*
 * AGENDA: a partition is asked in slices, one call after the other, and all partitions of all
 * topics are asked at the same time. For steps of whole hours a script adds up the counts that all
 * scripts keep; for finer ones it counts in the sorted set. Plans come in pages, and the node
 * computes their times.
 *
 * They are not looked at in the same moment.
 */
#include "redis/operation.h"
#include "redis/reading.h"
#include "redis/rule.h"
#include "telling/steps.h"

#include "core/units.h"

#include <assert.h>
#include <string.h>

enum {
    SLICE = 1000,       /* finer steps in one call */
    PLANS_MAX = 100,    /* in one call, as scripts/agenda.lua has it */
    ROWS_MAX = 100000,  /* leased timers looked at, likewise */
    TIMES_MAX = 100000, /* of the plans in one call */
    RESULTS = 3,        /* counts, counts of leased timers, plans */
};

/* A partition that is being asked. */
struct part {
    struct bel_item item;
    struct bel_operation *operation;
    struct bel_redis_partition *partition;
    size_t steps_done;
    uint64_t plans_done;
    bool has_plans; /* all of them */
};

struct bel_agenda_work {
    struct bel_steps steps;
    struct part *parts;
    size_t left; /* parts under way */
    int err;     /* the first error */
    char why[BEL_REPLY_WHY_BYTES];
};

static int prepare(struct bel_operation *operation)
{
    const struct bel_agenda *command = &operation->command.agenda;
    size_t topics = command->topic.bytes > 0 ? 1 : 0;
    int err = bel__operation_name_all(operation, &command->topic, topics);
    if (err) return err;
    struct bel_agenda_work *work = bel__arena_take(&operation->arena, sizeof *work);
    if (work == NULL) return bel__operation_refuse(operation, BEL_ENOMEM, "memory has run out");
    *work = (struct bel_agenda_work){.left = 0};
    operation->agenda = work;
    struct bel_wall now = {bel__operation_now(operation)};
    return bel__steps_divide(&work->steps, command, now, &operation->reply);
}

static void note_error(struct bel_agenda_work *work, int err, const char *why)
{
    if (work->err) return;
    work->err = err;
    size_t bytes = why == NULL ? 0 : strnlen(why, sizeof work->why - 1);
    if (bytes > 0) memcpy(work->why, why, bytes);
    work->why[bytes] = 0;
}

static void end(struct bel_operation *operation)
{
    struct bel_agenda_work *work = operation->agenda;
    if (operation->has_moved) {
        work->err = 0;
        bel__operation_restart(operation);
    } else if (work->err == BEL_EFULL) {
        (void)bel__operation_refuse(operation, BEL_EFULL,
                                    "too many timers in this period; choose a shorter one");
        bel__operation_answer(operation);
    } else if (work->err) {
        bel__operation_fail(operation, work->err, work->why);
    } else {
        operation->reply.steps.items = work->steps.items;
        operation->reply.steps.count = work->steps.count;
        bel__operation_answer(operation);
    }
}

/* --- Results --- */

static int add_hours(struct bel_steps *steps, const struct bel_value *counts)
{
    if (counts->type != BEL_VALUE_LIST || counts->count % 2 != 0) return BEL_EIO;
    for (size_t i = 0; i < counts->count; i += 2) {
        int64_t hour = counts->items[i].number, count = counts->items[i + 1].number;
        if (hour < 0 || hour > BEL_REDIS_TIME_END_MS / MS_PER_HOUR || count < 0) return BEL_EIO;
        bel__steps_add(steps, hour * MS_PER_HOUR, (uint64_t)count);
    }
    return 0;
}

static int add_plan(struct bel_operation *operation, const struct bel_value *item)
{
    struct bel_zones *zones = operation->node->options.zones;
    struct bel_timer timer;
    struct bel_rule rule;
    struct bel_plan *plan = NULL;
    struct bel_text_error why;
    int err = bel__reading_timer(operation, item, &timer);
    if (err == 0) err = bel__reading_rule(item, &timer, &rule);
    if (err || !rule.has_next) return err;
    struct bel_coming coming = {.rule = &rule.said,
                                .at = rule.next.ms,
                                .place = (int64_t)bel__rule_place(&rule),
                                .used = rule.made + rule.skipped + rule.missed};
    if (rule.said.mode != BEL_PLAN_DELAY) { /* whose later times depend on when it ends */
        err = bel__rule_zone(&rule, zones, &coming.zone);
        if (err == 0) err = bel__rule_plan(&rule, zones, &plan, &why);
        if (err == BEL_ENOMEM) return err;
    }
    coming.plan = plan; /* NULL: its zone is unknown now */
    err = bel__steps_add_plan(&operation->agenda->steps, &coming);
    bel_plan_destroy(plan);
    return err == BEL_EBUSY ? BEL_EFULL : err;
}

static int add_plans(struct part *part, const struct bel_value *plans)
{
    if (plans->type != BEL_VALUE_LIST) return BEL_EIO;
    part->operation->agenda->steps.slice_left = TIMES_MAX;
    for (size_t i = 0; i < plans->count; i++) {
        int err = add_plan(part->operation, &plans->items[i]);
        if (err) return err;
    }
    part->plans_done += plans->count;
    part->has_plans = plans->count < PLANS_MAX;
    return 0;
}

/* --- Calls --- */

/* Returns how many of the steps the next call counts. */
static size_t slice_of(const struct part *part)
{
    const struct bel_steps *steps = &part->operation->agenda->steps;
    size_t left = steps->count - part->steps_done;
    return bel__steps_have_hours(steps) || left < SLICE ? left : SLICE;
}

static void answered(struct bel_item *item, const struct bel_results *results);

static void send_part(struct part *part)
{
    struct bel_operation *operation = part->operation;
    struct bel_agenda_work *work = operation->agenda;
    const struct bel_steps *steps = &work->steps;
    struct bel_batch *batch = bel__batch_alone(operation->node, part->partition, BEL_SCRIPT_AGENDA);
    if (batch == NULL) {
        note_error(work, BEL_ENOMEM, NULL);
        return;
    }
    bool has_hours = bel__steps_have_hours(steps);
    part->item.answered = answered;
    work->left++;
    bel__batch_item(batch, &part->item, 0);
    bel__batch_number(batch, steps->from + (int64_t)part->steps_done * steps->step);
    bel__batch_number(batch, steps->step);
    bel__batch_number(batch, (int64_t)slice_of(part));
    bel__batch_number(batch, has_hours);
    if (has_hours || part->steps_done > 0) {
        bel__batch_word(batch, "");
    } else {
        bel__batch_number(batch, steps->to);
    }
    if (part->has_plans) {
        bel__batch_word(batch, "");
    } else {
        bel__batch_number(batch, steps->to);
    }
    bel__batch_number(batch, (int64_t)part->plans_done);
}

static int add_results(struct part *part, const struct bel_results *results)
{
    struct bel_steps *steps = &part->operation->agenda->steps;
    if (results->err) return results->err;
    if (results->count != RESULTS) return BEL_EIO;
    const struct bel_value *items = results->items;
    int err = bel__steps_have_hours(steps) ? add_hours(steps, &items[0])
                                           : bel__reading_steps(steps, &items[0], part->steps_done);
    if (err == 0) err = bel__reading_steps(steps, &items[1], 0);
    if (err == 0 && !part->has_plans) err = add_plans(part, &items[2]);
    return err;
}

static void answered(struct bel_item *item, const struct bel_results *results)
{
    struct part *part = BEL_CONTAINER_OF(item, struct part, item);
    struct bel_operation *operation = part->operation;
    struct bel_agenda_work *work = operation->agenda;
    assert(work->left > 0);
    work->left--;
    if (results->is_moved) operation->has_moved = true;
    int err = add_results(part, results);
    if (err) note_error(work, err, results->why);
    part->steps_done += slice_of(part);
    bool is_over = part->steps_done == work->steps.count && part->has_plans;
    if (work->err == 0 && !is_over) send_part(part);
    if (work->left == 0) end(operation);
}

static void ask_topics(struct bel_operation *operation)
{
    struct bel_agenda_work *work = operation->agenda;
    size_t count = 0, at = 0;
    for (size_t i = 0; i < operation->topics_count; i++) {
        count += operation->topics[i]->count;
    }
    work->parts = bel__arena_take(&operation->arena, (count + 1) * sizeof work->parts[0]);
    if (work->parts == NULL) note_error(work, BEL_ENOMEM, NULL);
    for (size_t i = 0; i < operation->topics_count && work->err == 0; i++) {
        const struct bel_redis_topic *topic = operation->topics[i];
        for (uint32_t k = 0; k < topic->count; k++) {
            struct part *part = &work->parts[at++];
            *part = (struct part){.operation = operation, .partition = topic->partitions[k]};
            send_part(part);
        }
    }
    if (work->left == 0) end(operation);
}

static void told_topics(struct bel_item *item, const struct bel_results *results)
{
    struct bel_operation *operation = BEL_CONTAINER_OF(item, struct bel_operation, item);
    if (bel__operation_is_refused(operation, results)) return;
    const struct bel_value *set = results->items;
    struct bel_view *names = bel__arena_take(&operation->arena, (set->count + 1) * sizeof *names);
    int err = names == NULL ? BEL_ENOMEM : 0;
    size_t count = 0;
    for (size_t i = 0; err == 0 && i < set->count; i++) { /* another program may have added some */
        if (bel_topic_is_valid(set->items[i].text)) names[count++] = set->items[i].text;
    }
    if (err == 0) err = bel__operation_name_more(operation, names, count);
    if (err) {
        bel__operation_fail(operation, err, NULL);
        return;
    }
    ask_topics(operation);
}

static void begin(struct bel_operation *operation)
{
    struct bel_agenda_work *work = operation->agenda;
    struct bel_agenda_step *items =
        bel__arena_take(&operation->arena, (work->steps.count + 1) * sizeof items[0]);
    struct bel_batch *batch = NULL;
    if (items != NULL) bel__steps_begin(&work->steps, items);
    if (items == NULL || work->steps.count == 0) {
        if (items == NULL) note_error(work, BEL_ENOMEM, NULL);
        end(operation);
        return;
    }
    if (operation->command.agenda.topic.bytes > 0) {
        ask_topics(operation);
        return;
    }
    batch = bel__batch_reading(operation->node);
    if (batch == NULL) {
        bel__operation_fail(operation, BEL_ENOMEM, NULL);
        return;
    }
    operation->item.answered = told_topics;
    bel__batch_item(batch, &operation->item, 0);
    bel__batch_word(batch, "SMEMBERS");
    bel__batch_text(batch, bel__node_registry(operation->node));
}

const struct bel_redis_verb bel__redis_agenda = {prepare, begin};
