/* SPDX-License-Identifier: MIT */

/*
 * A plan has one timer of the runtime at a time, for the wall time of its next ring. The timer's
 * user word is the plan's id, a number that is never used again, and not an address: a timer that
 * was restored from a snapshot of another process finds no plan.
 *
 *     timer rings --> plan by id --> missed times by policy, then those that are due --> callbacks
 *           ^                                                                              |
 *           '------------------ a timer for the next nominal time <------------------------'
 *
 * The runtime moves timers for wall times when the clock is set (runtime/wall.c). A plan keeps the
 * nominal time for which it waits, so that a clock that was set back repeats none.
 *
 * While the callbacks of a plan run it has no timer, so it rings once at a time. A plan that is
 * cancelled meanwhile is freed afterwards. If memory has run out when the next timer is needed, the
 * plan is stalled: the next ring or call of the calendar tries again.
 */
#include "belfry/calendar.h"

#include "core/entropy.h"
#include "core/map.h"
#include "runtime/runtime.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum {
    PLANS_MAX_DEFAULT = 1 << 20,
    RINGS_MAX = 1000, /* rings of a plan in a row, before the worker does something else */
};

struct plan {
    uint64_t id;
    struct bel_plan *rule;
    struct bel_plan_schedule schedule;
    struct bel_wall next; /* nominal time of the next ring */
    bel_timer_t timer;    /* BEL_TIMER_NONE: its callbacks run, or it is stalled */
    uint64_t made;        /* nominal times before `next` */
    uint64_t rings, skipped;
    uint64_t unreported; /* skipped since the last ring */
    bool is_ringing, is_cancelled, is_stalled;
    pthread_t thread; /* on which its callbacks run, while is_ringing */
};

struct bel_calendar {
    struct bel_runtime *runtime;
    struct bel_map plans; /* by id */
    pthread_mutex_t mutex;
    pthread_cond_t rung; /* the callbacks of a plan have returned */
    uint64_t ids;
    uint64_t stalled;
    uint32_t plans_max;
    bel_kind_t kind;
};

/* Returns the plan whose address is a value of the map. */
static struct plan *plan_at(uint64_t value)
{
    return (struct plan *)(uintptr_t)value; /* NOLINT(performance-no-int-to-ptr) */
}

static struct plan *find(const struct bel_calendar *calendar, uint64_t id)
{
    const uint64_t *value = bel__map_find(&calendar->plans, &id, sizeof id);
    return value != NULL ? plan_at(*value) : NULL;
}

static void free_plan(struct plan *plan)
{
    bel_plan_destroy(plan->rule);
    free(plan);
}

static void forget(struct bel_calendar *calendar, struct plan *plan)
{
    uint64_t value;
    bool was_there = bel__map_remove(&calendar->plans, &plan->id, sizeof plan->id, &value);
    assert(was_there);
    (void)was_there;
    if (plan->is_stalled) calendar->stalled--;
    free_plan(plan);
}

static struct bel_wall wall_now(const struct bel_calendar *calendar)
{
    return bel_clock_wall(calendar->runtime->clock);
}

/* Gives a plan a timer for its next ring. Returns 0, or the error of the runtime. */
static int arm(struct bel_calendar *calendar, struct plan *plan)
{
    struct bel_schedule timer = {
        .wall_ms = plan->next.ms,
        .user = plan->id,
        .kind = calendar->kind,
        .worker = plan->schedule.worker,
        .priority = plan->schedule.priority,
    };
    assert(plan->timer == BEL_TIMER_NONE);
    return bel_runtime_schedule_wall(calendar->runtime, &timer, &plan->timer);
}

static void set_stalled(struct bel_calendar *calendar, struct plan *plan, bool is_stalled)
{
    if (plan->is_stalled == is_stalled) return;
    plan->is_stalled = is_stalled;
    calendar->stalled += is_stalled ? 1 : UINT64_MAX;
}

