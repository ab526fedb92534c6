/* SPDX-License-Identifier: MIT */

/*
 * The engine against the model, side by side: random commands on few topics and few ids, with
 * durations of milliseconds, so that everything meets everything. Both are given the same
 * requests in the same turns, and every answer is compared.
 *
 *     prop_engine 4711        runs that seed alone, and prints what was asked and answered
 *
 * A case has features, drawn at its start. Some exclude each other: an expiry is noticed when
 * somebody looks, and how far a claim looks is the backend's own affair, so what else depends
 * on the time of noticing is left out then.
 */
#include "belfry/engine.h"
#include "differ.h"
#include "model.h"
#include "transcript.h"

#include "../check.h"
#include "../random.h"

#include <stdarg.h>
#include <string.h>

enum {
    ENGINE_SIDE,
    MODEL_SIDE,
    SIDES,

    NS_PER_MS = 1000000,
    CASES = 1500,
    BATCHES = 60,
    BATCH_MAX = 4, /* requests of a turn */
    WAITING_MAX = 6,
    TOKENS_MAX = 24,
    SEEN_MAX = 24, /* ids that answers named */
    TURNS_MAX = 1000,
    LISTED_MAX = 2000,
};

#define START INT64_C(1767225600000)

enum feature {
    PLANS = 1 << 0,
    EXPIRY = 1 << 1,
    STEPS = 1 << 2, /* of the wall clock */
    GROUPS = 1 << 3,
    CONCURRENCY = 1 << 4,
    RETENTION = 1 << 5,
    DEPTH = 1 << 6,
    WAITS = 1 << 7,
    SPREAD = 1 << 8,
};

/* A request to both sides. */
struct asked {
    struct bel_request requests[SIDES]; /* first */
    struct heard *heard[SIDES];
    struct bel_view ids[SIDES][2], tokens[SIDES][2], topics[3];
    struct bel_setting settings[2];
    char id[BEL_ID_BYTES + 1]; /* of an occurrence that was seen */
};

struct token {
    char texts[SIDES][BEL_TOKEN_BYTES_MAX + 1];
};

struct world {
    uint64_t seed, random;
    uint64_t look; /* chance for when to compare all, which changes nothing else */
    unsigned features;
    bool is_loud;
    struct bel_now now;
    struct bel_backend *backends[SIDES];
    struct bel_engine *engine;
    struct model *model;
    struct bel_next next[SIDES];
    struct asked *asked[BATCH_MAX + WAITING_MAX];
    size_t asked_count;
    struct token tokens[TOKENS_MAX];
    size_t tokens_count; /* in all; the last ones are there */
    char seen[SEEN_MAX][BEL_ID_BYTES + 1];
    size_t seen_count; /* likewise */
    struct differ differ;
};

static const char *const side_names[SIDES] = {"engine", "model "};
static const char *const topic_names[] = {"a", "b", "c"};
static const char *const id_names[] = {"i", "j", "k", "l", "p", "q"};
static const char *const group_names[] = {"", "g", "h"};

static uint64_t below(struct world *world, uint64_t end)
{
    return random_below(&world->random, end);
}

static bool chance(struct world *world, unsigned percent)
{
    return below(world, 100) < percent;
}

static bool has(const struct world *world, enum feature feature)
{
    return (world->features & feature) != 0;
}

static struct bel_view view(const char *text)
{
    return (struct bel_view){text, strlen(text)};
}

static struct bel_view topic_of(struct world *world)
{
    return view(topic_names[below(world, 3)]);
}

__attribute__((format(printf, 2, 3))) static void say(const struct world *world, const char *format,
                                                      ...)
{
    va_list list;
    if (!world->is_loud) return;
    va_start(list, format);
    (void)vfprintf(stderr, format, list);
    va_end(list);
}

static void say_command(const struct world *world, const struct asked *asked)
{
    if (!world->is_loud) return;
    transcript_command(stderr, &asked->requests[MODEL_SIDE].command, START);
}

static void say_reply(const struct world *world, const struct asked *asked)
{
    for (unsigned side = 0; side < SIDES && world->is_loud; side++) {
        say(world, "    %s ", side_names[side]);
        transcript_reply(stderr, asked->heard[side], START);
    }
}

/* An id that was made, as the side knows it, one that an answer had, or a chosen one. */
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

