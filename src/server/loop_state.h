/* SPDX-License-Identifier: MIT */
#ifndef BEL_SERVER_LOOP_STATE_H
#define BEL_SERVER_LOOP_STATE_H

/*
 * loop_state - shared by loop.c, listener.c, connection.c, crowd.c and incomplete.c.
 *
 * A connection is in up to five lists: of all connections; of active ones, which are stepped before
 * the next turn and written after it; of lingering ones, which will be closed when the client has
 * read everything; and of clients without a key, which are closed at a deadline, or of those whose
 * replies are delayed after too many wrong keys; and of those that wait because of the replies of
 * all clients. A connection becomes active by entering the list, which the loop checks before it
 * polls.
 */

#include "core/list.h"
#include "server/loop.h"

#include <uv.h>

enum {
    BEL_LOOP_READ_BYTES = 64 << 10, /* most input per client and turn */
    BEL_LOOP_STEP = 256,            /* most commands per client and turn */
    BEL_LINGER_MS = 2000,           /* time for a client to read its last reply */
};

/*
 * The lifecycle of a loop. A signal or SHUTDOWN drains it.
 *
 *     opened --listen--> listening --drain--> draining --.
 *        |                   |                           v
 *        '-------------------'-------- finish -------> ending
 */
enum bel_loop_state {
    BEL_LOOP_OPENED,
    BEL_LOOP_LISTENING,
    BEL_LOOP_DRAINING, /* accepts no connections, and stops when the last is closed */
    BEL_LOOP_ENDING,   /* all connections are closed; pending requests end */
};

struct bel_loop {
    struct bel_loop_options options;
    enum bel_loop_state state;
    uv_loop_t uv;
    uv_prepare_t before_poll;
    uv_check_t after_poll;
    uv_idle_t awake; /* while it is active, a poll does not wait */
    uv_async_t woken;
    uv_signal_t signals[3];      /* SIGTERM, SIGINT, SIGHUP */
    uv_tcp_t listener, doorstep; /* doorstep: accepts connections when memory is out */
    uv_poll_t alarm, http_poll, backend_poll;
    uv_timer_t linger, http_timer, deadline, chore_timer, strangers_timer, crowd_timer;
    uv_timer_t input_timer;
    struct bel_http *http;
    struct bel_list connections, active, lingering;
    struct bel_list strangers; /* clients without a key, in the order of their deadlines */
    struct bel_list muted;     /* clients whose replies are delayed, in the order of the delays */
    struct bel_list crowds[BEL_SESSION_CROWDS]; /* clients that wait, by reason: see crowd.c */
    struct bel_next next;
    uint64_t armed_ns; /* boot time at which the timerfd rings; BEL_NEVER: not set */
    uint64_t connection_ids;
    unsigned polls; /* since the last turn */
    int alarm_fd;
    int err;       /* the error that ended it; or 0 */
    bool has_news; /* this poll had input */
    bool is_woken; /* a turn was requested */
    bool is_http_due, is_chore_due;
    bool has_backend_poll;
    bool is_doorstep_taken;
    char bytes[BEL_LOOP_READ_BYTES]; /* the read buffer */
};

/* Output that the socket did not accept at once. */
struct bel_connection_block;

/*
 * The lifecycle of a connection. It is freed when its handle is closed and its last request is
 * done, whichever is later.
 *
 *     open --the client sends no more--> ended --.         .--handle closed--> closed --.
 *       |                                  |     |         |                            v
 *       |--------we send no more-----------|   close --> closing                      freed
 *       v                                  v     ^         |                            ^
 *     shut ----------------------------- close --'         '--last request done--> left-'
 */
enum bel_connection_state {
    BEL_CONNECTION_OPEN,
    BEL_CONNECTION_ENDED,   /* the client has closed its side; replies are still sent */
    BEL_CONNECTION_SHUT,    /* our side is closed; input is discarded */
    BEL_CONNECTION_CLOSING, /* has no session and is in no list */
    BEL_CONNECTION_CLOSED,  /* the handle is closed; a request is pending */
    BEL_CONNECTION_LEFT,    /* no request is pending; the handle is being closed */
};

struct bel_connection {
    uv_tcp_t tcp;
    uv_shutdown_t shutdown;
    struct bel_caller caller; /* the backend of the session */
    struct bel_loop *loop;
    struct bel_session *session; /* NULL from BEL_CONNECTION_CLOSING on */
    enum bel_connection_state state;
    struct bel_link all, active, lingering;
    struct bel_link timed;              /* in `strangers` or `muted` */
    struct bel_link crowded;            /* in one of `crowds` */
    enum bel_session_crowd crowd;       /* while it is linked: why */
    struct bel_connection_block *block; /* the block that is being written; or NULL */
    struct bel_mono linger_end;
    size_t discarded;    /* bytes discarded since the shutdown */
    uint64_t sent_bytes; /* that the socket accepted since the last tick of the crowd */
    bool has_more;       /* the session may have more input to parse */
    bool is_reading;
    bool had_input; /* since the last flush */
    bool is_muted;  /* `timed` is in `muted` */
};

/* Accepts a client, or refuses it if there are too many. */
void bel__connection_accept(struct bel_loop *loop, uv_stream_t *listener);

/* Adds a connection to the active ones. */
void bel__connection_activate(struct bel_connection *connection);

/* Parses input and submits requests. */
void bel__connection_step(struct bel_connection *connection);

/* Closes a connection that only waits and whose client has closed its side. */
void bel__connection_end_waits(struct bel_connection *connection);

/* Writes replies, and continues to read or closes the connection. Returns whether it stays
 * active. */
bool bel__connection_flush(struct bel_connection *connection);

/* Closes the clients that have sent no key in time, and sends delayed replies. */
void bel__connection_check_strangers(struct bel_loop *loop, struct bel_mono now);

/* Steps a connection, and notes whether it waits because of the replies of all clients. */
void bel__crowd_step(struct bel_connection *connection);

/* Returns whether a connection that waits can be stepped. */
bool bel__crowd_can_go_on(const struct bel_loop *loop);

/* Steps connections that wait while they can go on. */
void bel__crowd_admit(struct bel_loop *loop);

/* Closes clients that do not read, if others wait for the memory of their replies. */
void bel__crowd_close_slow(struct bel_loop *loop);

/* Lets connections read that waited because of the incomplete requests of all clients, and watches
 * for requests that stand still. Call it in each round. */
void bel__incomplete_admit(struct bel_loop *loop);

/* Returns whether such a connection can read. */
bool bel__incomplete_can_go_on(const struct bel_loop *loop);

/* Closes a connection. Its waiting claims are withdrawn; replies to other requests are dropped. */
void bel__connection_close(struct bel_connection *connection);

#endif
