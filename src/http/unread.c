/* SPDX-License-Identifier: MIT */

/*
 * Answers that clients have not read, together with those of RESP (session/output_total.h).
 *
 *     READY --no room--> crowd --room, in the order of arrival--> RUNNING --> SENDING
 *
 * A request whose answer may be long waits while the answers of all connections exceed their limit,
 * or while the next turn has enough to do. Other requests never wait. An answer that is made goes
 * on, slice by slice: its memory is freed as it is sent, so this makes room.
 *
 * Clients that read make room soon. Those that do not are closed by the loop if others wait for
 * them; see server/crowd.c. How fast a client reads depends on the server too, whose runs make few
 * slices: so only time counts in which the socket did not accept all of a slice.
 */
#include "http/server_state.h"

#include "core/units.h"

enum {
    SLOW_TICKS = 8,            /* a client is slow if it needs longer for what is unread */
    SLOW_BYTES_MIN = 64 << 10, /* closing a client that has less unread helps nobody */
};

static struct bel_now now_of(const struct bel_http *http)
{
    return *http->site.options.service->now;
}

bool bel__http_is_crowded(const struct bel_http *http)
{
    return !bel__list_is_empty(&http->crowd);
}

bool bel__http_can_go_on(const struct bel_http *http)
{
    const struct bel_output_total *total = http->site.options.service->output_total;
    return bel__http_is_crowded(http) &&
           bel__output_total_has_room(total, BEL_SESSION_CROWD_FULL) &&
           bel__output_total_has_room(total, BEL_SESSION_CROWD_TURN);
}

bool bel__http_go_on(struct bel_http *http)
{
    if (!bel__http_can_go_on(http)) return false;
    struct bel_link *link = bel__list_first(&http->crowd);
    bel__http_connection_resume(BEL_CONTAINER_OF(link, struct bel_http_connection, crowded));
    return true;
}

void bel__http_begin_tick(struct bel_http *http)
{
    struct bel_mono now = now_of(http).real;
    struct bel_link *link = bel__list_first(&http->connections);
    http->tick = now;
    for (; link != NULL; link = bel__list_next(&http->connections, link)) {
        struct bel_http_connection *connection =
            BEL_CONTAINER_OF(link, struct bel_http_connection, all);
        connection->sent_bytes = connection->blocked_ns = 0;
        if (connection->blocked.ns != 0) connection->blocked = now;
    }
}

/* Returns whether a client, and not the server, makes its answer slow. */
static bool is_slow(const struct bel_http *http, const struct bel_http_connection *connection)
{
    uint64_t now_ns = now_of(http).real.ns, blocked_ns = connection->blocked_ns;
    if (connection->state != BEL_HTTP_SENDING || connection->blocked.ns == 0) return false;
    if (connection->sent_bytes >= connection->output_bytes / SLOW_TICKS) return false;
    blocked_ns += now_ns - connection->blocked.ns;
    return blocked_ns > 0 && blocked_ns >= (now_ns - http->tick.ns) / 2;
}

size_t bel__http_find_slowest(const struct bel_http *http, struct bel_http_connection **out)
{
    size_t most = 0;
    struct bel_link *link = bel__list_first(&http->connections);
    for (; link != NULL; link = bel__list_next(&http->connections, link)) {
        struct bel_http_connection *connection =
            BEL_CONTAINER_OF(link, struct bel_http_connection, all);
        size_t bytes = connection->output_bytes;
        if (bytes <= SLOW_BYTES_MIN || bytes <= most || !is_slow(http, connection)) continue;
        *out = connection;
        most = bytes;
    }
    return most;
}

void bel__http_drop(struct bel_http_connection *connection)
{
    bel__http_connection_close(connection);
}
