/* SPDX-License-Identifier: MIT */

/*
 * Edge cases of the engine: histories that fail at one point only, on a small simulated disk where
 * batches fill up, and in memory where they do not.
 */
#include "engine/engine.h"

#include "../ask.h"
#include "../check.h"
#include "../engine_valid.h"
#include "../sim/disk.h"
#include "core/units.h"
#include "store/tree/tree.h"

#include <string.h>
#include <unistd.h>

enum {
    IDS_MAX = 200,
    BODY = 40 << 10, /* of a payload that is stored in chunks */
    HALF_HOUR_MS = 30 * 60 * 1000,
    DAY_MS = 24 * MS_PER_HOUR,
};

#define START INT64_C(1767225600000)

struct world {
    struct bel_engine *engine;
    struct bel_now now;
    struct bel_next next;
    struct disk *disk; /* NULL: in memory */
    struct bel_tree *tree;
    uint64_t segment_bytes;
    struct bel_zones *zones;
    uint32_t ready_max;
};

static void open_engine(struct world *world)
{
    struct bel_engine_options options = {.zones = world->zones, .ready_max = world->ready_max};
    struct bel_store *store;
    if (world->now.wall.ms == 0) world->now = (struct bel_now){{1000000}, {START}, {1}, 0};
    options.now = world->now;
    if (world->segment_bytes == 0) {
        CHECK(bel__store_open_memory(&store) == 0);
    } else {
        if (world->disk == NULL) {
            world->disk = disk_create(1);
            disk_plan(world->disk)->free_bytes = UINT64_C(1) << 40;
            CHECK(bel__tree_memory_create_lasting(&world->tree) == 0);
        }
        struct bel_store_options store_options = {
            .io = disk_io(world->disk), .tree = world->tree, .segment_bytes = world->segment_bytes};
        CHECK(bel__store_open(&store_options, &store, NULL) == 0);
    }
    CHECK(bel__engine_open_on(&options, store, bel__entropy_system(), &world->engine) == 0);
}

static void finish(struct world *world)
{
    const char *fault = engine_fault(world->engine);
    CHECK_NOTE("%s", fault == NULL ? "" : fault);
    CHECK(fault == NULL);
    bel_engine_close(world->engine);
    if (world->disk == NULL) return;
    bel__tree_memory_destroy(world->tree);
    disk_destroy(world->disk);
}

static void reopen(struct world *world)
{
    bel_engine_close(world->engine);
    open_engine(world);
}

static void turn(struct world *world)
{
    world->next = bel_backend_turn(bel_engine_backend(world->engine), world->now);
}

static void submit(struct world *world, struct bel_request *request, struct reply_seen *answer)
{
    ask_submit(bel_engine_backend(world->engine), request, answer);
}

static struct reply_seen ask(struct world *world, struct bel_command command)
{
    return ask_backend(bel_engine_backend(world->engine), world->now, &world->next, command);
}

static void move(struct world *world, uint64_t ms)
{
    world->now.boot.ns += ms * 1000000;
    world->now.wall.ms += (int64_t)ms;
}

static int schedule(struct world *world, struct bel_schedule_spec spec)
{
    if (spec.topic.bytes == 0) spec.topic = view("mail");
    return ask(world, (struct bel_command){.verb = BEL_VERB_SCHEDULE, .schedule = spec}).err;
}

static struct reply_seen claim(struct world *world)
{
    struct bel_view topic = view("mail");
    return ask(world, (struct bel_command){.verb = BEL_VERB_CLAIM,
                                           .claim = {.topics = &topic, .topics_count = 1}});
}

static struct reply_seen name(struct world *world, enum bel_verb verb, const char *id)
{
    return ask(world, (struct bel_command){.verb = verb, .target = {view("mail"), view(id)}});
}

static struct reply_seen cancel(struct world *world, const char *id)
{
    struct bel_view ids = view(id);
    return ask(world,
               (struct bel_command){.verb = BEL_VERB_CANCEL, .cancel = {view("mail"), &ids, 1}});
}

static struct reply_seen ack(struct world *world, const char *token)
{
    struct bel_view tokens = view(token);
    return ask(world, (struct bel_command){.verb = BEL_VERB_ACK,
                                           .ack = {.tokens = &tokens, .tokens_count = 1}});
}

