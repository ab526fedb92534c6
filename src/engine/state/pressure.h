/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_STATE_PRESSURE_H
#define BEL_ENGINE_STATE_PRESSURE_H

/*
 * pressure - refuses what adds while a limit is nearly reached; belfry/pressure.h has the levels.
 *
 *     cause at critical   SCHEDULE fails              JOB SUBMIT fails
 *     memory, disk        in every topic              always
 *     depth               in the topics that are      if a task is in such a topic
 *                         that close to their depth,
 *                         if it adds to that depth
 *     commit              never critical
 *
 * So one topic that is full does not stop the others. Occurrences of plans are always made: a plan
 * was accepted, and with OVERLAP skip it adds one timer at most.
 *
 * Jobs: a start of a task delays the next start of its job by bel__pressure_pace_ms(level) ms, with
 * the level engine->stats.pressure.level at that moment (backend/pressure.h, commands/claim.c).
 */

#include "backend/pressure.h"
#include "belfry/backend.h"

#include <stddef.h>
#include <stdint.h>

struct bel_engine;
struct bel_topic_state;

/* The search for the topic that is closest to its depth. With many topics, one sample looks at some
 * of them, and several samples at all. */
struct bel_depth_scan {
    uint32_t next;                  /* number of the next topic */
    struct bel_pressure_use found;  /* the worst since the search began at 0 */
    struct bel_pressure_use before; /* the worst of the search before */
};

bool bel__pressure_sample(struct bel_engine *engine, const struct bel_pressure_sample *sample);

/* Returns 0 if a timer or a task may be added to a topic; NULL: if one may be added that no depth
 * counts. Otherwise counts a refusal, sets `reply` to the cause and the remedy, and returns
 * BEL_EFULL. */
BEL_CHECKED int bel__pressure_check(struct bel_engine *engine, const struct bel_topic_state *topic,
                                    struct bel_reply *reply);

#endif
