/* SPDX-License-Identifier: MIT */

/*
 * Two nodes on one Redis server, with the clock of the server, although the clock of each node is
 * an hour wrong: a claim that waits in one node gets the timer that another node schedules, and an
 * occurrence of a plan is made once.
 */
#include "../check.h"
#include "belfry/backend.h"
#include "redis/redis.h"
#include "redis_server.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

enum {
    SKIPPED = 77,
    STEP_MS = 1000, /* of a poll, if a node has nothing to do before */
    WAIT_MS = 60000,
    ZONED = 12,
    HOUR_MS = 3600000,
};

struct node {
    int64_t skew_ms; /* of its wall clock */
    struct bel_zones *zones;
    struct bel_redis *redis;
    struct bel_backend *backend;
};

static struct node nodes[2] = {{.skew_ms = HOUR_MS}, {.skew_ms = -HOUR_MS}};
static const struct bel_view topic = {"mail", 4};

static struct bel_now now_of(const struct node *node)
{
    struct bel_now now = bel_clock_now(bel_clock_system());
    now.wall.ms += node->skew_ms;
    return now;
}

static void open_node(struct node *node, const char *path)
{
    struct bel_redis_options options = {.name_space = "nodes", .zones = node->zones};
    options.servers.path = path;
    CHECK(bel__redis_open(&options, now_of(node), &node->redis) == 0);
    node->backend = bel__redis_backend(node->redis);
}

/* Sleeps until a node needs a turn, then takes one of both. A request needs one at once. */
static int sleep_ms;

static void step(void)
{
    struct pollfd fds[2];
    for (size_t i = 0; i < 2; i++) {
        fds[i] = (struct pollfd){.fd = bel_backend_descriptor(nodes[i].backend), .events = POLLIN};
    }
    CHECK(poll(fds, 2, sleep_ms) >= 0);
    sleep_ms = STEP_MS;
    for (size_t i = 0; i < 2; i++) {
        struct bel_now now = now_of(&nodes[i]);
        struct bel_next next = bel_backend_turn(nodes[i].backend, now);
        uint64_t left = next.due.ns > now.boot.ns ? next.due.ns - now.boot.ns : 0;
        if (left / 1000000 < (uint64_t)sleep_ms) sleep_ms = (int)(left / 1000000) + (left > 0);
    }
}

struct asked {
    struct bel_request request; /* first */
    bool is_answered;
    size_t deliveries;
    int64_t created_ms; /* of a timer */
    char id[BEL_ID_BYTES + 1];
};

static void answered(struct bel_request *request, const struct bel_reply *reply)
{
    struct asked *asked = (struct asked *)request;
    CHECK(reply->err == 0);
    asked->is_answered = true;
    if (request->command.verb == BEL_VERB_GET) {
        CHECK(reply->timers.count == 1);
        asked->created_ms = reply->timers.items[0].created.ms;
    }
    if (request->command.verb != BEL_VERB_CLAIM) return;
    asked->deliveries = reply->deliveries.count;
    if (reply->deliveries.count == 0) return;
    struct bel_view id = reply->deliveries.items[0].id;
    memcpy(asked->id, id.data, id.bytes);
    asked->id[id.bytes] = 0;
}

static void ask(struct node *node, struct asked *asked, const struct bel_command *command)
{
    *asked = (struct asked){.request = {.command = *command, .done = answered}};
    bel_backend_submit(node->backend, &asked->request);
    sleep_ms = 0;
}

static void await(const struct asked *asked)
{
    while (!asked->is_answered) {
        step();
    }
}

static struct bel_command claiming(uint64_t wait_ms)
{
    struct bel_command command = {.verb = BEL_VERB_CLAIM};
    command.claim =
        (struct bel_claim){.topics = &topic, .topics_count = 1, .count = 10, .wait_ms = wait_ms};
    return command;
}

/* The first thing that these nodes are asked for: they have not talked to the server yet. */
static void a_plan_begins_by_the_time_of_the_server(void)
{
    for (size_t i = 0; i < 2; i++) {
        struct asked made, got;
        struct bel_command schedule = {.verb = BEL_VERB_SCHEDULE}, get = {.verb = BEL_VERB_GET};
        schedule.schedule = (struct bel_schedule_spec){.topic = topic, .id = BEL_VIEW("later")};
        schedule.schedule.plan.rule = BEL_VIEW("1h");
        get.target = (struct bel_target){topic, BEL_VIEW("later")};
        ask(&nodes[i], &made, &schedule);
        await(&made);
        ask(&nodes[i], &got, &get);
        await(&got);
        int64_t age_ms = bel_clock_wall(bel_clock_system()).ms - got.created_ms;
        CHECK(age_ms > -HOUR_MS / 2 && age_ms < HOUR_MS / 2);
    }
}

static void a_waiting_claim_gets_what_another_node_schedules(void)
{
    struct asked made, claimed;
    struct bel_command claim = claiming(WAIT_MS), schedule = {.verb = BEL_VERB_SCHEDULE};
    schedule.schedule = (struct bel_schedule_spec){
        .topic = topic, .id = BEL_VIEW("a"), .when = BEL_WHEN_IN, .delay_ms = 30};
    ask(&nodes[1], &claimed, &claim);
    while (!bel__redis_is_idle(nodes[1].redis)) {
        step(); /* until the claim is parked */
    }
    ask(&nodes[0], &made, &schedule);
    await(&made);
    await(&claimed);
    CHECK(claimed.deliveries == 1 && strcmp(claimed.id, "a") == 0);
}

