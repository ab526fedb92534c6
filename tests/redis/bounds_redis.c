/* SPDX-License-Identifier: MIT */

/*
 * No call of a script does more than a bounded amount of work: it ends at most 100 timers that are
 * past, and claims at most 1,000. Commands that need more make more calls, and miss nothing. No
 * reply is longer than the node accepts, however large the payloads are.
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
    WAIT_MS = 60000,
    MANY = 1000,
    SWEEP_MAX = 100,
    CLAIMS = 3,
    GETS = 100,
    FAILS = 50,
    KEPT = 50,
    CALLS_MAX = 6, /* four at once, one of what was kept back meanwhile, and the claim */
    FIRST = 0,     /* priorities */
    LAST = 9,
};

static struct redis_server server;
static struct bel_redis *redis;
static struct bel_backend *backend;
static struct bel_now now;
static const struct bel_view topic = {"mail", 4};

static void open_node(const char *name_space)
{
    struct bel_redis_options options = {.is_virtual = true};
    (void)snprintf(options.name_space, sizeof options.name_space, "%s", name_space);
    options.servers.path = server.path;
    now.real = bel_clock_mono(bel_clock_system());
    now.boot = (struct bel_boot){1};
    now.wall.ms = INT64_C(1767225600000);
    CHECK(bel__redis_open(&options, now, &redis) == 0);
    backend = bel__redis_backend(redis);
}

static void turn(void)
{
    struct pollfd fd = {.fd = bel_backend_descriptor(backend), .events = POLLIN};
    struct bel_next next = bel_backend_turn(backend, now);
    if (next.due.ns <= now.boot.ns || bel__redis_is_idle(redis)) return;
    CHECK(poll(&fd, 1, WAIT_MS) >= 0);
}

static void settle(void)
{
    turn();
    while (!bel__redis_is_idle(redis)) {
        turn();
    }
}

/* Moves the clock. No turn is taken, so the next command meets all that is past. */
static void jump(uint64_t ms)
{
    now.wall.ms += (int64_t)ms;
    now.boot.ns += ms * 1000000;
}

/* Of the last claim. */
static char tokens_text[FAILS][BEL_TOKEN_BYTES_MAX];
static struct bel_view tokens[FAILS];

struct asked {
    struct bel_request request; /* first */
    bool is_answered;
    int err;
    uint64_t count;
    uint64_t expired, lost;    /* of TOPIC */
    enum bel_state state;      /* of FAIL */
    char id[BEL_ID_BYTES + 1]; /* of the first delivery */
};

static void keep_deliveries(struct asked *asked, const struct bel_reply *reply)
{
    const struct bel_delivery *items = reply->deliveries.items;
    asked->count = reply->deliveries.count;
    for (size_t i = 0; i < asked->count && i < FAILS; i++) {
        memcpy(tokens_text[i], items[i].token.data, items[i].token.bytes);
        tokens[i] = (struct bel_view){tokens_text[i], items[i].token.bytes};
    }
    if (asked->count == 0) return;
    (void)snprintf(asked->id, sizeof asked->id, "%.*s", (int)items[0].id.bytes,
                   (const char *)items[0].id.data);
}

static void answered(struct bel_request *request, const struct bel_reply *reply)
{
    struct asked *asked = (struct asked *)request;
    asked->is_answered = true;
    asked->err = reply->err;
    if (reply->err) return;
    switch (request->command.verb) {
    case BEL_VERB_CLAIM:
        keep_deliveries(asked, reply);
        break;
    case BEL_VERB_FAIL:
        asked->state = reply->verdict.state;
        break;
    case BEL_VERB_LIST:
        asked->count = reply->timers.count;
        break;
    case BEL_VERB_TOPIC:
        asked->expired = reply->topic->counts[BEL_EXPIRED];
        asked->lost = reply->topic->lost;
        break;
    default:
        asked->count = reply->count;
    }
}

static void submit(struct asked *asked, const struct bel_command *command)
{
    *asked = (struct asked){.request = {.command = *command, .done = answered}};
    bel_backend_submit(backend, &asked->request);
}

static struct asked ask(const struct bel_command *command)
{
    struct asked asked;
    submit(&asked, command);
    while (!asked.is_answered) {
        turn();
    }
    return asked;
}

static void schedule(size_t count, uint64_t expires_ms)
{
    struct asked *asked = calloc(count, sizeof *asked);
    CHECK(asked != NULL);
    for (size_t i = 0; i < count; i++) {
        struct bel_command command = {.verb = BEL_VERB_SCHEDULE};
        command.schedule = (struct bel_schedule_spec){.topic = topic, .expires_ms = expires_ms};
        submit(&asked[i], &command);
    }
    settle();
    for (size_t i = 0; i < count; i++) {
        CHECK(asked[i].is_answered && asked[i].err == 0);
    }
    free(asked);
}

