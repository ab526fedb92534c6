/* SPDX-License-Identifier: MIT */
#ifndef BEL_BACKEND_H
#define BEL_BACKEND_H

/*
 * backend - the seam of timer operations: what can be asked, and how it is answered.
 *
 * A request is submitted and answered later, through its own function. Nothing blocks and
 * nothing happens while it is submitted; a turn does it all:
 *
 *     struct bel_request request = {.command = {.verb = BEL_VERB_SCHEDULE, .schedule = {...}},
 *                                   .done = answered};
 *     bel_backend_submit(backend, &request);
 *     ...
 *     next = bel_backend_turn(backend, now);
 *
 * A turn does what has come due, takes the requests in the order of their submission, makes
 * what changed durable and only then answers. An answer also of what only looked leaves when
 * all it could have seen is durable. bel_backend_turn() says when to come back; sooner if there is
 * something to submit. All that a turn does follows from the state, `now` and the requests.
 *
 * Memory: a request and what it points to belong to the caller and stay as they are until it
 * is done. What a reply points to is good until `done` returns. `done` may submit, the same
 * request again too, and free it; it may not call a turn.
 *
 * Threads: a backend belongs to one thread.
 */

#include "belfry/error.h"
#include "belfry/timer.h"
#include "belfry/view.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(default)

enum bel_verb {
    BEL_VERB_SCHEDULE,
    BEL_VERB_CANCEL,
    BEL_VERB_RESCHEDULE,
    BEL_VERB_GET,
    BEL_VERB_CLAIM,
    BEL_VERB_ACK,
    BEL_VERB_FAIL,
    BEL_VERB_RELEASE,
    BEL_VERB_EXTEND,
    BEL_VERB_LIST,
    BEL_VERB_REVIVE,
    BEL_VERB_PURGE,
    BEL_VERB_TOPICS,
    BEL_VERB_TOPIC,
    BEL_VERB_CONFIGURE,
    BEL_VERB_PAUSE,
    BEL_VERB_RESUME,
    BEL_VERB_EXPLAIN,
    BEL_VERB_AGENDA,
    BEL_VERBS,
};

enum bel_fail_kind {
    BEL_FAIL_ERROR,    /* spends an attempt */
    BEL_FAIL_RESOURCE, /* the same, and counts for the resource's breaker */
    BEL_FAIL_LIMITED,  /* spends none: the resource wants to be left alone */
};

/*
 * What the verbs are given, and what they answer. Errors, besides BEL_EIO and BEL_ECORRUPT,
 * which end the backend: BEL_EINVAL for a value that cannot be, BEL_EFULL for a limit,
 * BEL_ENOMEM, BEL_ECONFLICT for an id that is taken, BEL_ESTALE for a token that is not the
 * newest (FAIL, RELEASE, EXTEND), BEL_ENOTFOUND for a topic or timer that is not there (TOPIC,
 * EXPLAIN), BEL_EUNSUPPORTED. Then nothing has changed, unless it was about many (CANCEL, ACK,
 * REVIVE, PURGE): `why` says after how many of them that was.
 *
 *     SCHEDULE    schedule      id
 *     CANCEL      cancel        count: how many were unfinished and are now cancelled
 *     RESCHEDULE  reschedule    count: 1; or 0 if it is not scheduled or ready
 *     GET         target        timers: one, or none
 *     CLAIM       claim         deliveries: none when the wait is over
 *     ACK         ack           count: how many leases were live and are done now
 *     FAIL        fail          verdict
 *     RELEASE     release       count: 1
 *     EXTEND      extend        count: what is left of the lease, in ms
 *     LIST        list          timers in order, and a cursor to go on with
 *     REVIVE      target        count: dead ones, now due; no id: all of the topic
 *     PURGE       purge         count: how many are gone
 *     TOPICS                    names, sorted
 *     TOPIC       target        topic
 *     CONFIGURE   configure     all settings are taken, or none if one is wrong
 *     PAUSE       target
 *     RESUME      target
 *     EXPLAIN     target        names: lines that say why it is not running, and when it will
 *     AGENDA      agenda        steps
 */
struct bel_target {
    struct bel_view topic, id;
};

struct bel_cancel {
    struct bel_view topic;
    const struct bel_view *ids;
    size_t ids_count;
};

struct bel_reschedule {
    struct bel_view topic, id;
    enum bel_when when; /* IN or AT */
    uint64_t delay_ms;
    struct bel_wall at;
};

struct bel_claim {
    const struct bel_view *topics; /* take turns, one delivery each */
    size_t topics_count;
    uint32_t count;         /* at most; 0: 1 */
    uint64_t lease_ms;      /* 0: the timer's own, or else the topic's */
    uint64_t wait_ms;       /* of real time, if there is nothing to deliver */
    struct bel_view worker; /* who asks, for people */
};

struct bel_ack {
    const struct bel_view *tokens;
    size_t tokens_count;
    bool has_result; /* of one token */
    struct bel_view result;
};

struct bel_fail {
    struct bel_view token, reason;
    enum bel_fail_kind kind;
    bool dead;         /* no more attempts */
    bool has_delay;    /* else the policy says */
    uint64_t delay_ms; /* until the next attempt */
};

struct bel_release {
    struct bel_view token;
    bool has_delay; /* else it is ready again, in its old place */
    uint64_t delay_ms;
};

struct bel_extend {
    struct bel_view token;
    uint64_t lease_ms; /* from now; 0: as long as the claim's */
};

