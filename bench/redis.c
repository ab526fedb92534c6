/* SPDX-License-Identifier: MIT */

/*
 * Timers on a Redis server: the backend in src/redis beside recipes, all over the same connections
 * in C (src/redis/link). One section per run:
 *
 *     redis schedule mode=M count=N   schedules per second
 *         bare       ZADD and HSET, 64 pairs in flight
 *         recipe     the same in MULTI and EXEC, as faststream-redis-timers does
 *         single     the backend, 64 requests in flight; the node groups those that wait
 *         apart      the same, each in a topic of its own: one per call of a script
 *         grouped    the backend, 100 per call, 4 calls in flight
 *     redis claim mode=M count=N      claims and acknowledgements per second
 *         recipe     that package: ZRANGEBYSCORE, then its two scripts for each, without its pauses
 *         hand       a script that claims 100 without tokens, then ZREM and HDEL; 4 in flight
 *         single     the backend, one by one
 *         batch      the backend, 100 at a time, 4 in flight
 *     redis late mode=M count=N       how late deliveries to an idle worker are
 *         recipe     polls from 50 ms doubling to 5 s, as that package does
 *         wait       a waiting claim of the backend
 *     redis lives nodes=K count=N     lifecycles, by K nodes in turn
 *     redis idle topics=N seconds=S nodes=K   nodes that wait for timers of tomorrow
 *
 * `path` is the socket of the server, or `port` its port on loopback; `space` the prefix of all
 * keys. Prints one line of JSON.
 */
#include "redis.h"

#include "belfry/clock.h"
#include "harness.h"
#include "redis/redis.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    GROUPED_MAX = BENCH_LANES * BENCH_BATCH,
    NODES_MAX = 2,
    LATE_GAP_MS = 100, /* from the schedule of a timer to its due, at least */
    SAMPLES_MAX = 2000,
};

const struct engine_traits engine_traits = {.name = "redis"};

const char *bench_path, *bench_space;
uint16_t bench_port;
char bench_payload[BENCH_PAYLOAD_BYTES];

double bench_now_s(void)
{
    return (double)bel_clock_mono(bel_clock_system()).ns / 1e9;
}

