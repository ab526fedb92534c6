/* SPDX-License-Identifier: MIT */
#ifndef BEL_SESSION_CALL_H
#define BEL_SESSION_CALL_H

/*
 * call - a command that a session executes. Private to src/session.
 *
 *     in --parse--> calls: [GET, answered] [CLAIM, waits] [PING, answered] ...
 *                     |                    each but the first buffers its own reply
 *                     '--> out --> written by the connection
 *
 * The list has the order of the commands. A call stays in it until the call and all before it are
 * answered. A claim with deliveries is kept until its reply is written: if the reply is never
 * written, the deliveries are released.
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
 * The lifecycle of a call, and the list of the session that contains it.
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
    BEL_CALL_BACKGROUND, /* in `calls`: a background task executes it */
    BEL_CALL_ANSWERED,   /* in `calls`: its reply waits for the replies of earlier calls */
    BEL_CALL_LEFT,       /* in no list: its reply is in the output, or is lost */
    BEL_CALL_UNWRITTEN,  /* in `unwritten`: a claim whose reply is in the output; or `unread` */
    BEL_CALL_RELEASING,  /* in `releasing`: a claim whose reply is lost */
};

struct bel_call {
    struct bel_request request;
    struct bel_link link;        /* in one of the session's lists */
    struct bel_call *next_spare; /* in the pool */
    struct bel_session *session; /* borrowed; lives at least as long */
    int version;                 /* of the protocol, when the command was received */
    enum bel_call_state state;
    bool has_reason; /* EXPLAIN: the reply is a map with the reason */
    bool is_lost;    /* the buffer had no room for the reply; FULL was sent instead */
    struct bel_background_task task;
    const struct bel_command_entry *entry; /* of the task */
    struct bel_buffer reply;               /* waits for the replies of earlier calls */
    uint8_t *block;                        /* words of the command, later tokens; may be NULL */
    size_t block_bytes;
    struct bel_unsent_claims unsent; /* its tokens are in the block */
    uint64_t end;                    /* of the reply, in bytes since the session was created */
    size_t owed_bytes;    /* upper bound of its future reply; 0: short, or already written */
    size_t running_bytes; /* of its block, while the backend executes a command that is no claim */
};

/*
 * The lifecycle of a session. A destroyed session is freed when its last call has ended.
 *
 *     open --QUIT, a broken request--> ending --.
 *       |                                       v
 *       '--full, no memory, HTTP----------> dropped --destroy--> destroyed
 */
enum bel_session_state {
    BEL_SESSION_OPEN,
    BEL_SESSION_ENDING,    /* accepts no more commands */
    BEL_SESSION_DROPPED,   /* its output will not be written */
    BEL_SESSION_DESTROYED, /* has no owner */
};

struct bel_session {
    enum bel_session_state state;
    const struct bel_service *service;
    struct bel_session_owner owner;
    struct bel_resp_parser parser;
    struct bel_buffer in, out;
    struct bel_list calls;     /* in the order of the commands */
    struct bel_list unwritten; /* claims whose reply is in the output */
    struct bel_list releasing; /* claims whose reply is lost */
    struct bel_call *unread; /* the last claim whose reply was written and may be unread, or NULL */
    struct bel_call *spare;  /* for the next command; NULL while it is in use */
    size_t calls_count, commands_max;
    size_t output_max;    /* maximum of unread output and owed replies, in bytes */
    size_t kept_bytes;    /* memory of replies that wait for the replies of earlier calls */
    size_t counted_bytes; /* of this session in the total of all sessions */
    size_t owed_bytes;    /* upper bound of all future replies */
    uint64_t appended;    /* bytes appended to the output since the session was created */
    const struct bel_call *holder; /* the next command waits for this call; NULL: none */
    struct bel_input_share input;  /* of the total of all connections */
    size_t running_bytes;          /* of all calls */
    size_t request_bytes;          /* of a parsed request that has to wait; 0: none */
    int version;
    unsigned keys_wrong;
    struct bel_mono auth_end;           /* of a client without a key; BEL_NEVER: has a key */
    struct bel_mono mute_end;           /* the output is not written before */
    uint64_t consumed;                  /* bytes of input since the session was created */
    uint64_t stranger_in, stranger_out; /* `consumed` and `appended` when the client had no key */
    struct bel_grant grant;
    bool is_authenticated;        /* authenticated, or the server has no keys */
    bool is_in_multi;             /* after MULTI: refuses commands until EXEC or DISCARD */
    enum bel_session_crowd crowd; /* why the last step stopped */
    uint64_t id;
    struct bel_mono since; /* when the client connected */
    char name[BEL_SESSION_NAME_BYTES], address[BEL_SESSION_NAME_BYTES];
};

