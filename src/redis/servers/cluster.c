/* SPDX-License-Identifier: MIT */

/*
 * A map is a list of ranges: {first slot, last slot, primary, replica ...}, and a server is {host,
 * port, id, ...}. A host that is empty or nil is the host of the server that was asked.
 *
 * Primaries have a connection, and for a while the servers that ASK has named. Replicas and the
 * addresses of the options are only remembered: they are asked if no primary can be reached.
 */
#include "redis/servers/cluster.h"

#include "redis/servers/calls.h"
#include "redis/servers/redirect.h"
#include "redis/servers/server.h"

#include <assert.h>
#include <string.h>

enum {
    ASK_MS_MIN = 100, /* between two maps */
    ASK_MS_MAX = 30000,
    AGAIN_MS = 500, /* after a map that is not complete, or an error */
    ASK_TIMEOUT_MS = 2000,
    UNUSED_MS = 60000, /* after which a server that no map names is forgotten */
};

static const char ask_command[] = "*2\r\n$7\r\nCLUSTER\r\n$5\r\nSLOTS\r\n";

static struct bel_server *server_of(struct bel_link *link)
{
    return link == NULL ? NULL : BEL_CONTAINER_OF(link, struct bel_server, link);
}

static struct bel_server *first_of(const struct bel_servers *servers)
{
    return server_of(bel__list_first(&servers->all));
}

static struct bel_server *next_of(const struct bel_server *server)
{
    return server_of(bel__list_next(&server->servers->all, &server->link));
}

/* --- Reading a map --- */

static bool is_server(const struct bel_value *value)
{
    if (value->type != BEL_VALUE_LIST || value->count < 2) return false;
    const struct bel_value *host = &value->items[0], *port = &value->items[1];
    bool has_host = host->type == BEL_VALUE_NIL || host->type == BEL_VALUE_TEXT ||
                    host->type == BEL_VALUE_STATUS;
    return has_host && host->text.bytes < BEL_REDIRECT_HOST_BYTES &&
           port->type == BEL_VALUE_NUMBER && port->number > 0 && port->number <= UINT16_MAX;
}

static bool is_range(const struct bel_value *value)
{
    if (value->type != BEL_VALUE_LIST || value->count < 3) return false;
    const struct bel_value *first = &value->items[0], *last = &value->items[1];
    if (first->type != BEL_VALUE_NUMBER || last->type != BEL_VALUE_NUMBER) return false;
    if (first->number < 0 || first->number > last->number || last->number >= BEL_SLOTS) {
        return false;
    }
    for (size_t i = 2; i < value->count; i++) {
        if (!is_server(&value->items[i])) return false;
    }
    return true;
}

static bool is_map(const struct bel_value *value)
{
    if (value->type != BEL_VALUE_LIST) return false;
    for (size_t i = 0; i < value->count; i++) {
        if (!is_range(&value->items[i])) return false;
    }
    return true;
}

/* Finds or adds a server of the map. Returns NULL if memory has run out. */
static struct bel_server *list_server(struct bel_servers *servers, const struct bel_value *value)
{
    char host[BEL_REDIRECT_HOST_BYTES];
    struct bel_view text = value->items[0].text;
    uint16_t port = (uint16_t)value->items[1].number;
    const char *name = servers->cluster.asked->host;
    if (text.bytes > 0 && memchr(text.data, 0, text.bytes) == NULL) {
        memcpy(host, text.data, text.bytes);
        host[text.bytes] = 0;
        if (strcmp(host, "?") != 0) name = host;
    }
    struct bel_server *server = bel__server_at(servers, name, port);
    if (server == NULL) return NULL;
    server->is_listed = true;
    server->used = servers->now;
    return server;
}

static void give_slot(struct bel_servers *servers, size_t number, struct bel_server *server)
{
    struct bel_redis_slot *slot = &servers->slots[number];
    if (slot->server != NULL) slot->server->slots_count--;
    slot->server = server;
    if (server != NULL) server->slots_count++;
}

static void read_range(struct bel_servers *servers, const struct bel_value *range)
{
    struct bel_server *primary = list_server(servers, &range->items[2]);
    size_t last = (size_t)range->items[1].number;
    for (size_t i = (size_t)range->items[0].number; i <= last; i++) {
        give_slot(servers, i, primary);
    }
    for (size_t i = 3; i < range->count; i++) {
        (void)list_server(servers, &range->items[i]);
    }
}

static bool is_complete(const struct bel_servers *servers)
{
    for (size_t i = 0; i < servers->slots_count; i++) {
        if (servers->slots[i].server == NULL) return false;
    }
    return true;
}

/* The keys can be reached for the first time. */
static void hear_all(struct bel_servers *servers)
{
    struct bel_view nothing = {NULL, 0};
    servers->owner.heard(servers->owner.owner, nothing, nothing);
}

static void read_map(struct bel_servers *servers, const struct bel_value *map)
{
    struct bel_cluster *cluster = &servers->cluster;
    for (struct bel_server *server = first_of(servers); server != NULL; server = next_of(server)) {
        server->is_listed = false;
    }
    for (size_t i = 0; i < servers->slots_count; i++) {
        give_slot(servers, i, NULL);
    }
    for (size_t i = 0; i < map->count; i++) {
        read_range(servers, &map->items[i]);
    }
    cluster->is_fresh = true;
    cluster->is_wanted = !is_complete(servers);
    if (!cluster->is_wanted) {
        if (!cluster->is_known) hear_all(servers);
        cluster->is_known = true;
        return;
    }
    cluster->ask_at = bel__servers_after(servers->now, AGAIN_MS);
    (void)bel__why_say(&servers->why, 0, "a part of the Cluster has no server");
}

