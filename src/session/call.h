/* SPDX-License-Identifier: MIT */
#ifndef BEL_SESSION_CALL_H
#define BEL_SESSION_CALL_H

/*
 * call - the inside of a session: its commands under way, each a call.
 *
 *     in --parse--> calls: [GET, answered] [CLAIM, waits] [PING, answered] ...
 *                     |                         each but the first keeps its reply to itself
 *                     '--> out --> whoever writes
 *
 * A call stays in the list, which has the order of the commands, until it and all before it are
 * answered. A claim with deliveries stays until its reply is written as well, because if it never
 * is, they are released.
 */

#include "core/list.h"
#include "session/bind.h"
#include "session/resp.h"
#include "session/session.h"
#include "session/unsent_claims.h"

enum {
    BEL_SESSION_NAME_BYTES = 64,
};

/*
 * The life of a call, and the list of its session that it is in.
 *
 *     spare --take--> under way --answered--> answered --leave--> left --give--> spare
 *                      ^  |                                        |               ^
 *           background-'--'                                        |--> unwritten -|
 *                                                                  |      |        |
 *                                                                  '------'--> releasing
 */
enum bel_call_state {
    BEL_CALL_SPARE,
    BEL_CALL_UNDER_WAY,  /* in `calls` */
    BEL_CALL_BACKGROUND, /* in `calls`: a task of the server does it */
    BEL_CALL_ANSWERED,   /* in `calls`: has its reply, which waits for those before */
    BEL_CALL_LEFT,       /* in no list: its reply is in the output, or never will be */
    BEL_CALL_UNWRITTEN,  /* in `unwritten`: a claim whose reply is in the output */
    BEL_CALL_RELEASING,  /* in `releasing`: a claim whose reply never will be written */
};

struct bel_call {
    struct bel_request request;
    struct bel_link link;        /* in one of the session's lists */
    struct bel_call *next_spare; /* in the pool */
    struct bel_session *session; /* borrowed; lives at least as long */
    int version;                 /* of the protocol, when it was asked */
    enum bel_call_state state;
    bool is_lost; /* it was answered, but there was no room for it, and FULL was said */
    struct bel_background_task task;
    const struct bel_command_entry *entry; /* of the task */
    struct bel_buffer reply;               /* what has to wait for those before */
    uint8_t *block;                        /* words, then tokens; may be NULL */
    size_t block_bytes;
    struct bel_unsent_claims unsent; /* with tokens in the block */
    uint64_t end;                    /* of the reply, in bytes since the session began */
    size_t owed_bytes; /* how long its reply may become; 0: not long, or it is there */
};

/*
 * The life of a session. One that was destroyed is freed when it has nothing under way.
 *
 *     open --QUIT, a broken request--> ending --.
 *       |                                       v
 *       '--nobody reads, no memory, HTTP--> dropped --destroy--> destroyed
 */
enum bel_session_state {
    BEL_SESSION_OPEN,
    BEL_SESSION_ENDING,    /* takes no more commands */
    BEL_SESSION_DROPPED,   /* nobody will write its output */
    BEL_SESSION_DESTROYED, /* has no owner */
};

struct bel_session {
    enum bel_session_state state;
    const struct bel_service *service;
    struct bel_session_owner owner;
    struct bel_resp_parser parser;
    struct bel_buffer in, out;
    struct bel_list calls;     /* in the order of the commands */
    struct bel_list unwritten; /* claims that are answered, not written */
    struct bel_list releasing; /* claims that never will be */
    struct bel_call *spare;    /* its own; NULL while it is among them */
    size_t calls_count, commands_max;
    size_t output_max;             /* bytes, unread and owed */
    size_t kept_bytes;             /* of replies that wait for those before */
    size_t owed_bytes;             /* of replies to come, at most */
    uint64_t appended;             /* bytes put into the output since the session began */
    const struct bel_call *holder; /* holds back the commands behind it; NULL: none does */
    size_t request_bytes;          /* of a request that is parsed and waits; 0: none */
    int version;
    unsigned keys_wrong;
    struct bel_grant grant;
    bool is_known;    /* has come in by AUTH, or need not */
    bool is_refusing; /* what is behind MULTI */
    uint64_t id;
    struct bel_mono since; /* when it was introduced */
    char name[BEL_SESSION_NAME_BYTES], address[BEL_SESSION_NAME_BYTES];
};

/* A call for the next command, at the end of the list; NULL if there is no memory. */
struct bel_call *bel__call_take(struct bel_session *session);

/* Takes a call out of the list of commands. */
void bel__call_leave(struct bel_session *session, struct bel_call *call);

/* Says how long the reply of a call may become. */
void bel__call_owe(struct bel_session *session, struct bel_call *call, size_t bytes);

/* Gives back a call that is in no list. */
void bel__call_give(struct bel_session *session, struct bel_call *call);

/* Makes the block of a call at least so large. What was in it is lost. */
BEL_CHECKED int bel__call_reserve(struct bel_call *call, size_t bytes);

/* Copies the tokens of deliveries into the call's block, in place of its words. If there is no
 * memory they cannot be released, and end as leases do. */
void bel__call_keep_tokens(struct bel_call *call, const struct bel_reply *reply);

/* Ends a call that is in no list and will not be heard: its deliveries are released. A session
 * that was destroyed may be gone then. */
void bel__call_abandon(struct bel_session *session, struct bel_call *call);

/* Frees a session that was destroyed, if nothing of it is under way any more. */
void bel__session_free_if_gone(struct bel_session *session);

/* --- limits.c --- */

/* Returns the limits of a request, before or after the client has authenticated. */
struct bel_resp_limits bel__session_limits(const struct bel_service *service, bool is_known);

/* Sets the limits of a session, and makes its input and output. */
void bel__session_init_limits(struct bel_session *session);

/* Returns how many bytes may be unparsed. */
size_t bel__session_input_max(const struct bel_session *session);

/* Returns how long the reply to a command may become, 0 if it cannot be long; more than the output
 * may hold, so that the command is alone, if the length is unknown or too large. */
size_t bel__session_owed(const struct bel_session *session, const struct bel_command *command);

/* Returns whether one more command may be under way: there are not too many, and the output has
 * room for all that is owed. */
bool bel__session_may_add(const struct bel_session *session);

/* --- own_commands.c --- */

/* Whether a command that is the session's own, not a backend's, wants all before it answered. */
bool bel__own_command_is_barrier(const struct bel_command_entry *entry);

/* Does such a command, and writes its reply; or begins it, and then it is a task. */
void bel__own_command_do(struct bel_call *call, const struct bel_bound *bound,
                         struct bel_resp_writer *writer);

/* Writes the reply of a task that is done. */
void bel__own_command_end(const struct bel_call *call, int err, const char *why,
                          struct bel_resp_writer *writer);

/* --- command_docs.c --- */

/* Writes the reply of COMMAND, from the table of commands. */
void bel__command_docs_write(const struct bel_bound *bound, struct bel_resp_writer *writer);

#endif
