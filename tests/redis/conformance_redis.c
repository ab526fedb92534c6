/* SPDX-License-Identifier: MIT */

/*
 * The suite against a Redis server; with --cluster against a Cluster, with --sentinel against a
 * primary that Sentinels watch, and with --partitions with three partitions in the usual topics.
 * The clock is virtual: scripts get the time of the turn. Every case has a namespace of its own.
 * Cases that need what this backend does not do are left out, by name and with the reason; both
 * are printed.
 */
#include "conformance.h"
#include "redis/redis.h"
#include "redis_group.h"
#include "redis_left_out.h"
#include "redis_server.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

enum {
    SKIPPED = 77, /* exit status, as meson reads it */
    SILENCE_MS = 60000,
};

static struct redis_server server;
static struct redis_group group;
static bool has_group, is_divided;
static struct bel_entropy_seeded entropy;
static unsigned cases;

struct opened {
    struct bel_redis_options options;
    struct bel_redis *redis;
};

static void open_redis(struct subject *s)
{
    struct opened *opened = calloc(1, sizeof *opened);
    CHECK(opened != NULL);
    struct bel_redis_options *options = &opened->options;
    if (has_group) {
        CHECK(bel__redis_parse(group.url, strlen(group.url), options, NULL) == 0);
    } else {
        options->servers.path = server.path;
    }
    options->is_virtual = true;
    options->entropy = &entropy.entropy;
    options->zones = s->zones;
    (void)snprintf(options->name_space, sizeof options->name_space, "case%u", ++cases);
    CHECK(bel__redis_open(options, s->now, &opened->redis) == 0);
    s->context = opened;
    s->backend = bel__redis_backend(opened->redis);
}

static void answered(struct bel_request *request, const struct bel_reply *reply)
{
    CHECK_NOTE("%s", reply->why);
    CHECK(reply->err == 0);
    *(bool *)request->user = true;
}

static void settle_redis(struct subject *s);

/* Gives a new topic three partitions. */
static void divide(struct subject *s, const char *topic)
{
    const struct bel_setting setting = {BEL_VIEW("partitions"), BEL_VIEW("3")};
    bool is_answered = false;
    struct bel_request request = {.done = answered, .user = &is_answered};
    request.command.verb = BEL_VERB_CONFIGURE;
    request.command.configure = (struct bel_configure){view(topic), &setting, 1};
    bel_backend_submit(s->backend, &request);
    s->next = bel_backend_turn(s->backend, s->now);
    settle_redis(s);
    CHECK(is_answered);
}

static void open_divided(struct subject *s)
{
    static const char *const topics[] = {"mail", "push", "t", "a", "b", "c"};
    open_redis(s);
    for (size_t i = 0; i < sizeof topics / sizeof topics[0]; i++) {
        divide(s, topics[i]);
    }
}

static void close_redis(struct subject *s)
{
    struct opened *opened = s->context;
    bel__redis_close(opened->redis);
    bel__redis_forget(&opened->options);
    free(opened);
}

/* Another node, for which the timers are those of the one before. */
static void reopen_redis(struct subject *s)
{
    struct opened *opened = s->context;
    bel__redis_close(opened->redis);
    CHECK(bel__redis_open(&opened->options, s->now, &opened->redis) == 0);
    s->backend = bel__redis_backend(opened->redis);
}

/* Takes turns until the server has answered everything. */
static void settle_redis(struct subject *s)
{
    struct pollfd fd = {.fd = bel_backend_descriptor(s->backend), .events = POLLIN};
    const struct opened *opened = s->context;
    while (!bel__redis_is_idle(opened->redis)) {
        CHECK(poll(&fd, 1, s->next.due.ns <= s->now.boot.ns ? 0 : SILENCE_MS) >= 0);
        s->next = bel_backend_turn(s->backend, s->now);
    }
}

/* What is not promised between partitions, and what this run does to its topics. */
#define ORDER  "claims keep no order between partitions"
#define DEPTH  "depth is split among partitions"
#define BYTES  "the bytes of a reply are limited in each partition"
#define EXISTS "the topics of this run exist from the start, and have partitions"

static const struct left_out left_out_divided[] = {
    REDIS_LEFT_OUT,
    {"an_id_is_made_if_none_is_given", ORDER},
    {"a_topic_exists_from_the_first_that_names_it", EXISTS},
    {"topics_are_sorted_by_their_bytes", EXISTS},
    {"depth_limits_unfinished_timers", DEPTH},
    {"timers_come_by_due_then_priority_then_sequence", ORDER},
    {"topics_take_turns", ORDER},
    {"a_claim_stops_when_payloads_exceed_1_mib", BYTES},
    {"headers_count_for_the_bytes_of_a_claim", BYTES},
    {"requests_of_one_turn_are_applied_in_their_order", ORDER},
    {"revive_of_more_than_a_slice_keeps_the_order_of_the_list", ORDER},
    {"an_expired_timer_does_not_count_for_depth", DEPTH},
    {"an_expired_timer_is_finished_for_every_verb", ORDER},
    {"a_time_in_a_gap_rings_at_its_end_or_not_at_all", ORDER},
    {"a_time_that_comes_twice_rings_first_second_or_both", ORDER},
    {"cancel_of_a_plan_takes_its_occurrences", ORDER},
    {"timers_are_listed_by_due_then_what_has_none_then_the_ends", ORDER},
    {"a_state_lists_only_those", ORDER},
    {"a_page_ends_after_a_mebibyte", BYTES},
    {"what_stays_is_listed_once_while_others_change", ORDER},
    {"cursors_go_from_one_kind_to_the_next", ORDER},
    {"a_topic_counts_by_state", ORDER},
    {"purge_takes_what_is_terminal", ORDER},
    {"settings_have_defaults", EXISTS},
    {"every_timer_is_explained", ORDER},
    {"names_that_cannot_be_a_topics_are_refused_everywhere", EXISTS},
    {"a_refusal_changes_nothing", EXISTS},
    {NULL, NULL},
};

static bool start(const char *mode)
{
    has_group = mode != NULL && !is_divided;
    if (mode == NULL || is_divided) return redis_server_start(&server);
    if (strcmp(mode, "--cluster") == 0) return group_start_cluster(&group, false);
    CHECK(strcmp(mode, "--sentinel") == 0);
    return group_start_sentinels(&group);
}

int main(int argc, char **argv)
{
    static const struct kind kind = {.name = "Redis",
                                     .can = CAN_REOPEN,
                                     .open = open_redis,
                                     .close = close_redis,
                                     .reopen = reopen_redis,
                                     .settle = settle_redis,
                                     .left_out = redis_left_out};
    const char *mode = argc > 1 && argv[1][0] == '-' ? argv[1] : NULL;
    static const struct kind divided = {.name = "Redis with partitions",
                                        .open = open_divided,
                                        .close = close_redis,
                                        .settle = settle_redis,
                                        .left_out = left_out_divided};
    is_divided = mode != NULL && strcmp(mode, "--partitions") == 0;
    const char *name = mode != NULL ? argv[2] : argv[1];
    if (!start(mode)) {
        (void)printf("SKIPPED: there is no such server on this machine\n");
        return SKIPPED;
    }
    bel__entropy_seed(&entropy, 1);
    int status = conformance_run(is_divided ? &divided : &kind, argc > 1 ? name : NULL);
    if (has_group) {
        group_stop(&group);
    } else {
        redis_server_stop(&server);
    }
    return status;
}
