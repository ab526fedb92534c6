/* SPDX-License-Identifier: MIT */

/*
 * A layer above the engine that hears what happens to timers, and keeps a book from nothing else:
 *
 *     unfinished = added - ended           free = arrived - left
 *
 * After every command of a random history both agree with what the engine says of the topic.
 */
#include "engine/engine.h"

#include "../check.h"
#include "../random.h"
#include "engine/state/reactions.h"
#include "engine/state/timer_lookup.h"

#include <string.h>

enum {
    COMMANDS = 4000,
    IDS = 12,
    TOKENS = 8,
};

static const int64_t start_ms = INT64_C(1767225600000);

/* --- the layer --- */

static struct {
    uint64_t looked, added, arrived, left, moved, rang, expires, freed, kept, ended;
} layer;

static int look(struct bel_engine *engine, struct bel_found *found, size_t *rows)
{
    layer.looked++;
    return bel__reactions.look(engine, found, rows);
}

static void added(struct bel_engine *engine, struct bel_topic_state *topic,
                  const struct bel_record *record)
{
    bel__reactions.added(engine, topic, record);
    layer.added++;
}

static void arrived(struct bel_engine *engine, struct bel_topic_state *topic,
                    const struct bel_key *key, const struct bel_record *record)
{
    bel__reactions.arrived(engine, topic, key, record);
    layer.arrived++;
}

static void left(struct bel_engine *engine, struct bel_topic_state *topic,
                 const struct bel_key *key, const struct bel_record *record)
{
    bel__reactions.left(engine, topic, key, record);
    layer.left++;
}

static void moved(struct bel_engine *engine, struct bel_found *found, const struct bel_key *from)
{
    bel__reactions.moved(engine, found, from);
    CHECK(bel__key_compare(&found->key, from) != 0);
    layer.moved++;
}

static void rang(struct bel_engine *engine, const struct bel_found *plan, bool is_skipped)
{
    bel__reactions.rang(engine, plan, is_skipped);
    CHECK(plan->record.kind == BEL_RECORD_PLAN);
    layer.rang++;
}

static void expires(struct bel_engine *engine, struct bel_topic_state *topic,
                    const struct bel_key *row)
{
    bel__reactions.expires(engine, topic, row);
    layer.expires++;
}

static void freed(struct bel_engine *engine, struct bel_topic_state *topic)
{
    bel__reactions.freed(engine, topic);
    layer.freed++;
}

static void kept(struct bel_engine *engine, struct bel_topic_state *topic, uint64_t time)
{
    bel__reactions.kept(engine, topic, time);
    layer.kept++;
}

static void ended(struct bel_engine *engine, struct bel_found *found)
{
    bel__reactions.ended(engine, found);
    layer.ended++;
}

static const struct bel_timer_events events = {.look = look,
                                               .added = added,
                                               .arrived = arrived,
                                               .left = left,
                                               .moved = moved,
                                               .rang = rang,
                                               .expires = expires,
                                               .freed = freed,
                                               .kept = kept,
                                               .ended = ended};

/* --- the engine --- */

struct world {
    struct bel_engine *engine;
    struct bel_now now;
    uint64_t random;
    char tokens[TOKENS][64];
    size_t token_bytes[TOKENS];
    uint64_t counts[BEL_STATES];
    uint64_t plans;
};

static struct bel_view view(const char *text)
{
    return (struct bel_view){text, strlen(text)};
}

static void hear(struct bel_request *request, const struct bel_reply *reply)
{
    struct world *world = request->user;
    if (reply->err == 0 && request->command.verb == BEL_VERB_TOPIC) {
        memcpy(world->counts, reply->topic->counts, sizeof world->counts);
        world->plans = reply->topic->plans;
    }
    if (request->command.verb != BEL_VERB_CLAIM || reply->deliveries.count == 0) return;
    struct bel_view token = reply->deliveries.items[0].token;
    size_t index = random_below(&world->random, TOKENS);
    CHECK(token.bytes <= sizeof world->tokens[index]);
    memcpy(world->tokens[index], token.data, token.bytes);
    world->token_bytes[index] = token.bytes;
}

/* Any error is fine: it has changed nothing. */
static void ask(struct world *world, struct bel_command command)
{
    struct bel_request request = {.command = command, .done = hear, .user = world};
    struct bel_backend *backend = bel_engine_backend(world->engine);
    bel_backend_submit(backend, &request);
    while (request.own.words[BEL_OWN_STAGE] != BEL_STAGE_ANSWERED) {
        (void)bel_backend_turn(backend, world->now);
    }
}

static void open_world(struct world *world, uint64_t seed)
{
    const struct bel_setting settings[] = {{BEL_VIEW("retention"), BEL_VIEW("2s")},
                                           {BEL_VIEW("crashes"), BEL_VIEW("2")},
                                           {BEL_VIEW("concurrency"), BEL_VIEW("3")}};
    *world = (struct world){.random = seed, .now = {{1000000}, {start_ms}, {1}, 0}};
    struct bel_engine_options options = {.now = world->now};
    CHECK(bel_engine_open(&options, &world->engine, NULL) == 0);
    world->engine->events = &events;
    ask(world,
        (struct bel_command){.verb = BEL_VERB_CONFIGURE, .configure = {view("mail"), settings, 3}});
}

