/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_COMMANDS_EXPLAINING_H
#define BEL_ENGINE_COMMANDS_EXPLAINING_H

/*
 * explaining - what EXPLAIN is about: the timer as GET shows it, and as the engine has it.
 */

#include "engine/state/timer.h"
#include "telling/timer.h"

struct bel_engine;

struct bel_explaining {
    struct bel_telling telling;
    struct bel_engine *engine;
    struct bel_found *found;
};

/* Tell why no task of the timer's job starts; that its topic is paused, if it is; all of a ready
 * timer. */
void bel__tell_held_job(struct bel_explaining *about);
void bel__tell_pause(struct bel_explaining *about);
void bel__tell_ready(struct bel_explaining *about);

/* Tells which of the resources that the timer needs are closed; of a timer that is not due yet,
 * those that will be closed when it is. Returns whether one is. */
bool bel__tell_resources(struct bel_explaining *about);

#endif
