/* SPDX-License-Identifier: MIT */

/*
 * A connection is a socket with a session. How it ends:
 *
 *     the client closes   its requests are answered; a client that only waits is closed at once
 *     the session closes  the last reply is written and the socket is shut down for writing; input
 *                         is discarded until the client closes, within limits. Otherwise the kernel
 *                         would reset the connection, and the last reply could be lost
 *     no key in time      it is closed at once; also if it has no key, and a new client needs its
 *                         place
 *     the loop drains     as when the session closes, once no request is in flight
 *
 * Memory: the loop has one read buffer. Output is written directly from the session as far as the
 * socket accepts it. The rest is copied in blocks, one at a time, which only slow clients need.
 */
#include "server/loop_state.h"

#include "core/units.h"

#include <assert.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

enum {
    BLOCK_BYTES = 16 << 10,
    KEEPALIVE_S = 60,
    LINGER_TICK_MS = 50,
    DRAIN_LINGER_MS = 500,       /* limit for idle clients while draining */
    DISCARD_BYTES_MAX = 1 << 20, /* of input after the end of the session */
    EVICT_LOOKS_MAX = 64,        /* clients without a key that are looked at for one that waits */
};

static char full_text[] = "-ERR max number of clients reached\r\n";

struct bel_connection_block {
    uv_write_t write;
    size_t count;
    char bytes[BLOCK_BYTES];
};

static uv_stream_t *stream_of(struct bel_connection *connection)
{
    return (uv_stream_t *)&connection->tcp;
}

/* --- closing --- */

static void connection_free(struct bel_connection *connection)
{
    assert(connection->session == NULL && connection->caller.under_way == 0);
    free(connection->block);
    free(connection);
}

/* The last request of the connection is done. */
static void on_left(struct bel_caller *caller)
{
    struct bel_connection *connection = BEL_CONTAINER_OF(caller, struct bel_connection, caller);
    if (connection->state == BEL_CONNECTION_CLOSED) {
        connection_free(connection);
    } else {
        assert(connection->state == BEL_CONNECTION_CLOSING);
        connection->state = BEL_CONNECTION_LEFT;
    }
}

static void on_closed(uv_handle_t *handle)
{
    struct bel_connection *connection = handle->data;
    if (connection->state == BEL_CONNECTION_LEFT) {
        connection_free(connection);
    } else {
        assert(connection->state == BEL_CONNECTION_CLOSING);
        connection->state = BEL_CONNECTION_CLOSED;
    }
}

void bel__connection_close(struct bel_connection *connection)
{
    struct bel_loop *loop = connection->loop;
    if (connection->state >= BEL_CONNECTION_CLOSING) return;
    assert(connection->session != NULL && loop->options.metrics->clients > 0);
    connection->state = BEL_CONNECTION_CLOSING;
    bel__link_remove(&connection->all);
    if (bel__link_is_linked(&connection->active)) bel__link_remove(&connection->active);
    if (bel__link_is_linked(&connection->lingering)) bel__link_remove(&connection->lingering);
    if (bel__link_is_linked(&connection->timed)) bel__link_remove(&connection->timed);
    if (bel__link_is_linked(&connection->crowded)) bel__link_remove(&connection->crowded);
    loop->options.metrics->clients--;
    uv_close((uv_handle_t *)&connection->tcp, on_closed);
    bel__session_destroy(connection->session);
    connection->session = NULL;
    bel__caller_leave(&connection->caller, on_left);
}

/* Closes the connections whose linger time is over. */
static void close_lingering(struct bel_loop *loop, struct bel_mono now)
{
    struct bel_link *link;
    while ((link = bel__list_first(&loop->lingering)) != NULL) {
        struct bel_connection *connection =
            BEL_CONTAINER_OF(link, struct bel_connection, lingering);
        if (connection->linger_end.ns > now.ns) return;
        if (connection->state != BEL_CONNECTION_SHUT) loop->options.metrics->dropped++;
        bel__connection_close(connection);
    }
    (void)uv_timer_stop(&loop->linger);
}

static void on_linger_tick(uv_timer_t *timer)
{
    struct bel_loop *loop = timer->data;
    close_lingering(loop, bel_clock_mono(bel_clock_system()));
}

