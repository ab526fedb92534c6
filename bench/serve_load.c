/* SPDX-License-Identifier: MIT */

/*
 * Measures a timer server. Runs the steps of the command line in turn:
 *
 *     serve_load redis port=7000 connections=50 pipeline=16 timers=100000 fill batch=100 drain
 *
 *     schedule  schedules for `tenths` of a second, due at random in the 30 days after tomorrow,
 *               on `connections` that each send `pipeline` requests and wait for all replies
 *     fill      schedules `timers`, due now; after the word `later`, due as in schedule
 *     cancel    cancels the timers of the last fill, with the same connections and pipeline
 *     drain     claims and acknowledges `batch` timers at a time until none is left
 *     first     waits until the server accepts connections and a claim succeeds; prints the time
 *     life      schedules `rate` timers per second by the clock, due in a second; see serve_life.c
 *     gather    opens `idle` and `slow` connections besides; `disperse` closes them
 *
 * Each step prints a line of JSON, except gather and disperse. `ids`: the client chooses ids, even
 * if the server could. `pid=`: process id of the server, to measure its CPU time. An error reply, a
 * reply that is late by ten seconds, or a wrong count ends the program.
 */
#include "serve.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
    SAMPLES_MAX = 1 << 24,
    PATIENCE_S = 10,
    PERIOD_DAYS = 30,
    RETRY_US = 500,
};

#define DAY_NS (86400 * SERVE_SECOND_NS)

const struct engine_traits engine_traits = {.name = "serve_load"};
struct serve_settings serve_settings = {
    .connections = 1, .pipeline = 1, .batch = 1, .timers = 100000, .tenths = 10, .rate = 1000};

struct made_id {
    char text[SERVE_ID_BYTES_MAX];
    uint8_t bytes;
};

/* State of the current step. */
static struct {
    enum serve_kind kind;
    uint64_t asked, answered, limit;
    uint64_t refused, empty;
    uint64_t began_ns, end_ns, cpu_began_ns;
    uint64_t claimed;
    bool is_later;
} run;

static struct serve_samples latency;
static struct bench_random random_state = {.state = 1};
static uint64_t number_next, fill_first;
static struct made_id *made; /* ids of the fill, by number from fill_first */

/* --- shared by the steps --- */

void serve_note(struct serve_samples *samples, uint64_t value)
{
    if (samples->items == NULL) {
        samples->items = malloc(SAMPLES_MAX * sizeof *samples->items); /* touched as used */
        if (samples->items == NULL) bench_fail("out of memory");
        samples->room = SAMPLES_MAX;
    }
    if (samples->count == samples->room) return;
    samples->items[samples->count++] = value < UINT32_MAX ? (uint32_t)value : UINT32_MAX;
}

static int compare(const void *a, const void *b)
{
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    return (left > right) - (left < right);
}

void serve_sort(struct serve_samples *samples)
{
    if (samples->count > 0) qsort(samples->items, samples->count, sizeof(uint32_t), compare);
}

double serve_sample(const struct serve_samples *samples, double share)
{
    if (samples->count == 0) return 0;
    return samples->items[(size_t)(share * (double)(samples->count - 1))];
}

uint64_t serve_server_cpu_ns(void)
{
    char path[64], text[1024];
    unsigned long user, system;
    if (serve_settings.pid == 0) return 0;
    (void)snprintf(path, sizeof path, "/proc/%llu/stat", (unsigned long long)serve_settings.pid);
    FILE *file = fopen(path, "r");
    if (file == NULL) bench_fail("cannot open /proc/PID/stat: no such process");
    size_t bytes = fread(text, 1, sizeof text - 1, file);
    (void)fclose(file);
    text[bytes] = 0;
    const char *at = strrchr(text, ')'); /* the name before it may contain anything */
    if (at == NULL ||
        sscanf(at, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system) != 2) {
        bench_fail("cannot read /proc/PID/stat");
    }
    uint64_t tick_ns = (uint64_t)SERVE_SECOND_NS / (uint64_t)sysconf(_SC_CLK_TCK);
    return (user + system) * tick_ns;
}

void serve_print_begin(const char *step)
{
    (void)printf("{\"server\": \"%s\", \"step\": \"%s\"", serve_protocol->name, step);
}

void serve_print_number(const char *name, double value)
{
    (void)printf(", \"%s\": %.3f", name, value);
}

