/* SPDX-License-Identifier: MIT */

/*
 * Answers over HTTP that clients do not read: their memory is counted in the total of all
 * connections, long answers wait above its limit, short ones do not, and only clients that do not
 * read are found to be slow. Sockets with small buffers, and a clock that the test moves.
 */
#include "../check.h"
#include "../random.h"
#include "belfry/engine.h"
#include "core/units.h"
#include "http/server_state.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    CLIENTS_MAX = 16,
    WAITING = 3, /* clients of a crowd */
    PAYLOAD_FIRST = 150000,
    PAYLOAD_MAX = 16 << 20,
    SOCKET_BYTES = 16 << 10,
    STEPS = 60,        /* of a case */
    TRIES_MAX = 10000, /* of a ms, if the kernel is late */
};

#define HOST  "Host: localhost\r\n\r\n"
#define LONG  "GET /v1/topics/t/timers/a HTTP/1.1\r\n" HOST
#define SHORT "GET /livez HTTP/1.1\r\n" HOST

struct client {
    size_t received;
    int fd;         /* -1: none */
    bool has_asked; /* and is not answered */
    char port[8];   /* as the server prints it */
};

static struct bel_engine *engine;
static struct bel_http *http;
static struct bel_metrics metrics;
static struct bel_service service;
static struct bel_output_total total;
static struct bel_now now;
static struct client clients[CLIENTS_MAX];
static size_t payload_bytes; /* of the timer: more than the sockets take */
static size_t answer_bytes;  /* of the long answer */

/* --- a server and its clients --- */

static void on_filled(struct bel_request *request, const struct bel_reply *reply)
{
    (void)request;
    CHECK(reply->err == 0);
}

/* As much is reserved for an answer that is not made yet. */
static size_t reserved(void)
{
    return 2 * payload_bytes + (64 << 10);
}

/* A limit of several answers. */
static size_t limit(void)
{
    return 7 * payload_bytes;
}

static void fill(void)
{
    char *payload = malloc(payload_bytes);
    CHECK(payload != NULL);
    memset(payload, 'x', payload_bytes);
    struct bel_request request = {.command = {.verb = BEL_VERB_SCHEDULE,
                                              .schedule = {.topic = BEL_VIEW("t"),
                                                           .id = BEL_VIEW("a"),
                                                           .payload = {payload, payload_bytes}}},
                                  .done = on_filled};
    bel_backend_submit(bel_engine_backend(engine), &request);
    (void)bel_backend_turn(bel_engine_backend(engine), now);
    free(payload);
}

static void setup(size_t bytes_max)
{
    struct bel_http_options options = {
        .service = &service, .metrics = &metrics, .connections_max = 4 * CLIENTS_MAX};
    struct bel_why why;
    int bytes = SOCKET_BYTES;
    now = bel_clock_now(bel_clock_system());
    total = (struct bel_output_total){.bytes_max = bytes_max};
    CHECK(bel__metrics_init(&metrics) == 0);
    CHECK(bel_engine_open(&(struct bel_engine_options){.now = now}, &engine, NULL) == 0);
    service = (struct bel_service){
        .now = &now, .payload_bytes_max = (uint32_t)(2 * payload_bytes), .output_total = &total};
    options.backend = metrics.backend = bel_engine_backend(engine);
    CHECK(bel__address_parse("127.0.0.1:0", &options.address) == 0);
    CHECK(bel__http_start(&options, &http, &why) == 0);
    CHECK(setsockopt(http->listener, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes) == 0);
    for (int i = 0; i < CLIENTS_MAX; i++) {
        clients[i].fd = -1;
    }
    fill();
}

static void teardown(void)
{
    for (int i = 0; i < CLIENTS_MAX; i++) {
        if (clients[i].fd >= 0) (void)close(clients[i].fd);
    }
    bel__http_stop(http);
    (void)bel_backend_turn(bel_engine_backend(engine), now);
    CHECK_EQ(total.bytes, 0);
    bel_engine_close(engine);
    bel__metrics_finish(&metrics);
}

/* Checks that the total counts the memory of all connections. */
static void check_total(void)
{
    size_t sum = 0;
    struct bel_link *link = bel__list_first(&http->connections);
    for (; link != NULL; link = bel__list_next(&http->connections, link)) {
        const struct bel_http_connection *each =
            BEL_CONTAINER_OF(link, struct bel_http_connection, all);
        const struct bel_http_call *call = each->call;
        sum += each->out.capacity;
        if (call == NULL) continue;
        bool is_running = call->state == BEL_HTTP_CALL_RUNNING;
        sum += is_running ? reserved() : call->page.body.pieces.capacity;
    }
    CHECK_NOTE("%zu bytes of memory, %zu counted", sum, total.bytes);
    CHECK_EQ(sum, total.bytes);
    CHECK(sum <= total.bytes_max + reserved() + payload_bytes);
}

