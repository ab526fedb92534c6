/* SPDX-License-Identifier: MIT */

/*
 * Nodes on a Cluster of three primaries: the clock of one of them is an hour ahead, and topics with
 * partitions are spread over all three.
 *
 *     primaries_redis LIBRARY        which shifts the clock, see shifted_clock.c
 */
#include "../check.h"
#include "belfry/backend.h"
#include "redis/redis.h"
#include "redis/servers/slot.h"
#include "redis_group.h"

#include "core/units.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    SKIPPED = 77,
    AHEAD_S = 3600,
    APART_S = 60, /* what is the same time, for tests */
    STEP_MS = 200,
    PATIENCE_S = 200,
    TOPICS = 48,
    TIMERS = 64, /* of a topic */
};

static struct redis_group group;
static struct bel_redis_options options;
static struct bel_redis *redis;
static struct bel_next next;
static unsigned left; /* requests without an answer */

/* --- A node --- */

static void open_node(void)
{
    CHECK(bel__redis_parse(group.url, strlen(group.url), &options, NULL) == 0);
    CHECK(bel__redis_open(&options, bel_clock_now(bel_clock_system()), &redis) == 0);
}

static void close_node(void)
{
    bel__redis_close(redis);
    bel__redis_forget(&options);
}

static void take_turn(void)
{
    next = bel_backend_turn(bel__redis_backend(redis), bel_clock_now(bel_clock_system()));
}

/* Takes turns until all requests are answered, and nothing is under way. */
static void settle(void)
{
    struct pollfd fd = {.fd = bel_backend_descriptor(bel__redis_backend(redis)), .events = POLLIN};
    take_turn();
    while (left > 0 || !bel__redis_is_idle(redis)) {
        CHECK(poll(&fd, 1, next.due.ns == 0 ? 0 : STEP_MS) >= 0);
        take_turn();
    }
}

struct asked {
    struct bel_request request; /* first */
    struct bel_view topic, id, tokens[TIMERS];
    struct bel_setting setting;
    char texts[TIMERS][BEL_TOKEN_BYTES_MAX + 1], topic_text[16], id_text[16];
    size_t count;
    int64_t created_ms;
};

static void answered(struct bel_request *request, const struct bel_reply *reply)
{
    struct asked *asked = (struct asked *)request;
    CHECK_NOTE("%s", reply->why);
    CHECK(reply->err == 0 && left > 0);
    left--;
    if (request->command.verb == BEL_VERB_GET) {
        CHECK_EQ(reply->timers.count, 1);
        asked->created_ms = reply->timers.items[0].created.ms;
    }
    if (request->command.verb != BEL_VERB_CLAIM) return;
    asked->count = reply->deliveries.count;
    for (size_t i = 0; i < asked->count; i++) {
        struct bel_view token = reply->deliveries.items[i].token;
        (void)snprintf(asked->texts[i], sizeof asked->texts[i], "%.*s", (int)token.bytes,
                       (const char *)token.data);
        asked->tokens[i] = (struct bel_view){asked->texts[i], token.bytes};
    }
}

static void name(struct asked *asked, const char *topic, const char *id)
{
    (void)snprintf(asked->topic_text, sizeof asked->topic_text, "%s", topic);
    (void)snprintf(asked->id_text, sizeof asked->id_text, "%s", id);
    asked->topic = (struct bel_view){asked->topic_text, strlen(asked->topic_text)};
    asked->id = (struct bel_view){asked->id_text, strlen(asked->id_text)};
}

static void ask(struct asked *asked, const struct bel_command *command)
{
    asked->request = (struct bel_request){.command = *command, .done = answered};
    bel_backend_submit(bel__redis_backend(redis), &asked->request);
    left++;
}

static void schedule(struct asked *asked, uint64_t delay_ms, const char *rule)
{
    struct bel_command command = {.verb = BEL_VERB_SCHEDULE};
    command.schedule = (struct bel_schedule_spec){.topic = asked->topic, .id = asked->id};
    command.schedule.when = delay_ms > 0 ? BEL_WHEN_IN : BEL_WHEN_NOW;
    command.schedule.delay_ms = delay_ms;
    if (rule != NULL) command.schedule.plan.rule = (struct bel_view){rule, strlen(rule)};
    ask(asked, &command);
}

/* --- Clocks --- */

/* Finds a topic whose only partition is at a primary. */
static void topic_at(size_t primary, char out[16])
{
    for (unsigned i = 0;; i++) {
        char tag[64];
        int bytes = snprintf(tag, sizeof tag, "{belfry:t%u:0}", i);
        unsigned slot = bel__slot_of((struct bel_view){tag, (size_t)bytes});
        (void)snprintf(out, 16, "t%u", i);
        if (group_primary_of(&group, slot) == primary) return;
    }
}

static int64_t seconds_of(size_t primary)
{
    const char *said = group_ask(&group, primary, "TIME");
    CHECK(said != NULL);
    while (said[0] == '*' || said[0] == '$') { /* the heads of the reply */
        said = strchr(said, '\n') + 1;
    }
    return strtoll(said, NULL, 10);
}

