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
 *
 * An agenda that would read more rows than a turn has goes on in the next turns. It goes through
 * its topics one after the other, each in phases, each phase from key to key:
 *
 *     topic   | mail                                | push                      | ...
 *     phase   | rows, rows | hours | plans          | rows, ...
 *     key                               ^ from here on in the next turn
 */
#include "core/memory_use.h"
#include "core/units.h"
#include "engine/commands/commands.h"
#include "engine/jobs/job_topics.h"
#include "engine/jobs/recurring_rows.h"
#include "engine/rows/encoding.h"
#include "engine/state/plan_rule.h"
#include "engine/state/state.h"
#include "engine/state/timer.h"
#include "telling/steps.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    ROWS_MAX = 100000, /* of more timers, those of a shifted lane are not counted one by one */
    TIMES_AT_ONCE = 64,
    PLAN_ROWS = 4, /* reading a rule takes as long as so many rows, about */
    FINISHED = 2,  /* a phase is at its end */
};

enum phase {
    PHASE_ENGINE, /* rows of the engine lane */
    PHASE_WALL,   /* and of the wall lane */
    PHASE_HOURS,
    PHASE_PLANS,
    PHASE_RECURRING, /* of one topic: the plans of recurring jobs that have tasks in it */
    PHASES,
};
static_assert((int)PHASE_ENGINE == (int)BEL_LANE_ENGINE, "a lane is a phase");
static_assert((int)PHASE_WALL == (int)BEL_LANE_WALL, "a lane is a phase");

/* An agenda, for as many turns as it takes. */
struct bel_agenda_run {
    struct bel_agenda_run *next;
    const struct bel_topic_state *wanted; /* NULL: all topics */
    const struct bel_topic_state *topic;  /* that is being counted */
    unsigned phase;
    bool is_by_row[BEL_LANES_TIMED]; /* the lane's rows are counted, not its hours */
    bool has_from;
    struct bel_key from;      /* if has_from: where the phase goes on */
    struct bel_coming coming; /* the plan at `from`, if it has begun */
    struct bel_steps steps;
    struct bel_agenda_step items[];
};

static size_t bytes_of(const struct bel_steps *steps)
{
    return sizeof(struct bel_agenda_run) + steps->count * sizeof(struct bel_agenda_step);
}

static struct bel_agenda_run *run_create(struct bel_engine *engine, const struct bel_steps *steps)
{
    struct bel_agenda_run *run = calloc(1, bytes_of(steps));
    if (run == NULL) return NULL;
    bel__memory_grow(bytes_of(steps));
    run->steps = *steps;
    bel__steps_begin(&run->steps, run->items);
    run->next = engine->agendas;
    engine->agendas = run;
    return run;
}

static void run_destroy(struct bel_engine *engine, struct bel_agenda_run *run)
{
    struct bel_agenda_run **at = &engine->agendas;
    while (*at != run) {
        assert(*at != NULL);
        at = &(*at)->next;
    }
    *at = run->next;
    bel__memory_shrink(bytes_of(&run->steps));
    free(run);
}

void bel__agendas_close(struct bel_engine *engine)
{
    while (engine->agendas != NULL) {
        run_destroy(engine, engine->agendas);
    }
}

/* Handles a row. Returns 0; FINISHED if it is not of the phase; BEL_EBUSY if it is to be handled
 * further in the next turn; or an error. */
typedef int row_fn(struct bel_engine *engine, struct bel_agenda_run *run,
                   const struct bel_store_cursor *cursor);

/* Handles rows from `start` on, or from where the turn before has stopped. Returns 0 at the end of
 * the phase, BEL_DO_LATER if the turn has no rows left before, or an error. */
