/* SPDX-License-Identifier: MIT */

/*
 * The HTTP server over sockets, under a clock that the test moves: deadlines, the limit of
 * connections, clients that send no more, and the work of a run.
 */
#include "http/http.h"

#include "belfry/engine.h"
#include "core/units.h"
#include "session/wrong_keys.h"

#include "../check.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    CONNECTIONS_MAX = 4,
    READERS = 20, /* of long answers, all at once */
    RUNNING = 16, /* of these: the first answers of some end before */
    ANSWERS = 30, /* of each, more than they read */
    BUSY_RUNS = 24,
    ANSWER_BYTES = 1 << 16,
    RUNS_MAX = 200000,
    PAYLOAD_BYTES = 1 << 20,
    PAYLOADS = 9,
};

#define HOST "Host: localhost\r\n"
#define GET  "GET /livez HTTP/1.1\r\n" HOST "\r\n"

static struct bel_engine *engine;
static struct bel_http *http;
static struct bel_metrics metrics;
static struct bel_service service;
static struct bel_now now;
static char answer[ANSWER_BYTES];
static uint64_t work_most;

static void setup_for(uint32_t connections_max)
{
    struct bel_http_options options = {
        .service = &service, .metrics = &metrics, .connections_max = connections_max};
    struct bel_why why;
    now = bel_clock_now(bel_clock_system());
    CHECK(bel__metrics_init(&metrics) == 0);
    CHECK(bel_engine_open(&(struct bel_engine_options){.now = now}, &engine, NULL) == 0);
    service = (struct bel_service){.now = &now, .payload_bytes_max = BEL_PAYLOAD_BYTES_DEFAULT};
    options.backend = metrics.backend = bel_engine_backend(engine);
    CHECK(bel__address_parse("127.0.0.1:0", &options.address) == 0);
    CHECK(bel__http_start(&options, &http, &why) == 0);
    work_most = 0;
}

static void setup(void)
{
    setup_for(CONNECTIONS_MAX);
}

static void teardown(void)
{
    bel__http_stop(http);
    (void)bel_backend_turn(bel_engine_backend(engine), now);
    CHECK_EQ(metrics.http_clients, 0);
    bel_engine_close(engine);
    bel__metrics_finish(&metrics);
}

/* Runs until nothing is left to do without time passing. */
static void settle(void)
{
    for (int i = 0; i < 20; i++) {
        bel__http_run(http);
        (void)bel_backend_turn(bel_engine_backend(engine), now);
        metrics.turns++;
        bel__http_run(http);
    }
}

static void wait_ms(uint64_t ms)
{
    now.real.ns += ms * NS_PER_MS;
    settle();
}

static int dial(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(bel__http_port(http))};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK(fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) == 0);
    settle();
    return fd;
}

static void tell(int fd, const char *text)
{
    CHECK(send(fd, text, strlen(text), MSG_NOSIGNAL) == (ssize_t)strlen(text));
    settle();
}

/* Reads what the server has sent. Sets `*is_closed` if it has closed the connection. */
static const char *hear(int fd, bool *is_closed)
{
    size_t count = 0;
    *is_closed = false;
    for (;;) {
        ssize_t got = recv(fd, answer + count, sizeof answer - 1 - count, MSG_DONTWAIT);
        if (got > 0) count += (size_t)got;
        if (got == 0 || (got < 0 && errno == ECONNRESET)) *is_closed = true;
        if (got <= 0) break;
    }
    answer[count] = 0;
    return answer;
}

/* Checks that the server has answered with this status, and whether it has then closed. */
static void expect(int fd, unsigned status, bool closes)
{
    char start[32];
    bool is_closed;
    (void)snprintf(start, sizeof start, "HTTP/1.1 %u ", status);
    const char *got = hear(fd, &is_closed);
    CHECK_NOTE("wanted %s, got: %.200s", start, got);
    CHECK(strncmp(got, start, strlen(start)) == 0);
    CHECK(strstr(got + 1, "HTTP/1.1 ") == NULL); /* one response */
    if (status >= 400) CHECK(strstr(got, "application/problem+json") != NULL);
    CHECK_EQ(is_closed, closes);
}

static void expect_silence(int fd, bool closes)
{
    bool is_closed;
    const char *got = hear(fd, &is_closed);
    CHECK_NOTE("got: %.200s", got);
    CHECK(got[0] == 0);
    CHECK_EQ(is_closed, closes);
}

/* --- deadlines --- */

