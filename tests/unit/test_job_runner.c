/* SPDX-License-Identifier: MIT */

/*
 * Jobs that run in the process of the test, over an engine in memory and a clock that the test
 * moves. Nothing sleeps for long; an alarm ends a case that blocks. The source is compiled in, with
 * memory that can run out.
 */
#include "../memory.h"

#include "job_runner/jobs.c" /* NOLINT(bugprone-suspicious-include) */

#include "../check.h"
#include "belfry/engine.h"

#include <sched.h>
#include <unistd.h>

#define START ((struct bel_wall){INT64_C(1767225600000)})
#define MS    UINT64_C(1000000)

enum {
    PATIENCE_S = 60,
    STOP_MS = 50000,
    IDLE_MS = 3000,
    HOUR_MS = 3600000,
};

static struct bel_clock_fake *fake;
static struct bel_engine *engine;
static struct bel_driver *driver;

/* What the handlers and the test share. */
static struct {
    pthread_mutex_t mutex;
    unsigned works, attempts, progresses, troubles;
    uint64_t ended; /* tasks, in the last progress, as are the next two */
    enum bel_job_state state;
    uint64_t counts[BEL_STATES];
    struct bel_report failures; /* a report for the first attempt of a task */
    bool replaces;              /* `progress` replaces the job when it has ended */
    bool has_replaced;
} yard = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void start(void)
{
    (void)alarm(PATIENCE_S);
    CHECK(bel_clock_fake_create(START, &fake) == 0);
    struct bel_engine_options options = {.now = bel_clock_now(bel_clock_fake_clock(fake))};
    CHECK(bel_engine_open(&options, &engine, NULL) == 0);
    CHECK(bel_driver_start(bel_engine_backend(engine), bel_clock_fake_clock(fake), &driver) == 0);
    yard.works = yard.attempts = yard.progresses = yard.troubles = 0;
    yard.ended = 0;
    yard.state = BEL_JOB_STATES;
}

static void end(void)
{
    bel_driver_destroy(driver);
    bel_engine_close(engine);
    bel_clock_fake_destroy(fake);
}

static void advance(uint64_t ms)
{
    bel_clock_fake_advance(fake, ms * MS);
    bel_driver_wake(driver);
}

/* --- handlers --- */

static void count_work(const struct bel_errand *errand)
{
    (void)pthread_mutex_lock(&yard.mutex);
    yard.works++;
    yard.attempts += (unsigned)errand->attempt;
    (void)pthread_mutex_unlock(&yard.mutex);
}

/* Makes the result "task" or "task(results of the tasks before)". */
static void join(void *context, const struct bel_errand *errand, struct bel_report *report)
{
    char text[256];
    struct bel_view task = {0};
    CHECK(context == &yard);
    count_work(errand);
    CHECK(bel_errand_find(errand, "belfry-task", &task));
    size_t used = (size_t)snprintf(text, sizeof text, "%s", (const char *)task.data);
    for (size_t i = 0; i < errand->results_count; i++) {
        const struct bel_task_result *result = &errand->results[i];
        CHECK(result->has_result);
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", i == 0 ? "(" : " ",
                                 (const char *)result->result.data);
    }
    if (errand->results_count > 0) text[used++] = ')';
    CHECK(bel_report_result(report, (struct bel_view){text, used}) == 0);
}

static void join_loudly(void *context, const struct bel_errand *errand, struct bel_report *report)
{
    join(context, errand, report);
    report->result[0] = 'D';
}

static void fail_first(void *context, const struct bel_errand *errand, struct bel_report *report)
{
    CHECK(context == &yard);
    count_work(errand);
    (void)pthread_mutex_lock(&yard.mutex);
    bool is_first = yard.works == 1;
    if (is_first) *report = yard.failures;
    (void)pthread_mutex_unlock(&yard.mutex);
}

/* Works until its lease is lost. */
static void outlast(void *context, const struct bel_errand *errand, struct bel_report *report)
{
    (void)report;
    CHECK(context == &yard);
    count_work(errand);
    while (!bel_errand_is_lost(errand)) {
        advance(100);
        (void)sched_yield();
    }
}

static void note_left(struct bel_request *request, const struct bel_reply *reply)
{
    uint64_t *left_ms = request->user;
    CHECK(reply->err == 0 && reply->timers.count == 1);
    CHECK(reply->timers.items[0].state == BEL_LEASED);
    *left_ms = reply->timers.items[0].lease_left_ms;
}

