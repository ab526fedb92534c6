/* SPDX-License-Identifier: MIT */

/*
 * AGENDA: how many timers are due in each step of a period. For steps of whole hours it adds up the
 * counts of hours, which are always kept. For finer steps it counts rows:
 *
 *     steps        |   09:00   |   10:00   |   11:00   |
 *     wall lane    |   hour    |   hour    |   hour    |
 *     engine lane      hour    |   hour    |   hour        shifted, if the clock was set
 *
 * Hours of the engine lane match the steps only if the two clocks differ by whole hours. If not,
 * the rows of the lane are counted. If there are too many rows, each hour of the lane counts for
 * the step in which it begins.
 *
 * Plans are added by telling/steps.h.
 *
 * The plans of recurring jobs are in a topic of the engine's own. Their times count in each topic
 * of the job's text. Their occurrences do not count: the tasks of the jobs do.
 */
#include "core/units.h"
#include "engine/commands/commands.h"
#include "engine/jobs/job_topics.h"
#include "engine/jobs/recurring_rows.h"
#include "engine/rows/encoding.h"
#include "engine/state/plan_rule.h"
#include "engine/state/state.h"
#include "engine/state/timer.h"
#include "telling/steps.h"

#include <stdlib.h>

enum {
    ROWS_MAX = 100000, /* rows counted one by one, at most */
};

struct agenda {
    struct bel_engine *engine;
    struct bel_steps steps;
    uint32_t rows_left;
};

/* --- timers --- */

/* Counts the rows of a lane in the period, one by one. Returns BEL_EFULL if there are too many. */
static int count_rows(struct agenda *agenda, const struct bel_topic_state *topic, uint8_t lane)
{
    struct bel_store *store = agenda->engine->store;
    struct bel_place start = {.table = BEL_TABLE_TIMERS, .topic = topic->number, .lane = lane};
    start.time = bel__lane_time(&agenda->engine->now, lane, (struct bel_wall){agenda->steps.from});
    struct bel_key from = bel__key_of(&start);
    struct bel_store_cursor cursor;
    int err = bel__store_seek(store, &from, &cursor);
    for (; err == 0; err = bel__store_next(store, &cursor)) {
        struct bel_place place = bel__place_of(&cursor.key);
        if (place.table != start.table || place.topic != start.topic) return 0;
        int64_t due = (int64_t)bel__lane_wall(&agenda->engine->now, lane, place.time);
        if (place.lane != lane || due >= agenda->steps.to) return 0;
        if (agenda->rows_left == 0) return BEL_EFULL;
        agenda->rows_left--;
        bool is_timer = bel__record_kind(cursor.value) == BEL_RECORD_TIMER;
        if (is_timer) bel__steps_add(&agenda->steps, due, 1);
    }
    return err == BEL_ENOTFOUND ? 0 : err;
}

/* Adds the numbers of a row of hours, whose first hour begins at `time` of the lane. */
static int add_stretch(struct agenda *agenda, struct bel_view row, uint8_t lane, uint64_t time)
{
    uint64_t numbers[BEL_COUNT_NUMBERS_MAX], which;
    if (!bel__count_read(row, BEL_COUNT_NUMBERS_MAX, numbers, &which)) return BEL_ECORRUPT;
    for (; which != 0; which &= which - 1) {
        unsigned hour = (unsigned)__builtin_ctzll(which);
        uint64_t start = time + hour * (uint64_t)MS_PER_HOUR;
        bel__steps_add(&agenda->steps, (int64_t)bel__lane_wall(&agenda->engine->now, lane, start),
                       numbers[hour]);
    }
    return 0;
}