static void a_head_has_a_deadline(void)
{
    setup();
    int fd = dial();
    tell(fd, "GET /livez HTTP/1.1\r\n");
    for (int i = 0; i < 9; i++) { /* a byte each second does not help */
        wait_ms(1000);
        tell(fd, "X");
        expect_silence(fd, false);
    }
    CHECK(bel__http_wait_ms(http) <= 1000);
    wait_ms(1000);
    expect(fd, 408, true);
    (void)close(fd);
    settle();
    CHECK_EQ(metrics.http_clients, 0);
    teardown();
}

/* The time between two requests has a deadline of its own, which is longer. */
static void an_idle_connection_has_a_deadline(void)
{
    setup();
    int fresh = dial(), used = dial();
    tell(used, GET);
    expect(used, 200, false);
    wait_ms(60000);
    tell(used, GET);
    expect(used, 200, false);
    wait_ms(15000);
    expect_silence(fresh, true);
    expect_silence(used, false);
    wait_ms(59999);
    expect_silence(used, false);
    wait_ms(1);
    expect_silence(used, true);
    CHECK_EQ(bel__http_wait_ms(http), UINT64_MAX);
    (void)close(fresh);
    (void)close(used);
    teardown();
}

static void a_body_has_a_rate(void)
{
    static const char head[] =
        "PUT /v1/topics/t/timers/a HTTP/1.1\r\n" HOST "Content-Length: 1000000\r\n\r\n{";
    char part[8192 + 1];
    setup();
    int slow = dial(), fast = dial();
    tell(slow, head);
    tell(fast, head);
    memset(part, ' ', sizeof part - 1);
    part[sizeof part - 1] = 0;
    for (int i = 0; i < 20; i++) {
        wait_ms(1000);
        tell(slow, " ");
        tell(fast, part);
        expect_silence(slow, false);
    }
    wait_ms(1000);
    expect(slow, 408, true);
    expect_silence(fast, false);
    wait_ms(60000); /* 20 s, and 40 s for 160 KiB */
    expect(fast, 408, true);
    (void)close(slow);
    (void)close(fast);
    teardown();
}

static void tell_spaces(int fd, size_t bytes)
{
    char part[8192 + 1];
    memset(part, ' ', sizeof part - 1);
    part[sizeof part - 1] = 0;
    for (size_t done = 0; done < bytes; done += sizeof part - 1) {
        tell(fd, part);
    }
}

/* Lets a second pass for the requests of all connections. Returns how many were dropped. */
static unsigned tick(struct bel_input_total *total)
{
    wait_ms(BEL_INPUT_TICK_MS);
    unsigned dropped = bel__input_total_tick(total, now.real);
    bel__input_total_admit(total);
    settle();
    return dropped;
}

/* A body stands still, another waits for its memory: the second is not read, its time does not
 * count, and the first is dropped. */
static void a_body_that_stands_still_is_dropped(void)
{
    static const char head[] =
        "PUT /v1/topics/t/timers/a HTTP/1.1\r\n" HOST "Content-Length: 1000000\r\n\r\n{";
    static const char next[] =
        "PUT /v1/topics/t/timers/b HTTP/1.1\r\n" HOST "Content-Length: 65551\r\n\r\n"
        "{\"payload\":\"x\"";
    struct bel_input_total total;
    bel__input_total_init(&total, 1000000, 500000);
    setup();
    service.input_total = &total;
    int still = dial(), other = dial(), small = dial();
    tell(still, head);
    tell_spaces(still, 770000); /* above three quarters */
    CHECK(total.bytes > 750000);
    tell(other, next);
    tell_spaces(other, 65536);
    tell(other, "}");
    size_t most = total.bytes;
    CHECK(most <= (size_t)770000 / 4 * 5 + (size_t)2 * BEL_INPUT_SMALL_BYTES);
    tell(small, GET);
    expect(small, 200, false);
    for (int i = 0; i < BEL_INPUT_STILL_TICKS; i++) {
        CHECK_EQ(tick(&total), 0);
        CHECK_EQ(total.bytes, most);
    }
    expect_silence(other, false);
    CHECK_EQ(tick(&total), 1);
    bool is_closed;
    const char *got = hear(still, &is_closed);
    CHECK_NOTE("got: %.200s", got);
    CHECK(strncmp(got, "HTTP/1.1 408 ", 13) == 0 && is_closed);
    CHECK(strstr(got, "nothing of it has arrived in 2 s while others wait") != NULL);
    expect(other, 200, false);
    CHECK_EQ(total.bytes, 0);
    tell(small, head);
    tell_spaces(small, 100000);
    for (int i = 0; i < 29; i++) {
        CHECK_EQ(tick(&total), 0);
    }
    CHECK_EQ(tick(&total), 1); /* although its rate would be enough for 44 s */
    expect(small, 408, true);
    (void)close(still);
    (void)close(other);
    (void)close(small);
    teardown();
    CHECK_EQ(total.bytes, 0);
}

