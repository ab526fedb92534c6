/* SPDX-License-Identifier: MIT */

/*
 * Failing allocations. Every verb is run on an engine with timers of every kind, and its n-th
 * allocation fails, for every n until the verb makes fewer than n allocations. Then again with all
 * allocations from the n-th on failing.
 *
 *     built --> digest --> ask, failing --> digest --> ask again
 *
 * A request that fails must change nothing, and must succeed when it is repeated with memory. A
 * request that succeeds must have its complete reply, or, if it is about several timers, a part,
 * and repeating it does the rest.
 *
 *     fault_memory claim        runs the cases with that in their name
 */
#include "../ask.h"
#include "../check.h"
#include "core/units.h"
#include "digest.h"
#include "engine/engine.h"
#include "scarce.h"
#include "scene.h"

#include <string.h>

enum {
    SECOND = 1000,
    MINUTE = 60 * SECOND,
    HOUR = 60 * MINUTE,
    TOKENS_MAX = 16,
    FAILURES_MAX = 5000,
    TURNS_MAX = 200,
    BIG_BYTES = 10000, /* three rows */
    SEGMENT_BYTES = 192 << 10,
};

#define START INT64_C(1767225600000)

/* An engine with timers of every kind, and what the test knows about it. */
struct world {
    struct bel_engine *engine;
    struct bel_backend *backend;
    struct bel_entropy_seeded entropy;
    struct bel_now now;
    char tokens[TOKENS_MAX][BEL_TOKEN_BYTES_MAX + 1];
    size_t tokens_count;
    struct bel_view views[TOKENS_MAX];
    struct bel_setting settings[3];
    struct bel_header headers[2];
};

static char big[BIG_BYTES];

static void pass(struct world *world, uint64_t ms)
{
    world->now.wall.ms += (int64_t)ms;
    world->now.boot.ns += ms * NS_PER_MS;
    world->now.real.ns += ms * NS_PER_MS;
}

/* --- requests --- */

struct question {
    struct bel_request request; /* first */
    struct world *world;
    bool is_answered;
    int err;
    uint64_t deliveries;
    struct text *text; /* the reply; may be NULL */
};

static void answered(struct bel_request *request, const struct bel_reply *reply)
{
    struct question *question = (struct question *)request;
    struct world *world = question->world;
    scarce_suspend();
    question->is_answered = true;
    question->err = reply->err;
    if (question->text != NULL) digest_reply(question->text, request->command.verb, reply);
    if (reply->err == 0 && request->command.verb == BEL_VERB_CLAIM) {
        question->deliveries = reply->deliveries.count;
        for (size_t i = 0; i < reply->deliveries.count; i++) {
            struct bel_view token = reply->deliveries.items[i].token;
            if (world->tokens_count == TOKENS_MAX) break;
            (void)snprintf(world->tokens[world->tokens_count++], sizeof world->tokens[0], "%.*s",
                           (int)token.bytes, (const char *)token.data);
        }
    }
    scarce_resume();
}

/* Runs a command and appends its reply to `text`. Returns the error of the reply. */
static int ask(struct world *world, const struct bel_command *command, struct text *text)
{
    struct question question = {
        .request = {.command = *command, .done = answered}, .world = world, .text = text};
    bel_backend_submit(world->backend, &question.request);
    for (int i = 0; i < TURNS_MAX && !question.is_answered; i++) {
        (void)bel_backend_turn(world->backend, world->now);
        if (!question.is_answered && command->verb == BEL_VERB_CLAIM) {
            CHECK(command->claim.wait_ms > 0);
            if (bel_backend_withdraw(world->backend, &question.request)) return BEL_EBUSY;
        }
    }
    CHECK(question.is_answered);
    return question.err;
}

static void must(struct world *world, const struct bel_command *command)
{
    int err = ask(world, command, NULL);
    CHECK_NOTE("%s: %s", bel_verb_name(command->verb), bel_error_text(err));
    CHECK(err == 0);
}