/* Appends a call for the next command to `calls`; returns NULL if out of memory. */
struct bel_call *bel__call_take(struct bel_session *session);

/* Removes a call from `calls`. */
void bel__call_leave(struct bel_session *session, struct bel_call *call);

/* Sets the upper bound of the size of a call's reply. */
void bel__call_owe(struct bel_session *session, struct bel_call *call, size_t bytes);

/* Counts the memory of a large command that is submitted, until the call leaves. A claim is not
 * counted: it may wait for ever. */
void bel__call_run(struct bel_session *session, struct bel_call *call);

/* Returns a call that is in no list to the session or the pool. */
void bel__call_give(struct bel_session *session, struct bel_call *call);

/* Ensures that the block of a call has at least `bytes` bytes; its content is lost. Returns 0 or
 * BEL_ENOMEM. */
BEL_CHECKED int bel__call_reserve(struct bel_call *call, size_t bytes);

/* Copies the tokens of deliveries into the call's block, over the words. If memory runs out, the
 * deliveries cannot be released and their leases expire. */
void bel__call_keep_tokens(struct bel_call *call, const struct bel_reply *reply);

/* Ends a call whose reply is lost, and releases its deliveries. The call is in no list. Frees the
 * session if it was destroyed and this was its last call. */
void bel__call_abandon(struct bel_session *session, struct bel_call *call);

/* Frees a destroyed session, if it has no call left. */
void bel__session_free_if_gone(struct bel_session *session);

/* --- limits.c --- */

/* Counts the memory of the input and of running commands in the total of all connections. */
void bel__session_count_input(struct bel_session *session);

/* Returns the limits of a request, before or after the client has authenticated. */
struct bel_resp_limits bel__session_limits(const struct bel_service *service,
                                           bool is_authenticated);

/* Sets the limits of a session, and initializes its input and output buffers. */
void bel__session_init_limits(struct bel_session *session);

/* Returns the maximum of unparsed input in bytes. */
size_t bel__session_input_max(const struct bel_session *session);

/* Begins the time without a key, of a new or a reset client. */
void bel__session_begin_stranger(struct bel_session *session);

/* Returns whether a request of `bytes` bytes from a client without a key is to be answered. */
bool bel__session_may_answer(const struct bel_session *session, size_t bytes);

/* Returns whether the session may start one more command: the number of commands is below its
 * limit, and the output has room for all owed replies. */
bool bel__session_may_add(const struct bel_session *session);

/* Updates the total of all sessions. Call it when the output, or what is owed, has changed. */
void bel__session_count_output(struct bel_session *session);

/* Returns whether the session must not run a command because of the replies of all sessions: before
 * it is parsed (entry is NULL) because the session has replies to write itself; then because its
 * reply may be long. Sets `crowd`. */
bool bel__session_must_wait(struct bel_session *session, const struct bel_command_entry *entry);

/* --- own_commands.c --- */

/* Returns whether a command of the session itself waits until all earlier commands are answered. */
bool bel__own_command_is_barrier(const struct bel_command_entry *entry);

/* Executes a command of the session itself and writes its reply; or starts a background task and
 * sets the call's state to BEL_CALL_BACKGROUND. */
void bel__own_command_do(struct bel_call *call, const struct bel_bound *bound,
                         struct bel_resp_writer *writer);

/* Writes the reply of a background task that has ended. */
void bel__own_command_end(const struct bel_call *call, int err, const char *why,
                          struct bel_resp_writer *writer);

/* --- command_docs.c --- */

/* Writes the reply of COMMAND, from the table of commands. */
void bel__command_docs_write(const struct bel_bound *bound, struct bel_resp_writer *writer);

#endif