static void set(struct world *world, const char *name, const char *value)
{
    struct bel_setting setting = {view(name), view(value)};
    struct bel_command command = {.verb = BEL_VERB_CONFIGURE,
                                  .configure = {view("mail"), &setting, 1}};
    CHECK(ask(world, command).err == 0);
}

static struct bel_view body(void)
{
    static char bytes[BODY];
    return (struct bel_view){bytes, sizeof bytes};
}

static struct bel_recurrence every_minute_after_the_end(void)
{
    return (struct bel_recurrence){
        .kind = BEL_PLAN_EVERY, .rule = BEL_VIEW("1m"), .mode = BEL_PLAN_DELAY};
}

/* --- occurrences --- */

/* The number of rows read from the tree, and the number of occurrences. */
static uint64_t rows_looked_at;
static int (*tree_seek)(struct bel_tree *tree, struct bel_key *key, struct bel_view *out);
enum {
    CROWD = 500,
    ROWS_EACH = 20,
};

static int count_seek(struct bel_tree *tree, struct bel_key *key, struct bel_view *out)
{
    rows_looked_at++;
    return tree_seek(tree, key, out);
}

static int every_second(struct world *world, const char *id, enum bel_overlap overlap,
                        uint64_t expires_ms)
{
    struct bel_recurrence plan = {
        .kind = BEL_PLAN_EVERY, .rule = BEL_VIEW("1s"), .overlap = overlap};
    return schedule(
        world, (struct bel_schedule_spec){.id = view(id), .plan = plan, .expires_ms = expires_ms});
}

/* One plan has many ready occurrences, another has some blocked ones; all are in the tree, where
 * reads are counted. Then the command ends the ready ones. */
static void end_a_crowd(uint64_t expires_ms, struct bel_command command)
{
    struct world world = {.segment_bytes = 128 << 10};
    open_engine(&world);
    CHECK(every_second(&world, "crowd", BEL_OVERLAP_ALLOW, expires_ms) == 0);
    CHECK(every_second(&world, "queue", BEL_OVERLAP_QUEUE, 0) == 0);
    for (int i = 0; i < CROWD; i++) {
        move(&world, 1000);
        turn(&world);
    }
    CHECK(name(&world, BEL_VERB_TOPIC, "").counts[BEL_BLOCKED] == BEL_OVERLAP_QUEUE_MAX);
    reopen(&world);
    for (int i = 0; i < 100; i++) {
        turn(&world);
    }
    tree_seek = world.tree->seek;
    world.tree->seek = count_seek;
    rows_looked_at = 0;
    struct reply_seen answer = ask(&world, command);
    CHECK(answer.err == 0 && answer.count > 0);
    CHECK_NOTE("%llu rows", (unsigned long long)rows_looked_at);
    CHECK(rows_looked_at > 0 && rows_looked_at <= (uint64_t)CROWD * ROWS_EACH);
    world.tree->seek = tree_seek;
    finish(&world);
}

static void the_end_of_an_occurrence_looks_at_few_rows(void)
{
    struct bel_view id = view("crowd"), topic = view("mail");
    struct bel_purge ready = {topic, true, BEL_READY}, expired = {topic, true, BEL_EXPIRED};
    end_a_crowd(0, (struct bel_command){.verb = BEL_VERB_CANCEL, .cancel = {topic, &id, 1}});
    end_a_crowd(0, (struct bel_command){.verb = BEL_VERB_PURGE, .purge = ready});
    end_a_crowd(1000, (struct bel_command){.verb = BEL_VERB_PURGE, .purge = expired});
}

/* --- plans --- */

static void a_cancelled_plan_takes_what_has_expired_along(void)
{
    struct world world = {0};
    open_engine(&world);
    CHECK(schedule(&world, (struct bel_schedule_spec){.id = view("plan"),
                                                      .plan = every_minute_after_the_end(),
                                                      .expires_ms = 1000}) == 0);
    turn(&world);
    CHECK_EQ(name(&world, BEL_VERB_TOPIC, "").counts[BEL_SCHEDULED], 1);
    move(&world, 120000);
    turn(&world); /* its occurrence exists by now, */
    move(&world, 120000);
    CHECK_EQ(cancel(&world, "plan").count, 1); /* and expired */
    move(&world, 120000);
    turn(&world);
    move(&world, 120000);
    struct reply_seen topic = name(&world, BEL_VERB_TOPIC, "");
    CHECK(topic.err == 0);
    CHECK_EQ(topic.counts[BEL_SCHEDULED], 0);
    finish(&world);
}