/* --- the world --- */

static void add(struct world *world, const char *topic, const char *id,
                struct bel_schedule_spec spec)
{
    spec.topic = view(topic);
    spec.id = view(id);
    must(world, &(struct bel_command){.verb = BEL_VERB_SCHEDULE, .schedule = spec});
}

/* Claims one timer. Returns its token. */
static struct bel_view lease(struct world *world, const char *topic)
{
    struct bel_view name = view(topic);
    must(world, &(struct bel_command){.verb = BEL_VERB_CLAIM,
                                      .claim = {.topics = &name,
                                                .topics_count = 1,
                                                .lease_ms = UINT64_C(2) * MINUTE,
                                                .worker = view("somebody")}});
    CHECK(world->tokens_count > 0);
    return view(world->tokens[world->tokens_count - 1]);
}

static void set(struct world *world, const char *topic, const char *name, const char *value)
{
    struct bel_setting setting = {view(name), view(value)};
    must(world,
         &(struct bel_command){
             .verb = BEL_VERB_CONFIGURE,
             .configure = {.topic = view(topic), .settings = &setting, .settings_count = 1}});
}

static void add_plans(struct world *world)
{
    add(world, "plans", "rate",
        (struct bel_schedule_spec){.payload = view("x"),
                                   .plan = {.kind = BEL_PLAN_EVERY, .rule = view("1m")}});
    add(world, "plans", "queued",
        (struct bel_schedule_spec){
            .payload = {big, BIG_BYTES},
            .group = view("g"),
            .plan = {.kind = BEL_PLAN_EVERY, .rule = view("30s"), .overlap = BEL_OVERLAP_QUEUE}});
    add(world, "plans", "daily",
        (struct bel_schedule_spec){.plan = {.kind = BEL_PLAN_CRON, .rule = view("5 4 * * *")}});
}

/* Adds finished timers of several kinds. */
static void add_ended(struct world *world)
{
    set(world, "ended", "retention", "1h");
    add(world, "ended", "dead-1", (struct bel_schedule_spec){.payload = {big, BIG_BYTES}});
    must(world,
         &(struct bel_command){
             .verb = BEL_VERB_FAIL,
             .fail = {.token = lease(world, "ended"), .reason = view("broken"), .dead = true}});
    add(world, "ended", "dead-2", (struct bel_schedule_spec){.group = view("g")});
    must(world, &(struct bel_command){.verb = BEL_VERB_FAIL,
                                      .fail = {.token = lease(world, "ended"), .dead = true}});
    add(world, "ended", "done-1", (struct bel_schedule_spec){0});
    struct bel_view token = lease(world, "ended");
    must(world, &(struct bel_command){.verb = BEL_VERB_ACK,
                                      .ack = {.tokens = &token,
                                              .tokens_count = 1,
                                              .has_result = true,
                                              .result = {big, BIG_BYTES}}});
    add(world, "ended", "gone-1", (struct bel_schedule_spec){0});
    struct bel_view id = view("gone-1");
    must(world, &(struct bel_command){.verb = BEL_VERB_CANCEL, .cancel = {view("ended"), &id, 1}});
    world->tokens_count = 0;
}

static int open_engine(struct world *world, const char *folder)
{
    struct bel_store *store;
    struct bel_store_options store_options = {
        .path = folder, .segment_bytes = SEGMENT_BYTES, .segment_count = 3};
    struct bel_engine_options options = {.now = world->now};
    int err = folder == NULL ? bel__store_open_memory(&store)
                             : bel__store_open(&store_options, &store, NULL);
    if (err) return err;
    err = bel__engine_open_on(&options, store, &world->entropy.entropy, &world->engine);
    if (err) bel__store_close(store);
    if (err) return err;
    world->backend = bel_engine_backend(world->engine);
    return 0;
}