static struct bel_command claiming(uint64_t wait_ms)
{
    struct bel_command command = {.verb = BEL_VERB_CLAIM};
    command.claim =
        (struct bel_claim){.topics = &topic, .topics_count = 1, .count = MANY, .wait_ms = wait_ms};
    return command;
}

/* Asks after many timers have expired. Returns the reply, and checks the number of calls. */
static struct asked ask_late(const char *name_space, const struct bel_command *command)
{
    open_node(name_space);
    schedule(MANY, 1);
    jump(1000);
    unsigned long before = redis_server_calls(&server, "evalsha");
    struct asked asked = ask(command);
    unsigned long calls = redis_server_calls(&server, "evalsha") - before;
    CHECK_NOTE("%lu calls", calls);
    CHECK(asked.err == 0 && calls >= MANY / SWEEP_MAX);
    struct bel_command counting = {.verb = BEL_VERB_TOPIC, .target = {.topic = topic}};
    struct asked told = ask(&counting);
    CHECK(told.expired == (command->verb == BEL_VERB_PURGE ? 0 : MANY));
    bel__redis_close(redis);
    return asked;
}

static void a_claim_ends_what_is_past_in_several_calls(void)
{
    struct bel_command command = claiming(0);
    CHECK_EQ(ask_late("claim", &command).count, 0);
}

static void a_claim_of_several_topics_does_so_too(void)
{
    const struct bel_view topics[] = {topic, BEL_VIEW("push")};
    struct bel_command command = claiming(0);
    command.claim.topics = topics;
    command.claim.topics_count = 2;
    CHECK_EQ(ask_late("claims", &command).count, 0);
}

static void so_do_commands_on_the_whole_topic(void)
{
    struct bel_command list = {.verb = BEL_VERB_LIST, .list = {.topic = topic, .count = 1000}};
    list.list.has_state = true;
    list.list.state = BEL_EXPIRED;
    CHECK_EQ(ask_late("list", &list).count, MANY);
    struct bel_command count = {.verb = BEL_VERB_TOPIC, .target = {.topic = topic}};
    CHECK_EQ(ask_late("topic", &count).expired, MANY);
    struct bel_command purge = {.verb = BEL_VERB_PURGE, .purge = {.topic = topic}};
    CHECK_EQ(ask_late("purge", &purge).count, MANY);
    struct bel_command revive = {.verb = BEL_VERB_REVIVE, .target = {.topic = topic}};
    CHECK_EQ(ask_late("revive", &revive).count, 0);
}

static void a_depth_counts_no_timer_that_has_expired(void)
{
    const struct bel_setting depth = {BEL_VIEW("depth"), BEL_VIEW("1000")};
    struct bel_command configure = {.verb = BEL_VERB_CONFIGURE};
    configure.configure = (struct bel_configure){topic, &depth, 1};
    open_node("depth");
    CHECK(ask(&configure).err == 0);
    schedule(MANY, 1);
    struct bel_command command = {.verb = BEL_VERB_SCHEDULE};
    command.schedule = (struct bel_schedule_spec){.topic = topic};
    CHECK(ask(&command).err == BEL_EFULL);
    jump(1000);
    unsigned long before = redis_server_calls(&server, "evalsha");
    CHECK(ask(&command).err == 0);
    CHECK(redis_server_calls(&server, "evalsha") - before >= MANY / SWEEP_MAX);
    bel__redis_close(redis);
}

/* A lease that has ended is lost once, also if a command names its timer before all are ended. */
static void each_lost_lease_is_counted(void)
{
    struct bel_command claim = claiming(0);
    struct bel_command get = {.verb = BEL_VERB_GET, .target = {topic, BEL_VIEW("last")}};
    struct bel_command count = {.verb = BEL_VERB_TOPIC, .target = {.topic = topic}};
    struct bel_command command = {.verb = BEL_VERB_SCHEDULE};
    open_node("lost");
    schedule(MANY - 1, 0);
    command.schedule = (struct bel_schedule_spec){.topic = topic, .id = BEL_VIEW("last")};
    CHECK(ask(&command).err == 0);
    claim.claim.lease_ms = 1000;
    CHECK_EQ(ask(&claim).count, MANY);
    jump(1000);
    CHECK(ask(&get).err == 0);
    CHECK_EQ(ask(&count).lost, MANY);
    bel__redis_close(redis);
}

