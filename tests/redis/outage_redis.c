/* SPDX-License-Identifier: MIT */

/*
 * A server that is there and does not answer, or answers with errors. The node's clock is the
 * system's and what the test adds to it, so that no test waits for a timeout.
 */
#include "../check.h"
#include "belfry/backend.h"
#include "redis/redis.h"
#include "redis_server.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum {
    SKIPPED = 77,
    CALL_MS = 5000,
    LEASE_MS = 3600000,
    WAIT_MS = 60000,
    FAILS = 20,
    LONG_S = 30,
    SOON_S = 20,
    TOPICS = 1000,
};

static struct redis_server server;
static struct bel_redis *redis;
static struct bel_backend *backend;
static uint64_t added_ns;
static bool is_silent; /* nodes to be opened announce nothing */
static const struct bel_view topic = {"mail", 4};

static struct bel_now now_of_node(void)
{
    struct bel_now now = bel_clock_now(bel_clock_system());
    now.boot.ns += added_ns;
    now.real.ns += added_ns;
    if (!is_silent) now.wall.ms += (int64_t)(added_ns / 1000000); /* then it is the server's */
    return now;
}

static void open_node(const char *name_space)
{
    struct bel_redis_options options = {.is_virtual = is_silent};
    (void)snprintf(options.name_space, sizeof options.name_space, "%s", name_space);
    options.servers.path = server.path;
    options.servers.call_ms = CALL_MS;
    CHECK(bel__redis_open(&options, now_of_node(), &redis) == 0);
    backend = bel__redis_backend(redis);
}

struct asked {
    struct bel_request request; /* first */
    bool is_answered;
    int err;
    char why[BEL_REPLY_WHY_BYTES];
    size_t tokens_count;
    char tokens[FAILS][BEL_TOKEN_BYTES_MAX];
    struct bel_view views[FAILS];
};

static void answered(struct bel_request *request, const struct bel_reply *reply)
{
    struct asked *asked = (struct asked *)request;
    CHECK(!asked->is_answered);
    asked->is_answered = true;
    asked->err = reply->err;
    memcpy(asked->why, reply->why, sizeof asked->why);
    if (reply->err || request->command.verb != BEL_VERB_CLAIM) return;
    for (size_t i = 0; i < reply->deliveries.count; i++) {
        struct bel_view token = reply->deliveries.items[i].token;
        memcpy(asked->tokens[i], token.data, token.bytes);
        asked->views[i] = (struct bel_view){asked->tokens[i], token.bytes};
    }
    asked->tokens_count = reply->deliveries.count;
}

static void submit(struct asked *asked, const struct bel_command *command)
{
    *asked = (struct asked){.request = {.command = *command, .done = answered}};
    bel_backend_submit(backend, &asked->request);
}

static void turn(int wait_ms)
{
    struct pollfd fd = {.fd = bel_backend_descriptor(backend), .events = POLLIN};
    (void)bel_backend_turn(backend, now_of_node());
    CHECK(poll(&fd, 1, wait_ms) >= 0);
}

static void await(const struct asked *asked)
{
    while (!asked->is_answered) {
        turn(1);
    }
}

static void ask(struct asked *asked, const struct bel_command *command)
{
    submit(asked, command);
    await(asked);
}

static struct bel_command scheduling(void)
{
    struct bel_command command = {.verb = BEL_VERB_SCHEDULE};
    command.schedule = (struct bel_schedule_spec){.topic = topic, .payload = BEL_VIEW("x")};
    return command;
}

static struct bel_command claiming(uint64_t wait_ms)
{
    struct bel_command command = {.verb = BEL_VERB_CLAIM};
    command.claim = (struct bel_claim){
        .topics = &topic, .topics_count = 1, .count = FAILS, .lease_ms = LEASE_MS};
    command.claim.wait_ms = wait_ms;
    return command;
}

/* Asks until the node gets an answer from the server again, by itself. */
static void await_recovery(void)
{
    static struct asked made;
    struct bel_command schedule = scheduling();
    for (int tries = 0; tries < WAIT_MS; tries++) {
        submit(&made, &schedule);
        while (!made.is_answered) {
            turn(1);
            added_ns += UINT64_C(10000000); /* a wait between two attempts passes sooner */
        }
        if (made.err == 0) return;
    }
    CHECK(false);
}