static void build_in(struct world *world, const char *folder)
{
    *world = (struct world){
        .now = {.boot = {UINT64_C(1000) * NS_PER_MS}, .wall = {START}, .real = {NS_PER_MS}}};
    bel__entropy_seed(&world->entropy, 1);
    CHECK(open_engine(world, folder) == 0);
    world->settings[0] = (struct bel_setting){view("lease"), view("5s")};
    world->settings[1] = (struct bel_setting){view("retry"), view("exp(1s,2,1h) max(3)")};
    world->settings[2] = (struct bel_setting){view("deliver"), view("somewhere")};
    world->headers[0] = (struct bel_header){view("colour"), view("blue")};
    world->headers[1] = (struct bel_header){view("size"), view("large")};
    add_plans(world);
    add_ended(world);
    add(world, "work", "ready-1", (struct bel_schedule_spec){.payload = {big, BIG_BYTES}});
    add(world, "work", "ready-2",
        (struct bel_schedule_spec){
            .payload = view("y"), .headers = world->headers, .headers_count = 2});
    add(world, "work", "ready-3", (struct bel_schedule_spec){.group = view("one")});
    add(world, "work", "ready-4", (struct bel_schedule_spec){.group = view("two")});
    add(world, "work", "later-1",
        (struct bel_schedule_spec){.when = BEL_WHEN_IN, .delay_ms = HOUR});
    add(world, "work", "later-2",
        (struct bel_schedule_spec){
            .when = BEL_WHEN_AT, .at = {START + INT64_C(2) * MINUTE}, .expires_ms = MINUTE});
    add(world, "held", "held-1", (struct bel_schedule_spec){.payload = {big, BIG_BYTES}});
    add(world, "held", "held-2", (struct bel_schedule_spec){.group = view("one")});
    add(world, "held", "held-3", (struct bel_schedule_spec){.lease_ms = HOUR});
    for (int i = 0; i < 3; i++) {
        (void)lease(world, "held");
    }
    for (size_t i = 0; i < world->tokens_count; i++) {
        world->views[i] = view(world->tokens[i]);
    }
    must(world, &(struct bel_command){.verb = BEL_VERB_PAUSE, .target = {.topic = view("held")}});
    pass(world, UINT64_C(90) * SECOND); /* plans have rung */
}

static void build(struct world *world)
{
    build_in(world, NULL);
}

static void tear_down(struct world *world)
{
    bel_engine_close(world->engine);
}

/* --- the whole state as text --- */

static void add_topic(struct world *world, struct text *text, struct bel_view topic)
{
    struct bel_command command = {.verb = BEL_VERB_TOPIC, .target = {.topic = topic}};
    CHECK(ask(world, &command, text) == 0);
    command = (struct bel_command){.verb = BEL_VERB_LIST, .list = {.topic = topic, .count = 1000}};
    CHECK(ask(world, &command, text) == 0);
}

static void add_digest(struct world *world, struct text *text)
{
    static const char *const topics[] = {"plans", "ended", "work", "held", "new"};
    CHECK(ask(world, &(struct bel_command){.verb = BEL_VERB_TOPICS}, text) == 0);
    for (size_t i = 0; i < sizeof topics / sizeof topics[0]; i++) {
        struct bel_command command = {.verb = BEL_VERB_TOPIC, .target = {.topic = view(topics[i])}};
        if (ask(world, &command, NULL) == BEL_ENOTFOUND) continue;
        add_topic(world, text, view(topics[i]));
    }
}

static void digest(struct world *world, struct text *text)
{
    text_clear(text);
    add_digest(world, text);
}

/* --- the cases --- */

/* A case. `make` makes the command, which points into the world or to static data. */
struct test {
    const char *name;
    void (*make)(struct world *world, struct bel_command *out);
    bool is_partial; /* may do a part, and the rest when it is repeated */
};

