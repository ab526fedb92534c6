/* SPDX-License-Identifier: MIT */

/*
 * The suite, spoken to sessions over a backend on a Redis server: what a client of belfry serve
 * --store redis:// gets. The clock is virtual. With --resp3 it is spoken in version 3.
 */
#include "../check.h"
#include "../session/speaker.h"
#include "conformance.h"
#include "redis/redis.h"
#include "redis_left_out.h"
#include "redis_server.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SKIPPED = 77, /* exit status, as meson reads it */
    SILENCE_MS = 60000,
};

static struct redis_server server;
static struct bel_entropy_seeded entropy;
static unsigned cases;

struct spoken {
    struct bel_redis_options options;
    struct bel_redis *redis;
    struct speaker *speaker;
};

static void open_spoken(struct subject *s)
{
    struct spoken *spoken = calloc(1, sizeof *spoken);
    CHECK(spoken != NULL);
    spoken->options = (struct bel_redis_options){
        .is_virtual = true, .entropy = &entropy.entropy, .zones = s->zones};
    spoken->options.servers.path = server.path;
    (void)snprintf(spoken->options.name_space, sizeof spoken->options.name_space, "case%u",
                   ++cases);
    CHECK(bel__redis_open(&spoken->options, s->now, &spoken->redis) == 0);
    spoken->speaker = speaker_open(bel__redis_backend(spoken->redis), s->zones, s->now);
    s->context = spoken;
    s->backend = speaker_backend(spoken->speaker);
}

static void close_spoken(struct subject *s)
{
    struct spoken *spoken = s->context;
    speaker_close(spoken->speaker, s->now);
    bel__redis_close(spoken->redis);
    free(spoken);
}

/* Takes turns until the server has answered everything. */
static void settle_spoken(struct subject *s)
{
    const struct spoken *spoken = s->context;
    const struct bel_backend *backend = bel__redis_backend(spoken->redis);
    struct pollfd fd = {.fd = bel_backend_descriptor(backend), .events = POLLIN};
    while (!bel__redis_is_idle(spoken->redis)) {
        CHECK(poll(&fd, 1, s->next.due.ns <= s->now.boot.ns ? 0 : SILENCE_MS) >= 0);
        s->next = bel_backend_turn(s->backend, s->now);
    }
}

int main(int argc, char **argv)
{
    static const struct kind spoken = {.name = "Redis, spoken to",
                                       .open = open_spoken,
                                       .close = close_spoken,
                                       .settle = settle_spoken,
                                       .left_out = redis_left_out};
    int used = 1;
    if (argc > 1 && strcmp(argv[1], "--resp3") == 0) {
        speaker_set_version(3);
        used++;
    }
    if (!redis_server_start(&server)) {
        (void)printf("SKIPPED: there is no redis-server on this machine\n");
        return SKIPPED;
    }
    bel__entropy_seed(&entropy, 1);
    int status = conformance_run(&spoken, argc > used ? argv[used] : NULL);
    redis_server_stop(&server);
    return status;
}
