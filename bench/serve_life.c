/* SPDX-License-Identifier: MIT */

/*
 * Lifecycles of timers, in an open loop: a timer is scheduled at every tick of the clock, whether
 * or not earlier requests were answered, due a second later. Workers claim and acknowledge it.
 *
 *     tick --schedule--> server --due, 1 s later--> worker: lateness = receipt - due --ack--> done
 *
 * If the server supports it, workers wait in a blocking claim. Otherwise they poll every
 * millisecond, and at once after a full batch. The due time is the tick plus one second, rounded up
 * to the server's resolution; the payload contains it.
 */
#include "serve.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    SCHEDULERS = 8,
    WAIT_S = 5,
    POLL_NS = 1000 * 1000,
    TURN_NS_MIN = 50 * 1000, /* ticks that are closer are sent together */
    GRACE_MS = 1000,         /* wait for late timers after the last is due */
    BACKLOG_BYTES = 1 << 20, /* requests buffered for a full socket; then sending pauses */
};

static struct {
    uint64_t began_ns, sent, total, scheduled, refused, done;
    int64_t wall_began_ns;
    uint64_t polled_ns;
    uint32_t batch;
    struct serve_samples late_us, accepted_us;
} life;

static uint32_t first_worker(void)
{
    return SCHEDULERS;
}

static void claim(struct serve_connection *worker)
{
    struct serve_request request = {.kind = SERVE_CLAIM, .count = life.batch};
    serve_protocol->put_claim(&worker->out, life.batch, serve_protocol->does_poll ? 0 : WAIT_S);
    serve_expect(worker, &request);
    worker->is_polling = true;
}

static void put_timer(struct serve_connection *connection, uint64_t index)
{
    char id[SERVE_ID_BYTES];
    uint64_t planned =
        (uint64_t)((double)index * (double)SERVE_SECOND_NS / (double)serve_settings.rate);
    int64_t due_ns = life.wall_began_ns + (int64_t)planned + SERVE_SECOND_NS;
    struct serve_timer timer = {.number = index, .due_ns = due_ns, .delay_ns = SERVE_SECOND_NS};
    if (serve_protocol->has_own_ids) timer.due_ns = (due_ns + BENCH_MS - 1) / BENCH_MS * BENCH_MS;
    if (serve_settings.has_ids || !serve_protocol->has_made_ids) {
        serve_print_id((uint64_t)life.wall_began_ns + index, id);
        timer.id = id;
    }
    serve_protocol->put_schedule(&connection->out, &timer);
    serve_expect(connection, &(struct serve_request){.kind = SERVE_SCHEDULE,
                                                     .count = 1,
                                                     .number = index,
                                                     .at_ns = life.began_ns + planned});
}

/* Sends the requests of all past ticks, as far as the sockets keep up. */
static void send_due(uint64_t now_ns)
{
    uint64_t ticks = (uint64_t)((double)(now_ns - life.began_ns) * (double)serve_settings.rate /
                                (double)SERVE_SECOND_NS) +
                     1;
    if (ticks > life.total) ticks = life.total;
    for (unsigned i = 0; life.sent < ticks && i < SCHEDULERS; i++) {
        uint64_t share = (ticks - life.sent + SCHEDULERS - i - 1) / (SCHEDULERS - i);
        struct serve_connection *connection = &serve_connections[i];
        if (connection->out.count > BACKLOG_BYTES) continue;
        for (uint64_t k = 0; k < share; k++) {
            put_timer(connection, life.sent++);
        }
        serve_flush(connection);
    }
}

static void poll_again(uint64_t now_ns)
{
    if (!serve_protocol->does_poll || now_ns - life.polled_ns < POLL_NS) return;
    life.polled_ns = now_ns;
    for (uint32_t i = first_worker(); i < serve_connections_count; i++) {
        if (serve_connections[i].is_polling) continue;
        claim(&serve_connections[i]);
        serve_flush(&serve_connections[i]);
    }
}

static void take_deliveries(struct serve_connection *worker, const struct serve_answer *answer)
{
    int64_t now_ns = serve_wall_ns();
    for (uint32_t i = 0; i < answer->count; i++) {
        int64_t late_ns = now_ns - serve_read_due(answer->deliveries[i].payload);
        serve_note(&life.late_us, late_ns > 0 ? (uint64_t)late_ns / BENCH_US : 0);
    }
    serve_protocol->put_ack(&worker->out, answer->deliveries, answer->count);
    serve_expect(worker, &(struct serve_request){.kind = SERVE_ACK, .count = answer->count});
}

