/* SPDX-License-Identifier: MIT */

/*
 * The server has an epoll of its own, which the loop polls: it contains the listener and the
 * sockets of all connections. A run handles a limited number of events, accepts a limited number of
 * connections, and checks and makes at most about BEL_HTTP_RUN_BYTES_MAX bytes of responses. So a
 * client with a long response, or a crowd, delays other clients of the loop by a few milliseconds.
 *
 * The number of connections is limited. When it is reached, a new client takes the place of a
 * connection that only waits, of the oldest of the first kind that there is:
 *
 *     1. strangers: no request was admitted with a key; without keys: no request at all
 *     2. a request whose head is incomplete
 *     3. idle for at least EVICT_MS
 *
 * Otherwise the new client gets 503. So clients that only wait do not keep others out, and a
 * request that is being executed or answered keeps its place.
 */
#include "http/server_state.h"

#include "core/units.h"
#include "http/json_memory.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

enum {
    EVENTS_MAX = 64,       /* per run */
    ACCEPTS_MAX = 64,      /* per run */
    EVICT_MS = 1000,       /* how long a connection must be idle to lose its place */
    EVICT_LOOKS_MAX = 64,  /* connections that are looked at to find one that only waits */
    LISTEN_AGAIN_MS = 100, /* after accepting failed for lack of descriptors or memory */
    REFUSAL_BYTES_MAX = 4096,
};

/* --- accepting --- */

static void set_listening(struct bel_http *http, bool is_wanted)
{
    struct epoll_event event = {.events = is_wanted ? EPOLLIN : 0, .data.ptr = NULL};
    if (http->listener < 0) return;
    (void)epoll_ctl(http->epoll_fd, EPOLL_CTL_MOD, http->listener, &event);
    http->listen_again.ns = BEL_NEVER;
    if (is_wanted) return;
    http->listen_again = http->site.options.service->now->real;
    http->listen_again.ns += (uint64_t)LISTEN_AGAIN_MS * NS_PER_MS;
}

/* Sends 503 to a client, as far as its socket accepts that at once. */
static void send_refusal(struct bel_http *http, int fd)
{
    struct bel_http_page page =
        bel__http_problem_as(503, "FULL", "the server has too many HTTP connections: try again");
    struct bel_http_response response = {
        .terms = {.minor = 1, .is_last = true, .date = http->site.options.service->now->wall}};
    struct bel_buffer out;
    size_t work;
    bel__buffer_init(&out, REFUSAL_BYTES_MAX + 2 * BEL_HTTP_SCRATCH_BYTES);
    if (!page.is_lost &&
        bel__http_response_next(&response, &page, &http->scratch, &out, &work) == 0) {
        ssize_t ignored = send(fd, bel__buffer_data(&out), out.count, MSG_NOSIGNAL);
        (void)ignored;
        bel__metrics_count_http(http->site.options.metrics, page.status);
        bel__metrics_count_error(http->site.options.metrics, page.code);
    }
    bel__buffer_finish(&out);
    bel__http_page_finish(&page);
}

static void turn_away(struct bel_http *http, int fd)
{
    /* A socket that is closed with unread input is reset, and the response may be lost. */
    ssize_t ignored = recv(fd, http->bytes, sizeof http->bytes, 0);
    (void)ignored;
    send_refusal(http, fd);
    (void)close(fd);
}

/* Closes the oldest stranger that only waits. Returns false if there is none. */
static bool evict_stranger(struct bel_http *http)
{
    struct bel_link *link = bel__list_first(&http->strangers);
    for (int looks = 0; link != NULL && looks < EVICT_LOOKS_MAX; looks++) {
        struct bel_http_connection *connection =
            BEL_CONTAINER_OF(link, struct bel_http_connection, stranger);
        link = bel__list_next(&http->strangers, link);
        if (!bel__http_connection_is_waiting(connection)) continue;
        if (connection->state == BEL_HTTP_HEAD) send_refusal(http, connection->fd);
        bel__http_connection_close(connection);
        return true;
    }
    return false;
}

/* Closes the oldest connection with this deadline that only waits. Returns false if there is
 * none. */
