/* SPDX-License-Identifier: MIT */

/*
 * One thread, one epoll, nonblocking sockets. A connection has an output buffer, an input buffer
 * and a ring buffer of its unanswered requests; replies come in the same order.
 *
 *     turn:  wait -> read a socket -> for each complete reply: call the step's function, which may
 *            add requests to the output -> write the output at once -> the next socket
 */
#include "serve.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    EVENTS_MAX = 256,
    READ_BYTES = 64 << 10, /* reserved in the input buffer before a read */
};

const struct serve_protocol *serve_protocol;
struct serve_connection *serve_connections;
uint32_t serve_connections_count;

static int poll_fd = -1;

static uint64_t read_clock(clockid_t clock)
{
    struct timespec now;
    (void)clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * (uint64_t)SERVE_SECOND_NS + (uint64_t)now.tv_nsec;
}

uint64_t serve_mono_ns(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

int64_t serve_wall_ns(void)
{
    return (int64_t)read_clock(CLOCK_REALTIME);
}

/* --- bytes --- */

void serve_reserve(struct serve_buffer *buffer, size_t bytes)
{
    if (buffer->room - buffer->count >= bytes) return;
    size_t room = buffer->room > 0 ? 2 * buffer->room : 4096;
    while (room - buffer->count < bytes) {
        room *= 2;
    }
    buffer->data = realloc(buffer->data, room);
    if (buffer->data == NULL) bench_fail("out of memory");
    buffer->room = room;
}

/* Moves the unused bytes to the beginning of the buffer. */
static void compact(struct serve_buffer *buffer)
{
    if (buffer->used == 0) return;
    buffer->count -= buffer->used;
    if (buffer->count > 0) memmove(buffer->data, buffer->data + buffer->used, buffer->count);
    buffer->used = 0;
}

void serve_put_digits(struct serve_buffer *buffer, uint64_t number, unsigned digits)
{
    char text[20];
    for (unsigned i = digits; i > 0; i--, number /= 10) {
        text[i - 1] = (char)('0' + number % 10);
    }
    serve_put(buffer, text, digits);
}

void serve_put_number(struct serve_buffer *buffer, uint64_t number)
{
    unsigned digits = 1;
    for (uint64_t rest = number; rest >= 10; rest /= 10) {
        digits++;
    }
    serve_put_digits(buffer, number, digits);
}

void serve_put_payload(struct serve_buffer *buffer, int64_t due_ns)
{
    static const char rest[SERVE_PAYLOAD_BYTES - SERVE_DUE_DIGITS + 1] =
        " and 81 bytes more, of what a worker would have to know to do whatever it is for.";
    serve_put_digits(buffer, (uint64_t)due_ns, SERVE_DUE_DIGITS);
    serve_put(buffer, rest, sizeof rest - 1);
}

int64_t serve_read_due(const char *payload)
{
    int64_t due_ns = 0;
    for (unsigned i = 0; i < SERVE_DUE_DIGITS; i++) {
        due_ns = due_ns * 10 + (payload[i] - '0');
    }
    return due_ns;
}

void serve_print_id(uint64_t number, char out[SERVE_ID_BYTES])
{
    static const char digits[] = "0123456789abcdef";
    memcpy(out, "job-", 4);
    uint64_t mixed = number * UINT64_C(0x9e3779b97f4a7c15);
    for (int i = SERVE_ID_BYTES - 1; i >= 4; i--, mixed >>= 4) {
        out[i] = digits[mixed & 15];
    }
}

/* --- connections --- */

int serve_dial(uint16_t port, int receive_bytes)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) bench_fail("cannot create a socket: too many open files?");
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (receive_bytes > 0) {
        (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof receive_bytes);
    }
    if (connect(fd, (struct sockaddr *)&address, sizeof address) != 0) {
        (void)close(fd);
        return -1;
    }
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return fd;
}

static void watch(struct serve_connection *connection, int operation, bool is_full)
{
    struct epoll_event event = {.events = EPOLLIN | (is_full ? (uint32_t)EPOLLOUT : 0)};
    event.data.u32 = connection->index;
    if (epoll_ctl(poll_fd, operation, connection->fd, &event) != 0) bench_fail("epoll_ctl");
    connection->is_watched = is_full;
}

static void open_one(struct serve_connection *connection, uint32_t index, uint16_t port)
{
    *connection = (struct serve_connection){.index = index, .fd = serve_dial(port, 0)};
    if (connection->fd < 0) bench_fail("cannot connect");
    connection->requests_room = 64;
    connection->requests = bench_alloc(64, sizeof *connection->requests);
    serve_reserve(&connection->in, READ_BYTES);
    watch(connection, EPOLL_CTL_ADD, false);
}

