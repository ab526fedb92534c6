/* SPDX-License-Identifier: MIT */

/*
 * Resources with many timers: what is parked uses up neither room nor turns.
 */
#include "engine/engine.h"

#include "../ask.h"
#include "../check.h"
#include "../engine_valid.h"
#include "core/units.h"

#include <string.h>
#include <time.h>

enum {
    READY_MAX = 100,
    MANY = 1100,
    GROUPS = 100000,
    TURNS_MAX = 10000,
    HOUR_MS = 60 * 60 * 1000,
};

#define START INT64_C(1767225600000)

static struct bel_engine *engine;
static struct bel_now now;
static struct bel_next next;
static uint64_t turns, longest_ns;

static void open_engine(uint32_t ready_max)
{
    struct bel_store *store;
    now = (struct bel_now){.boot = {1000000}, .wall = {START}, .real = {1}};
    struct bel_engine_options options = {.ready_max = ready_max, .now = now};
    CHECK(bel__store_open_memory(&store) == 0);
    CHECK(bel__engine_open_on(&options, store, bel__entropy_system(), &engine) == 0);
}

static void close_engine(void)
{
    const char *fault = engine_fault(engine);
    CHECK_NOTE("%s", fault == NULL ? "" : fault);
    CHECK(fault == NULL);
    bel_engine_close(engine);
}

static uint64_t clock_ns(void)
{
    struct timespec time;
    CHECK(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time) == 0);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static void turn(void)
{
    uint64_t before = clock_ns();
    next = bel_backend_turn(bel_engine_backend(engine), now);
    uint64_t took = clock_ns() - before;
    if (took > longest_ns) longest_ns = took;
    turns++;
}

/* Takes turns until nothing is due. */
static void settle(void)
{
    int count = 0;
    do {
        turn();
        CHECK(++count < TURNS_MAX);
    } while (next.due.ns <= now.boot.ns);
}

static void advance(uint64_t ms)
{
    now.boot.ns += ms * NS_PER_MS;
    now.wall.ms += (int64_t)ms;
    settle();
}

struct answer {
    bool is_there;
    int err;
    size_t count;
    char ids[READY_MAX][BEL_ID_BYTES + 1];
    char tokens[READY_MAX][BEL_TOKEN_BYTES_MAX + 1];
};

static void on_reply(struct bel_request *request, const struct bel_reply *reply)
{
    struct answer *answer = request->user;
    answer->is_there = true;
    answer->err = reply->err;
    if (request->command.verb != BEL_VERB_CLAIM || reply->err) return;
    answer->count = reply->deliveries.count;
    CHECK(answer->count <= READY_MAX);
    for (size_t i = 0; i < answer->count; i++) {
        const struct bel_delivery *delivery = &reply->deliveries.items[i];
        (void)snprintf(answer->ids[i], sizeof answer->ids[i], "%.*s", (int)delivery->id.bytes,
                       (const char *)delivery->id.data);
        (void)snprintf(answer->tokens[i], sizeof answer->tokens[i], "%.*s",
                       (int)delivery->token.bytes, (const char *)delivery->token.data);
    }
}

static void do_command(const struct bel_command *command, struct answer *out)
{
    struct bel_request request = {.command = *command, .done = on_reply, .user = out};
    *out = (struct answer){0};
    bel_backend_submit(bel_engine_backend(engine), &request);
    for (int i = 0; !out->is_there; i++) {
        turn();
        CHECK(i < TURNS_MAX);
    }
    CHECK(out->err == 0);
}

static void schedule(const char *id, const char *group, const char *resource, uint64_t delay_ms)
{
    static struct answer answer;
    struct bel_command command = {.verb = BEL_VERB_SCHEDULE};
    command.schedule = (struct bel_schedule_spec){.topic = view("mail"),
                                                  .id = view(id),
                                                  .group = view(group),
                                                  .resource = view(resource),
                                                  .when = BEL_WHEN_IN,
                                                  .delay_ms = delay_ms};
    do_command(&command, &answer);
}

