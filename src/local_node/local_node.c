/* SPDX-License-Identifier: MIT */

/*
 * A round of the thread: read and step all connections, one turn, write. It waits in poll() until
 * there is input, a reply of the backend's servers, or the time of the next turn.
 */
#include "local_node/local_node.h"

#include "core/entropy.h"
#include "core/thread.h"
#include "core/units.h"
#include "session/request_tracker.h"
#include "session/session.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    CONNECTIONS_MAX = 512, /* of one program: those of belfry work and bench */
    READ_BYTES = 64 << 10,
    STEP = 256,         /* most commands of a connection in a round */
    STOP_MS_MAX = 1000, /* for requests that are under way */
    ADDRESS_BYTES = 64,
    FIXED = 3, /* descriptors besides those of connections: wake, listener, backend */
};

struct connection {
    struct bel_caller caller;
    struct bel_local_node *node;
    struct bel_session *session; /* NULL: closed, but requests are under way */
    int fd;
    bool has_ended; /* the client sends nothing more */
    bool has_more;  /* the session may have more to parse */
    struct connection *next;
};

struct bel_local_node {
    struct bel_local_node_options options;
    struct bel_metrics metrics;
    struct bel_request_tracker tracker;
    struct bel_call_pool calls;
    struct bel_service service;
    struct bel_now now;
    struct bel_next next;
    struct connection *connections;
    size_t connections_count;
    struct pollfd fds[FIXED + CONNECTIONS_MAX];
    struct connection *polled[CONNECTIONS_MAX];
    pthread_t thread;
    int wake_fd, listen_fd;
    bool is_woken; /* a session has got a reply since it was stepped */
    char address[ADDRESS_BYTES];
    char bytes[READ_BYTES];
};

/* --- connections --- */

static void on_ready(void *context)
{
    struct connection *connection = context;
    connection->has_more = true;
    connection->node->is_woken = true;
}

static void on_left(struct bel_caller *caller)
{
    struct connection *connection = BEL_CONTAINER_OF(caller, struct connection, caller);
    struct connection **at = &connection->node->connections;
    while (*at != connection) {
        at = &(*at)->next;
    }
    *at = connection->next;
    free(connection);
}

/* Closes a connection. It is freed when its requests are done. */
static void hang_up(struct connection *connection)
{
    assert(connection->session != NULL);
    bel__session_destroy(connection->session);
    connection->session = NULL;
    (void)close(connection->fd);
    connection->node->connections_count--;
    bel__caller_leave(&connection->caller, on_left);
}

/* Returns whether a process of another user is at the other end. */
static bool is_foreign(int fd)
{
    struct ucred peer;
    socklen_t bytes = sizeof peer;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0) return true;
    return peer.uid != geteuid();
}

static void admit(struct bel_local_node *node, int fd)
{
    struct connection *connection = calloc(1, sizeof *connection);
    if (connection == NULL) {
        (void)close(fd);
        return;
    }
    struct bel_session_owner owner = {
        .backend = &connection->caller.backend, .ready = on_ready, .context = connection};
    bel__caller_init(&connection->caller, &node->tracker);
    connection->node = node;
    connection->fd = fd;
    if (bel__session_create(&node->service, &owner, &connection->session) != 0) {
        (void)close(fd);
        free(connection);
        return;
    }
    connection->next = node->connections;
    node->connections = connection;
    node->connections_count++;
}

static void accept_all(struct bel_local_node *node)
{
    while (node->connections_count < CONNECTIONS_MAX) {
        int fd = accept4(node->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0) return;
        if (is_foreign(fd)) {
            (void)close(fd);
        } else {
            admit(node, fd);
        }
    }
}

static void receive(struct connection *connection)
{
    struct bel_local_node *node = connection->node;
    size_t room = bel__session_room(connection->session);
    if (room == 0) return;
    ssize_t bytes =
        recv(connection->fd, node->bytes, room < READ_BYTES ? room : READ_BYTES, MSG_DONTWAIT);
    if (bytes > 0) {
        (void)!bel__session_receive(connection->session, node->bytes, (size_t)bytes);
        connection->has_more = true;
    } else if (bytes == 0) {
        connection->has_ended = true;
    } else if (errno != EAGAIN && errno != EINTR) {
        bel__session_take_back(connection->session);
        hang_up(connection);
    }
}

