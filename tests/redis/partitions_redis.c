/* SPDX-License-Identifier: MIT */

/*
 * Topics with several partitions, and two nodes: a node learns how many there are, also when the
 * number changes behind its back, and completes what another one has left half done.
 */
#include "../check.h"
#include "belfry/backend.h"
#include "redis/redis.h"
#include "redis_server.h"

#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum {
    SKIPPED = 77,
    STEP_MS = 1000,
    TIMERS = 60,
};

struct node {
    struct bel_redis *redis;
    struct bel_backend *backend;
};

static struct redis_server server;
static struct node nodes[2];
static const char *name_space;
static const struct bel_view topic = {"mail", 4};

static void open_node(struct node *node)
{
    struct bel_redis_options options = {.name_space = ""};
    (void)snprintf(options.name_space, sizeof options.name_space, "%s", name_space);
    options.servers.path = server.path;
    CHECK(bel__redis_open(&options, bel_clock_now(bel_clock_system()), &node->redis) == 0);
    node->backend = bel__redis_backend(node->redis);
}

static void close_node(struct node *node)
{
    bel__redis_close(node->redis);
    *node = (struct node){NULL, NULL};
}

static void open_nodes(const char *name)
{
    name_space = name;
    open_node(&nodes[0]);
    open_node(&nodes[1]);
}

static void close_nodes(void)
{
    close_node(&nodes[0]);
    close_node(&nodes[1]);
}

/* Takes a turn of each node, then sleeps until one of them needs another, unless that was enough.
 * */
static void step(const bool *is_enough)
{
    struct pollfd fds[2];
    nfds_t count = 0;
    int wait_ms = STEP_MS;
    for (size_t i = 0; i < 2; i++) {
        if (nodes[i].redis == NULL) continue;
        struct bel_now now = bel_clock_now(bel_clock_system());
        struct bel_next next = bel_backend_turn(nodes[i].backend, now);
        uint64_t due = next.due.ns > now.boot.ns ? next.due.ns - now.boot.ns : 0;
        uint64_t wait = next.wait.ns > now.real.ns ? next.wait.ns - now.real.ns : 0;
        uint64_t left = (due < wait ? due : wait) / 1000000 + (due > 0 && wait > 0);
        if (left < (uint64_t)wait_ms) wait_ms = (int)left;
        fds[count++] =
            (struct pollfd){.fd = bel_backend_descriptor(nodes[i].backend), .events = POLLIN};
    }
    if (is_enough != NULL && *is_enough) return;
    CHECK(poll(fds, count, wait_ms) >= 0);
}

struct asked {
    struct bel_request request; /* first */
    bool is_answered;
    int err;
    uint64_t count;
    char why[BEL_REPLY_WHY_BYTES];
    char value[64]; /* of the setting that TOPIC was asked for */
    char tokens[TIMERS][BEL_TOKEN_BYTES_MAX + 1];
    char ids[TIMERS][BEL_ID_BYTES + 1];
    char cursor[1024];
    uint64_t counts[BEL_STATES];
};

static const char *wanted = "lease";

static void keep(char *out, size_t room, struct bel_view text)
{
    CHECK(text.bytes < room);
    if (text.bytes > 0) memcpy(out, text.data, text.bytes);
    out[text.bytes] = 0;
}

static void keep_topic(struct asked *asked, const struct bel_topic *told)
{
    memcpy(asked->counts, told->counts, sizeof asked->counts);
    for (size_t i = 0; i < told->settings_count; i++) {
        const struct bel_setting *setting = &told->settings[i];
        bool is_wanted = setting->name.bytes == strlen(wanted) &&
                         memcmp(setting->name.data, wanted, setting->name.bytes) == 0;
        if (is_wanted) keep(asked->value, sizeof asked->value, setting->value);
    }
}