#define SCHEDULE(title, where, which, ...)                                                         \
    static void title(struct world *world, struct bel_command *out)                                \
    {                                                                                              \
        (void)world;                                                                               \
        *out = (struct bel_command){                                                               \
            .verb = BEL_VERB_SCHEDULE,                                                             \
            .schedule = {.topic = view(where), .id = view(which), __VA_ARGS__}};                   \
    }

SCHEDULE(schedule_in_a_new_topic, "new", "a", .payload = view("x"))
SCHEDULE(schedule_large, "work", "a", .payload = {big, BIG_BYTES}, .when = BEL_WHEN_IN,
         .delay_ms = 5000)
SCHEDULE(schedule_in_a_new_group, "work", "a", .group = view("three"))
SCHEDULE(schedule_with_headers, "work", "a", .headers = world->headers, .headers_count = 2)
SCHEDULE(schedule_over_a_ready_one, "work", "ready-1", .payload = {big, BIG_BYTES})
SCHEDULE(schedule_over_a_leased_one, "held", "held-1", .payload = view("x"))
SCHEDULE(schedule_over_a_dead_one, "ended", "dead-1", .group = view("other"))
SCHEDULE(schedule_over_a_plan, "plans", "queued", .payload = view("x"))
SCHEDULE(schedule_unless_there, "work", "ready-1", .conflict = BEL_CONFLICT_KEEP)
SCHEDULE(schedule_a_rate, "plans", "a", .payload = {big, BIG_BYTES},
         .plan = {.kind = BEL_PLAN_EVERY, .rule = view("10s")})
SCHEDULE(schedule_a_cron_rule, "new", "a",
         .plan = {.kind = BEL_PLAN_CRON, .rule = view("*/5 * * * *")})

/* Defines a case of a verb that uses one member of the union. */
#define COMMAND(title, which, member, ...)                                                         \
    static void title(struct world *world, struct bel_command *out)                                \
    {                                                                                              \
        (void)world;                                                                               \
        *out = (struct bel_command){.verb = which, .member = {__VA_ARGS__}};                       \
    }

static struct bel_view some_ids[4], some_topics[3];

COMMAND(cancel_a_ready_one, BEL_VERB_CANCEL, cancel, view("work"), &some_ids[0], 1)
COMMAND(cancel_many, BEL_VERB_CANCEL, cancel, view("work"), some_ids, 4)
COMMAND(cancel_a_plan, BEL_VERB_CANCEL, cancel, view("plans"), &some_topics[2], 1)
COMMAND(reschedule_a_timer, BEL_VERB_RESCHEDULE, reschedule, .topic = view("work"),
        .id = view("ready-3"), .when = BEL_WHEN_IN, .delay_ms = UINT64_C(5) * HOUR)
COMMAND(reschedule_to_now, BEL_VERB_RESCHEDULE, reschedule, .topic = view("work"),
        .id = view("later-1"), .when = BEL_WHEN_IN)
COMMAND(reschedule_a_plan, BEL_VERB_RESCHEDULE, reschedule, .topic = view("plans"),
        .id = view("rate"), .when = BEL_WHEN_IN, .delay_ms = HOUR)
COMMAND(get_a_large_one, BEL_VERB_GET, target, view("work"), view("ready-1"))
COMMAND(get_an_ended_one, BEL_VERB_GET, target, view("ended"), view("done-1"))
COMMAND(get_a_plan, BEL_VERB_GET, target, view("plans"), view("queued"))
COMMAND(claim_one, BEL_VERB_CLAIM, claim, .topics = some_topics, .topics_count = 1)
COMMAND(claim_all, BEL_VERB_CLAIM, claim, .topics = some_topics, .topics_count = 2, .count = 100,
        .worker = view("somebody"))
COMMAND(claim_and_wait, BEL_VERB_CLAIM, claim, .topics = some_topics + 2, .topics_count = 1,
        .wait_ms = MINUTE)
COMMAND(ack_with_a_result, BEL_VERB_ACK, ack, .tokens = world->views, .tokens_count = 1,
        .has_result = true, .result = {big, BIG_BYTES})
