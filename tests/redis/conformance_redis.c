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
    struct bel_redis_options options = {.is_virtual = true, .entropy = &entropy.entropy};
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
    {"plans", "plans"},
    {"overlap", "plans"},
    {"misfire", "plans"},
    {"agenda", "AGENDA"},
    {"explaining", "EXPLAIN"},
    {"all_that_was_said_is_told", "GROUP or RESOURCE"},
    {"replace_makes_a_whole_new_record", "GROUP or RESOURCE"},
    {"earliest_compares_with_the_next_time_of_a_plan", "plans"},
    {"the_id_of_an_occurrence_is_always_a_conflict", "plans"},
    {"a_plan_that_is_replaced_leaves_its_occurrences", "plans"},
    {"depth_refuses_neither_plans_nor_occurrences", "plans"},
    {"it_expires_before_a_later_due", "AGENDA"},
    {"a_delay_goes_on_after_an_occurrence_has_expired", "plans"},
    {"a_queue_that_has_expired_ends_at_once", "plans"},
    {"a_purge_leaves_what_was_blocked", "plans"},
    {"an_occurrence_expires_from_its_nominal_time", "plans"},
    {"an_expired_occurrence_is_in_nobodys_way", "plans"},
    {"several_occurrences_of_a_plan_can_have_expired", "plans"},
    {"timers_are_listed_by_due_then_what_has_none_then_the_ends", "plans"},
    {"a_state_lists_only_those", "plans"},
    {"what_has_no_due_is_listed_by_sequence", "plans"},
    {"from_and_to_compare_with_due", "plans"},
    {"cursors_go_from_one_kind_to_the_next", "plans"},
    {"a_topic_counts_by_state", "plans"},
    {"what_has_no_due_is_not_listed_by_priority", "plans"},
    {"a_setting_is_told_as_it_can_be_set", "concurrency"},
    {"a_wait_sees_room_under_the_concurrency", "concurrency"},
    {"a_wait_sees_the_occurrences_of_plans", "plans"},
    {"what_is_too_long_is_refused", "GROUP or RESOURCE"},
    {"a_resource_has_the_characters_of_a_topic", "GROUP or RESOURCE"},
    {"plans_that_cannot_be_are_refused", "plans"},
    {"a_refusal_changes_nothing", "plans"},
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