/* Works for twice its lease; each third of it is waited for until the lease was extended. */
static void work_long(void *context, const struct bel_errand *errand, struct bel_report *report)
{
    (void)report;
    CHECK(context == &yard);
    count_work(errand);
    for (unsigned i = 0; i < 6; i++) {
        uint64_t left_ms = 0;
        advance(IDLE_MS / 3);
        while (left_ms < IDLE_MS) {
            struct bel_request get = {
                .command = {.verb = BEL_VERB_GET, .target = {errand->topic, errand->id}},
                .done = note_left,
                .user = &left_ms};
            CHECK(bel_driver_call(driver, &get) == 0);
        }
    }
    CHECK(!bel_errand_is_lost(errand));
}

static void cancel_itself(void *context, const struct bel_errand *errand, struct bel_report *report)
{
    bool has_changed = false;
    (void)report;
    CHECK(context == &yard);
    count_work(errand);
    CHECK(bel_driver_job_cancel(driver, "n", &has_changed) == 0 && has_changed);
}

/* --- the options of a case --- */

/* Replaces the job by one whose task is due after a second: it cannot end before. */
static void replace(void)
{
    struct bel_job_submit again = {
        .id = BEL_VIEW("n"),
        .text = BEL_VIEW("{\"tasks\": [{\"id\": \"b\", \"topic\": \"t\", \"in\": \"1s\"}]}"),
        .is_replacement = true};
    CHECK(bel_driver_job_submit(driver, &again, NULL) == 0);
    yard.replaces = false;
    yard.has_replaced = true;
    yard.ended = yard.progresses = 0;
}

static void progress(void *context, const struct bel_job *job)
{
    uint64_t ended = 0;
    CHECK(context == &yard && job->tasks_count == 0);
    for (int state = 0; state < BEL_STATES; state++) {
        if (state == BEL_DONE || state == BEL_DEAD || state == BEL_EXPIRED ||
            state == BEL_CANCELLED || state == BEL_SKIPPED) {
            ended += job->counts[state];
        }
    }
    CHECK(ended >= yard.ended);
    CHECK(yard.progresses == 0 || job->state != yard.state ||
          memcmp(job->counts, yard.counts, sizeof yard.counts) != 0);
    memcpy(yard.counts, job->counts, sizeof yard.counts);
    yard.ended = ended;
    yard.state = job->state;
    yard.progresses++;
    if (yard.replaces && job->state == BEL_JOB_DONE) replace();
    if (yard.has_replaced && job->state == BEL_JOB_RUNNING) advance(1000);
}

static void trouble(void *context, const char *text)
{
    CHECK(context == &yard && text[0] != '\0');
    (void)pthread_mutex_lock(&yard.mutex);
    yard.troubles++;
    (void)pthread_mutex_unlock(&yard.mutex);
}

static struct bel_jobs_options options_of(const struct bel_job_handler *handlers, size_t count)
{
    return (struct bel_jobs_options){.handlers = handlers,
                                     .handlers_count = count,
                                     .hands = 2,
                                     .name = "tester",
                                     .clock = bel_clock_fake_clock(fake),
                                     .progress = progress,
                                     .trouble = trouble,
                                     .context = &yard};
}

static struct bel_job_submit job_of(const char *text)
{
    return (struct bel_job_submit){.id = BEL_VIEW("n"), .text = {text, strlen(text)}};
}

/* Runs a job with one handler for the topic "t". */
static struct bel_job *run(const char *text,
                           void (*handler)(void *, const struct bel_errand *, struct bel_report *))
{
    struct bel_job_handler handlers[] = {{.topic = "t", .work = handler}};
    struct bel_jobs_options options = options_of(handlers, 1);
    struct bel_job_submit submit_job = job_of(text);
    struct bel_job *job = NULL;
    yard.progresses = 0;
    CHECK(bel_jobs_run(driver, &options, &submit_job, NULL, &job) == 0);
    CHECK(yard.state == job->state);
    CHECK_EQ(yard.ended, job->tasks_total);
    return job;
}

#define TASK(id, more) "{\"id\": \"" id "\", \"topic\": \"t\"" more "}"
#define DIAMOND                                                                                    \
    "{\"tasks\": [" TASK("a", "") ", " TASK("b", ", \"after\": [\"a\"]") ", " TASK(                \
        "c", ", \"after\": [\"a\"]") ", " TASK("d", ", \"after\": [\"b\", \"c\"]") "]}"

/* --- cases --- */