static void a_client_must_read(void)
{
    static char body[PAYLOAD_BYTES + 200];
    setup();
    int fd = dial();
    int bytes = snprintf(body, sizeof body,
                         "PUT /v1/topics/t/timers/a HTTP/1.1\r\n" HOST
                         "Content-Length: %d\r\n\r\n{\"payload\":\"",
                         PAYLOAD_BYTES);
    size_t total = (size_t)bytes + PAYLOAD_BYTES - strlen("{\"payload\":\"");
    memset(body + bytes, 'x', total - (size_t)bytes);
    body[total - 2] = '"';
    body[total - 1] = '}';
    for (size_t at = 0; at < total;) {
        ssize_t sent = send(fd, body + at, total - at, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent > 0) at += (size_t)sent;
        settle();
    }
    expect(fd, 200, false);
    for (int i = 0; i < 60; i++) { /* more than the socket buffers take */
        tell(fd, "GET /v1/topics/t/timers/a HTTP/1.1\r\n" HOST "\r\n");
    }
    for (int i = 0; i < 100; i++) {
        settle();
    }
    CHECK_EQ(metrics.http_clients, 1);
    for (int i = 0; i < 100 && metrics.http_clients > 0; i++) {
        wait_ms(30000); /* the kernel may have taken some more meanwhile */
    }
    CHECK_EQ(metrics.http_clients, 0);
    (void)close(fd);
    teardown();
}

static bool refuse_all(void *context, const struct bel_key_attempt *attempt, struct bel_grant *out)
{
    (void)context;
    (void)out;
    CHECK(strncmp(attempt->address, "127.0.0.1:", 10) == 0);
    return false;
}

/* Beyond a number of wrong keys from an address, the refusal comes a second late. */
static void guesses_are_answered_late(void)
{
    static struct bel_wrong_keys wrong_keys;
    static const char guess[] =
        "GET /v1/topics HTTP/1.1\r\n" HOST "Authorization: Bearer x\r\n\r\n";
    setup();
    service.authenticate = refuse_all;
    service.wrong_keys = &wrong_keys;
    unsigned guesses = 0, late = 0;
    for (; late == 0; guesses++) {
        bool is_closed;
        CHECK(guesses < 100);
        int fd = dial();
        tell(fd, guess);
        const char *got = hear(fd, &is_closed);
        CHECK_NOTE("%.200s", got);
        if (got[0] == 0) {
            wait_ms(999);
            expect_silence(fd, false);
            wait_ms(1);
            expect(fd, 401, true);
            late++;
        }
        (void)close(fd);
        settle();
    }
    CHECK(guesses > 10);
    teardown();
}

/* --- the limit of connections --- */

static void idle_connections_give_way(void)
{
    int fds[CONNECTIONS_MAX];
    setup();
    for (int i = 0; i < CONNECTIONS_MAX; i++) {
        fds[i] = dial();
        tell(fds[i], GET);
        expect(fds[i], 200, false);
        wait_ms(100);
    }
    int refused = dial(); /* none was idle for a second */
    expect(refused, 503, true);
    wait_ms(600);
    int fd = dial(); /* takes the place of the first */
    expect_silence(fds[0], true);
    tell(fd, GET);
    expect(fd, 200, false);
    refused = dial(); /* the second was idle for 0.9 s */
    expect(refused, 503, true);
    for (int i = 1; i < CONNECTIONS_MAX; i++) {
        tell(fds[i], "GET ");
    }
    for (int i = 0; i < CONNECTIONS_MAX; i++) {
        (void)close(fds[i]);
    }
    settle();
    CHECK_EQ(metrics.http_clients, 1); /* half a request of a client that is gone is dropped */
    (void)close(fd);
    teardown();
}

