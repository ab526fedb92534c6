/* SPDX-License-Identifier: MIT */

/*
 * A local crew whose work is to find the handler of a task and to call it. A thread that waits for
 * a job reads the job after each report of the crew. What ends a job without a report, such as its
 * timeout or work of the engine after the last report, is found by reading again, after pauses that
 * double:
 *
 *     read --1 ms--> read --2 ms--> read ... --500 ms--> read
 *       ^                                        |
 *       '---------------- a report <-------------'
 *
 * Reading a job takes as long as it has tasks. After a read the thread rests for ten times as long
 * as the read took, so that a job of many tasks is not slowed down by being watched.
 */
#include "belfry/jobs.h"

#include "belfry/local_crew.h"
#include "core/units.h"
#include "core/view.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    PAUSE_MS_MAX = 500,
    REST_TIMES = 10,  /* as long as a read took */
    GRACE_MS = 60000, /* of one of the stops of bel_jobs_run() */
};

struct bel_jobs {
    struct bel_driver *driver; /* borrowed, as is the clock */
    const struct bel_clock *clock;
    struct bel_crew *crew;
    void (*progress)(void *context, const struct bel_job *job);
    void (*trouble)(void *context, const char *text);
    void *context;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    uint64_t reports; /* with the mutex held: reports that the driver has answered */
    bool is_stopped;  /* with the mutex held */
    size_t handlers_count;
    struct bel_job_handler handlers[]; /* followed by their texts */
};

/* --- the work of the crew --- */

/* Returns the handler for a task of a topic, or else for the topic, or NULL. `task` is empty for a
 * plain timer. */
static const struct bel_job_handler *find_handler(const struct bel_jobs *jobs,
                                                  struct bel_view topic, struct bel_view task)
{
    const struct bel_job_handler *of_topic = NULL;
    for (size_t i = 0; i < jobs->handlers_count; i++) {
        const struct bel_job_handler *handler = &jobs->handlers[i];
        if (!bel__view_is(topic, handler->topic)) continue;
        if (handler->task == NULL) {
            if (of_topic == NULL) of_topic = handler;
        } else if (bel__view_is(task, handler->task)) {
            return handler;
        }
    }
    return of_topic;
}

static void work(void *context, const struct bel_errand *errand, struct bel_report *report)
{
    struct bel_jobs *jobs = context;
    struct bel_view task = BEL_VIEW("");
    bool is_task = bel_errand_find(errand, "belfry-task", &task);
    const struct bel_job_handler *handler = find_handler(jobs, errand->topic, task);
    if (handler != NULL) {
        handler->work(jobs->context, errand, report);
        return;
    }
    report->kind = is_task ? BEL_REPORT_REJECTED : BEL_REPORT_FAILED;
    (void)snprintf(report->reason, sizeof report->reason, "no handler for '%s' of topic '%s'",
                   (const char *)(is_task ? task.data : errand->id.data),
                   (const char *)errand->topic.data);
}

static void told(void *context, const struct bel_errand *errand, const struct bel_report *report)
{
    struct bel_jobs *jobs = context;
    (void)errand;
    (void)report;
    (void)pthread_mutex_lock(&jobs->mutex);
    jobs->reports++;
    (void)pthread_cond_broadcast(&jobs->changed);
    (void)pthread_mutex_unlock(&jobs->mutex);
}

static void report_trouble(void *context, const char *text)
{
    struct bel_jobs *jobs = context;
    if (jobs->trouble != NULL) jobs->trouble(jobs->context, text);
}

/* --- start and stop --- */

static const char *keep(char **place, const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *at = memcpy(*place, text, bytes);
    *place += bytes;
    return at;
}

/* Copies the options into a new struct. Returns NULL if memory is out. */
static struct bel_jobs *create(struct bel_driver *driver, const struct bel_jobs_options *options)
{
    size_t count = options->handlers_count;
    size_t bytes = sizeof(struct bel_jobs) + count * sizeof(struct bel_job_handler);
    size_t text_bytes = 0;
    for (size_t i = 0; i < count; i++) {
        const struct bel_job_handler *handler = &options->handlers[i];
        assert(handler->topic != NULL && handler->work != NULL);
        text_bytes += strlen(handler->topic) + 1;
        if (handler->task != NULL) text_bytes += strlen(handler->task) + 1;
    }
    struct bel_jobs *jobs = malloc(bytes + text_bytes);
    if (jobs == NULL) return NULL;
    *jobs = (struct bel_jobs){
        .driver = driver,
        .clock = options->clock != NULL ? options->clock : bel_clock_system(),
        .progress = options->progress,
        .trouble = options->trouble,
        .context = options->context,
        .mutex = PTHREAD_MUTEX_INITIALIZER,
        .handlers_count = count,
    };
    char *place = (char *)jobs + bytes;
    for (size_t i = 0; i < count; i++) {
        const struct bel_job_handler *from = &options->handlers[i];
        jobs->handlers[i] = *from;
        jobs->handlers[i].topic = keep(&place, from->topic);
        if (from->task != NULL) jobs->handlers[i].task = keep(&place, from->task);
    }
    assert(place == (char *)jobs + bytes + text_bytes);
    pthread_condattr_t how;
    (void)pthread_condattr_init(&how);
    (void)pthread_condattr_setclock(&how, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&jobs->changed, &how);
    (void)pthread_condattr_destroy(&how);
    return jobs;
}

