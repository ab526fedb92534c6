/* SPDX-License-Identifier: MIT */
#include "redis/servers/probe.h"

#include "redis/servers/server.h"

#include <string.h>

enum {
    AGAIN_MS = 250,
    TIMEOUT_MS = 2000,
};

static const char role_command[] = "*1\r\n$4\r\nROLE\r\n";

/* {"master", offset, {replica ...}} or {"slave", ...} */
static void told(struct bel_redis_call *call, const struct bel_redis_reply *reply)
{
    struct bel_server *server = BEL_CONTAINER_OF(call, struct bel_server, role);
    struct bel_servers *servers = server->servers;
    server->is_probing = false;
    server->probe_at = bel__servers_after(servers->now, AGAIN_MS);
    if (reply->err == 0 && reply->value->type == BEL_VALUE_ERROR) {
        struct bel_view text = reply->value->text;
        (void)bel__why_say(&servers->why, 0, "ROLE: the server replied: %.*s",
                           text.bytes < 160 ? (int)text.bytes : 160, (const char *)text.data);
    }
    if (reply->err || reply->value->type != BEL_VALUE_LIST || reply->value->count < 2) return;
    const struct bel_value *items = reply->value->items;
    servers->pump_at.ns = 0;
    bool is_replica = !bel_value_is(&items[0], "master");
    server->is_replica = is_replica && !bel__servers_are_cluster(servers);
    if (is_replica) servers->cluster.is_wanted = true; /* the map has an old primary */
    if (is_replica || reply->value->count < 3 || items[2].type != BEL_VALUE_LIST) return;
    server->knows_replicas = true;
    server->replicas = (uint32_t)items[2].count;
    if (servers->replicas_wanted == 0) servers->replicas_wanted = server->replicas;
}

static void ask(struct bel_server *server)
{
    struct bel_servers *servers = server->servers;
    server->role = (struct bel_redis_call){
        .command = {role_command, sizeof role_command - 1}, .timeout_ms = TIMEOUT_MS, .done = told};
    int err = bel__redis_link_send(server->connection, &server->role, servers->now);
    server->is_probing = err == 0;
    if (err) server->probe_at = bel__servers_after(servers->now, AGAIN_MS);
}

/* HELLO has told the role. */
void bel__probe_begin(struct bel_server *server)
{
    const char *role = bel__redis_link_server(server->connection)->role;
    bool is_replica = strcmp(role, "replica") == 0 || strcmp(role, "slave") == 0;
    server->is_replica = is_replica && !bel__servers_are_cluster(server->servers);
    server->knows_replicas = false;
    server->probe_at = server->servers->now;
}

static bool is_needed(const struct bel_server *server)
{
    if (server->slots_count == 0 || !bel__server_is_ready(server)) return false;
    return server->is_replica || bel__server_lacks_replicas(server);
}

struct bel_mono bel__probe_all(struct bel_servers *servers)
{
    struct bel_mono first = {BEL_NEVER};
    for (struct bel_link *link = bel__list_first(&servers->all); link != NULL;
         link = bel__list_next(&servers->all, link)) {
        struct bel_server *server = BEL_CONTAINER_OF(link, struct bel_server, link);
        if (!is_needed(server) || server->is_probing) continue;
        if (server->probe_at.ns <= servers->now.ns) ask(server);
        if (!server->is_probing && server->probe_at.ns < first.ns) first = server->probe_at;
    }
    return first;
}