/* Runs as the loop does, until nothing is left to do without time passing. */
static void settle(void)
{
    for (int i = 0; i < 12; i++) {
        bel__http_run(http);
        check_total();
        (void)bel_backend_turn(bel_engine_backend(engine), now);
        metrics.turns++;
        check_total();
        bel__http_run(http);
        bel__output_total_end_turn(&total);
        while (bel__http_go_on(http)) {
            check_total();
        }
    }
}

/* Waits a ms for the kernel. */
static void wait_for_kernel(int *tries)
{
    CHECK(++*tries < TRIES_MAX);
    (void)poll(NULL, 0, 1);
    settle();
}

static void join(struct client *client)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(bel__http_port(http))};
    socklen_t bytes = sizeof address;
    uint32_t count = http->connections_count;
    int size = SOCKET_BYTES, tries = 0;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK(fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size) == 0);
    CHECK(connect(fd, (struct sockaddr *)&address, sizeof address) == 0);
    CHECK(getsockname(fd, (struct sockaddr *)&address, &bytes) == 0);
    *client = (struct client){.fd = fd};
    (void)snprintf(client->port, sizeof client->port, ":%u", ntohs(address.sin_port));
    settle();
    while (http->connections_count == count) {
        wait_for_kernel(&tries);
    }
}

/* Returns the connection of a client; NULL if it was closed. */
static const struct bel_http_connection *connection_of(const struct client *client)
{
    struct bel_link *link = bel__list_first(&http->connections);
    for (; link != NULL; link = bel__list_next(&http->connections, link)) {
        const struct bel_http_connection *connection =
            BEL_CONTAINER_OF(link, struct bel_http_connection, all);
        if (strcmp(strrchr(connection->address, ':'), client->port) == 0) return connection;
    }
    return NULL;
}

static void leave(struct client *client)
{
    int tries = 0;
    (void)close(client->fd);
    client->fd = -1;
    settle();
    while (connection_of(client) != NULL && !bel__link_is_linked(&connection_of(client)->crowded)) {
        wait_for_kernel(&tries);
    }
}

static void ask(struct client *client)
{
    int tries = 0;
    CHECK(!client->has_asked);
    CHECK(send(client->fd, LONG, strlen(LONG), MSG_NOSIGNAL) == (ssize_t)strlen(LONG));
    client->has_asked = true;
    client->received = 0;
    settle();
    while (connection_of(client)->call == NULL && answer_bytes > 0) {
        wait_for_kernel(&tries);
    }
}

/* Reads what has arrived. Returns how many bytes. */
static size_t read_some(struct client *client)
{
    static char bytes[64 << 10];
    size_t count = 0;
    ssize_t got;
    while ((got = recv(client->fd, bytes, sizeof bytes, MSG_DONTWAIT)) > 0) {
        count += (size_t)got;
    }
    CHECK(got < 0 && errno == EAGAIN);
    client->received += count;
    if (answer_bytes > 0 && client->received == answer_bytes) client->has_asked = false;
    CHECK(answer_bytes == 0 || client->received <= answer_bytes);
    return count;
}

static bool is_waiting(const struct client *client)
{
    const struct bel_http_connection *connection = connection_of(client);
    return connection != NULL && bel__link_is_linked(&connection->crowded);
}

/* Reads the answer of a client that does not wait. */
static void read_all(struct client *client)
{
    int tries = 0;
    while (client->has_asked && !is_waiting(client)) {
        if (read_some(client) > 0) {
            settle();
        } else {
            wait_for_kernel(&tries);
        }
    }
}

/* Returns the client of a connection. */
static struct client *client_of(const struct bel_http_connection *connection)
{
    for (int i = 0; i < CLIENTS_MAX; i++) {
        const char *port = strrchr(connection->address, ':');
        if (clients[i].fd >= 0 && strcmp(port, clients[i].port) == 0) return &clients[i];
    }
    CHECK(false);
    return NULL;
}

/* Finds a payload that the sockets do not take, and measures its answer. */
static void measure(void)
{
    size_t unread = 0;
    for (payload_bytes = PAYLOAD_FIRST; unread == 0; payload_bytes *= 2) {
        int tries = 0;
        CHECK(payload_bytes <= PAYLOAD_MAX / 2);
        setup(limit());
        join(&clients[0]);
        answer_bytes = 0;
        ask(&clients[0]);
        for (int i = 0; i < 20; i++) {
            wait_for_kernel(&tries);
        }
        unread = total.bytes;
        while (clients[0].received < payload_bytes || total.bytes > 0) {
            if (read_some(&clients[0]) == 0) wait_for_kernel(&tries);
            settle();
        }
        for (int i = 0; i < 20; i++) { /* the end may be on its way */
            wait_for_kernel(&tries);
            (void)read_some(&clients[0]);
        }
        answer_bytes = clients[0].received;
        teardown();
    }
    payload_bytes /= 2;
}

/* --- one after the other --- */

/* Adds clients that ask and do not read, until WAITING of them must wait. Returns how many. Sockets
 * may take more than expected, and then fewer wait. */
