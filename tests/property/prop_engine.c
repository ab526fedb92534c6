/* SPDX-License-Identifier: MIT */

/*
 * The engine compared with the model: random commands on few topics and few ids, with durations of
 * milliseconds, so that everything interacts. Both get the same requests in the same turns, and
 * every reply is compared.
 *
 *     prop_engine 4711        runs only that seed, and prints requests and replies
 *
 * A case has features, chosen at its start.
 */
#include "prop_engine.h"

#include "../engine_valid.h"
#include "../model/inside.h"
#include "draw.h"
#include "transcript.h"

#include <sched.h>
#include <stdarg.h>

static const char *const side_names[SIDES] = {"engine", "model "};

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

static void answered(struct bel_request *request, const struct bel_reply *reply)
{
    struct heard **heard = request->user;
    CHECK(*heard == NULL);
    *heard = heard_copy(request->command.verb, reply);
}

static void submit_asked(struct world *world, struct asked *asked)
{
    for (unsigned side = 0; side < SIDES; side++) {
        struct bel_request *request = &asked->requests[side];
        request->done = answered;
        request->user = &asked->heard[side];
        bel_backend_submit(world->backends[side], request);
    }
    say_command(world, asked);
    CHECK(world->asked_count < sizeof world->asked / sizeof world->asked[0]);
    world->asked[world->asked_count++] = asked;
}

static void submit(struct world *world, enum bel_verb verb)
{
    struct asked *asked = calloc(1, sizeof *asked);
    CHECK(asked != NULL);
    choose(world, verb, asked);
    submit_asked(world, asked);
}

static void free_asked(struct asked *asked)
{
    for (unsigned side = 0; side < SIDES; side++) {
        heard_free(asked->heard[side]);
    }
    free(asked->job);
    free(asked);
}

static void remember_seen(struct world *world, struct bel_view id)
{
    char *seen = world->seen[world->seen_count % SEEN_MAX];
    const char *at = memchr(id.data, '@', id.bytes);
    bool is_task = memchr(id.data, '/', id.bytes) != NULL;
    if (!is_task && (at == NULL || at - (const char *)id.data > 1)) {
        return; /* not for a plan with a generated id */
    }
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
    fprintf(stderr, "seed %" PRIu64 ", %s: the engine and the model differ: %s\n", world->seed,
            what, world->differ.text);
    abort();
}

static void compare(struct world *world, struct asked *asked)
{
    enum bel_verb verb = asked->requests[0].command.verb;
    say_reply(world, asked);
    if (differ_in(&world->differ, asked->heard[ENGINE_SIDE], asked->heard[MODEL_SIDE])) {
        fail_with(world, bel_verb_name(verb));
    }
    if (verb == BEL_VERB_CLAIM) remember_deliveries(world, asked);
}

/* The engine takes a turn. In a directory it replies when the changes are durable: when a request
 * submitted after the turn is answered, so are all requests of the turn. */
static void turn_engine(struct world *world)
{
    struct heard *heard = NULL;
    struct bel_backend *backend = world->backends[ENGINE_SIDE];
    struct bel_request request = {.command = {.verb = BEL_VERB_TOPICS}, .done = answered};
    world->next[ENGINE_SIDE] = bel_backend_turn(backend, world->now);
    if (!has(world, DIRECTORY)) return;
    request.user = &heard;
    bel_backend_submit(backend, &request);
    while (heard == NULL) {
        world->next[ENGINE_SIDE] = bel_backend_turn(backend, world->now);
        (void)sched_yield();
    }
    heard_free(heard);
}

/* The engine answers JOB CANCEL, and JOB SUBMIT of a job that replaces another one, in its next
 * turn. */
static void finish_jobs(struct world *world)
{
    for (size_t i = 0; i < world->asked_count; i++) {
        const struct asked *asked = world->asked[i];
        bool is_claim = asked->requests[0].command.verb == BEL_VERB_CLAIM;
        for (int turns = 0; !is_claim && asked->heard[ENGINE_SIDE] == NULL; turns++) {
            CHECK(turns < JOB_TURNS_MAX);
            turn_engine(world);
        }
    }
}

