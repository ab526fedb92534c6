/* SPDX-License-Identifier: MIT */

/*
 * A line-echo server around a plain epoll loop. The loop's own thread is a worker: it
 * watches the worker's descriptor as it does the sockets', and timers ring inside
 * bel_worker_poll(), so a callback may do whatever the loop may.
 */
#include "echo.h"

#include <arpa/inet.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    EVENTS_MAX = 64,
    RINGS_MAX = 256, /* in one turn of the loop; if more are due, the next comes at once */
};

struct server {
    int epoll_fd, listen_fd, signal_fd;
    struct bel_runtime *runtime;
    struct bel_worker *worker;
    struct options options;
    struct totals totals;
};

struct connection {
    int fd;
    bel_timer_t idle; /* rings when there was no line for so long */
    size_t used;
    char line[LINE_BYTES];
};

static void watch(const struct server *server, int fd, void *what)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = what};
    if (epoll_ctl(server->epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0) err(1, "watch");
}

static void close_connection(struct server *server, struct connection *connection)
{
    server->totals.connections--;
    (void)close(connection->fd);
    free(connection);
}

static void ring_idle(void *context, const struct bel_event *event)
{
    struct server *server = context;
    count_idle(&server->totals, event);
    close_connection(server, connection_of(event));
}

static void ring_statistics(void *context, const struct bel_event *event)
{
    (void)event;
    print_statistics(&((struct server *)context)->totals);
}

static void accept_connection(struct server *server)
{
    int fd = accept4(server->listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) return;
    struct connection *connection = calloc(1, sizeof *connection);
    if (connection == NULL) err(1, "connection");
    connection->idle = schedule_idle(server->runtime, &server->options, connection);
    connection->fd = fd;
    watch(server, fd, connection);
    server->totals.connections++;
}

/* Sends back all whole lines. False if the connection has ended, or its line is too long,
 * or it does not read what it is sent. */
static bool echo(struct server *server, struct connection *connection)
{
    char *line = connection->line;
    ssize_t bytes = read(connection->fd, line + connection->used, LINE_BYTES - connection->used);
    if (bytes <= 0) return false;
    size_t whole = 0, used = connection->used + (size_t)bytes;
    for (size_t i = connection->used; i < used; i++) {
        if (line[i] != '\n') continue;
        server->totals.lines++;
        whole = i + 1;
    }
    connection->used = used - whole;
    if (whole == 0) return used < LINE_BYTES;
    if (send(connection->fd, line, whole, MSG_NOSIGNAL) != (ssize_t)whole) return false;
    memmove(line, line + whole, connection->used);
    return postpone_idle(server->runtime, &server->options, connection->idle);
}

static void serve(struct server *server, struct connection *connection)
{
    if (echo(server, connection)) return;
    /* Always true: no thread but this one could make it ring. */
    if (bel_runtime_cancel(server->runtime, connection->idle)) {
        close_connection(server, connection);
    }
}

/* Until there is a signal. */
static void run(struct server *server)
{
    struct epoll_event events[EVENTS_MAX];
    for (;;) {
        int count = epoll_wait(server->epoll_fd, events, EVENTS_MAX, -1);
        bool rings = false;
        for (int i = 0; i < count; i++) {
            void *what = events[i].data.ptr;
            if (what == &server->signal_fd) return;
            if (what == &server->listen_fd) {
                accept_connection(server);
            } else if (what == server->worker) {
                rings = true;
            } else {
                serve(server, what);
            }
        }
        /* After the others: callbacks close connections that those may be about. */
        if (rings) (void)bel_worker_poll(server->worker, RINGS_MAX);
    }
}

static void open_sockets(struct server *server)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(server->options.port),
                                  .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t bytes = sizeof address;
    sigset_t signals;
    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGINT);
    (void)sigaddset(&signals, SIGTERM);
    (void)pthread_sigmask(SIG_BLOCK, &signals, NULL);
    server->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    server->signal_fd = signalfd(-1, &signals, SFD_CLOEXEC);
    server->listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (bind(server->listen_fd, (struct sockaddr *)&address, bytes) != 0) err(1, "bind");
    if (listen(server->listen_fd, SOMAXCONN) != 0) err(1, "listen");
    (void)getsockname(server->listen_fd, (struct sockaddr *)&address, &bytes);
    (void)printf("listening on 127.0.0.1:%u\n", ntohs(address.sin_port));
    watch(server, server->listen_fd, &server->listen_fd);
    watch(server, server->signal_fd, &server->signal_fd);
}

static void open_timers(struct server *server)
{
    must(bel_runtime_create(NULL, &server->runtime), "runtime");
    must(bel_runtime_on(server->runtime, KIND_IDLE, ring_idle, server), "idle");
    must(bel_runtime_on(server->runtime, KIND_STATISTICS, ring_statistics, server), "statistics");
    must(bel_worker_enter(server->runtime, &server->worker), "worker");
    watch(server, bel_worker_fd(server->worker), server->worker);
    schedule_statistics(server->runtime, &server->options);
}

int main(int argc, char **argv)
{
    struct server server = {.options = read_options(argc, argv)};
    open_sockets(&server); /* first: the runtime's threads block the signals that we block */
    open_timers(&server);
    run(&server);

    /* All that is pending rings now: each connection is closed by its own timer, and the
     * statistics come once more. */
    must(bel_runtime_shutdown(server.runtime, BEL_SHUTDOWN_FIRE, NULL), "shutdown");
    bel_runtime_destroy(server.runtime);
    (void)close(server.listen_fd);
    (void)close(server.signal_fd);
    (void)close(server.epoll_fd);
    return 0;
}
