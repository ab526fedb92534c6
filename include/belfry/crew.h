/* SPDX-License-Identifier: MIT */
#ifndef BEL_CREW_H
#define BEL_CREW_H

/*
 * crew - a worker process: claims timers from a server, passes each to a function on one of its
 * threads, and reports the outcome to the server. (A bel_worker is something else: a thread of a
 * runtime for in-memory timers, see belfry/runtime.h.)
 *
 *     claims ---> hand 1: work(errand) ---> ack, fail, release
 *            ---> hand 2: work(errand) --->       |
 *            ---> ...                             |  leases are extended while hands work
 *
 *     static void mail(void *context, const struct bel_errand *errand, struct bel_report *report)
 *     {
 *         if (!deliver(errand->payload)) bel_report_fail(report, "the relay is down");
 *     }
 *
 *     const char *topics[] = {"mail"};
 *     struct bel_crew_options options = {.address = "127.0.0.1:7878", .topics = topics,
 *                                        .topics_count = 1, .work = mail};
 *     err = bel_crew_start(&options, &crew);
 *     ...
 *     err = bel_crew_stop(crew, 15000);
 *     bel_crew_destroy(crew);
 *
 * A crew has a fixed number of worker threads, called hands. It never claims more timers than it
 * has free hands. While the server cannot be reached, the crew retries after 1, 2, 4 ... 30 s, but
 * while hands work, after a third of their shortest lease at most. It reports finished work as soon
 * as the connection is back. A timer may be delivered more than once, for example if its lease
 * expired, so `work` must be idempotent. When it is delivered again, the earlier errand is lost.
 *
 * Threads: `work`, `told` and `trouble` are called on threads of the crew, `work` and `told` on
 * several at a time. All signals are blocked on these threads. Any thread may stop a crew.
 */

#include "belfry/client.h"
#include "belfry/declare.h"
#include "belfry/delivery.h"
#include "belfry/error.h"
#include "belfry/timer.h"
#include "belfry/view.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

BEL_BEGIN_DECLARATIONS

enum {
    BEL_CREW_HANDS_DEFAULT = 5,
    BEL_CREW_HANDS_MAX = 1000,
    BEL_CREW_LEASE_MS_DEFAULT = 30000, /* if neither the timer nor its topic sets one */
    BEL_CREW_GRACE_MS_DEFAULT = 15000, /* a suitable value for bel_crew_stop() */
    BEL_REPORT_REASON_BYTES = 256,
};

#define bel_errand_header bel_header /* the older name of the struct */

/* A claimed timer. Valid until `work` returns, and again during `told`. Each text is followed by a
 * 0 byte, which its length does not count. */
struct bel_errand {
    struct bel_view token, topic, id, payload;
    struct bel_view correlation; /* optional, may be empty */
    struct bel_wall due;
    uint64_t attempt; /* 1 + failures so far */
    const struct bel_header *headers;
    size_t headers_count;
    const struct bel_task_result *results; /* of a task of a job, in the order of its `after` */
    size_t results_count;
};

/* Finds the value of a header by its exact name. Returns false and leaves `*out` unchanged if the
 * timer has no such header. */
bool bel_errand_find(const struct bel_errand *errand, const char *name, struct bel_view *out);

/* Finds the result of a task that this task of a job comes after, by the id of that task. Returns
 * false and leaves `*out` unchanged if there is none, or if it did not fit into the delivery. */
bool bel_errand_result(const struct bel_errand *errand, const char *task, struct bel_view *out);

/* Returns whether the lease was lost, so that the outcome of the work no longer counts. In `told`:
 * whether the server did not accept the report, as far as the crew knows; the connection may have
 * broken after the server accepted it and before the crew knew. */
bool bel_errand_is_lost(const struct bel_errand *errand);

/* The outcome of the work on a timer. */
enum bel_report_kind {
    BEL_REPORT_DONE,     /* acknowledge; the initial value of a report */
    BEL_REPORT_FAILED,   /* uses up an attempt; retried as the retry policy says */
    BEL_REPORT_RELEASED, /* uses up no attempt; delivered again */
    BEL_REPORT_REJECTED, /* the timer is dead; not retried unless revived */
    BEL_REPORT_LIMITED,  /* uses up no attempt: the resource reported a rate limit; retried after
                            delay_ms, default 1 min */
    BEL_REPORT_RESOURCE, /* failed, and counts as a failure for the breaker of the resource */
};

struct bel_report {
    enum bel_report_kind kind;
    bool has_delay; /* unless done or rejected: deliver again after delay_ms */
    uint64_t delay_ms;
    char reason[BEL_REPORT_REASON_BYTES]; /* unless done or released: for people; ends in 0 */
    char *result;                         /* done: set by bel_report_result(), or NULL */
    size_t result_bytes;
    bool has_verdict; /* in `told`: the server accepted a failure or rejection */
    struct bel_verdict verdict;
};

/* Sets a report to failed. The reason is copied and truncated to fit. */
void bel_report_fail(struct bel_report *report, const char *reason);

/* Sets the result of work that is done, for GET and for the tasks after a task of a job. The result
 * is copied, and the crew frees the copy after `told`. A result that the server refuses, because it
 * exceeds 64 KiB or the results of the job 64 MiB, makes the report failed. Returns 0; or returns
 * BEL_ENOMEM, and the report has no result. */
BEL_CHECKED int bel_report_result(struct bel_report *report, struct bel_view result);

struct bel_crew; /* opaque: owns threads */

/* Everything that is pointed to is copied, except the context and the clock. */
struct bel_crew_options {
    const char *address;              /* see bel_client_connect() */
    struct bel_client_options client; /* for both connections. The crew uses its clock too and,
                                         if it is not the system clock, reads it every
                                         millisecond. */
    const char *const *topics;        /* served in rotation */
    size_t topics_count;              /* at least 1 */
    unsigned hands;                   /* worker threads; 0: 5 */
    uint32_t lease_ms; /* 0: as the timer or its topic sets it, else 30 s; extended after each
                          third of it */
    const char *name;  /* name of the worker, for people; optional */
    void (*work)(void *context, const struct bel_errand *errand, struct bel_report *report);
    /* Called with one line for a log if something is wrong with the server or the connection.
     * Optional. */
    void (*trouble)(void *context, const char *text);
    void *context;
    /* Called after the server has accepted or refused the report, or cannot be told any more;
     * bel_errand_is_lost() tells whether the work counts. Runs on the thread that ran `work`,
     * directly after it. Optional. */
    void (*told)(void *context, const struct bel_errand *errand, const struct bel_report *report);
};

/* Starts a crew. Connecting happens later, in the background. Returns 0 and sets `*out`, or returns
 * BEL_ENOMEM. */
BEL_CHECKED int bel_crew_start(const struct bel_crew_options *options, struct bel_crew **out);

/*
 * Stops claiming, then waits up to `grace_ms` for the hands to finish and for the server to accept
 * their reports. Returns 0 when everything is reported and the threads have ended, also if the crew
 * was already stopped. Returns BEL_EBUSY if hands are still working: their leases are still
 * extended, and bel_crew_stop() can be called again. The wait for the server is limited: none if it
 * cannot be reached, 10 s after the last hand has finished if it does not reply, the client's
 * timeout if a connection is being made. Work that was not reported by then is delivered again
 * after its lease expires.
 */
BEL_CHECKED int bel_crew_stop(struct bel_crew *crew, uint32_t grace_ms);

/* Frees a crew that was stopped; NULL is allowed. */
void bel_crew_destroy(struct bel_crew *crew);

BEL_END_DECLARATIONS
#endif
