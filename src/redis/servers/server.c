/* SPDX-License-Identifier: MIT */
#include "redis/servers/server.h"

#include "core/units.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    WAIT_BYTES_MAX = 256,
};

/* A command that is sent first on a connection. */
struct bel_first {
    struct bel_redis_call call;
    bool is_under_way;
};

struct bel_mono bel__servers_after(struct bel_mono now, uint64_t ms)
{
    struct bel_mono due;
    return bel_mono_add(now, ms * NS_PER_MS, &due) == 0 ? due : (struct bel_mono){BEL_NEVER - 1};
}

static bool is_at(const struct bel_server *server, const char *host, uint16_t port)
{
    if (host == NULL || server->host == NULL) return host == server->host;
    return server->port == port && strcmp(server->host, host) == 0;
}

static struct bel_server *create(struct bel_servers *servers, const char *host, uint16_t port)
{
    struct bel_server *server = calloc(1, sizeof *server);
    if (server == NULL) return NULL;
    server->first = calloc(servers->owner.first_count + 1, sizeof *server->first);
    server->host = host == NULL ? NULL : strdup(host);
    if (server->first == NULL || (host != NULL && server->host == NULL)) {
        free(server->first);
        free(server->host);
        free(server);
        return NULL;
    }
    server->servers = servers;
    server->number = ++servers->servers_count;
    server->port = port;
    server->used = servers->now;
    bel__list_init(&server->calls);
    bel__list_init(&server->kept);
    bel__buffer_init(&server->wait_command, WAIT_BYTES_MAX);
    bel__list_append(&servers->all, &server->link);
    return server;
}

struct bel_server *bel__server_at(struct bel_servers *servers, const char *host, uint16_t port)
{
    for (struct bel_link *link = bel__list_first(&servers->all); link != NULL;
         link = bel__list_next(&servers->all, link)) {
        struct bel_server *server = BEL_CONTAINER_OF(link, struct bel_server, link);
        if (is_at(server, host, port)) return server;
    }
    return create(servers, host, port);
}

int bel__server_open(struct bel_server *server)
{
    const struct bel_servers_options *options = &server->servers->options;
    if (server->connection != NULL) return 0;
    struct bel_redis_link_options link = {.poller = &server->servers->poller,
                                          .entropy = server->servers->owner.entropy,
                                          .host = server->host,
                                          .port = server->port,
                                          .path = server->host == NULL ? options->path : NULL,
                                          .tls = options->tls,
                                          .user = options->user,
                                          .password = options->password,
                                          .name = options->name,
                                          .db = options->db,
                                          .connect_ms = options->connect_ms,
                                          .call_ms = options->call_ms,
                                          .reply_bytes_max = options->reply_bytes_max,
                                          .owner = server,
                                          .changed = server->servers->changed,
                                          .pushed = server->servers->pushed};
    int err = bel__redis_link_open(&link, &server->connection);
    if (err == 0) bel__redis_link_connect(server->connection);
    return err;
}

void bel__server_close(struct bel_server *server)
{
    bel__redis_link_close(server->connection);
    server->connection = NULL;
    assert(bel__list_is_empty(&server->calls));
}

void bel__server_remove(struct bel_server *server)
{
    assert(server->slots_count == 0);
    bel__server_close(server);
    bel__link_remove(&server->link);
    assert(bel__list_is_empty(&server->kept));
    bel__buffer_finish(&server->wait_command);
    free(server->first);
    free(server->host);
    free(server);
}

void bel__server_call_end(struct bel_server_call *call, const struct bel_redis_reply *reply)
{
    assert(call->servers->calls_count > 0 && !bel__link_is_linked(&call->link));
    call->servers->calls_count--;
    call->done(call, reply);
}

int bel__server_move(struct bel_server *server, const char *host, uint16_t port)
{
    char *copy = strdup(host);
    int err = copy == NULL ? BEL_ENOMEM : bel__redis_link_move(server->connection, host, port);
    if (err) {
        free(copy);
        return err;
    }
    free(server->host);
    server->host = copy;
    server->port = port;
    return 0;
}

static void first_ended(struct bel_redis_call *call, const struct bel_redis_reply *reply)
{
    struct bel_first *first = BEL_CONTAINER_OF(call, struct bel_first, call);
    if (reply->is_last) first->is_under_way = false;
}

/* A call for each: a server replies to the first command before it has received the last one. */
void bel__server_greet(struct bel_server *server)
{
    const struct bel_servers_owner *owner = &server->servers->owner;
    for (size_t i = 0; i < owner->first_count; i++) {
        struct bel_first *first = &server->first[i];
        if (first->is_under_way) continue;
        first->call = (struct bel_redis_call){.command = owner->first[i], .done = first_ended};
        int err = bel__redis_link_send(server->connection, &first->call, server->servers->now);
        first->is_under_way = err == 0;
    }
}

bool bel__server_lacks_replicas(const struct bel_server *server)
{
    const struct bel_servers *servers = server->servers;
    if (servers->options.durability != BEL_DURABILITY_WAIT) return false;
    return !server->knows_replicas || servers->replicas_wanted == 0 ||
           server->replicas < servers->replicas_wanted;
}

bool bel__server_is_ready(const struct bel_server *server)
{
    return server->connection != NULL &&
           bel__redis_link_state(server->connection) == BEL_REDIS_LINK_READY;
}

void bel__server_print(const struct bel_server *server, char out[BEL_SERVER_NAME_BYTES])
{
    const char *host = server->host;
    if (host == NULL) {
        (void)snprintf(out, BEL_SERVER_NAME_BYTES, "%.100s", server->servers->options.path);
        return;
    }
    bool is_six = strchr(host, ':') != NULL;
    (void)snprintf(out, BEL_SERVER_NAME_BYTES, is_six ? "[%.100s]:%u" : "%.100s:%u", host,
                   (unsigned)server->port);
}
