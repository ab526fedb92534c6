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
 * Plans are added: from their next time on, by the rule, each time moved by the plan's position in
 * its spread window. A cron rule has equally many times in each hour that it names, except near a
 * change of the zone's offset. So for steps of whole hours, the times of one such hour are counted
 * and reused for the others. If times are moved, an hour of the rule falls into two steps:
 *
 *     nominal      |      09:00      |
 *     rings               |      09:25      |
 *     steps        |   09:00   |   10:00    |
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

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    STEPS_MAX = 10000,
    ROWS_MAX = 100000,  /* rows counted one by one, at most */
    TIMES_MAX = 100000, /* times of plans, likewise */
    DAY_MS = 24 * MS_PER_HOUR,
    HOUR_S = 3600,
    DAY_S = 24 * HOUR_S,
};

/* The range of valid times: the years 1 to 9999. */
#define TIME_MIN_MS INT64_C(-62135596800000)
#define TIME_MAX_MS INT64_C(253402300799999)

struct agenda {
    struct bel_engine *engine;
    struct bel_agenda_step *steps;
    size_t count;
    int64_t from, to, step; /* `to` is the end of the last step */
    uint32_t rows_left, times_left;
};

static int64_t clamp(int64_t ms)
{
    if (ms < TIME_MIN_MS) return TIME_MIN_MS;
    return ms > TIME_MAX_MS ? TIME_MAX_MS : ms;
}

static int64_t round_down(int64_t ms, int64_t unit)
{
    int64_t rest = ms % unit;
    return ms - (rest < 0 ? rest + unit : rest);
}

/* Divides the period into steps. */
static int divide(struct agenda *agenda, const struct bel_agenda *command, struct bel_reply *reply)
{
    int64_t from = clamp(command->has_from ? command->from.ms : agenda->engine->now.wall);
    int64_t to = command->has_to ? clamp(command->to.ms) : from + DAY_MS;
    if (command->step_ms > (uint64_t)TIME_MAX_MS) {
        return bel__refuse(reply, BEL_EINVAL, "the step is too long");
    }
    agenda->step = command->step_ms == 0 ? MS_PER_HOUR : (int64_t)command->step_ms;
    bool is_empty = to <= from;
    if (agenda->step % MS_PER_HOUR == 0) from = round_down(from, MS_PER_HOUR);
    int64_t count = is_empty ? 0 : (to - from + agenda->step - 1) / agenda->step;
    if (count > STEPS_MAX) {
        return bel__refuse(reply, BEL_EINVAL, "at most %d steps are possible", STEPS_MAX);
    }
    agenda->count = (size_t)count;
    agenda->from = from;
    agenda->to = from + count * agenda->step;
    return 0;
}

static void add(struct agenda *agenda, int64_t wall_ms, uint64_t count)
{
    if (wall_ms < agenda->from || wall_ms >= agenda->to) return;
    agenda->steps[(wall_ms - agenda->from) / agenda->step].count += count;
}

/* --- timers --- */

/* Counts the rows of a lane in the period, one by one. Returns BEL_EFULL if there are too many. */
static int count_rows(struct agenda *agenda, const struct bel_topic_state *topic, uint8_t lane)
{
    struct bel_store *store = agenda->engine->store;
    struct bel_place start = {.table = BEL_TABLE_TIMERS, .topic = topic->number, .lane = lane};
    start.time = bel__lane_time(&agenda->engine->now, lane, (struct bel_wall){agenda->from});
    struct bel_key from = bel__key_of(&start);
    struct bel_store_cursor cursor;
    int err = bel__store_seek(store, &from, &cursor);
    for (; err == 0; err = bel__store_next(store, &cursor)) {
        struct bel_place place = bel__place_of(&cursor.key);
        if (place.table != start.table || place.topic != start.topic) return 0;
        int64_t due = (int64_t)bel__lane_wall(&agenda->engine->now, lane, place.time);
        if (place.lane != lane || due >= agenda->to) return 0;
        if (agenda->rows_left == 0) return BEL_EFULL;
        agenda->rows_left--;
        if (bel__record_kind(cursor.value) == BEL_RECORD_TIMER) add(agenda, due, 1);
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
        add(agenda, (int64_t)bel__lane_wall(&agenda->engine->now, lane, start), numbers[hour]);
    }
    return 0;
}