static void close_one(struct serve_connection *connection)
{
    (void)close(connection->fd);
    free(connection->requests);
    free(connection->in.data);
    free(connection->out.data);
}

void serve_connect(uint16_t port, uint32_t count)
{
    if (poll_fd < 0) poll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (poll_fd < 0) bench_fail("epoll_create1");
    while (serve_connections_count > count) {
        close_one(&serve_connections[--serve_connections_count]);
    }
    if (count == 0) return;
    serve_connections = realloc(serve_connections, count * sizeof *serve_connections);
    if (serve_connections == NULL) bench_fail("out of memory");
    for (; serve_connections_count < count; serve_connections_count++) {
        open_one(&serve_connections[serve_connections_count], serve_connections_count, port);
    }
}

static void grow_requests(struct serve_connection *connection)
{
    uint32_t room = 2 * connection->requests_room;
    struct serve_request *requests = malloc(room * sizeof *requests);
    if (requests == NULL) bench_fail("out of memory");
    for (uint32_t i = 0; i < connection->waiting; i++) {
        uint32_t from = (connection->first + i) & (connection->requests_room - 1);
        requests[i] = connection->requests[from];
    }
    free(connection->requests);
    connection->requests = requests;
    connection->requests_room = room;
    connection->first = 0;
}

void serve_expect(struct serve_connection *connection, const struct serve_request *request)
{
    if (connection->waiting == connection->requests_room) grow_requests(connection);
    uint32_t index = (connection->first + connection->waiting) & (connection->requests_room - 1);
    connection->requests[index] = *request;
    connection->waiting++;
}

/* --- a turn --- */

void serve_flush(struct serve_connection *connection)
{
    struct serve_buffer *out = &connection->out;
    while (out->used < out->count) {
        ssize_t bytes = send(connection->fd, out->data + out->used, out->count - out->used,
                             MSG_DONTWAIT | MSG_NOSIGNAL);
        if (bytes < 0 && errno == EAGAIN) break;
        if (bytes < 0) bench_fail("the server closed the connection during a write");
        out->used += (size_t)bytes;
    }
    bool is_full = out->used < out->count;
    compact(out);
    if (is_full != connection->is_watched) watch(connection, EPOLL_CTL_MOD, is_full);
}

static void take_answers(struct serve_connection *connection, serve_answered_fn *answered)
{
    static struct serve_answer answer;
    struct serve_buffer *in = &connection->in;
    while (connection->waiting > 0 && in->used < in->count) {
        struct serve_request request = connection->requests[connection->first];
        answer.is_refused = false;
        answer.id_bytes = answer.count = 0;
        size_t bytes =
            serve_protocol->read(in->data + in->used, in->count - in->used, &request, &answer);
        if (bytes == 0) break;
        connection->first = (connection->first + 1) & (connection->requests_room - 1);
        connection->waiting--;
        answered(connection, &request, &answer); /* may read from the input buffer */
        in->used += bytes;
    }
    if (connection->waiting == 0 && in->used < in->count) bench_fail("a reply without a request");
    compact(in);
}

static void receive(struct serve_connection *connection, serve_answered_fn *answered)
{
    struct serve_buffer *in = &connection->in;
    serve_reserve(in, READ_BYTES);
    ssize_t bytes = recv(connection->fd, in->data + in->count, in->room - in->count, MSG_DONTWAIT);
    if (bytes < 0 && errno == EAGAIN) return;
    if (bytes <= 0) bench_fail("the server closed the connection");
    in->count += (size_t)bytes;
    take_answers(connection, answered);
}

void serve_turn(uint64_t wait_ns, serve_answered_fn *answered)
{
    struct epoll_event events[EVENTS_MAX];
    struct timespec wait = {(time_t)(wait_ns / (uint64_t)SERVE_SECOND_NS),
                            (long)(wait_ns % (uint64_t)SERVE_SECOND_NS)};
    int count = epoll_pwait2(poll_fd, events, EVENTS_MAX, &wait, NULL);
    if (count < 0 && errno != EINTR) bench_fail("epoll_pwait2");
    for (int i = 0; i < count; i++) {
        struct serve_connection *connection = &serve_connections[events[i].data.u32];
        if (events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) receive(connection, answered);
        serve_flush(connection);
    }
}
