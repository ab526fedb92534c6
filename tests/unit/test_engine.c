/* SPDX-License-Identifier: MIT */

/*
 * The promises of the embedded engine beyond the conformance suite: data directories, bounds,
 * threads.
 */
#include "belfry/engine.h"

#include "../ask.h"
#include "../check.h"
#include "core/units.h"

#include <semaphore.h>
#include <string.h>
#include <unistd.h>

enum {
    LARGE = 1 << 20,
    MANY = 5000,
    EXPIRED_MAX = 1000,   /* that a turn ends */
    LEASE_MS = 30 * 1000, /* the default */
    ROWS = 100000,        /* that an agenda counts one by one, in some turns */
};

struct world {
    struct bel_engine *engine;
    struct bel_now now;
    char folder[64];
    struct bel_next next;
};

static void open_engine(struct world *world, struct bel_engine_options options)
{
    if (world->now.wall.ms == 0) world->now.wall.ms = INT64_C(1767225600000);
    options.now = world->now;
    options.folder = world->folder[0] != 0 ? world->folder : NULL;
    CHECK(bel_engine_open(&options, &world->engine, NULL) == 0);
}

static void make_folder(struct world *world)
{
    (void)snprintf(world->folder, sizeof world->folder, "test_engine.XXXXXX");
    CHECK(mkdtemp(world->folder) != NULL);
}

