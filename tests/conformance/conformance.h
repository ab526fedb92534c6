/* SPDX-License-Identifier: MIT */
#ifndef BEL_TESTS_CONFORMANCE_H
#define BEL_TESTS_CONFORMANCE_H

/*
 * conformance - the behaviour of every backend, written once against belfry/backend.h.
 *
 * A case reads like a transcript, and its name is the rule that it checks:
 *
 *     static void a_lease_that_ends_gives_the_timer_back(struct subject *s)
 *     {
 *         schedule(s, "mail", .id = "a");
 *         expect_claim(s, "mail", "a");
 *         advance(s, 30 * SECOND);
 *         expect_claim(s, "mail", "a");
 *     }
 *
 * To test a backend, fill in a struct kind and pass it to conformance_run(). Cases come in groups;
 * a group states which features of the backend it needs.
 */

#include "../check.h"
#include "belfry/backend.h"
#include "belfry/pressure.h"
#include "belfry/zone.h"
#include "heard.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    LOWEST_PRIORITY = -1,     /* priority 0, because 0 here means none */
    SETTING_BYTES_MAX = 1024, /* the longest value, that of deliver */
    TOKENS_MAX = 256,
    TOPICS_KEPT = 3, /* of a submitted claim: the memory of more must outlive the claim */
};

/* Durations, in ms. */
#define SECOND INT64_C(1000)
#define MINUTE (60 * SECOND)
#define HOUR   (60 * MINUTE)
#define DAY    (24 * HOUR)

/* The time at which every case starts: 2026-01-01T00:00:00Z. */
#define START INT64_C(1767225600000)

/* The days, in ms after START, on which Berlin sets its clocks forward and back, at 01:00Z:
 * 2026-03-29 and 2026-10-25. */
#define FORWARD (87 * DAY)
#define BACK    (297 * DAY)

/* Optional features of a backend. */
enum {
    CAN_REOPEN = 1 << 0,    /* can be closed, and opened again with its data */
    CAN_STEP_WALL = 1 << 1, /* distinguishes a wall clock that was set from time that has passed */
    CAN_GROUP = 1 << 2,     /* groups and concurrency */
    CAN_PRESS = 1 << 3,     /* can be told how much of its limits is used */
    CAN_LIMIT = 1 << 4,     /* limits of resources */
    CAN_JOBS = 1 << 5,      /* jobs */
    CAN_ALL = (1 << 6) - 1,
};

struct subject;

/* A case that a kind of backend leaves out, by its name or by that of its group. */
struct left_out {
    const char *name; /* NULL: the end of the list */
    const char *reason;
};

/* A kind of backend. All fields are required, except `reopen`, `press`, `settle` and `left_out`,
 * which may be NULL. */
struct kind {
    const char *name;
    unsigned can;
    bool is_slow; /* replies may leave some turns later, when the changes are durable */
    /* Creates a new, empty backend, opened at s->now, and sets s->backend and s->context. */
    void (*open)(struct subject *s);
    void (*close)(struct subject *s);
    /* Closes the backend, and opens it at s->now, which has been moved. */
    void (*reopen)(struct subject *s);
    /* Passes a sample of pressure. */
    void (*press)(struct subject *s, const struct bel_pressure_sample *sample);
    /* Takes turns at s->now until nothing is under way, for a backend that waits for others. */
    void (*settle)(struct subject *s);
    const struct left_out *left_out;
};

struct token {
    char id[BEL_ID_BYTES + 1], text[BEL_TOKEN_BYTES_MAX + 1];
};

/* A submitted request. */
struct waiter {
    struct bel_request request; /* first */
    struct bel_view topics[TOPICS_KEPT];
    struct heard *heard; /* NULL: no reply yet */
};

/* A backend, its clocks and its replies. */
struct subject {
    const struct kind *kind;
    struct bel_backend *backend;
    void *context;           /* for the kind */
    struct bel_zones *zones; /* the system's; the backend must be opened with them */
    struct bel_now now;
    struct bel_next next; /* of the last turn */
    struct waiter **waiters;
    size_t waiters_count;
    struct token tokens[TOKENS_MAX]; /* the last token of each id; if there are many ids, the
                                        newest */
    size_t tokens_count;             /* number of all tokens so far */
};

