/* SPDX-License-Identifier: MIT */

/*
 * Recurring jobs. Each nominal time that passes is counted once:
 *
 *     time ---> missed      the server was down, and MISFIRE did not choose it
 *          ---> skipped     the job is paused, or OVERLAP leaves it out
 *          ---> made        it is owed, and makes a job when its turn comes
 *
 * With OVERLAP queue the turn comes when no job of the plan is unfinished, otherwise at once; and
 * never while the recurring job is paused. Jobs are made at the beginning of a turn.
 */
#include "inside.h"

#include "jobs/graph.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static struct rule *rule_of(const struct job *job)
{
    return &job->plan->rule;
}

static bool is_going_on(const struct job *job)
{
    return job->plan != NULL && job->state == BEL_JOB_RUNNING && !job->is_ending;
}

/* Returns how many jobs of a plan are unfinished, whichever text has made them. */
static size_t count_unfinished(struct model *model, const struct job *plan)
{
    size_t count = 0;
    for (size_t i = 0; i < model->jobs.count; i++) {
        const struct job *job = model_job_at(model, i);
        bool is_its = model_same(model_view(job->plan_id), model_view(plan->id));
        count += is_its && job->state == BEL_JOB_RUNNING;
    }
    return count;
}

/* --- times --- */

/* Counts a time that has passed, unless it was missed. */
static void pass(struct model *model, struct job *job, int64_t nominal_ms)
{
    struct rule *rule = rule_of(job);
    bool is_busy = job->owed_count + count_unfinished(model, job) > 0;
    bool is_skipped =
        job->is_paused || (rule->said.overlap == BEL_OVERLAP_SKIP && is_busy) ||
        (rule->said.overlap == BEL_OVERLAP_QUEUE && job->owed_count >= BEL_OVERLAP_QUEUE_MAX);
    if (is_skipped) {
        rule->skipped++;
        return;
    }
    rule->made++;
    job->owed = realloc(job->owed, (job->owed_count + 1) * sizeof *job->owed);
    if (job->owed == NULL) abort();
    job->owed[job->owed_count++] = nominal_ms;
}

static void set_next(struct job *job, int64_t after_ms)
{
    struct rule *rule = rule_of(job);
    bool is_used = rule->said.count > 0 && model_rule_used(rule) >= rule->said.count;
    rule->has_next = !is_used && model_rule_next(rule, after_ms, &rule->next_ms);
}

/* Handles the times up to `until_ms`, which are late: MISFIRE chooses. */
static void make_up(struct model *model, struct job *job, int64_t until_ms)
{
    size_t made;
    struct bel_wall *times = model_rule_misfires(rule_of(job), until_ms, &made);
    for (size_t i = 0; i < made; i++) {
        pass(model, job, times[i].ms);
    }
    free(times);
    set_next(job, until_ms);
}

bool model_recurring_ring(struct model *model)
{
    int64_t after_ms = (int64_t)model_settings_default().misfire_after_ms;
    for (size_t i = 0; i < model->jobs.count; i++) {
        struct job *job = model_job_at(model, i);
        if (!is_going_on(job) || !rule_of(job)->has_next) continue;
        int64_t nominal_ms = rule_of(job)->next_ms, rings_ms = model_rings_ms(job->plan);
        if (rings_ms > model->wall_ms) continue;
        int64_t until_ms = model->wall_ms - (rings_ms - nominal_ms) - after_ms - 1;
        if (nominal_ms <= until_ms) {
            make_up(model, job, until_ms);
        } else {
            pass(model, job, nominal_ms);
            set_next(job, nominal_ms);
        }
        return true;
    }
    return false;
}

/* Returns when the first owed time may make its job: a clock that was set back comes there
 * again. */
static int64_t owed_ms(const struct job *job)
{
    return job->owed[0] + model_rings_ms(job->plan) - rule_of(job)->next_ms;
}

int64_t model_recurring_next_in(struct model *model, const struct job *job)
{
    if (!is_going_on(job)) return -1;
    bool is_queue = rule_of(job)->said.overlap == BEL_OVERLAP_QUEUE;
    bool waits = job->is_paused || (is_queue && count_unfinished(model, job) > 0);
    int64_t rings_in = rule_of(job)->has_next ? model_rings_ms(job->plan) - model->wall_ms : -1;
    if (job->owed_count == 0 || waits) return rings_in;
    int64_t owed_in = owed_ms(job) - model->wall_ms;
    if (owed_in < 0) owed_in = 0;
    return rings_in < 0 || owed_in < rings_in ? owed_in : rings_in;
}

/* --- jobs --- */

/* Returns the recurring job whose first owed time is next to make a job; NULL: none. */
static struct job *find_first(struct model *model)
{
    struct job *first = NULL;
    int64_t first_ms = 0;
    for (size_t i = 0; i < model->jobs.count; i++) {
        struct job *job = model_job_at(model, i);
        if (!is_going_on(job) || job->is_paused || job->owed_count == 0) continue;
        bool is_queue = rule_of(job)->said.overlap == BEL_OVERLAP_QUEUE;
        if (is_queue && count_unfinished(model, job) > 0) continue;
        int64_t ms = owed_ms(job);
        if (ms > model->wall_ms || (first != NULL && ms >= first_ms)) continue;
        first = job;
        first_ms = ms;
    }
    return first;
}