/* Adds the counts of hours of a topic, for the wanted lanes. */
static int add_hours(struct agenda *agenda, const struct bel_topic_state *topic,
                     const bool is_wanted[BEL_LANES_TIMED])
{
    struct bel_store *store = agenda->engine->store;
    uint64_t shift = (uint64_t)llabs(agenda->engine->now.offset) / BEL_STRETCH_MS + 1;
    uint64_t first = agenda->from < 0 ? 0 : (uint64_t)agenda->from / BEL_STRETCH_MS;
    uint64_t last = (uint64_t)agenda->to / BEL_STRETCH_MS + shift;
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
    bool has_hours = agenda->step % MS_PER_HOUR == 0;
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

/* Adds `count` rings at intervals of `period`, step by step. */
static void add_interval(struct agenda *agenda, int64_t at, int64_t period, uint64_t count)
{
    assert(period > 0 && at >= agenda->from);
    while (at < agenda->to && count > 0) {
        int64_t end = agenda->from + ((at - agenda->from) / agenda->step + 1) * agenda->step;
        uint64_t here = (uint64_t)((end - at + period - 1) / period);
        if (here > count) here = count;
        add(agenda, at, here);
        at += (int64_t)here * period;
        count -= here;
    }
}

/* A plan, its current nominal time, and how many times are left at most. */
struct coming {
    const struct bel_recurrence *rule;
    const struct bel_plan *plan;
    const struct bel_zone *zone;
    int64_t at;    /* nominal */
    int64_t place; /* position in the spread window: delay of each ring */
    uint64_t left;
};

/* The current hour of a plan. */
struct hour {
    int64_t start;      /* nominal; INT64_MIN before the first hour */
    uint64_t counts[2]; /* times visited in this hour, by the hour in which they ring */
    bool is_whole;      /* is visited completely, and has no unusual times */
    bool has_full;      /* an earlier hour was whole, with these counts: */
    uint64_t full_counts[2];
};

/* Moves to the next time of a plan. Skips the times before the period if the rule has no count. */
static int move(struct agenda *agenda, struct coming *coming)
{
    struct bel_wall after = {coming->at}, next;
    int64_t from = agenda->from - coming->place;
    if (coming->rule->count == 0 && after.ms < from - 1) after.ms = from - 1;
    if (coming->left == 0) return BEL_ERANGE;
    if (agenda->times_left == 0) return BEL_EFULL;
    agenda->times_left--;
    int err = bel_plan_next(coming->plan, after, 0, &next);
    if (err) return err;
    coming->at = next.ms;
    coming->left--;
    return next.ms + coming->place < agenda->to ? 0 : BEL_ERANGE;
}

/* Adds the remaining times of an interval; `first` is the time before the current one. */
static void add_rest(struct agenda *agenda, const struct coming *coming, int64_t first)
{
    int64_t period = coming->at - first;
    uint64_t count = coming->left < UINT64_MAX ? coming->left + 1 : UINT64_MAX;
    if (coming->rule->has_until) {
        uint64_t until = (uint64_t)((coming->rule->until.ms - coming->at) / period) + 1;
        if (until < count) count = until;
    }
    add_interval(agenda, coming->at + coming->place, period, count);
}

/* Returns whether an hour is like any other hour of the rule: a cron rule without a count, an
 * offset of whole hours, and no offset change within a day. */
static bool is_usual(const struct agenda *agenda, const struct coming *coming, int64_t start)
{
    const struct bel_recurrence *rule = coming->rule;
    int64_t second = start / 1000, change;
    if (rule->kind != BEL_PLAN_CRON || rule->count > 0 || agenda->step % MS_PER_HOUR != 0) {
        return false;
    }
    if (rule->has_until && rule->until.ms < start + MS_PER_HOUR) return false;
    if (bel_zone_offset(coming->zone, second) % HOUR_S != 0) return false;
    return !bel_zone_next_change(coming->zone, second - DAY_S, &change) || change > second + DAY_S;
}

/* Adds the current time of a plan. If the counts of a whole hour are known, adds the whole hour. */
static void add_time(struct agenda *agenda, struct coming *coming, struct hour *hour)
{
    int64_t start = round_down(coming->at, MS_PER_HOUR);
    int64_t first = round_down(start + coming->place, MS_PER_HOUR); /* first hour of its rings */
    if (start != hour->start) {
        bool is_first = hour->start == INT64_MIN; /* may begin in the middle of the hour */
        if (hour->is_whole) memcpy(hour->full_counts, hour->counts, sizeof hour->counts);
        hour->has_full = hour->has_full || hour->is_whole;
        hour->start = start;
        memset(hour->counts, 0, sizeof hour->counts);
        hour->is_whole = !is_first && is_usual(agenda, coming, start);
    }
    if (hour->is_whole && hour->has_full) {
        add(agenda, first, hour->full_counts[0]);
        add(agenda, first + MS_PER_HOUR, hour->full_counts[1]);
        coming->at = start + MS_PER_HOUR - 1;
        hour->is_whole = false;
        return;
    }
    hour->counts[coming->at + coming->place >= first + MS_PER_HOUR]++;
    add(agenda, coming->at + coming->place, 1);
}

/* Adds the times after the first one. Returns BEL_ERANGE at the end, BEL_EFULL if there are too
 * many. */
static int add_times(struct agenda *agenda, struct coming *coming)
{
    struct hour hour = {.start = INT64_MIN};
    int64_t before = INT64_MIN;
    for (;;) {
        int err = move(agenda, coming);
        if (err) return err;
        bool is_inside = before >= agenda->from - coming->place; /* and so is `at` */
        if (is_inside && coming->rule->kind == BEL_PLAN_EVERY) {
            add_rest(agenda, coming, before);
            return BEL_ERANGE;
        }
        before = coming->at;
        add_time(agenda, coming, &hour);
    }
}

static int add_plan(struct agenda *agenda, const struct bel_found *found)
{
    const struct bel_recurrence *rule = &found->record.rule;
    struct coming coming = {.rule = rule,
                            .at = (int64_t)found->plan.next,
                            .place = (int64_t)bel__plan_place(&found->record),
                            .left = UINT64_MAX};
    struct bel_plan *plan = NULL;
    if (!found->plan.has_next || coming.at + coming.place >= agenda->to) return 0;
    if (agenda->times_left == 0) return BEL_EFULL;
    agenda->times_left--;
    add(agenda, coming.at + coming.place, 1);
    if (rule->mode == BEL_PLAN_DELAY) return 0; /* later times depend on when it ends */
    if (rule->count > 0) {
        uint64_t used = bel__plan_used(&found->plan) + 1;
        coming.left = rule->count > used ? rule->count - used : 0;
    }
    int err = bel__plan_zone(agenda->engine, rule->zone, &coming.zone, NULL);
    if (err == 0) err = bel__plan_of(agenda->engine, &found->record, &plan, NULL);
    if (err) return err == BEL_EINVAL ? 0 : err; /* its zone is unknown now */
    coming.plan = plan;
    err = add_times(agenda, &coming);
    bel_plan_destroy(plan);
    return err == BEL_ERANGE ? 0 : err;
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
    struct agenda agenda = {.engine = engine, .rows_left = ROWS_MAX, .times_left = TIMES_MAX};
    if (command->topic.bytes > 0 && !bel_topic_is_valid(command->topic)) {
        return bel__refuse(reply, BEL_EINVAL, "invalid topic name");
    }
    if (is_behind(engine, &engine->topics, command->topic)) return BEL_DO_LATER;
    int err = divide(&agenda, command, reply);
    if (err || agenda.count == 0) return err;
    agenda.steps = bel__answer_take(engine, agenda.count * sizeof agenda.steps[0]);
    if (agenda.steps == NULL) return BEL_ENOMEM;
    for (size_t i = 0; i < agenda.count; i++) {
        struct bel_wall start = {agenda.from + (int64_t)i * agenda.step};
        agenda.steps[i] = (struct bel_agenda_step){.start = start};
    }
    err = settle_numbers(engine);
    if (err) return err;
    err = count_all(&agenda, command->topic);
    if (err == BEL_EFULL) {
        return bel__refuse(reply, err, "more than %d timers in this period; choose a shorter one",
                           ROWS_MAX);
    }
    if (err) return err;
    reply->steps.items = agenda.steps;
    reply->steps.count = agenda.count;
    return 0;
}