/* Half a head, and a connection without a byte, hold no place: the oldest is closed at once. */
static void half_heads_give_way(void)
{
    int fds[CONNECTIONS_MAX], late[2 * CONNECTIONS_MAX];
    setup();
    for (int i = 0; i < CONNECTIONS_MAX; i++) {
        fds[i] = dial();
        if (i != 1) tell(fds[i], "GET /livez HTTP/1.1\r\nHost: lo");
    }
    for (int i = 0; i < 2; i++) {
        late[i] = dial();
        expect(fds[i], 503, true);
        expect_silence(fds[i + 1], false);
        tell(late[i], GET);
        expect(late[i], 200, false);
    }
    tell(fds[2], "calhost\r\n\r\n"); /* a slow client goes on */
    expect(fds[2], 200, false);
    late[2] = dial();
    expect(fds[3], 503, true);
    tell(late[2], GET "GET "); /* half a head after an answer is no better */
    expect(late[2], 200, false);
    late[3] = dial();
    expect(late[2], 503, true);
    expect_silence(late[0], false); /* was answered, and is idle for less than a second */
    for (int i = 0; i < CONNECTIONS_MAX; i++) {
        (void)close(fds[i]);
        (void)close(late[i]);
    }
    teardown();
}

/* A request that has arrived and was not read yet is no waiting client. */
static void unread_requests_keep_their_place(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = 0};
    int fds[CONNECTIONS_MAX + 1];
    setup();
    address.sin_port = htons(bel__http_port(http));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (int i = 0; i < CONNECTIONS_MAX + 1; i++) { /* all are accepted in one run */
        fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        CHECK(connect(fds[i], (struct sockaddr *)&address, sizeof address) == 0);
        CHECK(send(fds[i], GET, strlen(GET), MSG_NOSIGNAL) == (ssize_t)strlen(GET));
    }
    settle();
    for (int i = 0; i < CONNECTIONS_MAX; i++) {
        expect(fds[i], 200, false);
    }
    expect(fds[CONNECTIONS_MAX], 503, true);
    for (int i = 0; i < CONNECTIONS_MAX + 1; i++) {
        (void)close(fds[i]);
    }
    teardown();
}

static bool accept_all(void *context, const struct bel_key_attempt *attempt, struct bel_grant *out)
{
    (void)context;
    (void)attempt;
    *out = (struct bel_grant){.permissions = ~0U};
    return true;
}

/* With keys, only a request with a right key makes a client known: not a health check, nor the body
 * of one. */
static void strangers_give_way_to_all(void)
{
    static const char claim[] = "POST /v1/topics/t/claim HTTP/1.1\r\n" HOST
                                "Authorization: Bearer x\r\nContent-Length: 14\r\n\r\n"
                                "{\"wait\":\"60s\"}";
    int fds[CONNECTIONS_MAX], known[CONNECTIONS_MAX];
    setup();
    service.authenticate = accept_all;
    for (int i = 0; i < CONNECTIONS_MAX; i++) {
        fds[i] = dial();
        tell(fds[i], i == 0 ? "GET /livez HTTP/1.1\r\n" HOST "Content-Length: 9\r\n\r\n" : GET);
        if (i > 0) expect(fds[i], 200, false);
    }
    for (int i = 0; i < CONNECTIONS_MAX; i++) {
        bool is_closed;
        known[i] = dial();
        (void)hear(fds[i], &is_closed);
        CHECK(is_closed);
        tell(known[i], claim);
        expect_silence(known[i], false);
    }
    wait_ms(5000); /* those whose claims wait keep their places, however long */
    int refused = dial();
    expect(refused, 503, true);
    for (int i = 0; i < CONNECTIONS_MAX; i++) {
        expect_silence(known[i], false);
        (void)close(fds[i]);
        (void)close(known[i]);
    }
    (void)close(refused);
    teardown();
}

/* --- clients that send no more --- */

static void a_half_closed_client_is_answered(void)
{
    static const char requests[] =
        "PUT /v1/topics/t/timers/a HTTP/1.1\r\n" HOST "Content-Length: 14\r\n\r\n{\"payload\":\"\"}"
        "GET /v1/topics/t/timers/a HTTP/1.1\r\n" HOST "\r\n"
        "POST /v1/topics/t/claim HTTP/1.1\r\n" HOST "Content-Length: 14\r\n\r\n{\"wait\":\"60s\"}"
        "GET /v1/top";
    for (int splits = 0; splits < 2; splits++) { /* at once, and request by request */
        bool is_closed;
        setup();
        int fd = dial();
        CHECK(send(fd, requests, sizeof requests - 1, 0) == (ssize_t)sizeof requests - 1);
        if (splits == 1) settle();
        CHECK(shutdown(fd, SHUT_WR) == 0);
        settle();
        const char *got = hear(fd, &is_closed);
        CHECK_NOTE("%.250s", got);
        CHECK(is_closed);
        uint64_t count = 0;
        for (const char *at = got; (at = strstr(at, "HTTP/1.1 200 OK")) != NULL; at++) {
            count++;
        }
        CHECK_EQ(count, 3);
        CHECK(strstr(got, "\"deliveries\":[{") != NULL);
        (void)close(fd);
        teardown();
    }
}