static void arm_stalled(struct bel_calendar *calendar)
{
    if (calendar->stalled == 0) return;
    for (uint32_t i = 0; i < bel__map_count(&calendar->plans); i++) {
        const struct bel_map_entry *entry = bel__map_at(&calendar->plans, i);
        struct plan *plan = plan_at(entry->value);
        if (!plan->is_stalled) continue;
        if (arm(calendar, plan) != 0) return;
        set_stalled(calendar, plan, false);
    }
}

static void lock(struct bel_calendar *calendar)
{
    (void)pthread_mutex_lock(&calendar->mutex);
    arm_stalled(calendar);
}

static void unlock(struct bel_calendar *calendar)
{
    (void)pthread_mutex_unlock(&calendar->mutex);
}

/*
 * Ringing.
 */

/* The rule of a plan for bel_misfire_choose(). The count of the plan is looked at elsewhere. */
static bool next_after(void *context, struct bel_wall after, struct bel_wall *out)
{
    const struct plan *plan = context;
    return bel_plan_next(plan->rule, after, plan->made, out) == 0;
}

/* Moves on to the next nominal time. Returns false if there is none. */
static bool move_on(struct plan *plan)
{
    plan->made++;
    return bel_plan_next(plan->rule, plan->next, plan->made, &plan->next) == 0;
}

/* Calls the callback of a plan, without the mutex. Returns false if the plan was cancelled. */
static bool call(struct bel_calendar *calendar, struct plan *plan, struct bel_wall nominal,
                 bool is_last)
{
    struct bel_plan_event event = {
        .plan = plan->id,
        .user = plan->schedule.user,
        .nominal = nominal,
        .now = wall_now(calendar),
        .skipped = plan->unreported,
        .is_last = is_last,
    };
    plan->unreported = 0;
    plan->rings++;
    unlock(calendar);
    plan->schedule.ring(plan->schedule.context, &event);
    if (runtime_is_forked(calendar->runtime)) return false;
    lock(calendar);
    return !plan->is_cancelled;
}

static void skip(struct plan *plan, uint64_t times)
{
    plan->skipped += times;
    plan->unreported += times;
}

/* Rings the missed times of a plan with a count, one after the other, because each of them counts.
 * Returns false if the plan has ended. */
static bool ring_missed_one_by_one(struct bel_calendar *calendar, struct plan *plan,
                                   struct bel_wall until)
{
    bool goes_on = true, rings = plan->schedule.misfire == BEL_MISFIRE_ALL;
    for (uint32_t i = 0; goes_on && plan->next.ms <= until.ms && i < BEL_MISFIRE_COUNT_MAX; i++) {
        struct bel_wall nominal = plan->next;
        goes_on = move_on(plan);
        bool is_newest = !goes_on || plan->next.ms > until.ms;
        if (rings || (plan->schedule.misfire == BEL_MISFIRE_LAST && is_newest)) {
            if (!call(calendar, plan, nominal, !goes_on)) return false;
        } else {
            skip(plan, 1);
        }
    }
    return goes_on;
}

/* Rings the missed times of a plan, up to and including `until`, as its policy says, and moves on
 * to the time after them. Returns false if the plan has ended. */
static bool ring_missed(struct bel_calendar *calendar, struct plan *plan, struct bel_wall until)
{
    if (plan->next.ms > until.ms) return true;
    if (plan->schedule.options.count > 0) return ring_missed_one_by_one(calendar, plan, until);
    struct bel_wall *times = malloc(BEL_MISFIRE_MAX * sizeof *times);
    if (times == NULL) return true; /* they ring as if they were not missed */
    struct bel_misfire_range range = {{plan->next.ms - 1}, until};
    struct bel_misfire_result missed =
        bel_misfire_choose(plan->schedule.misfire, plan->schedule.misfire_max,
                           &(struct bel_misfire_plan){next_after, plan}, range, times);
    plan->made += missed.made_count + missed.skipped_count;
    skip(plan, missed.skipped_count);
    if (missed.has_next) plan->next = missed.next;
    bool goes_on = true;
    for (uint32_t i = 0; goes_on && i < missed.made_count; i++) {
        goes_on = call(calendar, plan, times[i], !missed.has_next && i + 1 == missed.made_count);
    }
    free(times);
    return goes_on && missed.has_next;
}