static bool evict_timed(struct bel_http *http, enum bel_http_deadline deadline)
{
    struct bel_link *link = bel__list_first(&http->deadlines[deadline]);
    for (int looks = 0; link != NULL && looks < EVICT_LOOKS_MAX; looks++) {
        struct bel_http_connection *connection =
            BEL_CONTAINER_OF(link, struct bel_http_connection, timed);
        bool is_idle = deadline == BEL_HTTP_DEADLINE_IDLE;
        link = bel__list_next(&http->deadlines[deadline], link);
        if (is_idle && bel__http_connection_idle_ms(connection) < EVICT_MS) return false;
        if (!bel__http_connection_is_waiting(connection)) continue;
        if (!is_idle) send_refusal(http, connection->fd);
        bel__http_connection_close(connection);
        return true;
    }
    return false;
}

/* Closes a connection that only waits, to make place for another. Returns false if none does. */
static bool evict(struct bel_http *http)
{
    return evict_stranger(http) || evict_timed(http, BEL_HTTP_DEADLINE_HEAD) ||
           evict_timed(http, BEL_HTTP_DEADLINE_IDLE);
}

static void admit(struct bel_http *http, int fd, const struct bel_address *address)
{
    int on = 1;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    if (http->connections_count >= http->site.options.connections_max && !evict(http)) {
        turn_away(http, fd);
        return;
    }
    int err = bel__http_connection_open(http, fd, address);
    (void)err; /* the socket is closed */
}

static void accept_some(struct bel_http *http)
{
    for (int i = 0; i < ACCEPTS_MAX; i++) {
        struct bel_address address = {0};
        socklen_t bytes = sizeof address.socket;
        int fd = accept4(http->listener, (struct sockaddr *)&address.socket, &bytes,
                         SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0) {
            admit(http, fd, &address);
            continue;
        }
        bool is_short = errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS;
        if (is_short) set_listening(http, false);
        if (is_short || errno == EAGAIN) return;
    }
}

/* --- start and stop --- */

/* Opens the listening socket, and sets the port of the address. Returns a socket, or -1 and sets
 * errno. */
static int open_listener(struct bel_address *address)
{
    struct sockaddr *name = (struct sockaddr *)&address->socket;
    socklen_t bytes =
        name->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
    int on = 1;
    int fd = socket(name->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return -1;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, name, bytes) == 0 && listen(fd, SOMAXCONN) == 0 &&
        getsockname(fd, name, &bytes) == 0) {
        return fd;
    }
    int failed = errno;
    (void)close(fd);
    errno = failed;
    return -1;
}

static struct bel_http *create(const struct bel_http_options *options)
{
    struct bel_http *http = calloc(1, sizeof *http);
    if (http == NULL) return NULL;
    http->site.options = *options;
    http->listener = -1;
    http->listen_again.ns = BEL_NEVER;
    bel__list_init(&http->site.counting);
    bel__list_init(&http->connections);
    bel__list_init(&http->busy);
    bel__list_init(&http->strangers);
    bel__list_init(&http->crowd);
    for (unsigned i = 0; i < BEL_HTTP_DEADLINES; i++) {
        bel__list_init(&http->deadlines[i]);
    }
    bel__buffer_init(&http->scratch, BEL_HTTP_SCRATCH_BYTES);
    http->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    return http;
}

int bel__http_start(const struct bel_http_options *options, struct bel_http **out,
                    struct bel_why *why)
{
    bel__json_memory_start();
    struct bel_http *http = create(options);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
    if (http == NULL || bel__buffer_reserve(&http->scratch, BEL_HTTP_SCRATCH_BYTES) != 0) {
        bel__http_stop(http);
        return BEL_ENOMEM;
    }
    if (http->epoll_fd >= 0) http->listener = open_listener(&http->site.options.address);
    if (http->listener < 0 ||
        epoll_ctl(http->epoll_fd, EPOLL_CTL_ADD, http->listener, &event) != 0) {
        (void)bel__why_say(why, 0, "%s", strerrordesc_np(errno));
        bel__http_stop(http);
        return BEL_EIO;
    }
    *out = http;
    return 0;
}

uint16_t bel__http_port(const struct bel_http *http)
{
    return bel__address_port(&http->site.options.address);
}

int bel__http_fd(const struct bel_http *http)
{
    return http->epoll_fd;
}

void bel__http_drain(struct bel_http *http)
{
    http->site.is_draining = true;
    if (http->listener >= 0) (void)close(http->listener);
    http->listener = -1;
    http->listen_again.ns = BEL_NEVER;
}