COMMAND(ack_many, BEL_VERB_ACK, ack, .tokens = world->views, .tokens_count = 3)
COMMAND(fail_and_retry, BEL_VERB_FAIL, fail, .token = world->views[0], .reason = view("no"),
        .has_delay = true, .delay_ms = MINUTE)
COMMAND(fail_for_good, BEL_VERB_FAIL, fail, .token = world->views[1], .dead = true)
COMMAND(release_now, BEL_VERB_RELEASE, release, .token = world->views[1])
COMMAND(release_for_later, BEL_VERB_RELEASE, release, .token = world->views[0], .has_delay = true,
        .delay_ms = UINT64_C(3) * HOUR)
COMMAND(extend_one, BEL_VERB_EXTEND, extend, .token = world->views[2], .lease_ms = HOUR)
COMMAND(list_all, BEL_VERB_LIST, list, .topic = view("work"))
COMMAND(list_ended, BEL_VERB_LIST, list, .topic = view("ended"), .count = 2)
COMMAND(list_plans, BEL_VERB_LIST, list, .topic = view("plans"))
COMMAND(revive_one, BEL_VERB_REVIVE, target, view("ended"), view("dead-1"))
COMMAND(revive_all, BEL_VERB_REVIVE, target, view("ended"), {NULL, 0})
COMMAND(purge_ended, BEL_VERB_PURGE, purge, .topic = view("ended"))
COMMAND(purge_ready, BEL_VERB_PURGE, purge, .topic = view("work"), .has_state = true,
        .state = BEL_READY)
COMMAND(name_topics, BEL_VERB_TOPICS, target, {NULL, 0}, {NULL, 0})
COMMAND(describe_a_topic, BEL_VERB_TOPIC, target, view("ended"), {NULL, 0})
COMMAND(configure_a_topic, BEL_VERB_CONFIGURE, configure, .topic = view("work"),
        .settings = world->settings, .settings_count = 3)
COMMAND(configure_a_new_topic, BEL_VERB_CONFIGURE, configure, .topic = view("new"),
        .settings = world->settings, .settings_count = 3)
COMMAND(pause_a_topic, BEL_VERB_PAUSE, target, view("work"), {NULL, 0})
COMMAND(pause_a_new_topic, BEL_VERB_PAUSE, target, view("new"), {NULL, 0})
COMMAND(resume_a_topic, BEL_VERB_RESUME, target, view("held"), {NULL, 0})
COMMAND(explain_a_timer, BEL_VERB_EXPLAIN, target, view("work"), view("ready-4"))
COMMAND(explain_a_plan, BEL_VERB_EXPLAIN, target, view("plans"), view("queued"))
COMMAND(count_hours, BEL_VERB_AGENDA, agenda, .topic = view("plans"))
COMMAND(count_minutes, BEL_VERB_AGENDA, agenda, .step_ms = MINUTE)

#define TEST(function)                                                                             \
    {                                                                                              \
#        function, function, false                                                                 \
    }
#define PARTS(function)                                                                            \
    {                                                                                              \
#        function, function, true                                                                  \
    }

