/* SPDX-License-Identifier: MIT */

/*
 * What a connection waits for because of the replies of all clients, in a list for each:
 *
 *     FULL   the memory of all replies exceeds its limit, and the next reply may be long
 *     TURN   the next turn has enough to do, and the next reply may be long
 *     OWN    the memory exceeds half of its limit, and the connection has replies to write
 *
 * It is not stepped and not read, and goes on in the order in which it stopped. Requests over HTTP
 * wait for FULL and TURN too (http/unread.c), and go on in turn with the others. Clients that read
 * make room soon. Those that do not are closed if others wait for them: after CROWD_TICK_MS without
 * room the connections of both kinds with the most unread memory, of those that have read less than
 * an eighth of it, until half of the memory is free.
 */
#include "server/loop_state.h"

#include <assert.h>

enum {
    CROWD_TICK_MS = 1000,
    SLOW_TICKS = 8,            /* a client is slow if it needs longer for what is unread */
    SLOW_BYTES_MIN = 64 << 10, /* closing a client that has less unread helps nobody */
    CROWD_STEPS_MAX = 256,     /* connections that are stepped in a round */
};

/* Begins to count what each client reads. */
static void reset_counts(struct bel_loop *loop)
{
    struct bel_link *link = bel__list_first(&loop->connections);
    for (; link != NULL; link = bel__list_next(&loop->connections, link)) {
        BEL_CONTAINER_OF(link, struct bel_connection, all)->sent_bytes = 0;
    }
    if (loop->http != NULL) bel__http_begin_tick(loop->http);
}

/* Returns whether a client waits for the memory of others. */
static bool is_short(const struct bel_loop *loop)
{
    return !bel__list_is_empty(&loop->crowds[BEL_SESSION_CROWD_FULL]) ||
           (loop->http != NULL && bel__http_is_crowded(loop->http));
}

/* Returns the connection with the most unread memory, of those whose client reads too slowly. */
static struct bel_connection *find_slowest(struct bel_loop *loop)
{
    struct bel_connection *found = NULL;
    size_t most = SLOW_BYTES_MIN;
    struct bel_link *link = bel__list_first(&loop->connections);
    for (; link != NULL; link = bel__list_next(&loop->connections, link)) {
        struct bel_connection *connection = BEL_CONTAINER_OF(link, struct bel_connection, all);
        size_t bytes = bel__session_unread_bytes(connection->session);
        if (bytes <= most || connection->sent_bytes >= bytes / SLOW_TICKS) continue;
        found = connection;
        most = bytes;
    }
    return found;
}

/* Closes the largest connection whose client reads too slowly. Returns false if there is none. */
static bool close_slowest(struct bel_loop *loop)
{
    struct bel_connection *slowest = find_slowest(loop);
    struct bel_http_connection *slowest_http = NULL;
    size_t bytes = slowest != NULL ? bel__session_unread_bytes(slowest->session) : 0;
    size_t bytes_http = loop->http != NULL ? bel__http_find_slowest(loop->http, &slowest_http) : 0;
    if (bytes_http > bytes) {
        bel__http_drop(slowest_http);
    } else if (slowest != NULL) {
        bel__connection_close(slowest);
    } else {
        return false;
    }
    loop->options.metrics->dropped++;
    return true;
}

static void on_crowd_tick(uv_timer_t *timer)
{
    struct bel_loop *loop = timer->data;
    bel__server_clock_read(loop->options.clock);
    bel__crowd_close_slow(loop);
    reset_counts(loop);
    if (!is_short(loop)) (void)uv_timer_stop(timer);
}

/* Begins to watch which clients read, if others wait for them. */
static void watch(struct bel_loop *loop)
{
    if (!is_short(loop) || uv_is_active((uv_handle_t *)&loop->crowd_timer)) return;
    reset_counts(loop);
    (void)uv_timer_start(&loop->crowd_timer, on_crowd_tick, CROWD_TICK_MS, CROWD_TICK_MS);
}

void bel__crowd_close_slow(struct bel_loop *loop)
{
    const struct bel_output_total *total = loop->options.service->output_total;
    uint64_t closed = 0;
    if (!is_short(loop) || bel__output_total_has_room(total, BEL_SESSION_CROWD_FULL)) return;
    while (total->bytes > total->bytes_max / 2 && close_slowest(loop)) {
        closed++;
    }
    if (closed == 0) return;
    BEL_LOG(loop->options.log, BEL_LOG_WARN,
            "closed clients that do not read: output-total is exceeded",
            BEL_LOG_NUMBER("closed", closed), BEL_LOG_NUMBER("output_total", total->bytes_max));
}

/* Adds a connection that was stepped to the list of its reason to wait, or removes it. */
static void sort(struct bel_connection *connection)
{
    struct bel_loop *loop = connection->loop;
    enum bel_session_crowd crowd = bel__session_crowd(connection->session);
    if (bel__link_is_linked(&connection->crowded)) {
        if (crowd == connection->crowd) return;
        bel__link_remove(&connection->crowded);
    }
    connection->crowd = crowd;
    if (crowd == BEL_SESSION_CROWD_NONE) return;
    bel__list_append(&loop->crowds[crowd], &connection->crowded);
    watch(loop);
}

void bel__crowd_step(struct bel_connection *connection)
{
    bel__connection_step(connection);
    sort(connection);
}

/* Returns the reason of the connection that goes on next; NONE if all must wait. */
static enum bel_session_crowd next_crowd(const struct bel_loop *loop)
{
    const struct bel_output_total *total = loop->options.service->output_total;
    static const enum bel_session_crowd order[] = {BEL_SESSION_CROWD_FULL, BEL_SESSION_CROWD_TURN,
                                                   BEL_SESSION_CROWD_OWN};
    for (unsigned i = 0; i < sizeof order / sizeof order[0]; i++) {
        if (bel__list_is_empty(&loop->crowds[order[i]])) continue;
        if (bel__output_total_has_room(total, order[i])) return order[i];
    }
    return BEL_SESSION_CROWD_NONE;
}

bool bel__crowd_can_go_on(const struct bel_loop *loop)
{
    return next_crowd(loop) != BEL_SESSION_CROWD_NONE ||
           (loop->http != NULL && bel__http_can_go_on(loop->http));
}

void bel__crowd_admit(struct bel_loop *loop)
{
    enum bel_session_crowd crowd;
    watch(loop);
    for (int i = 0; i < CROWD_STEPS_MAX; i++) {
        bool has_gone_on = loop->http != NULL && bel__http_go_on(loop->http);
        if ((crowd = next_crowd(loop)) == BEL_SESSION_CROWD_NONE && !has_gone_on) return;
        if (crowd == BEL_SESSION_CROWD_NONE) continue;
        struct bel_link *link = bel__list_take_first(&loop->crowds[crowd]);
        struct bel_connection *connection = BEL_CONTAINER_OF(link, struct bel_connection, crowded);
        bel__crowd_step(connection);
        bel__connection_activate(connection);
    }
}
