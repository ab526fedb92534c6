/* SPDX-License-Identifier: MIT */

/*
 * The map finds a post by its name; a post has the timer that is pending under the name:
 *
 *     (duty, key) --map--> post { timer, user, due } --runtime--> worker --> inbox --> take
 *
 * The timer's kind identifies the duty and its user word is the key, so an event identifies its
 * name. An event also has the handle of its timer: if the post has another timer by now, or there
 * is no post, the timer was cancelled or replaced after it had rung, and the event is dropped.
 *
 * A post is removed with its event, unless it holds more: the failure count of a breaker, or the
 * runs of a cron.
 */
#include "belfry/duties.h"

#include "core/entropy.h"
#include "core/map.h"
#include "core/slab.h"
#include "runtime/frame.h"
#include "runtime/runtime.h"

#include <stdlib.h>

#define S                 UINT64_C(1000000000)
#define RATE_LIMIT_NS_MAX (86400 * S)

enum {
    NAMES_MAX_DEFAULT = 1 << 20,
    BATCH = 64, /* events taken from the inbox at once */
};

struct name {
    uint64_t key;
    uint64_t duty;
};

static_assert(sizeof(struct name) == 16, "its bytes are the map's key");

struct post {
    struct name name;
    bel_timer_t timer; /* BEL_TIMER_NONE: no timer is pending */
    uint64_t user;
    uint64_t due;
    uint64_t idle_ns;       /* stale: the delay that a heartbeat restarts */
    uint64_t count;         /* breaker: failures; cron: ticks skipped */
    uint32_t runs, queued;  /* cron */
    bool is_stalled;        /* cron: memory had run out when the next tick was to be armed */
    bel_duty_next_fn *next; /* cron: NULL if the period is fixed */
    void *context;
    struct bel_duty_tick tick; /* cron with `next`: the one that is pending */
    enum bel_overlap overlap;
};

struct bel_duties {
    struct bel_runtime *runtime;
    struct bel_inbox *inbox;
    struct bel_worker *worker;
    struct bel_duty_limits limits; /* defaults filled in: only the jitter may be 0 */
    struct bel_map names;
    struct bel__slab posts;
    bel_kind_t kind_first;
    uint64_t stalled; /* posts that are */
};

/*
 * Delays.
 */

static uint64_t or_default(uint64_t chosen, uint64_t otherwise)
{
    return chosen != 0 ? chosen : otherwise;
}

static struct bel_duty_limits with_defaults(const struct bel_duty_limits *limits)
{
    static const struct bel_duty_limits none = {0};
    if (limits == NULL) limits = &none;
    return (struct bel_duty_limits){
        .retry_ns = or_default(limits->retry_ns, 10 * S),
        .retry_max_ns = or_default(limits->retry_max_ns, 3600 * S),
        .retry_jitter = limits->retry_jitter < 100 ? limits->retry_jitter : 100,
        .breaker_opens = (uint32_t)or_default(limits->breaker_opens, 5),
        .breaker_ns = or_default(limits->breaker_ns, 30 * S),
        .breaker_max_ns = or_default(limits->breaker_max_ns, 300 * S),
        .rate_limit_ns = or_default(limits->rate_limit_ns, 60 * S),
        .pacing_ns = or_default(limits->pacing_ns, 2 * S),
        .cooldown_ns = or_default(limits->cooldown_ns, 5 * S),
        .job_timeout_ns = or_default(limits->job_timeout_ns, 86400 * S),
        .chain_max = (uint32_t)or_default(limits->chain_max, 5),
        .cron_queue_max = (uint32_t)or_default(limits->cron_queue_max, 100),
    };
}

/* Returns first * 2^times, at most `max`. */
static uint64_t doubled(uint64_t first, uint32_t times, uint64_t max)
{
    return times >= 64 || first > max >> times ? max : first << times;
}

/* Returns number * chance / 2^32. */
static uint64_t share_of(uint64_t number, uint32_t chance)
{
    return (number >> 32) * chance + ((number & UINT32_MAX) * chance >> 32);
}

