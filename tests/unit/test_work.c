/* SPDX-License-Identifier: MIT */

/*
 * The numbers of work: each way in which a lease begins and ends, with the times in between, for
 * the engine, the topic and the group. A topic's numbers always add up.
 */
#include "engine/state/work.h"

#include "../ask.h"
#include "../check.h"
#include "belfry/engine.h"
#include "core/units.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    MANY = BEL_WORK_GROUPS_MAX + 10,
};

#define START  INT64_C(1767225600000)
#define SECOND UINT64_C(1000)
#define MINUTE (60 * SECOND)

struct world {
    struct bel_engine *engine;
    struct bel_now now;
    struct bel_topic topic; /* as of the last look */
    char token[BEL_TOKEN_BYTES_MAX + 1];
};

static void set_up(struct world *world, const char *folder)
{
    struct bel_engine_options options = {.folder = folder};
    world->now = (struct bel_now){{1000000}, {START}, {1}, 0};
    options.now = world->now;
    CHECK(bel_engine_open(&options, &world->engine, NULL) == 0);
}

static struct reply_seen ask(struct world *world, struct bel_command command)
{
    struct bel_next next;
    return ask_backend(bel_engine_backend(world->engine), world->now, &next, command);
}

static void pass(struct world *world, uint64_t ms)
{
    world->now.boot.ns += ms * NS_PER_MS;
    world->now.wall.ms += (int64_t)ms;
    (void)bel_backend_turn(bel_engine_backend(world->engine), world->now);
}

static void schedule(struct world *world, const char *topic, const char *id, const char *group)
{
    struct bel_command command = {.verb = BEL_VERB_SCHEDULE};
    command.schedule.topic = view(topic);
    command.schedule.id = view(id);
    command.schedule.group = view(group);
    CHECK(ask(world, command).err == 0);
}

static bool claim(struct world *world, const char *name)
{
    struct bel_view topic = view(name);
    struct bel_command command = {.verb = BEL_VERB_CLAIM};
    command.claim = (struct bel_claim){.topics = &topic, .topics_count = 1, .lease_ms = MINUTE};
    struct reply_seen seen = ask(world, command);
    (void)snprintf(world->token, sizeof world->token, "%s", seen.token);
    return seen.err == 0 && seen.deliveries == 1;
}

static bool finish(struct world *world, enum bel_verb verb)
{
    struct bel_view token = view(world->token);
    struct bel_command command = {.verb = verb};
    if (verb == BEL_VERB_ACK) command.ack = (struct bel_ack){.tokens = &token, .tokens_count = 1};
    if (verb == BEL_VERB_FAIL) command.fail = (struct bel_fail){.token = token};
    if (verb == BEL_VERB_RELEASE) command.release = (struct bel_release){.token = token};
    return ask(world, command).err == 0;
}

static void note_topic(struct bel_request *request, const struct bel_reply *reply)
{
    struct world *world = request->user;
    CHECK(reply->err == 0);
    world->topic = *reply->topic;
}

static const struct bel_topic *look(struct world *world, const char *topic)
{
    struct bel_request request = {.command = {.verb = BEL_VERB_TOPIC, .target = {view(topic), {0}}},
                                  .done = note_topic,
                                  .user = world};
    struct bel_backend *backend = bel_engine_backend(world->engine);
    world->topic = (struct bel_topic){0};
    bel_backend_submit(backend, &request);
    for (int i = 0; i < 1000 && world->topic.name.bytes == 0; i++) {
        (void)bel_backend_turn(backend, world->now);
    }
    CHECK(world->topic.name.bytes > 0);
    return &world->topic;
}

static void check_sums(const struct bel_work *work)
{
    CHECK_EQ(work->claimed, work->done + work->failed + work->released + work->lost +
                                work->withdrawn + work->running);
    CHECK_EQ(bel__spans_count(&work->waited), work->claimed);
    CHECK_EQ(bel__spans_count(&work->ran), work->done);
}

static void every_end_is_counted(void)
{
    struct world world;
    set_up(&world, NULL);
    schedule(&world, "mail", "a", "");
    pass(&world, 100);
    CHECK(claim(&world, "mail"));
    CHECK_EQ(look(&world, "mail")->work->running, 1);
    CHECK(finish(&world, BEL_VERB_RELEASE) && claim(&world, "mail"));
    pass(&world, 2 * MINUTE); /* lost */
    CHECK(claim(&world, "mail") && finish(&world, BEL_VERB_FAIL));
    pass(&world, 10 * MINUTE); /* the retry */
    CHECK(claim(&world, "mail"));
    pass(&world, 3 * SECOND);
    CHECK(finish(&world, BEL_VERB_ACK));
    CHECK(!finish(&world, BEL_VERB_ACK) || look(&world, "mail")->completed == 1); /* stale */
    schedule(&world, "mail", "b", "");
    CHECK(claim(&world, "mail"));
    struct bel_view id = view("b");
    struct bel_command cancel = {.verb = BEL_VERB_CANCEL};
    cancel.cancel = (struct bel_cancel){view("mail"), &id, 1};
    CHECK_EQ(ask(&world, cancel).count, 1);
    const struct bel_topic *topic = look(&world, "mail");
    CHECK(topic->claimed == 5 && topic->completed == 1 && topic->failed == 1);
    CHECK(topic->released == 1 && topic->lost == 1 && topic->work->withdrawn == 1);
    CHECK(topic->work->running == 0 && topic->groups == NULL);
    CHECK_EQ(topic->ran_ms_p50, 4096); /* 3,000 ms */
    check_sums(topic->work);
    check_sums(&bel_engine_stats(world.engine)->work);
    CHECK_EQ(bel_engine_stats(world.engine)->work.claimed, 5);
    bel_engine_close(world.engine);
}

