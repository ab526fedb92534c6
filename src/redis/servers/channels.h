/* SPDX-License-Identifier: MIT */
#ifndef BEL_REDIS_SERVERS_CHANNELS_H
#define BEL_REDIS_SERVERS_CHANNELS_H

/*
 * channels - subscriptions to the channels on which scripts announce wake-ups.
 *
 * One server has one pattern for all channels. In a Cluster a channel belongs to a slot like a key,
 * and only the server of the slot passes its messages on: each channel is subscribed there, and
 * again after its slot has moved.
 */

#include "redis/servers/state.h"

BEL_CHECKED int bel__channels_open(struct bel_servers *servers);

/* All connections must be closed. */
void bel__channels_close(struct bel_servers *servers);

BEL_CHECKED int bel__channels_listen(struct bel_servers *servers, struct bel_view name);

/* A connection has become ready, or was lost. */
void bel__channels_begin(struct bel_server *server);
void bel__channels_lose(struct bel_server *server);

/* A message has arrived. */
void bel__channels_hear(struct bel_server *server, const struct bel_value *message);

/* There is a new map: finds the channels whose slot has moved. */
void bel__channels_follow(struct bel_servers *servers);

/* Subscribes to channels that have no subscription. Returns when to call it again. */
struct bel_mono bel__channels_subscribe(struct bel_servers *servers);

/* Returns whether every channel has a subscription. */
bool bel__channels_are_heard(const struct bel_servers *servers);

#endif