/* Writes what the socket accepts. Returns false if the connection is broken. */
static bool write_out(struct connection *connection)
{
    struct bel_buffer *output = bel__session_output(connection->session);
    while (output->count > 0) {
        ssize_t bytes = send(connection->fd, bel__buffer_data(output), output->count,
                             MSG_DONTWAIT | MSG_NOSIGNAL);
        if (bytes < 0) return errno == EAGAIN || errno == EINTR;
        bel__buffer_consume(output, (size_t)bytes);
        connection->has_more = true; /* it may have waited for room */
    }
    bel__session_trim(connection->session);
    return true;
}

/* Returns whether nobody waits for what a connection still does: its client has hung up, and what
 * it has sent is answered, or waits for timers. */
static bool is_over(const struct connection *connection)
{
    if (bel__session_is_closing(connection->session)) return true;
    const struct bel_caller *caller = &connection->caller;
    return connection->has_ended && !connection->has_more && caller->under_way == caller->waiting;
}

static void flush(struct connection *connection)
{
    if (!write_out(connection)) {
        bel__session_take_back(connection->session);
        hang_up(connection);
        return;
    }
    if (bel__session_output(connection->session)->count == 0 && is_over(connection)) {
        hang_up(connection);
    }
}

/* --- rounds --- */

/* Calls a function for each open connection, which may be closed by it. */
static void each(struct bel_local_node *node, void (*visit)(struct connection *connection))
{
    struct connection *next;
    for (struct connection *at = node->connections; at != NULL; at = next) {
        next = at->next;
        if (at->session != NULL) visit(at);
    }
}

static void step(struct connection *connection)
{
    connection->has_more = bel__session_step(connection->session, STEP);
}

/* Steps sessions and takes turns until no session has more to do at once. */
static void serve(struct bel_local_node *node)
{
    do {
        node->now = bel_clock_now(node->options.clock);
        node->is_woken = false;
        each(node, step);
        node->next = bel__request_tracker_turn(&node->tracker, node->now);
        each(node, flush);
        for (const struct connection *at = node->connections; at != NULL; at = at->next) {
            if (at->session != NULL && at->has_more) node->is_woken = true;
        }
    } while (node->is_woken || node->tracker.fresh > 0);
}

/* Returns for how many ms to sleep; -1: until there is input. */
static int sleep_ms(const struct bel_local_node *node)
{
    uint64_t boot = node->now.boot.ns, real = node->now.real.ns, least = BEL_NEVER;
    if (node->next.due.ns != BEL_NEVER) {
        least = node->next.due.ns > boot ? node->next.due.ns - boot : 0;
    }
    if (node->next.wait.ns != BEL_NEVER) {
        uint64_t wait = node->next.wait.ns > real ? node->next.wait.ns - real : 0;
        if (wait < least) least = wait;
    }
    if (least == BEL_NEVER) return -1;
    uint64_t ms = least / NS_PER_MS + (least % NS_PER_MS != 0);
    return ms < INT32_MAX ? (int)ms : INT32_MAX;
}

/* Waits for something to do. Returns false when the node is to stop. */
static bool wait(struct bel_local_node *node)
{
    size_t count = 0;
    node->fds[0] = (struct pollfd){.fd = node->wake_fd, .events = POLLIN};
    node->fds[1] = (struct pollfd){.fd = node->listen_fd, .events = POLLIN};
    node->fds[2] =
        (struct pollfd){.fd = bel_backend_descriptor(node->options.backend), .events = POLLIN};
    for (struct connection *at = node->connections; at != NULL; at = at->next) {
        if (at->session == NULL) continue;
        bool has_room = !at->has_ended && bel__session_room(at->session) > 0;
        bool has_output = bel__session_output(at->session)->count > 0;
        short events = (short)((has_room ? POLLIN : 0) | (has_output ? POLLOUT : 0));
        node->polled[count] = at;
        /* Without events, a client that has hung up would wake the node again and again. */
        node->fds[FIXED + count++] =
            (struct pollfd){.fd = events != 0 ? at->fd : -1, .events = events};
    }
    if (poll(node->fds, FIXED + count, sleep_ms(node)) < 0) return true;
    if (node->fds[0].revents != 0) return false;
    for (size_t i = 0; i < count; i++) {
        if (node->fds[FIXED + i].revents != 0 && !node->polled[i]->has_ended) {
            receive(node->polled[i]);
        }
    }
    if (node->fds[1].revents != 0) accept_all(node);
    return true;
}