/* Sets `topics` to the topics of the handlers, each once. Returns their number. */
static size_t topics_of(const struct bel_jobs *jobs, const char **topics)
{
    size_t count = 0;
    for (size_t i = 0; i < jobs->handlers_count; i++) {
        size_t at = 0;
        while (at < count && strcmp(topics[at], jobs->handlers[i].topic) != 0) {
            at++;
        }
        if (at == count) topics[count++] = jobs->handlers[i].topic;
    }
    return count;
}

static void free_jobs(struct bel_jobs *jobs)
{
    (void)pthread_cond_destroy(&jobs->changed);
    (void)pthread_mutex_destroy(&jobs->mutex);
    free(jobs);
}

int bel_jobs_start(struct bel_driver *driver, const struct bel_jobs_options *options,
                   struct bel_jobs **out)
{
    assert(options->handlers_count > 0);
    const char **topics = malloc(options->handlers_count * sizeof *topics);
    struct bel_jobs *jobs = topics != NULL ? create(driver, options) : NULL;
    if (jobs == NULL) {
        free((void *)topics);
        return BEL_ENOMEM;
    }
    struct bel_crew_options crew = {.client = {.clock = options->clock},
                                    .topics = topics,
                                    .topics_count = topics_of(jobs, topics),
                                    .hands = options->hands,
                                    .lease_ms = options->lease_ms,
                                    .name = options->name,
                                    .work = work,
                                    .trouble = report_trouble,
                                    .told = told,
                                    .context = jobs};
    int err = bel_local_crew_start(driver, &crew, &jobs->crew);
    free((void *)topics);
    if (err) {
        free_jobs(jobs);
        return err;
    }
    *out = jobs;
    return 0;
}

int bel_jobs_stop(struct bel_jobs *jobs, uint32_t grace_ms)
{
    (void)pthread_mutex_lock(&jobs->mutex);
    jobs->is_stopped = true;
    (void)pthread_cond_broadcast(&jobs->changed);
    (void)pthread_mutex_unlock(&jobs->mutex);
    return bel_crew_stop(jobs->crew, grace_ms);
}

void bel_jobs_destroy(struct bel_jobs *jobs)
{
    if (jobs == NULL) return;
    bel_crew_destroy(jobs->crew);
    free_jobs(jobs);
}

/* --- waiting --- */

/* A wait for a job. */
struct wait {
    struct bel_view id;
    struct bel_mono end;
    uint64_t pause_ms;
    uint64_t rest_ns; /* after the last read */
    uint64_t reports; /* before the job was last read */
    bool is_stopped;  /* then, too */
    bool has_seen;    /* the rest is what `progress` was last called with */
    enum bel_job_state state;
    uint64_t counts[BEL_STATES];
};

static struct bel_mono end_of(const struct bel_jobs *jobs, uint64_t wait_ms)
{
    struct bel_mono end = {BEL_NEVER};
    if (wait_ms > BEL_NEVER / NS_PER_MS) return end;
    int err = bel_mono_add(bel_clock_mono(jobs->clock), wait_ms * NS_PER_MS, &end);
    if (err) end.ns = BEL_NEVER;
    return end;
}

static bool is_final(enum bel_job_state state)
{
    return state == BEL_JOB_DONE || state == BEL_JOB_FAILED || state == BEL_JOB_CANCELLED;
}

static void call_progress(const struct bel_jobs *jobs, struct wait *wait, const struct bel_job *job)
{
    bool is_known = wait->has_seen && wait->state == job->state &&
                    memcmp(wait->counts, job->counts, sizeof wait->counts) == 0;
    if (jobs->progress == NULL || is_known) return;
    struct bel_job shown = *job;
    shown.tasks = NULL;
    shown.tasks_count = 0;
    shown.cursor = BEL_VIEW("");
    wait->has_seen = true;
    wait->state = job->state;
    memcpy(wait->counts, job->counts, sizeof wait->counts);
    jobs->progress(jobs->context, &shown);
}

/* Notes what has happened so far, before the job is read. */
static void note(struct bel_jobs *jobs, struct wait *wait)
{
    (void)pthread_mutex_lock(&jobs->mutex);
    wait->reports = jobs->reports;
    wait->is_stopped = jobs->is_stopped;
    (void)pthread_mutex_unlock(&jobs->mutex);
}

static struct timespec timespec_of(uint64_t ns)
{
    return (struct timespec){(time_t)(ns / NS_PER_S), (long)(ns % NS_PER_S)};
}

/* Rests, then sleeps until the crew has reported something, or for a pause. Another clock than the
 * system's may be moved at any time, so its pauses are not longer than the first. */