static void on_answer(struct serve_connection *connection, const struct serve_request *request,
                      const struct serve_answer *answer)
{
    switch (request->kind) {
    case SERVE_SCHEDULE:
        life.scheduled += !answer->is_refused;
        life.refused += answer->is_refused;
        serve_note(&life.accepted_us, (serve_mono_ns() - request->at_ns) / BENCH_US);
        break;
    case SERVE_CLAIM:
        connection->is_polling = false;
        if (answer->count > 0) take_deliveries(connection, answer);
        if (!serve_protocol->does_poll || answer->count == request->count) claim(connection);
        break;
    default:
        life.done += answer->count;
    }
}

static uint64_t wait_ns(uint64_t now_ns)
{
    uint64_t next_ns = life.began_ns + (uint64_t)((double)life.sent * (double)SERVE_SECOND_NS /
                                                  (double)serve_settings.rate);
    if (life.sent == life.total) next_ns = now_ns + BENCH_MS;
    if (serve_protocol->does_poll && life.polled_ns + POLL_NS < next_ns) {
        next_ns = life.polled_ns + POLL_NS;
    }
    return next_ns > now_ns + TURN_NS_MIN ? next_ns - now_ns : TURN_NS_MIN;
}

static void report(double cpu_share)
{
    uint64_t lost = life.total - life.done;
    while (life.late_us.count < life.total) {
        serve_note(&life.late_us, UINT32_MAX);
    }
    serve_sort(&life.late_us);
    serve_sort(&life.accepted_us);
    serve_print_begin("life");
    serve_print_number("rate", (double)serve_settings.rate);
    serve_print_number("timers", (double)life.total);
    serve_print_number("undone", (double)lost);
    serve_print_number("refused", (double)life.refused);
    serve_print_number("late_p50_ms", serve_sample(&life.late_us, 0.5) / 1000);
    serve_print_number("late_p99_ms", serve_sample(&life.late_us, 0.99) / 1000);
    serve_print_number("late_max_ms", serve_sample(&life.late_us, 1) / 1000);
    serve_print_number("accepted_p50_ms", serve_sample(&life.accepted_us, 0.5) / 1000);
    serve_print_number("accepted_p99_ms", serve_sample(&life.accepted_us, 0.99) / 1000);
    serve_print_number("cpu_share", cpu_share);
    serve_print_end();
}

static void begin(void)
{
    struct serve_samples late_us = life.late_us, accepted_us = life.accepted_us;
    late_us.count = accepted_us.count = 0;
    memset(&life, 0, sizeof life);
    life.late_us = late_us;
    life.accepted_us = accepted_us;
    life.batch = serve_protocol->batch;
    life.total = serve_settings.rate * serve_settings.tenths / 10;
    life.wall_began_ns = serve_wall_ns();
    life.began_ns = serve_mono_ns();
    for (uint32_t i = first_worker(); i < serve_connections_count; i++) {
        if (serve_connections[i].is_polling) continue;
        claim(&serve_connections[i]);
        serve_flush(&serve_connections[i]);
    }
}

void serve_live(void)
{
    uint64_t second_ns = (uint64_t)SERVE_SECOND_NS, cpu_ns = 0, cpu_at_ns = 0;
    serve_connect_all(SCHEDULERS + serve_protocol->workers);
    begin();
    uint64_t arrivals_end_ns = life.began_ns + serve_settings.tenths * second_ns / 10;
    uint64_t end_ns = arrivals_end_ns + second_ns + (uint64_t)GRACE_MS * BENCH_MS;
    uint64_t now_ns = life.began_ns;
    double cpu_share = 0;
    while (life.done + life.refused < life.total && now_ns < end_ns) {
        send_due(now_ns);
        poll_again(now_ns);
        serve_turn(wait_ns(now_ns), on_answer);
        now_ns = serve_mono_ns();
        if (cpu_at_ns == 0 && now_ns - life.began_ns > second_ns) { /* the first timers are due */
            cpu_ns = serve_server_cpu_ns();
            cpu_at_ns = now_ns;
        }
        if (cpu_share == 0 && cpu_at_ns > 0 && now_ns >= arrivals_end_ns && now_ns > cpu_at_ns) {
            cpu_share = (double)(serve_server_cpu_ns() - cpu_ns) / (double)(now_ns - cpu_at_ns);
        }
    }
    report(cpu_share);
}
