/* SPDX-License-Identifier: MIT */
#ifndef BEL_JOBS_H
#define BEL_JOBS_H

/*
 * jobs - runs jobs in this process, without a server: a crew with a handler for each topic or task
 * works on the tasks of a driver. With a data directory a job continues after a crash.
 *
 *     static void compile(void *context, const struct bel_errand *errand,
 *                         struct bel_report *report)
 *     {
 *         ...
 *         if (bel_report_result(report, BEL_VIEW("main.o")) != 0) bel_report_fail(...);
 *     }
 *
 *     const struct bel_job_handler handlers[] = {{.topic = "build", .task = "link", .work = link},
 *                                                {.topic = "build", .work = compile}};
 *     struct bel_jobs_options options = {.handlers = handlers, .handlers_count = 2};
 *     struct bel_job_submit build = {.id = BEL_VIEW("build"), .text = text};
 *     err = bel_jobs_run(driver, &options, &build, NULL, &job);
 *     if (!err) puts(bel_job_state_name(job->state));
 *     bel_job_destroy(job);
 *
 * Handlers are called as `work` of a crew is, see belfry/crew.h: several at a time, each with an
 * errand that has the results of the tasks before it (bel_errand_result()), and a report for its
 * own result (bel_report_result()) or its failure. Leases, which are as long as `idle` of the task,
 * are extended while a handler works. A task may be delivered more than once, so a handler must be
 * idempotent.
 *
 * Threads: any thread may call these functions. `progress` is called on the thread that waits, the
 * handlers and `trouble` on threads of the crew.
 */

#include "belfry/clock.h"
#include "belfry/crew.h"
#include "belfry/declare.h"
#include "belfry/driver.h"
#include "belfry/error.h"
#include "belfry/job.h"

#include <stddef.h>
#include <stdint.h>

BEL_BEGIN_DECLARATIONS

struct bel_jobs; /* opaque: owns a crew */

/* What works on a task. A handler for a task goes before one for its topic. A task of one of the
 * topics without a handler is rejected: it is dead, and its reason says so. A plain timer without a
 * handler fails, as its retry policy says. */
struct bel_job_handler {
    const char *topic;
    const char *task; /* id without that of the job; NULL: every task and timer of the topic */
    void (*work)(void *context, const struct bel_errand *errand, struct bel_report *report);
};

/* Everything that is pointed to is copied, except the context and the clock. */
struct bel_jobs_options {
    const struct bel_job_handler *handlers;
    size_t handlers_count;         /* at least 1 */
    unsigned hands;                /* handlers that may run at the same time; 0: 5 */
    uint32_t lease_ms;             /* 0: as `idle` of the task or its topic sets it, else 30 s */
    const char *name;              /* of the worker, for people; optional */
    const struct bel_clock *clock; /* of the driver; NULL: the system clock */
    /* Called with a job that is waited for, without its tasks, when its state or the counts of its
     * tasks have changed. Optional. */
    void (*progress)(void *context, const struct bel_job *job);
    /* Called with one line for a log if a report was not accepted. Optional. */
    void (*trouble)(void *context, const char *text);
    void *context;
};

/*
 * Runs one job to its end: starts a crew, submits the job, waits, and stops the crew, which takes
 * as long as the handlers that still run. If a job with the id in `job` is already known, this job
 * is continued instead, or, if it has ended, returned; so a program that was killed is started
 * again with the same arguments. Without an id in `job` a known job is a conflict. Tasks of other
 * jobs in the topics of the handlers are worked on too, as long as the job runs.
 *
 * Returns 0 and sets `*out` to the job in its final state, with up to 1,000 tasks; the caller
 * destroys it. Or returns an error of bel_driver_job_submit(), with the message in `receipt` unless
 * that is NULL; BEL_ENOTFOUND if the job was removed while it ran; BEL_ECLOSED if the driver was
 * stopped; or BEL_ENOMEM. `*out` is unchanged then, and the job, if it was submitted, still exists.
 */
BEL_CHECKED int bel_jobs_run(struct bel_driver *driver, const struct bel_jobs_options *options,
                             const struct bel_job_submit *job, struct bel_job_receipt *receipt,
                             struct bel_job **out);

/*
 * The same in steps, for programs that run several jobs, or until they are told to stop. Jobs are
 * submitted with bel_driver_job_submit() at any time.
 */

/* Starts to work on the tasks of a driver, which must outlive this. Returns 0 and sets `*out`, or
 * returns BEL_ENOMEM. */
BEL_CHECKED int bel_jobs_start(struct bel_driver *driver, const struct bel_jobs_options *options,
                               struct bel_jobs **out);

/*
 * Waits until a job has ended, up to `wait_ms`; UINT64_MAX: without a limit. Returns 0 and sets
 * `*out` as bel_jobs_run() does; or returns BEL_EBUSY after `wait_ms`, BEL_ENOTFOUND for an unknown
 * job, or BEL_ECLOSED if bel_jobs_stop() was called or the driver was stopped before the job ended.
 * A recurring job ends only when it is cancelled.
 */
BEL_CHECKED int bel_jobs_wait(struct bel_jobs *jobs, const char *id, uint64_t wait_ms,
                              struct bel_job **out);

/* Claims no more tasks, ends all waits, and waits up to `grace_ms` for the handlers that run, as
 * bel_crew_stop() does. Unfinished jobs continue when a program works on them again. Returns 0, or
 * BEL_EBUSY if handlers still run; then it can be called again. */
BEL_CHECKED int bel_jobs_stop(struct bel_jobs *jobs, uint32_t grace_ms);

/* Frees what was stopped; NULL is allowed. No thread may still wait. */
void bel_jobs_destroy(struct bel_jobs *jobs);

BEL_END_DECLARATIONS
#endif
