/* SPDX-License-Identifier: MIT */

/*
 * Jobs, shares and limits of an engine in this process, one section per run:
 *
 *     jobs dispatch queued=100000        claim and acknowledge tasks beside so many queued ones
 *     jobs rescore queued=100000         the same by a model that rescores every task for each pick
 *     jobs durable folder=DIR            lifecycles of tasks and of plain timers, in batches of 100
 *     jobs fairness groups=10 unequal=0  what groups get of the workers, against what is fair;
 *                                        random=1: workers finish in a random order
 *     jobs claims                        plain claims, beside limits and shares, and through them
 *     jobs parked timers=1000000         timers of a closed resource: idle, and when it opens
 *     jobs submit tasks=10000            a large job: time to its reply
 *
 * Prints one line of JSON. Time is real, except while the parked timers idle.
 */
#include "belfry/clock.h"
#include "belfry/engine.h"
#include "harness.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    BATCH = 100,
    TEXT_BYTES = 8 << 20,
    GROUPS_MAX = 1000,
    SLOTS = 200,
    ROUNDS = 500,
    CLAIMS = 50000, /* of a round */
    BURSTS = 9,
};

#define BURST_SECONDS 0.7

const struct engine_traits engine_traits = {.name = "belfry"};

static struct bel_engine *engine;
static struct bel_backend *backend;
static uint64_t ahead_ns; /* of virtual time */

static struct bel_now now(void)
{
    const struct bel_clock *clock = bel_clock_system();
    struct bel_now now = {.boot = bel_clock_boot(clock),
                          .wall = bel_clock_wall(clock),
                          .real = bel_clock_mono(clock)};
    now.boot.ns += ahead_ns;
    now.wall.ms += (int64_t)(ahead_ns / BENCH_MS);
    now.real.ns += ahead_ns;
    return now;
}

static double seconds(void)
{
    return (double)bel_clock_mono(bel_clock_system()).ns / 1e9;
}