static void answered(struct bel_request *request, const struct bel_reply *reply)
{
    struct asked *asked = (struct asked *)request;
    asked->is_answered = true;
    asked->err = reply->err;
    keep(asked->why, sizeof asked->why, (struct bel_view){reply->why, strlen(reply->why)});
    if (reply->err) return;
    switch (request->command.verb) {
    case BEL_VERB_CLAIM:
        asked->count = reply->deliveries.count;
        CHECK(asked->count <= TIMERS);
        for (size_t i = 0; i < asked->count; i++) {
            keep(asked->tokens[i], sizeof asked->tokens[i], reply->deliveries.items[i].token);
            keep(asked->ids[i], sizeof asked->ids[i], reply->deliveries.items[i].id);
        }
        break;
    case BEL_VERB_LIST:
        asked->count = reply->timers.count;
        for (size_t i = 0; i < asked->count; i++) {
            keep(asked->ids[i], sizeof asked->ids[i], reply->timers.items[i].id);
        }
        keep(asked->cursor, sizeof asked->cursor, reply->timers.cursor);
        break;
    case BEL_VERB_GET:
        asked->count = reply->timers.count;
        break;
    case BEL_VERB_TOPIC:
        keep_topic(asked, reply->topic);
        break;
    case BEL_VERB_SCHEDULE:
        break;
    default:
        asked->count = reply->count;
    }
}

static const struct asked *ask(struct node *node, const struct bel_command *command)
{
    static struct asked asked;
    asked = (struct asked){.request = {.command = *command, .done = answered}};
    bel_backend_submit(node->backend, &asked.request);
    while (!asked.is_answered) {
        step(&asked.is_answered);
    }
    return &asked;
}

/* --- phrases --- */

static const struct asked *configure(struct node *node, const char *name, const char *value)
{
    const struct bel_setting setting = {{name, strlen(name)}, {value, strlen(value)}};
    struct bel_command command = {.verb = BEL_VERB_CONFIGURE};
    command.configure = (struct bel_configure){topic, &setting, 1};
    return ask(node, &command);
}

/* Schedules timers with the ids t0, t1 ... of which each is due a second before the one before, an
 * hour from now; `is_now`: at once. */
static void schedule(struct node *node, size_t count, bool is_now)
{
    for (size_t i = 0; i < count; i++) {
        char id[16];
        int bytes = snprintf(id, sizeof id, "t%zu", i);
        struct bel_command command = {.verb = BEL_VERB_SCHEDULE};
        command.schedule = (struct bel_schedule_spec){.topic = topic, .id = {id, (size_t)bytes}};
        if (!is_now) {
            command.schedule.when = BEL_WHEN_IN;
            command.schedule.delay_ms = 3600000 - 1000 * i;
        }
        CHECK(ask(node, &command)->err == 0);
    }
}

static const struct asked *target(struct node *node, enum bel_verb verb, const char *id)
{
    struct bel_command command = {.verb = verb, .target = {topic, {id, id ? strlen(id) : 0}}};
    return ask(node, &command);
}

static uint64_t cancel_all(struct node *node)
{
    static char ids[TIMERS][16];
    struct bel_view views[TIMERS];
    for (size_t i = 0; i < TIMERS; i++) {
        int bytes = snprintf(ids[i], sizeof ids[i], "t%zu", i);
        views[i] = (struct bel_view){ids[i], (size_t)bytes};
    }
    struct bel_command command = {.verb = BEL_VERB_CANCEL};
    command.cancel = (struct bel_cancel){topic, views, TIMERS};
    return ask(node, &command)->count;
}

/* Claims and acknowledges `count` timers by one claim. */
static void claim_and_ack(struct node *claimer, struct node *acker, uint32_t count)
{
    static char tokens[TIMERS][BEL_TOKEN_BYTES_MAX + 1];
    struct bel_view views[TIMERS];
    struct bel_command claim = {.verb = BEL_VERB_CLAIM}, ack = {.verb = BEL_VERB_ACK};
    claim.claim = (struct bel_claim){.topics = &topic, .topics_count = 1, .count = count};
    const struct asked *claimed = ask(claimer, &claim);
    CHECK_EQ(claimed->count, count);
    memcpy(tokens, claimed->tokens, sizeof tokens);
    for (size_t i = 0; i < count; i++) {
        views[i] = (struct bel_view){tokens[i], strlen(tokens[i])};
    }
    ack.ack = (struct bel_ack){.tokens = views, .tokens_count = count};
    CHECK_EQ(ask(acker, &ack)->count, count);
}

/* Sends a command to the server; `%d` is a partition. Returns the reply, which may be a number. */
__attribute__((format(printf, 1, 2))) static const char *tell_server(const char *format, ...)
{
    static char line[256], out[1024];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(line, sizeof line, format, args);
    va_end(args);
    redis_server_ask(&server, line, out, sizeof out);
    return out;
}