static void a_cancel_of_many_is_several_calls(const char *name_space)
{
    static char names[MANY][8];
    static struct bel_view ids[MANY];
    struct bel_command cancel = {.verb = BEL_VERB_CANCEL, .cancel = {topic, ids, MANY}};
    for (size_t i = 0; i < MANY; i++) {
        int bytes = snprintf(names[i], sizeof names[i], "t%zu", i);
        struct bel_command command = {.verb = BEL_VERB_SCHEDULE};
        ids[i] = (struct bel_view){names[i], (size_t)bytes};
        command.schedule = (struct bel_schedule_spec){.topic = topic, .id = ids[i]};
        CHECK_NOTE("%s", name_space);
        CHECK(ask(&command).err == 0);
    }
    unsigned long before = redis_server_calls(&server, "evalsha");
    CHECK_EQ(ask(&cancel).count, MANY);
    CHECK(redis_server_calls(&server, "evalsha") - before >= MANY / SWEEP_MAX);
    bel__redis_close(redis);
}

static void a_cancel_cancels_many_in_several_calls(void)
{
    const struct bel_setting layout = {BEL_VIEW("layout"), BEL_VIEW("faststream")};
    struct bel_command configure = {.verb = BEL_VERB_CONFIGURE};
    configure.configure = (struct bel_configure){topic, &layout, 1};
    open_node("cancel");
    a_cancel_of_many_is_several_calls("native");
    open_node("shared");
    CHECK(ask(&configure).err == 0);
    a_cancel_of_many_is_several_calls("faststream");
}

/* A call claims 1,000, so claims that come together need several. */
static void claims_that_come_together_find_all_that_is_ready(void)
{
    struct asked asked[CLAIMS];
    struct bel_command command = claiming(0);
    open_node("together");
    schedule((size_t)CLAIMS * MANY, 0);
    for (size_t i = 0; i < CLAIMS; i++) {
        submit(&asked[i], &command);
    }
    settle();
    for (size_t i = 0; i < CLAIMS; i++) {
        CHECK(asked[i].is_answered);
        CHECK_EQ(asked[i].count, MANY);
    }
    bel__redis_close(redis);
}

static void claims_that_wait_find_all_that_is_ready(void)
{
    struct asked asked[CLAIMS];
    struct bel_command command = claiming(WAIT_MS);
    struct bel_command pause = {.verb = BEL_VERB_PAUSE, .target = {.topic = topic}};
    struct bel_command resume = {.verb = BEL_VERB_RESUME, .target = {.topic = topic}};
    open_node("waiting");
    CHECK(ask(&pause).err == 0);
    schedule((size_t)CLAIMS * MANY, 0);
    for (size_t i = 0; i < CLAIMS; i++) {
        submit(&asked[i], &command);
    }
    settle();
    CHECK(ask(&resume).err == 0);
    settle();
    for (size_t i = 0; i < CLAIMS; i++) {
        CHECK(asked[i].is_answered);
        CHECK_EQ(asked[i].count, MANY);
    }
    bel__redis_close(redis);
}

/* Together they are longer than any reply that the node accepts. */
static void large_timers_are_got_in_several_replies(void)
{
    static char payload[BEL_PAYLOAD_BYTES_DEFAULT];
    static struct asked asked[GETS];
    struct bel_command schedule_one = {.verb = BEL_VERB_SCHEDULE}, get = {.verb = BEL_VERB_GET};
    open_node("large");
    memset(payload, 'x', sizeof payload);
    schedule_one.schedule = (struct bel_schedule_spec){
        .topic = topic, .id = BEL_VIEW("a"), .payload = {payload, sizeof payload}};
    CHECK(ask(&schedule_one).err == 0);
    get.target = (struct bel_target){topic, BEL_VIEW("a")};
    for (size_t i = 0; i < GETS; i++) {
        submit(&asked[i], &get);
    }
    settle();
    for (size_t i = 0; i < GETS; i++) {
        CHECK(asked[i].is_answered);
        CHECK_EQ((uint64_t)asked[i].err, 0);
    }
    bel__redis_close(redis);
}

static struct bel_command failing(struct bel_view token)
{
    struct bel_command command = {.verb = BEL_VERB_FAIL};
    command.fail = (struct bel_fail){.token = token, .has_delay = true};
    return command;
}