/* A token of the last ones, which may be stale, or nonsense. */
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
    if (has(world, EXPIRY)) {
        plan->mode = BEL_PLAN_RATE;
        plan->overlap = BEL_OVERLAP_ALLOW;
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
    if (has(world, GROUPS)) spec->group = view(group_names[below(world, 3)]);
    spec->retry = view(retries[below(world, 5)]);
    spec->lease_ms = chance(world, 30) ? 1 + below(world, 30) : 0;
    if (has(world, EXPIRY) && chance(world, 60)) spec->expires_ms = 1 + below(world, 40);
    if (has(world, PLANS) && chance(world, 40)) choose_plan(world, spec);
    const char *name = id_names[below(world, 6)]; /* a spread is by the id: both have the same */
    if (spec->plan.rule.bytes > 0) {
        asked->ids[ENGINE_SIDE][0] = asked->ids[MODEL_SIDE][0] = view(name);
    }
    bool is_made = chance(world, 15) && spec->plan.rule.bytes == 0 && !has(world, EXPIRY);
    if (is_made) asked->ids[ENGINE_SIDE][0] = asked->ids[MODEL_SIDE][0] = view("");
}

static void choose_claim(struct world *world, struct asked *asked, struct bel_command *command)
{
    static const char *const workers[] = {"", "w", "v"};
    struct bel_claim *claim = &command->claim;
    claim->topics_count = 1 + below(world, 3);
    for (size_t i = 0; i < claim->topics_count; i++) {
        asked->topics[i] = topic_of(world);
    }
    claim->topics = asked->topics;
    claim->count = (uint32_t)below(world, 5);
    claim->lease_ms = chance(world, 40) ? 1 + below(world, 40) : 0;
    claim->worker = view(workers[below(world, 3)]);
    if (has(world, WAITS) && chance(world, 30)) claim->wait_ms = 1 + below(world, 50);
}

static void choose_fail(struct world *world, struct bel_fail *fail)
{
    static const char *const reasons[] = {"", "no", "never"};
    fail->reason = view(reasons[below(world, 3)]);
    fail->kind = chance(world, 80) ? BEL_FAIL_ERROR : (enum bel_fail_kind)below(world, 3);
    fail->dead = fail->kind != BEL_FAIL_LIMITED && chance(world, 20);
    fail->has_delay = chance(world, 40) || fail->kind == BEL_FAIL_LIMITED;
    fail->delay_ms = fail->has_delay ? below(world, 20) : 0;
}

static void choose_list(struct world *world, struct bel_list_query *list)
{
    list->topic = topic_of(world);
    list->count = 1000;
    list->has_state = chance(world, 50);
    list->state = list->has_state ? (enum bel_state)below(world, BEL_STATES) : BEL_SCHEDULED;
    if (has(world, EXPIRY) && list->state == BEL_EXPIRED) list->state = BEL_DEAD;
    list->has_from = chance(world, 20);
    list->has_to = chance(world, 20);
    list->from.ms = world->now.wall.ms + (int64_t)below(world, 60) - 30;
    list->to.ms = world->now.wall.ms + (int64_t)below(world, 60) - 10;
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
    agenda->has_from = agenda->has_to = true;
    agenda->from.ms = world->now.wall.ms + (int64_t)below(world, 100) - 50;
    agenda->to.ms = agenda->from.ms + (int64_t)below(world, 200);
    agenda->step_ms = 1 + below(world, 40);
    if (chance(world, 50)) agenda->topic = topic_of(world);
    if (has(world, PLANS) || chance(world, 70)) return;
    agenda->step_ms = 3600 * 1000;
    agenda->to.ms = agenda->from.ms + 7200 * 1000;
}

static void choose_reschedule(struct world *world, struct bel_reschedule *reschedule)
{
    reschedule->topic = topic_of(world);
    reschedule->when = chance(world, 50) ? BEL_WHEN_IN : BEL_WHEN_AT;
    reschedule->delay_ms = below(world, 40);
    reschedule->at.ms = world->now.wall.ms + (int64_t)below(world, 60) - 20;
}

