/* SPDX-License-Identifier: MIT */

/*
 * A line-echo server in a libuv loop. Timers belong to a thread of the runtime; what rings
 * comes as an event into an inbox, whose descriptor the loop polls. The loop needs not be
 * a worker, and a callback never runs on another thread.
 *
 * What that costs is a moment between the ring and its event, in which a connection can end
 * for another reason. Whether there is such an event on its way is what
 * bel_runtime_cancel() says.
 */
#include "echo.h"

#include <signal.h>
#include <string.h>
#include <uv.h>

enum {
    EVENTS_MAX = 64,
    SHARES = 2, /* of a connection: one is its handle's, one its timer's */
};

struct server {
    uv_loop_t loop;
    uv_tcp_t listener;
    uv_poll_t poll;
    uv_signal_t signals[2];
    struct bel_runtime *runtime;
    struct bel_inbox *inbox;
    struct options options;
    struct totals totals;
};

struct connection {
    uv_tcp_t tcp; /* whose data is the server */
    bel_timer_t idle;
    unsigned shares;
    size_t used;
    char line[LINE_BYTES];
};

static void must_uv(int error, const char *what)
{
    if (error < 0) errx(1, "%s: %s", what, uv_strerror(error));
}

/* The last one frees it. */
static void drop(struct connection *connection)
{
    if (--connection->shares == 0) free(connection);
}

static void on_close(uv_handle_t *handle)
{
    drop((struct connection *)handle);
}

static void close_connection(struct server *server, struct connection *connection)
{
    if (uv_is_closing((uv_handle_t *)&connection->tcp)) return;
    server->totals.connections--;
    uv_close((uv_handle_t *)&connection->tcp, on_close);
}

/* The connection ends before its timer rings; or that has rung, and its event comes. */
static void give_up(struct server *server, struct connection *connection)
{
    close_connection(server, connection);
    if (bel_runtime_cancel(server->runtime, connection->idle)) drop(connection);
}

static void on_event(struct server *server, const struct bel_event *event)
{
    if (event->kind == KIND_STATISTICS) {
        print_statistics(&server->totals);
        return;
    }
    struct connection *connection = connection_of(event);
    count_idle(&server->totals, event);
    close_connection(server, connection);
    drop(connection);
}

static void take_events(struct server *server)
{
    struct bel_event events[EVENTS_MAX];
    size_t count;
    do {
        count = bel_inbox_take(server->inbox, events, EVENTS_MAX);
        for (size_t i = 0; i < count; i++) {
            on_event(server, &events[i]);
        }
    } while (count == EVENTS_MAX);
}

static void on_inbox(uv_poll_t *poll, int status, int events)
{
    (void)status, (void)events;
    take_events(poll->data);
}

static void on_alloc(uv_handle_t *handle, size_t bytes, uv_buf_t *out)
{
    struct connection *connection = (struct connection *)handle;
    (void)bytes;
    *out =
        uv_buf_init(connection->line + connection->used, (unsigned)(LINE_BYTES - connection->used));
}

/* Sends back all whole lines. False if one is too long, or the other does not read. */
static bool echo(struct server *server, struct connection *connection, size_t bytes)
{
    size_t whole = 0, used = connection->used + bytes;
    for (size_t i = connection->used; i < used; i++) {
        if (connection->line[i] != '\n') continue;
        server->totals.lines++;
        whole = i + 1;
    }
    connection->used = used - whole;
    if (whole == 0) return used < LINE_BYTES;
    uv_buf_t lines = uv_buf_init(connection->line, (unsigned)whole);
    if (uv_try_write((uv_stream_t *)&connection->tcp, &lines, 1) != (int)whole) return false;
    memmove(connection->line, connection->line + whole, connection->used);
    return postpone_idle(server->runtime, &server->options, connection->idle);
}

