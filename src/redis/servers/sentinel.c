/* SPDX-License-Identifier: MIT */
#include "redis/servers/sentinel.h"

#include "redis/servers/server.h"

#include "redis/link/command.h"

#include "core/buffer.h"
#include "core/parse.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    COMMAND_BYTES_MAX = 8192,
    AGAIN_MS = 250,     /* between two questions */
    STIRRED_MS = 10000, /* how long Sentinels are asked after one of them has announced a change */
    TIMEOUT_MS = 2000,
    HOST_BYTES = 256,
};

static const char subscribe_command[] = "*2\r\n$9\r\nSUBSCRIBE\r\n$14\r\n+switch-master\r\n";

/* One Sentinel. */
struct bel_sentinel {
    struct bel_servers *servers;
    struct bel_redis_link *connection;
    struct bel_redis_call ask, subscribe;
    bool is_asking, is_subscribing;
    bool is_stale;         /* it has not been asked on this connection */
    bool is_foreign;       /* it is connected, and no Sentinel */
    bool is_without;       /* it knows no primary of the name */
    char host[HOST_BYTES]; /* of the primary, as it says */
    uint16_t port;         /* 0: it has not said */
};

/* --- What Sentinels say --- */

/* Reads {host, port}. */
static bool read_address(struct bel_sentinel *sentinel, const struct bel_value *value)
{
    uint32_t port;
    if (value->type != BEL_VALUE_LIST || value->count != 2) return false;
    struct bel_view host = value->items[0].text, text = value->items[1].text;
    if (host.bytes == 0 || host.bytes >= HOST_BYTES) return false;
    if (memchr(host.data, 0, host.bytes) != NULL) return false;
    if (bel__parse_u32(text.data, text.bytes, 1, UINT16_MAX, &port) != 0) return false;
    memcpy(sentinel->host, host.data, host.bytes);
    sentinel->host[host.bytes] = 0;
    sentinel->port = (uint16_t)port;
    return true;
}

/* Returns a Sentinel whose answer more than half of all have given; NULL: there is none. */
static const struct bel_sentinel *agreed(const struct bel_sentinels *sentinels)
{
    for (size_t i = 0; i < sentinels->count; i++) {
        const struct bel_sentinel *one = &sentinels->items[i];
        size_t count = 0;
        if (one->port == 0) continue;
        for (size_t k = 0; k < sentinels->count; k++) {
            const struct bel_sentinel *other = &sentinels->items[k];
            count += other->port == one->port && strcmp(other->host, one->host) == 0;
        }
        if (count > sentinels->count / 2) return one;
    }
    return NULL;
}

static void say_foreign(struct bel_servers *servers, size_t index)
{
    const struct bel_redis_host *host = &servers->options.hosts[index];
    const char *tls = servers->options.tls != NULL ? "s" : "";
    (void)bel__why_say(&servers->why, 0,
                       "%.80s:%u is not a Sentinel; redis%s+sentinel:// wants the ports of the "
                       "Sentinels (default 26379); a server alone is redis%s://%.40s:%u",
                       host->name, (unsigned)host->port, tls, tls, host->name,
                       (unsigned)host->port);
}

static void say_unknown(struct bel_servers *servers, size_t index)
{
    const struct bel_redis_host *host = &servers->options.hosts[index];
    (void)bel__why_say(&servers->why, 0,
                       "the Sentinels know no primary of the name '%.80s'; its name is shown by: "
                       "redis-cli -h %.60s -p %u SENTINEL MASTERS",
                       servers->options.master, host->name, (unsigned)host->port);
}

/* Too few Sentinels have named the same primary; `index` is one that has named none, or `count`. */
static void say_too_few(struct bel_servers *servers, size_t index, size_t named)
{
    const struct bel_sentinels *sentinels = &servers->sentinels;
    size_t count = sentinels->count;
    bool has_why = index < count && !sentinels->items[index].is_foreign;
    const char *why = has_why ? bel__redis_link_why(sentinels->items[index].connection) : "";
    if (index == count) {
        (void)bel__why_say(&servers->why, 0, "the Sentinels do not agree on a primary yet");
    } else {
        (void)bel__why_say(&servers->why, 0,
                           "%zu of %zu Sentinels have named the primary, %zu must agree%s%.120s",
                           named, count, count / 2 + 1, why[0] != 0 ? "; " : "", why);
    }
}

/* Says why there is no primary that more than half of the Sentinels name. Nothing is said while
 * none has answered: their connections say why. */
