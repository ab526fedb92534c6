/* SPDX-License-Identifier: MIT */

/*
 * A client is a socket around a session. How one ends:
 *
 *     it hangs up         what it asked is answered; if it only waits, it is let go at once
 *     the session closes  the last answer is written, then our side is shut, and what still comes
 *                         is thrown away until it hangs up, within bounds: else the system would
 *                         cut the connection and the last answer with it
 *     we drain            the same, as soon as it has nothing under way
 *
 * Memory: reading goes through one buffer of the loop's. Writing takes what the session has, for
 * as long as the socket takes it; the rest is copied in blocks, one at a time, which only slow
 * clients need.
 */
#include "server/loop_state.h"

#include "core/units.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    BLOCK_BYTES = 16 << 10,
    KEEPALIVE_S = 60,
    LINGER_TICK_MS = 50,
    DRAIN_LINGER_MS = 500,       /* an idle client need not notice that we go */
    DISCARD_BYTES_MAX = 1 << 20, /* of what comes behind the end */
};

struct bel_connection_block {
    uv_write_t write;
    char bytes[BLOCK_BYTES];
};

static uv_stream_t *stream_of(struct bel_connection *client)
{
    return (uv_stream_t *)&client->tcp;
}

/* --- the end --- */

static void free_if_over(struct bel_connection *client)
{
    if (!client->is_closed || !client->has_left) return;
    free(client->block);
    free(client);
}

/* Nothing that it asked is under way any more. */
static void on_left(struct bel_caller *caller)
{
    struct bel_connection *client = BEL_CONTAINER_OF(caller, struct bel_connection, caller);
    client->has_left = true;
    free_if_over(client);
}

static void on_closed(uv_handle_t *handle)
{
    struct bel_connection *client = handle->data;
    client->is_closed = true;
    free_if_over(client);
}

void bel__connection_close(struct bel_connection *client)
{
    struct bel_loop *loop = client->loop;
    if (client->is_closing) return;
    client->is_closing = true;
    bel__link_remove(&client->all);
    if (bel__link_is_linked(&client->active)) bel__link_remove(&client->active);
    if (bel__link_is_linked(&client->lingering)) bel__link_remove(&client->lingering);
    loop->options.metrics->clients--;
    uv_close((uv_handle_t *)&client->tcp, on_closed);
    bel__session_destroy(client->session);
    client->session = NULL;
    bel__caller_leave(&client->caller, on_left);
}

static void on_linger_tick(uv_timer_t *timer)
{
    struct bel_loop *loop = timer->data;
    bel__connections_close_lingering(loop, bel_clock_mono(bel_clock_system()));
}

static void linger(struct bel_connection *client)
{
    struct bel_loop *loop = client->loop;
    if (bel__link_is_linked(&client->lingering)) return;
    client->linger_end = loop->options.moment->now.real;
    bool is_idle = loop->is_draining && client->is_shut;
    client->linger_end.ns += (uint64_t)(is_idle ? DRAIN_LINGER_MS : BEL_LINGER_MS) * NS_PER_MS;
    if (bel__list_is_empty(&loop->lingering)) {
        (void)uv_timer_start(&loop->linger, on_linger_tick, LINGER_TICK_MS, LINGER_TICK_MS);
    }
    bel__list_append(&loop->lingering, &client->lingering);
}

void bel__connections_close_lingering(struct bel_loop *loop, struct bel_mono now)
{
    struct bel_link *link;
    while ((link = bel__list_first(&loop->lingering)) != NULL) {
        struct bel_connection *client = BEL_CONTAINER_OF(link, struct bel_connection, lingering);
        if (client->linger_end.ns > now.ns) return;
        if (!client->is_shut) loop->options.metrics->dropped++;
        bel__connection_close(client);
    }
    (void)uv_timer_stop(&loop->linger);
}

static void on_shut(uv_shutdown_t *request, int status)
{
    (void)request;
    (void)status; /* the end of the other side, or of the lingering, will come */
}

static void set_reading(struct bel_connection *client, bool is_wanted);