/* Adds the counts of hours of a topic, for the wanted lanes. */
static int add_hours(struct agenda *agenda, const struct bel_topic_state *topic,
                     const bool is_wanted[BEL_LANES_TIMED])
{
    struct bel_store *store = agenda->engine->store;
    uint64_t shift = (uint64_t)llabs(agenda->engine->now.offset) / BEL_STRETCH_MS + 1;
    uint64_t first = agenda->steps.from < 0 ? 0 : (uint64_t)agenda->steps.from / BEL_STRETCH_MS;
    uint64_t last = (uint64_t)agenda->steps.to / BEL_STRETCH_MS + shift;
    struct bel_place start = {.table = BEL_TABLE_COUNTS,
                              .topic = topic->number,
                              .lane = BEL_COUNT_HOURS,
                              .time = first > shift ? first - shift : 0};
    struct bel_key from = bel__key_of(&start);
    struct bel_store_cursor cursor;
    int err = bel__store_seek(store, &from, &cursor);
    for (; err == 0; err = bel__store_next(store, &cursor)) {
        struct bel_place place = bel__place_of(&cursor.key);
        if (place.table != start.table || place.topic != start.topic) return 0;
        if (place.lane != start.lane || place.time > last) return 0;
        if (place.priority >= BEL_LANES_TIMED || !bel__time_is_valid(place.time)) {
            return BEL_ECORRUPT;
        }
        if (!is_wanted[place.priority]) continue;
        err = add_stretch(agenda, cursor.value, place.priority, place.time * BEL_STRETCH_MS);
        if (err) return err;
    }
    return err == BEL_ENOTFOUND ? 0 : err;
}

static int count_timers(struct agenda *agenda, const struct bel_topic_state *topic)
{
    bool has_hours = bel__steps_have_hours(&agenda->steps);
    bool is_wanted[BEL_LANES_TIMED] = {true, true};
    if (topic->numbers[BEL_NUMBER_PENDING] == 0) return 0;
    if (!has_hours) {
        int err = count_rows(agenda, topic, BEL_LANE_ENGINE);
        return err ? err : count_rows(agenda, topic, BEL_LANE_WALL);
    }
    bool is_shifted = agenda->engine->now.offset % MS_PER_HOUR != 0;
    if (is_shifted && topic->numbers[BEL_NUMBER_PENDING] <= agenda->rows_left) {
        int err = count_rows(agenda, topic, BEL_LANE_ENGINE);
        if (err) return err;
        is_wanted[BEL_LANE_ENGINE] = false;
    }
    return add_hours(agenda, topic, is_wanted);
}

/* --- plans --- */

static int add_plan(struct agenda *agenda, const struct bel_found *found)
{
    const struct bel_recurrence *rule = &found->record.rule;
    struct bel_coming coming = {.rule = rule,
                                .at = (int64_t)found->plan.next,
                                .place = (int64_t)bel__plan_place(&found->record),
                                .used = rule->count > 0 ? bel__plan_used(&found->plan) : 0};
    struct bel_plan *plan = NULL;
    if (!found->plan.has_next || coming.at + coming.place >= agenda->steps.to) return 0;
    if (rule->mode != BEL_PLAN_DELAY) { /* whose later times depend on when it ends */
        int err = bel__plan_zone(agenda->engine, rule->zone, &coming.zone, NULL);
        if (err == 0) err = bel__plan_of(agenda->engine, &found->record, &plan, NULL);
        if (err && err != BEL_EINVAL) return err; /* its zone is unknown now */
    }
    coming.plan = plan;
    int err = bel__steps_add_plan(&agenda->steps, &coming);
    bel_plan_destroy(plan);
    return err;
}

/* Sets `*out` to whether a plan counts for a topic; NULL: for all topics. */
static int is_wanted(struct bel_engine *engine, const struct bel_found *plan,
                     const struct bel_topic_state *topic, bool *out)
{
    struct bel_job_found job;
    *out = topic == NULL || plan->topic == topic;
    if (*out) return 0;
    int err = bel__job_find_any(engine, plan->record.id, &job);
    if (err == 0) err = bel__job_has_topic(engine, &job, topic->number, out);
    return err == BEL_ENOTFOUND ? 0 : err;
}

