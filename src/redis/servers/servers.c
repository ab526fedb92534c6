/* SPDX-License-Identifier: MIT */

/*
 * A turn has two halves. In the first one, connections receive, and their callbacks note what has
 * changed. In the second one calls, connections and channels follow, and everything leaves.
 */
#include "redis/servers/servers.h"

#include "redis/servers/calls.h"
#include "redis/servers/channels.h"
#include "redis/servers/cluster.h"
#include "redis/servers/health.h"
#include "redis/servers/probe.h"
#include "redis/servers/proof.h"
#include "redis/servers/sentinel.h"
#include "redis/servers/server.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

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

/* --- Connections --- */

static void changed(struct bel_redis_link *link, void *owner)
{
    struct bel_server *server = owner;
    struct bel_servers *servers = server->servers;
    servers->cluster.is_fresh = true;
    if (bel__redis_link_state(link) == BEL_REDIS_LINK_READY) {
        bel__probe_begin(server);
        bel__health_begin(server);
        bel__calls_take_unfit_back(server);
        bel__server_greet(server);
        bel__channels_begin(server);
        servers->pump_at.ns = 0;
        return;
    }
    servers->cluster.is_wanted = true;
    server->knows_replicas = false;
    bel__proof_lose(server);
    bel__calls_take_unfit_back(server);
    bel__channels_lose(server);
    (void)bel__why_say(&servers->why, 0, "%s", bel__redis_link_why(link));
}

static void pushed(struct bel_redis_link *link, void *owner, const struct bel_value *message)
{
    (void)link;
    bel__channels_hear(owner, message);
}

/* --- Opening and closing --- */

static struct bel_servers *create(const struct bel_servers_options *options,
                                  const struct bel_servers_owner *owner)
{
    struct bel_servers *servers = calloc(1, sizeof *servers);
    if (servers == NULL) return NULL;
    servers->options = *options;
    if (servers->options.call_ms == 0) servers->options.call_ms = BEL_REDIS_CALL_MS;
    servers->owner = *owner;
    servers->changed = changed;
    servers->pushed = pushed;
    servers->replicas_wanted = options->replicas;
    servers->slots_count = options->mode == BEL_REDIS_CLUSTER ? BEL_SLOTS : 1;
    servers->slots = calloc(servers->slots_count, sizeof *servers->slots);
    servers->pump_at.ns = BEL_NEVER;
    bel__list_init(&servers->all);
    bel__list_init(&servers->parked);
    if (servers->slots == NULL) {
        free(servers);
        return NULL;
    }
    return servers;
}

/* Opens the servers of the options: the only one, or those of a Cluster that are known. */
static int open_seeds(struct bel_servers *servers)
{
    const struct bel_servers_options *options = &servers->options;
    bool is_path = options->hosts_count == 0, is_cluster = bel__servers_are_cluster(servers);
    size_t count = is_cluster ? options->hosts_count : 1;
    for (size_t i = 0; i < count; i++) {
        struct bel_server *server =
            is_path ? bel__server_at(servers, NULL, 0)
                    : bel__server_at(servers, options->hosts[i].name, options->hosts[i].port);
        if (server == NULL) return BEL_ENOMEM;
        server->is_seed = true;
        int err = bel__server_open(server);
        if (err) return err;
        if (is_cluster) continue;
        servers->slots[0].server = server;
        server->slots_count = 1;
    }
    servers->cluster.is_wanted = true;
    return 0;
}

static void close_all(struct bel_servers *servers)
{
    for (struct bel_server *server; (server = first_of(servers)) != NULL;) {
        server->slots_count = 0;
        bel__server_remove(server);
    }
    bel__sentinels_close(servers);
    bel__channels_close(servers);
    bel__poller_close(&servers->poller);
    free(servers->slots);
    free(servers);
}

int bel__servers_open(const struct bel_servers_options *options,
                      const struct bel_servers_owner *owner, struct bel_servers **out)
{
    assert((options->hosts_count == 0) == (options->path != NULL));
    struct bel_servers *servers = create(options, owner);
    if (servers == NULL) return BEL_ENOMEM;
    int err = bel__poller_open(&servers->poller);
    if (err) {
        free(servers->slots);
        free(servers);
        return err;
    }
    err = bel__channels_open(servers);
    bool is_sentinel = options->mode == BEL_REDIS_SENTINEL;
    if (err == 0) err = is_sentinel ? bel__sentinels_open(servers) : open_seeds(servers);
    if (err) {
        close_all(servers);
        return err;
    }
    *out = servers;
    return 0;
}

void bel__servers_close(struct bel_servers *servers)
{
    if (servers == NULL) return;
    servers->is_closing = true;
    bel__calls_drop(servers);
    for (struct bel_server *server = first_of(servers); server != NULL; server = next_of(server)) {
        if (server->connection != NULL) bel__proof_lose(server);
    }
    close_all(servers);
}

/* --- Calls and channels --- */

int bel__servers_send(struct bel_servers *servers, struct bel_server_call *call,
                      struct bel_mono now)
{
    assert(call->done != NULL && call->command.bytes > 0 && call->slot < BEL_SLOTS);
    if (now.ns > servers->now.ns) servers->now = now;
    return bel__calls_send(servers, call);
}

