/* SPDX-License-Identifier: MIT */

/*
 * Keep-alive probes find a peer that has vanished while nothing is sent to it: a connection that
 * only waits for messages. A peer that is connected but silent is found by the deadlines of calls.
 */
#include "redis/link/stream.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    KEEPALIVE_IDLE_S = 15,
    KEEPALIVE_INTERVAL_S = 5,
    KEEPALIVE_PROBES = 3,
};

void bel__stream_init(struct bel_stream *stream)
{
    *stream = (struct bel_stream){.fd = -1};
}

int bel__stream_path(const char *path, struct bel_address *out)
{
    struct bel_address address = {.socket_bytes = sizeof(struct sockaddr_un)};
    struct sockaddr_un *local = (struct sockaddr_un *)&address.socket;
    size_t bytes = strlen(path) + 1;
    if (bytes > sizeof local->sun_path) return BEL_EINVAL;
    local->sun_family = AF_UNIX;
    memcpy(local->sun_path, path, bytes);
    *out = address;
    return 0;
}

static int say_errno(struct bel_why *why, const char *what, int number)
{
    char text[128];
    return bel__why_say(why, BEL_EIO, "%s: %s", what, strerror_r(number, text, sizeof text));
}

static void set_option(int fd, int level, int name, int value)
{
    (void)setsockopt(fd, level, name, &value, sizeof value); /* works without, only slower */
}

int bel__stream_connect(struct bel_stream *stream, const struct bel_address *address,
                        struct bel_why *why)
{
    assert(stream->fd < 0);
    int fd = socket(address->socket.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return say_errno(why, "cannot connect", errno);
    if (address->socket.ss_family != AF_UNIX) {
        set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
        set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
        set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_IDLE_S);
        set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_INTERVAL_S);
        set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, KEEPALIVE_PROBES);
    }
    const struct sockaddr *to = (const struct sockaddr *)&address->socket;
    if (connect(fd, to, address->socket_bytes) != 0 && errno != EINPROGRESS) {
        int number = errno; /* EAGAIN: the backlog of a Unix socket is full */
        (void)close(fd);
        return say_errno(why, "cannot connect", number);
    }
    stream->fd = fd;
    return 0;
}

int bel__stream_connected(struct bel_stream *stream, struct bel_why *why)
{
    int number = 0;
    socklen_t bytes = sizeof number;
    if (getsockopt(stream->fd, SOL_SOCKET, SO_ERROR, &number, &bytes) != 0) number = errno;
    return number == 0 ? 0 : say_errno(why, "cannot connect", number);
}

int bel__stream_secure(struct bel_stream *stream, const struct bel_tls *tls, const char *host,
                       struct bel_why *why)
{
    assert(stream->fd >= 0 && stream->tls == NULL);
    return bel__tls_begin(tls, stream->fd, host, &stream->tls, why);
}

int bel__stream_handshake(struct bel_stream *stream, const char *host, struct bel_why *why)
{
    assert(stream->tls != NULL);
    return bel__tls_handshake(stream->tls, host, why);
}

bool bel__stream_wants_write(const struct bel_stream *stream)
{
    return stream->tls != NULL && bel__tls_wants_write(stream->tls);
}

int bel__stream_read(struct bel_stream *stream, void *out, size_t room, size_t *out_count,
                     struct bel_why *why)
{
    ssize_t got;
    assert(room > 0);
    if (stream->tls != NULL) return bel__tls_read(stream->tls, out, room, out_count, why);
    do {
        got = recv(stream->fd, out, room, 0);
    } while (got < 0 && errno == EINTR);
    if (got == 0) return bel__why_say(why, BEL_ECLOSED, "the server has closed the connection");
    if (got < 0 && errno == EAGAIN) return BEL_EBUSY;
    if (got < 0) return say_errno(why, "cannot receive", errno);
    *out_count = (size_t)got;
    return 0;
}

int bel__stream_write(struct bel_stream *stream, const struct iovec *parts, size_t parts_count,
                      size_t *out_count, struct bel_why *why)
{
    struct iovec copies[BEL_STREAM_PARTS_MAX]; /* a message takes parts that are not const */
    ssize_t sent;
    assert(parts_count > 0 && parts_count <= BEL_STREAM_PARTS_MAX);
    if (stream->tls != NULL) {
        return bel__tls_write(stream->tls, parts, parts_count, out_count, why);
    }
    memcpy(copies, parts, parts_count * sizeof parts[0]);
    struct msghdr message = {.msg_iov = copies, .msg_iovlen = parts_count};
    do {
        sent = sendmsg(stream->fd, &message, MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    if (sent < 0 && errno == EAGAIN) return BEL_EBUSY;
    if (sent < 0) return say_errno(why, "cannot send", errno);
    assert(sent > 0);
    *out_count = (size_t)sent;
    return 0;
}

int bel__stream_flush(struct bel_stream *stream, struct bel_why *why)
{
    return stream->tls == NULL ? 0 : bel__tls_flush(stream->tls, why);
}

void bel__stream_close(struct bel_stream *stream)
{
    bel__tls_end(stream->tls);
    stream->tls = NULL;
    if (stream->fd >= 0) (void)close(stream->fd);
    stream->fd = -1;
}