/* --- cases --- */

static void timers_are_in_all_partitions_and_every_node_finds_them(void)
{
    open_nodes("spread");
    CHECK(configure(&nodes[0], "partitions", "4")->err == 0);
    schedule(&nodes[1], TIMERS, false);
    unsigned long sum = 0;
    for (int i = 0; i < 4; i++) {
        unsigned long here = strtoul(tell_server("ZCARD {spread:mail:%d}:pend", i), NULL, 10) - 1;
        CHECK(here > 0);
        sum += here;
    }
    CHECK_EQ(sum, TIMERS);
    CHECK_EQ(target(&nodes[0], BEL_VERB_TOPIC, NULL)->counts[BEL_SCHEDULED], TIMERS);
    for (size_t i = 0; i < TIMERS; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "t%zu", i);
        CHECK_EQ(target(&nodes[i % 2], BEL_VERB_GET, id)->count, 1);
    }
    close_nodes();
}

static void a_list_is_merged_over_pages(void)
{
    char cursor[1024] = "";
    size_t seen = 0;
    open_nodes("list");
    CHECK(configure(&nodes[0], "partitions", "5")->err == 0);
    schedule(&nodes[1], TIMERS, false);
    do {
        struct bel_command command = {.verb = BEL_VERB_LIST, .list = {.topic = topic, .count = 7}};
        command.list.cursor = (struct bel_view){cursor, strlen(cursor)};
        const struct asked *page = ask(&nodes[seen % 2], &command);
        CHECK(page->err == 0 && page->count > 0);
        for (size_t i = 0; i < page->count; i++, seen++) {
            char id[16];
            (void)snprintf(id, sizeof id, "t%zu", TIMERS - 1 - seen);
            CHECK(strcmp(page->ids[i], id) == 0);
        }
        memcpy(cursor, page->cursor, sizeof cursor);
    } while (cursor[0] != 0);
    CHECK_EQ(seen, TIMERS);
    close_nodes();
}

static void a_claim_takes_what_it_wants_and_holds_no_more(void)
{
    open_nodes("claim");
    CHECK(configure(&nodes[0], "partitions", "8")->err == 0);
    schedule(&nodes[1], TIMERS, true);
    for (size_t i = 0; i < TIMERS / 20; i++) {
        claim_and_ack(&nodes[i % 2], &nodes[(i + 1) % 2], 20);
        const struct asked *told = target(&nodes[0], BEL_VERB_TOPIC, NULL);
        CHECK_EQ(told->counts[BEL_LEASED], 0);
        CHECK_EQ(told->counts[BEL_READY], TIMERS - 20 * (i + 1));
    }
    close_nodes();
}

static void the_number_changes_only_without_timers(void)
{
    open_nodes("change");
    schedule(&nodes[1], TIMERS, false); /* one partition */
    const struct asked *refused = configure(&nodes[0], "partitions", "3");
    CHECK(refused->err == BEL_ECONFLICT && strstr(refused->why, "belfry copy") != NULL);
    CHECK_EQ(cancel_all(&nodes[1]), TIMERS);
    CHECK(configure(&nodes[0], "partitions", "3")->err == 0);
    schedule(&nodes[1], TIMERS, true); /* believes in one partition */
    CHECK(configure(&nodes[0], "partitions", "2")->err == BEL_ECONFLICT);
    claim_and_ack(&nodes[0], &nodes[1], TIMERS);
    CHECK(configure(&nodes[1], "partitions", "64")->err == 0);
    schedule(&nodes[0], TIMERS, true); /* believes in three */
    claim_and_ack(&nodes[1], &nodes[0], TIMERS);
    CHECK(configure(&nodes[0], "partitions", "1")->err == 0);
    schedule(&nodes[1], TIMERS, false); /* believes in 64 */
    CHECK_EQ(cancel_all(&nodes[0]), TIMERS);
    CHECK(configure(&nodes[0], "partitions", "0")->err == BEL_EINVAL);
    CHECK(configure(&nodes[0], "partitions", "65")->err == BEL_EINVAL);
    close_nodes();
}