bool bel__servers_is_sharded(const struct bel_servers *servers)
{
    return bel__servers_are_cluster(servers);
}

int bel__servers_listen(struct bel_servers *servers, struct bel_view channel)
{
    return bel__channels_listen(servers, channel);
}

/* --- Turns --- */

void bel__servers_receive(struct bel_servers *servers, struct bel_mono now)
{
    servers->now = now;
    bel__poller_receive(&servers->poller, now);
}

static struct bel_mono earlier(struct bel_mono a, struct bel_mono b)
{
    return a.ns < b.ns ? a : b;
}

struct bel_mono bel__servers_flush(struct bel_servers *servers, struct bel_mono now)
{
    struct bel_mono next = {BEL_NEVER};
    servers->now = now;
    if (bel__servers_are_cluster(servers)) {
        if (bel__cluster_follow(servers)) bel__channels_follow(servers);
        next = earlier(next, bel__cluster_ask(servers));
        next = earlier(next, bel__channels_subscribe(servers));
    }
    if (servers->options.mode == BEL_REDIS_SENTINEL) {
        bel__sentinels_follow(servers);
        next = earlier(next, bel__sentinels_ask(servers));
    }
    next = earlier(next, bel__probe_all(servers));
    next = earlier(next, bel__health_ask(servers));
    next = earlier(next, bel__calls_pump(servers));
    bel__proof_ask(servers);
    next = earlier(next, bel__poller_flush(&servers->poller, now));
    bool is_late = servers->sentinels.is_fresh ||
                   (bel__servers_are_cluster(servers) && servers->cluster.is_fresh);
    return is_late ? now : earlier(next, servers->pump_at);
}

int bel__servers_descriptor(const struct bel_servers *servers)
{
    return servers->poller.descriptor;
}

bool bel__servers_is_ready(const struct bel_servers *servers)
{
    if (bel__servers_are_cluster(servers)) return bel__cluster_is_ready(servers);
    const struct bel_server *server = servers->slots[0].server;
    return server != NULL && bel__server_is_ready(server) && !server->is_replica;
}

bool bel__servers_is_idle(const struct bel_servers *servers)
{
    if (!bel__servers_is_ready(servers) || servers->calls_count > 0) return false;
    if (!bel__channels_are_heard(servers)) return false;
    bool is_sentinel = servers->options.mode == BEL_REDIS_SENTINEL;
    if (is_sentinel && !bel__sentinels_are_idle(servers)) return false;
    bool is_cluster = bel__servers_are_cluster(servers);
    if (is_cluster && (servers->cluster.is_wanted || servers->cluster.is_fresh)) return false;
    for (struct bel_server *server = first_of(servers); server != NULL; server = next_of(server)) {
        if (server->connection != NULL && bel__redis_link_calls(server->connection) > 0) {
            return false;
        }
    }
    return true;
}

static void note(const struct bel_server *server, struct bel_server_note *out)
{
    struct bel_why why;
    bel__health_say(server, &why);
    *out = (struct bel_server_note){
        .host = server->host != NULL ? server->host : server->servers->options.path,
        .port = server->port,
        .is_ready = bel__server_is_ready(server) && !server->is_replica,
        .is_ailing = why.text[0] != 0,
        .connections = bel__redis_link_connections(server->connection),
        .server = bel__redis_link_server(server->connection),
    };
}

size_t bel__servers_note(const struct bel_servers *servers, struct bel_server_note *out,
                         size_t room)
{
    size_t count = 0;
    for (struct bel_server *server = first_of(servers); server != NULL; server = next_of(server)) {
        if (server->slots_count == 0 || server->connection == NULL) continue;
        if (count < room) note(server, &out[count]);
        count++;
    }
    return count;
}

/* A link that has never been ready tells nobody of its failures. */
const char *bel__servers_why(const struct bel_servers *servers)
{
    for (struct bel_server *server = first_of(servers); server != NULL; server = next_of(server)) {
        if (server->connection == NULL) continue;
        if (bel__server_is_ready(server) && server->is_replica) return "the server is a replica";
        if (bel__server_is_ready(server)) continue;
        const char *why = bel__redis_link_why(server->connection);
        if (why[0] != 0) return why;
    }
    return servers->why.text[0] != 0 ? servers->why.text : bel__sentinels_why(servers);
}

bool bel__servers_ail(const struct bel_servers *servers, struct bel_why *out)
{
    struct bel_why own = {.text = ""}, *why = out != NULL ? out : &own;
    why->text[0] = 0;
    for (struct bel_server *server = first_of(servers); server != NULL; server = next_of(server)) {
        if (server->slots_count == 0 || !bel__server_is_ready(server)) continue;
        bel__health_say(server, why);
        if (why->text[0] != 0) return true;
    }
    return false;
}

void bel__servers_print(const struct bel_servers *servers, uint16_t slot,
                        char out[BEL_SERVER_NAME_BYTES])
{
    const struct bel_server *server = servers->slots[servers->slots_count == 1 ? 0 : slot].server;
    if (server == NULL) {
        (void)snprintf(out, BEL_SERVER_NAME_BYTES, "the server");
    } else {
        bel__server_print(server, out);
    }
}