static enum bel_verb choose_verb(struct world *world)
{
    static const struct {
        enum bel_verb verb;
        unsigned weight;
    } weights[] = {
        {BEL_VERB_SCHEDULE, 30}, {BEL_VERB_CLAIM, 25},  {BEL_VERB_ACK, 10},
        {BEL_VERB_FAIL, 10},     {BEL_VERB_RELEASE, 4}, {BEL_VERB_EXTEND, 4},
        {BEL_VERB_CANCEL, 5},    {BEL_VERB_GET, 6},     {BEL_VERB_RESCHEDULE, 5},
        {BEL_VERB_LIST, 4},      {BEL_VERB_REVIVE, 4},  {BEL_VERB_PURGE, 2},
        {BEL_VERB_TOPIC, 3},     {BEL_VERB_TOPICS, 1},  {BEL_VERB_CONFIGURE, 2},
        {BEL_VERB_PAUSE, 1},     {BEL_VERB_RESUME, 3},  {BEL_VERB_AGENDA, 2},
        {BEL_VERB_EXPLAIN, 1},
    };
    uint64_t left = below(world, 122);
    for (size_t i = 0; i < sizeof weights / sizeof weights[0]; i++) {
        if (left < weights[i].weight) return weights[i].verb;
        left -= weights[i].weight;
    }
    return BEL_VERB_GET;
}

/* Fills in all of a command but what each side has names of its own for. */
static void choose_command(struct world *world, struct asked *asked, struct bel_command *command)
{
    switch (command->verb) {
    case BEL_VERB_SCHEDULE:
        choose_schedule(world, asked, command);
        return;
    case BEL_VERB_CLAIM:
        choose_claim(world, asked, command);
        return;
    case BEL_VERB_FAIL:
        choose_fail(world, &command->fail);
        return;
    case BEL_VERB_LIST:
        choose_list(world, &command->list);
        return;
    case BEL_VERB_CONFIGURE:
        choose_configure(world, asked, command);
        return;
    case BEL_VERB_AGENDA:
        choose_agenda(world, &command->agenda);
        return;
    case BEL_VERB_RESCHEDULE:
        choose_reschedule(world, &command->reschedule);
        return;
    case BEL_VERB_CANCEL:
        command->cancel.topic = topic_of(world);
        command->cancel.ids_count = 1;
        return;
    case BEL_VERB_ACK:
        command->ack.tokens_count = 1 + below(world, 2);
        command->ack.has_result = command->ack.tokens_count == 1 && chance(world, 50);
        if (command->ack.has_result) command->ack.result = view("42");
        return;
    case BEL_VERB_RELEASE:
        command->release.has_delay = chance(world, 40);
        command->release.delay_ms = below(world, 20);
        return;
    case BEL_VERB_EXTEND:
        command->extend.lease_ms = below(world, 40);
        return;
    case BEL_VERB_PURGE:
        command->purge.topic = topic_of(world);
        command->purge.has_state = chance(world, 60);
        command->purge.state = (enum bel_state)below(world, BEL_STATES);
        return;
    default:
        command->target.topic = topic_of(world);
        return;
    }
}

static void give_names(struct asked *asked, unsigned side)
{
    struct bel_command *command = &asked->requests[side].command;
    struct bel_view id = asked->ids[side][0], token = asked->tokens[side][0];
    switch (command->verb) {
    case BEL_VERB_SCHEDULE:
        command->schedule.id = id;
        return;
    case BEL_VERB_CANCEL:
        command->cancel.ids = asked->ids[side];
        return;
    case BEL_VERB_RESCHEDULE:
        command->reschedule.id = id;
        return;
    case BEL_VERB_ACK:
        command->ack.tokens = asked->tokens[side];
        return;
    case BEL_VERB_FAIL:
        command->fail.token = token;
        return;
    case BEL_VERB_RELEASE:
        command->release.token = token;
        return;
    case BEL_VERB_EXTEND:
        command->extend.token = token;
        return;
    case BEL_VERB_GET:
    case BEL_VERB_REVIVE:
    case BEL_VERB_EXPLAIN:
        command->target.id = id;
        return;
    default:
        return;
    }
}

static void answered(struct bel_request *request, const struct bel_reply *reply)
{
    struct heard **heard = request->user;
    CHECK(*heard == NULL);
    *heard = heard_copy(request->command.verb, reply);
}

static struct asked *submit(struct world *world, enum bel_verb verb)
{
    struct asked *asked = calloc(1, sizeof *asked);
    struct bel_command command = {.verb = verb};
    CHECK(asked != NULL);
    choose_id(world, asked);
    choose_token(world, asked, 0);
    choose_token(world, asked, 1);
    choose_command(world, asked, &command);
    bool is_all = verb == BEL_VERB_REVIVE && chance(world, 30);
    for (unsigned side = 0; side < SIDES; side++) {
        struct bel_request *request = &asked->requests[side];
        *request = (struct bel_request){.command = command, .done = answered};
        request->user = &asked->heard[side];
        if (!is_all) give_names(asked, side);
        bel_backend_submit(world->backends[side], request);
    }
    say_command(world, asked);
    CHECK(world->asked_count < sizeof world->asked / sizeof world->asked[0]);
    world->asked[world->asked_count++] = asked;
    return asked;
}

