/* SPDX-License-Identifier: MIT */

/*
 * Connects a socket to an address: the path of a Unix socket, or a host and a port. A host may
 * resolve to several addresses. They are tried in turn until one connects, under one deadline.
 */
#include "client/client.h"

#include "core/parse.h"
#include "core/units.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    HOST_BYTES = 256,
    PORT_BYTES = 16,
    ADDRESSES_MAX = 16, /* tried per host name */
};

#define PORT_DEFAULT "7878"

struct bel_mono bel__client_deadline(const struct bel_clock *clock, uint32_t timeout_ms)
{
    struct bel_mono deadline;
    struct bel_mono now = bel_clock_mono(clock);
    int err = bel_mono_add(now, (uint64_t)timeout_ms * NS_PER_MS, &deadline);
    return err ? now : deadline;
}

int bel__client_wait(int fd, short events, const struct bel_clock *clock, struct bel_mono deadline,
                     short *out)
{
    for (;;) {
        struct pollfd poller = {.fd = fd, .events = events};
        struct bel_mono now = bel_clock_mono(clock);
        uint64_t left =
            deadline.ns > now.ns ? (deadline.ns - now.ns + NS_PER_MS - 1) / NS_PER_MS : 0;
        int ready = poll(&poller, 1, left < INT32_MAX ? (int)left : INT32_MAX);
        if (ready > 0) {
            *out = poller.revents;
            return 0;
        }
        if (ready < 0 && errno != EINTR) return BEL_EIO;
        if (ready == 0 && left < INT32_MAX) return BEL_EBUSY;
    }
}

int bel__client_say(struct bel_client_why *why, int err, const char *format, ...)
{
    va_list args;
    if (why == NULL) return err;
    va_start(args, format);
    (void)vsnprintf(why->text, sizeof why->text, format, args);
    va_end(args);
    return err;
}

static int say_errno(struct bel_client_why *why, const char *address, int number)
{
    char text[128];
    return bel__client_say(why, BEL_EIO, "cannot reach %s: %s", address,
                           strerror_r(number, text, sizeof text));
}

/* Connects a new socket to one address. Returns 0 and sets `*out`; BEL_EBUSY if the deadline has
 * passed; or BEL_EIO and sets errno. */
static int dial_one(const struct sockaddr *address, socklen_t bytes, const struct bel_clock *clock,
                    struct bel_mono deadline, int *out)
{
    int one = 1, number = 0;
    socklen_t number_bytes = sizeof number;
    short ready;
    int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return BEL_EIO;
    int err = 0;
    if (connect(fd, address, bytes) != 0) {
        number = errno;
        /* A Unix socket with a full backlog fails with EAGAIN instead, which is an error here. */
        if (number == EINPROGRESS) {
            err = bel__client_wait(fd, POLLOUT, clock, deadline, &ready);
            if (err == 0) (void)getsockopt(fd, SOL_SOCKET, SO_ERROR, &number, &number_bytes);
        }
        if (err == 0 && number != 0) err = BEL_EIO;
    }
    if (err) {
        (void)close(fd);
        errno = number;
        return err;
    }
    if (address->sa_family != AF_UNIX) {
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    }
    *out = fd;
    return 0;
}

static int dial_path(const char *path, const struct bel_clock *clock, struct bel_mono deadline,
                     int *out, struct bel_client_why *why)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path) {
        return bel__client_say(why, BEL_EINVAL, "socket path is too long: %s", path);
    }
    socklen_t bytes = sizeof address;
    memcpy(address.sun_path, path, strlen(path) + 1);
    if (path[0] == '@') { /* a name in the abstract namespace, which begins with a 0 */
        address.sun_path[0] = '\0';
        bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
    }
    int err = dial_one((const struct sockaddr *)&address, bytes, clock, deadline, out);
    if (err == BEL_EBUSY) return bel__client_say(why, err, "no answer from %s", path);
    return err ? say_errno(why, path, errno) : 0;
}

/* Splits "host:port", "[host]:port" or "host"; and ":port" or "port", which are of this machine. */
static int split(const char *address, char host[HOST_BYTES], char port[PORT_BYTES])
{
    char local[HOST_BYTES];
    uint32_t number;
    const char *digits = address[0] == ':' ? address + 1 : address;
    if (digits[0] != '\0' && strspn(digits, "0123456789") == strlen(digits)) {
        (void)snprintf(local, sizeof local, "127.0.0.1:%s", digits);
        address = local;
    }
    const char *start = address, *end = address + strlen(address), *colon = strrchr(address, ':');
    if (address[0] == '[') {
        const char *bracket = strchr(address, ']');
        if (bracket == NULL || (bracket[1] != '\0' && bracket[1] != ':')) return BEL_EINVAL;
        start = address + 1;
        end = bracket;
        colon = bracket[1] == ':' ? bracket + 1 : NULL;
    } else if (colon != NULL) {
        end = colon;
    }
    if (end == start || end - start >= HOST_BYTES) return BEL_EINVAL;
    (void)snprintf(host, HOST_BYTES, "%.*s", (int)(end - start), start);
    (void)snprintf(port, PORT_BYTES, "%s", colon != NULL ? colon + 1 : PORT_DEFAULT);
    return bel__parse_u32(port, strlen(port), 1, UINT16_MAX, &number) == 0 ? 0 : BEL_EINVAL;
}

int bel__client_dial(const char *address, const struct bel_clock *clock, struct bel_mono deadline,
                     int *out_fd, struct bel_client_why *why)
{
    char host[HOST_BYTES], port[PORT_BYTES];
    struct addrinfo *found, wanted = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    if (strchr(address, '/') != NULL) return dial_path(address, clock, deadline, out_fd, why);
    if (split(address, host, port) != 0) {
        return bel__client_say(why, BEL_EINVAL, "not an address: '%s', expected host:port",
                               address);
    }
    int problem = getaddrinfo(host, port, &wanted, &found);
    if (problem == EAI_MEMORY) return bel__client_say(why, BEL_ENOMEM, "out of memory");
    if (problem != 0) {
        return bel__client_say(why, BEL_ENOTFOUND, "cannot find %s: %s", host,
                               gai_strerror(problem));
    }
    int err = BEL_EIO, tried = 0;
    for (const struct addrinfo *at = found; at != NULL && tried < ADDRESSES_MAX;
         at = at->ai_next, tried++) {
        err = dial_one(at->ai_addr, at->ai_addrlen, clock, deadline, out_fd);
        if (err == 0) break;
    }
    int number = errno;
    char tried_address[HOST_BYTES + PORT_BYTES + 4]; /* with the port, also if it is the default */
    bool is_v6 = strchr(host, ':') != NULL;
    (void)snprintf(tried_address, sizeof tried_address, "%s%s%s:%s", is_v6 ? "[" : "", host,
                   is_v6 ? "]" : "", port);
    freeaddrinfo(found);
    if (err == BEL_EBUSY) return bel__client_say(why, err, "no answer from %s", tried_address);
    return err ? say_errno(why, tried_address, number) : 0;
}