static void a_diamond_hands_on_its_results(void)
{
    struct bel_job_handler handlers[] = {{.topic = "t", .work = join},
                                         {.topic = "t", .task = "d", .work = join_loudly},
                                         {.topic = "other", .work = join}};
    struct bel_job_submit diamond = job_of(DIAMOND);
    struct bel_job_receipt receipt;
    struct bel_job *job = NULL;
    char *result = NULL;
    size_t bytes = 0;
    start();
    struct bel_jobs_options options = options_of(handlers, 3);
    CHECK(bel_jobs_run(driver, &options, &diamond, &receipt, &job) == 0);
    CHECK(job->state == BEL_JOB_DONE && job->reason.bytes == 0);
    CHECK_EQ(job->tasks_count, 4);
    CHECK_EQ(job->counts[BEL_DONE], 4);
    bel_job_destroy(job);
    CHECK(strcmp(receipt.id, "n") == 0 && receipt.tasks == 4 && receipt.edges == 4);
    CHECK(bel_driver_result(driver, "t", "n/d", &result, &bytes) == 0);
    CHECK_NOTE("%s", result);
    CHECK(strcmp(result, "D(b(a) c(a))") == 0);
    free(result);
    CHECK_EQ(yard.works, 4);
    CHECK(yard.progresses >= 1 && yard.state == BEL_JOB_DONE);
    CHECK_EQ(yard.ended, 4);
    CHECK_EQ(yard.troubles, 0);
    end();
}

static void a_failed_task_is_tried_again(void)
{
    start();
    yard.failures = (struct bel_report){.kind = BEL_REPORT_FAILED, .has_delay = true};
    struct bel_job *job = run("{\"tasks\": [" TASK("a", "") "]}", fail_first);
    CHECK(job->state == BEL_JOB_DONE);
    CHECK_EQ(yard.attempts, 1 + 2);
    CHECK_EQ(job->tasks[0].attempts, 1);
    bel_job_destroy(job);
    end();
}

static void tasks_after_a_dead_one_are_skipped_and_the_job_fails(void)
{
    start();
    yard.failures = (struct bel_report){.kind = BEL_REPORT_REJECTED, .reason = "no such file"};
    struct bel_job *job = run(DIAMOND, fail_first);
    CHECK(job->state == BEL_JOB_FAILED);
    CHECK_EQ(job->counts[BEL_DEAD], 1);
    CHECK_EQ(job->counts[BEL_SKIPPED], 3);
    CHECK(strcmp(job->tasks[0].reason.data, "no such file") == 0);
    CHECK_EQ(yard.works, 1);
    bel_job_destroy(job);
    end();
}

static void a_task_without_a_handler_is_dead(void)
{
    struct bel_job_handler handlers[] = {{.topic = "t", .task = "a", .work = join}};
    struct bel_job_submit diamond = job_of(DIAMOND);
    struct bel_job *job = NULL;
    start();
    struct bel_jobs_options options = options_of(handlers, 1);
    CHECK(bel_jobs_run(driver, &options, &diamond, NULL, &job) == 0);
    CHECK(job->state == BEL_JOB_FAILED);
    CHECK_EQ(job->counts[BEL_DONE], 1);
    CHECK_EQ(job->counts[BEL_DEAD], 2);
    CHECK_EQ(job->counts[BEL_SKIPPED], 1);
    CHECK(strcmp(job->tasks[1].reason.data, "no handler for 'b' of topic 't'") == 0);
    bel_job_destroy(job);
    end();
}

static void a_timeout_ends_the_job_and_the_work(void)
{
    start();
    struct bel_job *job = run("{\"timeout\": \"10s\", \"tasks\": [" TASK("a", "") ", " TASK(
                                  "b", ", \"after\": [\"a\"]") "]}",
                              outlast);
    CHECK(job->state == BEL_JOB_FAILED);
    CHECK(strcmp(job->reason.data, "timeout") == 0);
    CHECK_EQ(yard.works, 1);
    bel_job_destroy(job);
    end();
}

static void leases_are_extended_while_a_handler_works(void)
{
    start();
    struct bel_job *job = run("{\"tasks\": [" TASK("a", ", \"idle\": \"3s\"") "]}", work_long);
    CHECK(job->state == BEL_JOB_DONE);
    CHECK_EQ(job->tasks[0].crashes, 0);
    CHECK_EQ(yard.works, 1);
    bel_job_destroy(job);
    end();
}