/* --- Asking --- */

bool bel__cluster_is_ready(const struct bel_servers *servers)
{
    if (!is_complete(servers)) return false;
    for (struct bel_server *server = first_of(servers); server != NULL; server = next_of(server)) {
        if (server->slots_count > 0 && !bel__server_is_ready(server)) return false;
    }
    return true;
}

static void told(struct bel_redis_call *call, const struct bel_redis_reply *reply)
{
    struct bel_cluster *cluster = BEL_CONTAINER_OF(call, struct bel_cluster, call);
    struct bel_servers *servers = BEL_CONTAINER_OF(cluster, struct bel_servers, cluster);
    cluster->is_asking = false;
    cluster->ask_at = bel__servers_after(servers->now, AGAIN_MS);
    cluster->is_wanted = true;
    if (reply->err) return; /* the connection has said why */
    if (is_map(reply->value)) {
        cluster->ask_at = bel__servers_after(servers->now, ASK_MS_MIN);
        read_map(servers, reply->value);
        return;
    }
    bool is_error = reply->value->type == BEL_VALUE_ERROR;
    struct bel_view text = is_error ? reply->value->text : BEL_VIEW("something else than a map");
    (void)bel__why_say(&servers->why, 0,
                       "CLUSTER SLOTS: the server replied: %.*s (redis+cluster:// is for servers "
                       "of a Cluster)",
                       text.bytes < 160 ? (int)text.bytes : 160, (const char *)text.data);
}

/* Chooses a server to ask: the next one that is ready, in turns. */
static struct bel_server *choose(const struct bel_servers *servers)
{
    struct bel_server *last = servers->cluster.asked;
    struct bel_server *start = last == NULL ? NULL : next_of(last);
    if (start == NULL) start = first_of(servers);
    struct bel_server *server = start;
    do {
        if (bel__server_is_ready(server)) return server;
        server = next_of(server);
        if (server == NULL) server = first_of(servers);
    } while (server != start);
    return NULL;
}

/* Connects to every server that is known, because none can be reached. */
static void open_all(struct bel_servers *servers)
{
    for (struct bel_server *server = first_of(servers); server != NULL; server = next_of(server)) {
        (void)!bel__server_open(server); /* if memory has run out, the next turn tries again */
    }
}

struct bel_mono bel__cluster_ask(struct bel_servers *servers)
{
    struct bel_cluster *cluster = &servers->cluster;
    if (cluster->is_asking) return (struct bel_mono){BEL_NEVER};
    struct bel_mono at = cluster->ask_at;
    if (!cluster->is_wanted && !bel__cluster_is_ready(servers)) {
        at = bel__servers_after(at, AGAIN_MS); /* another server may have taken over since */
    } else if (!cluster->is_wanted) {
        if (bel__map_count(&servers->channels.by_name) == 0) return (struct bel_mono){BEL_NEVER};
        at = bel__servers_after(at, ASK_MS_MAX); /* a channel may have moved unnoticed */
    }
    if (at.ns > servers->now.ns) return at;
    struct bel_server *server = choose(servers);
    if (server == NULL) {
        open_all(servers);
        cluster->is_wanted = true; /* when a connection is ready */
        return (struct bel_mono){BEL_NEVER};
    }
    cluster->asked = server;
    cluster->call = (struct bel_redis_call){.command = {ask_command, sizeof ask_command - 1},
                                            .timeout_ms = ASK_TIMEOUT_MS,
                                            .done = told};
    int err = bel__redis_link_send(server->connection, &cluster->call, servers->now);
    cluster->is_asking = err == 0;
    if (err) cluster->ask_at = bel__servers_after(servers->now, AGAIN_MS);
    return err ? cluster->ask_at : servers->now;
}

/* --- Following --- */

static bool is_primary_ready(const struct bel_servers *servers)
{
    for (struct bel_server *server = first_of(servers); server != NULL; server = next_of(server)) {
        if (server->slots_count > 0 && bel__server_is_ready(server)) return true;
    }
    return false;
}

/* Returns whether a server that has no slot is needed none the less. */
static bool is_in_use(const struct bel_server *server)
{
    const struct bel_cluster *cluster = &server->servers->cluster;
    return server->askers > 0 || !bel__list_is_empty(&server->calls) ||
           !bel__list_is_empty(&server->kept) || (cluster->is_asking && cluster->asked == server);
}

/* Opens, closes or forgets the connection of a server, as the map says. */
static void follow_server(struct bel_server *server, bool has_primary)
{
    struct bel_servers *servers = server->servers;
    bool is_known = server->is_listed || server->is_seed;
    bool is_recent = bel__servers_after(server->used, UNUSED_MS).ns > servers->now.ns;
    if (server->connection != NULL) bel__calls_take_back(server);
    if (server->slots_count > 0 || server->askers > 0 || !has_primary) {
        (void)!bel__server_open(server); /* if memory has run out, the next map tries again */
    } else if (is_in_use(server)) {
        return;
    } else if (is_known) {
        bel__server_close(server);
    } else if (!is_recent) {
        if (servers->cluster.asked == server) servers->cluster.asked = NULL;
        bel__server_remove(server);
    }
}

bool bel__cluster_follow(struct bel_servers *servers)
{
    struct bel_cluster *cluster = &servers->cluster;
    if (!cluster->is_fresh) return false;
    cluster->is_fresh = false;
    bool has_primary = is_primary_ready(servers);
    for (struct bel_server *server = first_of(servers), *next; server != NULL; server = next) {
        next = next_of(server);
        follow_server(server, has_primary);
    }
    servers->pump_at.ns = 0;
    return true;
}