/* Says that we say no more, and waits for the other side to hang up. */
static void shut(struct bel_connection *client)
{
    client->is_shut = true;
    if (client->has_ended || uv_shutdown(&client->shutdown, stream_of(client), on_shut) != 0) {
        bel__connection_close(client);
        return;
    }
    linger(client);
    set_reading(client, true);
}

/* --- reading --- */

static void on_room(uv_handle_t *handle, size_t wanted, uv_buf_t *out)
{
    struct bel_connection *client = handle->data;
    size_t room = client->is_shut ? BEL_LOOP_READ_BYTES : bel__session_room(client->session);
    (void)wanted;
    if (room > BEL_LOOP_READ_BYTES) room = BEL_LOOP_READ_BYTES;
    *out = uv_buf_init(client->loop->bytes, (unsigned)room);
}

static void on_read(uv_stream_t *stream, ssize_t bytes, const uv_buf_t *buffer);

static void set_reading(struct bel_connection *client, bool is_wanted)
{
    if (client->is_reading == is_wanted) return;
    client->is_reading = is_wanted;
    if (is_wanted) {
        if (uv_read_start(stream_of(client), on_room, on_read) != 0) bel__connection_close(client);
    } else {
        (void)uv_read_stop(stream_of(client));
    }
}

static void take_in(struct bel_connection *client, const char *data, size_t bytes)
{
    client->loop->options.metrics->bytes_in += bytes;
    if (client->is_shut) {
        client->discarded += bytes;
        if (client->discarded > DISCARD_BYTES_MAX) bel__connection_close(client);
        return;
    }
    /* What is too much ends the session, which says so. */
    (void)!bel__session_receive(client->session, data, bytes);
    if (bytes == BEL_LOOP_READ_BYTES || bel__session_room(client->session) == 0) {
        set_reading(client, false); /* the others come first */
    }
    client->has_more = true;
    client->loop->has_news = true;
    bel__connection_activate(client);
}

static void on_read(uv_stream_t *stream, ssize_t bytes, const uv_buf_t *buffer)
{
    struct bel_connection *client = stream->data;
    if (bytes > 0) {
        take_in(client, buffer->base, (size_t)bytes);
    } else if (bytes == UV_EOF && !client->is_shut) {
        set_reading(client, false);
        client->has_ended = true;
        bel__connection_activate(client);
    } else if (bytes < 0 && bytes != UV_ENOBUFS) {
        bel__connection_close(client);
    }
}

/* --- writing --- */

static void on_written(uv_write_t *request, int status)
{
    struct bel_connection *client = request->data;
    if (client->is_closing) return; /* the block goes with it */
    free(client->block);
    client->block = NULL;
    if (status < 0) {
        bel__connection_close(client);
        return;
    }
    client->has_more = true; /* it may have waited for its reader */
    bel__connection_activate(client);
}

/* Gives the socket a block to write when it can. */
static int write_block(struct bel_connection *client, struct bel_buffer *out)
{
    struct bel_connection_block *block = malloc(sizeof *block);
    if (block == NULL) return BEL_ENOMEM;
    size_t bytes = out->count < BLOCK_BYTES ? out->count : BLOCK_BYTES;
    memcpy(block->bytes, bel__buffer_data(out), bytes);
    block->write.data = client;
    uv_buf_t part = uv_buf_init(block->bytes, (unsigned)bytes);
    if (uv_write(&block->write, stream_of(client), &part, 1, on_written) != 0) {
        free(block);
        return BEL_EIO;
    }
    client->block = block;
    bel__buffer_consume(out, bytes);
    client->loop->options.metrics->bytes_out += bytes;
    return 0;
}

/* Writes as much as the socket takes. BEL_EIO, BEL_ENOMEM: it is over. */
static int write_out(struct bel_connection *client)
{
    struct bel_buffer *out = bel__session_output(client->session);
    while (out->count > 0 && client->block == NULL) {
        unsigned bytes = out->count < UINT32_MAX / 4 ? (unsigned)out->count : UINT32_MAX / 4;
        uv_buf_t part = uv_buf_init((char *)bel__buffer_data(out), bytes);
        int written = uv_try_write(stream_of(client), &part, 1);
        if (written == UV_EAGAIN) return write_block(client, out);
        if (written < 0) return BEL_EIO;
        bel__buffer_consume(out, (size_t)written);
        client->loop->options.metrics->bytes_out += (uint64_t)written;
    }
    return 0;
}

