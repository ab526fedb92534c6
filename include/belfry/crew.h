/* SPDX-License-Identifier: MIT */
#ifndef BEL_CREW_H
#define BEL_CREW_H

/*
 * crew - a worker: it claims timers from a server, hands each to a function on one of its threads,
 * and tells the server how that went. It is called a crew since a bel_worker is something else: a
 * thread's place in a runtime, for timers in memory (belfry/runtime.h).
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
 * No more is claimed than there are hands free for it. A crew that cannot reach its server tries
 * again after 1, 2, 4 ... 30 s; what its hands have done by then is told as soon as it can. A timer
 * may come more than once, when a lease was lost on the way: work is to be done in a way that this
 * does no harm.
 *
 * Threads: `work`, `told` and `trouble` are called on threads of the crew, the first two on several
 * at a time; all signals are blocked there. Any thread may stop a crew.
 */

#include "belfry/client.h"
#include "belfry/error.h"
#include "belfry/view.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(default)

enum {
    BEL_CREW_HANDS_DEFAULT = 5,
    BEL_CREW_HANDS_MAX = 1000,
    BEL_CREW_LEASE_MS_DEFAULT = 30000, /* if neither the timer nor its topic says anything */
    BEL_CREW_GRACE_MS_DEFAULT = 15000, /* a good value for bel_crew_stop() */
    BEL_REPORT_REASON_BYTES = 256,
};

struct bel_errand_header {
    struct bel_view name, value;
};

/* What a hand is given. It is good until `work` returns, and again in `told`. Texts end in 0
 * besides. */
struct bel_errand {
    struct bel_view token, topic, id, payload;
    struct bel_view correlation; /* may be empty */
    struct bel_wall due;
    uint64_t attempt; /* 1 + the failures so far */
    const struct bel_errand_header *headers;
    size_t headers_count;
};

/* The value of a header, by its exact name. False, and nothing is set, if there is none. */
bool bel_errand_find(const struct bel_errand *errand, const char *name, struct bel_view *out);

/* Whether the lease was lost, so that what comes of the work does not count any more. In `told` it
 * is whether the server has not taken what it was told, as far as is known: a connection may break
 * between the two. */
bool bel_errand_is_lost(const struct bel_errand *errand);

/* How it went. */
enum bel_report_kind {
    BEL_REPORT_DONE,     /* ack; what a report says at first */
    BEL_REPORT_FAILED,   /* an attempt is spent, and it comes again as its policy says */
    BEL_REPORT_RELEASED, /* no attempt is spent, and it comes again */
    BEL_REPORT_REJECTED, /* it is dead, and does not come again by itself */
};

struct bel_report {
    enum bel_report_kind kind;
    bool has_delay; /* failed or released: when it comes again */
    uint64_t delay_ms;
    char reason[BEL_REPORT_REASON_BYTES]; /* failed or rejected: for people; ends in 0 */
};

/* Reports that it has failed. The reason is copied, as much of it as there is room for. */
void bel_report_fail(struct bel_report *report, const char *reason);

struct bel_crew; /* opaque: it owns threads */

/* What is pointed to is copied, but for the context and the clock. */
struct bel_crew_options {
    const char *address;              /* as bel_client_connect() has it */
    struct bel_client_options client; /* for both connections; its clock is the crew's, too, and
                                         looked at each millisecond if it is not the system's */
    const char *const *topics;        /* they take turns */
    size_t topics_count;              /* 1 at least */
    unsigned hands;                   /* 0: 5 */
    uint32_t lease_ms; /* 0: as the timer or its topic says, else 30 s; extended after
                                         each third of it */
    const char *name;  /* who it is, for people; NULL: nobody */
    void (*work)(void *context, const struct bel_errand *errand, struct bel_report *report);
    /* Something is wrong with the server or the way to it: one line for a log. May be NULL. */
    void (*trouble)(void *context, const char *text);
    void *context;
    /* The server was told how it went, or cannot be any more: bel_errand_is_lost() says whether it
     * counts. On the thread that has worked, which does nothing else in between. May be NULL. */
    void (*told)(void *context, const struct bel_errand *errand, const struct bel_report *report);
};

/* Starts a crew. It connects by itself, later. Returns 0 and sets `*out`, or BEL_ENOMEM. */
BEL_CHECKED int bel_crew_start(const struct bel_crew_options *options, struct bel_crew **out);

/*
 * Claims no more, and waits for the hands to finish and for the server to know, but no longer than
 * `grace_ms`. Returns 0 when all is told and the threads have ended, also if that was so before; or
 * BEL_EBUSY if hands still work: leases are extended still, and it can be called again. A server
 * that cannot be reached is not waited for; one that does not answer is for 10 s after the last
 * hand has finished, and one that is being connected to for as long as the client's timeout. What
 * it was not told by then it finds out when the leases end.
 */
BEL_CHECKED int bel_crew_stop(struct bel_crew *crew, uint32_t grace_ms);

/* Frees a crew that was stopped; NULL is allowed. */
void bel_crew_destroy(struct bel_crew *crew);

#pragma GCC visibility pop
#endif
