/* SPDX-License-Identifier: MIT */

/*
 * Nodes on servers that change: a Cluster whose primaries fail and whose slots move, a primary that
 * Sentinels replace, and replicas that are missing. With BEL_TEST_LONG there are more failovers.
 */
#include "../check.h"
#include "belfry/backend.h"
#include "redis/redis.h"
#include "redis/servers/slot.h"
#include "redis_group.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    SKIPPED = 77,
    STEP_MS = 200, /* of a poll, if a node has nothing to do before */
    WAIT_MS = 60000,
    NODES_MAX = 2,
    BURST = 40, /* requests that are under way together */
    FAILOVERS = 5,
    FAILOVERS_LONG = 100,
    IDS_MAX = 20000,
    ORDER_MOVES = 6, /* of a slot, to and fro */
    PATIENCE_S = 200,
    LONG_PATIENCE_S = 3000,
};

struct node {
    struct bel_redis_options options;
    struct bel_redis *redis;
    struct bel_backend *backend;
};

static struct redis_group group;
static struct node nodes[NODES_MAX];
static size_t nodes_count;
static unsigned answers;
static struct bel_view topic = {"mail", 4};

static bool is_long(void)
{
    return getenv("BEL_TEST_LONG") != NULL; /* NOLINT(concurrency-mt-unsafe) */
}

/* --- Nodes --- */

static struct node *open_node(enum bel_durability durability)
{
    struct node *node = &nodes[nodes_count++];
    struct bel_now now = bel_clock_now(bel_clock_system());
    struct bel_why why = {{0}, NULL};
    int err = bel__redis_parse(group.url, strlen(group.url), &node->options, &why);
    if (err) fprintf(stderr, "%s\n", why.text);
    CHECK(err == 0);
    node->options.servers.durability = durability;
    CHECK(bel__redis_open(&node->options, now, &node->redis) == 0);
    node->backend = bel__redis_backend(node->redis);
    return node;
}

static void close_nodes(void)
{
    for (size_t i = 0; i < nodes_count; i++) {
        bel__redis_close(nodes[i].redis);
        bel__redis_forget(&nodes[i].options);
    }
    nodes_count = 0;
}

/* Takes a turn of all nodes, then sleeps until one of them needs another, unless a request was
 * answered. */
static void step(void)
{
    struct pollfd fds[NODES_MAX];
    int wait_ms = STEP_MS;
    unsigned before = answers;
    for (size_t i = 0; i < nodes_count; i++) {
        struct bel_now now = bel_clock_now(bel_clock_system());
        struct bel_next next = bel_backend_turn(nodes[i].backend, now);
        uint64_t left = next.due.ns > now.boot.ns ? next.due.ns - now.boot.ns : 0;
        uint64_t wait = next.wait.ns > now.real.ns ? next.wait.ns - now.real.ns : 0;
        if (wait < left) left = wait;
        if (left / 1000000 < (uint64_t)wait_ms) wait_ms = (int)(left / 1000000) + (left > 0);
        fds[i] = (struct pollfd){.fd = bel_backend_descriptor(nodes[i].backend), .events = POLLIN};
    }
    CHECK(poll(fds, nodes_count, answers == before ? wait_ms : 0) >= 0);
}

/* --- Requests --- */

struct asked {
    struct bel_request request; /* first */
    struct bel_view token_view;
    size_t deliveries, timers;
    uint64_t cancelled;
    int err;
    bool is_answered;
    char why[BEL_REPLY_WHY_BYTES];
    char id[BEL_ID_BYTES + 1], token[BEL_TOKEN_BYTES_MAX + 1], own_id[32];
};