static void a_plan_that_ends_with_its_occurrence_takes_its_body_along(void)
{
    static const char large[200 << 10];
    struct world world = {.segment_bytes = 1 << 20};
    struct bel_recurrence plan = every_minute_after_the_end();
    open_engine(&world);
    plan.has_until = true;
    plan.until.ms = START + 90000;
    CHECK(schedule(&world, (struct bel_schedule_spec){.id = view("plan"),
                                                      .plan = plan,
                                                      .payload = {large, sizeof large}}) == 0);
    move(&world, 60000);
    struct reply_seen claimed = claim(&world);
    CHECK_EQ(claimed.deliveries, 1);
    move(&world, 20000);
    CHECK(ask(&world, (struct bel_command){.verb = BEL_VERB_EXTEND,
                                           .extend = {view(claimed.token), 3600000}})
              .err == 0);
    move(&world, 20000);
    CHECK_EQ(ack(&world, claimed.token).count, 1);
    struct reply_seen topic = name(&world, BEL_VERB_TOPIC, "");
    CHECK_EQ(topic.counts[BEL_SCHEDULED], 0);
    finish(&world);
}

static void a_plan_that_could_not_ring_is_refused(void)
{
    static const char large[492 << 10];
    struct world world = {.segment_bytes = 512 << 10};
    struct bel_recurrence plan = {.kind = BEL_PLAN_EVERY, .rule = BEL_VIEW("1m")};
    open_engine(&world);
    int rings = 0, refused = 0;
    for (size_t bytes = 456 << 10; bytes <= sizeof large; bytes += 1024) {
        int err =
            schedule(&world, (struct bel_schedule_spec){
                                 .id = view("plan"), .plan = plan, .payload = {large, bytes}});
        if (err == 0) {
            move(&world, 60000);
            struct reply_seen claimed = claim(&world);
            CHECK_EQ(claimed.deliveries, 1);
            CHECK_EQ(ack(&world, claimed.token).count, 1);
            rings++;
        } else {
            CHECK(err == BEL_EFULL);
            refused++;
        }
        (void)cancel(&world, "plan");
    }
    CHECK(rings > 0 && refused > 0);
    finish(&world);
}

/* A rule whose next time is after the year 9999 has none. */
static void a_plan_ends_with_the_year_9999(void)
{
    struct bel_recurrence plan = {
        .kind = BEL_PLAN_EVERY, .rule = BEL_VIEW("3000000d"), .misfire = BEL_MISFIRE_SKIP};
    struct bel_schedule_spec spec = {
        .id = view("late"), .plan = plan, .when = BEL_WHEN_IN, .delay_ms = 1000};
    struct world world = {.segment_bytes = 1 << 20};
    open_engine(&world);
    set(&world, "misfire_after", "0s");
    CHECK(schedule(&world, spec) == 0);
    spec.id = view("in_time");
    CHECK(schedule(&world, spec) == 0);
    move(&world, 1000);
    CHECK_EQ(claim(&world).deliveries, 1);
    CHECK_EQ(claim(&world).deliveries, 1);
    spec.id = view("missed");
    CHECK(schedule(&world, spec) == 0);
    move(&world, 5000);
    reopen(&world);
    CHECK_EQ(claim(&world).deliveries, 0);
    CHECK_EQ(name(&world, BEL_VERB_TOPIC, "").counts[BEL_SCHEDULED], 0);
    finish(&world);
}

/* After a step of the wall clock, a delay can end before the year 9999 on the engine's lane and
 * after it on the wall clock, by which a plan rings. */
static void a_plan_is_not_rescheduled_past_the_year_9999(void)
{
    struct bel_recurrence plan = {.kind = BEL_PLAN_EVERY, .rule = BEL_VIEW("1h")};
    struct bel_reschedule later = {.topic = view("mail"), .id = view("plan"), .when = BEL_WHEN_IN};
    struct bel_command command = {.verb = BEL_VERB_RESCHEDULE, .reschedule = later};
    struct world world = {.segment_bytes = 1 << 20};
    open_engine(&world);
    CHECK(schedule(&world, (struct bel_schedule_spec){.id = view("plan"), .plan = plan}) == 0);
    world.now.wall.ms += 10 * (int64_t)DAY_MS;
    turn(&world);
    for (uint64_t years = 7900; years < 8000; years++) {
        command.reschedule.delay_ms = years * 365 * DAY_MS;
        int err = ask(&world, command).err;
        CHECK(err == 0 || err == BEL_EINVAL);
    }
    command.reschedule.delay_ms = 0; /* the largest delay that is valid on the engine's lane */
    for (uint64_t step = UINT64_C(1) << 60; step > 0; step /= 2) {
        command.reschedule.delay_ms += step;
        if (ask(&world, command).err != 0) command.reschedule.delay_ms -= step;
    }
    CHECK(ask(&world, command).err == 0);
    finish(&world);
}