static int walk(struct bel_engine *engine, struct bel_agenda_run *run,
                const struct bel_place *start, row_fn *handle)
{
    struct bel_key from = run->has_from ? run->from : bel__key_of(start);
    struct bel_store_cursor cursor;
    int err = bel__store_seek(engine->store, &from, &cursor);
    bool is_gone = err != 0 || bel__key_compare(&cursor.key, &from) != 0;
    if (is_gone) run->coming.is_begun = false;
    run->has_from = false;
    for (; err == 0; err = bel__store_next(engine->store, &cursor)) {
        struct bel_place place = bel__place_of(&cursor.key);
        bool is_same = place.table == start->table && place.topic == start->topic;
        if (!is_same || place.lane != start->lane) return 0;
        err = bel__has_rows_left(engine) ? handle(engine, run, &cursor) : BEL_EBUSY;
        if (err == BEL_EBUSY) {
            run->has_from = true;
            run->from = cursor.key;
            return BEL_DO_LATER;
        }
        if (err) return err == FINISHED ? 0 : err;
    }
    return err == BEL_ENOTFOUND ? 0 : err;
}

/* --- timers --- */

static int add_row(struct bel_engine *engine, struct bel_agenda_run *run,
                   const struct bel_store_cursor *cursor)
{
    struct bel_place place = bel__place_of(&cursor->key);
    int64_t due = (int64_t)bel__lane_wall(&engine->now, place.lane, place.time);
    if (due >= run->steps.to) return FINISHED;
    bool is_timer = bel__record_kind(cursor->value) == BEL_RECORD_TIMER;
    if (is_timer) bel__steps_add(&run->steps, due, 1);
    return 0;
}

/* Counts the rows of a lane in the period, one by one. */
static int count_rows(struct bel_engine *engine, struct bel_agenda_run *run, uint8_t lane)
{
    struct bel_wall from = {run->steps.from};
    struct bel_place start = {.table = BEL_TABLE_TIMERS,
                              .topic = run->topic->number,
                              .lane = lane,
                              .time = bel__lane_time(&engine->now, lane, from)};
    return walk(engine, run, &start, add_row);
}

/* Adds the numbers of a row of hours. */
static int add_stretch(struct bel_engine *engine, struct bel_agenda_run *run,
                       const struct bel_store_cursor *cursor)
{
    struct bel_place place = bel__place_of(&cursor->key);
    uint64_t shift = (uint64_t)llabs(engine->now.offset) / BEL_STRETCH_MS + 1;
    uint64_t numbers[BEL_COUNT_NUMBERS_MAX], which;
    uint8_t lane = place.priority;
    if (place.time > (uint64_t)run->steps.to / BEL_STRETCH_MS + shift) return FINISHED;
    if (lane >= BEL_LANES_TIMED || !bel__time_is_valid(place.time)) return BEL_ECORRUPT;
    if (run->is_by_row[lane]) return 0;
    if (!bel__count_read(cursor->value, BEL_COUNT_NUMBERS_MAX, numbers, &which)) {
        return BEL_ECORRUPT;
    }
    for (; which != 0; which &= which - 1) {
        unsigned hour = (unsigned)__builtin_ctzll(which);
        uint64_t time = place.time * BEL_STRETCH_MS + hour * (uint64_t)MS_PER_HOUR;
        int64_t due = (int64_t)bel__lane_wall(&engine->now, lane, time);
        bel__steps_add(&run->steps, due, numbers[hour]);
    }
    return 0;
}

/* Adds the counts of hours of the topic. */
static int count_hours(struct bel_engine *engine, struct bel_agenda_run *run)
{
    uint64_t shift = (uint64_t)llabs(engine->now.offset) / BEL_STRETCH_MS + 1;
    uint64_t first = run->steps.from < 0 ? 0 : (uint64_t)run->steps.from / BEL_STRETCH_MS;
    struct bel_place start = {.table = BEL_TABLE_COUNTS,
                              .topic = run->topic->number,
                              .lane = BEL_COUNT_HOURS,
                              .time = first > shift ? first - shift : 0};
    return walk(engine, run, &start, add_stretch);
}

/* --- plans --- */