static struct bel_command schedule(struct world *world, struct bel_view id)
{
    uint64_t *random = &world->random;
    struct bel_schedule_spec spec = {.topic = view("mail"), .id = id, .when = BEL_WHEN_IN};
    spec.delay_ms = random_below(random, 4) * random_below(random, 1000);
    if (random_below(random, 2) == 0) spec.group = view("red");
    if (random_below(random, 3) == 0) spec.expires_ms = 1 + random_below(random, 2000);
    if (random_below(random, 6) == 0) {
        spec.plan = (struct bel_recurrence){.kind = BEL_PLAN_EVERY,
                                            .rule = view("1s"),
                                            .count = random_below(random, 5),
                                            .overlap = (enum bel_overlap)random_below(random, 3),
                                            .mode = (enum bel_plan_mode)random_below(random, 2)};
    }
    return (struct bel_command){.verb = BEL_VERB_SCHEDULE, .schedule = spec};
}

static struct bel_command with_token(struct world *world, enum bel_verb verb)
{
    size_t index = random_below(&world->random, TOKENS);
    static struct bel_view token;
    token = (struct bel_view){world->tokens[index], world->token_bytes[index]};
    struct bel_command command = {.verb = verb};
    if (verb == BEL_VERB_ACK) command.ack = (struct bel_ack){.tokens = &token, .tokens_count = 1};
    if (verb == BEL_VERB_RELEASE) command.release = (struct bel_release){.token = token};
    if (verb == BEL_VERB_FAIL) {
        command.fail = (struct bel_fail){.token = token, .dead = random_below(&world->random, 2)};
    }
    return command;
}

static struct bel_command draw(struct world *world)
{
    static const enum bel_verb verbs[] = {
        BEL_VERB_SCHEDULE, BEL_VERB_SCHEDULE, BEL_VERB_CLAIM,  BEL_VERB_CLAIM, BEL_VERB_ACK,
        BEL_VERB_FAIL,     BEL_VERB_RELEASE,  BEL_VERB_CANCEL, BEL_VERB_PURGE, BEL_VERB_REVIVE};
    static char text[8];
    static struct bel_view id, topic = {"mail", 4};
    enum bel_verb verb = verbs[random_below(&world->random, sizeof verbs / sizeof verbs[0])];
    (void)snprintf(text, sizeof text, "t%d", (int)random_below(&world->random, IDS));
    id = view(text);
    switch (verb) {
    case BEL_VERB_SCHEDULE:
        return schedule(world, id);
    case BEL_VERB_CLAIM:
        return (struct bel_command){
            .verb = verb, .claim = {.topics = &topic, .topics_count = 1, .lease_ms = 1500}};
    case BEL_VERB_CANCEL:
        return (struct bel_command){.verb = verb, .cancel = {topic, &id, 1}};
    case BEL_VERB_PURGE:
        return (struct bel_command){
            .verb = verb, .purge = {topic, random_below(&world->random, 4) == 0, BEL_SCHEDULED}};
    case BEL_VERB_REVIVE:
        return (struct bel_command){.verb = verb, .target = {topic, {0}}};
    default:
        return with_token(world, verb);
    }
}

/* --- the book --- */

static void check_book(struct world *world)
{
    const uint64_t *counts = world->counts;
    ask(world, (struct bel_command){.verb = BEL_VERB_TOPIC, .target = {view("mail"), {0}}});
    uint64_t free = counts[BEL_SCHEDULED] - world->plans + counts[BEL_READY] + counts[BEL_BLOCKED];
    CHECK_EQ(layer.added - layer.ended, free + counts[BEL_LEASED]);
    CHECK_EQ(layer.arrived - layer.left, free);
}

static void a_layer_above_hears_of_every_change(void)
{
    static struct world world;
    open_world(&world, 1);
    for (int i = 0; i < COMMANDS; i++) {
        CHECK_NOTE("command %d", i);
        ask(&world, draw(&world));
        if (random_below(&world.random, 4) == 0) {
            uint64_t ms = random_below(&world.random, 700);
            world.now.boot.ns += ms * 1000000;
            world.now.wall.ms += (int64_t)ms;
        }
        check_book(&world);
    }
    CHECK(layer.looked > layer.ended / 2 && layer.freed > 100 && layer.kept > 100);
    CHECK(layer.expires > 100);
    CHECK(layer.added > 500 && layer.ended > 500);
    CHECK(world.engine->stats.leases_lost > 10);
    bel_engine_close(world.engine);
}

int main(void)
{
    RUN(a_layer_above_hears_of_every_change);
    return 0;
}
