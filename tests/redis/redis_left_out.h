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
    {"an_occurrence_has_what_the_plan_has", "GROUP or RESOURCE"}, \
    {"all_that_was_said_is_told", "GROUP or RESOURCE"}, \
    {"replace_makes_a_whole_new_record", "GROUP or RESOURCE"}, \
    {"a_setting_is_told_as_it_can_be_set", "concurrency"}, \
    {"a_wait_sees_room_under_the_concurrency", "concurrency"}, \
    {"closed_resources_are_explained", "GROUP or RESOURCE"}, \
    {"what_is_too_long_is_refused", "GROUP or RESOURCE"}, \
    {"a_resource_has_the_characters_of_a_topic", "GROUP or RESOURCE"}
/* clang-format on */

static const struct left_out redis_left_out[] = {REDIS_LEFT_OUT, {NULL, NULL}};

#endif