/* Adds the times of a plan. If the turn ends before, they go on with run->coming. */
static int add_times(struct bel_engine *engine, struct bel_agenda_run *run,
                     const struct bel_found *found)
{
    const struct bel_recurrence *rule = &found->record.rule;
    struct bel_coming coming = {.at = (int64_t)found->plan.next,
                                .place = (int64_t)bel__plan_place(&found->record),
                                .used = rule->count > 0 ? bel__plan_used(&found->plan) : 0};
    struct bel_plan *plan = NULL;
    if (run->coming.is_begun) coming = run->coming;
    run->coming.is_begun = false;
    if (!coming.is_begun && !found->plan.has_next) return 0;
    if (!coming.is_begun && coming.at + coming.place >= run->steps.to) return 0;
    coming.rule = rule;
    if (rule->mode != BEL_PLAN_DELAY) { /* whose later times depend on when it ends */
        int err = bel__plan_zone(engine, rule->zone, &coming.zone, NULL);
        if (err == 0) err = bel__plan_of(engine, &found->record, &plan, NULL);
        if (err && err != BEL_EINVAL) return err; /* its zone is unknown now */
        bel__count_rows(engine, PLAN_ROWS);
    }
    coming.plan = plan;
    int err;
    do {
        run->steps.slice_left = TIMES_AT_ONCE;
        err = bel__steps_add_plan(&run->steps, &coming);
        bel__count_rows(engine, TIMES_AT_ONCE - run->steps.slice_left);
    } while (err == BEL_EBUSY && bel__has_rows_left(engine));
    bel_plan_destroy(plan);
    if (err == BEL_EBUSY) run->coming = coming;
    return err;
}

/* Sets `*out` to whether a plan counts: that of a recurring job only in the topics of its text. */
static int is_wanted(struct bel_engine *engine, const struct bel_agenda_run *run,
                     const struct bel_found *plan, bool *out)
{
    struct bel_job_found job;
    *out = run->phase != PHASE_RECURRING;
    if (*out) return 0;
    int err = bel__job_find_any(engine, plan->record.id, &job);
    if (err == 0) err = bel__job_has_topic(engine, &job, run->wanted->number, out);
    return err == BEL_ENOTFOUND ? 0 : err;
}

static int add_plan(struct bel_engine *engine, struct bel_agenda_run *run,
                    const struct bel_store_cursor *cursor)
{
    struct bel_found found;
    bool counts = false;
    int err = bel__timer_load(engine, &cursor->key, &found);
    if (err) return err == BEL_ENOTFOUND ? BEL_ECORRUPT : err;
    err = is_wanted(engine, run, &found, &counts);
    if (!counts) run->coming.is_begun = false; /* it was that of a plan which no longer counts */
    if (err == 0 && counts) err = add_times(engine, run, &found);
    return err;
}