static void a_job_may_be_cancelled_while_it_runs(void)
{
    start();
    struct bel_job *job = run(DIAMOND, cancel_itself);
    CHECK(job->state == BEL_JOB_CANCELLED);
    CHECK_EQ(yard.works, 1);
    bel_job_destroy(job);
    end();
}

/* Waits until the crew has reported something. */
static void wait_for_report(struct bel_jobs *jobs)
{
    (void)pthread_mutex_lock(&jobs->mutex);
    while (jobs->reports == 0) {
        (void)pthread_cond_wait(&jobs->changed, &jobs->mutex);
    }
    (void)pthread_mutex_unlock(&jobs->mutex);
}

static void a_rate_limit_is_waited_for(void)
{
    struct bel_job_handler handlers[] = {{.topic = "t", .work = fail_first}};
    struct bel_job_submit limited =
        job_of("{\"tasks\": [" TASK("a", ", \"resource\": \"api\", \"retry\": \"max(1)\"") "]}");
    struct bel_job *job = NULL;
    struct bel_jobs *jobs;
    start();
    yard.failures =
        (struct bel_report){.kind = BEL_REPORT_LIMITED, .has_delay = true, .delay_ms = HOUR_MS};
    struct bel_jobs_options options = options_of(handlers, 1);
    CHECK(bel_jobs_start(driver, &options, &jobs) == 0);
    CHECK(bel_driver_job_submit(driver, &limited, NULL) == 0);
    wait_for_report(jobs);
    advance(HOUR_MS - 1);
    CHECK(bel_jobs_wait(jobs, "n", 0, &job) == BEL_EBUSY);
    CHECK_EQ(yard.works, 1);
    advance(1);
    yard.progresses = 0; /* each wait begins with one */
    CHECK(bel_jobs_wait(jobs, "n", UINT64_MAX, &job) == 0 && job->state == BEL_JOB_DONE);
    CHECK_EQ(yard.attempts, 1 + 1); /* a rate limit uses up no attempt */
    bel_job_destroy(job);
    CHECK(bel_jobs_stop(jobs, STOP_MS) == 0);
    CHECK(bel_jobs_stop(jobs, 0) == 0);
    bel_jobs_destroy(jobs);
    bel_jobs_destroy(NULL);
    end();
}

static void a_job_that_is_replaced_is_waited_for(void)
{
    start();
    yard.replaces = true;
    struct bel_job *job = run("{\"tasks\": [" TASK("a", "") "]}", join);
    CHECK(yard.has_replaced && job->state == BEL_JOB_DONE);
    CHECK_EQ(yard.works, 2);
    CHECK(strcmp(job->tasks[0].id.data, "b") == 0);
    yard.has_replaced = false;
    bel_job_destroy(job);
    end();
}

struct waiter {
    struct bel_jobs *jobs;
    int err;
};

static void *wait_for_end(void *arg)
{
    struct waiter *waiter = arg;
    struct bel_job *job;
    waiter->err = bel_jobs_wait(waiter->jobs, "n", UINT64_MAX, &job);
    return NULL;
}

