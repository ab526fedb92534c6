/* SPDX-License-Identifier: MIT */
#ifndef BEL_TESTS_REDIS_REDIS_LEFT_OUT_H
#define BEL_TESTS_REDIS_REDIS_LEFT_OUT_H

/*
 * redis_left_out - the cases of the suite that a backend on Redis does not pass, and what they
 * need.
 */

#include "conformance.h"

/* clang-format off */
#define REDIS_LEFT_OUT \
    {"shares", "GROUP and concurrency"}, \
    {"pressure", "a full server of Redis refuses by itself"}, \
    {"clocks", "steps of the wall clock: there is one timeline"}, \
    {"resources", "limits"}, \
    {"jobs", "jobs"}, \
    {"a_wait_sees_room_under_the_concurrency", "concurrency"}, \
    {"closed_resources_are_explained", "limits"}, \
    {"a_resource_has_the_characters_of_a_topic", "RESOURCE"}

/* Rules of reopening for an engine: on Redis, time goes on while no node runs. */
#define REDIS_LEFT_OUT_REOPENING \
    {"engine_time_does_not_go_back_with_the_wall_clock", "steps of the wall clock"}, \
    {"what_is_ready_is_not_due_later", "steps of the wall clock"}, \
    {"what_expires_while_closed_has_expired", "leases run while a node is closed"}, \
    {"a_lease_does_not_run_while_it_is_closed", "leases run while a node is closed"}, \
    {"a_lease_that_ends_soon_after_the_open_is_no_crash", "leases run while a node is closed"}, \
    {"a_lease_that_has_all_of_its_time_at_the_open_is_no_crash", \
     "leases run while a node is closed"}, \
    {"leases_count_for_their_groups_as_before", "GROUP"}, \
    {"limits_hold_after_reopening", "limits"}, \
    {"breakers_are_as_before_reopening", "limits"}
/* clang-format on */

static const struct left_out redis_left_out[] = {
    REDIS_LEFT_OUT, REDIS_LEFT_OUT_REOPENING, {NULL, NULL}};

#endif