static void free_asked(struct asked *asked)
{
    for (unsigned side = 0; side < SIDES; side++) {
        heard_free(asked->heard[side]);
    }
    free(asked);
}

static void remember_seen(struct world *world, struct bel_view id)
{
    char *seen = world->seen[world->seen_count % SEEN_MAX];
    const char *at = memchr(id.data, '@', id.bytes);
    if (at == NULL || at - (const char *)id.data > 1) return; /* not of a plan with a made id */
    (void)snprintf(seen, BEL_ID_BYTES + 1, "%.*s", (int)id.bytes, (const char *)id.data);
    world->seen_count++;
}

static void remember_made(struct world *world, const struct asked *asked)
{
    struct differ *differ = &world->differ;
    const struct bel_command *command = &asked->requests[0].command;
    if (command->verb != BEL_VERB_SCHEDULE || command->schedule.id.bytes > 0) return;
    if (asked->heard[ENGINE_SIDE] == NULL || asked->heard[MODEL_SIDE] == NULL) return;
    const struct bel_reply *one = &asked->heard[ENGINE_SIDE]->reply;
    const struct bel_reply *other = &asked->heard[MODEL_SIDE]->reply;
    if (one->err || other->err) return;
    CHECK(differ->made_count < DIFFER_IDS_MAX);
    CHECK(one->id.bytes == 26 && other->id.bytes == 26);
    (void)snprintf(differ->made[differ->made_count].one, BEL_ID_BYTES + 1, "%.*s",
                   (int)one->id.bytes, (const char *)one->id.data);
    (void)snprintf(differ->made[differ->made_count].other, BEL_ID_BYTES + 1, "%.*s",
                   (int)other->id.bytes, (const char *)other->id.data);
    differ->made_count++;
}

static void remember_deliveries(struct world *world, const struct asked *asked)
{
    if (asked->heard[MODEL_SIDE]->reply.err) return;
    size_t count = asked->heard[MODEL_SIDE]->reply.deliveries.count;
    for (size_t i = 0; i < count; i++) {
        struct token *token = &world->tokens[world->tokens_count++ % TOKENS_MAX];
        for (unsigned side = 0; side < SIDES; side++) {
            const struct bel_delivery *item = &asked->heard[side]->reply.deliveries.items[i];
            CHECK(item->token.bytes <= BEL_TOKEN_BYTES_MAX);
            (void)snprintf(token->texts[side], sizeof token->texts[side], "%.*s",
                           (int)item->token.bytes, (const char *)item->token.data);
        }
        remember_seen(world, asked->heard[MODEL_SIDE]->reply.deliveries.items[i].id);
    }
}

static void fail_with(struct world *world, const char *what)
{
    fprintf(stderr, "%s: the engine and the model differ: %s\n", what, world->differ.text);
    CHECK_NOTE("seed %" PRIu64, world->seed);
    CHECK(!"the same answer");
}

static void compare(struct world *world, struct asked *asked)
{
    enum bel_verb verb = asked->requests[0].command.verb;
    say_reply(world, asked);
    bool is_unsure = verb == BEL_VERB_AGENDA && has(world, EXPIRY);
    if (!is_unsure &&
        differ_in(&world->differ, asked->heard[ENGINE_SIDE], asked->heard[MODEL_SIDE])) {
        fail_with(world, bel_verb_name(verb));
    }
    if (verb == BEL_VERB_CLAIM) remember_deliveries(world, asked);
}

/* Both take a turn; then all that either has answered is compared. */
static void turn(struct world *world)
{
    for (unsigned side = 0; side < SIDES; side++) {
        world->next[side] = bel_backend_turn(world->backends[side], world->now);
    }
    size_t kept = 0;
    for (size_t i = 0; i < world->asked_count; i++) {
        remember_made(world, world->asked[i]);
    }
    for (size_t i = 0; i < world->asked_count; i++) {
        struct asked *asked = world->asked[i];
        bool is_answered = asked->heard[ENGINE_SIDE] != NULL;
        if (is_answered != (asked->heard[MODEL_SIDE] != NULL)) {
            (void)snprintf(world->differ.text, sizeof world->differ.text, "only %s has answered",
                           is_answered ? "the engine" : "the model");
            say_command(world, asked);
            fail_with(world, bel_verb_name(asked->requests[0].command.verb));
        }
        if (is_answered) {
            compare(world, asked);
            free_asked(asked);
        } else {
            CHECK(asked->requests[0].command.verb == BEL_VERB_CLAIM);
            world->asked[kept++] = asked;
        }
    }
    world->asked_count = kept;

    CHECK_NOTE("seed %" PRIu64, world->seed); /* early is fine, late is not */
    CHECK(world->next[ENGINE_SIDE].due.ns <= world->next[MODEL_SIDE].due.ns);
    CHECK(world->next[ENGINE_SIDE].wait.ns <= world->next[MODEL_SIDE].wait.ns);
}