static void waits_are_from_due_to_claim(void)
{
    struct world world;
    set_up(&world, NULL);
    for (int i = 0; i < 99; i++) {
        schedule(&world, "mail", "", "");
        CHECK(claim(&world, "mail") && finish(&world, BEL_VERB_ACK));
    }
    schedule(&world, "mail", "", "");
    pass(&world, 5000);
    CHECK(claim(&world, "mail"));
    const struct bel_topic *topic = look(&world, "mail");
    CHECK(topic->waited_ms_p50 == 1 && topic->waited_ms_p99 == 1);
    CHECK_EQ(bel__spans_quantile(&topic->work->waited, 1000), 8192);
    CHECK_EQ(topic->work->waited.sum_ms, 5000);
    bel_engine_close(world.engine);
}

static void groups_have_their_own_numbers(void)
{
    struct world world;
    set_up(&world, NULL);
    schedule(&world, "mail", "a", "red");
    schedule(&world, "mail", "b", "blue");
    schedule(&world, "mail", "c", "");
    for (int i = 0; i < 3; i++) {
        CHECK(claim(&world, "mail") && finish(&world, BEL_VERB_ACK));
    }
    const struct bel_topic *topic = look(&world, "mail");
    CHECK_EQ(topic->completed, 3);
    unsigned count = 0;
    for (const struct bel_named_work *group = topic->groups; group != NULL; group = group->next) {
        CHECK(group->work.done == 1 && group->work.running == 0);
        CHECK(memcmp(group->name.data, "red", 3) == 0 || memcmp(group->name.data, "blue", 4) == 0);
        check_sums(&group->work);
        count++;
    }
    CHECK_EQ(count, 2);
    bel_engine_close(world.engine);
}

static void resources_have_their_own_numbers(void)
{
    struct world world;
    set_up(&world, NULL);
    for (int i = 0; i < 2; i++) {
        struct bel_command command = {.verb = BEL_VERB_SCHEDULE};
        command.schedule.topic = view("mail");
        command.schedule.resource = view(i == 0 ? "api" : "api/search");
        CHECK(ask(&world, command).err == 0);
    }
    CHECK(bel_engine_stats(world.engine)->resources == NULL);
    CHECK(claim(&world, "mail") && finish(&world, BEL_VERB_ACK));
    CHECK(claim(&world, "mail"));
    const struct bel_named_work *search = bel_engine_stats(world.engine)->resources;
    CHECK(search != NULL && search->name.bytes == 10 && search->work.running == 1);
    CHECK(search->next != NULL && search->next->next == NULL);
    CHECK(search->next->name.bytes == 3 && search->next->work.done == 1);
    CHECK(finish(&world, BEL_VERB_FAIL) && search->work.failed == 1);
    check_sums(&search->work);
    check_sums(&search->next->work);
    bel_engine_close(world.engine);
}

static void configure(struct world *world, const char *name, const char *value)
{
    struct bel_setting setting = {view(name), view(value)};
    struct bel_command command = {.verb = BEL_VERB_CONFIGURE};
    command.configure = (struct bel_configure){view("mail"), &setting, 1};
    CHECK(ask(world, command).err == 0);
}

/* Checks what the timers of the topic wait for, and that each that is not leased counts once. */
static void check_waiting(struct world *world, const uint64_t want[BEL_WAITS])
{
    const struct bel_topic *topic = look(world, "mail");
    uint64_t sum = 0;
    for (int i = 0; i < BEL_WAITS; i++) {
        CHECK_NOTE("waiting for %s", bel_wait_name((enum bel_wait)i));
        CHECK_EQ(topic->waiting[i], want[i]);
        sum += topic->waiting[i];
    }
    CHECK_EQ(sum, topic->counts[BEL_SCHEDULED] - topic->plans + topic->counts[BEL_READY] +
                      topic->counts[BEL_BLOCKED]);
}