/* --- zones --- */

static void a_damaged_zone_is_the_mistake_of_who_asks_for_it(void)
{
    struct world world = {0};
    struct bel_recurrence plan = {
        .kind = BEL_PLAN_CRON, .rule = BEL_VIEW("0 9 * * *"), .zone = BEL_VIEW("Damaged")};
    char folder[] = "test_engine_edges.XXXXXX", path[64];
    CHECK(mkdtemp(folder) != NULL);
    (void)snprintf(path, sizeof path, "%s/Damaged", folder);
    FILE *file = fopen(path, "w");
    CHECK(file != NULL && fputs("this is no zone", file) >= 0 && fclose(file) == 0);
    CHECK(bel_zones_open(folder, &world.zones) == 0);
    open_engine(&world);
    CHECK(schedule(&world, (struct bel_schedule_spec){.id = view("plan"), .plan = plan}) ==
          BEL_EINVAL);
    CHECK(schedule(&world, (struct bel_schedule_spec){.id = view("timer")}) == 0);
    finish(&world);
    bel_zones_close(world.zones);
    CHECK(unlink(path) == 0 && rmdir(folder) == 0);
}

static void a_plan_whose_zone_has_gone_waits_for_it(void)
{
    struct world world = {.segment_bytes = 1 << 20};
    struct bel_recurrence plan = {.kind = BEL_PLAN_CRON,
                                  .rule = BEL_VIEW("* * * * *"),
                                  .zone = BEL_VIEW("Europe/Berlin"),
                                  .overlap = BEL_OVERLAP_ALLOW};
    struct bel_zones *zones;
    if (bel_zones_open(NULL, &zones) != 0) return; /* the system has no zones */
    world.zones = zones;
    open_engine(&world);
    CHECK(schedule(&world, (struct bel_schedule_spec){.id = view("plan"), .plan = plan}) == 0);
    CHECK(schedule(&world, (struct bel_schedule_spec){.id = view("timer"),
                                                      .when = BEL_WHEN_AT,
                                                      .at = {START + 60000}}) == 0);
    CHECK_EQ(ack(&world, claim(&world).token).count, 1); /* the first one of the plan */
    world.zones = NULL;
    reopen(&world);
    move(&world, 70000);
    CHECK(strcmp(claim(&world).id, "timer") == 0);
    CHECK_EQ(claim(&world).deliveries, 0);
    world.zones = zones;
    reopen(&world);
    CHECK_EQ(claim(&world).deliveries, 1); /* the second */
    finish(&world);
    bel_zones_close(zones);
}

/* --- agendas --- */

static struct reply_seen agenda(struct world *world, int64_t from, unsigned hours, uint64_t step_ms)
{
    struct bel_agenda wish = {.has_from = true, .has_to = true, .from = {from}, .step_ms = step_ms};
    wish.to.ms = from + (int64_t)hours * 2 * HALF_HOUR_MS;
    return ask(world, (struct bel_command){.verb = BEL_VERB_AGENDA, .agenda = wish});
}

/* Finer steps examine every time. */
static void check_hours(struct world *world, int64_t from, unsigned hours)
{
    struct reply_seen fine = agenda(world, from, hours, HALF_HOUR_MS);
    struct reply_seen coarse = agenda(world, from, hours, UINT64_C(2) * HALF_HOUR_MS);
    CHECK(fine.err == 0 && coarse.err == 0);
    CHECK(coarse.steps_count == hours && fine.steps_count == 2 * (size_t)hours);
    for (size_t i = 0; i < hours; i++) {
        CHECK_NOTE("hour %zu", i);
        CHECK_EQ(coarse.steps[i], fine.steps[2 * i] + fine.steps[2 * i + 1]);
    }
}