static void linger(struct bel_connection *connection)
{
    struct bel_loop *loop = connection->loop;
    assert(connection->state < BEL_CONNECTION_CLOSING);
    if (bel__link_is_linked(&connection->lingering)) return;
    connection->linger_end = loop->options.clock->now.real;
    bool is_idle = loop->state == BEL_LOOP_DRAINING && connection->state == BEL_CONNECTION_SHUT;
    connection->linger_end.ns += (uint64_t)(is_idle ? DRAIN_LINGER_MS : BEL_LINGER_MS) * NS_PER_MS;
    if (bel__list_is_empty(&loop->lingering)) {
        (void)uv_timer_start(&loop->linger, on_linger_tick, LINGER_TICK_MS, LINGER_TICK_MS);
    }
    bel__list_append(&loop->lingering, &connection->lingering);
}

/* --- clients without a key --- */

static void on_strangers_time(uv_timer_t *timer)
{
    struct bel_loop *loop = timer->data;
    bel__connection_check_strangers(loop, bel_clock_mono(bel_clock_system()));
}

static struct bel_connection *first_timed(const struct bel_list *list)
{
    struct bel_link *link = bel__list_first(list);
    return link != NULL ? BEL_CONTAINER_OF(link, struct bel_connection, timed) : NULL;
}

/* Sets the timer to the first deadline or end of a delay. */
static void time_strangers(struct bel_loop *loop, struct bel_mono now)
{
    const struct bel_connection *stranger = first_timed(&loop->strangers);
    const struct bel_connection *muted = first_timed(&loop->muted);
    uint64_t end_ns = BEL_NEVER;
    if (stranger != NULL) end_ns = bel__session_auth_end(stranger->session).ns;
    if (muted != NULL && bel__session_mute_end(muted->session).ns < end_ns) {
        end_ns = bel__session_mute_end(muted->session).ns;
    }
    if (end_ns == BEL_NEVER) {
        (void)uv_timer_stop(&loop->strangers_timer);
        return;
    }
    uint64_t wait_ns = end_ns > now.ns ? end_ns - now.ns : 0;
    (void)uv_timer_start(&loop->strangers_timer, on_strangers_time, wait_ns / NS_PER_MS + 1, 0);
}

void bel__connection_check_strangers(struct bel_loop *loop, struct bel_mono now)
{
    struct bel_connection *connection;
    while ((connection = first_timed(&loop->strangers)) != NULL &&
           bel__session_auth_end(connection->session).ns <= now.ns) {
        loop->options.metrics->strangers_dropped++;
        bel__connection_close(connection);
    }
    while ((connection = first_timed(&loop->muted)) != NULL &&
           bel__session_mute_end(connection->session).ns <= now.ns) {
        bel__link_remove(&connection->timed);
        connection->is_muted = false;
        bel__connection_activate(connection);
    }
    time_strangers(loop, now);
}

/* Moves a connection into the list of its deadline, after it was accepted or stepped. A client that
 * sends RESET is without a key again. */
static void sort_stranger(struct bel_connection *connection)
{
    struct bel_loop *loop = connection->loop;
    struct bel_mono now = loop->options.clock->now.real;
    bool is_stranger = bel__session_auth_end(connection->session).ns != BEL_NEVER;
    bool is_muted = bel__session_mute_end(connection->session).ns > now.ns;
    bool was_timed = bel__link_is_linked(&connection->timed);
    if (was_timed == (is_stranger || is_muted) && connection->is_muted == is_muted) return;
    if (was_timed) bel__link_remove(&connection->timed);
    connection->is_muted = is_muted;
    if (is_stranger || is_muted) {
        bel__list_append(is_muted ? &loop->muted : &loop->strangers, &connection->timed);
    }
    time_strangers(loop, now);
}

/* Returns whether bytes of the client wait to be read. */
static bool has_input(struct bel_connection *connection)
{
    int fd;
    if (uv_fileno((uv_handle_t *)&connection->tcp, &fd) != 0) return false;
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
    return poll(&poll_fd, 1, 0) == 1 && (poll_fd.revents & POLLIN) != 0;
}

/* Closes the oldest client of a list that has no key and waits. Returns false if there is none. */
static bool evict_from(struct bel_list *list)
{
    struct bel_link *link = bel__list_first(list);
    for (int looks = 0; link != NULL && looks < EVICT_LOOKS_MAX; looks++) {
        struct bel_connection *connection = BEL_CONTAINER_OF(link, struct bel_connection, timed);
        link = bel__list_next(list, link);
        bool is_stranger = bel__session_auth_end(connection->session).ns != BEL_NEVER;
        if (!is_stranger || connection->had_input || has_input(connection)) continue;
        uv_buf_t part = uv_buf_init(full_text, sizeof full_text - 1);
        if (connection->block == NULL) (void)uv_try_write(stream_of(connection), &part, 1);
        connection->loop->options.metrics->strangers_dropped++;
        bel__connection_close(connection);
        return true;
    }
    return false;
}