/* The call is under way, and finds a timer, when the first claim is withdrawn. */
static void a_claim_that_is_withdrawn_gives_back_what_it_gets(void)
{
    static struct asked first, second, made;
    struct bel_command claim = claiming(WAIT_MS), schedule = {.verb = BEL_VERB_SCHEDULE};
    schedule.schedule = (struct bel_schedule_spec){.topic = topic, .id = BEL_VIEW("w")};
    ask(&nodes[0], &first, &claim);
    ask(&nodes[0], &second, &claim);
    while (!bel__redis_is_idle(nodes[0].redis)) {
        step(); /* until the claims are parked */
    }
    ask(&nodes[0], &made, &schedule);
    (void)bel_backend_turn(nodes[0].backend, now_of(&nodes[0]));
    CHECK(bel_backend_withdraw(nodes[0].backend, &first.request));
    await(&made);
    await(&second);
    CHECK(second.deliveries == 1 && strcmp(second.id, "w") == 0 && !first.is_answered);
}

static void two_nodes_make_an_occurrence_once(void)
{
    struct asked made, claimed, rest;
    struct bel_command claim = claiming(WAIT_MS), again = claiming(0);
    struct bel_command schedule = {.verb = BEL_VERB_SCHEDULE};
    schedule.schedule = (struct bel_schedule_spec){.topic = topic, .id = BEL_VIEW("p")};
    schedule.schedule.plan.rule = BEL_VIEW("50ms");
    schedule.schedule.plan.count = 1;
    ask(&nodes[0], &made, &schedule);
    await(&made);
    ask(&nodes[1], &claimed, &claim);
    await(&claimed);
    CHECK(claimed.deliveries == 1 && strncmp(claimed.id, "p@", 2) == 0);
    ask(&nodes[0], &rest, &again);
    await(&rest);
    CHECK(rest.deliveries == 0);
}

/* More plans than one sweep has, and no node that knows their zone. */
static void plans_of_an_unknown_zone_hide_no_others(const char *path)
{
    struct bel_zones *zones;
    char id[8];
    struct asked made, claimed;
    struct bel_command claim = claiming(WAIT_MS), schedule = {.verb = BEL_VERB_SCHEDULE};
    schedule.schedule = (struct bel_schedule_spec){.topic = BEL_VIEW("zones")};
    schedule.schedule.plan.kind = BEL_PLAN_CRON;
    schedule.schedule.plan.rule = BEL_VIEW("* * * * * *");
    schedule.schedule.plan.zone = BEL_VIEW("Europe/Berlin");
    CHECK(bel_zones_open(NULL, &zones) == 0);
    bel__redis_close(nodes[0].redis);
    nodes[0].zones = zones;
    open_node(&nodes[0], path);
    for (unsigned i = 0; i < ZONED; i++) {
        int bytes = snprintf(id, sizeof id, "z%u", i);
        schedule.schedule.id = (struct bel_view){id, (size_t)bytes};
        ask(&nodes[0], &made, &schedule);
        await(&made);
    }
    bel__redis_close(nodes[0].redis);
    nodes[0].zones = NULL;
    open_node(&nodes[0], path);
    schedule.schedule.id = BEL_VIEW("utc");
    schedule.schedule.plan.kind = BEL_PLAN_EVERY;
    schedule.schedule.plan.rule = BEL_VIEW("1500ms"); /* the others are due before */
    schedule.schedule.plan.zone = (struct bel_view){NULL, 0};
    ask(&nodes[1], &made, &schedule);
    await(&made);
    claim.claim.topics = &schedule.schedule.topic;
    do {
        ask(&nodes[0], &claimed, &claim);
        await(&claimed);
    } while (claimed.deliveries > 0 && claimed.id[0] == 'z'); /* rung before its node closed */
    CHECK(claimed.deliveries > 0 && strncmp(claimed.id, "utc@", 4) == 0);
    bel_zones_close(zones);
}

int main(void)
{
    struct redis_server server;
    if (!redis_server_start(&server)) {
        (void)printf("SKIPPED: there is no redis-server on this machine\n");
        return SKIPPED;
    }
    open_node(&nodes[0], server.path);
    open_node(&nodes[1], server.path);
    RUN(a_plan_begins_by_the_time_of_the_server);
    RUN(a_waiting_claim_gets_what_another_node_schedules);
    RUN(a_claim_that_is_withdrawn_gives_back_what_it_gets);
    RUN(two_nodes_make_an_occurrence_once);
    plans_of_an_unknown_zone_hide_no_others(server.path);
    (void)printf("ok   plans_of_an_unknown_zone_hide_no_others\n");
    bel__redis_close(nodes[0].redis);
    bel__redis_close(nodes[1].redis);
    redis_server_stop(&server);
    return EXIT_SUCCESS;
}
