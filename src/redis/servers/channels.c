/* SPDX-License-Identifier: MIT */

/*
 * A sharded channel is lost, asked or on.
 *
 *     lost --> asked --> on
 *       ^--------'-------'    the connection is lost, the slot has moved, the server has said so
 *
 * SSUBSCRIBE of channels in several slots is an error, so each channel has a call.
 */
#include "redis/servers/channels.h"

#include "redis/servers/server.h"

#include "redis/link/command.h"

#include "core/buffer.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    PATTERN_BYTES_MAX = 1024,
    NAME_BYTES_MAX = 1024,
    AGAIN_MS = 100, /* after an error */
};

struct bel_channel {
    struct bel_link link; /* in channels->lost */
    struct bel_servers *servers;
    struct bel_server *server; /* that is asked or has it; may be gone if the channel is lost */
    struct bel_redis_call call;
    struct bel_buffer command;
    struct bel_mono retry_at;
    struct bel_view name; /* after this struct */
    uint16_t slot;
    bool is_asked, is_on;
};

static void hear(struct bel_servers *servers, struct bel_view channel, struct bel_view text)
{
    servers->owner.heard(servers->owner.owner, channel, text);
}

static const struct bel_view nothing = {NULL, 0};

/* --- One pattern --- */

static void pattern_ended(struct bel_redis_call *call, const struct bel_redis_reply *reply)
{
    struct bel_channels *channels = BEL_CONTAINER_OF(call, struct bel_channels, pattern);
    struct bel_servers *servers = BEL_CONTAINER_OF(channels, struct bel_servers, channels);
    if (!reply->is_last) return;
    channels->is_subscribing = false;
    if (reply->err == 0) hear(servers, nothing, nothing);
}

static void subscribe_pattern(struct bel_server *server)
{
    struct bel_servers *servers = server->servers;
    struct bel_channels *channels = &servers->channels;
    if (channels->is_subscribing) return;
    channels->pattern = (struct bel_redis_call){
        .command = {bel__buffer_data(&channels->pattern_command), channels->pattern_command.count},
        .confirmed_by = "psubscribe",
        .done = pattern_ended};
    int err = bel__redis_link_send(server->connection, &channels->pattern, servers->now);
    channels->is_subscribing = err == 0;
    if (err) hear(servers, nothing, nothing); /* without RESP3 there are no messages */
}

void bel__channels_begin(struct bel_server *server)
{
    struct bel_servers *servers = server->servers;
    if (bel__servers_are_cluster(servers)) return;
    if (servers->owner.pattern.bytes > 0) {
        subscribe_pattern(server);
    } else {
        hear(servers, nothing, nothing);
    }
}

/* --- Sharded channels --- */

static struct bel_channel *channel_of(struct bel_link *link)
{
    return BEL_CONTAINER_OF(link, struct bel_channel, link);
}

static struct bel_channel *channel_at(const struct bel_channels *channels, uint32_t index)
{
    return (struct bel_channel *)(uintptr_t)bel__map_at(&channels->by_name, index)->value;
}

/* Notes that a channel has no subscription. */
static void lose(struct bel_channel *channel, struct bel_mono retry_at)
{
    struct bel_channels *channels = &channel->servers->channels;
    channel->is_on = false;
    channel->retry_at = retry_at;
    if (channel->is_asked || bel__link_is_linked(&channel->link)) return;
    bel__list_append(&channels->lost, &channel->link);
}

static void subscribed(struct bel_redis_call *call, const struct bel_redis_reply *reply)
{
    struct bel_channel *channel = BEL_CONTAINER_OF(call, struct bel_channel, call);
    struct bel_servers *servers = channel->servers;
    if (!reply->is_last) return;
    channel->is_asked = false;
    servers->channels.asked_count--;
    if (reply->err == 0 && reply->value->type != BEL_VALUE_ERROR) {
        channel->is_on = true;
        hear(servers, channel->name, nothing);
        return;
    }
    servers->cluster.is_wanted = true;
    lose(channel, bel__servers_after(servers->now, AGAIN_MS));
}

/* Returns whether the channel was asked for. */
static bool subscribe(struct bel_channel *channel, struct bel_server *server)
{
    struct bel_servers *servers = channel->servers;
    channel->call = (struct bel_redis_call){
        .command = {bel__buffer_data(&channel->command), channel->command.count},
        .confirmed_by = "ssubscribe",
        .done = subscribed};
    if (bel__redis_link_send(server->connection, &channel->call, servers->now) != 0) return false;
    bel__link_remove(&channel->link);
    channel->server = server;
    channel->is_asked = true;
    servers->channels.asked_count++;
    return true;
}

struct bel_mono bel__channels_subscribe(struct bel_servers *servers)
{
    struct bel_mono first = {BEL_NEVER};
    struct bel_list *lost = &servers->channels.lost;
    struct bel_link *next;
    for (struct bel_link *link = bel__list_first(lost); link != NULL; link = next) {
        struct bel_channel *channel = channel_of(link);
        struct bel_server *server = servers->slots[channel->slot].server;
        next = bel__list_next(lost, link);
        if (server == NULL || !bel__server_is_ready(server)) continue; /* until it is */
        if (channel->retry_at.ns <= servers->now.ns) {
            if (subscribe(channel, server)) continue;
            channel->retry_at = bel__servers_after(servers->now, AGAIN_MS);
        }
        if (channel->retry_at.ns < first.ns) first = channel->retry_at;
    }
    return first;
}