uint64_t bel_duty_retry_ns(const struct bel_duty_limits *limits, uint32_t attempt, uint32_t chance)
{
    struct bel_duty_limits l = with_defaults(limits);
    uint64_t delay = doubled(l.retry_ns, attempt > 0 ? attempt - 1 : 0, l.retry_max_ns);
    uint64_t most = delay / 100 * l.retry_jitter + delay % 100 * l.retry_jitter / 100;
    return delay - share_of(most, chance);
}

uint64_t bel_duty_breaker_ns(const struct bel_duty_limits *limits, uint32_t failures)
{
    struct bel_duty_limits l = with_defaults(limits);
    if (failures < l.breaker_opens) return 0;
    return doubled(l.breaker_ns, failures - l.breaker_opens, l.breaker_max_ns);
}

uint64_t bel_duty_rate_limit_ns(const struct bel_duty_limits *limits, uint64_t reported_ns)
{
    uint64_t wait_ns = or_default(reported_ns, with_defaults(limits).rate_limit_ns);
    return wait_ns < RATE_LIMIT_NS_MAX ? wait_ns : RATE_LIMIT_NS_MAX;
}

/*
 * Names and posts.
 */

static struct post *find(const struct bel_duties *duties, enum bel_duty duty, uint64_t key)
{
    struct name name = {key, duty};
    assert(duty < BEL_DUTY_COUNT);
    const uint64_t *index = bel__map_find(&duties->names, &name, sizeof name);
    return index != NULL ? bel__slab_at(&duties->posts, (uint32_t)*index) : NULL;
}

/* Finds a post or creates an empty one. */
static int post_for(struct bel_duties *duties, enum bel_duty duty, uint64_t key, struct post **out)
{
    *out = find(duties, duty, key);
    if (*out != NULL) return 0;
    uint32_t index = bel__slab_take(&duties->posts);
    if (index == BEL__SLAB_NONE) {
        return duties->posts.used == duties->posts.max ? BEL_EFULL : BEL_ENOMEM;
    }
    struct post *post = bel__slab_at(&duties->posts, index);
    *post = (struct post){.name = {key, duty}};
    int err = bel__map_put(&duties->names, &post->name, sizeof post->name, index);
    if (err) {
        bel__slab_give(&duties->posts, index);
        return err;
    }
    *out = post;
    return 0;
}

static void forget(struct bel_duties *duties, struct post *post)
{
    uint64_t index;
    bool was_there = bel__map_remove(&duties->names, &post->name, sizeof post->name, &index);
    assert(was_there);
    (void)was_there;
    if (post->is_stalled) duties->stalled--;
    bel__slab_give(&duties->posts, (uint32_t)index);
}

/* Removes a post that holds nothing any more. */
static void tidy(struct bel_duties *duties, struct post *post)
{
    bool is_idle = post->timer == BEL_TIMER_NONE && !post->is_stalled;
    if (is_idle && post->count == 0 && post->runs == 0) {
        forget(duties, post);
    }
}

/*
 * A set.
 */

static int claim_kinds(struct bel_duties *duties)
{
    struct bel_runtime *runtime = duties->runtime;
    for (unsigned i = 0; i < BEL_DUTY_COUNT; i++) {
        unsigned kind = duties->kind_first + i;
        if (kind >= BEL_KINDS_MAX || runtime_knows(runtime, kind)) return BEL_EINVAL;
    }
    int err = bel_inbox_create(runtime, &duties->inbox);
    for (unsigned i = 0; err == 0 && i < BEL_DUTY_COUNT; i++) {
        err = bel_runtime_on_inbox(runtime, (bel_kind_t)(duties->kind_first + i), duties->inbox);
    }
    return err;
}

int bel_duties_create(struct bel_runtime *runtime, const struct bel_duties_options *options,
                      struct bel_duties **out)
{
    struct bel_siphash_key secret;
    int err = bel__entropy_fill(bel__entropy_system(), &secret, sizeof secret);
    if (err) return err;
    struct bel_duties *duties = calloc(1, sizeof *duties);
    if (duties == NULL) return BEL_ENOMEM;
    duties->runtime = runtime;
    duties->worker = options->worker;
    duties->limits = with_defaults(&options->limits);
    duties->kind_first = options->kind_first;
    bel__map_init(&duties->names, secret);
    uint32_t names_max = (uint32_t)or_default(options->names_max, NAMES_MAX_DEFAULT);
    err = bel__slab_init(&duties->posts, sizeof(struct post), names_max);
    if (err == 0) err = claim_kinds(duties);
    if (err) {
        bel_duties_destroy(duties);
        return err;
    }
    *out = duties;
    return 0;
}