static void timers_wait_for_one_thing_each(void)
{
    struct world world;
    struct bel_command later = {.verb = BEL_VERB_SCHEDULE};
    struct bel_command plan = later, limited = later;
    struct bel_command limit = {.verb = BEL_VERB_LIMIT};
    struct bel_command pause = {.verb = BEL_VERB_PAUSE, .target.topic = view("mail")};
    later.schedule = (struct bel_schedule_spec){
        .topic = view("mail"), .when = BEL_WHEN_IN, .delay_ms = 10 * MINUTE};
    plan.schedule = (struct bel_schedule_spec){.topic = view("mail"), .id = view("p")};
    plan.schedule.plan.kind = BEL_PLAN_EVERY;
    plan.schedule.plan.rule = view("1h");
    limited.schedule = (struct bel_schedule_spec){.topic = view("mail"), .resource = view("api")};
    limit.limit = (struct bel_limit){.action = BEL_LIMIT_SET, .resource = view("api")};
    limit.limit.has_until = true;
    limit.limit.until_ms = 5 * MINUTE;
    set_up(&world, NULL);
    schedule(&world, "mail", "a", "");
    CHECK(ask(&world, later).err == 0 && ask(&world, plan).err == 0);
    check_waiting(&world, (uint64_t[BEL_WAITS]){[BEL_WAIT_TIME] = 1, [BEL_WAIT_WORKER] = 1});
    CHECK(ask(&world, limit).err == 0 && ask(&world, limited).err == 0);
    CHECK(claim(&world, "mail")); /* a */
    CHECK(!claim(&world, "mail"));
    check_waiting(&world, (uint64_t[BEL_WAITS]){[BEL_WAIT_TIME] = 1, [BEL_WAIT_RESOURCE] = 1});
    configure(&world, "concurrency", "1");
    schedule(&world, "mail", "b", "");
    check_waiting(&world,
                  (uint64_t[BEL_WAITS]){
                      [BEL_WAIT_TIME] = 1, [BEL_WAIT_RESOURCE] = 1, [BEL_WAIT_CONCURRENCY] = 1});
    CHECK(ask(&world, pause).err == 0);
    check_waiting(&world, (uint64_t[BEL_WAITS]){[BEL_WAIT_TIME] = 1, [BEL_WAIT_PAUSED] = 2});
    bel_engine_close(world.engine);
}

static void groups_beyond_the_limit_are_one(void)
{
    struct world world;
    char group[16];
    set_up(&world, NULL);
    for (int i = 0; i < MANY; i++) {
        (void)snprintf(group, sizeof group, "g%d", i);
        schedule(&world, "mail", "", group);
        CHECK(claim(&world, "mail") && finish(&world, BEL_VERB_ACK));
    }
    const struct bel_topic *topic = look(&world, "mail");
    CHECK_EQ(topic->completed, MANY);
    uint64_t done = 0, others = 0;
    for (const struct bel_named_work *g = topic->groups; g != NULL; g = g->next) {
        done += g->work.done;
        if (g->name.bytes == 0) others += g->work.done;
    }
    CHECK(done == MANY && others == MANY - BEL_WORK_GROUPS_MAX);
    bel_engine_close(world.engine);
}

static void a_lease_from_before_runs_and_ends(void)
{
    struct world world;
    char folder[] = "/tmp/belfry-work-XXXXXX", command[64];
    CHECK(mkdtemp(folder) != NULL);
    set_up(&world, folder);
    schedule(&world, "mail", "a", "red");
    CHECK(claim(&world, "mail"));
    bel_engine_close(world.engine);
    set_up(&world, folder);
    const struct bel_topic *topic = look(&world, "mail");
    CHECK(topic->claimed == 0 && topic->work->running == 1);
    CHECK(finish(&world, BEL_VERB_ACK));
    topic = look(&world, "mail");
    CHECK(topic->completed == 1 && topic->work->running == 0);
    CHECK_EQ(bel__spans_count(&topic->work->ran), 0); /* nobody knows how long */
    CHECK(topic->groups != NULL && topic->groups->work.done == 1);
    bel_engine_close(world.engine);
    (void)snprintf(command, sizeof command, "rm -r %s", folder);
    CHECK(system(command) == 0); /* NOLINT(concurrency-mt-unsafe) */
}

static void a_rate_is_that_of_the_last_minute(void)
{
    struct bel_rate rate = {.minute = 10, .current = 60, .before = 30};
    CHECK_EQ(bel__rate_of(&rate, 10 * MINUTE), 90); /* all of the minute before */
    CHECK_EQ(bel__rate_of(&rate, 10 * MINUTE + 30 * SECOND), 75);
    CHECK_EQ(bel__rate_of(&rate, 11 * MINUTE + 30 * SECOND), 30);
    CHECK_EQ(bel__rate_of(&rate, 12 * MINUTE), 0);
}

int main(void)
{
    RUN(every_end_is_counted);
    RUN(waits_are_from_due_to_claim);
    RUN(groups_have_their_own_numbers);
    RUN(resources_have_their_own_numbers);
    RUN(timers_wait_for_one_thing_each);
    RUN(groups_beyond_the_limit_are_one);
    RUN(a_lease_from_before_runs_and_ends);
    RUN(a_rate_is_that_of_the_last_minute);
    return 0;
}