/* --- Their life --- */

static int encode(struct bel_channel *channel)
{
    struct bel_redis_command command;
    bel__redis_command_begin(&command, &channel->command, 2);
    bel__redis_command_word(&command, "SSUBSCRIBE");
    bel__redis_command_view(&command, channel->name);
    return bel__redis_command_end(&command);
}

static void free_channel(struct bel_channel *channel)
{
    bel__buffer_finish(&channel->command);
    free(channel);
}

int bel__channels_listen(struct bel_servers *servers, struct bel_view name)
{
    struct bel_channels *channels = &servers->channels;
    if (!bel__servers_are_cluster(servers)) return 0;
    if (bel__map_find(&channels->by_name, name.data, name.bytes) != NULL) return 0;
    struct bel_channel *channel = calloc(1, sizeof *channel + name.bytes);
    if (channel == NULL) return BEL_ENOMEM;
    memcpy(channel + 1, name.data, name.bytes);
    channel->servers = servers;
    channel->name = (struct bel_view){channel + 1, name.bytes};
    channel->slot = bel__slot_of(name);
    bel__buffer_init(&channel->command, (size_t)2 * NAME_BYTES_MAX);
    int err = encode(channel);
    if (err == 0) {
        err = bel__map_put(&channels->by_name, channel->name.data, name.bytes, (uintptr_t)channel);
    }
    if (err) {
        free_channel(channel);
        return BEL_ENOMEM;
    }
    lose(channel, servers->now);
    return 0;
}

void bel__channels_lose(struct bel_server *server)
{
    struct bel_channels *channels = &server->servers->channels;
    for (uint32_t i = 0; i < bel__map_count(&channels->by_name); i++) {
        struct bel_channel *channel = channel_at(channels, i);
        if (channel->is_on && channel->server == server) lose(channel, server->servers->now);
    }
}

void bel__channels_follow(struct bel_servers *servers)
{
    struct bel_channels *channels = &servers->channels;
    for (uint32_t i = 0; i < bel__map_count(&channels->by_name); i++) {
        struct bel_channel *channel = channel_at(channels, i);
        bool has_moved = channel->server != servers->slots[channel->slot].server;
        if (channel->is_on && has_moved) lose(channel, servers->now);
    }
}

static void hear_end(struct bel_server *server, struct bel_view name)
{
    struct bel_servers *servers = server->servers;
    const uint64_t *found = bel__map_find(&servers->channels.by_name, name.data, name.bytes);
    if (found == NULL) return;
    struct bel_channel *channel = (struct bel_channel *)(uintptr_t)*found;
    if (!channel->is_on || channel->server != server) return;
    servers->cluster.is_wanted = true;
    lose(channel, bel__servers_after(servers->now, AGAIN_MS));
}

void bel__channels_hear(struct bel_server *server, const struct bel_value *message)
{
    struct bel_servers *servers = server->servers;
    const struct bel_value *items = message->items;
    bool is_pattern = message->count == 4 && bel_value_is(&items[0], "pmessage");
    bool is_sharded = message->count == 3 && bel_value_is(&items[0], "smessage");
    if (message->count >= 2 && bel_value_is(&items[0], "sunsubscribe")) {
        hear_end(server, items[1].text);
    } else if (is_pattern || is_sharded) {
        struct bel_view text = items[message->count - 1].text;
        if (text.bytes > 0) hear(servers, items[message->count - 2].text, text);
    }
}

bool bel__channels_are_heard(const struct bel_servers *servers)
{
    const struct bel_channels *channels = &servers->channels;
    return bel__list_is_empty(&channels->lost) && channels->asked_count == 0;
}

int bel__channels_open(struct bel_servers *servers)
{
    struct bel_channels *channels = &servers->channels;
    struct bel_siphash_key secret;
    struct bel_redis_command command;
    bel__list_init(&channels->lost);
    bel__buffer_init(&channels->pattern_command, PATTERN_BYTES_MAX);
    if (bel__entropy_fill(servers->owner.entropy, &secret, sizeof secret) != 0) return BEL_EIO;
    bel__map_init(&channels->by_name, secret);
    bel__redis_command_begin(&command, &channels->pattern_command, 2);
    bel__redis_command_word(&command, "PSUBSCRIBE");
    bel__redis_command_view(&command, servers->owner.pattern);
    return bel__redis_command_end(&command);
}

void bel__channels_close(struct bel_servers *servers)
{
    struct bel_channels *channels = &servers->channels;
    for (uint32_t i = bel__map_count(&channels->by_name); i-- > 0;) {
        struct bel_channel *channel = channel_at(channels, i);
        (void)bel__map_remove(&channels->by_name, channel->name.data, channel->name.bytes, NULL);
        free_channel(channel);
    }
    bel__map_finish(&channels->by_name);
    bel__buffer_finish(&channels->pattern_command);
}