static void on_read(uv_stream_t *stream, ssize_t bytes, const uv_buf_t *buffer)
{
    struct connection *connection = (struct connection *)stream;
    struct server *server = stream->data;
    (void)buffer;
    if (bytes == 0) return;
    if (bytes < 0 || !echo(server, connection, (size_t)bytes)) give_up(server, connection);
}

static void on_connection(uv_stream_t *listener, int status)
{
    struct server *server = listener->data;
    if (status < 0) return;
    struct connection *connection = calloc(1, sizeof *connection);
    if (connection == NULL) err(1, "connection");
    connection->idle = schedule_idle(server->runtime, &server->options, connection);
    connection->shares = SHARES;
    connection->tcp.data = server;
    server->totals.connections++;
    must_uv(uv_tcp_init(&server->loop, &connection->tcp), "connection");
    must_uv(uv_accept(listener, (uv_stream_t *)&connection->tcp), "accept");
    must_uv(uv_read_start((uv_stream_t *)&connection->tcp, on_alloc, on_read), "read");
}

/* All that is pending rings now: each connection is closed by its own timer, and the
 * statistics come once more. Then the loop has no handles left, and ends. */
static void on_signal(uv_signal_t *signal, int number)
{
    struct server *server = signal->data;
    (void)number;
    must(bel_runtime_shutdown(server->runtime, BEL_SHUTDOWN_FIRE, NULL), "shutdown");
    take_events(server);
    uv_close((uv_handle_t *)&server->listener, NULL);
    uv_close((uv_handle_t *)&server->poll, NULL);
    uv_close((uv_handle_t *)&server->signals[0], NULL);
    uv_close((uv_handle_t *)&server->signals[1], NULL);
}

static void open_timers(struct server *server)
{
    must(bel_runtime_create(NULL, &server->runtime), "runtime");
    must(bel_inbox_create(server->runtime, &server->inbox), "inbox");
    must(bel_runtime_on_inbox(server->runtime, KIND_IDLE, server->inbox), "idle");
    must(bel_runtime_on_inbox(server->runtime, KIND_STATISTICS, server->inbox), "statistics");
    must(bel_runtime_start(server->runtime, 1), "start");
    schedule_statistics(server->runtime, &server->options);
    must_uv(uv_poll_init(&server->loop, &server->poll, bel_inbox_fd(server->inbox)), "inbox");
    must_uv(uv_poll_start(&server->poll, UV_READABLE, on_inbox), "inbox");
    server->poll.data = server;
}

static void open_sockets(struct server *server)
{
    static const int numbers[] = {SIGINT, SIGTERM};
    struct sockaddr_in address;
    int bytes = sizeof address;
    for (unsigned i = 0; i < 2; i++) {
        must_uv(uv_signal_init(&server->loop, &server->signals[i]), "signal");
        must_uv(uv_signal_start(&server->signals[i], on_signal, numbers[i]), "signal");
        server->signals[i].data = server;
    }
    must_uv(uv_ip4_addr("127.0.0.1", server->options.port, &address), "address");
    must_uv(uv_tcp_init(&server->loop, &server->listener), "listener");
    must_uv(uv_tcp_bind(&server->listener, (struct sockaddr *)&address, 0), "bind");
    must_uv(uv_listen((uv_stream_t *)&server->listener, SOMAXCONN, on_connection), "listen");
    must_uv(uv_tcp_getsockname(&server->listener, (struct sockaddr *)&address, &bytes), "port");
    server->listener.data = server;
    (void)printf("listening on 127.0.0.1:%u\n", ntohs(address.sin_port));
}

int main(int argc, char **argv)
{
    struct server server = {.options = read_options(argc, argv)};
    (void)signal(SIGPIPE, SIG_IGN);
    must_uv(uv_loop_init(&server.loop), "loop");
    open_timers(&server);
    open_sockets(&server);
    must_uv(uv_run(&server.loop, UV_RUN_DEFAULT), "run");
    must_uv(uv_loop_close(&server.loop), "close");
    bel_runtime_destroy(server.runtime);
    return 0;
}