static void an_agenda_counts_by_hours_as_it_does_one_by_one(void)
{
    static const char *const rules[] = {
        "* * * * *",       "*/7 9-17 * * 1-5", "0,30 2 * * *", "15 */2 * * *", "5-40 2,3 29 3 *",
        "*/10 30 2 * * *", "59 23 L * *",      "0 * * * *",    "* 1-3 * * 7",
    };
    static const char *const zones[] = {"",
                                        "Europe/Berlin",
                                        "Asia/Kathmandu",
                                        "Asia/Kolkata",
                                        "Australia/Lord_Howe",
                                        "America/New_York"};
    static const int64_t stretches[] = {
        START, INT64_C(1774569600000), INT64_C(1775001600000),
        INT64_C(1792713600000)}; /* changes in March, April, October */
    struct bel_zones *known;
    if (bel_zones_open(NULL, &known) != 0) return; /* the system has no zones */
    for (unsigned i = 0; i < 9 * 6 * 2; i++) {
        struct bel_recurrence plan = {.kind = BEL_PLAN_CRON,
                                      .rule = view(rules[i % 9]),
                                      .zone = view(zones[i / 9 % 6]),
                                      .spread_ms = UINT64_C(3) * (i % 2) * HALF_HOUR_MS,
                                      .fold = i / 54 ? BEL_FOLD_BOTH : BEL_FOLD_FIRST};
        struct world world = {.zones = known};
        CHECK_NOTE("%s in %s", rules[i % 9], zones[i / 9 % 6]);
        open_engine(&world);
        CHECK(schedule(&world, (struct bel_schedule_spec){.id = view("p"), .plan = plan}) == 0);
        for (unsigned k = 0; k < sizeof stretches / sizeof stretches[0]; k++) {
            check_hours(&world, stretches[k], 150);
        }
        finish(&world);
    }
    bel_zones_close(known);
}

static void an_agenda_of_many_plans_is_not_too_much(void)
{
    struct world world = {0};
    struct bel_recurrence plan = {.kind = BEL_PLAN_CRON, .rule = BEL_VIEW("* * * * * *")};
    char id[8];
    open_engine(&world);
    for (unsigned i = 0; i < 10; i++) {
        (void)snprintf(id, sizeof id, "p%u", i);
        plan.spread_ms = UINT64_C(1) * (i % 2) * HALF_HOUR_MS;
        CHECK(schedule(&world, (struct bel_schedule_spec){.id = view(id), .plan = plan}) == 0);
    }
    struct reply_seen answer = agenda(&world, START + DAY_MS, 200, MS_PER_HOUR);
    CHECK(answer.err == 0 && answer.steps_count == 200);
    for (unsigned i = 0; i < 200; i++) {
        CHECK_EQ(answer.steps[i], 36000);
    }
    answer = agenda(&world, START + DAY_MS, 24, HALF_HOUR_MS); /* each time is visited */
    CHECK(answer.err == 0 && answer.steps_count == 48);
    for (unsigned i = 0; i < 48; i++) {
        CHECK_EQ(answer.steps[i], 18000);
    }
    finish(&world);
}

/* --- due timers --- */

static void what_is_due_beside_a_late_plan_is_delivered(void)
{
    struct world world = {0};
    struct bel_recurrence plan = {.kind = BEL_PLAN_EVERY, .rule = BEL_VIEW("1h")};
    static struct bel_request requests[5000];
    static struct reply_seen answer[5000];
    open_engine(&world);
    CHECK(schedule(&world, (struct bel_schedule_spec){.id = view("plan"), .plan = plan}) == 0);
    CHECK(schedule(&world, (struct bel_schedule_spec){.id = view("missed"),
                                                      .when = BEL_WHEN_AT,
                                                      .at = {START + 150}}) == 0);
    for (int i = 0; i < 5000; i++) {
        requests[i].command.verb = BEL_VERB_SCHEDULE;
        requests[i].command.schedule = (struct bel_schedule_spec){
            .topic = view("other"), .when = BEL_WHEN_AT, .at = {START + 100}};
        submit(&world, &requests[i], &answer[i]);
    }
    turn(&world);
    move(&world, 100);
    /* More timers come due than a turn takes, and a plan is due now, after those that were read. */
    requests[0].command.schedule = (struct bel_schedule_spec){
        .topic = view("mail"), .id = view("first"), .when = BEL_WHEN_AT, .at = {START + 100}};
    requests[1].command = (struct bel_command){
        .verb = BEL_VERB_RESCHEDULE, .reschedule = {.topic = view("mail"), .id = view("plan")}};
    submit(&world, &requests[0], &answer[0]);
    submit(&world, &requests[1], &answer[1]);
    turn(&world);
    CHECK(answer[0].is_done && answer[1].is_done);
    CHECK_EQ(answer[1].count, 1);
    move(&world, 100);
    turn(&world);
    turn(&world);
    bool is_there = false;
    for (struct reply_seen got = claim(&world); got.deliveries > 0; got = claim(&world)) {
        is_there |= strcmp(got.id, "missed") == 0;
    }
    CHECK(is_there);
    finish(&world);
}