static size_t claim(uint32_t count, struct answer *out)
{
    struct bel_view topic = view("mail");
    struct bel_command command = {.verb = BEL_VERB_CLAIM};
    command.claim = (struct bel_claim){.topics = &topic, .topics_count = 1, .count = count};
    do_command(&command, out);
    return out->count;
}

static void ack(const char *token)
{
    static struct answer answer;
    struct bel_view tokens = view(token);
    struct bel_command command = {.verb = BEL_VERB_ACK};
    command.ack = (struct bel_ack){.tokens = &tokens, .tokens_count = 1};
    do_command(&command, &answer);
}

static void limit(struct bel_limit what)
{
    static struct answer answer;
    struct bel_command command = {.verb = BEL_VERB_LIMIT};
    command.limit = what;
    do_command(&command, &answer);
}

static const struct bel_picker *picker(void)
{
    return &bel__topic_find(&engine->topics, view("mail"))->picker;
}

/* More timers of a closed resource than fit into memory are due before another timer. */
static void a_closed_resource_does_not_use_up_ready_max(void)
{
    static struct answer answer;
    static bool seen[MANY];
    size_t delivered = 0;
    memset(seen, 0, sizeof seen);
    open_engine(READY_MAX);
    limit((struct bel_limit){
        .action = BEL_LIMIT_SET, .resource = view("api"), .has_until = true, .until_ms = HOUR_MS});
    for (unsigned i = 0; i < MANY; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "%u", i);
        schedule(id, i % 2 == 0 ? "g" : "", "api/search", 1000 + i);
    }
    schedule("other", "", "", 5000);
    advance(6000);
    for (int i = 0; i < 3 && claim(1, &answer) == 0; i++) {
        settle();
    }
    CHECK(answer.count == 1 && strcmp(answer.ids[0], "other") == 0);
    ack(answer.tokens[0]);
    CHECK(bel__picker_count(picker()) <= UINT64_C(3) * READY_MAX);
    CHECK_EQ(claim(1, &answer), 0);

    limit((struct bel_limit){.action = BEL_LIMIT_CLEAR, .resource = view("api")});
    for (int round = 0; delivered < MANY; round++) {
        CHECK(round < TURNS_MAX);
        settle();
        claim(READY_MAX, &answer);
        for (size_t i = 0; i < answer.count; i++) {
            unsigned long number = strtoul(answer.ids[i], NULL, 10);
            CHECK(number < MANY && !seen[number]);
            seen[number] = true;
            delivered++;
            ack(answer.tokens[i]);
        }
    }
    close_engine();
}

/* A hundred thousand groups wait for a resource, and are delivered as it allows. */
static void many_groups_of_a_resource_wait_in_slices(void)
{
    static struct answer answer;
    open_engine(0);
    limit((struct bel_limit){.action = BEL_LIMIT_SET,
                             .resource = view("api"),
                             .has_concurrency = true,
                             .concurrency = 1});
    for (unsigned i = 0; i < GROUPS; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "%u", i);
        schedule(name, name, "api", 0);
    }
    turns = longest_ns = 0;
    uint64_t begun = clock_ns();
    for (unsigned i = 0; i < 200; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "%u", i);
        CHECK_EQ(claim(1, &answer), 1);
        CHECK(strcmp(answer.ids[0], name) == 0); /* in the order of their heads */
        static struct answer none;
        CHECK_EQ(claim(1, &none), 0);
        ack(answer.tokens[0]);
    }
    uint64_t took = clock_ns() - begun;
    (void)printf("# 200 deliveries to %d groups: %llu turns, %llu us, longest turn %llu us\n",
                 GROUPS, (unsigned long long)turns, (unsigned long long)(took / 1000),
                 (unsigned long long)(longest_ns / 1000));
    close_engine();
}

int main(void)
{
    RUN(a_closed_resource_does_not_use_up_ready_max);
    RUN(many_groups_of_a_resource_wait_in_slices);
    return 0;
}