static const struct test tests[] = {
    TEST(schedule_in_a_new_topic),
    TEST(schedule_large),
    TEST(schedule_in_a_new_group),
    TEST(schedule_with_headers),
    TEST(schedule_over_a_ready_one),
    TEST(schedule_over_a_leased_one),
    TEST(schedule_over_a_dead_one),
    TEST(schedule_over_a_plan),
    TEST(schedule_unless_there),
    TEST(schedule_a_rate),
    TEST(schedule_a_cron_rule),
    TEST(cancel_a_ready_one),
    PARTS(cancel_many),
    PARTS(cancel_a_plan),
    TEST(reschedule_a_timer),
    TEST(reschedule_to_now),
    TEST(reschedule_a_plan),
    TEST(get_a_large_one),
    TEST(get_an_ended_one),
    TEST(get_a_plan),
    TEST(claim_one),
    PARTS(claim_all),
    TEST(claim_and_wait),
    TEST(ack_with_a_result),
    PARTS(ack_many),
    TEST(fail_and_retry),
    TEST(fail_for_good),
    TEST(release_now),
    TEST(release_for_later),
    TEST(extend_one),
    TEST(list_all),
    TEST(list_ended),
    TEST(list_plans),
    TEST(revive_one),
    PARTS(revive_all),
    PARTS(purge_ended),
    PARTS(purge_ready),
    TEST(name_topics),
    TEST(describe_a_topic),
    TEST(configure_a_topic),
    TEST(configure_a_new_topic),
    TEST(pause_a_topic),
    TEST(pause_a_new_topic),
    TEST(resume_a_topic),
    TEST(explain_a_timer),
    TEST(explain_a_plan),
    TEST(count_hours),
    TEST(count_minutes),
};

/* The expected results of a case. */
struct want {
    struct text before, reply, after, later;
    int err;
};

/* Prints the lines in which two texts differ. */
static void show_lines(const char *title, const struct text *text, const struct text *other)
{
    for (const char *line = text->bytes; line != NULL && *line != 0;) {
        size_t bytes = strcspn(line, "\n");
        const char *found =
            other->bytes == NULL ? NULL : memmem(other->bytes, other->count, line, bytes);
        if (found == NULL) (void)fprintf(stderr, "%s %.*s\n", title, (int)bytes, line);
        line += bytes + (line[bytes] != 0);
    }
}

static const char *running; /* the case */

static void compare(const struct text *got, const struct text *want, const char *title)
{
    if (text_is_same(got, want)) return;
    show_lines("got ", got, want);
    show_lines("want", want, got);
    CHECK_NOTE("%s: %s", running, title);
    CHECK(false);
}

/* Lets time pass, and claims what is due. */
static void go_on(struct world *world, struct text *out)
{
    static const char *const topics[] = {"work", "new", "plans", "ended", "held"};
    text_clear(out);
    out->is_coarse = true;
    pass(world, SECOND);
    (void)bel_backend_turn(world->backend, world->now);
    for (size_t i = 0; i < sizeof topics / sizeof topics[0]; i++) {
        struct bel_view name = view(topics[i]);
        (void)ask(
            world,
            &(struct bel_command){.verb = BEL_VERB_CLAIM,
                                  .claim = {.topics = &name, .topics_count = 1, .count = 100}},
            out);
    }
    add_digest(world, out);
}

static void learn(const struct test *test, struct want *want)
{
    struct world world;
    struct bel_command command;
    build(&world);
    digest(&world, &want->before);
    test->make(&world, &command);
    want->err = ask(&world, &command, &want->reply);
    CHECK(want->err ==
          (command.verb == BEL_VERB_CLAIM && command.claim.wait_ms > 0 ? BEL_EBUSY : 0));
    digest(&world, &want->after);
    go_on(&world, &want->later);
    tear_down(&world);
}

static void judge(const struct test *test, struct world *world, const struct bel_command *command,
                  int err, const struct text *reply, const struct want *want)
{
    struct text now = {0}, again = {0};
    digest(world, &now);
    if (err == want->err) {
        if (!test->is_partial) {
            compare(reply, &want->reply, "another answer");
            compare(&now, &want->after, "another outcome");
        }
    } else {
        CHECK(err == BEL_ENOMEM || err == BEL_EFULL);
        if (!test->is_partial) compare(&now, &want->before, "refused, but changed");
    }
    if (err != want->err || (test->is_partial && !text_is_same(&now, &want->after))) {
        int second = ask(world, command, &again);
        CHECK(second == want->err);
        digest(world, &now);
        if (!test->is_partial) compare(&again, &want->reply, "another answer the second time");
        compare(&now, &want->after, "another outcome the second time");
    }
    go_on(world, &again);
    compare(&again, &want->later, "it goes on differently");
    text_free(&now);
    text_free(&again);
}