void bel_duties_destroy(struct bel_duties *duties)
{
    if (duties == NULL) return;
    for (uint32_t i = bel__map_count(&duties->names); i-- > 0;) {
        const struct bel_map_entry *entry = bel__map_at(&duties->names, i);
        const struct post *post = bel__slab_at(&duties->posts, (uint32_t)entry->value);
        (void)bel_runtime_cancel(duties->runtime, post->timer);
    }
    bel__map_finish(&duties->names);
    bel__slab_finish(&duties->posts);
    free(duties);
}

int bel_duties_fd(const struct bel_duties *duties)
{
    return bel_inbox_fd(duties->inbox);
}

bool bel_duties_cancel(struct bel_duties *duties, enum bel_duty duty, uint64_t key)
{
    struct post *post = find(duties, duty, key);
    if (post == NULL) return false;
    bool was_pending = post->timer != BEL_TIMER_NONE;
    /* If the timer has rung, its event will find no post. */
    (void)bel_runtime_cancel(duties->runtime, post->timer);
    forget(duties, post);
    return was_pending;
}

bool bel_duties_is_pending(const struct bel_duties *duties, enum bel_duty duty, uint64_t key)
{
    const struct post *post = find(duties, duty, key);
    return post != NULL && post->timer != BEL_TIMER_NONE;
}

uint64_t bel_duties_count(const struct bel_duties *duties, enum bel_duty duty, uint64_t key)
{
    const struct post *post = find(duties, duty, key);
    return post != NULL ? post->count : 0;
}

/*
 * Taking.
 */

/* Returns whether a tick is delivered, which starts a run. */
static bool tick(const struct bel_duties *duties, struct post *post)
{
    if (post->runs == 0 || post->overlap == BEL_OVERLAP_ALLOW) {
        post->runs++;
        return true;
    }
    if (post->overlap == BEL_OVERLAP_QUEUE && post->queued < duties->limits.cron_queue_max) {
        post->queued++;
    } else {
        post->count++;
    }
    return false;
}

/* Arms the pending tick of a rule, for its wall time. */
static int arm_tick(struct bel_duties *duties, struct post *post)
{
    struct bel_schedule timer = {
        .wall_ms = post->tick.at.ms,
        .user = post->name.key,
        .kind = (bel_kind_t)(duties->kind_first + BEL_DUTY_CRON),
        .priority = BEL_PRIORITY_DEFAULT,
        .worker = duties->worker,
    };
    int err = bel_runtime_schedule_wall(duties->runtime, &timer, &post->timer);
    if ((err != 0) == post->is_stalled) return err;
    post->is_stalled = err != 0;
    duties->stalled += post->is_stalled ? 1 : UINT64_MAX;
    return err;
}

/* Arms the tick after one that was taken. */
static void arm_next_tick(struct bel_duties *duties, struct post *post)
{
    struct bel_duty_tick last = post->tick;
    struct bel_wall now = bel_clock_wall(duties->runtime->clock);
    if (!post->next(post->context, &last, now, &post->tick)) {
        post->next = NULL; /* it was the last */
        return;
    }
    int err = arm_tick(duties, post);
    (void)err; /* stalled: the next bel_duties_take() tries again */
}

static void arm_stalled(struct bel_duties *duties)
{
    for (uint32_t i = 0; duties->stalled > 0 && i < bel__map_count(&duties->names); i++) {
        uint64_t index = bel__map_at(&duties->names, i)->value;
        struct post *post = bel__slab_at(&duties->posts, (uint32_t)index);
        if (post->is_stalled && arm_tick(duties, post) != 0) return;
    }
}

