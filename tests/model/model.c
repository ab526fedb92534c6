/* SPDX-License-Identifier: MIT */

/*
 * The turn: time moves, leases end, timers come due, requests are applied one by one, and at the
 * end all of them are answered.
 *
 * The three timelines are milliseconds. Engine time and open time both run with the boot clock
 * while the model is open. While it is closed, engine time continues with the wall clock and open
 * time stands still.
 */
#include "inside.h"

#include "core/units.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    STEP_MS = 1000, /* a smaller move of the wall clock is not a step */
};

static struct model *model_of(struct bel_backend *backend)
{
    return (struct model *)backend;
}

static int64_t boot_ms(struct bel_now now)
{
    return (int64_t)(now.boot.ns / NS_PER_MS);
}

/* Rounded down. */
static int64_t wall_minus_engine(const struct model *model, struct bel_now now)
{
    int64_t wall_ns = model->wall_ms * (int64_t)NS_PER_MS + now.wall_rest_ns;
    int64_t engine_ns = model->engine_ms * (int64_t)NS_PER_MS + (int64_t)(now.boot.ns % NS_PER_MS);
    int64_t ns = wall_ns - engine_ns, rest = ns % (int64_t)NS_PER_MS;
    return (rest < 0 ? ns - rest - (int64_t)NS_PER_MS : ns - rest) / (int64_t)NS_PER_MS;
}

static void move_time(struct model *model, struct bel_now now)
{
    int64_t passed = boot_ms(now) - model->boot_opened_ms;
    assert(passed >= 0);
    bool is_back = now.wall.ms < model->wall_ms;
    model->wall_ms = now.wall.ms;
    model->engine_ms = model->engine_opened_ms + passed;
    model->open_ms = model->open_opened_ms + passed;
    model->real_ns = now.real.ns;

    int64_t difference = wall_minus_engine(model, now);
    bool is_step = llabs(difference - model->difference_ms) > STEP_MS;
    if (is_back || is_step) model->difference_ms = difference;
}

int model_refuse(struct bel_reply *reply, int err, const char *why)
{
    (void)snprintf(reply->why, sizeof reply->why, "%s", why);
    return err;
}

static void decide(struct model *model, struct bel_request *request, const struct bel_reply *reply)
{
    struct answer *answer = model_alloc(sizeof *answer);
    *answer = (struct answer){request, *reply};
    model_list_add(&model->answers, answer);
}

static int apply(struct model *model, const struct bel_command *command, struct bel_reply *reply)
{
    switch (command->verb) {
    case BEL_VERB_SCHEDULE:
        return model_schedule(model, &command->schedule, reply);
    case BEL_VERB_CANCEL:
        return model_cancel(model, &command->cancel, reply);
    case BEL_VERB_RESCHEDULE:
        return model_reschedule(model, &command->reschedule, reply);
    case BEL_VERB_GET:
        return model_get(model, &command->target, reply);
    case BEL_VERB_ACK:
        return model_ack(model, &command->ack, reply);
    case BEL_VERB_FAIL:
        return model_fail(model, &command->fail, reply);
    case BEL_VERB_RELEASE:
        return model_release(model, &command->release, reply);
    case BEL_VERB_EXTEND:
        return model_extend(model, &command->extend, reply);
    case BEL_VERB_LIST:
        return model_list(model, &command->list, reply);
    case BEL_VERB_REVIVE:
        return model_revive(model, &command->target, reply);
    case BEL_VERB_PURGE:
        return model_purge(model, &command->purge, reply);
    case BEL_VERB_TOPICS:
        return model_topics(model, reply);
    case BEL_VERB_TOPIC:
        return model_topic(model, &command->target, reply);
    case BEL_VERB_CONFIGURE:
        return model_configure(model, &command->configure, reply);
    case BEL_VERB_PAUSE:
        return model_pause(model, &command->target, reply);
    case BEL_VERB_RESUME:
        return model_resume(model, &command->target, reply);
    case BEL_VERB_EXPLAIN:
        return model_explain(model, &command->target, reply);
    case BEL_VERB_AGENDA:
        return model_agenda(model, &command->agenda, reply);
    case BEL_VERB_JOB_SUBMIT:
        return model_job_submit(model, &command->job_submit, reply);
    case BEL_VERB_JOB_GET:
        return model_job_get(model, &command->job_get, reply);
    case BEL_VERB_JOB_CANCEL:
        return model_job_cancel(model, &command->job_target, reply);
    case BEL_VERB_JOB_LIST:
        return model_job_list(model, &command->job_list, reply);
    case BEL_VERB_JOB_PAUSE:
        return model_job_pause(model, &command->job_target, reply);
    case BEL_VERB_JOB_RESUME:
        return model_job_resume(model, &command->job_target, reply);
    case BEL_VERB_LIMIT:
        return model_limit(model, &command->limit, reply);
    case BEL_VERB_CLAIM:
    case BEL_VERBS:
        break;
    }
    abort();
}

static void apply_request(struct model *model, struct bel_request *request)
{
    if (request->command.verb == BEL_VERB_CLAIM) {
        model_claim(model, request);
    } else {
        struct bel_reply reply = {0};
        reply.err = apply(model, &request->command, &reply);
        decide(model, request, &reply);
    }
    model_jobs_work(model);
    model_forget(model);
    model_settle(model);
    model_serve_waiting(model);
}

static void answer_all(struct model *model)
{
    struct list answers = model->answers, pieces = model->pieces;
    model->answers = (struct list){NULL, 0};
    model->pieces = (struct list){NULL, 0};
    for (size_t i = 0; i < answers.count; i++) {
        struct answer *answer = answers.items[i];
        answer->request->done(answer->request, &answer->reply);
        free(answer);
    }
    for (size_t i = 0; i < pieces.count; i++) {
        free(pieces.items[i]);
    }
    free(answers.items);
    free(pieces.items);
}