static void a_plan_that_cannot_ring_holds_nobody_up(void)
{
    struct world world = {.segment_bytes = 1 << 20};
    struct bel_recurrence plan = {.kind = BEL_PLAN_EVERY, .rule = BEL_VIEW("1m")};
    open_engine(&world);
    CHECK(schedule(&world, (struct bel_schedule_spec){.id = view("plan"), .plan = plan}) == 0);
    CHECK(schedule(&world, (struct bel_schedule_spec){.id = view("timer"),
                                                      .when = BEL_WHEN_AT,
                                                      .at = {START + 61000}}) == 0);
    disk_plan(world.disk)->free_bytes = 0;
    int err = 0;
    for (int i = 0; i < 100 && err == 0; i++) {
        err =
            schedule(&world, (struct bel_schedule_spec){.topic = view("other"), .payload = body()});
    }
    CHECK(err == BEL_EFULL);
    move(&world, 62000);
    CHECK(strcmp(claim(&world).id, "timer") == 0);
    CHECK_EQ(claim(&world).deliveries, 0);
    disk_plan(world.disk)->free_bytes = UINT64_C(1) << 40;
    move(&world, 100);
    CHECK_EQ(claim(&world).deliveries, 1);
    finish(&world);
}

static void a_share_that_goes_makes_room_for_who_waits(void)
{
    struct world world = {0};
    struct bel_view topic = view("mail");
    const char *const groups[] = {"b", "c", "d"};
    open_engine(&world);
    set(&world, "concurrency", "4");
    for (int i = 0; i < 3; i++) {
        CHECK(schedule(&world, (struct bel_schedule_spec){.group = view("a")}) == 0);
        CHECK(schedule(&world, (struct bel_schedule_spec){.id = view(groups[i]),
                                                          .group = view(groups[i]),
                                                          .when = BEL_WHEN_IN,
                                                          .delay_ms = 3600000}) == 0);
    }
    CHECK_EQ(claim(&world).deliveries, 1);
    CHECK_EQ(claim(&world).deliveries, 1);
    CHECK_EQ(claim(&world).deliveries, 0); /* as much as one of four may have */
    struct bel_request request = {
        .command = {.verb = BEL_VERB_CLAIM,
                    .claim = {.topics = &topic, .topics_count = 1, .wait_ms = 1000}}};
    struct reply_seen answer;
    submit(&world, &request, &answer);
    turn(&world);
    CHECK(!answer.is_done);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(cancel(&world, groups[i]).count, 1);
    }
    CHECK(answer.is_done);
    CHECK_EQ(answer.deliveries, 1);
    finish(&world);
}

static void the_next_turn_is_not_asked_for_too_late(void)
{
    struct world world = {0};
    open_engine(&world);
    world.now.boot.ns = 1900000;
    CHECK(schedule(&world, (struct bel_schedule_spec){.when = BEL_WHEN_IN, .delay_ms = 5}) == 0);
    CHECK(world.next.due.ns > 6900000); /* no delay is too short */
    CHECK(world.next.due.ns <= 7000000);
    world.now.boot.ns = 7000000;
    CHECK_EQ(claim(&world).deliveries, 1);
    finish(&world);
}

/* The millisecond of the wall clock began 0.3 ms ago, that of the boot clock 0.8 ms ago. */
static void a_time_of_the_wall_begins_where_the_wall_says(void)
{
    struct world world = {0};
    struct bel_schedule_spec spec = {.when = BEL_WHEN_AT, .at = {START + 5}};
    open_engine(&world);
    world.now.boot.ns += 800000;
    world.now.wall_rest_ns = 300000;
    CHECK(schedule(&world, spec) == 0);
    CHECK_EQ(world.next.due.ns, world.now.boot.ns - 300000 + 5000000);

    world.now.boot.ns += 4600000; /* and 0.1 ms before it is due the result is the same */
    world.now.wall.ms += 4;
    world.now.wall_rest_ns = 900000;
    turn(&world);
    CHECK_EQ(world.next.due.ns, world.now.boot.ns + 100000);

    world.now.wall_rest_ns = 0; /* unknown: the boot clock is used */
    turn(&world);
    CHECK_EQ(world.next.due.ns, world.now.boot.ns - 400000 + 1000000);
    finish(&world);
}