/* Returns whether there is place for one more client, perhaps that of one without a key. */
static bool make_place(struct bel_loop *loop)
{
    if (loop->options.metrics->clients < loop->options.clients_max) return true;
    return evict_from(&loop->strangers) || evict_from(&loop->muted);
}

static void on_shut(uv_shutdown_t *request, int status)
{
    (void)request;
    (void)status; /* the client will close, or the linger time will end */
}

static void set_reading(struct bel_connection *connection, bool is_wanted);

/* Shuts down the socket for writing, and waits for the client to close. */
static void shut(struct bel_connection *connection)
{
    bool has_ended = connection->state == BEL_CONNECTION_ENDED;
    assert(connection->state < BEL_CONNECTION_SHUT && connection->block == NULL);
    connection->state = BEL_CONNECTION_SHUT;
    if (has_ended || uv_shutdown(&connection->shutdown, stream_of(connection), on_shut) != 0) {
        bel__connection_close(connection);
        return;
    }
    linger(connection);
    set_reading(connection, true);
}

/* --- reading --- */

static void on_room(uv_handle_t *handle, size_t wanted, uv_buf_t *out)
{
    struct bel_connection *connection = handle->data;
    size_t room = connection->state == BEL_CONNECTION_SHUT ? BEL_LOOP_READ_BYTES
                                                           : bel__session_room(connection->session);
    (void)wanted;
    if (room > BEL_LOOP_READ_BYTES) room = BEL_LOOP_READ_BYTES;
    *out = uv_buf_init(connection->loop->bytes, (unsigned)room);
}

static void on_read(uv_stream_t *stream, ssize_t bytes, const uv_buf_t *buffer);

static void set_reading(struct bel_connection *connection, bool is_wanted)
{
    assert(connection->state < BEL_CONNECTION_CLOSING);
    if (connection->is_reading == is_wanted) return;
    connection->is_reading = is_wanted;
    if (is_wanted) {
        if (uv_read_start(stream_of(connection), on_room, on_read) != 0) {
            bel__connection_close(connection);
        }
    } else {
        (void)uv_read_stop(stream_of(connection));
    }
}

static void take_in(struct bel_connection *connection, const char *data, size_t bytes)
{
    assert(connection->is_reading && bytes <= BEL_LOOP_READ_BYTES);
    connection->loop->options.metrics->bytes_in += bytes;
    if (connection->state == BEL_CONNECTION_SHUT) {
        connection->discarded += bytes;
        if (connection->discarded > DISCARD_BYTES_MAX) bel__connection_close(connection);
        return;
    }
    /* On failure the session drops its output, and the next flush closes the connection. */
    (void)!bel__session_receive(connection->session, data, bytes);
    if (bytes == BEL_LOOP_READ_BYTES || bel__session_room(connection->session) == 0) {
        set_reading(connection, false); /* let other clients be served first */
    }
    connection->has_more = connection->had_input = true;
    connection->loop->has_news = true;
    bel__connection_activate(connection);
}

/* Returns whether the client's system has refused what was sent after the client closed. */
static bool was_reset(struct bel_connection *connection)
{
    int fd, error = 0;
    socklen_t bytes = sizeof error;
    if (uv_fileno((uv_handle_t *)&connection->tcp, &fd) != 0) return false;
    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &bytes) == 0 && error != 0;
}

static void on_read(uv_stream_t *stream, ssize_t bytes, const uv_buf_t *buffer)
{
    struct bel_connection *connection = stream->data;
    if (bytes > 0) {
        take_in(connection, buffer->base, (size_t)bytes);
    } else if (bytes == UV_EOF && connection->state != BEL_CONNECTION_SHUT) {
        if (was_reset(connection)) bel__session_take_back(connection->session);
        set_reading(connection, false);
        assert(connection->state == BEL_CONNECTION_OPEN);
        connection->state = BEL_CONNECTION_ENDED;
        bel__connection_activate(connection);
    } else if (bytes == UV_ENOBUFS) { /* no room any more: others were read before */
        set_reading(connection, false);
        bel__connection_activate(connection);
    } else if (bytes < 0) {
        if (bytes == UV_ECONNRESET) bel__session_take_back(connection->session);
        bel__connection_close(connection);
    }
}

/* --- writing --- */

static void on_written(uv_write_t *request, int status)
{
    struct bel_connection *connection = request->data;
    assert(connection->block != NULL && request == &connection->block->write);
    if (connection->state >= BEL_CONNECTION_CLOSING) return; /* connection_free() frees the block */
    if (status == 0) connection->sent_bytes += connection->block->count;
    free(connection->block);
    connection->block = NULL;
    if (status < 0) {
        bel__connection_close(connection);
        return;
    }
    connection->has_more = true; /* it may have stopped because its output was full */
    bel__connection_activate(connection);
}

