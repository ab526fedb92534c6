/* SPDX-License-Identifier: MIT */

/*
 * Random commands: few names and small numbers, so that they interact, with weights that keep a
 * case going. Commands that a feature of the case excludes are not chosen.
 */
#include "draw.h"
#include "prop_engine.h"

const char *const topic_names[3] = {"a", "b", "c"};
static const char *const id_names[] = {"i", "j", "k", "l", "p", "q"};
static const char *const group_names[] = {"", "g", "h"};

static struct bel_view topic_of(struct world *world)
{
    return view(topic_names[below(world, 3)]);
}

static struct bel_view draw_topic(void *context)
{
    return topic_of(context);
}

static struct draw draw_of(struct world *world)
{
    return (struct draw){.random = &world->random,
                         .now = world->now.wall,
                         .dead_in_100 = 20,
                         .delay_ms_end = 20,
                         .lease_ms_end = 40,
                         .topic = draw_topic,
                         .context = world};
}

/* Chooses a generated id, as the side knows it, one from a reply, or a fixed one. */
static void choose_id(struct world *world, struct asked *asked)
{
    struct differ *differ = &world->differ;
    uint64_t what = below(world, 10);
    if (what == 0 && differ->made_count > 0) {
        size_t i = below(world, differ->made_count);
        asked->ids[ENGINE_SIDE][0] = view(differ->made[i].one);
        asked->ids[MODEL_SIDE][0] = view(differ->made[i].other);
        return;
    }
    const char *name = id_names[below(world, 6)];
    if (what <= 3 && world->seen_count > 0) {
        size_t count = world->seen_count < SEEN_MAX ? world->seen_count : SEEN_MAX;
        (void)snprintf(asked->id, sizeof asked->id, "%s", world->seen[below(world, count)]);
        name = asked->id;
    }
    asked->ids[ENGINE_SIDE][0] = asked->ids[MODEL_SIDE][0] = view(name);
}

/* Chooses one of the last tokens, which may be stale, or an invalid one. */
static void choose_token(struct world *world, struct asked *asked, size_t place)
{
    size_t count = world->tokens_count < TOKENS_MAX ? world->tokens_count : TOKENS_MAX;
    bool is_nonsense = count == 0 || chance(world, 2);
    size_t back = below(world, count < 6 || chance(world, 20) ? count + 1 : 6);
    size_t index = count == 0 ? 0 : (world->tokens_count - 1 - back % count) % TOKENS_MAX;
    for (unsigned side = 0; side < SIDES; side++) {
        struct token *token = &world->tokens[index];
        asked->tokens[side][place] = view(is_nonsense ? "nonsense" : token->texts[side]);
    }
}

static void choose_when(struct world *world, struct bel_schedule_spec *spec)
{
    switch (below(world, 4)) {
    case 0:
        break;
    case 1:
        spec->when = BEL_WHEN_AT;
        spec->at.ms = world->now.wall.ms + (int64_t)below(world, 60) - 20;
        break;
    default:
        spec->when = BEL_WHEN_IN;
        spec->delay_ms = below(world, 40);
        break;
    }
}

static void choose_plan(struct world *world, struct bel_schedule_spec *spec)
{
    static const char *const rules[] = {"7ms", "10ms", "13ms", "25ms", "@every 40ms"};
    struct bel_recurrence *plan = &spec->plan;
    plan->kind = BEL_PLAN_EVERY;
    plan->rule = view(rules[below(world, 5)]);
    plan->mode = chance(world, 30) ? BEL_PLAN_DELAY : BEL_PLAN_RATE;
    plan->misfire = (enum bel_misfire)below(world, 3);
    plan->overlap = (enum bel_overlap)below(world, 3);
    plan->count = chance(world, 30) ? 1 + below(world, 6) : 0;
    plan->spread_ms = has(world, SPREAD) ? below(world, 12) : 0;
    plan->has_until = chance(world, 15);
    plan->until.ms = plan->has_until ? world->now.wall.ms + (int64_t)below(world, 100) : 0;
    if (chance(world, 10)) {
        plan->kind = BEL_PLAN_CRON;
        plan->rule = view("* * * * * *");
        plan->mode = BEL_PLAN_RATE;
    }
}