static void pause_once(struct bel_jobs *jobs, struct wait *wait)
{
    bool is_system = jobs->clock == bel_clock_system();
    uint64_t now = bel_clock_mono(bel_clock_system()).ns;
    uint64_t until = now + (is_system ? wait->pause_ms : 1) * NS_PER_MS;
    if (is_system && until > wait->end.ns) until = wait->end.ns;
    struct timespec rest = timespec_of(now + wait->rest_ns), end = timespec_of(until);
    bool is_late = false;
    (void)pthread_mutex_lock(&jobs->mutex);
    while (!jobs->is_stopped && !is_late) {
        is_late = pthread_cond_timedwait(&jobs->changed, &jobs->mutex, &rest) != 0;
    }
    is_late = false;
    while (jobs->reports == wait->reports && !jobs->is_stopped && !is_late) {
        is_late = pthread_cond_timedwait(&jobs->changed, &jobs->mutex, &end) != 0;
    }
    (void)pthread_mutex_unlock(&jobs->mutex);
    wait->pause_ms = is_late ? 2 * wait->pause_ms : 1;
    if (wait->pause_ms > PAUSE_MS_MAX) wait->pause_ms = PAUSE_MS_MAX;
}

/* Reads a job that has ended with its tasks. A job that was replaced since then has not ended:
 * `*out` is NULL then. Returns 0 or an error. */
static int get_ended(struct bel_jobs *jobs, struct bel_view id, struct bel_job **out)
{
    struct bel_job *job;
    int err = bel_driver_job_get(jobs->driver, &(struct bel_job_get){.id = id}, &job);
    if (err) return err;
    *out = is_final(job->state) ? job : NULL;
    if (*out == NULL) bel_job_destroy(job);
    return 0;
}

/* Reads the job with one task. Returns 0 and sets `*out_is_final`, or returns an error. */
static int look(struct bel_jobs *jobs, struct wait *wait, bool *out_is_final)
{
    struct bel_job *job;
    struct bel_mono begin = bel_clock_mono(bel_clock_system());
    int err =
        bel_driver_job_get(jobs->driver, &(struct bel_job_get){.id = wait->id, .count = 1}, &job);
    if (err) return err;
    wait->rest_ns = (bel_clock_mono(bel_clock_system()).ns - begin.ns) * REST_TIMES;
    call_progress(jobs, wait, job);
    *out_is_final = is_final(job->state);
    bel_job_destroy(job);
    return 0;
}

int bel_jobs_wait(struct bel_jobs *jobs, const char *id, uint64_t wait_ms, struct bel_job **out)
{
    struct wait wait = {
        .id = {id, strlen(id)}, .end = end_of(jobs, wait_ms), .pause_ms = 1, .state = 0};
    for (;;) {
        bool has_ended = false;
        struct bel_job *job = NULL;
        note(jobs, &wait);
        int err = look(jobs, &wait, &has_ended);
        if (err == 0 && has_ended) err = get_ended(jobs, wait.id, &job);
        if (err) return err;
        if (job != NULL) {
            *out = job;
            return 0;
        }
        if (wait.is_stopped) return BEL_ECLOSED;
        if (bel_clock_mono(jobs->clock).ns >= wait.end.ns) return BEL_EBUSY;
        pause_once(jobs, &wait);
    }
}

/* --- running one job --- */

/* Submits a job, unless it is known by its id. Sets `receipt`. */
static int submit(struct bel_driver *driver, const struct bel_job_submit *job,
                  struct bel_job_receipt *receipt)
{
    struct bel_job *known;
    int err = bel_driver_job_submit(driver, job, receipt);
    if (err != BEL_ECONFLICT || job->id.bytes == 0) return err;
    /* The conflict may also be a timer with the id of a task. */
    struct bel_job_get query = {.id = job->id, .count = 1, .scope = job->scope};
    int missing = bel_driver_job_get(driver, &query, &known);
    if (missing) return missing == BEL_ENOTFOUND ? err : missing;
    *receipt = (struct bel_job_receipt){.tasks = known->tasks_total, .edges = known->edges_total};
    assert(known->id.bytes < sizeof receipt->id);
    memcpy(receipt->id, known->id.data, known->id.bytes);
    bel_job_destroy(known);
    return 0;
}

int bel_jobs_run(struct bel_driver *driver, const struct bel_jobs_options *options,
                 const struct bel_job_submit *job, struct bel_job_receipt *receipt,
                 struct bel_job **out)
{
    struct bel_job_receipt own = {.id = ""};
    struct bel_jobs *jobs;
    int err = submit(driver, job, &own);
    if (receipt != NULL) *receipt = own;
    if (err) return err;
    err = bel_jobs_start(driver, options, &jobs);
    if (err) return err;
    err = bel_jobs_wait(jobs, own.id, UINT64_MAX, out);
    while (bel_jobs_stop(jobs, GRACE_MS) == BEL_EBUSY) {
        /* a handler still runs */
    }
    bel_jobs_destroy(jobs);
    return err;
}