struct test {
    const char *name;
    void (*run)(struct subject *s);
};

struct group {
    const char *name;
    unsigned needs;
    const struct test *tests;
    size_t tests_count;
};

/* clang-format off */
#define TEST(function) {#function, function}
#define GROUP(title, what, list) \
    const struct group title##_group = {#title, what, list, sizeof(list) / sizeof(list)[0]}
/* clang-format on */

/* Runs all cases, or those of the group `only`, or those whose names contain it. Returns the exit
 * status for main(). */
int conformance_run(const struct kind *kind, const char *only);

/*
 * Time. advance() moves the boot and the wall clock and stops at every deadline in between;
 * wait_real() moves the clock of waiting claims; step_wall() sets the wall clock; and jump()
 * simulates suspend: both clocks move in one turn.
 */
void turn(struct subject *s);
void advance(struct subject *s, uint64_t ms);
void jump(struct subject *s, uint64_t ms);
void wait_real(struct subject *s, uint64_t ms);
void step_wall(struct subject *s, int64_t ms);
void reopen(struct subject *s, uint64_t closed_ms);
int64_t wall(const struct subject *s);

/* Submits a command and waits for the reply, which is valid until the case ends. */
const struct heard *ask(struct subject *s, const struct bel_command *command);

/* Submits a command and does not wait. */
struct waiter *submit(struct subject *s, const struct bel_command *command);

/* Where a phrase was called, for the message if it fails. */
extern const char *conformance_case;
void at_line(const char *file, int line);
#define AT at_line(__FILE__, __LINE__)

struct bel_view view(const char *text); /* NULL: empty */
bool is_text(struct bel_view a, const char *text);

/* Returns whether the backend has some features; a text if it has them, and otherwise an empty
 * one. */
bool can(const struct subject *s, unsigned features);
const char *if_can(const struct subject *s, unsigned features, const char *text);

/* SCHEDULE. A field that is 0 is not given. */
struct scheduled {
    const char *topic, *id, *payload, *group, *resource, *correlation, *retry;
    uint64_t in; /* IN, unless 0 */
    int64_t at;  /* AT, unless 0: ms after START */
    const char *every, *cron, *rrule, *zone;
    enum bel_plan_mode mode;
    enum bel_gap gap;
    enum bel_fold fold;
    enum bel_misfire misfire;
    enum bel_overlap overlap;
    int64_t until; /* ms after START */
    uint64_t count, spread;
    int priority;
    enum bel_conflict conflict;
    uint64_t lease, expires;
    const struct bel_header *headers;
    size_t headers_count;
};

#define schedule(s, ...) (AT, schedule_as(s, &(struct scheduled){.topic = __VA_ARGS__}))
const char *schedule_as(struct subject *s, const struct scheduled *what);
/* Schedules and returns the error; 0 on success. */
#define schedule_error(s, ...) (AT, schedule_error_as(s, &(struct scheduled){.topic = __VA_ARGS__}))
int schedule_error_as(struct subject *s, const struct scheduled *what);

/* CLAIM. */
struct claimed {
    const char *topic, *and_topic, *and_third;
    uint32_t count;
    uint64_t lease, wait;
    const char *worker;
};

#define claim(s, ...) (AT, claim_as(s, &(struct claimed){.topic = __VA_ARGS__}))
const struct heard *claim_as(struct subject *s, const struct claimed *what);
#define submit_claim(s, ...) (AT, submit_claim_as(s, &(struct claimed){.topic = __VA_ARGS__}))
struct waiter *submit_claim_as(struct subject *s, const struct claimed *what);

/* Claims as many timers as are named, or one, and checks that exactly those are delivered, in that
 * order. */
#define expect_claim(s, ...) (AT, expect_claim_of(s, (const char *[]){__VA_ARGS__, NULL}))
void expect_claim_of(struct subject *s, const char *const *topic_and_ids);

/* Checks the ids of a reply's deliveries or timers, in that order. */
#define expect_ids(heard, ...) (AT, expect_ids_of(heard, (const char *[]){__VA_ARGS__, NULL}))
void expect_ids_of(const struct heard *heard, const char *const *ids);
void expect_no_ids(const struct heard *heard);

/* Returns the token of the last delivery of an id. */
const char *token_of(struct subject *s, const char *id);