static void choose_schedule(struct world *world, struct asked *asked, struct bel_command *command)
{
    static const char *const retries[] = {"", "", "3ms,9ms", "exp(2ms,2,20ms) max(3)", "0s,0s,1ms"};
    static const char *const payloads[] = {"", "x", "yy"};
    struct bel_schedule_spec *spec = &command->schedule;
    spec->topic = topic_of(world);
    spec->payload = view(payloads[below(world, 3)]);
    choose_when(world, spec);
    spec->has_priority = chance(world, 50);
    spec->priority = (uint8_t)(127 + below(world, 3));
    spec->conflict = chance(world, 50) ? BEL_CONFLICT_REPLACE : (enum bel_conflict)below(world, 5);
    struct draw draw = draw_of(world);
    if (has(world, RESOURCES)) spec->resource = draw_resource(&draw);
    if (has(world, GROUPS)) spec->group = view(group_names[below(world, 3)]);
    spec->retry = view(retries[below(world, 5)]);
    spec->lease_ms = chance(world, 30) ? 1 + below(world, 30) : 0;
    if (has(world, EXPIRY) && chance(world, 60)) spec->expires_ms = 1 + below(world, 40);
    if (has(world, PLANS) && chance(world, 40)) choose_plan(world, spec);
    const char *name = id_names[below(world, 6)]; /* a spread depends on the id: both have the
                                                     same */
    if (spec->plan.rule.bytes > 0) {
        asked->ids[ENGINE_SIDE][0] = asked->ids[MODEL_SIDE][0] = view(name);
    }
    bool is_made = chance(world, 15) && spec->plan.rule.bytes == 0;
    if (is_made) asked->ids[ENGINE_SIDE][0] = asked->ids[MODEL_SIDE][0] = view("");
}

#define BELLS_5  "\xf0\x9f\x94\x94\xf0\x9f\x94\x94\xf0\x9f\x94\x94\xf0\x9f\x94\x94\xf0\x9f\x94\x94"
#define BELLS_40 BELLS_5 BELLS_5 BELLS_5 BELLS_5 BELLS_5 BELLS_5 BELLS_5 BELLS_5

/* A name, or a text that is too long, whose characters begin anywhere. */
static struct bel_view worker_of(struct world *world)
{
    static const char *const workers[] = {"", "w", "v"};
    static const char bells[] = "xyz" BELLS_40 BELLS_40;
    if (chance(world, 95)) return view(workers[below(world, 3)]);
    size_t skipped = below(world, 8);
    return (struct bel_view){bells + skipped, sizeof bells - 1 - skipped};
}

static void choose_claim(struct world *world, struct asked *asked, struct bel_command *command)
{
    struct bel_claim *claim = &command->claim;
    claim->topics_count = 1 + below(world, 3);
    for (size_t i = 0; i < claim->topics_count; i++) {
        asked->topics[i] = topic_of(world);
    }
    claim->topics = asked->topics;
    claim->count = (uint32_t)below(world, 5);
    claim->lease_ms = chance(world, 40) ? 1 + below(world, 40) : 0;
    claim->worker = worker_of(world);
    if (has(world, WAITS) && chance(world, 30)) claim->wait_ms = 1 + below(world, 50);
}

static void choose_configure(struct world *world, struct asked *asked, struct bel_command *command)
{
    static const char *const choices[][4] = {
        {"lease", "8ms", "20ms", "50ms"},
        {"crashes", "1", "2", "4"},
        {"misfire_after", "0s", "5ms", "30ms"},
        {"retry", "2ms", "4ms,8ms", "exp(1ms,3,20ms) max(5)"},
        {"concurrency", "0", "2", "5"},
        {"depth", "0", "4", "9"},
    };
    size_t rows = 4;
    if (has(world, CONCURRENCY)) rows = 5;
    if (has(world, DEPTH)) rows = 6;
    size_t row = below(world, rows);
    if (!has(world, CONCURRENCY) && row == 4) row = 5;
    asked->settings[0] =
        (struct bel_setting){view(choices[row][0]), view(choices[row][1 + below(world, 3)])};
    command->configure = (struct bel_configure){topic_of(world), asked->settings, 1};
}

static void choose_agenda(struct world *world, struct bel_agenda *agenda)
{
    struct draw draw = draw_of(world);
    draw_agenda(&draw, agenda);
    if (has(world, PLANS) || chance(world, 70)) return;
    agenda->step_ms = UINT64_C(3600) * 1000;
    agenda->to.ms = agenda->from.ms + INT64_C(7200) * 1000;
}