static void requests_end_while_a_server_is_silent(void)
{
    static struct asked made, claimed, fails[FAILS], others[3];
    struct bel_command schedule = scheduling(), claim = claiming(0), get = {.verb = BEL_VERB_GET};
    open_node("silent");
    for (int i = 0; i < FAILS; i++) {
        ask(&made, &schedule);
        CHECK(made.err == 0);
    }
    ask(&claimed, &claim);
    CHECK(claimed.tokens_count == FAILS);
    CHECK(kill(server.pid, SIGSTOP) == 0);
    for (int i = 0; i < FAILS; i++) {
        struct bel_command fail = {.verb = BEL_VERB_FAIL};
        fail.fail.token = claimed.views[i];
        submit(&fails[i], &fail);
    }
    get.target = (struct bel_target){topic, BEL_VIEW("none")};
    submit(&others[0], &get);
    submit(&others[1], &schedule);
    submit(&others[2], &claim);
    for (int second = 0; second <= 2 * CALL_MS / 1000 + 1; second++) {
        turn(0);
        added_ns += UINT64_C(1000000000);
    }
    for (int i = 0; i < FAILS; i++) {
        CHECK_NOTE("request %d", i);
        CHECK(fails[i].is_answered && fails[i].err == BEL_EIO);
    }
    for (int i = 0; i < 3; i++) {
        CHECK(others[i].is_answered && others[i].err == BEL_EIO);
    }
    for (int second = 0; second < LONG_S; second++) {
        turn(0);
        added_ns += UINT64_C(1000000000);
    }
    CHECK(kill(server.pid, SIGCONT) == 0);
    await_recovery();
    bel__redis_close(redis);
}

/* Takes turns only when the node asks for them, as a loop with nothing else to do does. */
static void sleep_as_asked(uint64_t for_ns)
{
    uint64_t end_ns = added_ns + for_ns;
    while (added_ns < end_ns) {
        struct bel_now now = now_of_node();
        struct bel_next next = bel_backend_turn(backend, now);
        uint64_t wait_ns = next.wait.ns > now.real.ns ? next.wait.ns - now.real.ns : 0;
        uint64_t due_ns = next.due.ns > now.boot.ns ? next.due.ns - now.boot.ns : 0;
        added_ns += due_ns < wait_ns ? due_ns : wait_ns;
        if (added_ns > end_ns) added_ns = end_ns;
    }
}

/* The node first asks for the layout of a topic that it does not know, and gets no reply. */
static void requests_of_unknown_topics_end_while_a_server_is_silent(void)
{
    static struct asked made, unknown, claimed, behind;
    struct bel_command schedule = scheduling(), claim = claiming(0), get = {.verb = BEL_VERB_GET};
    static const struct bel_view other = {"other", 5};
    open_node("unknown");
    ask(&made, &schedule);
    CHECK(made.err == 0);
    CHECK(kill(server.pid, SIGSTOP) == 0);
    schedule.schedule.topic = BEL_VIEW("new");
    claim.claim.topics = &other;
    get.target = (struct bel_target){topic, BEL_VIEW("none")};
    submit(&unknown, &schedule);
    submit(&claimed, &claim);
    submit(&behind, &get);
    sleep_as_asked(UINT64_C(1000000) * (2 * CALL_MS + 1));
    CHECK(unknown.is_answered && unknown.err == BEL_EIO);
    CHECK(claimed.is_answered && claimed.err == BEL_EIO);
    CHECK(behind.is_answered && behind.err == BEL_EIO);
    CHECK(kill(server.pid, SIGCONT) == 0);
    await_recovery();
    bel__redis_close(redis);
}

static void a_waiting_claim_outlasts_a_silent_server(void)
{
    static struct asked waiting;
    struct bel_command claim = claiming(UINT64_C(1000) * WAIT_MS);
    open_node("waiting");
    submit(&waiting, &claim);
    turn(0);
    while (!bel__redis_is_idle(redis)) {
        turn(1);
    }
    CHECK(kill(server.pid, SIGSTOP) == 0);
    static struct asked lost;
    struct bel_command schedule = scheduling();
    submit(&lost, &schedule);
    for (int second = 0; second < LONG_S; second++) {
        turn(0);
        added_ns += UINT64_C(1000000000);
    }
    CHECK(lost.is_answered && lost.err == BEL_EIO && !waiting.is_answered);
    CHECK(kill(server.pid, SIGCONT) == 0);
    await_recovery();
    await(&waiting);
    CHECK(waiting.err == 0 && waiting.tokens_count >= 1);
    bel__redis_close(redis);
}

/* The node hears of a topic by the registry alone: it is closed and opened while the registry
 * cannot be read, and the timer was announced before. A waiting claim is woken by nothing else. */
static void a_registry_that_cannot_be_read_is_read_again(void)
{
    static struct asked made;
    char reply[64];
    struct bel_command schedule = scheduling();
    schedule.schedule.plan.rule = BEL_VIEW("1ms");
    schedule.schedule.plan.count = 1;
    schedule.schedule.when = BEL_WHEN_IN;
    schedule.schedule.delay_ms = 200;
    schedule.schedule.id = BEL_VIEW("p");
    open_node("registry");
    ask(&made, &schedule);
    CHECK(made.err == 0);
    bel__redis_close(redis);
    redis_server_ask(&server, "RENAME {registry}:topics kept", reply, sizeof reply);
    redis_server_ask(&server, "SET {registry}:topics x", reply, sizeof reply);
    open_node("registry");
    for (int i = 0; i < 20; i++) {
        turn(1);
    }
    redis_server_ask(&server, "RENAME kept {registry}:topics", reply, sizeof reply);
    do { /* until the plan has rung: nobody else makes it ring */
        turn(1);
        added_ns += UINT64_C(10000000);
        redis_server_ask(&server, "ZCARD {registry:mail:0}:occ", reply, sizeof reply);
    } while (strstr(reply, "2") == NULL);
    bel__redis_close(redis);
}