/* --- full batches --- */

static void schedule_many(struct world *world, char ids[IDS_MAX][16])
{
    for (int i = 0; i < IDS_MAX; i++) {
        (void)snprintf(ids[i], sizeof ids[i], "%d", i);
        CHECK(schedule(world, (struct bel_schedule_spec){.id = view(ids[i]), .payload = body()}) ==
              0);
    }
}

static void a_cancel_of_many_goes_on_with_the_next_batch(void)
{
    struct world world = {.segment_bytes = 96 << 10};
    char ids[IDS_MAX][16];
    struct bel_view views[IDS_MAX];
    open_engine(&world);
    schedule_many(&world, ids);
    for (int i = 0; i < IDS_MAX; i++) {
        views[i] = view(ids[i]);
    }
    struct reply_seen answer =
        ask(&world, (struct bel_command){.verb = BEL_VERB_CANCEL,
                                         .cancel = {view("mail"), views, IDS_MAX}});
    CHECK(answer.err == 0);
    CHECK_EQ(answer.count, IDS_MAX);
    CHECK_EQ(claim(&world).deliveries, 0);
    finish(&world);
}

static void an_ack_of_many_goes_on_with_the_next_batch(void)
{
    struct world world = {.segment_bytes = 96 << 10};
    char ids[IDS_MAX][16], tokens[IDS_MAX][BEL_TOKEN_BYTES_MAX + 1];
    struct bel_view views[IDS_MAX];
    open_engine(&world);
    schedule_many(&world, ids);
    for (int i = 0; i < IDS_MAX; i++) {
        struct reply_seen claimed = claim(&world);
        CHECK_EQ(claimed.deliveries, 1);
        memcpy(tokens[i], claimed.token, sizeof tokens[i]);
        views[i] = view(tokens[i]);
    }
    struct reply_seen answer =
        ask(&world, (struct bel_command){.verb = BEL_VERB_ACK,
                                         .ack = {.tokens = views, .tokens_count = IDS_MAX}});
    CHECK(answer.err == 0);
    CHECK_EQ(answer.count, IDS_MAX);
    CHECK_EQ(name(&world, BEL_VERB_TOPIC, "").counts[BEL_LEASED], 0);
    finish(&world);
}

static void a_purge_counts_what_it_took_in_every_batch(void)
{
    struct world world = {.segment_bytes = 96 << 10};
    char ids[IDS_MAX][16];
    open_engine(&world);
    schedule_many(&world, ids);
    struct bel_command command = {.verb = BEL_VERB_PURGE, .purge = {view("mail"), true, BEL_READY}};
    struct reply_seen answer = ask(&world, command);
    CHECK(answer.err == 0);
    CHECK_EQ(answer.count, IDS_MAX);
    finish(&world);
}

static void what_is_over_goes_in_as_many_batches_as_it_takes(void)
{
    struct world world = {.segment_bytes = 96 << 10};
    char ids[IDS_MAX][16];
    open_engine(&world);
    set(&world, "retention", "1h");
    schedule_many(&world, ids);
    for (int i = 0; i < IDS_MAX; i++) {
        CHECK_EQ(cancel(&world, ids[i]).count, 1);
    }
    CHECK_EQ(name(&world, BEL_VERB_TOPIC, "").counts[BEL_CANCELLED], IDS_MAX);
    move(&world, 3600000);
    for (int i = 0; i < 100; i++) {
        turn(&world);
        move(&world, 1);
    }
    CHECK_EQ(name(&world, BEL_VERB_TOPIC, "").counts[BEL_CANCELLED], 0);
    finish(&world);
}

/* --- damage --- */

static struct bel_key damaged_key(void)
{
    return bel__key_of(&(struct bel_place){.table = BEL_TABLE_TIMERS, .time = 1, .sequence = 1});
}