/* Counts the times of the plans in a topic that count for `wanted`. */
static int count_plans(struct agenda *agenda, const struct bel_topic_state *topic,
                       const struct bel_topic_state *wanted)
{
    struct bel_engine *engine = agenda->engine;
    struct bel_place start = {.table = BEL_TABLE_PLANS, .topic = topic->number};
    struct bel_key from = bel__key_of(&start);
    struct bel_store_cursor cursor;
    if (topic->numbers[BEL_NUMBER_PLANS] == 0) return 0;
    int err = bel__store_seek(engine->store, &from, &cursor);
    for (; err == 0; err = bel__store_next(engine->store, &cursor)) {
        struct bel_place place = bel__place_of(&cursor.key);
        struct bel_found found;
        bool counts = false;
        if (place.table != start.table || place.topic != start.topic) return 0;
        err = bel__timer_load(engine, &cursor.key, &found);
        if (err) return err == BEL_ENOTFOUND ? BEL_ECORRUPT : err;
        err = is_wanted(engine, &found, wanted, &counts);
        if (err == 0 && counts) err = add_plan(agenda, &found);
        if (err) return err;
    }
    return err == BEL_ENOTFOUND ? 0 : err;
}

/* --- the command --- */

/* Returns whether the topics of the command have expired timers that were not ended yet. */
static bool is_behind(const struct bel_engine *engine, struct bel_topics *topics,
                      struct bel_view name)
{
    const struct bel_topic_state *topic = name.bytes > 0 ? bel__topic_find(topics, name) : NULL;
    if (name.bytes > 0 && topic == NULL) return false;
    return bel__expiry_is_behind(engine, topic);
}

/* Writes the counts that have changed in this batch, so that they can be read from the store. */
static int settle_numbers(struct bel_engine *engine)
{
    size_t rows = engine->rows.counts.dirty_count;
    if (rows == 0) return 0;
    int err = bel__rows_reserve(&engine->rows, rows, bel__counts_row_bytes(&engine->rows.counts, 0),
                                BEL_STORE_END);
    if (err) return err;
    bel__rows_put_counts(&engine->rows);
    return 0;
}

static int count_topic(struct agenda *agenda, const struct bel_topic_state *topic)
{
    bool is_own = bel__topic_is_own(bel__topic_name(topic));
    int err = is_own ? 0 : count_timers(agenda, topic);
    return err ? err : count_plans(agenda, topic, NULL);
}

/* Counts the times of recurring jobs that have tasks in a topic. */
static int count_recurring(struct agenda *agenda, const struct bel_topic_state *topic)
{
    const struct bel_topic_state *own =
        bel__topic_find(&agenda->engine->topics, BEL_RECURRING_TOPIC);
    return own == NULL ? 0 : count_plans(agenda, own, topic);
}

static int count_all(struct agenda *agenda, struct bel_view name)
{
    struct bel_topics *topics = &agenda->engine->topics;
    if (name.bytes > 0) {
        const struct bel_topic_state *topic = bel__topic_find(topics, name);
        if (topic == NULL) return 0;
        int err = count_topic(agenda, topic);
        return err ? err : count_recurring(agenda, topic);
    }
    for (uint32_t i = 0; i < topics->count; i++) {
        const struct bel_topic_state *topic = bel__topic_at(topics, i);
        int err = topic == NULL ? 0 : count_topic(agenda, topic);
        if (err) return err;
    }
    return 0;
}

int bel__do_agenda(struct bel_engine *engine, struct bel_request *request)
{
    const struct bel_agenda *command = &request->command.agenda;
    struct bel_reply *reply = &request->own.reply;
    struct agenda agenda = {.engine = engine, .rows_left = ROWS_MAX};
    if (command->topic.bytes > 0 && !bel_topic_is_valid(command->topic)) {
        return bel__refuse(reply, BEL_EINVAL, "invalid topic name");
    }
    if (is_behind(engine, &engine->topics, command->topic)) return BEL_DO_LATER;
    int err = bel__steps_divide(&agenda.steps, command, (struct bel_wall){engine->now.wall}, reply);
    if (err || agenda.steps.count == 0) return err;
    struct bel_agenda_step *items = bel__answer_take(engine, agenda.steps.count * sizeof items[0]);
    if (items == NULL) return BEL_ENOMEM;
    bel__steps_begin(&agenda.steps, items);
    err = settle_numbers(engine);
    if (err) return err;
    err = count_all(&agenda, command->topic);
    if (err == BEL_EFULL) {
        return bel__refuse(reply, err, "more than %d timers in this period; choose a shorter one",
                           ROWS_MAX);
    }
    if (err) return err;
    reply->steps.items = items;
    reply->steps.count = agenda.steps.count;
    return 0;
}