static void move(struct world *world, uint64_t ms)
{
    world->now.boot.ns += ms * NS_PER_MS;
    world->now.wall.ms += (int64_t)ms;
    say(world, "      +%" PRIu64 " ms: %+" PRId64 "\n", ms, world->now.wall.ms - START);
}

/* Time passes, with a turn at every deadline. */
static void advance(struct world *world, uint64_t ms)
{
    uint64_t end = world->now.boot.ns + ms * NS_PER_MS;
    for (unsigned turns = 0; world->next[MODEL_SIDE].due.ns <= end; turns++) {
        CHECK(turns < TURNS_MAX);
        move(world, (world->next[MODEL_SIDE].due.ns - world->now.boot.ns) / NS_PER_MS);
        turn(world);
    }
    move(world, (end - world->now.boot.ns) / NS_PER_MS);
    turn(world);
}

static void pass_time(struct world *world)
{
    uint64_t what = below(world, 10);
    if (what <= 3) {
        advance(world, below(world, 25));
    } else if (what == 4) {
        move(world, below(world, 120)); /* a jump: the next turn finds out */
    } else if (what == 5 && has(world, STEPS)) {
        int64_t step = (int64_t)below(world, 4000) - 2000;
        say(world, "      the wall clock steps by %" PRId64 " ms\n", step);
        world->now.wall.ms += step;
    } else if (what == 6) {
        world->now.real.ns += below(world, 60) * NS_PER_MS;
        say(world, "      real time passes\n");
    }
}

/* Lists a topic in pages, on one side. */
static size_t list_all(struct world *world, unsigned side, const char *topic, uint32_t count,
                       struct bel_timer *out, struct heard **pages, size_t *pages_count)
{
    struct heard *heard = NULL;
    struct bel_request request = {.command = {.verb = BEL_VERB_LIST}, .done = answered};
    request.user = &heard;
    size_t found = 0;
    request.command.list.topic = view(topic);
    request.command.list.count = count;
    do {
        if (heard != NULL) request.command.list.cursor = heard->reply.timers.cursor;
        heard = NULL;
        bel_backend_submit(world->backends[side], &request);
        for (unsigned turns = 0; heard == NULL; turns++) {
            CHECK(turns < TURNS_MAX);
            (void)bel_backend_turn(world->backends[side], world->now);
        }
        CHECK(heard->reply.err == 0 && *pages_count < LISTED_MAX);
        pages[(*pages_count)++] = heard;
        for (size_t i = 0; i < heard->reply.timers.count; i++) {
            CHECK(found < LISTED_MAX);
            out[found++] = heard->reply.timers.items[i];
        }
    } while (heard->reply.timers.cursor.bytes > 0);
    return found;
}

static void print_listing(const struct world *world, unsigned side, const struct bel_timer *timers,
                          size_t count)
{
    for (size_t i = 0; i < count && world->is_loud; i++) {
        say(world, "    %s has ", side_names[side]);
        transcript_timer(stderr, &timers[i], START);
        say(world, "\n");
    }
}

static void compare_all(struct world *world)
{
    static struct bel_timer timers[SIDES][LISTED_MAX];
    static struct heard *pages[2 * LISTED_MAX];
    for (size_t i = 0; i < 3; i++) {
        size_t counts[SIDES], pages_count = 0;
        uint32_t count = (uint32_t)(1 + random_below(&world->look, 6));
        for (unsigned side = 0; side < SIDES; side++) {
            counts[side] =
                list_all(world, side, topic_names[i], count, timers[side], pages, &pages_count);
            print_listing(world, side, timers[side], counts[side]);
        }
        bool do_differ = differ_in_timers(&world->differ, timers[ENGINE_SIDE], counts[ENGINE_SIDE],
                                          timers[MODEL_SIDE], counts[MODEL_SIDE]);
        if (do_differ) fail_with(world, topic_names[i]);
        for (size_t j = 0; j < counts[MODEL_SIDE]; j++) {
            remember_seen(world, timers[MODEL_SIDE][j].id);
        }
        for (size_t j = 0; j < pages_count; j++) {
            heard_free(pages[j]);
        }
    }
}