/* Rings what is due. Returns false if the plan has ended. */
static bool ring_due(struct bel_calendar *calendar, struct plan *plan)
{
    struct bel_wall now = wall_now(calendar);
    bool goes_on =
        ring_missed(calendar, plan, (struct bel_wall){now.ms - BEL_CALENDAR_LATE_MS - 1});
    for (unsigned i = 0; goes_on && plan->next.ms <= now.ms && i < RINGS_MAX; i++) {
        struct bel_wall nominal = plan->next;
        bool has_next = move_on(plan);
        goes_on = call(calendar, plan, nominal, !has_next) && has_next;
    }
    return goes_on;
}

/* The callback of all timers of a calendar. */
static void ring(void *context, const struct bel_event *event)
{
    struct bel_calendar *calendar = context;
    lock(calendar);
    struct plan *plan = find(calendar, event->user);
    if (plan == NULL || plan->timer != event->timer) { /* cancelled, or of another process */
        unlock(calendar);
        return;
    }
    plan->timer = BEL_TIMER_NONE;
    plan->is_ringing = true;
    plan->thread = pthread_self();
    bool goes_on = ring_due(calendar, plan);
    if (runtime_is_forked(calendar->runtime)) return; /* a callback forked: this is the child */
    plan->is_ringing = false;
    if (!goes_on) {
        forget(calendar, plan);
    } else if (arm(calendar, plan) != 0) {
        set_stalled(calendar, plan, true);
    }
    (void)pthread_cond_broadcast(&calendar->rung);
    unlock(calendar);
}

/*
 * The public functions.
 */

int bel_calendar_create(struct bel_runtime *runtime, const struct bel_calendar_options *options,
                        struct bel_calendar **out)
{
    struct bel_siphash_key secret;
    int err = bel__entropy_fill(bel__entropy_system(), &secret, sizeof secret);
    if (err) return err;
    struct bel_calendar *calendar = calloc(1, sizeof *calendar);
    if (calendar == NULL) return BEL_ENOMEM;
    calendar->runtime = runtime;
    calendar->kind = options->kind;
    calendar->plans_max = options->plans_max != 0 ? options->plans_max : PLANS_MAX_DEFAULT;
    bel__map_init(&calendar->plans, secret);
    bool is_made = pthread_mutex_init(&calendar->mutex, NULL) == 0 &&
                   pthread_cond_init(&calendar->rung, NULL) == 0;
    err = is_made ? bel_runtime_on(runtime, options->kind, ring, calendar) : BEL_ENOMEM;
    if (err) {
        bel__map_finish(&calendar->plans);
        free(calendar);
        return err;
    }
    *out = calendar;
    return 0;
}

/* Ends a plan. The mutex is held, and is given up to wait until its timer does not ring. */
static void end_plan(struct bel_calendar *calendar, struct plan *plan)
{
    uint64_t id = plan->id;
    bel_timer_t timer = plan->timer;
    if (!plan->is_ringing) {
        forget(calendar, plan); /* a timer that rings already finds no plan */
        unlock(calendar);
        int err = bel_runtime_cancel_sync(calendar->runtime, timer);
        (void)err; /* BEL_ESTALE: it has rung */
        lock(calendar);
        return;
    }
    plan->is_cancelled = true;
    if (pthread_equal(plan->thread, pthread_self())) return; /* freed when the callback returns */
    while (find(calendar, id) != NULL) {
        (void)pthread_cond_wait(&calendar->rung, &calendar->mutex);
    }
}