/* A key of the topic is there and belongs to somebody else: nothing is made until it is gone. */
static void a_key_of_another_program_is_an_error(void)
{
    static struct asked made, claimed;
    char reply[64];
    struct bel_command schedule = scheduling(), claim = claiming(0);
    open_node("foreign");
    redis_server_ask(&server, "SET {foreign:mail:0}:dead theirs", reply, sizeof reply);
    ask(&made, &schedule);
    CHECK(made.err == BEL_EIO);
    ask(&claimed, &claim);
    CHECK(claimed.err == 0 && claimed.tokens_count == 0);
    redis_server_ask(&server, "GET {foreign:mail:0}:dead", reply, sizeof reply);
    CHECK(strncmp(reply, "theirs", 6) == 0);
    redis_server_ask(&server, "DEL {foreign:mail:0}:dead", reply, sizeof reply);
    ask(&made, &schedule);
    CHECK(made.err == 0);
    ask(&claimed, &claim);
    CHECK(claimed.err == 0 && claimed.tokens_count == 1);
    bel__redis_close(redis);
}

/* Commands of many steps, too, say what the server has said. */
static void the_reason_of_the_server_is_told(void)
{
    static struct asked asked;
    char reply[64];
    const struct bel_view ids[] = {BEL_VIEW("a"), BEL_VIEW("b")};
    struct bel_command schedule = scheduling(), list = {.verb = BEL_VERB_LIST};
    struct bel_command cancel = {.verb = BEL_VERB_CANCEL}, told = {.verb = BEL_VERB_TOPIC};
    struct bel_command pause = {.verb = BEL_VERB_PAUSE}, purge = {.verb = BEL_VERB_PURGE};
    cancel.cancel = (struct bel_cancel){.topic = topic, .ids = ids, .ids_count = 2};
    list.list = (struct bel_list_query){.topic = topic, .count = 1};
    told.target.topic = pause.target.topic = purge.purge.topic = topic;
    const struct bel_command *all[] = {&cancel, &list, &told, &pause, &purge};
    open_node("reason");
    ask(&asked, &schedule);
    CHECK(asked.err == 0);
    redis_server_ask(&server, "DEL {reason:mail:0}:cfg", reply, sizeof reply);
    redis_server_ask(&server, "SET {reason:mail:0}:cfg theirs", reply, sizeof reply);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        CHECK_NOTE("command %zu", i);
        ask(&asked, all[i]);
        CHECK(asked.err == BEL_EIO && strstr(asked.why, "WRONGTYPE") != NULL);
    }
    bel__redis_close(redis);
}

/* Schedules a timer that no node is told of: a node with a clock of its own announces nothing. */
static void schedule_in_silence(const char *name_space)
{
    static struct asked made;
    struct bel_command schedule = scheduling();
    struct bel_redis *other = redis;
    is_silent = true;
    open_node(name_space);
    ask(&made, &schedule);
    CHECK(made.err == 0);
    bel__redis_close(redis);
    is_silent = false;
    redis = other;
    backend = bel__redis_backend(redis);
}

/* Polling finds it, and looks at what claims wait for before it looks at 1,000 other topics. The
 * clock stands while a reply is awaited. */
static void a_waiting_claim_outlasts_a_lost_message(void)
{
    static struct asked waiting;
    char reply[64], line[128];
    struct bel_command claim = claiming(UINT64_C(1000) * WAIT_MS);
    (void)snprintf(line, sizeof line,
                   "EVAL \"for i = 1, %d do redis.call('SADD', KEYS[1], i) end return 1\" 1 %s",
                   TOPICS, "{lost}:topics");
    redis_server_ask(&server, line, reply, sizeof reply);
    unsigned long before = redis_server_calls(&server, "evalsha");
    open_node("lost");
    submit(&waiting, &claim);
    do { /* until the node knows all topics */
        turn(1);
    } while (!bel__redis_is_idle(redis) ||
             redis_server_calls(&server, "evalsha") - before < TOPICS);
    schedule_in_silence("lost");
    uint64_t end_ns = added_ns + SOON_S * UINT64_C(1000000000);
    while (!waiting.is_answered && added_ns < end_ns) {
        turn(1);
        if (bel__redis_is_idle(redis)) added_ns += UINT64_C(100000000);
    }
    CHECK(waiting.is_answered && waiting.err == 0 && waiting.tokens_count == 1);
    bel__redis_close(redis);
}

int main(void)
{
    if (!redis_server_start(&server)) {
        (void)printf("SKIPPED: there is no redis-server on this machine\n");
        return SKIPPED;
    }
    RUN(requests_end_while_a_server_is_silent);
    RUN(requests_of_unknown_topics_end_while_a_server_is_silent);
    RUN(a_waiting_claim_outlasts_a_silent_server);
    RUN(a_registry_that_cannot_be_read_is_read_again);
    RUN(a_key_of_another_program_is_an_error);
    RUN(the_reason_of_the_server_is_told);
    RUN(a_waiting_claim_outlasts_a_lost_message);
    redis_server_stop(&server);
    return EXIT_SUCCESS;
}