static double cpu_seconds(void)
{
    struct timespec time;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void open_engine(const char *folder)
{
    struct bel_engine_options options = {.folder = folder, .now = now()};
    struct bel_engine_why why;
    if (bel_engine_open(&options, &engine, &why) != 0) bench_fail(why.text);
    backend = bel_engine_backend(engine);
}

static void use_engine(struct bel_engine *chosen)
{
    engine = chosen;
    backend = bel_engine_backend(chosen);
}

static struct bel_view view(const char *text)
{
    return (struct bel_view){text, strlen(text)};
}

/* --- requests --- */

static size_t waiting; /* requests without a reply */
static char token_bytes[BATCH][BEL_TOKEN_BYTES_MAX];
static struct bel_view tokens[BATCH];
static unsigned token_groups[BATCH]; /* the payload of a delivery, as a number */
static size_t tokens_count;

static void answered(struct bel_request *request, const struct bel_reply *reply)
{
    if (reply->err != 0) bench_fail(reply->why[0] != 0 ? reply->why : bel_error_text(reply->err));
    if (request->command.verb == BEL_VERB_CLAIM) {
        tokens_count = reply->deliveries.count;
        for (size_t i = 0; i < tokens_count; i++) {
            const struct bel_delivery *delivery = &reply->deliveries.items[i];
            memcpy(token_bytes[i], delivery->token.data, delivery->token.bytes);
            tokens[i] = (struct bel_view){token_bytes[i], delivery->token.bytes};
            char number[8] = "0";
            if (delivery->payload.bytes > 0 && delivery->payload.bytes < sizeof number) {
                memcpy(number, delivery->payload.data, delivery->payload.bytes);
                number[delivery->payload.bytes] = 0;
            }
            token_groups[i] = (unsigned)strtoul(number, NULL, 10);
        }
    }
    waiting--;
}

static void submit(struct bel_request *request)
{
    request->done = answered;
    waiting++;
    bel_backend_submit(backend, request);
}

static void turns(void)
{
    while (waiting > 0) {
        (void)bel_backend_turn(backend, now());
    }
}

static void ask(struct bel_command command)
{
    struct bel_request request = {.command = command};
    submit(&request);
    turns();
}

static void claim(const char *name, uint32_t count)
{
    struct bel_view topic = view(name);
    struct bel_command command = {.verb = BEL_VERB_CLAIM};
    command.claim = (struct bel_claim){.topics = &topic, .topics_count = 1, .count = count};
    ask(command);
}

static void ack(size_t count)
{
    struct bel_command command = {.verb = BEL_VERB_ACK};
    command.ack = (struct bel_ack){.tokens = tokens, .tokens_count = count};
    ask(command);
}

static void configure(const char *topic, const char *name, const char *value)
{
    struct bel_setting setting = {view(name), view(value)};
    struct bel_command command = {.verb = BEL_VERB_CONFIGURE};
    command.configure = (struct bel_configure){view(topic), &setting, 1};
    ask(command);
}

static struct bel_request schedules[BATCH];

/* Schedules timers in one turn. */
static void schedule(const char *topic, unsigned group, const char *resource, size_t count)
{
    char name[16], payload[16];
    (void)snprintf(name, sizeof name, "g%u", group);
    (void)snprintf(payload, sizeof payload, "%u", group);
    for (size_t i = 0; i < count; i++) {
        schedules[i] = (struct bel_request){.command = {.verb = BEL_VERB_SCHEDULE}};
        struct bel_schedule_spec *spec = &schedules[i].command.schedule;
        spec->topic = view(topic);
        spec->payload = view(payload);
        if (group > 0) spec->group = view(name);
        if (resource != NULL) spec->resource = view(resource);
        submit(&schedules[i]);
    }
    turns();
}

/* --- jobs --- */

static char text[TEXT_BYTES];
static uint64_t jobs_made;

/* Writes a job of `tasks` tasks; with edges, a task comes after two earlier ones. */
static void submit_job(unsigned tasks, bool has_edges)
{
    size_t at =
        (size_t)snprintf(text, sizeof text, "{\"id\":\"j%" PRIu64 "\",\"tasks\":[", jobs_made++);
    for (unsigned i = 0; i < tasks; i++) {
        at += (size_t)snprintf(text + at, sizeof text - at,
                               "%s{\"id\":\"t%u\",\"topic\":\"work\",\"payload\":\"x\"",
                               i > 0 ? "," : "", i);
        if (has_edges && i >= 2) {
            at += (size_t)snprintf(text + at, sizeof text - at, ",\"after\":[\"t%u\",\"t%u\"]",
                                   i / 2, i / 2 - 1);
        }
        at += (size_t)snprintf(text + at, sizeof text - at, "}");
    }
    at += (size_t)snprintf(text + at, sizeof text - at, "]}");
    struct bel_command command = {.verb = BEL_VERB_JOB_SUBMIT};
    command.job_submit.text = (struct bel_view){text, at};
    ask(command);
}

static void run_dispatch(uint64_t queued)
{
    uint64_t rounds = ROUNDS, done = 0;
    double spent = 0, cpu = 0;
    open_engine(NULL);
    for (uint64_t i = 0; i < queued / BATCH; i++) {
        submit_job(BATCH, false);
    }
    for (uint64_t i = 0; i < rounds; i++) {
        double start = seconds(), cpu_start = cpu_seconds();
        claim("work", BATCH);
        size_t count = tokens_count;
        ack(count);
        spent += seconds() - start;
        cpu += cpu_seconds() - cpu_start;
        done += count;
        submit_job(BATCH, false); /* so that as many stay queued */
    }
    printf("{\"section\": \"dispatch\", \"queued\": %" PRIu64
           ", \"tasks_per_second\": %.0f, \"tasks_per_cpu_second\": %.0f}\n",
           queued, (double)done / spent, (double)done / cpu);
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Returns lifecycles per second of a burst. */
static double burst(bool is_plain)
{
    uint64_t done = 0;
    double start = seconds();
    while (seconds() - start < BURST_SECONDS) {
        if (is_plain) schedule("work", 0, NULL, BATCH);
        if (!is_plain) submit_job(BATCH, false);
        claim("work", BATCH);
        done += tokens_count;
        ack(tokens_count);
    }
    return (double)done / (seconds() - start);
}

/* Tasks and plain timers in turn, because the speed of a disk changes. */
static void run_durable(const char *folder)
{
    double tasks[BURSTS], timers[BURSTS], ratios[BURSTS];
    open_engine(folder);
    for (int i = 0; i < BURSTS; i++) {
        tasks[i] = burst(false);
        timers[i] = burst(true);
        ratios[i] = tasks[i] / timers[i];
    }
    qsort(tasks, BURSTS, sizeof tasks[0], compare_doubles);
    qsort(timers, BURSTS, sizeof timers[0], compare_doubles);
    qsort(ratios, BURSTS, sizeof ratios[0], compare_doubles);
    printf("{\"section\": \"durable\", \"tasks_per_second\": %.0f, \"timers_per_second\": %.0f, "
           "\"ratio\": %.3f}\n",
           tasks[BURSTS / 2], timers[BURSTS / 2], ratios[BURSTS / 2]);
}

/* --- the model that rescores everything --- */

struct task {
    double score;
    uint32_t job;
    bool is_taken;
};

static void run_rescore(uint64_t queued)
{
    struct task *tasks = bench_alloc(queued, sizeof *tasks);
    uint32_t jobs = (uint32_t)(queued / BATCH), *running = bench_alloc(jobs, sizeof *running);
    uint64_t done = 0;
    memset(running, 0, jobs * sizeof *running);
    for (uint64_t i = 0; i < queued; i++) {
        tasks[i] = (struct task){.score = 50 + (double)(i % 7), .job = (uint32_t)(i % jobs)};
    }
    double start = seconds(), end = start;
    while (end - start < 2) {
        struct task *best = NULL;
        double least = 0;
        for (uint64_t i = 0; i < queued; i++) {
            if (tasks[i].is_taken) continue;
            double over = (double)running[tasks[i].job] - (double)SLOTS / jobs;
            double score = tasks[i].score + (over > 0 ? over * 10 : 0);
            if (best != NULL && score >= least) continue;
            best = &tasks[i];
            least = score;
        }
        if (best == NULL) bench_fail("no task");
        best->is_taken = true;
        running[best->job]++;
        running[best->job]--; /* complete, and queue another like it */
        best->is_taken = false;
        best->score += 0.001;
        done++;
        end = seconds();
    }
    printf("{\"section\": \"rescore\", \"queued\": %" PRIu64 ", \"tasks_per_second\": %.0f}\n",
           queued, (double)done / (end - start));
}

/* --- fairness --- */

struct held {
    char token[BEL_TOKEN_BYTES_MAX];
    size_t bytes;
    unsigned group;
};

static uint64_t seed = 4711;

static uint64_t below(uint64_t end)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (seed >> 33) % end;
}

/* Returns the level up to which every group is served if `total` is shared fairly. */
static double fair_level(const uint64_t *demands, unsigned groups, uint64_t total)
{
    double low = 0, high = (double)total;
    for (int i = 0; i < 100; i++) {
        double level = (low + high) / 2, sum = 0;
        for (unsigned g = 0; g < groups; g++) {
            sum += (double)demands[g] < level ? (double)demands[g] : level;
        }
        if (sum < (double)total) {
            low = level;
        } else {
            high = level;
        }
    }
    return high;
}

/* The workers finish in a random order, or, if each timer takes all of them the same time, in the
 * order of their claims. */
static void run_fairness(unsigned groups, bool is_unequal, bool is_random)
{
    static uint64_t demands[GROUPS_MAX], got[GROUPS_MAX];
    static struct held held[SLOTS];
    uint64_t all = 0, total = 0;
    char slots[16];
    open_engine(NULL);
    (void)snprintf(slots, sizeof slots, "%d", SLOTS);
    configure("work", "concurrency", slots);
    for (unsigned g = 0; g < groups; g++) {
        demands[g] = is_unequal ? 100 * (uint64_t)(1 + g % 10) * (1 + g % 10) / 2 : 4000;
        for (uint64_t left = demands[g]; left > 0;) {
            size_t count = left < BATCH ? (size_t)left : BATCH;
            schedule("work", g + 1, NULL, count);
            left -= count;
        }
        all += demands[g];
    }
    while (total < all / 2) { /* a worker finishes and claims again */
        struct held *slot = &held[total < SLOTS ? total : is_random ? below(SLOTS) : total % SLOTS];
        if (total >= SLOTS) {
            tokens[0] = (struct bel_view){slot->token, slot->bytes};
            ack(1);
        }
        claim("work", 1);
        if (tokens_count != 1) bench_fail("nothing to claim");
        memcpy(slot->token, token_bytes[0], tokens[0].bytes);
        slot->bytes = tokens[0].bytes;
        slot->group = token_groups[0] - 1;
        got[slot->group]++;
        total++;
    }
    double level = fair_level(demands, groups, total), sum = 0, worst = 0;
    for (unsigned g = 0; g < groups; g++) {
        double fair = (double)demands[g] < level ? (double)demands[g] : level;
        double error = (double)got[g] > fair ? (double)got[g] - fair : fair - (double)got[g];
        sum += error;
        if (error / fair > worst) worst = error / fair;
    }
    printf("{\"section\": \"fairness\", \"groups\": %u, \"unequal\": %d, \"random\": %d, "
           "\"error\": %.4f, \"worst\": %.4f}\n",
           groups, is_unequal, is_random, sum / (double)total, worst);
}

/* --- claims beside and through limits --- */

static void set_limits(void)
{
    struct bel_command command = {.verb = BEL_VERB_LIMIT};
    command.limit = (struct bel_limit){.action = BEL_LIMIT_SET,
                                       .resource = view("*"),
                                       .has_concurrency = true,
                                       .concurrency = 1000000};
    ask(command);
    command.limit = (struct bel_limit){.action = BEL_LIMIT_SET,
                                       .resource = view("api"),
                                       .has_concurrency = true,
                                       .concurrency = 1000000};
    ask(command);
}

/* Returns claims and acknowledgements per second of CPU: of plain timers, or of ten groups and a
 * resource. */
static double claims_per_second(bool use)
{
    double spent = 0;
    uint64_t done = 0;
    while (done < CLAIMS) {
        for (unsigned i = 0; i < 10; i++) {
            schedule("work", use ? 1 + i : 0, use ? "api/search" : NULL, BATCH);
        }
        double start = cpu_seconds();
        for (unsigned i = 0; i < 10; i++) {
            claim("work", BATCH);
            done += tokens_count;
            ack(tokens_count);
        }
        spent += cpu_seconds() - start;
    }
    return (double)done / spent;
}

static double median(double *values, size_t count)
{
    qsort(values, count, sizeof *values, compare_doubles);
    return values[count / 2];
}

/* Two engines in turn, of which one has limits and another share, whose timer stays leased. */
static void run_claims(void)
{
    double off[BURSTS], beside[BURSTS], through[BURSTS], ratios[BURSTS];
    open_engine(NULL);
    struct bel_engine *plain = engine;
    open_engine(NULL);
    struct bel_engine *limited = engine;
    set_limits();
    schedule("work", 1, "api/search", 1);
    claim("work", 1);
    for (int i = 0; i < BURSTS; i++) {
        use_engine(plain);
        off[i] = claims_per_second(false);
        use_engine(limited);
        beside[i] = claims_per_second(false);
        through[i] = claims_per_second(true);
        ratios[i] = beside[i] / off[i];
    }
    bel_engine_close(plain);
    printf("{\"section\": \"claims\", \"off\": %.0f, \"beside\": %.0f, \"through\": %.0f, "
           "\"ratio\": %.3f}\n",
           median(off, BURSTS), median(beside, BURSTS), median(through, BURSTS),
           median(ratios, BURSTS));
}

/* --- parked timers --- */

static void limit(enum bel_limit_action action)
{
    struct bel_command command = {.verb = BEL_VERB_LIMIT};
    command.limit = (struct bel_limit){.action = action, .resource = view("closed")};
    command.limit.has_until = action == BEL_LIMIT_SET;
    command.limit.until_ms = UINT64_C(3600) * 1000;
    ask(command);
}

static void run_parked(uint64_t timers)
{
    static double latencies[ROUNDS];
    open_engine(NULL);
    limit(BEL_LIMIT_SET);
    for (uint64_t left = timers; left > 0; left -= BATCH) {
        schedule("work", 0, "closed", BATCH);
    }
    struct bel_next next = bel_backend_turn(backend, now());
    while (next.due.ns <= now().boot.ns) {
        next = bel_backend_turn(backend, now());
    }
    double start = cpu_seconds();
    for (uint64_t end = ahead_ns + 10 * (uint64_t)1000 * BENCH_MS; ahead_ns < end;) {
        uint64_t due = next.due.ns - now().boot.ns, second = (uint64_t)1000 * BENCH_MS;
        (void)bel_engine_pressure(engine, &(struct bel_pressure_sample){0});
        ahead_ns += due < second ? due : second;
        next = bel_backend_turn(backend, now());
    }
    double idle = cpu_seconds() - start;
    for (int i = 0; i < ROUNDS; i++) {
        struct bel_view topic = view("work");
        struct bel_request parked = {.command = {.verb = BEL_VERB_CLAIM}};
        parked.command.claim =
            (struct bel_claim){.topics = &topic, .topics_count = 1, .count = 1, .wait_ms = 1000000};
        submit(&parked);
        (void)bel_backend_turn(backend, now());
        if (waiting != 1) bench_fail("the claim does not wait");
        double opened = seconds();
        limit(BEL_LIMIT_CLEAR); /* returns when the claim is served, too */
        latencies[i] = seconds() - opened;
        if (tokens_count != 1) bench_fail("the claim got nothing");
        ack(1);
        limit(BEL_LIMIT_SET);
    }
    qsort(latencies, ROUNDS, sizeof latencies[0], compare_doubles);
    printf("{\"section\": \"parked\", \"timers\": %" PRIu64 ", \"idle_cpu_ms\": %.3f, "
           "\"clear_p50_ms\": %.3f, \"clear_p99_ms\": %.3f}\n",
           timers, idle * 1e3, latencies[ROUNDS / 2] * 1e3, latencies[ROUNDS * 99 / 100] * 1e3);
}

static void run_submit(unsigned tasks)
{
    double best = 0, longest = 0;
    open_engine(NULL);
    for (int run = 0; run < 5; run++) {
        double start = seconds();
        submit_job(tasks, true);
        double took = seconds() - start;
        if (run == 0 || took < best) best = took;
        if (took > longest) longest = took;
    }
    printf("{\"section\": \"submit\", \"tasks\": %u, \"edges\": %u, \"ms\": %.1f, \"worst_ms\": "
           "%.1f}\n",
           tasks, 2 * (tasks - 2), best * 1e3, longest * 1e3);
}

/* Returns the value of an argument name=value; or `otherwise`. */
static const char *value_of(char **argv, const char *name, const char *otherwise)
{
    size_t bytes = strlen(name);
    for (; *argv != NULL; argv++) {
        if (strncmp(*argv, name, bytes) == 0 && (*argv)[bytes] == '=') return *argv + bytes + 1;
    }
    return otherwise;
}

static uint64_t number_of(char **argv, const char *name, const char *otherwise)
{
    return bench_parse_number(value_of(argv, name, otherwise), 100000000);
}

int main(int argc, char **argv)
{
    const char *section = argc > 1 ? argv[1] : "";
    if (strcmp(section, "dispatch") == 0) {
        run_dispatch(number_of(argv, "queued", "100000"));
    } else if (strcmp(section, "rescore") == 0) {
        run_rescore(number_of(argv, "queued", "100000"));
    } else if (strcmp(section, "durable") == 0) {
        run_durable(value_of(argv, "folder", NULL));
    } else if (strcmp(section, "fairness") == 0) {
        uint64_t groups = number_of(argv, "groups", "10");
        if (groups == 0 || groups > GROUPS_MAX) bench_fail("groups: 1 to 1000");
        run_fairness((unsigned)groups, number_of(argv, "unequal", "0") != 0,
                     number_of(argv, "random", "0") != 0);
    } else if (strcmp(section, "claims") == 0) {
        run_claims();
    } else if (strcmp(section, "parked") == 0) {
        run_parked(number_of(argv, "timers", "1000000"));
    } else if (strcmp(section, "submit") == 0) {
        run_submit((unsigned)number_of(argv, "tasks", "10000"));
    } else {
        bench_fail("unknown section");
    }
    if (engine != NULL) bel_engine_close(engine);
    return 0;
}
