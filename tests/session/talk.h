/* SPDX-License-Identifier: MIT */
#ifndef BEL_TESTS_TALK_H
#define BEL_TESTS_TALK_H

/*
 * talk - conversations with sessions, over an engine in memory and a clock that stands still.
 *
 *     talk_run(&talk, "> SCHEDULE mail hello ID a\n"
 *                     "\"a\"\n"
 *                     "> CLAIM mail\n"
 *                     "[[\"{token}\", \"mail\", \"a\", ...]]\n"
 *                     "> ACK {token}\n"
 *                     "1\n");
 *
 * A line with > is said, as a line of words; the lines behind it are what is heard, shown as in
 * decode.h, one reply each, all of them and no more. `2>` is another connection; if nothing is
 * said, what it has heard by now is looked at. `...` stands for anything, {name} for anything that
 * is remembered by that name and can be said; the second time it stands for the same. Lines with #
 * and empty ones are passed over. A line with ! is done to the stage:
 *
 *     !auth        AUTH is needed: the key is secret, users are root, reader, worker
 *     !system      the clock cannot be moved
 *     !wait 5s     time passes for those who wait
 *     !close 2     a connection is gone
 *     !closing 1   the server wants to close one
 *
 * Every conversation is held twice: bytes as they come, and each by itself.
 */

#include "belfry/engine.h"
#include "session/session.h"

#include <stdbool.h>

enum {
    TALK_SESSIONS = 8,
    TALK_NAMES_MAX = 64,
    TALK_NAME_BYTES = 32,
    TALK_VALUE_BYTES = 512,
    TALK_TEXT_BYTES = 1 << 20,
};

struct talk {
    struct bel_call_pool calls;
    struct bel_service service; /* may be changed before the first is said */
    struct bel_session *sessions[TALK_SESSIONS];
    struct bel_engine *engine;
    struct bel_zones *zones;
    struct bel_now now;
    struct bel_next next;
    bool is_slow;         /* bytes come one by one */
    bool is_shut;         /* SHUTDOWN was said */
    unsigned gone, ready; /* how often it was called */
    unsigned closed;      /* sessions that were destroyed */
    char backup[64];      /* of BACKUP */
    bool takes_a_while;   /* a BACKUP does: then it is an task */
    struct bel_background_task *task;
    struct {
        char name[TALK_NAME_BYTES], value[TALK_VALUE_BYTES];
    } names[TALK_NAMES_MAX];
    size_t names_count;
};

/* When every talk begins: 2026-01-01T00:00:00Z. */
#define TALK_START INT64_C(1767225600000)

void talk_open(struct talk *talk);
void talk_close(struct talk *talk);

/* The session of this number, from 1; it is made when it is first asked for. */
struct bel_session *talk_session(struct talk *talk, unsigned number);

/* Bytes that come in. */
void talk_receive(struct talk *talk, unsigned number, const void *data, size_t bytes);

/* Steps sessions and takes turns until nothing moves. */
void talk_settle(struct talk *talk);

/* Moves the clock, stopping at every deadline. */
void talk_advance(struct talk *talk, uint64_t ms);
/* Moves the clock that claims wait on. */
void talk_wait(struct talk *talk, uint64_t ms);

/* What a session has to say, which is then written: in one line for each reply. Lives until the
 * next call. */
const char *talk_heard(struct talk *talk, unsigned number);

/* Holds a conversation from the beginning. */
void talk_run(const char *text);

/* The same, in a talk that is open. */
void talk_go_on(struct talk *talk, const char *text);

#endif
