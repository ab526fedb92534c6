/* SPDX-License-Identifier: MIT */

/*
 * The least that a durable server can do: it reads requests, appends their bytes to a preallocated
 * file, syncs once for all clients of a turn, and sends each request the same reply. It parses and
 * keeps nothing. Its throughput is an upper limit for any server of this design on this machine.
 *
 *     serve_floor PORT FILE     sync to disk before the reply
 *     serve_floor PORT          write nothing
 */
#include "harness.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    EVENTS_MAX = 256,
    FILES_MAX = 20000,
    BLOCK_BYTES = 4096,
    READ_BYTES = 64 << 10, /* per client and turn */
    TURN_BYTES = EVENTS_MAX * READ_BYTES,
    LOG_BYTES = 64 << 20,
    ANSWERS_MAX = 4096, /* per client and turn */
};

static const char answer[] = "$26\r\n00000000000000000000000000\r\n";

const struct engine_traits engine_traits = {.name = "serve_floor"};

static struct {
    int listener, poll, log; /* log: -1 if nothing is written */
    off_t written;
    char *bytes; /* bytes read in this turn */
    size_t count;
    int asked[EVENTS_MAX]; /* clients that wait for a reply */
    uint32_t requests[FILES_MAX];
} state;

static void open_log(const char *path)
{
    state.log = open(path, O_CREAT | O_RDWR | O_CLOEXEC | O_DIRECT, 0600);
    if (state.log < 0) bench_fail("cannot open the file with O_DIRECT");
    for (off_t at = 0; at < LOG_BYTES; at += TURN_BYTES) {
        if (pwrite(state.log, state.bytes, TURN_BYTES, at) != TURN_BYTES) {
            bench_fail("cannot fill the file");
        }
    }
    if (fsync(state.log) != 0) bench_fail("cannot sync");
}

static void watch(int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    if (epoll_ctl(state.poll, EPOLL_CTL_ADD, fd, &event) != 0) bench_fail("epoll_ctl");
}

static void listen_at(uint16_t port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    int one = 1;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    state.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)setsockopt(state.listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(state.listener, (struct sockaddr *)&address, sizeof address) != 0 ||
        listen(state.listener, SOMAXCONN) != 0) {
        bench_fail("cannot listen");
    }
    watch(state.listener);
}

static void accept_one(void)
{
    int one = 1, fd = accept(state.listener, NULL, NULL);
    if (fd < 0 || fd >= FILES_MAX) bench_fail("cannot accept");
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    watch(fd);
}

/* Reads what a client has sent, and counts its requests. Returns false if it has disconnected. */
static bool take(int fd)
{
    char *at = state.bytes + state.count;
    ssize_t bytes = read(fd, at, READ_BYTES);
    if (bytes <= 0) {
        (void)close(fd);
        return false;
    }
    const char *end = at + bytes;
    for (const char *head = at; (head = memchr(head, '*', (size_t)(end - head))) != NULL; head++) {
        state.requests[fd]++;
    }
    state.count += (size_t)bytes;
    return true;
}

static void commit(void)
{
    size_t bytes = (state.count + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES;
    if (state.written + (off_t)bytes > LOG_BYTES) state.written = 0;
    if (pwrite(state.log, state.bytes, bytes, state.written) != (ssize_t)bytes ||
        fdatasync(state.log) != 0) {
        bench_fail("cannot write");
    }
    state.written += (off_t)bytes;
}

static void reply(int fd, const char *answers)
{
    size_t bytes = state.requests[fd] * (sizeof answer - 1);
    if (state.requests[fd] > ANSWERS_MAX) bench_fail("too many requests at once");
    state.requests[fd] = 0;
    if (write(fd, answers, bytes) != (ssize_t)bytes) bench_fail("the socket of a client is full");
}

static void turn(const char *answers)
{
    struct epoll_event events[EVENTS_MAX];
    unsigned asked = 0;
    int count = epoll_wait(state.poll, events, EVENTS_MAX, -1);
    state.count = 0;
    for (int i = 0; i < count; i++) {
        int fd = events[i].data.fd;
        if (fd == state.listener) {
            accept_one();
        } else if (take(fd)) {
            state.asked[asked++] = fd;
        }
    }
    if (asked > 0 && state.log >= 0) commit();
    for (unsigned i = 0; i < asked; i++) {
        reply(state.asked[i], answers);
    }
}

int main(int argc, char **argv)
{
    static char answers[ANSWERS_MAX * sizeof answer];
    if (argc != 2 && argc != 3) bench_fail("usage: serve_floor PORT [FILE]");
    state.bytes = aligned_alloc(BLOCK_BYTES, TURN_BYTES);
    state.poll = epoll_create1(EPOLL_CLOEXEC);
    if (state.bytes == NULL || state.poll < 0) bench_fail("out of memory");
    memset(state.bytes, 0, TURN_BYTES);
    for (unsigned i = 0; i < ANSWERS_MAX; i++) {
        memcpy(answers + i * (sizeof answer - 1), answer, sizeof answer - 1);
    }
    state.log = -1;
    if (argc == 3) open_log(argv[2]);
    listen_at((uint16_t)strtoul(argv[1], NULL, 10));
    for (;;) {
        turn(answers);
    }
}