/* A claim that waits for a client that sends no more is withdrawn, after its first turn. */
static void a_waiting_claim_is_withdrawn(void)
{
    setup();
    int fd = dial(), other = dial();
    CHECK(shutdown(fd, SHUT_RD) == 0);
    tell(fd, "POST /v1/topics/t/claim HTTP/1.1\r\n" HOST
             "Content-Length: 14\r\n\r\n{\"wait\":\"60s\"}");
    CHECK_EQ(metrics.http_clients, 2);
    (void)close(fd);
    settle();
    CHECK_EQ(metrics.http_clients, 1);
    tell(other, "PUT /v1/topics/t/timers/a HTTP/1.1\r\n" HOST
                "Content-Length: 14\r\n\r\n{\"payload\":\"\"}");
    expect(other, 200, false);
    tell(other, "POST /v1/topics/t/claim HTTP/1.1\r\n" HOST "Content-Length: 2\r\n\r\n{}");
    bool is_closed;
    CHECK(strstr(hear(other, &is_closed), "\"attempt\":1") != NULL);
    (void)close(other);
    teardown();
}

/* --- the work of a run --- */

static void on_filled(struct bel_request *request, const struct bel_reply *reply)
{
    (void)request;
    CHECK(reply->err == 0);
}

/* Schedules timers whose JSON is six times as long as their payload. */
static void fill_with(char byte)
{
    static char payload[PAYLOAD_BYTES];
    memset(payload, byte, sizeof payload);
    for (int i = 0; i < PAYLOADS; i++) {
        char id[16];
        int bytes = snprintf(id, sizeof id, "%d", i);
        struct bel_request request = {
            .command = {.verb = BEL_VERB_SCHEDULE,
                        .schedule = {.topic = BEL_VIEW("t"),
                                     .id = {id, (size_t)bytes},
                                     .payload = {payload, sizeof payload}}}};
        request.done = on_filled;
        bel_backend_submit(bel_engine_backend(engine), &request);
        (void)bel_backend_turn(bel_engine_backend(engine), now);
    }
}

/* JSON has six bytes for each byte of these payloads. */
static void fill(void)
{
    fill_with(1);
}

/* A client that reads a long response. */
struct reader {
    uint64_t total;
    int fd;
    bool is_done;
    char last[8]; /* the end of what it has read */
};

static void read_some(struct reader *reader)
{
    static char bytes[1 << 18];
    ssize_t got = recv(reader->fd, bytes, sizeof bytes, MSG_DONTWAIT);
    CHECK(got > 0 || (got < 0 && errno == EAGAIN));
    if (got <= 0) return;
    reader->total += (uint64_t)got;
    if (got >= 7) memcpy(reader->last, bytes + got - 7, 7);
    reader->is_done = strcmp(reader->last, "\r\n0\r\n\r\n") == 0;
}

/* Reads long responses, while another client is answered in each run. */
static void read_beside(struct reader *readers, size_t count, int other)
{
    size_t left = count;
    for (int i = 0; left > 0; i++) {
        bool is_closed;
        CHECK(i < RUNS_MAX);
        CHECK(send(other, GET, strlen(GET), 0) == (ssize_t)strlen(GET));
        bel__http_run(http);
        if (bel__http_work(http) > work_most) work_most = bel__http_work(http);
        (void)bel_backend_turn(bel_engine_backend(engine), now);
        CHECK(strncmp(hear(other, &is_closed), "HTTP/1.1 200", 12) == 0);
        for (size_t k = 0; k < count; k++) {
            if (readers[k].is_done) continue;
            read_some(&readers[k]);
            left -= readers[k].is_done;
        }
    }
}

/* Checks the work of the runs. A run may begin a slice below the limit, and then exceeds the limit
 * by a slice. */
static void check_work(uint64_t total)
{
    CHECK_NOTE("%" PRIu64 " bytes of work in a run", work_most);
    CHECK(work_most > 0 && work_most < BEL_HTTP_RUN_BYTES_MAX + (65 << 10));
    printf("     %" PRIu64 " bytes of JSON, at most %" PRIu64 " bytes of work in a run\n", total,
           work_most);
}