static void assess(struct bel_servers *servers)
{
    const struct bel_sentinels *sentinels = &servers->sentinels;
    size_t count = sentinels->count, named = 0, foreign = 0, without = 0;
    size_t first_foreign = count, first_without = count, first_mute = count;
    if (agreed(sentinels) != NULL) return;
    for (size_t i = count; i-- > 0;) {
        const struct bel_sentinel *one = &sentinels->items[i];
        named += one->port != 0;
        foreign += one->is_foreign;
        without += one->is_without;
        if (one->is_foreign) first_foreign = i;
        if (one->is_without) first_without = i;
        if (one->port == 0) first_mute = i;
    }
    if (foreign > 0 && count - foreign <= count / 2) {
        say_foreign(servers, first_foreign);
    } else if (without > 0 && count - foreign - without <= count / 2) {
        say_unknown(servers, first_without);
    } else if (named > 0) {
        say_too_few(servers, first_mute, named);
    }
}

static void told(struct bel_redis_call *call, const struct bel_redis_reply *reply)
{
    struct bel_sentinel *sentinel = BEL_CONTAINER_OF(call, struct bel_sentinel, ask);
    struct bel_servers *servers = sentinel->servers;
    sentinel->is_asking = false;
    if (reply->err) return;
    sentinel->port = 0;
    sentinel->is_without = false;
    if (read_address(sentinel, reply->value)) {
        servers->sentinels.is_fresh = true;
    } else if (reply->value->type == BEL_VALUE_ERROR) {
        struct bel_view text = reply->value->text;
        (void)bel__why_say(&servers->why, 0, "a Sentinel replied: %.*s",
                           text.bytes < 160 ? (int)text.bytes : 160, (const char *)text.data);
    } else {
        sentinel->is_without = true;
        assess(servers);
    }
}

static void subscribed(struct bel_redis_call *call, const struct bel_redis_reply *reply)
{
    struct bel_sentinel *sentinel = BEL_CONTAINER_OF(call, struct bel_sentinel, subscribe);
    if (reply->is_last) sentinel->is_subscribing = false;
}

static void stir(struct bel_servers *servers)
{
    servers->sentinels.stirred = bel__servers_after(servers->now, STIRRED_MS);
    servers->sentinels.ask_at = servers->now;
}

/* Returns whether a server says that it is something else; one without RESP3 does not say. */
static bool is_foreign(const struct bel_redis_link *link)
{
    const char *mode = bel__redis_link_server(link)->mode;
    return mode[0] != 0 && strcmp(mode, "sentinel") != 0;
}

static void changed(struct bel_redis_link *link, void *owner)
{
    struct bel_sentinel *sentinel = owner;
    struct bel_servers *servers = sentinel->servers;
    if (bel__redis_link_state(link) != BEL_REDIS_LINK_READY) {
        sentinel->port = 0; /* what it has said may be old when it comes back */
        sentinel->is_foreign = sentinel->is_without = false;
        (void)bel__why_say(&servers->why, 0, "%s", bel__redis_link_why(link));
        return;
    }
    servers->sentinels.ask_at = servers->now;
    if (is_foreign(link)) {
        sentinel->is_foreign = true;
        assess(servers);
        return;
    }
    sentinel->is_stale = true;
    if (sentinel->is_subscribing) return;
    sentinel->subscribe =
        (struct bel_redis_call){.command = {subscribe_command, sizeof subscribe_command - 1},
                                .confirmed_by = "subscribe",
                                .done = subscribed};
    int err = bel__redis_link_send(link, &sentinel->subscribe, servers->now);
    sentinel->is_subscribing = err == 0;
}

/* The address in the message is not used: Sentinels are asked, and have to agree. */
static void pushed(struct bel_redis_link *link, void *owner, const struct bel_value *message)
{
    struct bel_sentinel *sentinel = owner;
    (void)link;
    if (bel_value_is(&message->items[0], "message")) stir(sentinel->servers);
}

/* --- Asking --- */

/* Returns whether the primary is known and may be written. */
static bool has_primary(const struct bel_servers *servers)
{
    const struct bel_server *server = servers->slots[0].server;
    return server != NULL && bel__server_is_ready(server) && !server->is_replica;
}

static void ask(struct bel_sentinel *sentinel)
{
    struct bel_servers *servers = sentinel->servers;
    struct bel_sentinels *sentinels = &servers->sentinels;
    bool is_ready = bel__redis_link_state(sentinel->connection) == BEL_REDIS_LINK_READY;
    if (!is_ready || sentinel->is_asking || sentinel->is_foreign) return;
    sentinel->ask = (struct bel_redis_call){
        .command = {bel__buffer_data(&sentinels->command), sentinels->command.count},
        .timeout_ms = TIMEOUT_MS,
        .done = told};
    int err = bel__redis_link_send(sentinel->connection, &sentinel->ask, servers->now);
    sentinel->is_asking = err == 0;
    sentinel->is_stale = false;
}