/* Takes turns until the requests of closed connections are done. */
static void end_requests(struct bel_local_node *node)
{
    struct pollfd fd = {.fd = bel_backend_descriptor(node->options.backend), .events = POLLIN};
    uint64_t end = node->now.real.ns + (uint64_t)STOP_MS_MAX * NS_PER_MS;
    bel__request_tracker_drain(&node->tracker);
    while (node->tracker.under_way > 0 && node->now.real.ns < end) {
        node->now = bel_clock_now(node->options.clock);
        (void)bel__request_tracker_turn(&node->tracker, node->now);
        if (node->tracker.under_way > 0) (void)poll(&fd, 1, 10);
    }
}

static void *run(void *context)
{
    struct bel_local_node *node = context;
    do {
        serve(node);
    } while (wait(node));
    each(node, hang_up);
    end_requests(node);
    return NULL;
}

/* --- opening and closing --- */

/* Listens on a random name in the abstract namespace, which begins with a 0. */
static int listen_abstract(struct bel_local_node *node)
{
    uint64_t words[2];
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int err = bel__entropy_fill(bel__entropy_system(), words, sizeof words);
    if (err) return err;
    int bytes = snprintf(node->address, sizeof node->address, "@/belfry/%016llx%016llx",
                         (unsigned long long)words[0], (unsigned long long)words[1]);
    memcpy(address.sun_path + 1, node->address + 1, (size_t)bytes - 1);
    socklen_t length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)bytes);
    node->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (node->listen_fd < 0) return BEL_EIO;
    if (bind(node->listen_fd, (const struct sockaddr *)&address, length) != 0) return BEL_EIO;
    return listen(node->listen_fd, CONNECTIONS_MAX) == 0 ? 0 : BEL_EIO;
}

static int start(struct bel_local_node *node)
{
    node->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (node->wake_fd < 0) return BEL_EIO;
    int err = listen_abstract(node);
    if (err == 0) err = bel__metrics_init(&node->metrics);
    if (err) return err;
    bel__request_tracker_init(&node->tracker, node->options.backend, &node->metrics,
                              node->options.clock);
    node->tracker.does_recover = true;
    node->now = bel_clock_now(node->options.clock);
    node->service = (struct bel_service){.zones = node->options.zones,
                                         .now = &node->now,
                                         .metrics = &node->metrics,
                                         .calls = &node->calls,
                                         .payload_bytes_max = node->options.payload_bytes_max,
                                         .info = node->options.info,
                                         .context = node->options.context};
    err = bel__thread_start(&node->thread, run, node);
    if (err) bel__metrics_finish(&node->metrics);
    return err;
}

static void close_fds(const struct bel_local_node *node)
{
    if (node->wake_fd >= 0) (void)close(node->wake_fd);
    if (node->listen_fd >= 0) (void)close(node->listen_fd);
}

int bel__local_node_open(const struct bel_local_node_options *options, struct bel_local_node **out,
                         struct bel_why *why)
{
    struct bel_local_node *node = calloc(1, sizeof *node);
    if (node == NULL) return bel__why_say(why, BEL_ENOMEM, "memory has run out");
    node->options = *options;
    node->wake_fd = node->listen_fd = -1;
    int err = start(node);
    if (err) {
        (void)bel__why_system(why, err, "a local socket", "opened");
        close_fds(node);
        free(node);
        return err;
    }
    *out = node;
    return 0;
}

const char *bel__local_node_address(const struct bel_local_node *node)
{
    return node->address;
}

void bel__local_node_stop(struct bel_local_node *node)
{
    uint64_t one = 1;
    ssize_t written = write(node->wake_fd, &one, sizeof one);
    assert(written == sizeof one);
    (void)written;
    int failed = pthread_join(node->thread, NULL);
    assert(!failed);
    (void)failed;
    close_fds(node);
}

void bel__local_node_destroy(struct bel_local_node *node)
{
    if (node == NULL) return;
    assert(node->connections == NULL);
    bel__call_pool_finish(&node->calls);
    bel__metrics_finish(&node->metrics);
    free(node);
}