/* A single payload is longer than a slice. */
static void a_long_answer_is_made_in_slices(void)
{
    setup();
    fill();
    struct reader reader = {.fd = dial()};
    int other = dial();
    CHECK(send(reader.fd, "GET /v1/topics/t/timers/0 HTTP/1.1\r\n" HOST "\r\n", 55, 0) == 55);
    read_beside(&reader, 1, other);
    CHECK(reader.total > (size_t)6 * PAYLOAD_BYTES);
    check_work(reader.total);
    (void)close(reader.fd);
    (void)close(other);
    teardown();
}

/* Several long answers together do not take more work in a run. A page of a list ends after some
 * payload bytes, and has a cursor. */
static void long_answers_share_the_work(void)
{
    static const char list[] = "GET /v1/topics/t/timers?limit=1000 HTTP/1.1\r\n" HOST "\r\n";
    struct reader readers[CONNECTIONS_MAX - 1] = {0};
    size_t count = sizeof readers / sizeof readers[0];
    setup();
    fill();
    for (size_t i = 0; i < count; i++) {
        readers[i].fd = dial();
        CHECK(send(readers[i].fd, list, sizeof list - 1, 0) == (ssize_t)sizeof list - 1);
    }
    int other = dial();
    read_beside(readers, count, other);
    for (size_t i = 0; i < count; i++) {
        CHECK(readers[i].total > (size_t)6 * PAYLOAD_BYTES &&
              readers[i].total < (size_t)13 * PAYLOAD_BYTES);
        (void)close(readers[i].fd);
    }
    check_work(readers[0].total);
    (void)close(other);
    teardown();
}

/* Reads all that the kernel has. */
static void read_all(struct reader *readers)
{
    for (size_t i = 0; i < READERS; i++) {
        uint64_t before;
        do {
            before = readers[i].total;
            read_some(&readers[i]);
        } while (readers[i].total > before);
    }
}

/* More long answers than a run makes slices of take turns, and so does a short one. */
static void many_long_answers_take_turns(void)
{
    static const char list[] = "GET /v1/topics/t/timers?limit=1000 HTTP/1.1\r\n" HOST "\r\n";
    struct reader readers[READERS] = {0};
    uint64_t totals[READERS];
    bool is_closed, is_answered = false;
    setup_for(READERS + 1);
    fill_with('x'); /* a slice of it fits into a socket */
    for (size_t i = 0; i < READERS; i++) {
        readers[i].fd = dial();
        for (int k = 0; k < ANSWERS; k++) {
            CHECK(send(readers[i].fd, list, sizeof list - 1, 0) == (ssize_t)sizeof list - 1);
        }
    }
    int other = dial();
    read_all(readers); /* so that their sockets have room for more than a slice in each run */
    for (size_t i = 0; i < READERS; i++) {
        totals[i] = readers[i].total;
    }
    CHECK(send(other, GET, strlen(GET), 0) == (ssize_t)strlen(GET));
    for (int run = 0; run < BUSY_RUNS; run++) {
        bel__http_run(http);
        (void)bel_backend_turn(bel_engine_backend(engine), now);
        if (!is_answered) is_answered = strncmp(hear(other, &is_closed), "HTTP/1.1 200", 12) == 0;
        read_all(readers);
    }
    CHECK(is_answered);
    uint64_t least = UINT64_MAX, most = 0;
    for (size_t i = 0; i < READERS; i++) {
        uint64_t more = readers[i].total - totals[i];
        (void)close(readers[i].fd);
        if (i >= RUNNING) continue;
        if (more < least) least = more;
        if (more > most) most = more;
    }
    CHECK_NOTE("the clients got %" PRIu64 " to %" PRIu64 " bytes", least, most);
    CHECK(least > most / 2);
    (void)close(other);
    teardown();
}

int main(void)
{
    RUN(a_head_has_a_deadline);
    RUN(an_idle_connection_has_a_deadline);
    RUN(a_body_has_a_rate);
    RUN(a_body_that_stands_still_is_dropped);
    RUN(a_client_must_read);
    RUN(guesses_are_answered_late);
    RUN(idle_connections_give_way);
    RUN(half_heads_give_way);
    RUN(unread_requests_keep_their_place);
    RUN(strangers_give_way_to_all);
    RUN(a_half_closed_client_is_answered);
    RUN(a_waiting_claim_is_withdrawn);
    RUN(a_long_answer_is_made_in_slices);
    RUN(long_answers_share_the_work);
    RUN(many_long_answers_take_turns);
    return 0;
}