static int crowd(void)
{
    int count = 0, waiting = 0, tries = 0;
    while (waiting < WAITING) {
        CHECK(count < CLIENTS_MAX);
        join(&clients[count]);
        ask(&clients[count++]);
        wait_for_kernel(&tries);
        waiting = 0;
        for (int i = 0; i < count; i++) {
            waiting += is_waiting(&clients[i]);
        }
    }
    CHECK(count > 2 * WAITING);
    return count;
}

static void long_answers_wait_in_order(void)
{
    setup(limit());
    int count = crowd();
    for (int i = 0; i < count - WAITING; i++) {
        leave(&clients[i]);
        for (int k = count - WAITING + 1; k < count; k++) {
            CHECK(!is_waiting(&clients[k - 1]) || is_waiting(&clients[k]));
        }
    }
    CHECK(!bel__http_is_crowded(http));
    for (int i = count - WAITING; i < count; i++) {
        read_all(&clients[i]);
    }
    CHECK_EQ(total.bytes, 0);
    teardown();
}

static void short_answers_do_not_wait(void)
{
    char text[1024];
    setup(limit());
    int count = crowd();
    join(&clients[count]);
    CHECK(send(clients[count].fd, SHORT, strlen(SHORT), 0) == (ssize_t)strlen(SHORT));
    settle();
    ssize_t got = recv(clients[count].fd, text, sizeof text, MSG_DONTWAIT);
    CHECK(got > 12 && memcmp(text, "HTTP/1.1 200", 12) == 0);
    CHECK(bel__http_is_crowded(http));
    teardown();
}

static void who_does_not_read_is_found(void)
{
    struct bel_http_connection *slowest = NULL;
    setup(limit());
    (void)crowd();
    bel__http_begin_tick(http);
    CHECK_EQ(bel__http_find_slowest(http, &slowest), 0); /* nobody had time to read */
    bel__http_begin_tick(http);
    now.real.ns += NS_PER_S / 2;
    read_all(&clients[0]);
    now.real.ns += NS_PER_S / 2;
    settle();
    CHECK(!clients[0].has_asked);
    unsigned found = 0;
    while (bel__http_find_slowest(http, &slowest) > 0) {
        CHECK(client_of(slowest) != &clients[0] && !is_waiting(client_of(slowest)));
        bel__http_drop(slowest);
        found++;
    }
    CHECK(found > 0);
    teardown();
}

/* --- anything --- */

/* A second in which some clients read. Drops those that are found to be slow. */
static void tick(uint64_t *state)
{
    uint64_t readers = random_u64(state);
    struct bel_http_connection *slowest;
    bel__http_begin_tick(http);
    for (int i = 0; i < CLIENTS_MAX; i++) {
        now.real.ns += 50 * (uint64_t)NS_PER_MS;
        if (clients[i].fd >= 0 && readers >> i & 1) read_all(&clients[i]);
        if (clients[i].has_asked) readers &= ~(UINT64_C(1) << i); /* it waits, and had no time */
    }
    while (bel__http_find_slowest(http, &slowest) > 0) {
        struct client *client = client_of(slowest);
        CHECK(!(readers >> (client - clients) & 1) && client->has_asked && !is_waiting(client));
        bel__http_drop(slowest);
        leave(client);
    }
}

static void run_case(uint64_t seed)
{
    uint64_t state = seed;
    CHECK_NOTE("seed %" PRIu64, seed);
    setup(limit() / 2 + random_below(&state, limit()));
    for (int step = 0; step < STEPS; step++) {
        struct client *client = &clients[random_below(&state, CLIENTS_MAX)];
        uint64_t what = random_below(&state, 16);
        if (client->fd < 0) {
            join(client);
        } else if (what == 0) {
            leave(client);
        } else if (what == 1) {
            tick(&state);
        } else if (!client->has_asked) {
            ask(client);
        } else if (what < 6) {
            (void)read_some(client);
            settle();
        }
    }
    for (int left = CLIENTS_MAX, rounds = 0; left > 0; rounds++) { /* all read: all is answered */
        CHECK(rounds < TRIES_MAX);
        left = 0;
        settle();
        for (int i = 0; i < CLIENTS_MAX; i++) {
            if (clients[i].fd < 0) continue;
            read_all(&clients[i]);
            left += clients[i].has_asked;
        }
    }
    for (int tries = 0; total.bytes > 0;) { /* of clients that have left, in their turn */
        wait_for_kernel(&tries);
    }
    CHECK_EQ(total.bytes, 0);
    CHECK(!bel__http_is_crowded(http));
    teardown();
}

int main(int argc, char **argv)
{
    struct cases cases = cases_of(argc, argv, 30);
    RUN(measure);
    RUN(long_answers_wait_in_order);
    RUN(short_answers_do_not_wait);
    RUN(who_does_not_read_is_found);
    for (uint64_t seed = cases.first; seed <= cases.last; seed++) {
        run_case(seed);
    }
    return 0;
}