/* Returns whether an event is delivered. */
static bool accept(struct bel_duties *duties, const struct bel_event *event,
                   struct bel_duty_event *out)
{
    enum bel_duty duty = (enum bel_duty)(event->kind - duties->kind_first);
    struct post *post = find(duties, duty, event->user);
    if (post == NULL || post->timer != event->timer) return false; /* cancelled or replaced */
    *out = (struct bel_duty_event){duty,       event->user, post->user,
                                   event->due, event->now,  event->missed};
    bool goes_on = bel_runtime_is_pending(duties->runtime, post->timer);
    if (!goes_on) post->timer = BEL_TIMER_NONE;
    if (!goes_on && post->next != NULL) {
        out->missed = post->tick.missed;
        arm_next_tick(duties, post);
    }
    bool arrives = duty != BEL_DUTY_CRON || tick(duties, post);
    if (duty == BEL_DUTY_JOB_TIMEOUT) {
        (void)bel_duties_cancel(duties, BEL_DUTY_PACING, event->user);
    }
    tidy(duties, post);
    return arrives;
}

size_t bel_duties_take(struct bel_duties *duties, struct bel_duty_event *out, size_t max)
{
    struct bel_event events[BATCH];
    size_t count = 0, taken = 1;
    if (duties->stalled > 0) arm_stalled(duties);
    while (count < max && taken > 0) {
        taken = bel_inbox_take(duties->inbox, events, max - count < BATCH ? max - count : BATCH);
        for (size_t i = 0; i < taken; i++) {
            if (accept(duties, &events[i], &out[count])) count++;
        }
    }
    return count;
}

/*
 * Arming.
 */

/* Gives a post a new timer. Its old timer has rung or is cancelled by the caller. */
static int schedule(struct bel_duties *duties, struct post *post, struct bel_duty_for what,
                    const struct bel_schedule *how)
{
    struct bel_schedule options = *how;
    options.user = what.key;
    options.kind = (bel_kind_t)(duties->kind_first + post->name.duty);
    options.priority = BEL_PRIORITY_DEFAULT;
    options.worker = duties->worker;
    int err = bel_runtime_schedule(duties->runtime, &options, &post->timer);
    if (err) return err;
    post->user = what.user;
    post->due = how->due.ns;
    return 0;
}

static int arm_post(struct bel_duties *duties, struct post *post, struct bel_duty_for what,
                    const struct bel_duty_timer *timer)
{
    struct bel_boot due;
    int err = bel_boot_add(bel_clock_boot(duties->runtime->clock), timer->delay_ns, &due);
    if (err) return err;
    if (post->timer != BEL_TIMER_NONE) {
        if (timer->rule == BEL_RULE_KEEP_FIRST) return 0;
        if (timer->rule == BEL_RULE_KEEP_LONGEST && due.ns <= post->due) return 0;
        err = bel_runtime_reschedule(duties->runtime, post->timer, due);
        if (err == 0) {
            post->user = what.user;
            post->due = due.ns;
        }
        if (err != BEL_ESTALE) return err;
    }
    return schedule(duties, post, what, &(struct bel_schedule){.due = due});
}

int bel_duties_arm(struct bel_duties *duties, struct bel_duty_for what,
                   const struct bel_duty_timer *timer)
{
    struct post *post;
    int err = post_for(duties, timer->duty, what.key, &post);
    if (err) return err;
    err = arm_post(duties, post, what, timer);
    if (err) tidy(duties, post);
    return err;
}

static int arm(struct bel_duties *duties, struct bel_duty_for what, enum bel_duty duty,
               uint64_t delay_ns, enum bel_duty_rule rule)
{
    return bel_duties_arm(duties, what, &(struct bel_duty_timer){duty, rule, delay_ns});
}

int bel_duties_retry(struct bel_duties *duties, struct bel_duty_for task, uint32_t attempt)
{
    uint64_t chance = 0;
    if (duties->limits.retry_jitter > 0) {
        int err = bel__entropy_u64(bel__entropy_system(), &chance);
        if (err) return err;
    }
    uint64_t delay_ns = bel_duty_retry_ns(&duties->limits, attempt, (uint32_t)chance);
    return arm(duties, task, BEL_DUTY_RETRY, delay_ns, BEL_RULE_REPLACE);
}

int bel_duties_limit_rate(struct bel_duties *duties, struct bel_duty_for resource,
                          uint64_t reported_ns)
{
    uint64_t delay_ns = bel_duty_rate_limit_ns(&duties->limits, reported_ns);
    return arm(duties, resource, BEL_DUTY_RATE_LIMIT, delay_ns, BEL_RULE_KEEP_LONGEST);
}