static void a_waiting_claim_is_told_of_every_partition(void)
{
    struct asked claimed;
    struct bel_command claim = {.verb = BEL_VERB_CLAIM};
    open_nodes("waiting");
    CHECK(configure(&nodes[0], "partitions", "6")->err == 0);
    for (size_t i = 0; i < 12; i++) {
        claim.claim =
            (struct bel_claim){.topics = &topic, .topics_count = 1, .count = 1, .wait_ms = 60000};
        claimed = (struct asked){.request = {.command = claim, .done = answered}};
        bel_backend_submit(nodes[1].backend, &claimed.request);
        struct bel_command command = {.verb = BEL_VERB_SCHEDULE, .schedule = {.topic = topic}};
        CHECK(ask(&nodes[0], &command)->err == 0);
        while (!claimed.is_answered) {
            step(&claimed.is_answered);
        }
        CHECK_EQ(claimed.count, 1);
    }
    close_nodes();
}

/* A node stopped after it had sealed partition 1, and before it had copied the settings to it. */
static void what_was_left_half_done_is_completed(void)
{
    open_nodes("half");
    CHECK(configure(&nodes[0], "partitions", "3")->err == 0);
    CHECK(configure(&nodes[0], "lease", "7s")->err == 0);
    close_nodes();
    (void)tell_server("HSET {half:mail:1}:cfg partitions 0 lease_ms 1 version 0");
    (void)tell_server("HSET {half:mail:2}:cfg lease_ms 1 version 1");
    open_node(&nodes[0]);
    schedule(&nodes[0], TIMERS, true);
    claim_and_ack(&nodes[0], &nodes[0], TIMERS);
    for (int i = 1; i < 3; i++) {
        while (strcmp(tell_server("HGET {half:mail:%d}:cfg lease_ms", i), "7000\r\n") != 0) {
            step(NULL);
        }
        CHECK(strcmp(tell_server("HGET {half:mail:%d}:cfg partitions", i), "3\r\n") == 0);
    }
    close_node(&nodes[0]);
}

static void settings_are_those_of_all_partitions(void)
{
    open_nodes("settings");
    CHECK(configure(&nodes[0], "partitions", "4")->err == 0);
    CHECK(target(&nodes[1], BEL_VERB_PAUSE, NULL)->err == 0);
    CHECK(configure(&nodes[0], "depth", "10")->err == 0);
    for (int i = 0; i < 4; i++) {
        CHECK(strcmp(tell_server("HGET {settings:mail:%d}:cfg paused", i), "1\r\n") == 0);
        CHECK(strcmp(tell_server("HGET {settings:mail:%d}:cfg depth", i), "10\r\n") == 0);
    }
    wanted = "partitions";
    CHECK(strcmp(target(&nodes[1], BEL_VERB_TOPIC, NULL)->value, "4") == 0);
    CHECK(target(&nodes[0], BEL_VERB_RESUME, NULL)->err == 0);
    for (int i = 0; i < 4; i++) {
        CHECK(strcmp(tell_server("HGET {settings:mail:%d}:cfg paused", i), "0\r\n") == 0);
    }
    close_nodes();
}

/* Steps until the server replies with a number to a command for each partition. */
static void await_number(const char *command, const char *key, int partitions, long number)
{
    for (int i = 0; i < partitions; i++) {
        while (strtol(tell_server("%s {%s:mail:%d}:%s", command, name_space, i, key), NULL, 10) !=
               number) {
            step(NULL);
        }
    }
}

/* Nobody claims: leases end and what has ended is forgotten, by any node. */
static void nodes_end_what_is_past_without_claims(void)
{
    struct bel_command claim = {.verb = BEL_VERB_CLAIM};
    open_nodes("alone");
    CHECK(configure(&nodes[0], "partitions", "3")->err == 0);
    CHECK(configure(&nodes[0], "retention", "50ms")->err == 0);
    schedule(&nodes[0], TIMERS, true);
    claim.claim =
        (struct bel_claim){.topics = &topic, .topics_count = 1, .count = TIMERS, .lease_ms = 20};
    CHECK_EQ(ask(&nodes[0], &claim)->count, TIMERS);
    close_node(&nodes[0]); /* the one that has claimed */
    await_number("ZCARD", "lease", 3, 1);
    CHECK_EQ(cancel_all(&nodes[1]), TIMERS);
    await_number("HLEN", "rec", 3, 1);
    await_number("HLEN", "hour", 3, 1);
    close_node(&nodes[1]);
}

/* A claim waits at a node that is not told of a timer, because the server believes that an earlier
 * time was announced. Without polling it would wait for a minute. */