bool bel__http_is_idle(const struct bel_http *http)
{
    struct bel_link *link = bel__list_first(&http->connections);
    for (; link != NULL; link = bel__list_next(&http->connections, link)) {
        if (bel__http_connection_is_working(
                BEL_CONTAINER_OF(link, struct bel_http_connection, all))) {
            return false;
        }
    }
    return true;
}

/* Frees the connections that were closed. */
static void free_closed(struct bel_http *http)
{
    struct bel_http_connection *connection = http->closed, *next;
    for (; connection != NULL; connection = next) {
        next = connection->next_closed;
        free(connection);
    }
    http->closed = NULL;
}

void bel__http_stop(struct bel_http *http)
{
    struct bel_link *link;
    if (http == NULL) return;
    http->site.is_stopping = true;
    while ((link = bel__list_first(&http->connections)) != NULL) {
        bel__http_connection_close(BEL_CONTAINER_OF(link, struct bel_http_connection, all));
    }
    free_closed(http);
    assert(bel__list_is_empty(&http->busy) && bel__list_is_empty(&http->site.counting));
    if (http->listener >= 0) (void)close(http->listener);
    if (http->epoll_fd >= 0) (void)close(http->epoll_fd);
    bel__buffer_finish(&http->scratch);
    bel__buffer_finish(&http->site.openapi);
    free(http);
}

/* --- running --- */

/* Goes on with the connections that are busy, until that was enough for a run. Those that become
 * busy, and those with more to do, come after all others. */
static void serve_busy(struct bel_http *http)
{
    struct bel_list busy;
    struct bel_link *link;
    bel__list_init(&busy);
    bel__list_splice(&busy, &http->busy);
    while (http->work < BEL_HTTP_RUN_BYTES_MAX && (link = bel__list_take_first(&busy)) != NULL) {
        bel__http_connection_step(BEL_CONTAINER_OF(link, struct bel_http_connection, busy));
    }
    bel__list_splice(&busy, &http->busy);
    bel__list_splice(&http->busy, &busy);
}

/* Ends the connections whose deadline has passed. A connection gets its next deadline from now on,
 * so this ends. */
static void end_late(struct bel_http *http)
{
    uint64_t now_ns = http->site.options.service->now->real.ns;
    for (unsigned i = 1; i < BEL_HTTP_DEADLINES; i++) {
        struct bel_link *link;
        while ((link = bel__list_first(&http->deadlines[i])) != NULL) {
            struct bel_http_connection *connection =
                BEL_CONTAINER_OF(link, struct bel_http_connection, timed);
            if (connection->deadline_end.ns > now_ns) break;
            bel__http_connection_late(connection);
        }
    }
    if (http->listen_again.ns <= now_ns) set_listening(http, true);
}

void bel__http_run(struct bel_http *http)
{
    struct epoll_event events[EVENTS_MAX];
    http->work = 0;
    bel__http_end_census(&http->site);
    serve_busy(http);
    int count = epoll_wait(http->epoll_fd, events, EVENTS_MAX, 0);
    bool has_new = false;
    for (int i = 0; i < count; i++) {
        if (events[i].data.ptr == NULL) {
            has_new = true;
        } else {
            bel__http_connection_event(events[i].data.ptr, events[i].events);
        }
    }
    if (has_new) accept_some(http); /* last: the others may be done, or known to wait */
    end_late(http);
    free_closed(http);
}

uint64_t bel__http_work(const struct bel_http *http)
{
    return http->work;
}

uint64_t bel__http_wait_ms(const struct bel_http *http)
{
    uint64_t end_ns = http->listen_again.ns, now_ns = http->site.options.service->now->real.ns;
    if (!bel__list_is_empty(&http->busy)) return 0;
    for (unsigned i = 1; i < BEL_HTTP_DEADLINES; i++) {
        struct bel_link *link = bel__list_first(&http->deadlines[i]);
        if (link == NULL) continue;
        uint64_t ns = BEL_CONTAINER_OF(link, struct bel_http_connection, timed)->deadline_end.ns;
        if (ns < end_ns) end_ns = ns;
    }
    if (end_ns == BEL_NEVER) return UINT64_MAX;
    return end_ns <= now_ns ? 0 : (end_ns - now_ns + NS_PER_MS - 1) / NS_PER_MS;
}
