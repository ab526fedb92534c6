/* SPDX-License-Identifier: MIT */
#ifndef BEL_DRIVER_H
#define BEL_DRIVER_H

/*
 * driver - a thread that runs a backend, so that other threads can submit requests to it.
 *
 *     any thread                         the driver's thread
 *     ----------                         -------------------
 *     submit, call ----> queue --------> backend: one turn takes all queued requests
 *                                           |
 *     call returns <---- done <-------------'   sleeps until something is due, or submitted
 *
 *     bel_driver_start(bel_engine_backend(engine), NULL, &driver);
 *     err = bel_driver_call(driver, &request);
 *     ...
 *     bel_driver_destroy(driver);
 *     bel_engine_close(engine);
 *
 * While the driver runs, the backend belongs to the driver's thread. Only `done`, which is called
 * on that thread, may use the backend directly. `done` delays all other requests, so keep it short.
 * Requests that arrive during a turn share the next turn and its commit. An idle driver does not
 * wake up.
 *
 * Threads: any thread may call any of these functions at any time, except bel_driver_destroy().
 */

#include "belfry/backend.h"
#include "belfry/clock.h"
#include "belfry/declare.h"
#include "belfry/error.h"

BEL_BEGIN_DECLARATIONS

struct bel_driver; /* opaque */

/* Starts a driver for a backend, which must outlive the driver. `clock` NULL: the system clock.
 * With another clock the passing of time does not wake the driver: call bel_driver_wake() after
 * moving the clock. Returns 0 and sets `*out`, before the first turn; or returns BEL_ENOMEM, or
 * BEL_EIO if no file descriptor is available. */
BEL_CHECKED int bel_driver_start(struct bel_backend *backend, const struct bel_clock *clock,
                                 struct bel_driver **out);

/* Submits a request and returns at once; `done` is called on the driver's thread. Requests of one
 * thread are processed in order of submission. Do not call bel_backend_withdraw() for such a
 * request. Returns 0; or returns BEL_ECLOSED if the driver was stopped, and the request is
 * unchanged. */
BEL_CHECKED int bel_driver_submit(struct bel_driver *driver, struct bel_request *request);

/* Submits a request and sleeps until it is done. `done` is called as above, before this function
 * returns, but may be NULL here, and must neither submit nor free the request. Returns the error of
 * the reply, or 0. Without a call of `done`, returns BEL_ECLOSED if the driver was stopped, or
 * BEL_EBUSY if called on the driver's own thread. */
BEL_CHECKED int bel_driver_call(struct bel_driver *driver, struct bel_request *request);

/*
 * The usual requests as functions. Each sleeps until the request is done, and returns 0 or an error
 * as bel_driver_call() does. Topics and ids end in 0.
 *
 *     bel_driver_schedule(driver, "mail", "hello", BEL_VIEW("Good morning"), 5000);
 *     while (bel_driver_claim(driver, "mail", 60000, &due) == 0 && due != NULL) {
 *         err = send(due->payload) ? bel_driver_ack(driver, due)
 *                                  : bel_driver_fail(driver, due, "the relay is down");
 *         bel_delivery_destroy(due);
 *     }
 */

/* Schedules a timer that is due after `delay_ms`. `id` NULL: the backend makes one. A timer with
 * the same id is replaced. */
BEL_CHECKED int bel_driver_schedule(struct bel_driver *driver, const char *topic, const char *id,
                                    struct bel_view payload, uint64_t delay_ms);

/* Cancels a timer. Sets `*out_was_there`, unless it is NULL, to whether it was unfinished. */
BEL_CHECKED int bel_driver_cancel(struct bel_driver *driver, const char *topic, const char *id,
                                  bool *out_was_there);

/* Claims a due timer, and waits up to `wait_ms` for one. Sets `*out` to a delivery that the caller
 * destroys, in which each text is followed by a 0 byte; or to NULL if no timer was due. Returns
 * BEL_ENOMEM also if the copy has no memory: the timer is due again when its lease expires. */
BEL_CHECKED int bel_driver_claim(struct bel_driver *driver, const char *topic, uint64_t wait_ms,
                                 struct bel_delivery **out);

/* Reports that the work is done. Returns BEL_ESTALE if the lease has expired. */
BEL_CHECKED int bel_driver_ack(struct bel_driver *driver, const struct bel_delivery *delivery);

/* Reports that the work has failed; the retry policy says when it is tried again. `reason`, for
 * people, may be NULL. Returns BEL_ESTALE if the lease has expired. */
BEL_CHECKED int bel_driver_fail(struct bel_driver *driver, const struct bel_delivery *delivery,
                                const char *reason);

/* Like bel_driver_ack(), with a result of up to 64 KiB for GET and, of a task of a job, for the
 * tasks after it. Returns BEL_EINVAL for a larger result, or BEL_EFULL if the results of the job
 * exceed 64 MiB; the lease goes on then. */
BEL_CHECKED int bel_driver_ack_result(struct bel_driver *driver,
                                      const struct bel_delivery *delivery, struct bel_view result);

