/* SPDX-License-Identifier: MIT */

/* Line 1 of EXPLAIN is the first reason that holds, in the order of docs/SEMANTICS.md. Each test
 * takes the reasons away, one after the other. */
#include "../ask.h"
#include "../check.h"
#include "belfry/engine.h"
#include "core/units.h"

#include <stdio.h>
#include <string.h>

enum {
    READY_MAX = 4,
};

#define START INT64_C(1767225600000)

static struct bel_engine *engine;
static struct bel_now now;

static void set_up(uint32_t ready_max)
{
    now = (struct bel_now){{1000000}, {START}, {1}, 0};
    struct bel_engine_options options = {.now = now, .ready_max = ready_max};
    CHECK(bel_engine_open(&options, &engine, NULL) == 0);
}

static struct reply_seen ask(struct bel_command command)
{
    struct bel_next next;
    struct reply_seen seen = ask_backend(bel_engine_backend(engine), now, &next, command);
    CHECK_NOTE("%s", seen.why);
    CHECK(seen.err == 0);
    return seen;
}

/* Lets time pass, and the engine come to rest. */
static void pass(uint64_t ms)
{
    struct bel_next next;
    now.boot.ns += ms * NS_PER_MS;
    now.wall.ms += (int64_t)ms;
    do {
        next = bel_backend_turn(bel_engine_backend(engine), now);
    } while (next.due.ns <= now.boot.ns);
}

static void press(uint64_t used)
{
    struct bel_pressure_sample sample = {.memory = {.used = used, .limit = 1000}};
    (void)bel_engine_pressure(engine, &sample);
}

static void submit(const char *text)
{
    struct bel_command command = {.verb = BEL_VERB_JOB_SUBMIT};
    command.job_submit.text = view(text);
    (void)ask(command);
}

static void turn_job(enum bel_verb verb, const char *id)
{
    struct bel_command command = {.verb = verb};
    command.job_target.id = view(id);
    (void)ask(command);
}

static void turn_topic(enum bel_verb verb)
{
    (void)ask((struct bel_command){.verb = verb, .target = {.topic = view("work")}});
}

static void configure(const char *name, const char *value)
{
    struct bel_setting setting = {view(name), view(value)};
    (void)ask(
        (struct bel_command){.verb = BEL_VERB_CONFIGURE, .configure = {view("work"), &setting, 1}});
}

static void schedule(const char *id, const char *group)
{
    struct bel_command command = {.verb = BEL_VERB_SCHEDULE};
    command.schedule =
        (struct bel_schedule_spec){.topic = view("work"), .id = view(id), .group = view(group)};
    (void)ask(command);
}

static struct reply_seen claim(size_t count)
{
    struct bel_view topic = view("work");
    struct bel_command command = {.verb = BEL_VERB_CLAIM};
    command.claim = (struct bel_claim){
        .topics = &topic, .topics_count = 1, .count = (uint32_t)count, .lease_ms = 3600000};
    struct reply_seen seen = ask(command);
    CHECK_EQ(seen.deliveries, count);
    return seen;
}

static void ack(const char *token)
{
    struct bel_view tokens = view(token);
    struct bel_command command = {.verb = BEL_VERB_ACK, .ack = {&tokens, 1, false, {0}}};
    CHECK(ask(command).count == 1);
}

static void limit(enum bel_limit_action action, const char *resource)
{
    struct bel_command command = {.verb = BEL_VERB_LIMIT};
    command.limit = (struct bel_limit){.action = action, .resource = view(resource)};
    command.limit.has_until = action == BEL_LIMIT_SET;
    command.limit.until_ms = 60000;
    (void)ask(command);
}

/* --- the reason --- */

static struct {
    char word[32];
    bool is_done;
} told;

static void on_told(struct bel_request *request, const struct bel_reply *reply)
{
    (void)request;
    CHECK(reply->err == 0 && reply->names.reason != NULL);
    (void)snprintf(told.word, sizeof told.word, "%s", reply->names.reason->word);
    told.is_done = true;
}