static void withdraw_one(struct world *world)
{
    if (world->asked_count == 0) return;
    size_t index = below(world, world->asked_count);
    struct asked *asked = world->asked[index];
    for (unsigned side = 0; side < SIDES; side++) {
        CHECK(bel_backend_withdraw(world->backends[side], &asked->requests[side]));
    }
    say(world, "      a claim is withdrawn\n");
    free_asked(asked);
    world->asked[index] = world->asked[--world->asked_count];
}

/* The settings that a case has from its start: no chance in retries, and small numbers. */
static void configure_all(struct world *world)
{
    static const char *const settings[][2] = {
        {"retry", "4ms,8ms"}, {"lease", "20ms"}, {"crashes", "3"}, {"misfire_after", "15ms"}};
    for (size_t i = 0; i < 3; i++) {
        for (size_t j = 0; j < 5; j++) {
            struct heard *heard[SIDES] = {NULL};
            struct bel_setting setting = {view("retention"), view("40ms")};
            if (j < 4) setting = (struct bel_setting){view(settings[j][0]), view(settings[j][1])};
            if (j == 4 && !has(world, RETENTION)) continue;
            for (unsigned side = 0; side < SIDES; side++) {
                struct bel_request request = {.command = {.verb = BEL_VERB_CONFIGURE},
                                              .done = answered};
                request.user = &heard[side];
                request.command.configure =
                    (struct bel_configure){view(topic_names[i]), &setting, 1};
                bel_backend_submit(world->backends[side], &request);
                world->next[side] = bel_backend_turn(world->backends[side], world->now);
                CHECK(heard[side] != NULL && heard[side]->reply.err == 0);
                heard_free(heard[side]);
            }
        }
    }
}

static void choose_features(struct world *world)
{
    world->features = (unsigned)random_u64(&world->random) & 0x1ff;
    if (!chance(world, 25)) world->features &= ~(unsigned)EXPIRY;
    if (has(world, EXPIRY)) world->features &= ~(unsigned)(STEPS | CONCURRENCY | DEPTH);
    if (has(world, STEPS)) world->features &= ~(unsigned)RETENTION;
    world->differ.is_lazy = has(world, EXPIRY);
    say(world, "features %x\n", world->features);
}

static void start(struct world *world, uint64_t seed, bool is_loud)
{
    *world = (struct world){.seed = seed, .random = seed, .look = ~seed, .is_loud = is_loud};
    world->now = (struct bel_now){{1000 * (uint64_t)NS_PER_MS}, {START}, {NS_PER_MS}};
    choose_features(world);
    struct bel_engine_options options = {.now = world->now};
    CHECK(bel_engine_open(&options, &world->engine, NULL) == 0);
    world->model = model_create(&(struct model_options){.now = world->now});
    world->backends[ENGINE_SIDE] = bel_engine_backend(world->engine);
    world->backends[MODEL_SIDE] = model_backend(world->model);
    configure_all(world);
}

static void finish(struct world *world)
{
    while (world->asked_count > 0) {
        withdraw_one(world);
    }
    bel_engine_close(world->engine);
    model_destroy(world->model);
}

static void run_case(uint64_t seed, bool is_loud)
{
    static struct world world;
    CHECK_NOTE("seed %" PRIu64, seed);
    start(&world, seed, is_loud);
    for (unsigned batch = 0; batch < BATCHES; batch++) {
        size_t count = 1 + below(&world, BATCH_MAX);
        for (size_t i = 0; i < count; i++) {
            bool is_crowded = world.asked_count - i >= WAITING_MAX;
            enum bel_verb verb = choose_verb(&world);
            (void)submit(&world, verb == BEL_VERB_CLAIM && is_crowded ? BEL_VERB_GET : verb);
        }
        turn(&world);
        if (world.asked_count > 0 && chance(&world, 10)) withdraw_one(&world);
        if (random_below(&world.look, 100) < 30) compare_all(&world);
        pass_time(&world);
    }
    turn(&world);
    compare_all(&world);
    finish(&world);
}

int main(int argc, char **argv)
{
    struct cases cases = cases_of(argc, argv, CASES);
    for (uint64_t seed = cases.first; seed <= cases.last; seed++) {
        run_case(seed, argc > 1);
    }
    (void)printf("ok   the_engine_answers_as_the_model_does\n");
    return 0;
}