/* Returns the time until a timer needs a turn, in ms; negative if it needs none. */
static int64_t wanted_in(const struct model *model, const struct timer *timer)
{
    if (timer->state == BEL_LEASED) return timer->lease_end_ms - model->open_ms;
    if (timer->state != BEL_SCHEDULED && timer->state != BEL_READY) return -1;
    if (model_is_plan(timer)) {
        return timer->rule.has_next ? model_rings_ms(timer) - model->wall_ms : -1;
    }
    int64_t due_in = timer->due.ms - model_now(model, timer->due.line);
    if (timer->state == BEL_READY) due_in = -1;
    if (timer->expires_ms == 0) return due_in;
    int64_t expires_in = timer->expires.ms - model_now(model, timer->expires.line);
    return due_in < 0 || expires_in < due_in ? expires_in : due_in;
}

static struct bel_next find_next(struct model *model, struct bel_now now)
{
    struct bel_next next = {.due = {BEL_NEVER}, .wait = {BEL_NEVER}};
    for (size_t i = 0; i < model->timers.count; i++) {
        int64_t in = wanted_in(model, model_timer_at(model, i));
        if (in < 0) continue;
        uint64_t due = (uint64_t)(boot_ms(now) + in) * NS_PER_MS;
        if (due < next.due.ns) next.due.ns = due;
    }
    int64_t jobs_in = model_jobs_next_in(model);
    uint64_t jobs_due = (uint64_t)(boot_ms(now) + (jobs_in < 0 ? 0 : jobs_in)) * NS_PER_MS;
    if (jobs_in >= 0 && jobs_due < next.due.ns) next.due.ns = jobs_due;
    for (size_t i = 0; i < model->waiting.count; i++) {
        const struct waiting *waiting = model->waiting.items[i];
        if (waiting->end_ns < next.wait.ns) next.wait.ns = waiting->end_ns;
    }
    return next;
}

static struct bel_next turn(struct bel_backend *backend, struct bel_now now)
{
    struct model *model = model_of(backend);
    struct list requests = model->requests;
    model->requests = (struct list){NULL, 0};

    move_time(model, now);
    model_forget(model);
    model_take_back_leases(model);
    model_jobs_turn(model);
    model_settle(model);
    model_recurring_make(model);
    model_jobs_work(model);
    model_settle(model);
    model_serve_waiting(model);
    for (size_t i = 0; i < requests.count; i++) {
        apply_request(model, requests.items[i]);
    }
    model_end_waits(model);
    free(requests.items);

    struct bel_next next = find_next(model, now);
    answer_all(model);
    return next;
}

static void submit(struct bel_backend *backend, struct bel_request *request)
{
    model_list_add(&model_of(backend)->requests, request);
}

static bool withdraw(struct bel_backend *backend, struct bel_request *request)
{
    struct model *model = model_of(backend);
    for (size_t i = 0; i < model->requests.count; i++) {
        if (model->requests.items[i] != request) continue;
        model_list_remove(&model->requests, i);
        return true;
    }
    for (size_t i = 0; i < model->waiting.count; i++) {
        struct waiting *waiting = model->waiting.items[i];
        if (waiting->request != request) continue;
        model_list_remove(&model->waiting, i);
        free(waiting);
        return true;
    }
    return false;
}

static void open_at(struct model *model, struct bel_now now)
{
    model->boot_opened_ms = boot_ms(now);
    if (now.wall.ms > model->engine_ms) model->engine_ms = now.wall.ms;
    model->engine_opened_ms = model->engine_ms;
    model->open_opened_ms = model->open_ms;
    move_time(model, now);
    model->difference_ms = wall_minus_engine(model, now);
}

struct model *model_create(const struct model_options *options)
{
    struct model *model = model_alloc(sizeof *model);
    model->backend = (struct bel_backend){.submit = submit, .withdraw = withdraw, .turn = turn};
    model->options = *options;
    model->engine_ms = INT64_MIN;
    open_at(model, options->now);
    return model;
}

struct bel_backend *model_backend(struct model *model)
{
    return &model->backend;
}

/* Readiness, and the topic that was served last, are not kept. */
void model_reopen(struct model *model, struct bel_now now)
{
    assert(model->requests.count == 0 && model->waiting.count == 0);
    for (size_t i = 0; i < model->timers.count; i++) {
        struct timer *timer = model_timer_at(model, i);
        if (timer->state == BEL_READY) timer->state = BEL_SCHEDULED;
        timer->lease_is_old = true;
    }
    for (size_t i = 0; i < model->topics.count; i++) {
        struct topic *topic = model->topics.items[i];
        topic->served = 0;
        model_forget_turns(topic);
    }
    model_pressure_forget(model);
    open_at(model, now);
}

void model_destroy(struct model *model)
{
    for (size_t i = 0; i < model->timers.count; i++) {
        model_timer_free(model->timers.items[i]);
    }
    for (size_t i = 0; i < model->jobs.count; i++) {
        model_job_free(model->jobs.items[i]);
    }
    free(model->jobs.items);
    for (size_t i = 0; i < model->topics.count; i++) {
        struct topic *topic = model->topics.items[i];
        model_forget_turns(topic);
        free(topic->name);
        free(topic);
    }
    for (size_t i = 0; i < model->waiting.count; i++) {
        free(model->waiting.items[i]);
    }
    for (size_t i = 0; i < model->resources.count; i++) {
        model_resource_free(model->resources.items[i]);
    }
    free(model->resources.items);
    free(model->timers.items);
    free(model->topics.items);
    free(model->requests.items);
    free(model->waiting.items);
    free(model);
}
