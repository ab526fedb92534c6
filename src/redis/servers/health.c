/* SPDX-License-Identifier: MIT */
#include "redis/servers/health.h"

#include "redis/link/info.h"
#include "redis/servers/server.h"

#include "core/view.h"

#include <string.h>

enum {
    TIMEOUT_MS = 5000,
    SOON_MS = 1000, /* until a server is asked again that refuses changes */
    STATUS_BYTES = 16,
};

static const char info_command[] = "*3\r\n$4\r\nINFO\r\n$6\r\nmemory\r\n$11\r\npersistence\r\n";

/* The disk of a server that refuses changes because of a snapshot is fine when that was repeated;
 * a failed snapshot alone refuses nothing, if the server is configured so. */
static void judge(struct bel_server *server, struct bel_view info)
{
    char log[STATUS_BYTES], snapshot[STATUS_BYTES];
    bel__info_find(info, "maxmemory_policy", server->policy, sizeof server->policy);
    bel__info_find(info, "aof_last_write_status", log, sizeof log);
    bel__info_find(info, "rdb_last_bgsave_status", snapshot, sizeof snapshot);
    bool has_log_failed = strcmp(log, "err") == 0,
         has_snapshot_failed = strcmp(snapshot, "err") == 0;
    server->has_disk_failed = has_log_failed || (server->has_disk_failed && has_snapshot_failed);
}

/* A user that may not ask, or a server that tells nothing: nothing is known, also of what was known
 * before. The next MISCONF tells again. A script that runs for long ends, and says nothing. */
static void forget(struct bel_server *server, const struct bel_value *error)
{
    if (bel__view_is(bel_value_code(error), "BUSY")) return;
    server->has_disk_failed = false;
    server->policy[0] = 0;
}

static void told(struct bel_redis_call *call, const struct bel_redis_reply *reply)
{
    struct bel_server *server = BEL_CONTAINER_OF(call, struct bel_server, health);
    struct bel_servers *servers = server->servers;
    uint32_t ms = servers->options.health_ms;
    server->is_examined = server->is_new = false;
    servers->pump_at.ns = 0;
    bool is_error = reply->err == 0 && reply->value->type == BEL_VALUE_ERROR;
    if (is_error) forget(server, reply->value);
    if (reply->err == 0 && !is_error) judge(server, reply->value->text);
    if (server->has_disk_failed && ms > SOON_MS) ms = SOON_MS;
    server->health_at = bel__servers_after(servers->now, ms);
}

static void ask(struct bel_server *server)
{
    struct bel_servers *servers = server->servers;
    server->health = (struct bel_redis_call){
        .command = {info_command, sizeof info_command - 1}, .timeout_ms = TIMEOUT_MS, .done = told};
    int err = bel__redis_link_send(server->connection, &server->health, servers->now);
    server->is_examined = err == 0;
    if (err) server->health_at = bel__servers_after(servers->now, SOON_MS);
}

void bel__health_begin(struct bel_server *server)
{
    if (server->servers->options.health_ms == 0) return;
    if (!server->is_examined) ask(server); /* or one is left over from the last connection */
    server->is_new = server->is_examined;
}

struct bel_mono bel__health_ask(struct bel_servers *servers)
{
    struct bel_mono first = {BEL_NEVER};
    if (servers->options.health_ms == 0) return first;
    for (struct bel_link *link = bel__list_first(&servers->all); link != NULL;
         link = bel__list_next(&servers->all, link)) {
        struct bel_server *server = BEL_CONTAINER_OF(link, struct bel_server, link);
        if (server->slots_count == 0 || !bel__server_is_ready(server)) continue;
        if (!server->is_examined && server->health_at.ns <= servers->now.ns) ask(server);
        if (!server->is_examined && server->health_at.ns < first.ns) first = server->health_at;
    }
    return first;
}

void bel__health_hear(struct bel_server *server, const struct bel_value *error)
{
    struct bel_servers *servers = server->servers;
    if (servers->options.health_ms == 0 || !bel__view_is(bel_value_code(error), "MISCONF")) return;
    if (!server->has_disk_failed) server->health_at = bel__servers_after(servers->now, SOON_MS);
    server->has_disk_failed = true;
}

void bel__health_wrote(struct bel_server *server)
{
    server->has_disk_failed = false;
}

static bool may_evict(const struct bel_server *server)
{
    return server->policy[0] != 0 && strcmp(server->policy, "noeviction") != 0;
}

bool bel__health_refuses(const struct bel_server *server, struct bel_why *why)
{
    char name[BEL_SERVER_NAME_BYTES];
    if (!may_evict(server)) return false;
    bel__server_print(server, name);
    (void)bel__why_say(why, 0,
                       "nothing was changed: %s may delete timers: set maxmemory-policy to "
                       "noeviction",
                       name);
    return true;
}

void bel__health_say(const struct bel_server *server, struct bel_why *why)
{
    char name[BEL_SERVER_NAME_BYTES];
    why->text[0] = 0;
    bel__server_print(server, name);
    if (server->has_disk_failed) {
        (void)bel__why_say(why, 0, "%s cannot write to its disk, and refuses changes", name);
    } else if (may_evict(server)) {
        (void)bel__why_say(why, 0, "%s may delete timers: its maxmemory-policy is %s", name,
                           server->policy);
    }
}