/* Runs a case with failing allocations. Returns false if it makes fewer than `first`. */
static bool run_failing(const struct test *test, uint64_t first, bool is_for_good,
                        const struct want *want)
{
    struct world world;
    struct bel_command command;
    struct text reply = {0}, unchanged = {0};
    struct question question = {.world = &world, .text = &reply};
    build(&world);
    digest(&world, &unchanged);
    compare(&unchanged, &want->before, "built differently");
    test->make(&world, &command);
    question.request = (struct bel_request){.command = command, .done = answered};
    bel_backend_submit(world.backend, &question.request);
    scarce_begin(first, is_for_good);
    (void)bel_backend_turn(world.backend, world.now);
    uint64_t failures = scarce_end();
    for (int i = 0; i < TURNS_MAX && !question.is_answered; i++) {
        if (command.verb == BEL_VERB_CLAIM && command.claim.wait_ms > 0) break;
        (void)bel_backend_turn(world.backend, world.now);
    }
    if (!question.is_answered) {
        CHECK(bel_backend_withdraw(world.backend, &question.request));
        question.err = BEL_EBUSY;
    }
    CHECK_NOTE("%s", running);
    judge(test, &world, &command, question.err, &reply, want);
    tear_down(&world);
    text_free(&reply);
    text_free(&unchanged);
    return failures > 0;
}

static void run_test(const struct test *test)
{
    struct want want = {0};
    uint64_t count = 0;
    char name[128] = "";
    running = name;
    learn(test, &want);
    for (int is_for_good = 0; is_for_good < 2; is_for_good++) {
        for (uint64_t first = 1;; first++) {
            (void)snprintf(name, sizeof name, "%s, allocation %" PRIu64 "%s", test->name, first,
                           is_for_good ? " and all behind it" : "");
            CHECK(first < FAILURES_MAX);
            if (!run_failing(test, first, is_for_good, &want)) break;
            count++;
        }
    }
    printf("ok   %s (%" PRIu64 " failures)\n", test->name, count);
    text_free(&want.before);
    text_free(&want.reply);
    text_free(&want.after);
    text_free(&want.later);
}

/* --- time --- */

/* Lets time pass: leases end, timers become due, plans ring, timers expire and are purged. */
static void pass_in_turns(struct world *world, uint64_t first, bool is_for_good, uint64_t *out)
{
    struct bel_next next = {0};
    pass(world, UINT64_C(607) * SECOND); /* so that no time is close to being a misfire */
    scarce_begin(first, is_for_good);
    (void)bel_backend_turn(world->backend, world->now);
    *out = scarce_end();
    for (int i = 0; i < TURNS_MAX; i++) {
        next = bel_backend_turn(world->backend, world->now);
        if (i % 20 == 19) pass(world, 100); /* until the engine retries what had no memory */
    }
    (void)next;
}

static void time_passes(void)
{
    struct text want = {.is_coarse = true}, got = {.is_coarse = true};
    struct world world;
    uint64_t failures;
    char name[128];
    running = name;
    for (int is_for_good = 0; is_for_good < 2; is_for_good++) {
        for (uint64_t first = 0;; first++) {
            (void)snprintf(name, sizeof name, "allocation %" PRIu64 "%s", first,
                           is_for_good ? " and all behind it" : "");
            build(&world);
            pass_in_turns(&world, first, is_for_good, &failures);
            digest(&world, first == 0 ? &want : &got);
            if (first > 0) compare(&got, &want, "time has passed differently");
            tear_down(&world);
            if (first > 0 && failures == 0) break;
        }
    }
    text_free(&want);
    text_free(&got);
}

/* --- several requests --- */

/* A claim waits, and a timer is scheduled while allocations fail. The claim gets the timer, or
 * fails with BEL_ENOMEM, and then another claim gets it. */
