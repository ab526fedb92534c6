/* SPDX-License-Identifier: MIT */

/*
 * A line-echo server in a libevent loop. As in libuv.c the timers belong to a thread of the
 * runtime, and what rings comes as an event into an inbox, which the loop watches.
 *
 * Between a ring and its event a connection can end for another reason. Whether there is
 * such an event on its way is what bel_runtime_cancel() says.
 */
#include "echo.h"

#include <arpa/inet.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <signal.h>

enum {
    EVENTS_MAX = 64,
    UNREAD_BYTES = 1 << 20, /* of echoes; who has more of them does not read */
};

struct server {
    struct event_base *base;
    struct evconnlistener *listener;
    struct event *inbox_event, *signals[2];
    struct bel_runtime *runtime;
    struct bel_inbox *inbox;
    struct options options;
    struct totals totals;
};

struct connection {
    struct server *server;
    struct bufferevent *stream; /* NULL once it is closed, while the timer's event comes */
    bel_timer_t idle;
};

static void close_connection(struct connection *connection)
{
    if (connection->stream == NULL) return;
    connection->server->totals.connections--;
    bufferevent_free(connection->stream);
    connection->stream = NULL;
}

/* The connection ends before its timer rings; or that has rung, and its event frees it. */
static void give_up(struct connection *connection)
{
    close_connection(connection);
    if (bel_runtime_cancel(connection->server->runtime, connection->idle)) free(connection);
}

static void on_bell(struct server *server, const struct bel_event *event)
{
    if (event->kind == KIND_STATISTICS) {
        print_statistics(&server->totals);
        return;
    }
    struct connection *connection = connection_of(event);
    count_idle(&server->totals, event);
    close_connection(connection);
    free(connection);
}

static void take_events(struct server *server)
{
    struct bel_event events[EVENTS_MAX];
    size_t count;
    do {
        count = bel_inbox_take(server->inbox, events, EVENTS_MAX);
        for (size_t i = 0; i < count; i++) {
            on_bell(server, &events[i]);
        }
    } while (count == EVENTS_MAX);
}

static void on_inbox(evutil_socket_t fd, short what, void *context)
{
    (void)fd, (void)what;
    take_events(context);
}

/* Sends back all whole lines. False if one is too long, or the other does not read. */
static bool echo(struct connection *connection)
{
    struct server *server = connection->server;
    struct evbuffer *input = bufferevent_get_input(connection->stream);
    struct evbuffer *output = bufferevent_get_output(connection->stream);
    uint64_t before = server->totals.lines;
    size_t bytes;
    for (char *line; (line = evbuffer_readln(input, &bytes, EVBUFFER_EOL_LF)) != NULL;) {
        (void)evbuffer_add(output, line, bytes);
        (void)evbuffer_add(output, "\n", 1);
        free(line);
        server->totals.lines++;
    }
    if (evbuffer_get_length(input) >= LINE_BYTES) return false;
    if (evbuffer_get_length(output) >= UNREAD_BYTES) return false;
    if (server->totals.lines == before) return true;
    return postpone_idle(server->runtime, &server->options, connection->idle);
}

static void on_read(struct bufferevent *stream, void *context)
{
    (void)stream;
    if (!echo(context)) give_up(context);
}

static void on_last_written(struct bufferevent *stream, void *context)
{
    (void)stream;
    give_up(context);
}

static void on_end(struct bufferevent *stream, short what, void *context)
{
    bool is_read = (what & BEV_EVENT_EOF) != 0;
    if (is_read && evbuffer_get_length(bufferevent_get_output(stream)) > 0) {
        bufferevent_setcb(stream, NULL, on_last_written, on_end, context);
    } else {
        give_up(context);
    }
}

static void on_connection(struct evconnlistener *listener, evutil_socket_t fd,
                          struct sockaddr *address, int bytes, void *context)
{
    struct server *server = context;
    struct connection *connection = calloc(1, sizeof *connection);
    (void)listener, (void)address, (void)bytes;
    if (connection == NULL) err(1, "connection");
    connection->idle = schedule_idle(server->runtime, &server->options, connection);
    connection->server = server;
    connection->stream = bufferevent_socket_new(server->base, fd, BEV_OPT_CLOSE_ON_FREE);
    if (connection->stream == NULL) errx(1, "stream");
    bufferevent_setcb(connection->stream, on_read, NULL, on_end, connection);
    (void)bufferevent_enable(connection->stream, EV_READ);
    server->totals.connections++;
}

static void on_signal(evutil_socket_t number, short what, void *context)
{
    (void)number, (void)what;
    (void)event_base_loopbreak(context);
}

static struct event *watch(struct server *server, int fd, short what, event_callback_fn callback,
                           void *context)
{
    struct event *event =
        event_new(server->base, fd, (short)(what | EV_PERSIST), callback, context);
    if (event == NULL || event_add(event, NULL) != 0) errx(1, "event");
    return event;
}

static void open_timers(struct server *server)
{
    must(bel_runtime_create(NULL, &server->runtime), "runtime");
    must(bel_inbox_create(server->runtime, &server->inbox), "inbox");
    must(bel_runtime_on_inbox(server->runtime, KIND_IDLE, server->inbox), "idle");
    must(bel_runtime_on_inbox(server->runtime, KIND_STATISTICS, server->inbox), "statistics");
    must(bel_runtime_start(server->runtime, 1), "start");
    schedule_statistics(server->runtime, &server->options);
}

static void open_events(struct server *server)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(server->options.port),
                                  .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t bytes = sizeof address;
    server->base = event_base_new();
    if (server->base == NULL) errx(1, "base");
    server->listener = evconnlistener_new_bind(server->base, on_connection, server,
                                               LEV_OPT_REUSEABLE | LEV_OPT_CLOSE_ON_FREE, -1,
                                               (struct sockaddr *)&address, sizeof address);
    if (server->listener == NULL) err(1, "port %u", server->options.port);
    int fd = evconnlistener_get_fd(server->listener);
    (void)getsockname(fd, (struct sockaddr *)&address, &bytes);
    (void)printf("listening on 127.0.0.1:%u\n", ntohs(address.sin_port));
    server->inbox_event = watch(server, bel_inbox_fd(server->inbox), EV_READ, on_inbox, server);
    server->signals[0] = watch(server, SIGINT, EV_SIGNAL, on_signal, server->base);
    server->signals[1] = watch(server, SIGTERM, EV_SIGNAL, on_signal, server->base);
}

int main(int argc, char **argv)
{
    struct server server = {.options = read_options(argc, argv)};
    (void)signal(SIGPIPE, SIG_IGN);
    open_timers(&server);
    open_events(&server);
    if (event_base_dispatch(server.base) < 0) errx(1, "dispatch");

    /* All that is pending rings now: each connection is closed by its own timer, and the
     * statistics come once more. */
    must(bel_runtime_shutdown(server.runtime, BEL_SHUTDOWN_FIRE, NULL), "shutdown");
    take_events(&server);
    event_free(server.inbox_event);
    event_free(server.signals[0]);
    event_free(server.signals[1]);
    evconnlistener_free(server.listener);
    event_base_free(server.base);
    bel_runtime_destroy(server.runtime);
    return 0;
}