/* One of them names a lease that another one has ended. */
static void fails_that_come_together_share_two_calls(void)
{
    static struct asked claimed, asked[FAILS], stale;
    struct bel_command claim = claiming(0), again;
    open_node("fails");
    schedule(FAILS, 0);
    submit(&claimed, &claim);
    settle();
    CHECK_EQ(claimed.count, FAILS);
    unsigned long before = redis_server_calls(&server, "evalsha");
    for (size_t i = 0; i < FAILS; i++) {
        struct bel_command fail = failing(tokens[i]);
        submit(&asked[i], &fail);
    }
    again = failing(tokens[0]);
    submit(&stale, &again);
    settle();
    CHECK_EQ(redis_server_calls(&server, "evalsha") - before, 2);
    for (size_t i = 0; i < FAILS; i++) {
        CHECK(asked[i].is_answered && asked[i].err == 0 && asked[i].state == BEL_SCHEDULED);
    }
    CHECK(stale.is_answered && stale.err == BEL_ESTALE);
    bel__redis_close(redis);
}

static void a_claim_gets_what_failed_first(const char *name_space, bool is_parked)
{
    static struct asked claimed, waiting, asked[2];
    const struct bel_view ids[] = {BEL_VIEW("a"), BEL_VIEW("b")};
    struct bel_command claim = claiming(0), wait = claiming(WAIT_MS);
    open_node(name_space);
    for (size_t i = 0; i < 2; i++) {
        struct bel_command command = {.verb = BEL_VERB_SCHEDULE};
        command.schedule = (struct bel_schedule_spec){.topic = topic, .id = ids[i]};
        command.schedule.has_priority = true;
        command.schedule.priority = i == 0 ? FIRST : LAST;
        CHECK(ask(&command).err == 0);
    }
    submit(&claimed, &claim);
    settle();
    CHECK(claimed.count == 2 && strcmp(claimed.id, "a") == 0);
    wait.claim.count = 1;
    submit(&waiting, &wait);
    if (is_parked) settle();
    for (size_t i = 0; i < 2; i++) { /* b, then a */
        struct bel_command fail = failing(tokens[1 - i]);
        submit(&asked[i], &fail);
    }
    settle();
    CHECK(asked[0].err == 0 && asked[1].err == 0);
    CHECK(waiting.is_answered && waiting.count == 1 && strcmp(waiting.id, "b") == 0);
    bel__redis_close(redis);
}

static void a_waiting_claim_gets_what_failed_first(void)
{
    a_claim_gets_what_failed_first("parked", true);
    a_claim_gets_what_failed_first("parking", false);
}

/* Timers are asked for one in each turn while the server does not reply, then a claim of all: it
 * overtakes none. After `ms`, what was kept back is sent in any case. */
static void ask_in_turns(const char *name_space, uint64_t ms, unsigned long calls_max)
{
    static struct asked asked[KEPT], claimed;
    struct bel_command command = {.verb = BEL_VERB_SCHEDULE}, claim = claiming(0);
    command.schedule = (struct bel_schedule_spec){.topic = topic};
    open_node(name_space);
    schedule(1, 0); /* the topic is born */
    unsigned long before = redis_server_calls(&server, "evalsha");
    CHECK(kill(server.pid, SIGSTOP) == 0);
    for (size_t i = 0; i < KEPT; i++) {
        submit(&asked[i], &command);
        (void)bel_backend_turn(backend, now);
        now.real.ns += ms * 1000000;
    }
    submit(&claimed, &claim);
    (void)bel_backend_turn(backend, now);
    CHECK(kill(server.pid, SIGCONT) == 0);
    settle();
    CHECK_EQ(claimed.count, KEPT + 1);
    unsigned long calls = redis_server_calls(&server, "evalsha") - before;
    CHECK_NOTE("%lu calls", calls);
    CHECK(calls <= calls_max && (ms == 0 || calls > CALLS_MAX));
    bel__redis_close(redis);
}

static void a_busy_server_gets_fewer_calls(void)
{
    ask_in_turns("busy", 0, CALLS_MAX);
    ask_in_turns("slow", 4, KEPT + 1);
}

int main(void)
{
    if (!redis_server_start(&server)) {
        (void)printf("SKIPPED: there is no redis-server on this machine\n");
        return SKIPPED;
    }
    RUN(a_claim_ends_what_is_past_in_several_calls);
    RUN(a_claim_of_several_topics_does_so_too);
    RUN(so_do_commands_on_the_whole_topic);
    RUN(a_depth_counts_no_timer_that_has_expired);
    RUN(each_lost_lease_is_counted);
    RUN(a_cancel_cancels_many_in_several_calls);
    RUN(claims_that_come_together_find_all_that_is_ready);
    RUN(claims_that_wait_find_all_that_is_ready);
    RUN(large_timers_are_got_in_several_replies);
    RUN(fails_that_come_together_share_two_calls);
    RUN(a_waiting_claim_gets_what_failed_first);
    RUN(a_busy_server_gets_fewer_calls);
    redis_server_stop(&server);
    return EXIT_SUCCESS;
}