/* A job that was left is continued by the next runner. */
static void a_stop_ends_waits_and_leaves_the_job(void)
{
    struct bel_job_handler handlers[] = {{.topic = "t", .work = join}};
    struct bel_job_submit diamond = job_of(DIAMOND);
    struct waiter waiter = {.err = 0};
    struct bel_job *job = NULL;
    pthread_t thread;
    start();
    struct bel_jobs_options options = options_of(handlers, 1);
    CHECK(bel_driver_job_submit(driver, &diamond, NULL) == 0);
    CHECK(bel_driver_job_pause(driver, "n", NULL) == 0);
    CHECK(bel_jobs_start(driver, &options, &waiter.jobs) == 0);
    CHECK(bel_jobs_wait(waiter.jobs, "m", 0, &job) == BEL_ENOTFOUND);
    CHECK(bel_jobs_wait(waiter.jobs, "n", 0, &job) == BEL_EBUSY && job == NULL);
    CHECK_EQ(yard.progresses, 1);
    yard.progresses = 0;
    CHECK(pthread_create(&thread, NULL, wait_for_end, &waiter) == 0);
    CHECK(bel_jobs_stop(waiter.jobs, STOP_MS) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(waiter.err == BEL_ECLOSED);
    bel_jobs_destroy(waiter.jobs);
    CHECK_EQ(yard.works, 0);

    CHECK(bel_driver_job_resume(driver, "n", NULL) == 0);
    job = run(DIAMOND, join); /* the job is known, and continues */
    CHECK(job->state == BEL_JOB_DONE);
    CHECK_EQ(yard.works, 4);
    bel_job_destroy(job);
    job = run(DIAMOND, join); /* it has ended, and is returned */
    CHECK(job->state == BEL_JOB_DONE);
    CHECK_EQ(yard.works, 4);
    bel_job_destroy(job);
    end();
}

static void what_cannot_be_submitted_is_not_run(void)
{
    struct bel_job_handler handlers[] = {{.topic = "t", .work = join}};
    struct bel_job_submit diamond = job_of(DIAMOND);
    struct bel_job_submit nameless = {.text = BEL_VIEW("{\"id\": \"m\", \"tasks\": []}")};
    struct bel_job_submit wrong = job_of("{\"tasks\": [{}]}");
    struct bel_job_receipt receipt;
    struct bel_job *job = NULL;
    start();
    struct bel_jobs_options options = options_of(handlers, 1);
    CHECK(bel_jobs_run(driver, &options, &wrong, &receipt, &job) == BEL_EINVAL);
    CHECK(strncmp(receipt.why, "tasks[0]", 8) == 0);
    CHECK(bel_driver_schedule(driver, "t", "n/d", BEL_VIEW(""), HOUR_MS) == 0);
    CHECK(bel_jobs_run(driver, &options, &diamond, &receipt, &job) == BEL_ECONFLICT);
    CHECK(receipt.why[0] != '\0');
    CHECK(bel_driver_job_submit(driver, &nameless, NULL) == 0);
    CHECK(bel_jobs_run(driver, &options, &nameless, &receipt, &job) == BEL_ECONFLICT);
    CHECK(bel_driver_stop(driver) == 0);
    CHECK(bel_jobs_run(driver, &options, &nameless, &receipt, &job) == BEL_ECLOSED);
    CHECK(job == NULL);
    end();
}

static void a_plain_timer_without_a_handler_fails(void)
{
    struct bel_job_handler handlers[] = {{.topic = "t", .task = "a", .work = join}};
    struct bel_jobs *jobs;
    struct bel_delivery *due = NULL;
    start();
    struct bel_jobs_options options = options_of(handlers, 1);
    CHECK(bel_driver_schedule(driver, "t", "a", BEL_VIEW(""), 0) == 0);
    CHECK(bel_jobs_start(driver, &options, &jobs) == 0);
    wait_for_report(jobs);
    CHECK(bel_jobs_stop(jobs, STOP_MS) == 0);
    bel_jobs_destroy(jobs);
    advance(HOUR_MS);
    CHECK(bel_driver_claim(driver, "t", 0, &due) == 0 && due != NULL);
    CHECK_EQ(due->attempt, 2);
    CHECK_EQ(yard.works, 0);
    bel_delivery_destroy(due);
    end();
}

static void without_memory_nothing_starts(void)
{
    struct bel_job_handler handlers[] = {{.topic = "t", .work = join}};
    struct bel_job_submit diamond = job_of(DIAMOND);
    struct bel_job *job = NULL;
    start();
    struct bel_jobs_options options = options_of(handlers, 1);
    for (memory_left = 0; memory_left < 2; memory_left++) {
        uint64_t left = memory_left;
        CHECK(bel_jobs_run(driver, &options, &diamond, NULL, &job) == BEL_ENOMEM && job == NULL);
        memory_left = left;
    }
    memory_left = UINT64_MAX;
    job = run(DIAMOND, join); /* the job was submitted */
    CHECK(job->state == BEL_JOB_DONE);
    bel_job_destroy(job);
    end();
}

int main(void)
{
    RUN(a_diamond_hands_on_its_results);
    RUN(a_failed_task_is_tried_again);
    RUN(tasks_after_a_dead_one_are_skipped_and_the_job_fails);
    RUN(a_task_without_a_handler_is_dead);
    RUN(a_timeout_ends_the_job_and_the_work);
    RUN(leases_are_extended_while_a_handler_works);
    RUN(a_job_may_be_cancelled_while_it_runs);
    RUN(a_rate_limit_is_waited_for);
    RUN(a_job_that_is_replaced_is_waited_for);
    RUN(a_stop_ends_waits_and_leaves_the_job);
    RUN(what_cannot_be_submitted_is_not_run);
    RUN(a_plain_timer_without_a_handler_fails);
    RUN(without_memory_nothing_starts);
    return 0;
}