void serve_print_end(void)
{
    (void)printf("}\n");
    (void)fflush(stdout);
}

/* --- requests --- */

static void take_turns_until_idle(serve_answered_fn *answered)
{
    for (;;) {
        bool is_idle = true;
        for (uint32_t i = 0; i < serve_connections_count && is_idle; i++) {
            is_idle = serve_connections[i].waiting == 0;
        }
        if (is_idle) return;
        uint64_t before = run.answered + run.refused + run.empty, began = serve_mono_ns();
        do {
            uint64_t tick = serve_settings.slow > 0 ? BENCH_MS : (uint64_t)SERVE_SECOND_NS;
            serve_turn(tick, answered);
            serve_crowd_go(serve_mono_ns());
            if (run.answered + run.refused + run.empty != before) break;
        } while (serve_mono_ns() - began < (uint64_t)PATIENCE_S * (uint64_t)SERVE_SECOND_NS);
        if (run.answered + run.refused + run.empty == before)
            bench_fail("timeout waiting for a reply");
    }
}

static void on_setup(struct serve_connection *connection, const struct serve_request *request,
                     const struct serve_answer *answer)
{
    (void)connection;
    (void)request;
    if (answer->is_refused) {
        run.refused++;
    } else {
        run.answered++;
    }
}

/* Sends the setup request of the protocol, if it has one. Returns false if the server is not
 * ready. */
static bool set_up(void)
{
    struct serve_connection *connection = &serve_connections[0];
    if (serve_protocol->put_setup == NULL) return true;
    uint64_t before = run.answered;
    serve_protocol->put_setup(&connection->out);
    serve_expect(connection, &(struct serve_request){.kind = SERVE_SETUP, .count = 1});
    serve_flush(connection);
    take_turns_until_idle(on_setup);
    return run.answered > before;
}

void serve_connect_all(uint32_t count)
{
    static bool is_set_up;
    serve_connect((uint16_t)serve_settings.port, count);
    if (!is_set_up && !set_up()) bench_fail("the server is not ready");
    is_set_up = true;
}

static struct serve_timer timer_of(uint64_t number, char id[SERVE_ID_BYTES])
{
    struct serve_timer timer = {.number = number, .due_ns = serve_wall_ns()};
    if (run.is_later) {
        uint64_t spread = bench_random_next(&random_state) % (PERIOD_DAYS * (uint64_t)DAY_NS);
        timer.delay_ns = DAY_NS + (int64_t)spread;
        timer.due_ns += timer.delay_ns;
    }
    if (serve_settings.has_ids || !serve_protocol->has_made_ids) {
        serve_print_id(number, id);
        timer.id = id;
    }
    return timer;
}

static void put_schedule(struct serve_connection *connection, uint64_t number)
{
    char id[SERVE_ID_BYTES];
    struct serve_timer timer = timer_of(number, id);
    serve_protocol->put_schedule(&connection->out, &timer);
}

static void put_cancel(struct serve_connection *connection, uint64_t number)
{
    char id[SERVE_ID_BYTES];
    if (serve_settings.has_ids || !serve_protocol->has_made_ids) {
        serve_print_id(number, id);
        serve_protocol->put_cancel(&connection->out, id, SERVE_ID_BYTES);
    } else {
        const struct made_id *known = &made[number - fill_first];
        serve_protocol->put_cancel(&connection->out, known->text, known->bytes);
    }
}

static void ask(struct serve_connection *connection, uint64_t number, uint64_t now_ns)
{
    struct serve_request request = {
        .kind = run.kind, .count = 1, .number = number, .at_ns = now_ns};
    if (run.kind == SERVE_SCHEDULE) {
        put_schedule(connection, number);
    } else {
        put_cancel(connection, number);
    }
    serve_expect(connection, &request);
}

static void ask_window(struct serve_connection *connection)
{
    uint64_t now_ns = serve_mono_ns();
    if (now_ns >= run.end_ns) return;
    for (uint64_t i = 0; i < serve_settings.pipeline && run.asked < run.limit; i++) {
        uint64_t first = run.kind == SERVE_CANCEL ? fill_first : number_next;
        ask(connection, first + run.asked++, now_ns);
    }
}