double bench_wall_ms(void)
{
    struct timespec time;
    (void)clock_gettime(CLOCK_REALTIME, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

struct bel_view bench_view(const char *text)
{
    return (struct bel_view){text, strlen(text)};
}

void bench_make_id(char id[BENCH_ID_BYTES + 1], uint64_t number)
{
    (void)snprintf(id, BENCH_ID_BYTES + 1, "%08x-7c2e-4a5b-9f10-%012" PRIx64,
                   (unsigned)(number * 2654435761U), number);
}

/* --- the backend --- */

static struct bel_redis *nodes[NODES_MAX];
static size_t nodes_count;
static size_t asked;     /* requests without a reply */
static uint64_t replied; /* so far */

static struct bel_now now(void)
{
    return bel_clock_now(bel_clock_system());
}

static void close_nodes(void)
{
    for (size_t i = 0; i < nodes_count; i++) {
        bel__redis_close(nodes[i]);
    }
}

/* Takes a turn of every node. If there was no reply, sleeps until one of them needs another, at
 * most `ms`. */
static void turn(int ms)
{
    struct pollfd fds[NODES_MAX];
    uint64_t first_ns = UINT64_MAX, before = replied;
    struct bel_now at = now();
    for (size_t i = 0; i < nodes_count; i++) {
        struct bel_backend *backend = bel__redis_backend(nodes[i]);
        struct bel_next next = bel_backend_turn(backend, at);
        uint64_t due_ns = next.due.ns > at.boot.ns ? next.due.ns - at.boot.ns : 0;
        uint64_t wait_ns = next.wait.ns > at.real.ns ? next.wait.ns - at.real.ns : 0;
        if (due_ns < first_ns) first_ns = due_ns;
        if (wait_ns < first_ns) first_ns = wait_ns;
        fds[i] = (struct pollfd){.fd = bel_backend_descriptor(backend), .events = POLLIN};
    }
    uint64_t left_ms = (first_ns + 999999) / 1000000;
    if (ms > 0 && replied == before)
        (void)poll(fds, nodes_count, left_ms < (uint64_t)ms ? (int)left_ms : ms);
}

static void refuse(const struct bel_reply *reply)
{
    replied++;
    if (reply->err != 0) bench_fail(reply->why[0] != 0 ? reply->why : bel_error_text(reply->err));
}

static void forgotten(struct bel_request *request, const struct bel_reply *reply)
{
    (void)request;
    refuse(reply);
    asked--;
}

static void open_nodes(size_t count)
{
    if (count == 0 || count > NODES_MAX) bench_fail("nodes: 1 or 2");
    for (size_t i = 0; i < count; i++) {
        struct bel_redis_options options = {.servers = {.path = bench_path, .call_ms = 60000}};
        if (bench_port != 0) {
            options.servers.hosts[0] = (struct bel_redis_host){"127.0.0.1", bench_port};
            options.servers.hosts_count = 1;
        }
        (void)snprintf(options.name_space, sizeof options.name_space, "%s", bench_space);
        if (bel__redis_open(&options, now(), &nodes[i]) != 0) bench_fail("no node");
    }
    nodes_count = count;
    for (size_t i = 0; i < count; i++) { /* connects, and loads the scripts */
        struct bel_request request = {.done = forgotten};
        request.command.verb = BEL_VERB_TOPICS;
        asked++;
        bel_backend_submit(bel__redis_backend(nodes[i]), &request);
        while (asked > 0) {
            turn(1000);
        }
    }
}

struct scheduling {
    struct bel_request request; /* first */
    char id[BENCH_ID_BYTES + 1];
    bool is_free;
};

static void scheduled(struct bel_request *request, const struct bel_reply *reply)
{
    refuse(reply);
    ((struct scheduling *)request)->is_free = true;
    asked--;
}

static void submit_schedule(struct scheduling *slot, const char *topic, uint64_t number,
                            int64_t at_ms)
{
    bench_make_id(slot->id, number);
    slot->is_free = false;
    slot->request = (struct bel_request){.done = scheduled};
    slot->request.command.verb = BEL_VERB_SCHEDULE;
    slot->request.command.schedule =
        (struct bel_schedule_spec){.topic = bench_view(topic),
                                   .id = {slot->id, BENCH_ID_BYTES},
                                   .payload = {bench_payload, sizeof bench_payload},
                                   .when = BEL_WHEN_AT,
                                   .at = {at_ms}};
    asked++;
    bel_backend_submit(bel__redis_backend(nodes[number / BENCH_BATCH % nodes_count]),
                       &slot->request);
}

/* Schedules timers, `group` in each turn, at most `window` at once, each of these in one topic or
 * in one of its own. Returns them per second. */
static double own_schedule(uint64_t count, size_t group, size_t window, bool is_apart,
                           int64_t at_ms)
{
    static struct scheduling slots[GROUPED_MAX];
    static char topics[GROUPED_MAX][16];
    uint64_t next = 0;
    size_t slot = 0;
    for (size_t i = 0; i < window; i++) {
        slots[i].is_free = true;
        (void)snprintf(topics[i], sizeof topics[i], "bench%.0zu", is_apart ? i : 0);
    }
    double start = bench_now_s();
    while (next < count || asked > 0) {
        bool has_room = asked + group <= window && next < count;
        for (size_t i = 0; has_room && i < group && next < count; i++) {
            while (!slots[slot].is_free) {
                slot = (slot + 1) % window;
            }
            submit_schedule(&slots[slot], topics[slot], next++, at_ms);
        }
        turn(asked + group <= window && next < count ? 0 : 1000);
    }
    return (double)count / (bench_now_s() - start);
}

/* A worker: a claim, then its acknowledgement, and so on until nothing is left. */
struct worker {
    struct bel_request request; /* first */
    struct bel_backend *backend;
    uint32_t count;
    uint64_t *claimed;
    char bytes[BENCH_BATCH][BEL_TOKEN_BYTES_MAX];
    struct bel_view tokens[BENCH_BATCH], topic;
};

static void worker_claim(struct worker *worker);

static void acked(struct bel_request *request, const struct bel_reply *reply)
{
    refuse(reply);
    asked--;
    worker_claim((struct worker *)request);
}

static void claimed(struct bel_request *request, const struct bel_reply *reply)
{
    struct worker *worker = (struct worker *)request;
    size_t count = reply->deliveries.count;
    refuse(reply);
    asked--;
    if (count == 0) return;
    for (size_t i = 0; i < count; i++) {
        struct bel_view token = reply->deliveries.items[i].token;
        memcpy(worker->bytes[i], token.data, token.bytes);
        worker->tokens[i] = (struct bel_view){worker->bytes[i], token.bytes};
    }
    *worker->claimed += count;
    worker->request = (struct bel_request){.done = acked};
    worker->request.command.verb = BEL_VERB_ACK;
    worker->request.command.ack = (struct bel_ack){.tokens = worker->tokens, .tokens_count = count};
    asked++;
    bel_backend_submit(worker->backend, &worker->request);
}

static void worker_claim(struct worker *worker)
{
    worker->topic = bench_view("bench");
    worker->request = (struct bel_request){.done = claimed};
    worker->request.command.verb = BEL_VERB_CLAIM;
    worker->request.command.claim = (struct bel_claim){.topics = &worker->topic,
                                                       .topics_count = 1,
                                                       .count = worker->count,
                                                       .lease_ms = BENCH_LEASE_MS};
    asked++;
    bel_backend_submit(worker->backend, &worker->request);
}

/* Returns claims and acknowledgements per second. */
static double own_claim(uint64_t count, uint32_t batch, size_t lanes)
{
    static struct worker workers[BENCH_LANES];
    uint64_t done = 0;
    double start = bench_now_s();
    for (size_t i = 0; i < lanes; i++) {
        workers[i].backend = bel__redis_backend(nodes[i % nodes_count]);
        workers[i].count = batch;
        workers[i].claimed = &done;
        worker_claim(&workers[i]);
    }
    while (asked > 0) {
        turn(1000);
    }
    if (done != count) bench_fail("not every timer was claimed once");
    return (double)count / (bench_now_s() - start);
}

/* --- lateness --- */

static double samples[SAMPLES_MAX];
static size_t samples_count;

void bench_sample(double ms)
{
    if (samples_count < SAMPLES_MAX) samples[samples_count++] = ms;
}

static int compare(const void *left, const void *right)
{
    const double *a = left, *b = right;
    return (*a > *b) - (*a < *b);
}

static double share_of(double share)
{
    qsort(samples, samples_count, sizeof samples[0], compare);
    return samples_count == 0 ? 0 : samples[(size_t)((double)(samples_count - 1) * share)];
}

static bool has_delivery;
static struct bel_view late_token;
static char late_bytes[BEL_TOKEN_BYTES_MAX];

static void delivered(struct bel_request *request, const struct bel_reply *reply)
{
    (void)request;
    refuse(reply);
    has_delivery = reply->deliveries.count > 0;
    if (!has_delivery) return;
    const struct bel_delivery *delivery = &reply->deliveries.items[0];
    bench_sample(bench_wall_ms() - (double)delivery->due.ms);
    memcpy(late_bytes, delivery->token.data, delivery->token.bytes);
    late_token = (struct bel_view){late_bytes, delivery->token.bytes};
}

static void late_wait(size_t count)
{
    static struct scheduling slot;
    struct bel_backend *backend;
    open_nodes(1);
    backend = bel__redis_backend(nodes[0]);
    for (size_t i = 0; i < count; i++) {
        struct bel_view topic = bench_view("bench");
        struct bel_request claim = {.done = delivered};
        claim.command.verb = BEL_VERB_CLAIM;
        claim.command.claim =
            (struct bel_claim){.topics = &topic, .topics_count = 1, .wait_ms = 60000};
        submit_schedule(&slot, "bench", i,
                        (int64_t)bench_wall_ms() + LATE_GAP_MS + (int64_t)i % 97);
        bel_backend_submit(backend, &claim);
        for (has_delivery = false; !has_delivery;) {
            turn(1000);
        }
        struct bel_request ack = {.done = forgotten};
        ack.command.verb = BEL_VERB_ACK;
        ack.command.ack = (struct bel_ack){.tokens = &late_token, .tokens_count = 1};
        asked++;
        bel_backend_submit(backend, &ack);
        while (asked > 0) {
            turn(1000);
        }
    }
    close_nodes();
}

/* --- sections --- */

static const char *value_of(char **argv, const char *name, const char *otherwise)
{
    size_t bytes = strlen(name);
    for (char **at = argv; *at != NULL; at++) {
        if (strncmp(*at, name, bytes) == 0 && (*at)[bytes] == '=') return *at + bytes + 1;
    }
    if (otherwise == NULL) bench_fail(name);
    return otherwise;
}

static uint64_t number_of(char **argv, const char *name, const char *otherwise)
{
    return bench_parse_number(value_of(argv, name, otherwise), BENCH_TIMERS_MAX);
}

static double run_schedule(const char *mode, uint64_t count)
{
    double tomorrow_ms = bench_wall_ms() + 86400e3, rate;
    if (strcmp(mode, "bare") == 0 || strcmp(mode, "recipe") == 0) {
        bench_recipes_open();
        rate = bench_recipe_schedule(count, mode[0] == 'r', tomorrow_ms / 1e3);
        bench_recipes_close();
        return rate;
    }
    bool is_grouped = strcmp(mode, "grouped") == 0;
    open_nodes(1);
    rate = own_schedule(count, is_grouped ? BENCH_BATCH : 1,
                        is_grouped ? GROUPED_MAX : BENCH_IN_FLIGHT, strcmp(mode, "apart") == 0,
                        (int64_t)tomorrow_ms);
    close_nodes();
    return rate;
}

static double run_claim(const char *mode, uint64_t count)
{
    double rate;
    if (strcmp(mode, "recipe") == 0 || strcmp(mode, "hand") == 0) {
        bench_recipes_open();
        rate = bench_recipe_claim(count, mode[0] == 'h');
        bench_recipes_close();
        return rate;
    }
    bool is_batch = strcmp(mode, "batch") == 0;
    open_nodes(1);
    (void)own_schedule(count, BENCH_BATCH, GROUPED_MAX, false, (int64_t)bench_wall_ms() - 60000);
    rate = own_claim(count, is_batch ? BENCH_BATCH : 1, is_batch ? BENCH_LANES : 1);
    close_nodes();
    return rate;
}

static void run_late(const char *mode, size_t count)
{
    if (count > SAMPLES_MAX) bench_fail("count: at most 2000");
    if (strcmp(mode, "recipe") == 0) {
        bench_recipes_open();
        bench_recipe_late(count);
        bench_recipes_close();
    } else {
        late_wait(count);
    }
    printf("\"p50_ms\": %.3f, \"p99_ms\": %.3f, \"max_ms\": %.3f", share_of(0.5), share_of(0.99),
           share_of(1));
}

static double run_lives(size_t count_of_nodes, uint64_t count)
{
    open_nodes(count_of_nodes);
    double start = bench_now_s();
    (void)own_schedule(count, BENCH_BATCH, GROUPED_MAX, false, (int64_t)bench_wall_ms() - 60000);
    (void)own_claim(count, BENCH_BATCH, BENCH_LANES);
    double rate = (double)count / (bench_now_s() - start);
    close_nodes();
    return rate;
}

static void run_idle(size_t topics, double length, size_t count_of_nodes)
{
    static struct scheduling slot;
    char topic[32];
    open_nodes(count_of_nodes);
    for (size_t i = 0; i < topics; i++) {
        (void)snprintf(topic, sizeof topic, "topic%zu", i);
        submit_schedule(&slot, topic, i, (int64_t)bench_wall_ms() + 86400000);
        while (asked > 0) {
            turn(1000);
        }
    }
    double settled = bench_now_s() + 2; /* what has been woken settles */
    while (bench_now_s() < settled) {
        turn(100);
    }
    (void)printf("\"begins\": true}\n");
    (void)fflush(stdout); /* now the caller counts the commands of the server */
    double ends = bench_now_s() + length;
    while (bench_now_s() < ends) {
        turn(1000);
    }
    (void)printf("{\"ends\": true}\n");
    (void)fflush(stdout);
    (void)getchar(); /* until the caller has counted */
    close_nodes();
    exit(0);
}

int main(int argc, char **argv)
{
    const char *section = argc > 1 ? argv[1] : "";
    const char *mode = value_of(argv, "mode", "");
    uint64_t count = number_of(argv, "count", "10000");
    bench_port = (uint16_t)number_of(argv, "port", "0");
    bench_path = bench_port == 0 ? value_of(argv, "path", NULL) : NULL;
    bench_space = value_of(argv, "space", "bench");
    memset(bench_payload, 'x', sizeof bench_payload);
    printf("{\"section\": \"%s\", \"mode\": \"%s\", ", section, mode);
    if (strcmp(section, "schedule") == 0) {
        printf("\"per_second\": %.0f", run_schedule(mode, count));
    } else if (strcmp(section, "claim") == 0) {
        printf("\"per_second\": %.0f", run_claim(mode, count));
    } else if (strcmp(section, "late") == 0) {
        run_late(mode, (size_t)count);
    } else if (strcmp(section, "lives") == 0) {
        printf("\"per_second\": %.0f", run_lives(number_of(argv, "nodes", "1"), count));
    } else if (strcmp(section, "idle") == 0) {
        run_idle(number_of(argv, "topics", "1000"), (double)number_of(argv, "seconds", "10"),
                 number_of(argv, "nodes", "1"));
    } else {
        bench_fail("unknown section");
    }
    printf("}\n");
    return 0;
}
