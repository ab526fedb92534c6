/* SPDX-License-Identifier: MIT */

/* Jobs under pressure: starts of one job are some time apart, and new jobs are refused at critical;
 * plain timers and other jobs are not delayed. */
#include "../ask.h"
#include "../check.h"
#include "belfry/engine.h"
#include "core/units.h"

#include <string.h>

#define START INT64_C(1767225600000)

struct world {
    struct bel_engine *engine;
    struct bel_now now;
};

static void set_up(struct world *world)
{
    world->now = (struct bel_now){{1000000}, {START}, {1}, 0};
    struct bel_engine_options options = {.now = world->now};
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

static void press(struct world *world, uint64_t used)
{
    struct bel_pressure_sample sample = {.memory = {.used = used, .limit = 1000}};
    (void)bel_engine_pressure(world->engine, &sample);
}

static struct reply_seen submit(struct world *world, const char *text)
{
    struct bel_command command = {.verb = BEL_VERB_JOB_SUBMIT};
    command.job_submit.text = view(text);
    return ask(world, command);
}

/* Claims all that there is of a topic. Returns how many deliveries these are. */
static size_t claim(struct world *world, const char *name)
{
    struct bel_view topic = view(name);
    struct bel_command command = {.verb = BEL_VERB_CLAIM};
    command.claim =
        (struct bel_claim){.topics = &topic, .topics_count = 1, .count = 10, .lease_ms = 10000000};
    struct reply_seen seen = ask(world, command);
    CHECK(seen.err == 0);
    return seen.deliveries;
}

static const char one[] = "{\"id\":\"one\",\"tasks\":["
                          "{\"id\":\"a\",\"topic\":\"work\",\"payload\":\"x\"},"
                          "{\"id\":\"b\",\"topic\":\"work\",\"payload\":\"x\"},"
                          "{\"id\":\"c\",\"topic\":\"work\",\"payload\":\"x\"}]}";
static const char two[] = "{\"id\":\"two\",\"tasks\":["
                          "{\"id\":\"a\",\"topic\":\"work\",\"payload\":\"x\"},"
                          "{\"id\":\"b\",\"topic\":\"work\",\"payload\":\"x\"}]}";

static void without_pressure_all_tasks_start(void)
{
    struct world world;
    set_up(&world);
    CHECK(submit(&world, one).err == 0);
    CHECK_EQ(claim(&world, "work"), 3);
    bel_engine_close(world.engine);
}

static void starts_of_one_job_are_apart(void)
{
    static const struct {
        uint64_t used, pace_ms;
    } rows[] = {{501, 2000}, {701, 10000}, {851, 30000}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct world world;
        set_up(&world);
        CHECK_NOTE("%u of 1000", (unsigned)rows[i].used);
        CHECK(submit(&world, one).err == 0 && submit(&world, two).err == 0);
        press(&world, rows[i].used);
        CHECK_EQ(claim(&world, "work"), 2); /* one of each job */
        CHECK_EQ(claim(&world, "work"), 0);
        pass(&world, rows[i].pace_ms - 1);
        CHECK_EQ(claim(&world, "work"), 0);
        pass(&world, 2);
        CHECK_EQ(claim(&world, "work"), 2);
        CHECK_EQ(claim(&world, "work"), 0);
        bel_engine_close(world.engine);
    }
}

/* A job without a pace of its own does not pace itself. */
static void a_delayed_task_is_explained(void)
{
    struct world world;
    set_up(&world);
    CHECK(submit(&world, one).err == 0);
    press(&world, 851);
    CHECK_EQ(claim(&world, "work"), 1);
    struct bel_command command = {.verb = BEL_VERB_EXPLAIN};
    command.target = (struct bel_target){view("work"), view("one/c")};
    struct reply_seen seen = ask(&world, command);
    CHECK_NOTE("%.200s", seen.lines);
    CHECK(seen.err == 0 &&
          strstr(seen.lines, "The task is ready, but pressure delays the tasks of the "
                             "job one: none of them starts before ") != NULL);
    CHECK(strstr(seen.lines, "paces itself") == NULL);
    bel_engine_close(world.engine);
}

static void plain_timers_are_not_delayed(void)
{
    struct world world;
    set_up(&world);
    CHECK(submit(&world, one).err == 0);
    for (int i = 0; i < 4; i++) {
        struct bel_command command = {.verb = BEL_VERB_SCHEDULE};
        command.schedule.topic = view("work");
        CHECK(ask(&world, command).err == 0);
    }
    press(&world, 851);
    CHECK_EQ(claim(&world, "work"), 5); /* four timers, one task */
    bel_engine_close(world.engine);
}

static void a_job_is_refused_at_critical_only(void)
{
    struct world world;
    set_up(&world);
    press(&world, 950);
    CHECK(submit(&world, one).err == 0);
    press(&world, 951);
    struct reply_seen seen = submit(&world, two);
    CHECK(seen.err == BEL_EFULL && strstr(seen.why, "pressure is critical") != NULL);
    press(&world, 900);
    CHECK(submit(&world, two).err == 0);
    bel_engine_close(world.engine);
}

int main(void)
{
    RUN(without_pressure_all_tasks_start);
    RUN(starts_of_one_job_are_apart);
    RUN(a_delayed_task_is_explained);
    RUN(plain_timers_are_not_delayed);
    RUN(a_job_is_refused_at_critical_only);
    return 0;
}