struct bel_mono bel__sentinels_ask(struct bel_servers *servers)
{
    struct bel_sentinels *sentinels = &servers->sentinels;
    bool is_needed = !has_primary(servers) || sentinels->stirred.ns > servers->now.ns;
    bool is_time = sentinels->ask_at.ns <= servers->now.ns;
    for (size_t i = 0; i < sentinels->count; i++) {
        struct bel_sentinel *sentinel = &sentinels->items[i];
        if ((is_needed && is_time) || sentinel->is_stale) ask(sentinel);
    }
    if (!is_needed) return (struct bel_mono){BEL_NEVER};
    if (is_time) sentinels->ask_at = bel__servers_after(servers->now, AGAIN_MS);
    return sentinels->ask_at;
}

/* --- Following --- */

void bel__sentinels_follow(struct bel_servers *servers)
{
    struct bel_sentinels *sentinels = &servers->sentinels;
    struct bel_server *server = servers->slots[0].server;
    if (!sentinels->is_fresh) return;
    sentinels->is_fresh = false;
    const struct bel_sentinel *said = agreed(sentinels);
    if (said == NULL) {
        assess(servers);
        return;
    }
    if (server == NULL) {
        server = bel__server_at(servers, said->host, said->port);
        if (server == NULL || bel__server_open(server) != 0) return; /* they are asked again */
        servers->slots[0].server = server;
        server->slots_count = 1;
        servers->pump_at.ns = 0;
    } else if (server->port != said->port || strcmp(server->host, said->host) != 0) {
        (void)!bel__server_move(server, said->host, said->port);
    }
}

const char *bel__sentinels_why(const struct bel_servers *servers)
{
    const struct bel_sentinels *sentinels = &servers->sentinels;
    for (size_t i = 0; i < sentinels->count; i++) {
        const struct bel_redis_link *link = sentinels->items[i].connection;
        if (bel__redis_link_state(link) != BEL_REDIS_LINK_READY &&
            bel__redis_link_why(link)[0] != 0) {
            return bel__redis_link_why(link);
        }
    }
    return "";
}

bool bel__sentinels_are_idle(const struct bel_servers *servers)
{
    const struct bel_sentinels *sentinels = &servers->sentinels;
    if (!has_primary(servers) || sentinels->is_fresh) return false;
    for (size_t i = 0; i < sentinels->count; i++) {
        const struct bel_sentinel *sentinel = &sentinels->items[i];
        if (sentinel->is_asking || sentinel->is_subscribing || sentinel->is_stale) return false;
    }
    return true;
}

/* --- Opening and closing --- */

static int encode(struct bel_servers *servers)
{
    struct bel_redis_command command;
    bel__redis_command_begin(&command, &servers->sentinels.command, 3);
    bel__redis_command_word(&command, "SENTINEL");
    bel__redis_command_word(&command, "GET-MASTER-ADDR-BY-NAME");
    bel__redis_command_word(&command, servers->options.master);
    return bel__redis_command_end(&command);
}

static int open_sentinel(struct bel_servers *servers, struct bel_sentinel *sentinel,
                         const struct bel_redis_host *host)
{
    const struct bel_servers_options *options = &servers->options;
    struct bel_redis_link_options link = {.poller = &servers->poller,
                                          .entropy = servers->owner.entropy,
                                          .host = host->name,
                                          .port = host->port,
                                          .tls = options->tls,
                                          .user = options->sentinel_user,
                                          .password = options->sentinel_password,
                                          .connect_ms = options->connect_ms,
                                          .owner = sentinel,
                                          .changed = changed,
                                          .pushed = pushed};
    sentinel->servers = servers;
    int err = bel__redis_link_open(&link, &sentinel->connection);
    if (err == 0) bel__redis_link_connect(sentinel->connection);
    return err;
}

int bel__sentinels_open(struct bel_servers *servers)
{
    const struct bel_servers_options *options = &servers->options;
    struct bel_sentinels *sentinels = &servers->sentinels;
    assert(options->master != NULL && options->hosts_count > 0);
    bel__buffer_init(&sentinels->command, COMMAND_BYTES_MAX);
    sentinels->items = calloc(options->hosts_count, sizeof *sentinels->items);
    int err = sentinels->items == NULL ? BEL_ENOMEM : encode(servers);
    for (size_t i = 0; err == 0 && i < options->hosts_count; i++) {
        err = open_sentinel(servers, &sentinels->items[i], &options->hosts[i]);
        if (err == 0) sentinels->count++;
    }
    return err;
}

void bel__sentinels_close(struct bel_servers *servers)
{
    struct bel_sentinels *sentinels = &servers->sentinels;
    for (size_t i = 0; i < sentinels->count; i++) {
        bel__redis_link_close(sentinels->items[i].connection);
    }
    free(sentinels->items);
    bel__buffer_finish(&sentinels->command);
    *sentinels = (struct bel_sentinels){.count = 0};
}
