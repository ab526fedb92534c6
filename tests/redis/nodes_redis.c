/* SPDX-License-Identifier: MIT */

/*
 * Two nodes on one Redis server, with the clock of the server: a claim that waits in one node gets
 * the timer that another node schedules, and an occurrence of a plan is made once.
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
};

struct node {
    struct bel_redis *redis;
    struct bel_backend *backend;
};

static struct node nodes[2];
static const struct bel_view topic = {"mail", 4};

static void open_node(struct node *node, const char *path)
{
    struct bel_redis_options options = {.name_space = "nodes"};
    options.link.path = path;
    struct bel_now now = bel_clock_now(bel_clock_system());
    CHECK(bel__redis_open(&options, now, &node->redis) == 0);
    node->backend = bel__redis_backend(node->redis);
}

/* Takes a turn of both nodes, then sleeps until one of them needs another. */
static void step(void)
{
    struct pollfd fds[2];
    int wait_ms = STEP_MS;
    for (size_t i = 0; i < 2; i++) {
        struct bel_now now = bel_clock_now(bel_clock_system());
        struct bel_next next = bel_backend_turn(nodes[i].backend, now);
        uint64_t left = next.due.ns > now.boot.ns ? next.due.ns - now.boot.ns : 0;
        if (left / 1000000 < (uint64_t)wait_ms) wait_ms = (int)(left / 1000000) + (left > 0);
        fds[i] = (struct pollfd){.fd = bel_backend_descriptor(nodes[i].backend), .events = POLLIN};
    }
    CHECK(poll(fds, 2, wait_ms) >= 0);
}

struct asked {
    struct bel_request request; /* first */
    bool is_answered;
    size_t deliveries;
    char id[BEL_ID_BYTES + 1];
};

static void answered(struct bel_request *request, const struct bel_reply *reply)
{
    struct asked *asked = (struct asked *)request;
    CHECK(reply->err == 0);
    asked->is_answered = true;
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

int main(void)
{
    struct redis_server server;
    if (!redis_server_start(&server)) {
        (void)printf("SKIPPED: there is no redis-server on this machine\n");
        return SKIPPED;
    }
    open_node(&nodes[0], server.path);
    open_node(&nodes[1], server.path);
    RUN(a_waiting_claim_gets_what_another_node_schedules);
    RUN(two_nodes_make_an_occurrence_once);
    bel__redis_close(nodes[0].redis);
    bel__redis_close(nodes[1].redis);
    redis_server_stop(&server);
    return EXIT_SUCCESS;
}
