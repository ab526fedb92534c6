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
#include <unistd.h>

enum {
    READY_MAX = 100,
    MANY = 1100,
    GROUPS = 100000,
    GROUPS_SOME = 17000, /* more than a turn parks */
    TURNS_MAX = 10000,
    HOUR_MS = 60 * 60 * 1000,
    LONG_MS = 2 * HOUR_MS,
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
    uint64_t parked; /* of LIMIT */
    char ids[READY_MAX][BEL_ID_BYTES + 1];
    char tokens[READY_MAX][BEL_TOKEN_BYTES_MAX + 1];
};

static void on_reply(struct bel_request *request, const struct bel_reply *reply)
{
    struct answer *answer = request->user;
    answer->is_there = true;
    answer->err = reply->err;
    if (request->command.verb == BEL_VERB_LIMIT && reply->limits.count == 1) {
        answer->parked = reply->limits.items[0].parked;
    }
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

static void fail(const char *token, enum bel_fail_kind kind)
{
    static struct answer answer;
    struct bel_command command = {.verb = BEL_VERB_FAIL};
    command.fail = (struct bel_fail){.token = view(token), .kind = kind};
    do_command(&command, &answer);
}

static uint64_t parked_at(const char *resource)
{
    const struct bel_resource *found = bel__resource_find(engine, view(resource));
    CHECK(found != NULL);
    return found->gate.parked_timers;
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

/* How a resource is closed. */
enum way {
    BY_TIME,
    BY_CONCURRENCY,
    BY_RATE,
    BY_BREAKER,
    WAYS
};

/* Closes a resource, of which a timer can be delivered. */
static void close_resource(enum way way)
{
    static struct answer answer;
    struct bel_limit what = {.action = BEL_LIMIT_SET,
                             .resource = view("closed"),
                             .has_until = way == BY_TIME,
                             .until_ms = LONG_MS,
                             .has_concurrency = way == BY_CONCURRENCY,
                             .concurrency = 1,
                             .has_rate = way == BY_RATE,
                             .rate_count = 1,
                             .rate_ms = LONG_MS,
                             .has_breaker = way == BY_BREAKER,
                             .breaker_failures = 1,
                             .breaker_open_ms = LONG_MS};
    limit(what);
    if (way == BY_TIME) return;
    CHECK_EQ(claim(1, &answer), 1);
    if (way == BY_BREAKER) fail(answer.tokens[0], BEL_FAIL_RESOURCE);
}

static void schedule_groups(unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "%u", i);
        schedule(name, name, "closed", 0);
    }
}

/* How a claim comes to the timer that can be delivered. */
enum claiming {
    AT_ONCE,
    WAITS,
    WAITS_BEFORE,
    CLAIMINGS
};

/* Claims with a timer in the topic that needs no resource. It must be delivered without waiting. */
static void expect_open(enum claiming claiming)
{
    static struct answer answer;
    struct bel_view topic = view("mail");
    struct bel_request request = {.done = on_reply, .user = &answer};
    request.command.verb = BEL_VERB_CLAIM;
    request.command.claim =
        (struct bel_claim){.topics = &topic, .topics_count = 1, .count = 1, .wait_ms = 3000};
    if (claiming == AT_ONCE) request.command.claim.wait_ms = 0;
    if (claiming != WAITS_BEFORE) schedule("open", "", "", 0);
    answer = (struct answer){0};
    bel_backend_submit(bel_engine_backend(engine), &request);
    settle();
    if (claiming == WAITS_BEFORE) {
        CHECK(!answer.is_there);
        schedule("open", "", "", 0);
        settle();
    }
    CHECK(answer.is_there && answer.err == 0 && answer.count == 1);
    CHECK(strcmp(answer.ids[0], "open") == 0);
}

/* A topic has more groups with a resource than a turn parks when the resource is closed: claims
 * meet them. */
static void closed_groups_do_not_hide_an_open_timer(void)
{
    turns = longest_ns = 0;
    for (unsigned i = 0; i < WAYS * CLAIMINGS; i++) {
        CHECK_NOTE("way %u, claiming %u", i % WAYS, i / WAYS);
        open_engine(0);
        schedule_groups(GROUPS_SOME + 1);
        close_resource(i % WAYS);
        expect_open(i / WAYS);
        CHECK(parked_at("closed") >= GROUPS_SOME);
        close_engine();
    }
    (void)printf("# longest turn %llu us\n", (unsigned long long)(longest_ns / 1000));
}