struct bel_list_query {
    struct bel_view topic;
    bool has_state, has_from, has_to;
    enum bel_state state;
    struct bel_wall from, to; /* from <= due < to */
    uint32_t count;           /* at most; 0: 100 */
    struct bel_view cursor;   /* of the reply before; none: from the start */
};

struct bel_purge {
    struct bel_view topic;
    bool has_state; /* else all that are terminal; leased and blocked cannot be */
    enum bel_state state;
};

struct bel_setting {
    struct bel_view name, value;
};

struct bel_configure {
    struct bel_view topic;
    const struct bel_setting *settings;
    size_t settings_count;
};

struct bel_agenda {
    bool has_from, has_to; /* else from now, and 24 h */
    struct bel_wall from, to;
    uint64_t step_ms;      /* 0: 1 h */
    struct bel_view topic; /* none: all */
};

struct bel_command {
    enum bel_verb verb;
    union {
        struct bel_schedule_spec schedule;
        struct bel_target target;
        struct bel_cancel cancel;
        struct bel_reschedule reschedule;
        struct bel_claim claim;
        struct bel_ack ack;
        struct bel_fail fail;
        struct bel_release release;
        struct bel_extend extend;
        struct bel_list_query list;
        struct bel_purge purge;
        struct bel_configure configure;
        struct bel_agenda agenda;
    };
};

/* What has become of a timer that failed. */
struct bel_verdict {
    enum bel_state state; /* scheduled, dead or expired */
    struct bel_wall due;  /* if scheduled */
};

struct bel_topic {
    struct bel_view name;
    uint64_t counts[BEL_STATES]; /* plans with a next time are scheduled */
    uint64_t plans;              /* that are not done */
    uint64_t oldest_age_ms;      /* of the first that is ready; 0 if none is */
    bool paused;
    const struct bel_setting *settings; /* all of them, as text that can be set again */
    size_t settings_count;
};

struct bel_agenda_step {
    struct bel_wall start;
    uint64_t count;
};

struct bel_reply {
    int err;       /* 0, or why nothing has changed */
    char why[160]; /* if err: for people, ends in 0 */
    union {
        uint64_t count;
        struct bel_view id;
        struct bel_verdict verdict;
        const struct bel_topic *topic;
        struct {
            const struct bel_delivery *items;
            size_t count;
        } deliveries;
        struct {
            const struct bel_timer *items;
            size_t count;
            struct bel_view cursor; /* none: that was all */
        } timers;
        struct {
            const struct bel_view *items;
            size_t count;
        } names;
        struct {
            const struct bel_agenda_step *items;
            size_t count;
        } steps;
    };
};

struct bel_request {
    struct bel_command command;
    void (*done)(struct bel_request *request, const struct bel_reply *reply);
    void *user; /* the caller's */
    struct {    /* private to whoever carries the request to a backend, such as a driver */
        void *next, *prev, *carrier;
        void (*done)(struct bel_request *request, const struct bel_reply *reply);
    } via;
    struct { /* private to the backend while it has the request */
        void *next, *prev;
        uint64_t words[10];
        struct bel_reply reply; /* so that even "out of memory" can be said without memory */
    } own;
};

/* One moment on every clock. `real` is for waits, which no virtual clock holds up. */
struct bel_now {
    struct bel_boot boot;
    struct bel_wall wall;
    struct bel_mono real;
    /* How far the wall is into its millisecond, so that what is due by the wall is not up to one
     * late; 0: not known. Read the boot clock first: what lies between makes a turn early. */
    uint32_t wall_rest_ns;
};

/* When the next turn is needed, unless there are requests: at whichever comes first. Both can
 * be early, never late; a time that is not after now: at once. */
struct bel_next {
    struct bel_boot due;  /* the next timer, lease or plan; BEL_NEVER: none */
    struct bel_mono wait; /* the end of the first wait; BEL_NEVER: none */
};

/* A backend. To make one, put this first in it and fill in all of it. */
struct bel_backend {
    void (*submit)(struct bel_backend *backend, struct bel_request *request);
    bool (*withdraw)(struct bel_backend *backend, struct bel_request *request);
    struct bel_next (*turn)(struct bel_backend *backend, struct bel_now now);
};

/* Gives a request to a backend, whose it is until `done` is called. */
void bel_backend_submit(struct bel_backend *backend, struct bel_request *request);

/* Takes a request back, which then is not done: true if it had not begun, or was a claim that
 * waits. Otherwise false, and `done` will be called. */
bool bel_backend_withdraw(struct bel_backend *backend, struct bel_request *request);

/* Works, commits, answers, and says when to come back. */
struct bel_next bel_backend_turn(struct bel_backend *backend, struct bel_now now);

/* Reads a clock, once for each of its times. */
struct bel_now bel_clock_now(const struct bel_clock *clock);

/*
 * For a program without a loop: submits a request and takes turns until it is done. `done` is
 * called as ever, but may be NULL here, and neither submits nor frees the request. Returns the
 * reply's error, 0 if it has none. Nobody sleeps: a claim that would have to wait is taken back,
 * is not done, and it returns BEL_EBUSY; the next turn says how long to sleep. What others have
 * submitted is done along with it. If answers leave later than their turn, it spins.
 */
BEL_CHECKED int bel_backend_call(struct bel_backend *backend, const struct bel_clock *clock,
                                 struct bel_request *request);

/* "schedule" and so on. */
const char *bel_verb_name(enum bel_verb verb);

/* Whether it can be the name of a topic; an id that a user may choose. */
bool bel_topic_is_valid(struct bel_view topic);
bool bel_id_is_valid(struct bel_view id);

#pragma GCC visibility pop
#endif