int bel_duties_fail(struct bel_duties *duties, struct bel_duty_for resource)
{
    struct post *post;
    int err = post_for(duties, BEL_DUTY_BREAKER, resource.key, &post);
    if (err || post->timer != BEL_TIMER_NONE) return err;
    uint32_t failures = post->count < UINT32_MAX ? (uint32_t)post->count + 1 : UINT32_MAX;
    uint64_t delay_ns = bel_duty_breaker_ns(&duties->limits, failures);
    if (delay_ns > 0) {
        err = arm(duties, resource, BEL_DUTY_BREAKER, delay_ns, BEL_RULE_KEEP_FIRST);
    }
    if (err == 0) post->count = failures;
    return err;
}

int bel_duties_watch(struct bel_duties *duties, struct bel_duty_for task, uint64_t idle_ns)
{
    struct post *post;
    int err = post_for(duties, BEL_DUTY_STALE, task.key, &post);
    if (err) return err;
    err = arm(duties, task, BEL_DUTY_STALE, idle_ns, BEL_RULE_REPLACE);
    if (err == 0) post->idle_ns = idle_ns;
    return err;
}

int bel_duties_heartbeat(struct bel_duties *duties, uint64_t task)
{
    struct post *post = find(duties, BEL_DUTY_STALE, task);
    if (post == NULL) return BEL_ESTALE;
    return arm(duties, (struct bel_duty_for){task, post->user}, BEL_DUTY_STALE, post->idle_ns,
               BEL_RULE_REPLACE);
}

int bel_duties_pace(struct bel_duties *duties, struct bel_duty_for job, uint32_t running)
{
    if (running > 0) return 0;
    return arm(duties, job, BEL_DUTY_PACING, duties->limits.pacing_ns, BEL_RULE_REPLACE);
}

int bel_duties_chain(struct bel_duties *duties, struct bel_duty_for job, uint32_t depth)
{
    if (depth > duties->limits.chain_max) return BEL_EFULL;
    return arm(duties, job, BEL_DUTY_COOLDOWN, duties->limits.cooldown_ns, BEL_RULE_REPLACE);
}

int bel_duties_start_job(struct bel_duties *duties, struct bel_duty_for job, uint64_t timeout_ns)
{
    uint64_t delay_ns = or_default(timeout_ns, duties->limits.job_timeout_ns);
    return arm(duties, job, BEL_DUTY_JOB_TIMEOUT, delay_ns, BEL_RULE_KEEP_FIRST);
}

/* Starts the ticks of a rule. Returns 0; or an error, and the post is as before. */
static int start_rule(struct bel_duties *duties, struct post *post,
                      const struct bel_duty_ticks *ticks)
{
    struct post before = *post;
    struct bel_wall now = bel_clock_wall(duties->runtime->clock);
    if (!ticks->next(ticks->context, NULL, now, &post->tick)) return BEL_ERANGE;
    int err = arm_tick(duties, post);
    if (post->is_stalled && !before.is_stalled) duties->stalled--;
    if (err) {
        *post = before;
        return err;
    }
    post->next = ticks->next;
    post->context = ticks->context;
    return 0;
}

/* Starts ticks with a fixed period. Returns 0; or an error, and the post is as before. */
static int start_period(struct bel_duties *duties, struct post *post,
                        struct bel_duty_for schedule_of, const struct bel_duty_ticks *ticks)
{
    enum bel_repeat repeat = ticks->catches_up ? BEL_RATE_BURST : BEL_RATE_SKIP;
    struct bel_schedule how = {
        .due = ticks->first,
        .period_ns = ticks->period_ns,
        .repeat = (uint8_t)(ticks->period_ns > 0 ? repeat : BEL_ONCE),
    };
    int err = schedule(duties, post, schedule_of, &how);
    if (err) return err;
    if (post->is_stalled) duties->stalled--;
    post->is_stalled = false;
    post->next = NULL;
    return 0;
}

int bel_duties_cron(struct bel_duties *duties, struct bel_duty_for schedule_of,
                    const struct bel_duty_ticks *ticks)
{
    struct post *post;
    int err = post_for(duties, BEL_DUTY_CRON, schedule_of.key, &post);
    if (err) return err;
    bel_timer_t before = post->timer;
    err = ticks->next != NULL ? start_rule(duties, post, ticks)
                              : start_period(duties, post, schedule_of, ticks);
    if (err) {
        tidy(duties, post);
        return err;
    }
    post->user = schedule_of.user;
    post->overlap = ticks->overlap;
    (void)bel_runtime_cancel(duties->runtime, before);
    return 0;
}