/* Like bel_driver_fail(); the failure also counts for the breaker of the timer's resource. */
BEL_CHECKED int bel_driver_fail_resource(struct bel_driver *driver,
                                         const struct bel_delivery *delivery, const char *reason);

/* Reports that the resource refused the work because of a rate limit, which ends after `delay_ms`;
 * 0: after one minute. Uses up no attempt. Returns BEL_ESTALE if the lease has expired. */
BEL_CHECKED int bel_driver_limited(struct bel_driver *driver, const struct bel_delivery *delivery,
                                   uint64_t delay_ms);

/*
 * Requests of jobs as functions; see belfry/job.h, and belfry/jobs.h to run a job to its end.
 *
 *     err = bel_driver_job_submit(driver, &(struct bel_job_submit){.text = text}, &receipt);
 *     if (err) puts(receipt.why);       tasks[3].after[0]: 'x' is not a task of this job
 */

/* The reply to a submitted job. */
struct bel_job_receipt {
    char id[BEL_ID_BYTES];         /* of the job */
    uint64_t tasks, edges;         /* of the job itself, without those of `then` */
    char why[BEL_REPLY_WHY_BYTES]; /* after an error of the backend: a message for people */
};

/* Submits a job and returns when all of it is durable. `out` may be NULL; it is also set after an
 * error. Returns BEL_EINVAL for an invalid text, BEL_ECONFLICT if a job with this id is known, or
 * BEL_EFULL for a job that is too large. */
BEL_CHECKED int bel_driver_job_submit(struct bel_driver *driver, const struct bel_job_submit *job,
                                      struct bel_job_receipt *out);

/* Gets a job with the tasks that the query asks for. Sets `*out` to a copy that the caller
 * destroys, in which each text is followed by a 0 byte. Returns BEL_ENOTFOUND for an unknown
 * job. */
BEL_CHECKED int bel_driver_job_get(struct bel_driver *driver, const struct bel_job_get *query,
                                   struct bel_job **out);

/* Lists jobs. Sets `*out` to a page that the caller destroys. The cursor of the page is for the
 * next query. */
BEL_CHECKED int bel_driver_job_list(struct bel_driver *driver, const struct bel_job_list *query,
                                    struct bel_job_page **out);

/* Cancel, pause or resume a job. Set `*out_changed`, unless it is NULL, to false if the job had
 * ended or was already in that state. Return BEL_ENOTFOUND for an unknown job. */
BEL_CHECKED int bel_driver_job_cancel(struct bel_driver *driver, const char *id, bool *out_changed);
BEL_CHECKED int bel_driver_job_pause(struct bel_driver *driver, const char *id, bool *out_changed);
BEL_CHECKED int bel_driver_job_resume(struct bel_driver *driver, const char *id, bool *out_changed);

/* Reads the result of a timer that is done; the id of a task is "<job>/<task>". Sets `*out` to
 * memory that the caller frees with free(), with a 0 byte after the result. Returns BEL_ENOTFOUND
 * if the timer is unknown or has no result. */
BEL_CHECKED int bel_driver_result(struct bel_driver *driver, const char *topic, const char *id,
                                  char **out, size_t *out_bytes);

/* Lists, sets, clears or deletes limits of resources; see belfry/limit.h. Sets `*out`, unless `out`
 * is NULL, to a copy of the reply that the caller destroys, in which each text is followed by a 0
 * byte. Returns BEL_EINVAL for an invalid value, or BEL_ENOTFOUND for an unknown resource; with
 * BEL_ENOMEM the limits may have changed, if there was no memory for the copy. */
BEL_CHECKED int bel_driver_limit(struct bel_driver *driver, const struct bel_limit *limit,
                                 struct bel_limit_reply **out);

/* Ends the wait of a claim that was submitted: a claim that still waits is answered with no
 * deliveries. Returns 0 after that, also if the claim was already done; BEL_ECLOSED if the driver
 * was stopped, which ends all waits; BEL_EBUSY on the driver's own thread; or BEL_ENOMEM. */
BEL_CHECKED int bel_driver_end_wait(struct bel_driver *driver, const struct bel_request *claim);

/* Makes the driver take a turn soon. Call it after moving the clock, and from `wake` of struct
 * bel_engine_options. Async-signal-safe. */
void bel_driver_wake(struct bel_driver *driver);

/* Stops claims from waiting: waiting claims, and later claims that would wait, are answered at once
 * with no deliveries. Workers that wait for work return; workers with a lease can still finish. */
void bel_driver_drain(struct bel_driver *driver);

/* Refuses later requests, finishes earlier ones, and ends the thread. Waiting claims are answered
 * with no deliveries, as by bel_driver_drain(). Afterwards the backend belongs to the caller again.
 * Returns 0, also if the driver was already stopped; or BEL_EBUSY if called on the driver's own
 * thread. */
BEL_CHECKED int bel_driver_stop(struct bel_driver *driver);

/* Stops a driver and frees it; NULL is allowed. No other thread may still use the driver. Must not
 * be called on the driver's own thread. */
void bel_driver_destroy(struct bel_driver *driver);

BEL_END_DECLARATIONS
#endif
