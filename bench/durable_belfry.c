/* SPDX-License-Identifier: MIT */

/* Belfry's engine: one turn per commit. The folder :memory: uses no disk, to measure the engine's
 * computation alone. */
#include "durable.h"

#include "belfry/clock.h"
#include "belfry/engine.h"

#include <string.h>
#include <unistd.h>

enum {
    REFUSED_US = 100, /* pause before a request that failed with BEL_EFULL is sent again */
};

const struct engine_traits engine_traits = {.name = "belfry"};

static struct bel_engine *engine;
static struct bel_backend *backend;
static bool ids;
static struct bel_request requests[DURABLE_BATCH_MAX];
static char names[DURABLE_BATCH_MAX][DURABLE_ID_BYTES];
static char token_text[DURABLE_BATCH_MAX][BEL_TOKEN_BYTES_MAX];
static struct bel_view tokens[DURABLE_BATCH_MAX];
static size_t tokens_count;
static size_t waiting; /* number of unanswered requests */
static bool was_refused;

static struct bel_now now(void)
{
    const struct bel_clock *clock = bel_clock_system();
    struct bel_now now = {.boot = bel_clock_boot(clock),
                          .wall = bel_clock_wall(clock),
                          .real = bel_clock_mono(clock)};
    now.boot.ns += (uint64_t)durable_ahead_ms * BENCH_MS;
    now.wall.ms += durable_ahead_ms;
    return now;
}

static void finish(void)
{
    while (waiting > 0) {
        (void)bel_backend_turn(backend, now());
        if (was_refused) (void)usleep(REFUSED_US);
        was_refused = false;
    }
}

static void submit(struct bel_request *request)
{
    waiting++;
    bel_backend_submit(backend, request);
}

void durable_open(const char *folder, bool has_ids)
{
    struct bel_engine_options options = {.folder = folder, .now = now()};
    if (strcmp(folder, ":memory:") == 0) options.folder = NULL;
    struct bel_engine_why why;
    if (bel_engine_open(&options, &engine, &why) != 0) bench_fail(why.text);
    backend = bel_engine_backend(engine);
    ids = has_ids;
}

void durable_close(void)
{
    bel_engine_close(engine);
}

void durable_load_begin(void)
{
}
void durable_load_end(void)
{
}

void durable_rest(void)
{
    (void)bel_backend_turn(backend, now());
}

static void scheduled(struct bel_request *request, const struct bel_reply *reply)
{
    if (reply->err == BEL_EFULL) {
        was_refused = true;
        durable_refusals++;
        bel_backend_submit(backend, request);
        return;
    }
    if (reply->err) bench_fail(reply->why);
    waiting--;
}

void durable_schedule(const struct durable_timer *timers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct bel_request *request = &requests[i];
        struct bel_schedule_spec spec = {
            .topic = {durable_topic, strlen(durable_topic)},
            .payload = {durable_payload, sizeof durable_payload},
        };
        if (timers[i].due_ms > 0) {
            spec.when = BEL_WHEN_AT;
            spec.at.ms = timers[i].due_ms;
        }
        if (ids) {
            durable_print_id(timers[i].number, names[i]);
            spec.id = (struct bel_view){names[i], sizeof names[i]};
        }
        request->command.verb = BEL_VERB_SCHEDULE;
        request->command.schedule = spec;
        request->done = scheduled;
        submit(request);
    }
    finish();
}

static void claimed(struct bel_request *request, const struct bel_reply *reply)
{
    (void)request;
    if (reply->err) bench_fail(reply->why);
    tokens_count = reply->deliveries.count;
    for (size_t i = 0; i < tokens_count; i++) {
        const struct bel_delivery *delivery = &reply->deliveries.items[i];
        if (delivery->payload.bytes != sizeof durable_payload) bench_fail("wrong payload");
        memcpy(token_text[i], delivery->token.data, delivery->token.bytes);
        tokens[i] = (struct bel_view){token_text[i], delivery->token.bytes};
    }
    waiting--;
}

size_t durable_claim(size_t count)
{
    static const struct bel_view topic = {durable_topic, 4};
    requests[0].command = (struct bel_command){
        .verb = BEL_VERB_CLAIM,
        .claim = {.topics = &topic, .topics_count = 1, .count = (uint32_t)count}};
    requests[0].command.claim.lease_ms = DURABLE_LEASE_MS;
    requests[0].done = claimed;
    submit(&requests[0]);
    finish();
    return tokens_count;
}

static void acked(struct bel_request *request, const struct bel_reply *reply)
{
    (void)request;
    if (reply->err) bench_fail(reply->why);
    if (reply->count != tokens_count) bench_fail("a lease expired during the benchmark");
    waiting--;
}

void durable_ack(void)
{
    requests[0].command = (struct bel_command){
        .verb = BEL_VERB_ACK, .ack = {.tokens = tokens, .tokens_count = tokens_count}};
    requests[0].done = acked;
    submit(&requests[0]);
    finish();
}