static void choose_reschedule(struct world *world, struct bel_reschedule *reschedule)
{
    reschedule->topic = topic_of(world);
    reschedule->when = chance(world, 50) ? BEL_WHEN_IN : BEL_WHEN_AT;
    reschedule->delay_ms = below(world, 40);
    reschedule->at.ms = world->now.wall.ms + (int64_t)below(world, 60) - 20;
}

enum bel_verb choose_verb(struct world *world)
{
    static const struct draw_weight weights[] = {
        {BEL_VERB_SCHEDULE, 30}, {BEL_VERB_CLAIM, 25},  {BEL_VERB_ACK, 10},
        {BEL_VERB_FAIL, 10},     {BEL_VERB_RELEASE, 4}, {BEL_VERB_EXTEND, 4},
        {BEL_VERB_CANCEL, 5},    {BEL_VERB_GET, 6},     {BEL_VERB_RESCHEDULE, 5},
        {BEL_VERB_LIST, 4},      {BEL_VERB_REVIVE, 4},  {BEL_VERB_PURGE, 2},
        {BEL_VERB_TOPIC, 3},     {BEL_VERB_TOPICS, 1},  {BEL_VERB_CONFIGURE, 2},
        {BEL_VERB_PAUSE, 1},     {BEL_VERB_RESUME, 3},  {BEL_VERB_AGENDA, 2},
        {BEL_VERB_EXPLAIN, 1},   {BEL_VERB_LIMIT, 5},
    };
    static const struct draw_weight job_weights[] = {
        {BEL_VERB_JOB_SUBMIT, 10}, {BEL_VERB_JOB_GET, 4},   {BEL_VERB_JOB_LIST, 2},
        {BEL_VERB_JOB_CANCEL, 2},  {BEL_VERB_JOB_PAUSE, 2}, {BEL_VERB_JOB_RESUME, 4},
    };
    size_t count = sizeof weights / sizeof weights[0];
    if (has(world, JOBS) && chance(world, 25)) {
        return draw_verb(&world->random, job_weights, sizeof job_weights / sizeof job_weights[0]);
    }
    return draw_verb(&world->random, weights, has(world, RESOURCES) ? count : count - 1);
}

/* Fills in a command, except for names that differ between the sides. */
static void choose_command(struct world *world, struct asked *asked, struct bel_command *command)
{
    struct draw draw = draw_of(world);
    switch (command->verb) {
    case BEL_VERB_SCHEDULE:
        choose_schedule(world, asked, command);
        return;
    case BEL_VERB_CLAIM:
        choose_claim(world, asked, command);
        return;
    case BEL_VERB_FAIL:
        draw_fail(&draw, &command->fail);
        return;
    case BEL_VERB_LIST:
        command->list.topic = topic_of(world);
        draw_list(&draw, &command->list);
        return;
    case BEL_VERB_CONFIGURE:
        choose_configure(world, asked, command);
        return;
    case BEL_VERB_LIMIT:
        draw_limit(&draw, &command->limit);
        return;
    case BEL_VERB_AGENDA:
        choose_agenda(world, &command->agenda);
        return;
    case BEL_VERB_RESCHEDULE:
        choose_reschedule(world, &command->reschedule);
        return;
    case BEL_VERB_JOB_SUBMIT:
        asked->job = malloc(DRAW_JOB_BYTES);
        CHECK(asked->job != NULL);
        command->job_submit.text = draw_job(&draw, has(world, RESOURCES), asked->job);
        command->job_submit.is_replacement = chance(world, 30);
        return;
    default:
        draw_small(&draw, command);
        return;
    }
}

void choose(struct world *world, enum bel_verb verb, struct asked *asked)
{
    struct bel_command command = {.verb = verb};
    choose_id(world, asked);
    choose_token(world, asked, 0);
    choose_token(world, asked, 1);
    choose_command(world, asked, &command);
    bool is_all = verb == BEL_VERB_REVIVE && chance(world, 30);
    for (unsigned side = 0; side < SIDES; side++) {
        struct bel_command *given = &asked->requests[side].command;
        *given = command;
        if (!is_all) draw_give_names(given, asked->ids[side], asked->tokens[side]);
    }
}