/* --- a turn --- */

void bel__connection_activate(struct bel_connection *client)
{
    if (client->is_closing || bel__link_is_linked(&client->active)) return;
    bel__list_append(&client->loop->active, &client->active);
    bel__loop_stay_awake(client->loop); /* what was written at once is told of before the poll */
}

void bel__connection_step(struct bel_connection *client)
{
    if (client->is_shut) return;
    client->has_more = bel__session_step(client->session, BEL_LOOP_STEP);
}

/* Whether nothing more will come of it. */
static bool is_over(const struct bel_connection *client)
{
    bool is_waiting = client->caller.under_way == client->caller.waiting &&
                      !bel__session_is_busy(client->session);
    if (bel__session_is_closing(client->session)) return true;
    if (client->has_more) return false;
    if (client->has_ended && is_waiting) return true;
    return (client->has_ended || client->loop->is_draining) &&
           bel__session_is_idle(client->session);
}

bool bel__connection_flush(struct bel_connection *client)
{
    if (client->is_shut) return false;
    bool was_full = bel__session_is_full(client->session);
    if (write_out(client) != 0) {
        bel__connection_close(client);
        return false;
    }
    if (was_full && !bel__session_is_full(client->session)) client->has_more = true;
    bool is_written = client->block == NULL;
    if (is_over(client)) {
        if (is_written) {
            shut(client);
        } else {
            linger(client);
            set_reading(client, false);
        }
        return false;
    }
    bool may_read = !client->has_ended && !client->loop->is_draining;
    set_reading(client, may_read && bel__session_room(client->session) > 0);
    return !client->is_closing && client->has_more;
}

/* --- the beginning --- */

/* The session was answered. */
static void on_ready(void *context)
{
    bel__connection_activate(context);
}

static int open_session(struct bel_connection *client)
{
    struct bel_session_owner owner = {&client->caller.backend, on_ready, client};
    bel__caller_init(&client->caller, client->loop->options.tracker);
    return bel__session_create(client->loop->options.service, &owner, &client->session);
}

static void introduce(struct bel_connection *client)
{
    struct bel_address address = {0};
    char text[BEL_ADDRESS_BYTES] = "?";
    int bytes = sizeof address.socket;
    if (uv_tcp_getpeername(&client->tcp, (struct sockaddr *)&address.socket, &bytes) == 0) {
        bel__address_print(&address, text);
    }
    bel__session_introduce(client->session, ++client->loop->client_ids, text);
}

/* Says that there is no room, if that can be said at once. */
static void turn_away(struct bel_connection *client)
{
    static char text[] = "-ERR there are too many clients\r\n";
    uv_buf_t part = uv_buf_init(text, sizeof text - 1);
    (void)uv_try_write(stream_of(client), &part, 1);
    client->loop->options.metrics->refused++;
    client->is_closing = client->has_left = true;
    uv_close((uv_handle_t *)&client->tcp, on_closed);
}

static void on_doorstep_closed(uv_handle_t *handle)
{
    struct bel_loop *loop = handle->data;
    loop->is_doorstep_taken = false;
}

/* Accepts one without memory, and hangs up: else no other would come. */
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
    struct bel_connection *client = calloc(1, sizeof *client);
    if (client == NULL) {
        hang_up(loop, listener);
        return;
    }
    client->loop = loop;
    (void)uv_tcp_init(&loop->uv, &client->tcp);
    client->tcp.data = client;
    loop->has_news = true;
    if (uv_accept(listener, stream_of(client)) != 0 ||
        metrics->clients >= loop->options.clients_max || open_session(client) != 0) {
        turn_away(client);
        return;
    }
    (void)uv_tcp_nodelay(&client->tcp, 1);
    (void)uv_tcp_keepalive(&client->tcp, 1, KEEPALIVE_S);
    bel__list_append(&loop->clients, &client->all);
    metrics->clients++;
    metrics->accepted++;
    introduce(client);
    set_reading(client, true);
}