static void a_batch_that_meets_damage_leaves_nothing(void)
{
    struct world world = {.segment_bytes = 1 << 20};
    struct bel_view topic = view("mail");
    struct bel_request timer = {.command = {.verb = BEL_VERB_SCHEDULE, .schedule.topic = topic}};
    struct bel_request list = {.command = {.verb = BEL_VERB_LIST, .list.topic = topic}};
    struct bel_request wait = {
        .command = {.verb = BEL_VERB_CLAIM,
                    .claim = {.topics = &topic, .topics_count = 1, .wait_ms = 3600000}}};
    struct bel_key key = damaged_key();
    struct reply_seen answer[3];
    open_engine(&world);
    set(&world, "retention", "1h");
    submit(&world, &wait, &answer[2]);
    turn(&world);
    CHECK(bel__store_reserve(world.engine->store, 1, 1, BEL_STORE_END) == 0);
    bel__store_put(world.engine->store, &key, view("?"), BEL_ROW_ANY);
    (void)bel__store_commit(world.engine->store);
    timer.command.schedule.when = BEL_WHEN_IN;
    timer.command.schedule.delay_ms = 1000;
    submit(&world, &timer, &answer[0]);
    submit(&world, &list, &answer[1]);
    turn(&world);
    turn(&world);
    for (int i = 0; i < 3; i++) { /* including the waiting one */
        CHECK(answer[i].is_done && answer[i].err == BEL_ECORRUPT);
    }
    move(&world, 2000);
    turn(&world);
    CHECK(world.next.due.ns == BEL_NEVER && world.next.wait.ns == BEL_NEVER);

    bel_engine_close(world.engine);
    world.now.boot.ns = 0;
    open_engine(&world);
    CHECK(bel__store_reserve(world.engine->store, 1, 0, BEL_STORE_END) == 0);
    bel__store_delete(world.engine->store, &key);
    (void)bel__store_commit(world.engine->store);
    struct reply_seen counted = name(&world, BEL_VERB_TOPIC, "");
    CHECK(counted.err == 0);
    CHECK_EQ(counted.counts[BEL_SCHEDULED] + counted.counts[BEL_READY], 0);
    CHECK_EQ(claim(&world).deliveries, 0);
    finish(&world);
}

/* In the middle of a millisecond a lease begins at its end, and is written like that. */
static void a_lease_that_has_all_of_its_time_at_the_open_is_no_crash(void)
{
    struct world world = {.segment_bytes = 1 << 20, .now = {{1500000}, {START}, {1}, 0}};
    open_engine(&world);
    CHECK(schedule(&world, (struct bel_schedule_spec){.id = view("a")}) == 0);
    CHECK_EQ(claim(&world).deliveries, 1);
    reopen(&world);
    move(&world, 30001);
    turn(&world);
    CHECK(world.engine->stats.leases_lost == 0 && world.engine->stats.leases_lapsed == 1);
    finish(&world);
}

int main(void)
{
    RUN(the_end_of_an_occurrence_looks_at_few_rows);
    RUN(a_cancelled_plan_takes_what_has_expired_along);
    RUN(a_plan_that_ends_with_its_occurrence_takes_its_body_along);
    RUN(a_plan_that_could_not_ring_is_refused);
    RUN(a_plan_ends_with_the_year_9999);
    RUN(a_plan_is_not_rescheduled_past_the_year_9999);
    RUN(a_damaged_zone_is_the_mistake_of_who_asks_for_it);
    RUN(a_plan_whose_zone_has_gone_waits_for_it);
    RUN(an_agenda_counts_by_hours_as_it_does_one_by_one);
    RUN(an_agenda_of_many_plans_is_not_too_much);
    RUN(what_is_due_beside_a_late_plan_is_delivered);
    RUN(a_plan_that_cannot_ring_holds_nobody_up);
    RUN(a_share_that_goes_makes_room_for_who_waits);
    RUN(the_next_turn_is_not_asked_for_too_late);
    RUN(a_time_of_the_wall_begins_where_the_wall_says);
    RUN(a_cancel_of_many_goes_on_with_the_next_batch);
    RUN(an_ack_of_many_goes_on_with_the_next_batch);
    RUN(a_purge_counts_what_it_took_in_every_batch);
    RUN(what_is_over_goes_in_as_many_batches_as_it_takes);
    RUN(a_lease_that_has_all_of_its_time_at_the_open_is_no_crash);
    RUN(a_batch_that_meets_damage_leaves_nothing);
    return 0;
}
