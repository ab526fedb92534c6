/* SPDX-License-Identifier: MIT */
#ifndef BEL_SESSION_OUTPUT_TOTAL_H
#define BEL_SESSION_OUTPUT_TOTAL_H

/*
 * output_total - the memory of the answers that clients have not read, of all connections, over
 * RESP and HTTP, and of those that are reserved for commands under way.
 *
 *     if (bel__output_total_crowd(total, entry) != BEL_SESSION_CROWD_NONE) ... wait;
 *     size_t owed = bel__output_owed(service, &command);     an upper bound, in most cases
 *     bel__output_total_recount(total, &counted, owed);      reserved before the next one is seen
 *     bel__output_total_expect(total, verb, owed);
 *     ... a turn ...
 *     bel__output_total_learn(total, bytes);
 *     bel__output_total_recount(total, &counted, memory);    until the client has read
 *
 * Because a command is reserved before the next one is looked at, the sum exceeds its limit by one
 * answer, also if all clients ask in the same turn. Short answers are counted and never wait.
 *
 * The work of a turn is bounded by what answers are expected to be: as long as the longest of the
 * last LEARN_REPLIES to 2 * LEARN_REPLIES, but not less than a minimum, which bounds how much more
 * a turn makes if they become longer. Claims need a sync, so more of them share a turn. Replies
 * about jobs take longer to make, so fewer of them do.
 *
 * Threads: a total belongs to one thread.
 */

#include "belfry/backend.h"
#include "commands/commands.h"

#include <stdbool.h>
#include <stddef.h>

struct bel_service;

/* Why a command must wait, if the answers of all connections take too much memory. */
enum bel_session_crowd {
    BEL_SESSION_CROWD_NONE,
    BEL_SESSION_CROWD_OWN,  /* above half of the limit, and the session has replies to write */
    BEL_SESSION_CROWD_FULL, /* above the limit, and the reply to the next command may be long */
    BEL_SESSION_CROWD_TURN, /* the next turn has enough to do, and this reply may be long, too */
    BEL_SESSION_CROWDS,
};

/* Starts zeroed, with a limit. Claims that wait are counted when they are answered. */
struct bel_output_total {
    size_t bytes; /* read only */
    size_t bytes_max;
    size_t turn_bytes;    /* private, as are the next: replies that the next turn may make */
    size_t reply_most[2]; /* bytes of the longest of the last replies, and of those before them */
    unsigned replies;     /* in reply_most[0] */
};

/* All functions accept that `total` is NULL: then there is no limit. */

/* Counts `bytes` for a connection instead of `*counted`. */
void bel__output_total_recount(struct bel_output_total *total, size_t *counted, size_t bytes);

/* Returns whether commands that stopped for this reason can go on. */
bool bel__output_total_has_room(const struct bel_output_total *total, enum bel_session_crowd crowd);

/* Returns whether the answer to a command may be long. */
bool bel__output_may_be_long(const struct bel_command_entry *entry);

/* Returns why a command must wait: FULL, TURN or NONE. */
enum bel_session_crowd bel__output_total_crowd(const struct bel_output_total *total,
                                               const struct bel_command_entry *entry);

/* Returns the limit of the unread output of a client. */
size_t bel__output_client_max(const struct bel_service *service);

/* Returns an upper bound of the size of the answer to a command, or 0 if the answer is short. If
 * the size is unknown or too large, the bound exceeds the output limit of a client. */
size_t bel__output_owed(const struct bel_service *service, const struct bel_command *command);

/* Counts a command that is submitted, whose answer is at most `owed` bytes, for the next turn. */
void bel__output_total_expect(struct bel_output_total *total, enum bel_verb verb, size_t owed);

/* Counts an answer that was made at once, without a turn of the backend, for the next turn. */
void bel__output_total_spend(struct bel_output_total *total, size_t bytes);

/* Notes how long an answer was that could be long. */
void bel__output_total_learn(struct bel_output_total *total, size_t bytes);

/* A turn was taken. Commands that have stopped for BEL_SESSION_CROWD_TURN can go on. */
void bel__output_total_end_turn(struct bel_output_total *total);

#endif