static void keep_id(const struct serve_request *request, const struct serve_answer *answer)
{
    struct made_id *known = &made[request->number - fill_first];
    if (answer->id_bytes > SERVE_ID_BYTES_MAX) bench_fail("an id in a reply is too long");
    memcpy(known->text, answer->id, answer->id_bytes);
    known->bytes = (uint8_t)answer->id_bytes;
}

/* Handles a reply to a schedule or a cancel. */
static void on_answer(struct serve_connection *connection, const struct serve_request *request,
                      const struct serve_answer *answer)
{
    uint64_t now_ns = serve_mono_ns();
    if (answer->is_refused) {
        run.refused++;
        ask(connection, request->number, now_ns);
        return;
    }
    if (request->kind == SERVE_CANCEL && answer->count != 1) bench_fail("no timer to cancel");
    if (made != NULL && request->kind == SERVE_SCHEDULE) keep_id(request, answer);
    if (now_ns < run.end_ns) {
        run.answered++;
        serve_note(&latency, now_ns - request->at_ns);
    } else {
        run.empty++; /* too late to count */
    }
    if (connection->waiting == 0) ask_window(connection);
}

static void begin(enum serve_kind kind, uint64_t limit, uint64_t tenths)
{
    serve_connect_all((uint32_t)serve_settings.connections);
    memset(&run, 0, sizeof run);
    run.kind = kind;
    run.limit = limit;
    latency.count = 0;
    run.cpu_began_ns = serve_server_cpu_ns();
    run.began_ns = serve_mono_ns();
    run.end_ns = tenths > 0 ? run.began_ns + tenths * (uint64_t)SERVE_SECOND_NS / 10 : UINT64_MAX;
}

static void report(const char *step, uint64_t done)
{
    uint64_t now_ns = serve_mono_ns();
    uint64_t spent_ns = (now_ns < run.end_ns ? now_ns : run.end_ns) - run.began_ns;
    serve_sort(&latency);
    serve_print_begin(step);
    serve_print_number("connections", (double)serve_settings.connections);
    serve_print_number("pipeline", (double)serve_settings.pipeline);
    serve_print_number("batch", (double)serve_settings.batch);
    serve_print_number("rate", (double)done / ((double)spent_ns / (double)SERVE_SECOND_NS));
    serve_print_number("p50_us", serve_sample(&latency, 0.5) / BENCH_US);
    serve_print_number("p99_us", serve_sample(&latency, 0.99) / BENCH_US);
    serve_print_number("max_us", serve_sample(&latency, 1) / BENCH_US);
    serve_print_number("refused", (double)run.refused);
    serve_print_number("cpu_us", (double)(serve_server_cpu_ns() - run.cpu_began_ns) / BENCH_US /
                                     (double)(done + 1));
    serve_print_end();
}

static void run_windows(serve_answered_fn *answered)
{
    for (uint32_t i = 0; i < serve_connections_count; i++) {
        ask_window(&serve_connections[i]);
        serve_flush(&serve_connections[i]);
    }
    take_turns_until_idle(answered);
}

/* --- steps --- */

static void schedule(void)
{
    begin(SERVE_SCHEDULE, UINT64_MAX, serve_settings.tenths);
    run.is_later = true;
    free(made);
    made = NULL;
    run_windows(on_answer);
    number_next += run.asked;
    report("schedule", run.answered);
}

static void fill(void)
{
    free(made);
    made = NULL;
    if (serve_protocol->has_made_ids && !serve_settings.has_ids) {
        made = bench_alloc(serve_settings.timers, sizeof *made);
    }
    fill_first = number_next;
    begin(SERVE_SCHEDULE, serve_settings.timers, 0);
    run.is_later = serve_settings.is_later;
    run_windows(on_answer);
    number_next += run.asked;
    report("fill", run.answered);
}

static void cancel(void)
{
    begin(SERVE_CANCEL, number_next - fill_first, 0);
    run_windows(on_answer);
    report("cancel", run.answered);
}

static void claim(struct serve_connection *connection)
{
    struct serve_request request = {
        .kind = SERVE_CLAIM, .count = (uint32_t)serve_settings.batch, .at_ns = serve_mono_ns()};
    serve_protocol->put_claim(&connection->out, request.count, 0);
    serve_expect(connection, &request);
}