/* Copies output to a block, which libuv writes when the socket is writable. */
static int write_block(struct bel_connection *connection, struct bel_buffer *out)
{
    assert(connection->block == NULL && out->count > 0);
    struct bel_connection_block *block = malloc(sizeof *block);
    if (block == NULL) return BEL_ENOMEM;
    size_t bytes = out->count < BLOCK_BYTES ? out->count : BLOCK_BYTES;
    memcpy(block->bytes, bel__buffer_data(out), bytes);
    block->write.data = connection;
    block->count = bytes;
    uv_buf_t part = uv_buf_init(block->bytes, (unsigned)bytes);
    if (uv_write(&block->write, stream_of(connection), &part, 1, on_written) != 0) {
        free(block);
        return BEL_EIO;
    }
    connection->block = block;
    bel__buffer_consume(out, bytes);
    connection->loop->options.metrics->bytes_out += bytes;
    return 0;
}

/* Writes as much as the socket accepts. On BEL_EIO or BEL_ENOMEM the connection must be closed. */
static int write_out(struct bel_connection *connection)
{
    struct bel_buffer *out = bel__session_output(connection->session);
    while (out->count > 0 && connection->block == NULL) {
        unsigned bytes = out->count < UINT32_MAX / 4 ? (unsigned)out->count : UINT32_MAX / 4;
        uv_buf_t part = uv_buf_init((char *)bel__buffer_data(out), bytes);
        int written = uv_try_write(stream_of(connection), &part, 1);
        if (written == UV_EAGAIN) return write_block(connection, out);
        if (written < 0) return BEL_EIO;
        bel__buffer_consume(out, (size_t)written);
        connection->sent_bytes += (uint64_t)written;
        connection->loop->options.metrics->bytes_out += (uint64_t)written;
    }
    return 0;
}

/* --- a turn --- */

void bel__connection_activate(struct bel_connection *connection)
{
    if (connection->state >= BEL_CONNECTION_CLOSING || bel__link_is_linked(&connection->active)) {
        return;
    }
    bel__list_append(&connection->loop->active, &connection->active);
}

void bel__connection_step(struct bel_connection *connection)
{
    assert(connection->state < BEL_CONNECTION_CLOSING);
    if (connection->state == BEL_CONNECTION_SHUT) return;
    connection->has_more = bel__session_step(connection->session, BEL_LOOP_STEP);
    if (connection->loop->options.service->authenticate != NULL) sort_stranger(connection);
}

/* Returns whether the connection has nothing more to do. */
static bool is_over(const struct bel_connection *connection)
{
    bool has_ended = connection->state == BEL_CONNECTION_ENDED;
    assert(connection->caller.waiting <= connection->caller.under_way);
    bool is_waiting = connection->caller.under_way == connection->caller.waiting &&
                      !bel__session_is_busy(connection->session);
    if (bel__session_is_closing(connection->session)) return true;
    if (connection->has_more || bel__link_is_linked(&connection->crowded)) return false;
    if (has_ended && is_waiting) return true;
    return (has_ended || connection->loop->state == BEL_LOOP_DRAINING) &&
           bel__session_is_idle(connection->session);
}

