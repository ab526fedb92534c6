/* SPDX-License-Identifier: MIT */
#ifndef BEL_TESTS_SESSION_SPEAKER_H
#define BEL_TESTS_SESSION_SPEAKER_H

/*
 * speaker - a backend that says each command to a session as a client does, and takes the answer
 * from the bytes that come back.
 *
 *     suite --submit--> [words] --> session --> inner backend
 *     suite <--reply--- [bytes] <--'
 */

#include "belfry/backend.h"
#include "belfry/zone.h"

struct speaker;

/* Sets the version of RESP, 2 or 3, for speakers that are opened later. */
void speaker_set_version(int wanted);

/* Opens a speaker over a backend, which is borrowed. */
struct speaker *speaker_open(struct bel_backend *inner, struct bel_zones *zones,
                             struct bel_now now);

struct bel_backend *speaker_backend(struct speaker *speaker);

/* Hangs up all connections, and frees the speaker when the backend has answered their requests. */
void speaker_close(struct speaker *speaker, struct bel_now now);

#endif