void bel_calendar_destroy(struct bel_calendar *calendar)
{
    if (calendar == NULL) return;
    if (!runtime_is_forked(calendar->runtime)) {
        lock(calendar);
        while (bel__map_count(&calendar->plans) > 0) {
            const struct bel_map_entry *entry = bel__map_at(&calendar->plans, 0);
            end_plan(calendar, plan_at(entry->value));
        }
        unlock(calendar);
    }
    bel__map_finish(&calendar->plans);
    (void)pthread_mutex_destroy(&calendar->mutex);
    (void)pthread_cond_destroy(&calendar->rung);
    free(calendar);
}

static int make_plan(struct bel_calendar *calendar, const struct bel_plan_schedule *schedule,
                     struct plan **out, struct bel_text_error *why)
{
    struct bel_plan_options options = schedule->options;
    options.now = wall_now(calendar);
    struct plan *plan = calloc(1, sizeof *plan);
    if (plan == NULL) return BEL_ENOMEM;
    plan->schedule = *schedule;
    if (schedule->misfire_max == 0) plan->schedule.misfire_max = BEL_MISFIRE_MAX;
    size_t bytes = schedule->bytes != 0 ? schedule->bytes : strlen(schedule->rule);
    int err = bel_plan_create(schedule->rule, bytes, &options, &plan->rule, why);
    if (err == 0) err = bel_plan_next(plan->rule, options.now, 0, &plan->next);
    if (err) {
        free_plan(plan);
        return err;
    }
    *out = plan;
    return 0;
}

/* Adds a plan to the calendar and gives it a timer. The mutex is held. */
static int add_plan(struct bel_calendar *calendar, struct plan *plan)
{
    if (bel__map_count(&calendar->plans) >= calendar->plans_max) return BEL_EFULL;
    plan->id = ++calendar->ids;
    int err = bel__map_put(&calendar->plans, &plan->id, sizeof plan->id, (uintptr_t)plan);
    if (err) return err;
    err = arm(calendar, plan);
    if (err) {
        uint64_t value;
        (void)bel__map_remove(&calendar->plans, &plan->id, sizeof plan->id, &value);
    }
    return err;
}

int bel_runtime_schedule_plan(struct bel_calendar *calendar,
                              const struct bel_plan_schedule *schedule, uint64_t *out_id,
                              struct bel_text_error *why)
{
    struct plan *plan;
    if (runtime_is_forked(calendar->runtime)) return BEL_ECLOSED;
    if (schedule->ring == NULL || schedule->misfire > BEL_MISFIRE_ALL) return BEL_EINVAL;
    if (schedule->misfire_max > BEL_MISFIRE_MAX) return BEL_EINVAL;
    if (schedule->options.mode != BEL_PLAN_RATE) return BEL_EINVAL;
    int err = make_plan(calendar, schedule, &plan, why);
    if (err) return err;
    lock(calendar);
    err = add_plan(calendar, plan);
    if (err == 0) *out_id = plan->id;
    unlock(calendar);
    if (err) free_plan(plan);
    return err;
}

bool bel_calendar_cancel(struct bel_calendar *calendar, uint64_t id)
{
    if (runtime_is_forked(calendar->runtime)) return false;
    lock(calendar);
    struct plan *plan = find(calendar, id);
    bool is_there = plan != NULL && !plan->is_cancelled;
    if (is_there) end_plan(calendar, plan);
    unlock(calendar);
    return is_there;
}

bool bel_calendar_find(struct bel_calendar *calendar, uint64_t id, struct bel_plan_status *out)
{
    if (runtime_is_forked(calendar->runtime)) return false;
    lock(calendar);
    const struct plan *plan = find(calendar, id);
    bool is_there = plan != NULL && !plan->is_cancelled;
    if (is_there) {
        *out = (struct bel_plan_status){
            .next = plan->next,
            .user = plan->schedule.user,
            .rings = plan->rings,
            .skipped = plan->skipped,
            .is_ringing = plan->is_ringing,
        };
    }
    unlock(calendar);
    return is_there;
}

uint64_t bel_calendar_count(struct bel_calendar *calendar)
{
    if (runtime_is_forked(calendar->runtime)) return 0;
    lock(calendar);
    uint64_t count = bel__map_count(&calendar->plans);
    unlock(calendar);
    return count;
}