/* The resource is closed when the timers become ready: no claim meets them. */
static void a_closed_resource_parks_what_becomes_ready(void)
{
    for (enum way way = 0; way < WAYS; way++) {
        CHECK_NOTE("way %d", (int)way);
        open_engine(0);
        schedule("first", "first", "closed", 0);
        close_resource(way);
        schedule_groups(GROUPS_SOME);
        CHECK(parked_at("closed") >= GROUPS_SOME);
        CHECK(bel__picker_count(picker()) - bel__picker_parked(picker()) <= 1); /* the first */
        turns = 0;
        expect_open(WAITS);
        CHECK(turns <= 3);
        close_engine();
    }
}

/* The first turns of a waiting claim do not end its search, however many they are. */
static void a_waiting_claim_searches_on(void)
{
    open_engine(0);
    schedule("first", "first", "closed", 0);
    schedule_groups(GROUPS);
    close_resource(BY_TIME);
    turns = longest_ns = 0;
    expect_open(WAITS);
    (void)printf("# %d groups: %llu turns, longest turn %llu us\n", GROUPS,
                 (unsigned long long)turns, (unsigned long long)(longest_ns / 1000));
    CHECK(turns > 3); /* in slices */
    close_engine();
}

/* Returns how many parked timers LIMIT shows. */
static uint64_t shown_at(const char *resource)
{
    static struct answer answer;
    struct bel_command command = {.verb = BEL_VERB_LIMIT};
    command.limit = (struct bel_limit){.action = BEL_LIMIT_SET, .resource = view(resource)};
    do_command(&command, &answer);
    return answer.parked;
}

/* LIMIT shows the timers that wait before a claim has met them. */
static void parked_timers_are_counted_at_once(void)
{
    static struct answer answer;
    char folder[] = "test_resources.XXXXXX", command[64];
    CHECK(mkdtemp(folder) != NULL);
    now = (struct bel_now){.boot = {1000000}, .wall = {START}, .real = {1}};
    struct bel_engine_options options = {.folder = folder, .now = now};
    CHECK(bel_engine_open(&options, &engine, NULL) == 0);
    schedule("1", "", "api/search", 0);
    schedule("2", "", "api/search", 0);
    schedule("3", "g", "api", 0);
    CHECK_EQ(shown_at("api/search"), 0);
    limit((struct bel_limit){
        .action = BEL_LIMIT_SET, .resource = view("api"), .has_until = true, .until_ms = 1});
    CHECK_EQ(shown_at("api"), 3); /* that were ready before, also below it */
    CHECK_EQ(shown_at("api/search"), 0);
    advance(1);
    CHECK_EQ(shown_at("api"), 0);
    CHECK_EQ(claim(1, &answer), 1);
    fail(answer.tokens[0], BEL_FAIL_LIMITED);
    CHECK_EQ(shown_at("api/search"), 2); /* with the other one of its line */
    schedule("4", "g", "api/search/deep", 0);
    CHECK_EQ(shown_at("api/search"), 3);
    bel_engine_close(engine);

    options.now = now;
    CHECK(bel_engine_open(&options, &engine, NULL) == 0);
    settle();
    CHECK_EQ(shown_at("api/search"), 3);
    CHECK_EQ(claim(3, &answer), 1); /* of api itself */
    advance(HOUR_MS);
    CHECK_EQ(shown_at("api/search"), 0);
    CHECK_EQ(claim(3, &answer), 3);
    close_engine();
    (void)snprintf(command, sizeof command, "rm -r '%s'", folder);
    CHECK(system(command) == 0); /* NOLINT(concurrency-mt-unsafe, cert-env33-c) */
}

int main(void)
{
    RUN(closed_groups_do_not_hide_an_open_timer);
    RUN(a_closed_resource_parks_what_becomes_ready);
    RUN(a_waiting_claim_searches_on);
    RUN(parked_timers_are_counted_at_once);
    RUN(a_closed_resource_does_not_use_up_ready_max);
    RUN(many_groups_of_a_resource_wait_in_slices);
    return 0;
}