void model_recurring_make(struct model *model)
{
    for (struct job *job; (job = find_first(model)) != NULL;) {
        int64_t nominal_ms = job->owed[0];
        job->owed_count--;
        memmove(job->owed, job->owed + 1, job->owed_count * sizeof *job->owed);
        if (model_job_make_at(model, job, nominal_ms)) continue;
        rule_of(job)->made--; /* its id is in use */
        rule_of(job)->skipped++;
    }
}

/* --- from outside --- */

static bool is_same_rule(const struct rule *a, const struct rule *b)
{
    const struct bel_recurrence *x = &a->said, *y = &b->said;
    bool has_same_start = a->options.has_start == b->options.has_start &&
                          (!a->options.has_start || a->options.start.ms == b->options.start.ms);
    return has_same_start && model_same(model_view(a->text), model_view(b->text)) &&
           model_same(model_view(a->zone), model_view(b->zone)) && x->kind == y->kind &&
           x->gap == y->gap && x->fold == y->fold && x->misfire == y->misfire &&
           x->overlap == y->overlap && x->has_until == y->has_until && x->until.ms == y->until.ms &&
           x->count == y->count && x->spread_ms == y->spread_ms;
}

static void plan_free(struct timer *plan)
{
    if (plan == NULL) return;
    model_rule_free(&plan->rule);
    model_free(&plan->id);
    free(plan);
}

int model_recurring_plan(struct model *model, const struct bel_job_graph *graph, struct timer **out)
{
    struct bel_schedule_spec spec = {.plan = graph->plan, .at = graph->start};
    struct timer *plan = model_alloc(sizeof *plan);
    if (graph->has_start) spec.when = BEL_WHEN_AT;
    plan->id = model_copy(graph->id);
    int err = model_rule_make(model, &spec, graph->id, &plan->rule);
    *out = err == 0 ? plan : NULL;
    if (err != 0) {
        model_free(&plan->id);
        free(plan);
    }
    return err;
}

void model_recurring_keep(struct job *old, struct timer **plan, struct job *out)
{
    if (old == NULL || !is_going_on(old) || !rule_of(old)->has_next) return;
    if (!is_same_rule(rule_of(old), &(*plan)->rule)) return;
    plan_free(*plan);
    *plan = old->plan;
    out->owed = old->owed;
    out->owed_count = old->owed_count;
    old->plan = NULL;
    old->owed = NULL;
}

void model_recurring_free(struct job *job)
{
    plan_free(job->plan);
    free(job->owed);
}

void model_recurring_clone(struct job *job)
{
    const struct timer *plan = job->plan;
    const int64_t *owed = job->owed;
    if (plan == NULL) return;
    job->plan = model_alloc(sizeof *plan);
    job->plan->id = model_copy(model_view(plan->id));
    job->plan->rule = plan->rule;
    model_rule_clone(&job->plan->rule);
    job->owed = model_alloc((job->owed_count + 1) * sizeof *owed);
    if (job->owed_count > 0) memcpy(job->owed, owed, job->owed_count * sizeof *owed);
}

/* Ends what a recurring job has made, and its times. */
static void cancel(struct model *model, struct job *job)
{
    rule_of(job)->made -= job->owed_count;
    rule_of(job)->skipped += job->owed_count;
    rule_of(job)->has_next = false;
    job->owed_count = 0;
    for (size_t i = 0; i < model->jobs.count; i++) {
        struct job *made = model_job_at(model, i);
        if (!model_same(model_view(made->plan_id), model_view(job->id))) continue;
        if (made->state == BEL_JOB_RUNNING && !made->is_ending) {
            model_job_end(made, BEL_JOB_CANCELLED);
        }
    }
}

bool model_recurring_work(struct model *model, struct job *job)
{
    if (job->is_ending) cancel(model, job);
    bool is_over = !rule_of(job)->has_next && job->owed_count == 0 &&
                   (job->is_ending || count_unfinished(model, job) == 0);
    job->is_new_job = false;
    if (!is_over) return false;
    job->state = job->is_ending ? BEL_JOB_CANCELLED : BEL_JOB_DONE;
    job->finished_ms = model->wall_ms;
    return true;
}

void model_recurring_show(struct model *model, const struct job *job, struct bel_job *out)
{
    out->plan_id = model_kept(model, job->plan_id);
    out->nominal.ms = job->nominal_ms;
    if (job->plan == NULL) return;
    const struct rule *rule = rule_of(job);
    out->edges_total = 0;
    out->plan = rule->said;
    out->plan.rule = model_kept(model, rule->text);
    out->plan.zone = model_kept(model, rule->zone);
    out->has_next = rule->has_next;
    if (out->has_next) out->next.ms = rule->next_ms;
    out->made = rule->made;
    out->skipped = rule->skipped;
    out->missed = rule->missed;
}