bool bel_duties_end_run(struct bel_duties *duties, uint64_t schedule_of)
{
    struct post *post = find(duties, BEL_DUTY_CRON, schedule_of);
    if (post == NULL || post->runs == 0) return false;
    post->runs--;
    if (post->queued > 0) {
        post->queued--;
        post->runs++;
        return true;
    }
    tidy(duties, post);
    return false;
}

/*
 * Snapshots. The header is that of a snapshot of the runtime (frame.h), with another magic.
 *
 *     offset  bytes   entry: a name
 *          0      1   duty
 *          1      1   when: enum when, the meaning of `time`
 *          2      1   repeat: enum bel_repeat
 *          3      1   overlap: enum bel_overlap
 *          4      4   zeros
 *          8      8   key
 *         16      8   the caller's word
 *         24      8   time: remaining ns; or ns overdue; or an instant of the wall clock, in ms
 *         32      8   period in ns
 *         40      8   idle limit in ns
 *         48      8   count
 *         56      4   runs that have not ended
 *         60      4   ticks that wait for one
 */

enum {
    VERSION = 1,
    ENTRY_BYTES = 64,
};

enum when {
    WHEN_REMAINS,
    WHEN_OVERDUE,
    WHEN_INSTANT,
    WHEN_NEVER, /* no timer is pending: failures of a breaker, or runs of a cron */
};

struct entry {
    uint8_t duty, when, repeat, overlap;
    uint8_t zeros[4];
    uint8_t key[8], user[8], time[8], period_ns[8], idle_ns[8], count[8];
    uint8_t runs[4], queued[4];
};

static_assert(sizeof(struct entry) == ENTRY_BYTES, "as in the table");
static_assert(offsetof(struct entry, time) == 24, "as in the table");
static_assert(offsetof(struct entry, runs) == 56, "as in the table");
static_assert(BEL_DUTY_CRON == 7 && BEL_DUTY_COUNT == 8, "written down, so these numbers stay");

static const uint8_t magic[8] = "BELDUTY";
static const struct frame frame = {magic, VERSION, ENTRY_BYTES};

/* Writes when a timer is due. A timer whose event waits in the inbox is due. */
static void write_time(const struct bel_duties *duties, const struct post *post, uint64_t now,
                       struct entry *out)
{
    struct bel_pending found = {.due = {post->due < now ? post->due : now}};
    out->when = WHEN_NEVER;
    if (post->timer == BEL_TIMER_NONE && !post->is_stalled) return;
    (void)bel_runtime_find(duties->runtime, post->timer, &found);
    uint64_t time = found.remaining_ns > 0 ? found.due.ns - now : now - found.due.ns;
    out->when = found.remaining_ns > 0 ? WHEN_REMAINS : WHEN_OVERDUE;
    if (post->next != NULL) {
        time = (uint64_t)post->tick.at.ms;
        out->when = WHEN_INSTANT;
    }
    put(out->time, time, sizeof out->time);
    put(out->period_ns, found.period_ns, sizeof out->period_ns);
    out->repeat = found.repeat;
}

static void write_post(const struct bel_duties *duties, const struct post *post, uint64_t now,
                       struct entry *out)
{
    *out = (struct entry){.duty = (uint8_t)post->name.duty, .overlap = (uint8_t)post->overlap};
    put(out->key, post->name.key, sizeof out->key);
    put(out->user, post->user, sizeof out->user);
    put(out->idle_ns, post->idle_ns, sizeof out->idle_ns);
    put(out->count, post->count, sizeof out->count);
    put(out->runs, post->runs, sizeof out->runs);
    put(out->queued, post->queued, sizeof out->queued);
    write_time(duties, post, now, out);
}