/* Checks the internal state of the engine, every other time. */
static void look_inside(struct world *world)
{
    if (random_below(&world->look, 2) == 0) return;
    const char *fault = engine_fault(world->engine);
    if (fault == NULL) return;
    (void)snprintf(world->differ.text, sizeof world->differ.text, "%s", fault);
    fail_with(world, "inside");
}

/* Both take a turn; then all replies are compared. */
static void turn(struct world *world)
{
    turn_engine(world);
    finish_jobs(world);
    look_inside(world);
    world->next[MODEL_SIDE] = bel_backend_turn(world->backends[MODEL_SIDE], world->now);
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

/* Lets time pass, with a turn at every deadline. */
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
        move(world, below(world, 120)); /* a jump: the next turn notices it */
    } else if (what == 5 && has(world, STEPS)) {
        int64_t step = (int64_t)below(world, 4000) - 2000;
        say(world, "      the wall clock steps by %" PRId64 " ms\n", step);
        world->now.wall.ms += step;
    } else if (what == 6) {
        world->now.real.ns += below(world, 60) * NS_PER_MS;
        say(world, "      real time passes\n");
    }
}

static struct bel_pressure_use draw_use(struct world *world)
{
    static const uint64_t uses[] = {0, 500, 501, 899, 900, 901, 949, 950, 951, 1000};
    struct bel_pressure_use use = {.limit = 1000};
    use.used = uses[random_below(&world->press, sizeof uses / sizeof uses[0])];
    use.is_unreadable = random_below(&world->press, 30) == 0;
    return use;
}

/* Gives both a sample, near the bounds of the levels. */
static void press(struct world *world)
{
    struct bel_pressure_sample sample = {0};
    if (!has(world, PRESSURE) || random_below(&world->press, 3) > 0) return;
    if (random_below(&world->press, 2) == 0) sample.memory = draw_use(world);
    if (random_below(&world->press, 2) == 0) sample.disk = draw_use(world);
    if (random_below(&world->press, 2) == 0) sample.commit = draw_use(world);
    (void)bel_engine_pressure(world->engine, &sample);
    model_pressure(world->model, &sample);
    say(world, "      memory %u, disk %u, commit %u\n", (unsigned)sample.memory.used,
        (unsigned)sample.disk.used, (unsigned)sample.commit.used);
    CHECK_NOTE("seed %" PRIu64, world->seed);
    const struct bel_pressure_state *state = &bel_engine_stats(world->engine)->pressure;
    for (int i = 0; i < BEL_PRESSURE_CAUSES; i++) {
        CHECK((int)state->levels[i] == world->model->pressure[i]);
    }
}

/* Compares all jobs. */
static void compare_jobs(struct world *world)
{
    struct asked *asked = calloc(1 + DRAW_JOBS, sizeof *asked);
    static char ids[DRAW_JOBS][8];
    CHECK(asked != NULL);
    for (unsigned side = 0; side < SIDES; side++) {
        for (int i = 0; i <= DRAW_JOBS; i++) {
            struct bel_request *request = &asked[i].requests[side];
            request->command.verb = i < DRAW_JOBS ? BEL_VERB_JOB_GET : BEL_VERB_JOB_LIST;
            if (i < DRAW_JOBS) {
                (void)snprintf(ids[i], sizeof ids[i], "x%d", i);
                request->command.job_get.id = view(ids[i]);
            }
            request->done = answered;
            request->user = &asked[i].heard[side];
            bel_backend_submit(world->backends[side], request);
        }
        while (asked[DRAW_JOBS].heard[side] == NULL) {
            (void)bel_backend_turn(world->backends[side], world->now);
        }
    }
    for (int i = 0; i <= DRAW_JOBS; i++) {
        if (differ_in(&world->differ, asked[i].heard[ENGINE_SIDE], asked[i].heard[MODEL_SIDE])) {
            say_reply(world, &asked[i]);
            fail_with(world, "jobs");
        }
        heard_free(asked[i].heard[ENGINE_SIDE]);
        heard_free(asked[i].heard[MODEL_SIDE]);
    }
    free(asked);
}

/* All timers of a topic, as one side lists them. */
struct listing {
    struct bel_timer timers[LISTED_MAX];
    struct heard *pages[LISTED_MAX];
    size_t timers_count, pages_count;
};