/* Returns whether the client has closed its side, which the loop has not read yet. */
static bool has_hung_up(struct bel_connection *connection)
{
    int fd;
    if (uv_fileno((uv_handle_t *)&connection->tcp, &fd) != 0) return false;
    struct pollfd poll_fd = {.fd = fd, .events = POLLRDHUP};
    return poll(&poll_fd, 1, 0) == 1 && (poll_fd.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

void bel__connection_end_waits(struct bel_connection *connection)
{
    if (connection->state == BEL_CONNECTION_ENDED && is_over(connection)) {
        (void)bel__connection_flush(connection);
    }
}

bool bel__connection_flush(struct bel_connection *connection)
{
    assert(connection->state < BEL_CONNECTION_CLOSING);
    if (connection->state == BEL_CONNECTION_SHUT) return false;
    /* A client that hung up while its claim waited must not get the timers. If it had input in this
     * round, the loop would have read the end as well. */
    bool has_waited = !connection->had_input && connection->state == BEL_CONNECTION_OPEN;
    connection->had_input = false;
    if (has_waited && bel__session_has_awaited(connection->session) && has_hung_up(connection)) {
        bel__connection_close(connection);
        return false;
    }
    if (connection->is_muted) {
        set_reading(connection, false);
        return false;
    }
    bool was_full = bel__session_is_full(connection->session);
    if (write_out(connection) != 0) {
        bel__connection_close(connection);
        return false;
    }
    bel__session_trim(connection->session);
    if (bel__session_crowd(connection->session) == BEL_SESSION_CROWD_OWN &&
        bel__session_output(connection->session)->count == 0) {
        connection->has_more = true; /* its own replies are written */
    }
    if (was_full && !bel__session_is_full(connection->session)) connection->has_more = true;
    bool is_written = connection->block == NULL;
    if (is_over(connection)) {
        if (is_written) {
            shut(connection);
        } else {
            linger(connection);
            set_reading(connection, false);
        }
        return false;
    }
    bool may_read = connection->state == BEL_CONNECTION_OPEN &&
                    connection->loop->state != BEL_LOOP_DRAINING &&
                    !bel__caller_is_held(&connection->caller);
    bool has_room = bel__session_room(connection->session) > 0;
    if (may_read && !has_room) bel__session_block(connection->session);
    set_reading(connection, may_read && has_room);
    return connection->state < BEL_CONNECTION_CLOSING && connection->has_more;
}

/* --- accepting --- */

/* Callback of the session: a reply was added to its output. */
static void on_ready(void *context)
{
    bel__connection_activate(context);
}

static bool on_has_input(void *context)
{
    struct bel_connection *connection = context;
    return connection->state == BEL_CONNECTION_OPEN && has_input(connection);
}

static int open_session(struct bel_connection *connection)
{
    struct bel_session_owner owner = {.backend = &connection->caller.backend,
                                      .ready = on_ready,
                                      .context = connection,
                                      .has_input = on_has_input};
    bel__caller_init(&connection->caller, connection->loop->options.tracker);
    return bel__session_create(connection->loop->options.service, &owner, &connection->session);
}

static void introduce(struct bel_connection *connection)
{
    struct bel_address address = {0};
    char text[BEL_ADDRESS_BYTES] = "?";
    int bytes = sizeof address.socket;
    if (uv_tcp_getpeername(&connection->tcp, (struct sockaddr *)&address.socket, &bytes) == 0) {
        bel__address_print(&address, text);
    }
    bel__session_introduce(connection->session, ++connection->loop->connection_ids, text);
}

/* Refuses a connection: sends an error if the socket accepts it at once, then closes. */
static void turn_away(struct bel_connection *connection)
{
    uv_buf_t part = uv_buf_init(full_text, sizeof full_text - 1);
    (void)uv_try_write(stream_of(connection), &part, 1);
    connection->loop->options.metrics->refused++;
    connection->state = BEL_CONNECTION_LEFT; /* it has made no request */
    uv_close((uv_handle_t *)&connection->tcp, on_closed);
}

static void on_doorstep_closed(uv_handle_t *handle)
{
    struct bel_loop *loop = handle->data;
    loop->is_doorstep_taken = false;
}

/* Out of memory: accepts a connection with a handle of the loop and closes it. Otherwise libuv
 * would not accept the next one. */
static void hang_up(struct bel_loop *loop, uv_stream_t *listener)
{
    if (loop->is_doorstep_taken) return;
    loop->is_doorstep_taken = true;
    loop->doorstep.data = loop;
    (void)uv_tcp_init(&loop->uv, &loop->doorstep);
    (void)uv_accept(listener, (uv_stream_t *)&loop->doorstep);
    uv_close((uv_handle_t *)&loop->doorstep, on_doorstep_closed);
    loop->options.metrics->refused++;
}

void bel__connection_accept(struct bel_loop *loop, uv_stream_t *listener)
{
    struct bel_metrics *metrics = loop->options.metrics;
    assert(loop->state == BEL_LOOP_LISTENING);
    struct bel_connection *connection = calloc(1, sizeof *connection);
    if (connection == NULL) {
        hang_up(loop, listener);
        return;
    }
    connection->loop = loop;
    bel__server_clock_read(loop->options.clock); /* the time to send a key begins now */
    (void)uv_tcp_init(&loop->uv, &connection->tcp);
    connection->tcp.data = connection;
    loop->has_news = true;
    if (uv_accept(listener, stream_of(connection)) != 0 || !make_place(loop) ||
        open_session(connection) != 0) {
        turn_away(connection);
        return;
    }
    (void)uv_tcp_nodelay(&connection->tcp, 1);
    (void)uv_tcp_keepalive(&connection->tcp, 1, KEEPALIVE_S);
    bel__list_append(&loop->connections, &connection->all);
    metrics->clients++;
    metrics->accepted++;
    introduce(connection);
    sort_stranger(connection);
    set_reading(connection, true);
}