static void wait_failing(struct world *world, uint64_t first, bool is_for_good, uint64_t *out)
{
    struct text text = {0};
    struct bel_command command;
    build(world);
    schedule_in_a_new_topic(world, &command);
    struct question claim = {.world = world}, schedule = {.world = world, .text = &text};
    schedule.request = (struct bel_request){.command = command, .done = answered};
    struct bel_view name = view("new");
    claim.request = (struct bel_request){
        .command = {.verb = BEL_VERB_CLAIM,
                    .claim = {.topics = &name, .topics_count = 1, .wait_ms = MINUTE}},
        .done = answered};
    bel_backend_submit(world->backend, &claim.request);
    (void)bel_backend_turn(world->backend, world->now);
    bel_backend_submit(world->backend, &schedule.request);
    scarce_begin(first, is_for_good);
    (void)bel_backend_turn(world->backend, world->now);
    *out = scarce_end();
    pass(world, SECOND);
    (void)bel_backend_turn(world->backend, world->now);
    CHECK_NOTE("allocation %" PRIu64 "%s", first, is_for_good ? " and all behind it" : "");
    CHECK(schedule.is_answered && (schedule.err == 0 || schedule.err == BEL_ENOMEM));
    if (schedule.err != 0) {
        CHECK(!claim.is_answered);
        CHECK(bel_backend_withdraw(world->backend, &claim.request));
    } else {
        CHECK(claim.is_answered && (claim.err == BEL_ENOMEM || claim.deliveries == 1));
        if (claim.err != 0) (void)lease(world, "new");
    }
    tear_down(world);
    text_free(&text);
}

static void a_claim_that_waits_is_served_or_told(void)
{
    struct world world;
    for (int is_for_good = 0; is_for_good < 2; is_for_good++) {
        uint64_t failures = 1;
        for (uint64_t first = 1; failures > 0; first++) {
            wait_failing(&world, first, is_for_good, &failures);
        }
    }
}

/* Opens an engine on disk. LMDB's own allocations do not fail in this test. */
static void opening_fails_and_can_be_tried_again(void)
{
    struct text want = {0}, got = {0};
    struct world world, again;
    char folder[SCENE_PATH_BYTES];
    uint64_t failed = 0;
    scene_make(folder);
    build_in(&world, folder);
    digest(&world, &want);
    tear_down(&world);
    for (int is_for_good = 0; is_for_good < 2; is_for_good++) {
        for (uint64_t first = 1;; first++) {
            again = (struct world){.now = world.now};
            bel__entropy_seed(&again.entropy, 2);
            scarce_begin(first, is_for_good);
            int err = open_engine(&again, folder);
            bool is_enough = scarce_end() == 0;
            CHECK_NOTE("allocation %" PRIu64 ": %s", first, bel_error_text(err));
            CHECK(err == 0 || err == BEL_ENOMEM);
            failed += err != 0;
            if (err != 0) continue;
            digest(&again, &got);
            running = "opening";
            compare(&got, &want, "another one was opened");
            tear_down(&again);
            if (is_enough) break;
        }
    }
    CHECK(failed > 20);
    scene_remove(folder);
    text_free(&want);
    text_free(&got);
}

int main(int argc, char **argv)
{
    const char *only = argc > 1 ? argv[1] : "";
    memset(big, 'b', sizeof big);
    some_ids[0] = view("ready-1");
    some_ids[1] = view("later-1");
    some_ids[2] = view("ready-4");
    some_ids[3] = view("later-2");
    some_topics[0] = view("work");
    some_topics[1] = view("plans");
    some_topics[2] = view("queued");
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++) {
        if (strstr(tests[i].name, only) != NULL) run_test(&tests[i]);
    }
    if (only[0] != 0) return 0;
    RUN(time_passes);
    RUN(a_claim_that_waits_is_served_or_told);
    RUN(opening_fails_and_can_be_tried_again);
    return 0;
}