static void finish(struct world *world)
{
    bel_engine_close(world->engine);
    if (world->folder[0] == 0) return;
    char command[128];
    (void)snprintf(command, sizeof command, "rm -r '%s'", world->folder);
    CHECK(system(command) == 0); /* NOLINT(concurrency-mt-unsafe, cert-env33-c) */
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

static struct reply_seen schedule(struct world *world, const char *id)
{
    return ask(world, (struct bel_command){.verb = BEL_VERB_SCHEDULE,
                                           .schedule = {.topic = view("mail"), .id = view(id)}});
}

static struct reply_seen claim(struct world *world)
{
    struct bel_view topic = view("mail");
    return ask(world, (struct bel_command){.verb = BEL_VERB_CLAIM,
                                           .claim = {.topics = &topic, .topics_count = 1}});
}

static struct reply_seen topic(struct world *world)
{
    return ask(world,
               (struct bel_command){.verb = BEL_VERB_TOPIC, .target = {.topic = view("mail")}});
}

static void advance(struct world *world, uint64_t ms)
{
    world->now.boot.ns += ms * 1000000;
    world->now.wall.ms += (int64_t)ms;
    turn(world);
}

static struct reply_seen schedule_expiring(struct world *world, uint64_t expires_ms)
{
    struct bel_schedule_spec spec = {.topic = view("mail"), .expires_ms = expires_ms};
    return ask(world, (struct bel_command){.verb = BEL_VERB_SCHEDULE, .schedule = spec});
}

static void a_timer_ends_when_it_expires(void)
{
    struct world world = {0};
    open_engine(&world, (struct bel_engine_options){0});
    CHECK(schedule_expiring(&world, 1000).err == 0);
    CHECK(world.next.due.ns == world.now.boot.ns + UINT64_C(1000) * NS_PER_MS);
    advance(&world, 999);
    CHECK(topic(&world).counts[BEL_READY] == 1);
    advance(&world, 1);
    CHECK(topic(&world).counts[BEL_READY] == 0);
    CHECK(topic(&world).counts[BEL_EXPIRED] == 1);
    turn(&world);
    CHECK(world.next.due.ns == BEL_NEVER); /* nothing that could expire is left */
    finish(&world);
}

static void set(struct world *world, const char *name, const char *value)
{
    struct bel_setting setting = {view(name), view(value)};
    CHECK(ask(world, (struct bel_command){.verb = BEL_VERB_CONFIGURE,
                                          .configure = {view("mail"), &setting, 1}})
              .err == 0);
}

/* Makes MANY timers that have expired together, in one turn that is not enough to end them. */
static void expire_many(struct world *world)
{
    char depth[16];
    open_engine(world, (struct bel_engine_options){0});
    (void)snprintf(depth, sizeof depth, "%d", MANY);
    set(world, "depth", depth);
    for (int i = 0; i < MANY; i++) {
        CHECK(schedule_expiring(world, 1000).err == 0);
    }
    CHECK(schedule_expiring(world, 1000).err == BEL_EFULL);
    advance(world, 1000);
    CHECK(world->next.due.ns == world->now.boot.ns); /* more in the next turn */
}

/* Counted, not timed: no turn ends more than EXPIRED_MAX, and all is done after a few turns. */
static void many_that_expire_at_once_end_in_slices(void)
{
    struct world world = {0};
    uint64_t before = EXPIRED_MAX;
    int turns = 1;
    expire_many(&world);
    for (; world.next.due.ns == world.now.boot.ns; turns++) {
        uint64_t expired = topic(&world).counts[BEL_EXPIRED]; /* takes a turn */
        CHECK(expired > before && expired - before <= EXPIRED_MAX);
        before = expired;
    }
    CHECK(topic(&world).counts[BEL_EXPIRED] == MANY && topic(&world).counts[BEL_READY] == 0);
    CHECK(turns <= MANY / EXPIRED_MAX + 1);
    CHECK(world.next.due.ns == BEL_NEVER);
    finish(&world);
}

/* While many timers wait to be ended, none of them is in the way of a command. */
static void what_has_expired_is_gone_for_every_command(void)
{
    struct world world = {0};
    struct bel_request agenda = {.command = {.verb = BEL_VERB_AGENDA}};
    struct bel_request purge = {
        .command = {.verb = BEL_VERB_PURGE, .purge = {.topic = view("mail")}}};
    struct reply_seen counted = {0}, purged = {0};
    expire_many(&world);
    CHECK(schedule_expiring(&world, 3600000).err == 0); /* the depth has room */
    CHECK(claim(&world).deliveries == 1);
    submit(&world, &agenda, &counted);
    submit(&world, &purge, &purged);
    for (int i = 0; i < 50 && !(counted.is_done && purged.is_done); i++) {
        turn(&world);
    }
    CHECK(counted.is_done && purged.is_done);
    CHECK_EQ(counted.count, 1);
    CHECK_EQ(purged.count, MANY);
    CHECK(topic(&world).counts[BEL_EXPIRED] == 0 && topic(&world).counts[BEL_LEASED] == 1);
    finish(&world);
}

static struct reply_seen cancel(struct world *world, const char *id)
{
    struct bel_view name = view(id);
    return ask(world, (struct bel_command){
                          .verb = BEL_VERB_CANCEL,
                          .cancel = {.topic = view("mail"), .ids = &name, .ids_count = 1}});
}

/* More timers are over than a sweep removes per turn, and the id of one of them is reused. */
static void an_id_that_is_free_again_stays_its_new_owners(void)
{
    struct world world = {0};
    struct bel_setting retention = {view("retention"), view("1s")};
    char id[8] = "";
    open_engine(&world, (struct bel_engine_options){0});
    CHECK(ask(&world, (struct bel_command){.verb = BEL_VERB_CONFIGURE,
                                           .configure = {view("mail"), &retention, 1}})
              .err == 0);
    for (int i = 0; i < MANY; i++) {
        (void)snprintf(id, sizeof id, "%d", i);
        CHECK(schedule(&world, id).err == 0);
        CHECK(cancel(&world, id).count == 1);
    }
    world.now.boot.ns += UINT64_C(2000000000);
    world.now.wall.ms += 2000;
    CHECK(schedule(&world, id).err == 0);
    CHECK(topic(&world).counts[BEL_CANCELLED] > 0); /* the sweep has not finished */
    for (int i = 0; i < 100; i++) {
        advance(&world, 1);
    }
    CHECK(topic(&world).counts[BEL_CANCELLED] == 0);
    CHECK(cancel(&world, id).count == 1);
    finish(&world);
}

static void more_than_ready_max_are_delivered_in_order(void)
{
    struct world world = {0};
    char id[8];
    open_engine(&world, (struct bel_engine_options){.ready_max = 4});
    for (int i = 0; i < 50; i++) {
        (void)snprintf(id, sizeof id, "%02d", i);
        struct bel_schedule_spec spec = {
            .topic = view("mail"), .id = view(id), .when = BEL_WHEN_IN, .delay_ms = 10};
        CHECK(ask(&world, (struct bel_command){.verb = BEL_VERB_SCHEDULE, .schedule = spec}).err ==
              0);
    }
    advance(&world, 10);
    for (int i = 0; i < 50; i++) {
        (void)snprintf(id, sizeof id, "%02d", i);
        turn(&world); /* the rest is read now */
        CHECK(strcmp(claim(&world).id, id) == 0);
    }
    CHECK(claim(&world).deliveries == 0);
    finish(&world);
}

static void a_folder_has_one_engine(void)
{
    struct world world = {0};
    struct bel_engine *other;
    struct bel_engine_why why;
    make_folder(&world);
    open_engine(&world, (struct bel_engine_options){0});
    struct bel_engine_options options = {.folder = world.folder, .now = world.now};
    CHECK(bel_engine_open(&options, &other, &why) == BEL_EBUSY);
    CHECK(why.text[0] != 0);
    finish(&world);
}

static void what_is_answered_is_there_when_it_is_opened_again(void)
{
    struct world world = {0};
    make_folder(&world);
    open_engine(&world, (struct bel_engine_options){0});
    CHECK(schedule(&world, "a").err == 0);
    bel_engine_close(world.engine);
    open_engine(&world, (struct bel_engine_options){0});
    CHECK(strcmp(claim(&world).id, "a") == 0);
    bel_engine_close(world.engine);
    open_engine(&world, (struct bel_engine_options){0});
    turn(&world);
    CHECK(claim(&world).deliveries == 0); /* it is leased */
    finish(&world);
}

static void more_than_a_batch_holds_is_several(void)
{
    enum {
        COUNT = 80,
    };
    static struct bel_request requests[COUNT];
    static struct reply_seen answer[COUNT];
    struct world world = {0};
    char *payload = calloc(1, LARGE);
    CHECK(payload != NULL);
    make_folder(&world);
    open_engine(&world, (struct bel_engine_options){0});
    for (int i = 0; i < COUNT; i++) {
        struct bel_schedule_spec spec = {.topic = view("mail"), .payload = {payload, LARGE}};
        requests[i].command = (struct bel_command){.verb = BEL_VERB_SCHEDULE, .schedule = spec};
        submit(&world, &requests[i], &answer[i]);
    }
    turn(&world);
    CHECK(answer[0].is_done && !answer[COUNT - 1].is_done);
    CHECK(world.next.due.ns <= world.now.boot.ns); /* there is more to do */
    for (int i = 0; i < COUNT; i++) {
        turn(&world);
    }
    for (int i = 0; i < COUNT; i++) {
        CHECK(answer[i].is_done && answer[i].err == 0);
    }
    CHECK(topic(&world).counts[BEL_READY] == COUNT);
    free(payload);
    finish(&world);
}

static void a_payload_may_be_larger_than_a_usual_batch(void)
{
    enum {
        HUGE = 20 << 20,
    };
    struct world world = {0};
    char *payload = calloc(1, HUGE);
    CHECK(payload != NULL);
    make_folder(&world);
    open_engine(&world, (struct bel_engine_options){.payload_bytes_max = HUGE});
    CHECK(schedule(&world, "a").err == 0);
    struct bel_schedule_spec spec = {
        .topic = view("mail"), .id = view("b"), .payload = {payload, HUGE}};
    CHECK(ask(&world, (struct bel_command){.verb = BEL_VERB_SCHEDULE, .schedule = spec}).err == 0);
    CHECK(claim(&world).deliveries == 1);
    CHECK(claim(&world).deliveries == 1);
    free(payload);
    finish(&world);
}

static void wake(void *context)
{
    CHECK(sem_post(context) == 0);
}

static void answers_leave_when_the_thread_has_synced(void)
{
    struct world world = {0};
    struct reply_seen answer;
    sem_t synced;
    CHECK(sem_init(&synced, 0, 0) == 0);
    make_folder(&world);
    open_engine(&world, (struct bel_engine_options){
                            .sync = BEL_ENGINE_SYNC_IN_THREAD, .wake = wake, .context = &synced});
    struct bel_request request = {
        .command = {.verb = BEL_VERB_SCHEDULE, .schedule = {.topic = view("mail")}}};
    submit(&world, &request, &answer);
    turn(&world);
    while (!answer.is_done) {
        CHECK(sem_wait(&synced) == 0);
        turn(&world);
    }
    CHECK(answer.err == 0);
    finish(&world);
    CHECK(sem_destroy(&synced) == 0);
}

/* Durability `interval` and `none`: replies leave in their turn, independent of syncs. */
static void answers_need_not_wait_for_the_sync(void)
{
    for (int i = BEL_ENGINE_DURABILITY_INTERVAL; i <= BEL_ENGINE_DURABILITY_NONE; i++) {
        struct world world = {0};
        struct reply_seen answer;
        sem_t synced;
        CHECK(sem_init(&synced, 0, 0) == 0);
        make_folder(&world);
        open_engine(&world, (struct bel_engine_options){.durability = (enum bel_engine_durability)i,
                                                        .sync_interval_ms = 1,
                                                        .wake = wake,
                                                        .context = &synced});
        struct bel_request request = {
            .command = {.verb = BEL_VERB_SCHEDULE,
                        .schedule = {.topic = view("mail"), .id = view("a")}}};
        submit(&world, &request, &answer);
        turn(&world);
        CHECK(answer.is_done && answer.err == 0);
        if (i == BEL_ENGINE_DURABILITY_INTERVAL) CHECK(sem_wait(&synced) == 0);
        bel_engine_close(world.engine);
        open_engine(&world, (struct bel_engine_options){0});
        CHECK(claim(&world).deliveries == 1);
        finish(&world);
        CHECK(sem_destroy(&synced) == 0);
    }
}

static void schedule_plan(struct world *world, const char *id, enum bel_overlap overlap)
{
    struct bel_command command = {.verb = BEL_VERB_SCHEDULE};
    command.schedule.topic = view("mail");
    command.schedule.id = view(id);
    command.schedule.plan =
        (struct bel_recurrence){.kind = BEL_PLAN_EVERY, .rule = view("1h"), .overlap = overlap};
    CHECK(ask(world, command).err == 0);
}

static uint64_t unfinished(struct world *world)
{
    struct reply_seen answer = topic(world);
    return answer.counts[BEL_SCHEDULED] + answer.counts[BEL_READY];
}

/* Timers of both lanes are ready before and after each time of the plan, and nobody claims them. */
static void a_plan_rings_in_time_beside_more_than_is_kept(void)
{
    struct world world = {0};
    struct bel_command command = {.verb = BEL_VERB_SCHEDULE};
    open_engine(&world, (struct bel_engine_options){.ready_max = 4});
    command.schedule.topic = view("mail");
    for (int64_t i = 0; i < 40; i++) {
        command.schedule.when = i % 2 == 0 ? BEL_WHEN_NOW : BEL_WHEN_AT;
        command.schedule.at.ms = world.now.wall.ms + i * MS_PER_HOUR / 4;
        CHECK(ask(&world, command).err == 0);
    }
    schedule_plan(&world, "plan", BEL_OVERLAP_ALLOW);
    for (uint64_t hour = 1; hour <= 12; hour++) {
        CHECK_NOTE("hour %u", (unsigned)hour);
        turn(&world);
        CHECK(world.next.due.ns <= world.now.boot.ns + UINT64_C(1) * MS_PER_HOUR * NS_PER_MS);
        advance(&world, MS_PER_HOUR);
        CHECK_EQ(unfinished(&world), 41 + hour);
    }
    advance(&world, 1000);
    command = (struct bel_command){.verb = BEL_VERB_RESCHEDULE};
    command.reschedule.topic = view("mail");
    command.reschedule.id = view("plan");
    CHECK(ask(&world, command).count == 1); /* to now */
    CHECK_EQ(unfinished(&world), 41 + 13);
    finish(&world);
}

/* Returns the count of the agenda from now on, or its error. */
static struct reply_seen agenda(struct world *world, int64_t length_ms, uint64_t step_ms)
{
    struct bel_agenda asked = {.step_ms = step_ms, .has_to = true};
    asked.to.ms = world->now.wall.ms + length_ms;
    return ask(world, (struct bel_command){.verb = BEL_VERB_AGENDA, .agenda = asked});
}

static void schedule_in_the_hour(struct world *world, uint64_t count)
{
    struct bel_command command = {.verb = BEL_VERB_SCHEDULE};
    command.schedule.topic = view("mail");
    for (uint64_t i = 0; i < count; i++) {
        bool is_delay = i % 2 == 0;
        command.schedule.when = is_delay ? BEL_WHEN_IN : BEL_WHEN_AT;
        command.schedule.delay_ms = 1 + i % (MS_PER_HOUR - 1);
        command.schedule.at.ms = world->now.wall.ms + 1 + (int64_t)(i % (MS_PER_HOUR - 1));
        CHECK(ask(world, command).err == 0);
    }
}

static void an_agenda_finer_than_an_hour_counts_every_row(void)
{
    struct world world = {0};
    open_engine(&world, (struct bel_engine_options){0});
    schedule_in_the_hour(&world, ROWS);
    struct reply_seen answer = agenda(&world, MS_PER_HOUR, MS_PER_HOUR / 60);
    CHECK(answer.err == 0);
    CHECK_EQ(answer.count, ROWS);
    answer = agenda(&world, INT64_C(2) * MS_PER_HOUR, MS_PER_HOUR + 1);
    CHECK(answer.err == 0);
    CHECK_EQ(answer.count, ROWS);
    answer = agenda(&world, MS_PER_HOUR / 60, 1000);
    CHECK(answer.err == 0);
    CHECK_EQ(answer.count, MS_PER_HOUR / 60 - 1); /* at the end of the minute none */
    answer = agenda(&world, MS_PER_HOUR, MS_PER_HOUR);
    CHECK(answer.err == 0);
    CHECK_EQ(answer.count, ROWS);
    finish(&world);
}

/* Counters since the engine was opened: lost leases, skipped times, steps of the clock. */
static void what_has_happened_is_counted(void)
{
    struct world world = {0};
    make_folder(&world);
    open_engine(&world, (struct bel_engine_options){0});
    schedule(&world, "a");
    CHECK(claim(&world).deliveries == 1);
    advance(&world, LEASE_MS / 2);
    bel_engine_close(world.engine);
    open_engine(&world, (struct bel_engine_options){0});
    const struct bel_engine_stats *stats = bel_engine_stats(world.engine);
    advance(&world, LEASE_MS);
    CHECK(stats->leases_lost == 0 && stats->leases_lapsed == 1); /* it was just opened */
    CHECK(claim(&world).deliveries == 1);
    advance(&world, LEASE_MS);
    CHECK(stats->leases_lost == 1 && stats->leases_lapsed == 1);

    schedule_plan(&world, "p", BEL_OVERLAP_SKIP);
    for (int i = 0; i < 3; i++) {
        advance(&world, MS_PER_HOUR);
    }
    CHECK_EQ(stats->skips[BEL_ENGINE_SKIP_OVERLAP], 2);
    CHECK_EQ(stats->skips[BEL_ENGINE_SKIP_MISFIRE], 0);
    CHECK_EQ(stats->clock_steps, 0);
    world.now.wall.ms += 4 * MS_PER_HOUR + MS_PER_HOUR / 2;
    turn(&world);
    CHECK_EQ(stats->clock_steps, 1);
    CHECK_EQ(stats->skips[BEL_ENGINE_SKIP_MISFIRE], 4);
    finish(&world);
}

int main(void)
{
    RUN(a_timer_ends_when_it_expires);
    RUN(many_that_expire_at_once_end_in_slices);
    RUN(what_has_expired_is_gone_for_every_command);
    RUN(an_id_that_is_free_again_stays_its_new_owners);
    RUN(more_than_ready_max_are_delivered_in_order);
    RUN(a_folder_has_one_engine);
    RUN(what_is_answered_is_there_when_it_is_opened_again);
    RUN(more_than_a_batch_holds_is_several);
    RUN(a_payload_may_be_larger_than_a_usual_batch);
    RUN(answers_leave_when_the_thread_has_synced);
    RUN(answers_need_not_wait_for_the_sync);
    RUN(a_plan_rings_in_time_beside_more_than_is_kept);
    RUN(an_agenda_finer_than_an_hour_counts_every_row);
    RUN(what_has_happened_is_counted);
    return 0;
}