/* The verbs of leases take the id of a delivery, or "token:" and a token. */
#define ack(s, id) (AT, ack_result(s, id, NULL))
uint64_t ack_result(struct subject *s, const char *id, const char *result);

struct failed {
    const char *id, *reason;
    enum bel_fail_kind kind;
    bool dead, at_once; /* at_once: IN 0 */
    uint64_t in;
};

#define fail(s, ...) (AT, fail_as(s, &(struct failed){.id = __VA_ARGS__}))
struct bel_verdict fail_as(struct subject *s, const struct failed *what);
#define fail_error(s, ...) (AT, fail_error_as(s, &(struct failed){.id = __VA_ARGS__}))
int fail_error_as(struct subject *s, const struct failed *what);

#define release(s, id)        (AT, release_as(s, id, false, 0))
#define release_in(s, id, ms) (AT, release_as(s, id, true, ms))
int release_as(struct subject *s, const char *id, bool has_delay, uint64_t delay_ms);
int extend(struct subject *s, const char *id, uint64_t ms, uint64_t *out_left_ms);

#define cancel(s, topic, id) (AT, cancel_one(s, topic, id))
uint64_t cancel_one(struct subject *s, const char *topic, const char *id);
#define reschedule_in(s, topic, id, ms) (AT, reschedule(s, topic, id, ms, 0))
#define reschedule_at(s, topic, id, ms) (AT, reschedule(s, topic, id, 0, ms))
/* With IN, or with AT in ms after START. */
uint64_t reschedule(struct subject *s, const char *topic, const char *id, uint64_t in, int64_t at);

/* Returns NULL if there is none. */
const struct bel_timer *get(struct subject *s, const char *topic, const char *id);
#define timer_of(s, topic, id) (AT, must_get(s, topic, id))
const struct bel_timer *must_get(struct subject *s, const char *topic, const char *id);
#define expect_state(s, topic, id, state) (AT, expect_state_of(s, topic, id, state))
void expect_state_of(struct subject *s, const char *topic, const char *id, enum bel_state state);
#define expect_gone(s, topic, id) (AT, expect_gone_of(s, topic, id))
void expect_gone_of(struct subject *s, const char *topic, const char *id);
/* Returns the id of an occurrence by its nominal time in ms after START. Valid until 8 more are
 * made. */
const char *occurrence(const char *plan, int64_t nominal);

/* Lists all timers, in small pages, and checks the order. */
struct listed {
    const char *topic;
    bool has_state;
    enum bel_state state;
    bool has_from, has_to;
    int64_t from, to; /* ms after START */
    uint32_t count;   /* of a page */
};

#define list(s, ...) (AT, list_as(s, &(struct listed){.topic = __VA_ARGS__}, NULL))
const struct heard *list_as(struct subject *s, const struct listed *what, const char *cursor);
#define expect_list(s, ...) (AT, expect_list_of(s, (const char *[]){__VA_ARGS__, NULL}, BEL_STATES))
#define expect_list_state(s, state, ...)                                                           \
    (AT, expect_list_of(s, (const char *[]){__VA_ARGS__, NULL}, state))
/* BEL_STATES: any state. */
void expect_list_of(struct subject *s, const char *const *topic_and_ids, enum bel_state state);

uint64_t revive(struct subject *s, const char *topic, const char *id); /* NULL: all */
#define purge(s, topic) (AT, purge_state(s, topic, BEL_STATES))
uint64_t purge_state(struct subject *s, const char *topic, enum bel_state state);

const struct bel_topic *topic(struct subject *s, const char *name);
const char *setting(struct subject *s, const char *name, const char *which);
#define configure(s, topic, name, value) (AT, must_configure(s, topic, name, value))
void must_configure(struct subject *s, const char *topic, const char *name, const char *value);
int configure_error(struct subject *s, const char *topic, const char *name, const char *value);
/* Runs a verb that has only a target. Returns the error. */
int target(struct subject *s, enum bel_verb verb, const char *topic, const char *id);
#define pause_topic(s, topic)  CHECK(target(s, BEL_VERB_PAUSE, topic, NULL) == 0)
#define resume_topic(s, topic) CHECK(target(s, BEL_VERB_RESUME, topic, NULL) == 0)

#endif