static void on_drained(struct serve_connection *connection, const struct serve_request *request,
                       const struct serve_answer *answer)
{
    if (request->kind == SERVE_ACK) {
        if (answer->count != request->count) bench_fail("not all timers were acknowledged");
        run.answered += answer->count;
        serve_note(&latency, serve_mono_ns() - request->at_ns);
    } else if (answer->count > 0) {
        struct serve_request ack = {
            .kind = SERVE_ACK, .count = answer->count, .at_ns = request->at_ns};
        run.claimed += answer->count;
        serve_protocol->put_ack(&connection->out, answer->deliveries, answer->count);
        serve_expect(connection, &ack);
        return;
    } else {
        run.empty++;
    }
    if (run.claimed < run.limit) claim(connection);
}

static void drain(void)
{
    begin(SERVE_CLAIM, number_next - fill_first, 0);
    for (uint32_t i = 0; i < serve_connections_count; i++) {
        claim(&serve_connections[i]);
        serve_flush(&serve_connections[i]);
    }
    take_turns_until_idle(on_drained);
    if (run.answered != run.limit) bench_fail("claimed more timers than were scheduled");
    report("drain", run.answered);
}

/* Waits until a starting server has answered a claim with a timer. */
static void first(void)
{
    int fd;
    while ((fd = serve_dial((uint16_t)serve_settings.port, 0)) < 0) {
        (void)usleep(RETRY_US);
    }
    (void)close(fd);
    serve_connect((uint16_t)serve_settings.port, 1);
    while (!set_up()) {
        (void)usleep(RETRY_US);
    }
    memset(&run, 0, sizeof run);
    while (run.answered == 0) {
        run.limit = 0;
        claim(&serve_connections[0]);
        serve_flush(&serve_connections[0]);
        take_turns_until_idle(on_drained);
        if (run.answered == 0) (void)usleep(RETRY_US);
    }
    serve_print_begin("first");
    serve_print_number("at_ns", (double)serve_mono_ns());
    serve_print_end();
}

/* --- the command line --- */

static bool set(const char *word)
{
    struct serve_settings *s = &serve_settings;
    const struct {
        const char *name;
        uint64_t *value, max;
    } names[] = {
        {"port=", &s->port, 65535},
        {"pid=", &s->pid, INT32_MAX},
        {"connections=", &s->connections, 10000},
        {"pipeline=", &s->pipeline, 10000},
        {"batch=", &s->batch, SERVE_BATCH_MAX},
        {"timers=", &s->timers, 100000000},
        {"tenths=", &s->tenths, 36000},
        {"rate=", &s->rate, 10000000},
        {"idle=", &s->idle, 1000000},
        {"slow=", &s->slow, 1000000},
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        size_t bytes = strlen(names[i].name);
        if (strncmp(word, names[i].name, bytes) != 0) continue;
        *names[i].value = bench_parse_number(word + bytes, names[i].max);
        return true;
    }
    if (strcmp(word, "ids") == 0) {
        s->has_ids = serve_protocol->has_own_ids;
    } else if (strcmp(word, "later") == 0 || strcmp(word, "now") == 0) {
        s->is_later = word[0] == 'l';
    } else {
        return false;
    }
    return true;
}

static void run_step(const char *name)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } steps[] = {
        {"schedule", schedule},
        {"fill", fill},
        {"cancel", cancel},
        {"drain", drain},
        {"first", first},
        {"life", serve_live},
        {"gather", serve_crowd_gather},
        {"disperse", serve_crowd_disperse},
    };
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        if (strcmp(name, steps[i].name) != 0) continue;
        steps[i].run();
        return;
    }
    bench_fail("unknown step");
}

static void choose_protocol(const char *name)
{
    const struct serve_protocol *all[] = {&serve_belfry, &serve_redis, &serve_beanstalkd};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (strcmp(all[i]->name, name) == 0) serve_protocol = all[i];
    }
    if (serve_protocol == NULL) bench_fail("unknown server");
}

int main(int argc, char **argv)
{
    struct rlimit files;
    if (argc < 2) bench_fail("usage: serve_load SERVER [NAME=VALUE | STEP] ...");
    choose_protocol(argv[1]);
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &files);
    }
    random_state.state = serve_mono_ns();
    number_next = serve_mono_ns(); /* above the numbers of earlier processes */
    for (int i = 2; i < argc; i++) {
        if (!set(argv[i])) run_step(argv[i]);
    }
    return 0;
}