static void expect(const char *id, const char *word)
{
    struct bel_request request = {.command = {.verb = BEL_VERB_EXPLAIN}, .done = on_told};
    request.command.target = (struct bel_target){view("work"), view(id)};
    told.is_done = false;
    bel_backend_submit(bel_engine_backend(engine), &request);
    while (!told.is_done) {
        (void)bel_backend_turn(bel_engine_backend(engine), now);
    }
    CHECK_NOTE("%s: %s, wanted %s", id, told.word, word);
    CHECK(strcmp(told.word, word) == 0);
}

/* --- the tests --- */

static void a_task_has_one_reason_after_the_other(void)
{
    set_up(0);
    submit(
        "{\"id\":\"j\",\"pace\":\"10s\",\"tasks\":["
        "{\"id\":\"a\",\"topic\":\"work\"},"
        "{\"id\":\"b\",\"topic\":\"work\",\"after\":[\"a\"],\"in\":\"5s\",\"resource\":\"api/x\"}"
        "]}");
    configure("concurrency", "1");
    expect("j/b", "blocked");
    struct reply_seen first = claim(1);
    turn_job(BEL_VERB_JOB_PAUSE, "j");
    turn_topic(BEL_VERB_PAUSE);
    limit(BEL_LIMIT_SET, "api");
    limit(BEL_LIMIT_SET, "*");
    expect("j/a", "leased");
    expect("j/b", "blocked");
    ack(first.token);
    expect("j/a", "ended");
    expect("j/b", "time");
    pass(5000);
    expect("j/b", "job paused");
    turn_job(BEL_VERB_JOB_RESUME, "j");
    expect("j/b", "topic paused");
    turn_topic(BEL_VERB_RESUME);
    expect("j/b", "pacing");
    pass(5000);
    expect("j/b", "limited");
    limit(BEL_LIMIT_CLEAR, "api");
    expect("j/b", "*");
    limit(BEL_LIMIT_CLEAR, "*");
    expect("j/b", "no worker");
    schedule("other", "");
    (void)claim(1); /* the job has had its turn */
    expect("j/b", "topic concurrency");
    bel_engine_close(engine);
}

static void pressure_comes_before_the_resources(void)
{
    set_up(0);
    submit("{\"id\":\"j\",\"tasks\":[{\"id\":\"a\",\"topic\":\"work\"},"
           "{\"id\":\"b\",\"topic\":\"work\",\"resource\":\"api\"}]}");
    press(600);
    (void)claim(1);
    limit(BEL_LIMIT_SET, "api");
    expect("j/b", "pressure");
    pass(2000);
    expect("j/b", "limited");
    bel_engine_close(engine);
}

/* Of four slots and three groups, a group may have two. */
static void a_share_that_has_its_leases_says_so(void)
{
    set_up(0);
    configure("concurrency", "4");
    schedule("a0", "a");
    schedule("a1", "a");
    schedule("a2", "a");
    schedule("b0", "b");
    schedule("c0", "c");
    struct reply_seen first = claim(1);
    (void)claim(1);
    CHECK(strcmp(first.id, "a0") == 0);
    expect("a1", "leased");
    expect("a2", "share");
    expect("b0", "no worker");
    ack(first.token);
    expect("a2", "no worker");
    bel_engine_close(engine);
}

static void a_timer_that_is_not_in_memory_says_so(void)
{
    struct bel_command command = {.verb = BEL_VERB_SCHEDULE};
    set_up(READY_MAX);
    for (int i = 0; i < 2 * READY_MAX; i++) {
        char id[8];
        (void)snprintf(id, sizeof id, "t%d", i);
        command.schedule = (struct bel_schedule_spec){
            .topic = view("work"), .id = view(id), .when = BEL_WHEN_IN, .delay_ms = 10};
        (void)ask(command);
    }
    pass(10);
    expect("t0", "no worker");
    expect("t7", "not loaded");
    turn_topic(BEL_VERB_PAUSE);
    expect("t7", "topic paused");
    turn_topic(BEL_VERB_RESUME);
    (void)claim(READY_MAX);
    pass(0);
    expect("t7", "no worker");
    bel_engine_close(engine);
}

int main(void)
{
    RUN(a_task_has_one_reason_after_the_other);
    RUN(pressure_comes_before_the_resources);
    RUN(a_share_that_has_its_leases_says_so);
    RUN(a_timer_that_is_not_in_memory_says_so);
    return 0;
}
