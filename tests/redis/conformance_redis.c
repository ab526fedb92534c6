/* SPDX-License-Identifier: MIT */

/*
 * The suite against a Redis server. The clock is virtual: scripts get the time of the turn. Every
 * case has a namespace of its own. Cases that need what this backend does not do are left out, by
 * name and with the reason; both are printed.
 */
#include "conformance.h"
#include "redis/redis.h"
#include "redis_server.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

enum {
    SKIPPED = 77, /* exit status, as meson reads it */
    SILENCE_MS = 60000,
};

static struct redis_server server;
static struct bel_entropy_seeded entropy;
static unsigned cases;

static void open_redis(struct subject *s)
{
    struct bel_redis_options options = {
        .is_virtual = true, .entropy = &entropy.entropy, .zones = s->zones};
    struct bel_redis *redis;
    (void)snprintf(options.name_space, sizeof options.name_space, "case%u", ++cases);
    options.link.path = server.path;
    CHECK(bel__redis_open(&options, s->now, &redis) == 0);
    s->context = redis;
    s->backend = bel__redis_backend(redis);
}

static void close_redis(struct subject *s)
{
    bel__redis_close(s->context);
}

/* Takes turns until the server has answered everything. */
static void settle_redis(struct subject *s)
{
    struct pollfd fd = {.fd = bel_backend_descriptor(s->backend), .events = POLLIN};
    while (!bel__redis_is_idle(s->context)) {
        CHECK(poll(&fd, 1, s->next.due.ns <= s->now.boot.ns ? 0 : SILENCE_MS) >= 0);
        s->next = bel_backend_turn(s->backend, s->now);
    }
}

static const struct left_out left_out[] = {
    {"agenda", "AGENDA"},
    {"explaining", "EXPLAIN"},
    {"an_occurrence_has_what_the_plan_has", "GROUP or RESOURCE"},
    {"all_that_was_said_is_told", "GROUP or RESOURCE"},
    {"replace_makes_a_whole_new_record", "GROUP or RESOURCE"},
    {"it_expires_before_a_later_due", "AGENDA"},
    {"a_setting_is_told_as_it_can_be_set", "concurrency"},
    {"a_wait_sees_room_under_the_concurrency", "concurrency"},
    {"what_is_too_long_is_refused", "GROUP or RESOURCE"},
    {"a_resource_has_the_characters_of_a_topic", "GROUP or RESOURCE"},
    {NULL, NULL},
};

int main(int argc, char **argv)
{
    static const struct kind kind = {.name = "Redis",
                                     .open = open_redis,
                                     .close = close_redis,
                                     .settle = settle_redis,
                                     .left_out = left_out};
    if (!redis_server_start(&server)) {
        (void)printf("SKIPPED: there is no redis-server on this machine\n");
        return SKIPPED;
    }
    bel__entropy_seed(&entropy, 1);
    int status = conformance_run(&kind, argc > 1 ? argv[1] : NULL);
    redis_server_stop(&server);
    return status;
}