static void what_was_not_announced_is_found_by_polling(void)
{
    struct bel_command claim = {.verb = BEL_VERB_CLAIM};
    struct asked claimed;
    open_nodes("silent");
    CHECK(configure(&nodes[0], "partitions", "3")->err == 0);
    claim.claim =
        (struct bel_claim){.topics = &topic, .topics_count = 1, .count = 1, .wait_ms = 60000};
    claimed = (struct asked){.request = {.command = claim, .done = answered}};
    bel_backend_submit(nodes[1].backend, &claimed.request);
    while (!bel__redis_is_idle(nodes[0].redis) || !bel__redis_is_idle(nodes[1].redis)) {
        step(NULL);
    }
    int64_t soon = bel_clock_now(bel_clock_system()).wall.ms + 500;
    for (int i = 0; i < 3; i++) {
        (void)tell_server("HSET {silent:mail:%d}:cfg next %lld", i, (long long)soon);
    }
    struct bel_command command = {.verb = BEL_VERB_SCHEDULE, .schedule = {.topic = topic}};
    command.schedule.when = BEL_WHEN_IN;
    command.schedule.delay_ms = 600;
    CHECK(ask(&nodes[0], &command)->err == 0);
    close_node(&nodes[0]); /* which knows of it */
    while (!claimed.is_answered) {
        step(&claimed.is_answered);
    }
    CHECK_EQ(claimed.count, 1);
    close_node(&nodes[1]);
}

/* Somebody deletes everything while nodes are connected. The topics that they make again are in
 * the registry, some minutes later, so that other nodes find them. */
static void a_registry_that_was_deleted_is_written_again(void)
{
    struct node *node = &nodes[0];
    struct pollfd fd = {.events = POLLIN};
    open_nodes("deleted");
    schedule(node, 1, false);
    CHECK(strtol(tell_server("SCARD {deleted}:topics"), NULL, 10) == 1);
    (void)tell_server("FLUSHALL");
    schedule(node, 1, false);
    CHECK(strtol(tell_server("SCARD {deleted}:topics"), NULL, 10) == 0);
    while (strtol(tell_server("SCARD {deleted}:topics"), NULL, 10) == 0) {
        struct bel_now now = bel_clock_now(bel_clock_system());
        now.real.ns += UINT64_C(180) * 1000000000; /* minutes later */
        (void)bel_backend_turn(node->backend, now);
        fd.fd = bel_backend_descriptor(node->backend);
        CHECK(poll(&fd, 1, 1) >= 0);
    }
    close_nodes();
}

/* Two nodes that have nothing to do for a while send almost nothing. */
static void idle_nodes_are_silent(void)
{
    enum {
        IDLE_STEPS = 4, /* of a second, if nothing happens */
        COMMANDS_MAX = 20,
    };
    open_nodes("idle");
    CHECK(configure(&nodes[0], "partitions", "16")->err == 0);
    schedule(&nodes[1], TIMERS, false);
    while (!bel__redis_is_idle(nodes[0].redis) || !bel__redis_is_idle(nodes[1].redis)) {
        step(NULL);
    }
    unsigned long before = redis_server_calls(&server, "evalsha");
    for (int i = 0; i < IDLE_STEPS; i++) {
        step(NULL);
    }
    unsigned long calls = redis_server_calls(&server, "evalsha") - before;
    CHECK_NOTE("%lu calls", calls);
    CHECK(calls <= COMMANDS_MAX);
    close_nodes();
}

int main(void)
{
    if (!redis_server_start(&server)) {
        (void)printf("SKIPPED: there is no such server on this machine\n");
        return SKIPPED;
    }
    RUN(timers_are_in_all_partitions_and_every_node_finds_them);
    RUN(a_list_is_merged_over_pages);
    RUN(a_claim_takes_what_it_wants_and_holds_no_more);
    RUN(the_number_changes_only_without_timers);
    RUN(a_waiting_claim_is_told_of_every_partition);
    RUN(what_was_left_half_done_is_completed);
    RUN(settings_are_those_of_all_partitions);
    RUN(nodes_end_what_is_past_without_claims);
    RUN(what_was_not_announced_is_found_by_polling);
    RUN(a_registry_that_was_deleted_is_written_again);
    RUN(idle_nodes_are_silent);
    redis_server_stop(&server);
    return EXIT_SUCCESS;
}