static void answered(struct bel_request *request, const struct bel_reply *reply)
{
    struct asked *asked = (struct asked *)request;
    asked->is_answered = true;
    answers++;
    asked->err = reply->err;
    (void)snprintf(asked->why, sizeof asked->why, "%s", reply->why);
    if (request->command.verb == BEL_VERB_GET) asked->timers = reply->err ? 0 : reply->timers.count;
    if (request->command.verb == BEL_VERB_CANCEL) asked->cancelled = reply->err ? 0 : reply->count;
    if (reply->err || request->command.verb != BEL_VERB_CLAIM) return;
    asked->deliveries = reply->deliveries.count;
    if (reply->deliveries.count == 0) return;
    const struct bel_delivery *first = &reply->deliveries.items[0];
    (void)snprintf(asked->id, sizeof asked->id, "%.*s", (int)first->id.bytes,
                   (const char *)first->id.data);
    (void)snprintf(asked->token, sizeof asked->token, "%.*s", (int)first->token.bytes,
                   (const char *)first->token.data);
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

static void await_ok(const struct asked *asked)
{
    await(asked);
    if (asked->err) fprintf(stderr, "%d: %s\n", asked->err, asked->why);
    CHECK(asked->err == 0);
}

static void begin_schedule(struct node *node, struct asked *asked, const char *id)
{
    struct bel_command command = {.verb = BEL_VERB_SCHEDULE};
    char text[sizeof asked->own_id];
    (void)snprintf(text, sizeof text, "%s", id);
    *asked = (struct asked){.is_answered = false};
    memcpy(asked->own_id, text, sizeof text);
    command.schedule = (struct bel_schedule_spec){.topic = topic,
                                                  .id = {asked->own_id, strlen(text)},
                                                  .conflict = BEL_CONFLICT_KEEP,
                                                  .when = BEL_WHEN_NOW};
    asked->request = (struct bel_request){.command = command, .done = answered};
    bel_backend_submit(node->backend, &asked->request);
}

/* Schedules until that has succeeded: the outcome of a failure may be unknown, so with KEEP. */
static void schedule(struct node *node, const char *id)
{
    static struct asked asked;
    do {
        begin_schedule(node, &asked, id);
        await(&asked);
    } while (asked.err == BEL_EIO);
    CHECK(asked.err == 0);
}

static struct bel_command claiming(uint64_t wait_ms)
{
    struct bel_command command = {.verb = BEL_VERB_CLAIM};
    command.claim = (struct bel_claim){
        .topics = &topic, .topics_count = 1, .count = 1, .wait_ms = wait_ms, .lease_ms = 600000};
    return command;
}

/* Claims a timer and acknowledges it, as often as it takes. Returns false if there is none. */
static bool consume(struct node *node, char id[BEL_ID_BYTES + 1])
{
    static struct asked claimed, acked;
    struct bel_command claim = claiming(0), ack = {.verb = BEL_VERB_ACK};
    do {
        ask(node, &claimed, &claim);
        await(&claimed);
    } while (claimed.err == BEL_EIO);
    CHECK(claimed.err == 0);
    if (claimed.deliveries == 0) return false;
    (void)snprintf(id, BEL_ID_BYTES + 1, "%s", claimed.id);
    claimed.token_view = (struct bel_view){claimed.token, strlen(claimed.token)};
    ack.ack = (struct bel_ack){.tokens = &claimed.token_view, .tokens_count = 1};
    do {
        ask(node, &acked, &ack);
        await(&acked);
    } while (acked.err == BEL_EIO);
    return true;
}

static bool is_there(struct node *node, const char *id)
{
    static struct asked asked;
    struct bel_command get = {.verb = BEL_VERB_GET};
    get.target = (struct bel_target){.topic = topic, .id = {id, strlen(id)}};
    do {
        ask(node, &asked, &get);
        await(&asked);
    } while (asked.err == BEL_EIO);
    CHECK(asked.err == 0);
    return asked.timers == 1;
}

static unsigned slot_of_topic(void)
{
    return bel__slot_of(BEL_VIEW("{belfry:mail:0}"));
}

/* --- A Cluster --- */

static void a_claim_is_woken_by_another_node(void)
{
    struct asked claimed;
    struct bel_command claim = claiming(WAIT_MS);
    struct node *one = open_node(BEL_DURABILITY_ASYNC), *two = open_node(BEL_DURABILITY_ASYNC);
    ask(two, &claimed, &claim);
    while (!bel__redis_is_idle(two->redis)) {
        step(); /* until the claim is parked, and the channel of its topic is heard */
    }
    schedule(one, "a");
    await_ok(&claimed);
    CHECK(claimed.deliveries == 1 && strcmp(claimed.id, "a") == 0);
    close_nodes();
}

/* Starts a former primary again, which becomes a replica. */
static void come_back(size_t index)
{
    group_restart(&group, index);
    group_await(&group, index, "INFO replication", "role:slave");
}

/* A claim is under way when the primary dies. Its replica takes over without a vote. */
static void a_failover_in_the_middle_of_a_claim(void)
{
    struct asked claimed;
    char id[BEL_ID_BYTES + 1];
    struct bel_command claim = claiming(0);
    struct node *node = open_node(BEL_DURABILITY_WAIT);
    schedule(node, "b");
    size_t primary = group_primary_of(&group, slot_of_topic());
    ask(node, &claimed, &claim);
    step();
    group_kill(&group, primary);
    (void)group_take_over(&group, primary);
    come_back(primary);
    await(&claimed);
    CHECK(claimed.err == 0 || claimed.err == BEL_EIO);
    schedule(node, "c"); /* until the new primary has a replica */
    bool has_c = false;
    while (consume(node, id)) {
        has_c |= strcmp(id, "c") == 0;
    }
    CHECK(has_c);
    close_nodes();
}

static void name_of(size_t index, char out[64])
{
    const char *said = group_ask(&group, index, "CLUSTER MYID");
    CHECK(said != NULL);
    (void)snprintf(out, 64, "%.*s", (int)strcspn(said, "\r\n"), said);
}

/* --- Load --- */

/* Requests that are always under way, and the ids whose schedule was acknowledged. */
static struct asked load[BURST];
static char ids[IDS_MAX][32];
static size_t ids_count;
static unsigned made;

static void begin_load(void)
{
    memset(load, 0, sizeof load);
    ids_count = made = 0;
}

static void collect(struct asked *asked)
{
    CHECK(asked->err == 0 || asked->err == BEL_EIO);
    if (asked->err || ids_count == IDS_MAX) return;
    memcpy(ids[ids_count++], asked->own_id, sizeof ids[0]);
}

/* Replaces the requests that were answered, and takes a turn. */
static void keep_up(struct node *node, const char *prefix)
{
    for (size_t i = 0; i < BURST; i++) {
        char id[32];
        if (load[i].own_id[0] != 0 && !load[i].is_answered) continue;
        if (load[i].own_id[0] != 0) collect(&load[i]);
        (void)snprintf(id, sizeof id, "%s-%u", prefix, made++);
        begin_schedule(node, &load[i], id);
    }
    step();
}

/* Keeps on until another number of schedules was acknowledged. */
static void succeed(struct node *node, const char *prefix, size_t count)
{
    size_t wanted = ids_count + count;
    while (ids_count < wanted) {
        keep_up(node, prefix);
    }
}

/* Waits for the last requests, then checks that every timer that was acknowledged is there. */
static void check_load(struct node *node)
{
    for (size_t i = 0; i < BURST; i++) {
        if (load[i].own_id[0] == 0) continue;
        await(&load[i]);
        collect(&load[i]);
    }
    size_t lost = 0;
    for (size_t i = 0; i < ids_count; i++) {
        if (is_there(node, ids[i])) continue;
        fprintf(stderr, "lost: %s\n", ids[i]);
        lost++;
    }
    printf("     %zu acknowledged, %zu lost, %u asked\n", ids_count, lost, made);
    CHECK_EQ(lost, 0);
}

/* --- Slots that move --- */

/* Moves a slot with its keys, one by one, while the node is under load. */
static void move_slot(struct node *node, size_t from, size_t to, unsigned slot,
                      void (*keep_busy)(struct node *node, const char *prefix))
{
    char from_name[64], to_name[64], key[256];
    name_of(from, from_name);
    name_of(to, to_name);
    group_tell(&group, to, "CLUSTER SETSLOT %u IMPORTING %s", slot, from_name);
    group_tell(&group, from, "CLUSTER SETSLOT %u MIGRATING %s", slot, to_name);
    while (group_key_of(&group, from, slot, key, sizeof key)) {
        keep_busy(node, "move");
        group_tell(&group, from, "MIGRATE 127.0.0.1 %u %s 0 60000", group.servers[to].port, key);
        keep_busy(node, "move");
    }
    for (int i = 0; i < 5; i++) {
        keep_busy(node, "move"); /* ASK */
    }
    group_tell(&group, to, "CLUSTER SETSLOT %u NODE %s", slot, to_name);
    keep_busy(node, "move");
    group_tell(&group, from, "CLUSTER SETSLOT %u NODE %s", slot, to_name);
}

static void a_slot_moves_under_load(void)
{
    struct node *node = open_node(BEL_DURABILITY_ASYNC);
    unsigned slot = slot_of_topic();
    size_t from = group_primary_of(&group, slot), spare = group.count - 1;
    begin_load();
    succeed(node, "move", BURST);
    move_slot(node, from, spare, slot, keep_up);
    succeed(node, "move", BURST);
    move_slot(node, spare, from, slot, keep_up);
    succeed(node, "move", BURST);
    check_load(node);
    close_nodes();
}

/* Pairs of requests about a timer, sent together: the second one finds what the first one left. */
static struct {
    struct asked scheduled, cancelled;
} pairs[BURST];
static unsigned pairs_count;

static void keep_up_pairs(struct node *node, const char *prefix)
{
    struct bel_command cancel = {.verb = BEL_VERB_CANCEL};
    for (size_t i = 0; i < BURST; i++) {
        char id[32];
        struct asked *one = &pairs[i].scheduled, *two = &pairs[i].cancelled;
        bool is_used = one->own_id[0] != 0;
        if (is_used && (!one->is_answered || !two->is_answered)) continue;
        if (is_used) CHECK(one->err == 0 && two->err == 0 && two->cancelled == 1);
        pairs_count++;
        (void)snprintf(id, sizeof id, "%s-%u", prefix, pairs_count);
        begin_schedule(node, one, id);
        one->token_view = (struct bel_view){one->own_id, strlen(id)};
        cancel.cancel =
            (struct bel_cancel){.topic = topic, .ids = &one->token_view, .ids_count = 1};
        ask(node, two, &cancel);
    }
    step();
}

static void what_comes_second_stays_so_while_a_slot_moves(void)
{
    struct node *node = open_node(BEL_DURABILITY_ASYNC);
    unsigned slot = slot_of_topic();
    size_t from = group_primary_of(&group, slot), spare = group.count - 1;
    schedule(node, "one");
    memset(pairs, 0, sizeof pairs);
    for (int i = 0; i < ORDER_MOVES; i++) {
        bool is_back = i % 2 != 0;
        unsigned wanted = pairs_count + BURST;
        move_slot(node, is_back ? spare : from, is_back ? from : spare, slot, keep_up_pairs);
        while (pairs_count < wanted) {
            keep_up_pairs(node, "pair");
        }
    }
    for (size_t i = 0; i < BURST; i++) {
        await_ok(&pairs[i].scheduled);
        await_ok(&pairs[i].cancelled);
    }
    printf("     %u pairs\n", pairs_count);
    close_nodes();
}

/* The first command for a topic comes while its slot is being moved, which goes on for longer than
 * any command may take. */
static void a_topic_is_born_while_its_slot_moves(void)
{
    struct asked asked, got;
    struct bel_command get = {.verb = BEL_VERB_GET};
    struct node *node = open_node(BEL_DURABILITY_ASYNC);
    const struct bel_view usual = topic;
    char from_name[64], to_name[64], id[BEL_ID_BYTES + 1];
    topic = BEL_VIEW("newborn");
    unsigned slot = bel__slot_of(BEL_VIEW("{belfry:newborn:0}"));
    size_t from = group_primary_of(&group, slot), to = group.count - 1;
    name_of(from, from_name);
    name_of(to, to_name);
    group_tell(&group, to, "CLUSTER SETSLOT %u IMPORTING %s", slot, from_name);
    group_tell(&group, from, "CLUSTER SETSLOT %u MIGRATING %s", slot, to_name);
    get.target = (struct bel_target){.topic = topic, .id = {"first", 5}};
    ask(node, &got, &get);
    await(&got);
    CHECK(got.err == 0 && got.timers == 0); /* a topic that does not exist has no timers */
    begin_schedule(node, &asked, "first");
    await_ok(&asked);
    CHECK(is_there(node, "first"));
    group_tell(&group, to, "CLUSTER SETSLOT %u NODE %s", slot, to_name);
    group_tell(&group, from, "CLUSTER SETSLOT %u NODE %s", slot, to_name);
    CHECK(consume(node, id) && strcmp(id, "first") == 0);
    topic = usual;
    close_nodes();
}

/* A waiting claim hears of a timer although the slot of its topic has moved. */
static void a_wake_up_follows_its_slot(void)
{
    struct asked claimed;
    char id[BEL_ID_BYTES + 1], key[256], name[64];
    struct bel_command claim = claiming(WAIT_MS);
    struct node *one = open_node(BEL_DURABILITY_ASYNC), *two = open_node(BEL_DURABILITY_ASYNC);
    unsigned slot = slot_of_topic();
    size_t from = group_primary_of(&group, slot), spare = group.count - 1;
    while (consume(two, id)) { /* nothing is left */
    }
    ask(two, &claimed, &claim);
    while (!bel__redis_is_idle(two->redis)) {
        step();
    }
    name_of(from, name);
    group_tell(&group, spare, "CLUSTER SETSLOT %u IMPORTING %s", slot, name);
    name_of(spare, name);
    group_tell(&group, from, "CLUSTER SETSLOT %u MIGRATING %s", slot, name);
    while (group_key_of(&group, from, slot, key, sizeof key)) {
        group_tell(&group, from, "MIGRATE 127.0.0.1 %u %s 0 60000", group.servers[spare].port, key);
    }
    group_tell(&group, spare, "CLUSTER SETSLOT %u NODE %s", slot, name);
    group_tell(&group, from, "CLUSTER SETSLOT %u NODE %s", slot, name);
    schedule(one, "woken");
    await_ok(&claimed);
    CHECK(claimed.deliveries == 1 && strcmp(claimed.id, "woken") == 0);
    close_nodes();
}

/* --- Durability --- */

static size_t failovers(void)
{
    return is_long() ? FAILOVERS_LONG : FAILOVERS;
}

/* The primary dies under load, its replica takes over, and the old one comes back as a replica. */
static void nothing_acknowledged_is_lost_under_wait(void)
{
    struct node *node = open_node(BEL_DURABILITY_WAIT);
    begin_load();
    for (size_t i = 0; i < failovers(); i++) {
        succeed(node, "wait", BURST + i % 7);
        size_t primary = group_primary_of(&group, slot_of_topic());
        group_kill(&group, primary);
        keep_up(node, "wait");
        (void)group_take_over(&group, primary);
        for (int k = 0; k < 5; k++) {
            keep_up(node, "wait");
        }
        come_back(primary);
    }
    succeed(node, "wait", BURST);
    check_load(node);
    close_nodes();
}

/* Without its replica a primary refuses changes, and nothing is changed; reads go on. */
static void changes_are_refused_without_replicas(void)
{
    struct asked asked;
    struct node *node = open_node(BEL_DURABILITY_WAIT);
    schedule(node, "one");
    group_kill(&group, 1);
    do {
        begin_schedule(node, &asked, "two");
        await(&asked);
    } while (strstr(asked.why, "nothing was changed") == NULL);
    CHECK(asked.err == BEL_EIO && strstr(asked.why, "0 of 1 replicas") != NULL);
    begin_schedule(node, &asked, "three");
    await(&asked);
    CHECK(asked.err == BEL_EIO);
    CHECK(!is_there(node, "three"));
    CHECK(is_there(node, "one"));
    group_restart(&group, 1);
    group_tell(&group, 1, "REPLICAOF 127.0.0.1 %u", group.servers[0].port);
    schedule(node, "three");
    CHECK(is_there(node, "three"));
    close_nodes();
}

/* A timer that is kept was written by another connection, and its replica has not got it. */
static void what_is_kept_is_proved_too(void)
{
    struct asked kept;
    struct node *async = open_node(BEL_DURABILITY_ASYNC), *wait = open_node(BEL_DURABILITY_WAIT);
    schedule(wait, "first"); /* the number of replicas is known */
    group_stand_still(&group, 1, true);
    schedule(async, "kept");
    begin_schedule(wait, &kept, "kept");
    await(&kept);
    CHECK(kept.err == BEL_EIO && strstr(kept.why, "CONFLICT keep") != NULL);
    group_stand_still(&group, 1, false);
    schedule(wait, "kept");
    close_nodes();
}

/* Returns how often a server has executed a command. */
static unsigned long calls_of(size_t index, const char *command)
{
    char name[64];
    const char *said = group_ask(&group, index, "INFO commandstats");
    CHECK(said != NULL);
    (void)snprintf(name, sizeof name, "cmdstat_%s:calls=", command);
    const char *found = strstr(said, name);
    return found == NULL ? 0 : strtoul(found + strlen(name), NULL, 10);
}

/* With append-only files, a server that knows WAITAOF is asked for them. */
static void files_are_waited_for(void)
{
    struct node *node = open_node(BEL_DURABILITY_WAIT);
    schedule(node, "memory");
    bool knows_files = calls_of(0, "waitaof") > 0; /* and has refused, without such a file */
    for (size_t i = 0; i < 2; i++) {
        group_tell(&group, i, "CONFIG SET appendonly yes");
        group_await(&group, i, "INFO persistence", "aof_rewrite_in_progress:0");
        group_await(&group, i, "INFO persistence", "aof_enabled:1");
    }
    close_nodes(); /* a new connection tries WAITAOF again */
    node = open_node(BEL_DURABILITY_WAIT);
    unsigned long waits = calls_of(0, "wait");
    schedule(node, "file");
    if (knows_files) CHECK_EQ(calls_of(0, "wait"), waits);
    printf("     %s\n", knows_files ? "by WAITAOF" : "this server does not know WAITAOF");
    CHECK(is_there(node, "file"));
    close_nodes();
}

/* --- Sentinels --- */

static void sentinels_replace_the_primary(void)
{
    struct node *node = open_node(BEL_DURABILITY_WAIT);
    begin_load();
    succeed(node, "calm", BURST);
    group_await(&group, 3, "SENTINEL FAILOVER belfry", "+OK"); /* the primary lives on */
    group_await(&group, 0, "INFO replication", "role:slave");
    succeed(node, "calm", BURST);
    check_load(node);
    close_nodes();
}

static void sentinels_replace_a_dead_primary(void)
{
    struct node *node = open_node(BEL_DURABILITY_ASYNC);
    size_t primary = 0;
    schedule(node, "before");
    while (strstr(group_ask(&group, primary, "INFO replication"), "role:master") == NULL) {
        primary++;
    }
    group_kill(&group, primary);
    schedule(node, "after"); /* until the Sentinels have agreed */
    CHECK(is_there(node, "after"));
    close_nodes();
}

/* Runs a test, unless another one is named on the command line. */
#define RUN_ASKED(test)                                                                            \
    do {                                                                                           \
        if (only == NULL || strcmp(only, #test) == 0) RUN(test);                                   \
    } while (0)

static const char *only;

static void with_cluster(void)
{
    RUN_ASKED(a_claim_is_woken_by_another_node);
    RUN_ASKED(a_failover_in_the_middle_of_a_claim);
    RUN_ASKED(a_slot_moves_under_load);
    RUN_ASKED(what_comes_second_stays_so_while_a_slot_moves);
    RUN_ASKED(a_topic_is_born_while_its_slot_moves);
    RUN_ASKED(nothing_acknowledged_is_lost_under_wait);
    RUN_ASKED(a_wake_up_follows_its_slot);
}

static void with_replica(void)
{
    RUN_ASKED(changes_are_refused_without_replicas);
    RUN_ASKED(what_is_kept_is_proved_too);
    RUN_ASKED(files_are_waited_for);
}

static void with_sentinels(void)
{
    RUN_ASKED(sentinels_replace_the_primary);
    RUN_ASKED(sentinels_replace_a_dead_primary);
}

int main(int argc, char **argv)
{
    const char *kind = argc > 1 ? argv[1] : "";
    only = argc > 2 ? argv[2] : NULL;
    bool is_cluster = strcmp(kind, "cluster") == 0, is_sentinel = strcmp(kind, "sentinel") == 0;
    (void)alarm(is_long() ? LONG_PATIENCE_S : PATIENCE_S);
    bool has_started = is_cluster    ? group_start_cluster(&group, true)
                       : is_sentinel ? group_start_sentinels(&group)
                                     : group_start_replicas(&group, 1);
    if (!has_started) {
        (void)printf("SKIPPED: there is no such server on this machine\n");
        return SKIPPED;
    }
    if (is_cluster) {
        with_cluster();
    } else if (is_sentinel) {
        with_sentinels();
    } else {
        with_replica();
    }
    group_stop(&group);
    return EXIT_SUCCESS;
}
