/* SPDX-License-Identifier: MIT */

/* Accepts clients until the loop drains. */
#include "server/loop_state.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    BACKLOG = 1024,
};

static void on_connection(uv_stream_t *listener, int status)
{
    struct bel_loop *loop = listener->data;
    if (status != 0) {
        BEL_LOG(loop->options.log, BEL_LOG_WARN, "cannot accept a connection",
                BEL_LOG_TEXT("why", uv_strerror(status)));
        return;
    }
    bel__connection_accept(loop, listener);
}

int bel__loop_listen(struct bel_loop *loop, struct bel_address *address, struct bel_why *why)
{
    uv_tcp_t *tcp = &loop->listener;
    struct sockaddr *socket = (struct sockaddr *)&address->socket;
    int bytes = sizeof address->socket;
    int status = uv_tcp_init(&loop->uv, tcp);
    if (status != 0) return bel__why_say(why, BEL_EIO, "%s", uv_strerror(status));
    tcp->data = loop;
    assert(loop->state == BEL_LOOP_OPENED);
    status = uv_tcp_bind(tcp, socket, 0);
    if (status == 0) status = uv_listen((uv_stream_t *)tcp, BACKLOG, on_connection);
    if (status == 0) status = uv_tcp_getsockname(tcp, socket, &bytes);
    if (status != 0) return bel__why_say(why, BEL_EIO, "%s", uv_strerror(status));
    loop->state = BEL_LOOP_LISTENING;
    return 0;
}

int bel__loop_probe(const struct bel_address *address, struct bel_why *why)
{
    const int on = 1;
    int fd = socket(address->socket.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int number = fd < 0 ? errno : 0;
    if (fd >= 0) {
        (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on); /* as uv_tcp_bind() does */
        const struct sockaddr *name = (const struct sockaddr *)&address->socket;
        if (bind(fd, name, address->socket_bytes) != 0) number = errno;
        (void)close(fd);
    }
    return number == 0 ? 0 : bel__why_say(why, BEL_EIO, "%s", uv_strerror(-number));
}