static void list_all(struct world *world, unsigned side, const char *topic, uint32_t count,
                     struct listing *out)
{
    struct heard *heard = NULL;
    struct bel_request request = {.command = {.verb = BEL_VERB_LIST}, .done = answered};
    request.user = &heard;
    request.command.list.topic = view(topic);
    request.command.list.count = count;
    out->timers_count = out->pages_count = 0;
    do {
        if (heard != NULL) request.command.list.cursor = heard->reply.timers.cursor;
        heard = NULL;
        bel_backend_submit(world->backends[side], &request);
        while (heard == NULL) {
            (void)bel_backend_turn(world->backends[side], world->now);
        }
        CHECK(heard->reply.err == 0 && out->pages_count < LISTED_MAX);
        out->pages[out->pages_count++] = heard;
        for (size_t i = 0; i < heard->reply.timers.count; i++) {
            CHECK(out->timers_count < LISTED_MAX);
            out->timers[out->timers_count++] = heard->reply.timers.items[i];
        }
    } while (heard->reply.timers.cursor.bytes > 0);
}

static void free_listing(struct listing *listing)
{
    for (size_t i = 0; i < listing->pages_count; i++) {
        heard_free(listing->pages[i]);
    }
}

static void print_listing(const struct world *world, unsigned side, const struct listing *listing)
{
    for (size_t i = 0; i < listing->timers_count && world->is_loud; i++) {
        say(world, "    %s has ", side_names[side]);
        transcript_timer(stderr, &listing->timers[i], START);
        say(world, "\n");
    }
}