int bel_duties_snapshot(const struct bel_duties *duties, void **out, size_t *out_bytes)
{
    const struct bel_runtime *runtime = duties->runtime;
    if (runtime_is_forked(runtime)) return BEL_ECLOSED;
    uint32_t count = bel__map_count(&duties->names);
    size_t bytes = HEADER_BYTES + (size_t)count * ENTRY_BYTES;
    uint8_t *snapshot = malloc(bytes);
    if (snapshot == NULL) return BEL_ENOMEM;
    frame_begin(&frame, snapshot, count, bel_clock_wall(runtime->clock));
    struct entry *entries = (struct entry *)(void *)(snapshot + HEADER_BYTES);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t index = (uint32_t)bel__map_at(&duties->names, i)->value;
        write_post(duties, bel__slab_at(&duties->posts, index), runtime_now(runtime), &entries[i]);
    }
    frame_seal(snapshot, bytes);
    *out = snapshot;
    *out_bytes = bytes;
    return 0;
}

/* Rejects everything that bel_duties_snapshot() never writes. */
static int check_entry(const struct entry *entry)
{
    if (entry->duty >= BEL_DUTY_COUNT || entry->when > WHEN_NEVER) return BEL_ECORRUPT;
    if (entry->repeat > BEL_DELAY || entry->overlap > BEL_OVERLAP_ALLOW) return BEL_ECORRUPT;
    if (get(entry->zeros, sizeof entry->zeros) != 0) return BEL_ECORRUPT;
    bool has_period = get(entry->period_ns, sizeof entry->period_ns) != 0;
    return entry->repeat != BEL_ONCE && !has_period ? BEL_ECORRUPT : 0;
}

/* Arms the timer of a restored post, with its remaining time or for its wall time. */
static int restore_timer(struct bel_duties *duties, struct post *post, const struct entry *entry)
{
    uint64_t now = runtime_now(duties->runtime), time = get(entry->time, sizeof entry->time);
    struct bel_schedule how = {
        .due = {BEL_NEVER - 1},
        .period_ns = get(entry->period_ns, sizeof entry->period_ns),
        .repeat = entry->repeat,
    };
    if (entry->when == WHEN_NEVER) return 0;
    if (entry->when == WHEN_INSTANT) {
        post->tick.at = (struct bel_wall){(int64_t)time};
        return arm_tick(duties, post);
    }
    if (entry->when == WHEN_OVERDUE) {
        how.due.ns = time < now ? now - time : 0;
    } else if (time < BEL_NEVER - 1 - now) {
        how.due.ns = now + time;
    }
    return schedule(duties, post, (struct bel_duty_for){post->name.key, post->user}, &how);
}

static int restore_post(struct bel_duties *duties, const struct entry *entry)
{
    struct post *post;
    uint64_t key = get(entry->key, sizeof entry->key);
    (void)bel_duties_cancel(duties, (enum bel_duty)entry->duty, key);
    int err = post_for(duties, (enum bel_duty)entry->duty, key, &post);
    if (err) return err;
    post->user = get(entry->user, sizeof entry->user);
    err = restore_timer(duties, post, entry);
    if (err) {
        forget(duties, post);
        return err;
    }
    post->idle_ns = get(entry->idle_ns, sizeof entry->idle_ns);
    post->count = get(entry->count, sizeof entry->count);
    post->runs = (uint32_t)get(entry->runs, sizeof entry->runs);
    post->queued = (uint32_t)get(entry->queued, sizeof entry->queued);
    post->overlap = (enum bel_overlap)entry->overlap;
    return 0;
}

int bel_duties_restore(struct bel_duties *duties, const void *snapshot, size_t bytes)
{
    if (runtime_is_forked(duties->runtime)) return BEL_ECLOSED;
    int err = frame_check(&frame, snapshot, bytes);
    if (err) return err;
    const struct entry *entries = (const void *)((const uint8_t *)snapshot + HEADER_BYTES);
    size_t count = (bytes - HEADER_BYTES) / ENTRY_BYTES, done = 0;
    for (size_t i = 0; i < count; i++) {
        err = check_entry(&entries[i]);
        if (err) return err;
    }
    while (err == 0 && done < count) {
        err = restore_post(duties, &entries[done]);
        if (err == 0) done++;
    }
    while (err != 0 && done > 0) {
        const struct entry *entry = &entries[--done];
        uint64_t key = get(entry->key, sizeof entry->key);
        (void)bel_duties_cancel(duties, (enum bel_duty)entry->duty, key);
    }
    return err;
}
