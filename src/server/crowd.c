/* SPDX-License-Identifier: MIT */

/*
 * The replies of all clients have a limit of memory together. Above half of it, a connection with
 * replies to write is `patient`: it is not stepped or read before they are written. Above the
 * limit, a connection whose next reply may be long is `crowded`: it waits, too. Clients that read
 * make room soon. Those that do not are closed if others wait for them:
 *
 *     crowded ----> room ----> executed, in the order in which they stopped
 *        |
 *        '--- CROWD_TICK_MS without room: close the connections with the most unread memory, of
 *             those that have read less than they have left unread, until half of it is free
 */
#include "server/loop_state.h"

#include <assert.h>

enum {
    CROWD_TICK_MS = 1000,
    CROWD_STEPS_MAX = 256, /* connections that are stepped in a round */
};

/* Begins to count what each client reads. */
static void reset_counts(struct bel_loop *loop)
{
    struct bel_link *link = bel__list_first(&loop->connections);
    for (; link != NULL; link = bel__list_next(&loop->connections, link)) {
        BEL_CONTAINER_OF(link, struct bel_connection, all)->sent_bytes = 0;
    }
}

/* Returns the connection with the most unread memory, of those whose client reads too slowly. */
static struct bel_connection *find_slowest(struct bel_loop *loop)
{
    struct bel_connection *found = NULL;
    size_t most = 0;
    struct bel_link *link = bel__list_first(&loop->connections);
    for (; link != NULL; link = bel__list_next(&loop->connections, link)) {
        struct bel_connection *connection = BEL_CONTAINER_OF(link, struct bel_connection, all);
        size_t bytes = bel__session_unread_bytes(connection->session);
        if (bytes <= most || connection->sent_bytes >= bytes) continue;
        found = connection;
        most = bytes;
    }
    return found;
}

static void on_crowd_tick(uv_timer_t *timer)
{
    struct bel_loop *loop = timer->data;
    bel__crowd_close_slow(loop);
    reset_counts(loop);
    if (bel__list_is_empty(&loop->crowded)) (void)uv_timer_stop(timer);
}

void bel__crowd_close_slow(struct bel_loop *loop)
{
    const struct bel_output_total *total = loop->options.service->output_total;
    struct bel_connection *slowest;
    uint64_t closed = 0;
    if (bel__list_is_empty(&loop->crowded) ||
        bel__output_total_has_room(total, BEL_SESSION_CROWD_FULL)) {
        return;
    }
    while (total->bytes > total->bytes_max / 2 && (slowest = find_slowest(loop)) != NULL) {
        loop->options.metrics->dropped++;
        bel__connection_close(slowest);
        closed++;
    }
    if (closed == 0) return;
    BEL_LOG(loop->options.log, BEL_LOG_WARN,
            "closed clients that do not read: output-total is exceeded",
            BEL_LOG_NUMBER("closed", closed), BEL_LOG_NUMBER("output_total", total->bytes_max));
}

/* Returns the list for connections that stopped for a reason. */
static struct bel_list *list_of(struct bel_loop *loop, enum bel_session_crowd crowd)
{
    return crowd == BEL_SESSION_CROWD_OWN ? &loop->patient : &loop->crowded;
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
    bel__list_append(list_of(loop, crowd), &connection->crowded);
    if (crowd == BEL_SESSION_CROWD_OWN) return;
    if (uv_is_active((uv_handle_t *)&loop->crowd_timer)) return;
    reset_counts(loop);
    (void)uv_timer_start(&loop->crowd_timer, on_crowd_tick, CROWD_TICK_MS, CROWD_TICK_MS);
}

void bel__crowd_step(struct bel_connection *connection)
{
    bel__connection_step(connection);
    sort(connection);
}

static bool can_go_on(const struct bel_loop *loop, enum bel_session_crowd crowd)
{
    const struct bel_output_total *total = loop->options.service->output_total;
    const struct bel_list *list = crowd == BEL_SESSION_CROWD_OWN ? &loop->patient : &loop->crowded;
    return !bel__list_is_empty(list) && bel__output_total_has_room(total, crowd);
}

bool bel__crowd_can_go_on(const struct bel_loop *loop)
{
    return can_go_on(loop, BEL_SESSION_CROWD_FULL) || can_go_on(loop, BEL_SESSION_CROWD_OWN);
}

void bel__crowd_admit(struct bel_loop *loop)
{
    for (int i = 0; i < CROWD_STEPS_MAX; i++) {
        enum bel_session_crowd crowd = BEL_SESSION_CROWD_FULL;
        if (!can_go_on(loop, crowd)) crowd = BEL_SESSION_CROWD_OWN;
        if (!can_go_on(loop, crowd)) return;
        struct bel_link *link = bel__list_take_first(list_of(loop, crowd));
        struct bel_connection *connection = BEL_CONTAINER_OF(link, struct bel_connection, crowded);
        bel__crowd_step(connection);
        bel__connection_activate(connection);
    }
}