static void compare_all(struct world *world)
{
    static struct listing listings[SIDES];
    const struct listing *one = &listings[ENGINE_SIDE], *other = &listings[MODEL_SIDE];
    if (has(world, JOBS)) compare_jobs(world);
    for (size_t i = 0; i < 3; i++) {
        uint32_t count = (uint32_t)(1 + random_below(&world->look, 6));
        for (unsigned side = 0; side < SIDES; side++) {
            list_all(world, side, topic_names[i], count, &listings[side]);
            print_listing(world, side, &listings[side]);
        }
        if (differ_in_timers(&world->differ, one->timers, one->timers_count, other->timers,
                             other->timers_count)) {
            fail_with(world, topic_names[i]);
        }
        for (size_t j = 0; j < other->timers_count; j++) {
            remember_seen(world, other->timers[j].id);
        }
        free_listing(&listings[ENGINE_SIDE]);
        free_listing(&listings[MODEL_SIDE]);
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

static void configure(struct world *world, unsigned side, const char *topic,
                      const struct bel_setting *settings, size_t count)
{
    struct heard *heard = NULL;
    struct bel_request request = {.command = {.verb = BEL_VERB_CONFIGURE}, .done = answered};
    request.user = &heard;
    request.command.configure = (struct bel_configure){view(topic), settings, count};
    bel_backend_submit(world->backends[side], &request);
    while (heard == NULL) {
        world->next[side] = bel_backend_turn(world->backends[side], world->now);
    }
    CHECK(heard->reply.err == 0);
    heard_free(heard);
}

/* The settings of a case: no randomness in retries, and small numbers. */
static void configure_all(struct world *world)
{
    const struct bel_setting settings[] = {{BEL_VIEW("retry"), BEL_VIEW("4ms,8ms")},
                                           {BEL_VIEW("lease"), BEL_VIEW("20ms")},
                                           {BEL_VIEW("crashes"), BEL_VIEW("3")},
                                           {BEL_VIEW("misfire_after"), BEL_VIEW("15ms")},
                                           {BEL_VIEW("retention"), BEL_VIEW("40ms")}};
    for (size_t i = 0; i < 3; i++) {
        for (unsigned side = 0; side < SIDES; side++) {
            configure(world, side, topic_names[i], settings, has(world, RETENTION) ? 5 : 4);
        }
    }
}

static void choose_features(struct world *world)
{
    world->features = (unsigned)random_u64(&world->random) & 0x1ff;
    if (world->seed % 2 == 1) world->features |= RESOURCES;
    if (has(world, STEPS)) world->features &= ~(unsigned)RETENTION;
    if (world->seed % DIRECTORY_EVERY == 0) world->features |= DIRECTORY;
    if (random_below(&world->press, 3) == 0) world->features |= PRESSURE;
    if (world->seed % 5 > 2 || has(world, DIRECTORY)) world->features |= JOBS;
    say(world, "features %x\n", world->features);
}

static void open_engine(struct world *world)
{
    struct bel_engine_options options = {.now = world->now};
    if (has(world, DIRECTORY)) options.folder = world->path;
    CHECK(bel_engine_open(&options, &world->engine, NULL) == 0);
    world->engine->expiry.rows_max = UINT32_MAX; /* the model ends all in one turn */
    world->backends[ENGINE_SIDE] = bel_engine_backend(world->engine);
}

static void start(struct world *world, uint64_t seed, bool is_loud)
{
    *world = (struct world){
        .seed = seed, .random = seed, .look = ~seed, .press = ~seed / 2, .is_loud = is_loud};
    world->now = (struct bel_now){{1000 * (uint64_t)NS_PER_MS}, {START}, {NS_PER_MS}, 0};
    choose_features(world);
    const char *temporary = getenv("TMPDIR"); /* NOLINT(concurrency-mt-unsafe) */
    (void)snprintf(world->path, sizeof world->path, "%s/belfry-XXXXXX",
                   temporary ? temporary : "/tmp");
    if (has(world, DIRECTORY)) CHECK(mkdtemp(world->path) != NULL);
    open_engine(world);
    world->model = model_create(&(struct model_options){.now = world->now});
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
    if (!has(world, DIRECTORY)) return;
    char command[128];
    (void)snprintf(command, sizeof command, "rm -r '%s'", world->path);
    CHECK(system(command) == 0); /* NOLINT(concurrency-mt-unsafe) */
}

/* Writes something: after a close, the known time is that of the last write. There must be no
 * pressure, which would refuse it. */
static void write_something(struct world *world)
{
    static const struct bel_pressure_sample none = {0};
    struct asked *asked = calloc(1, sizeof *asked);
    struct bel_command command = {.verb = BEL_VERB_SCHEDULE};
    CHECK(asked != NULL);
    if (has(world, PRESSURE)) {
        (void)bel_engine_pressure(world->engine, &none);
        model_pressure(world->model, &none);
    }
    command.schedule.topic = view("z");
    command.schedule.id = view("mark");
    command.schedule.when = BEL_WHEN_IN;
    command.schedule.delay_ms = UINT64_C(1000) * 3600 * 1000;
    for (unsigned side = 0; side < SIDES; side++) {
        asked->requests[side].command = command;
    }
    submit_asked(world, asked);
    turn(world);
}

/* Both are closed for a while, and the machine is restarted. */
static void reopen(struct world *world)
{
    write_something(world);
    while (world->asked_count > 0) {
        withdraw_one(world);
    }
    bel_engine_close(world->engine);
    world->now.boot.ns = (1 + below(world, 3000)) * NS_PER_MS;
    world->now.wall.ms += (int64_t)below(world, 100) - (chance(world, 20) ? 100 : 0);
    say(world, "      closed, and opened again at %+" PRId64 "\n", world->now.wall.ms - START);
    open_engine(world);
    model_reopen(world->model, world->now);
    turn(world);
    compare_all(world);
}

static void run_case(uint64_t seed, bool is_loud)
{
    static struct world world;
    CHECK_NOTE("seed %" PRIu64, seed);
    start(&world, seed, is_loud);
    for (unsigned batch = 0; batch < BATCHES; batch++) {
        size_t count = 1 + below(&world, BATCH_MAX);
        press(&world);
        for (size_t i = 0; i < count; i++) {
            bool is_crowded = world.asked_count - i >= WAITING_MAX;
            enum bel_verb verb = choose_verb(&world);
            submit(&world, verb == BEL_VERB_CLAIM && is_crowded ? BEL_VERB_GET : verb);
        }
        turn(&world);
        if (world.asked_count > 0 && chance(&world, 10)) withdraw_one(&world);
        if (random_below(&world.look, 100) < 30) compare_all(&world);
        pass_time(&world);
        if (has(&world, DIRECTORY) && chance(&world, 8)) reopen(&world);
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