/* Counts the times of the plans in a topic. */
static int count_plans(struct bel_engine *engine, struct bel_agenda_run *run,
                       const struct bel_topic_state *topic)
{
    if (topic == NULL || topic->numbers[BEL_NUMBER_PLANS] == 0) return 0;
    struct bel_place start = {.table = BEL_TABLE_PLANS, .topic = topic->number};
    return walk(engine, run, &start, add_plan);
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

/* Begins with a topic; NULL: the end. Decides for each lane whether rows are counted. */
static void begin_topic(const struct bel_engine *engine, struct bel_agenda_run *run,
                        const struct bel_topic_state *topic)
{
    bool has_hours = bel__steps_have_hours(&run->steps);
    run->topic = topic;
    run->phase = 0;
    if (topic == NULL) return;
    bool is_shifted = engine->now.offset % MS_PER_HOUR != 0;
    bool has_few = topic->numbers[BEL_NUMBER_PENDING] <= ROWS_MAX;
    run->is_by_row[BEL_LANE_ENGINE] = !has_hours || (is_shifted && has_few);
    run->is_by_row[BEL_LANE_WALL] = !has_hours;
}

/* Returns the topic with this number or the next one, or NULL. */
static const struct bel_topic_state *topic_from(const struct bel_engine *engine, uint32_t number)
{
    const struct bel_topic_state *topic = NULL;
    for (; topic == NULL && number < engine->topics.count; number++) {
        topic = bel__topic_at(&engine->topics, number);
    }
    return topic;
}

static int count_phase(struct bel_engine *engine, struct bel_agenda_run *run)
{
    bool is_own = bel__topic_is_own(bel__topic_name(run->topic));
    bool has_timers = !is_own && run->topic->numbers[BEL_NUMBER_PENDING] > 0;
    switch (run->phase) {
    case PHASE_ENGINE:
    case PHASE_WALL:
        if (!has_timers || !run->is_by_row[run->phase]) return 0;
        return count_rows(engine, run, (uint8_t)run->phase);
    case PHASE_HOURS:
        if (!has_timers || !bel__steps_have_hours(&run->steps)) return 0;
        return count_hours(engine, run);
    case PHASE_PLANS:
        return count_plans(engine, run, run->topic);
    default:
        assert(run->phase == PHASE_RECURRING);
        if (run->wanted == NULL) return 0;
        return count_plans(engine, run, bel__topic_find(&engine->topics, BEL_RECURRING_TOPIC));
    }
}

/* Counts on. Returns 0 at the end, BEL_DO_LATER, or an error. */
static int count_on(struct bel_engine *engine, struct bel_agenda_run *run)
{
    while (run->topic != NULL) {
        int err = count_phase(engine, run);
        if (err) return err;
        if (++run->phase < PHASES) continue;
        uint32_t next = run->topic->number + 1;
        begin_topic(engine, run, run->wanted != NULL ? NULL : topic_from(engine, next));
        bel__count_rows(engine, 1);
    }
    return 0;
}

/* Begins an agenda. Sets `*out`, to NULL if it has no steps. */
static int begin(struct bel_engine *engine, struct bel_request *request,
                 struct bel_agenda_run **out)
{
    const struct bel_agenda *command = &request->command.agenda;
    struct bel_reply *reply = &request->own.reply;
    struct bel_steps steps = {0};
    *out = NULL;
    if (command->topic.bytes > 0 && !bel_topic_is_valid(command->topic)) {
        return bel__refuse(reply, BEL_EINVAL, "invalid topic name");
    }
    if (is_behind(engine, &engine->topics, command->topic)) return BEL_DO_LATER;
    int err = bel__steps_divide(&steps, command, (struct bel_wall){engine->now.wall}, reply);
    if (err || steps.count == 0) return err;
    *out = run_create(engine, &steps);
    if (*out == NULL) return BEL_ENOMEM;
    if (command->topic.bytes > 0) {
        (*out)->wanted = bel__topic_find(&engine->topics, command->topic);
        begin_topic(engine, *out, (*out)->wanted);
    } else {
        begin_topic(engine, *out, topic_from(engine, 0));
    }
    return 0;
}

/* Fills in the reply of an agenda at its end. */
static int tell(struct bel_engine *engine, const struct bel_agenda_run *run,
                struct bel_reply *reply)
{
    size_t bytes = run->steps.count * sizeof run->items[0];
    struct bel_agenda_step *items = bel__answer_take(engine, bytes);
    if (items == NULL) return BEL_ENOMEM;
    memcpy(items, run->items, bytes);
    reply->steps.items = items;
    reply->steps.count = run->steps.count;
    return 0;
}

int bel__do_agenda(struct bel_engine *engine, struct bel_request *request)
{
    uint64_t *word = &request->own.words[BEL_OWN_FREE]; /* the run, from the first slice on */
    if (request->own.words[BEL_OWN_STAGE] != BEL_STAGE_BULK) *word = 0;
    struct bel_agenda_run *run = (struct bel_agenda_run *)(uintptr_t)*word;
    int err = run == NULL ? begin(engine, request, &run) : 0;
    if (run == NULL) return err;
    *word = (uintptr_t)run;
    err = settle_numbers(engine);
    if (err == 0) err = count_on(engine, run);
    if (err == BEL_EBUSY || err == BEL_DO_LATER) return BEL_DO_LATER;
    if (err == 0) err = tell(engine, run, &request->own.reply);
    bool is_too_much = err == BEL_EFULL && run->steps.times_left == 0;
    run_destroy(engine, run);
    if (!is_too_much) return err;
    return bel__refuse(&request->own.reply, err,
                       "plans have too many times in this period; choose a shorter one");
}