/* The timer that is due next is at the server whose clock is ahead. */
static void a_node_sleeps_by_the_clock_of_each_primary(void)
{
    static struct asked ahead, other;
    char topic[16];
    open_node();
    topic_at(0, topic);
    name(&ahead, topic, "ahead");
    schedule(&ahead, UINT64_C(600000), NULL);
    settle();
    topic_at(1, topic);
    name(&other, topic, "other");
    schedule(&other, UINT64_C(2000000), NULL);
    settle();
    take_turn();
    uint64_t left_s = (next.due.ns - bel_clock_now(bel_clock_system()).boot.ns) / NS_PER_S;
    printf("     %llu s left of 600\n", (unsigned long long)left_s);
    CHECK(left_s <= 600 && left_s > 600 - APART_S);
    close_node();
}

/* The first command that a node sends to a server is a plan, whose times it computes. */
static void a_plan_begins_by_the_clock_of_its_primary(void)
{
    for (size_t i = 0; i < group.primaries; i++) {
        static struct asked plan;
        struct bel_command get = {.verb = BEL_VERB_GET};
        char topic[16];
        open_node();
        topic_at(i, topic);
        name(&plan, topic, "plan");
        schedule(&plan, 0, "1h");
        settle();
        get.target = (struct bel_target){.topic = plan.topic, .id = plan.id};
        ask(&plan, &get);
        settle();
        int64_t apart_s = seconds_of(i) - plan.created_ms / 1000;
        printf("     primary %zu: created %lld s ago\n", i, (long long)apart_s);
        CHECK(apart_s >= 0 && apart_s < APART_S);
        close_node();
    }
}

/* --- Spreading --- */

static unsigned long commands_of(size_t index)
{
    const char *said = group_ask(&group, index, "INFO commandstats");
    const char *found = said == NULL ? NULL : strstr(said, "cmdstat_evalsha:calls=");
    return found == NULL ? 0 : strtoul(strchr(found, '=') + 1, NULL, 10);
}

/* A life of every timer: SCHEDULE, CLAIM, ACK. */
static void live(struct asked *requests)
{
    struct bel_command claim = {.verb = BEL_VERB_CLAIM}, ack = {.verb = BEL_VERB_ACK};
    for (unsigned i = 0; i < TIMERS; i++) {
        for (unsigned k = 0; k < TOPICS; k++) {
            char topic[16], id[16];
            (void)snprintf(topic, sizeof topic, "spread%u", k);
            (void)snprintf(id, sizeof id, "%u", i);
            name(&requests[k], topic, id);
            schedule(&requests[k], 0, NULL);
        }
        settle();
    }
    for (unsigned claimed = 0; claimed < TOPICS * TIMERS;) {
        for (unsigned k = 0; k < TOPICS; k++) {
            claim.claim = (struct bel_claim){.topics = &requests[k].topic,
                                             .topics_count = 1,
                                             .count = TIMERS / 8,
                                             .lease_ms = 600000};
            ask(&requests[k], &claim);
        }
        settle();
        for (unsigned k = 0; k < TOPICS; k++) {
            claimed += (unsigned)requests[k].count;
            ack.ack =
                (struct bel_ack){.tokens = requests[k].tokens, .tokens_count = requests[k].count};
            if (requests[k].count > 0) ask(&requests[k], &ack);
        }
        settle();
    }
}

static void commands_are_spread_over_the_primaries(void)
{
    struct asked *requests = calloc(TOPICS, sizeof *requests);
    struct bel_command divide = {.verb = BEL_VERB_CONFIGURE};
    unsigned long before[3], least = 0, most = 0;
    CHECK(requests != NULL);
    open_node();
    for (unsigned k = 0; k < TOPICS; k++) {
        char topic[16];
        (void)snprintf(topic, sizeof topic, "spread%u", k);
        name(&requests[k], topic, "");
        requests[k].setting = (struct bel_setting){BEL_VIEW("partitions"), BEL_VIEW("8")};
        divide.configure = (struct bel_configure){requests[k].topic, &requests[k].setting, 1};
        ask(&requests[k], &divide);
    }
    settle();
    for (size_t i = 0; i < group.primaries; i++) {
        before[i] = commands_of(i);
    }
    live(requests);
    for (size_t i = 0; i < group.primaries; i++) {
        unsigned long count = commands_of(i) - before[i];
        if (i == 0 || count < least) least = count;
        if (count > most) most = count;
        printf("     primary %zu: %lu scripts\n", i, count);
    }
    printf("     the busiest has %.1f %% more than the least busy\n",
           100.0 * (double)(most - least) / (double)least);
    CHECK(most * 10 <= least * 12);
    close_node();
    free(requests);
}

int main(int argc, char **argv)
{
    (void)alarm(PATIENCE_S);
    if (!group_start_primaries(&group, argc > 1 ? argv[1] : NULL, AHEAD_S)) {
        (void)printf("SKIPPED: there is no such server on this machine\n");
        return SKIPPED;
    }
    if (seconds_of(0) > seconds_of(1) + AHEAD_S / 2) {
        RUN(a_node_sleeps_by_the_clock_of_each_primary);
        RUN(a_plan_begins_by_the_clock_of_its_primary);
    } else {
        (void)printf("SKIPPED: clocks that differ; the clock of this server cannot be set\n");
    }
    RUN(commands_are_spread_over_the_primaries);
    group_stop(&group);
    return EXIT_SUCCESS;
}
