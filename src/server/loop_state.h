/* SPDX-License-Identifier: MIT */
#ifndef BEL_SERVER_LOOP_STATE_H
#define BEL_SERVER_LOOP_STATE_H

/*
 * loop_state - what loop.c, listener.c and connection.c share.
 *
 * A connection is in up to three lists: of all; of active ones, which are stepped before the next
 * turn and written after it; and of lingering ones, which are to be closed and whose client has not
 * read everything yet. To become active a connection enters the list: before the loop polls, it
 * looks whether there is more to do.
 */

#include "core/list.h"
#include "server/loop.h"

#include <uv.h>

enum {
    BEL_LOOP_READ_BYTES = 64 << 10, /* at most, of a client in a turn */
    BEL_LOOP_STEP = 256,            /* commands of a client in a turn */
    BEL_LINGER_MS = 2000,           /* for a client to take its last answer */
};

/*
 * The life of a loop; a signal or SHUTDOWN drains it.
 *
 *     opened --listen--> listening --drain--> draining --.
 *        |                   |                           v
 *        '-------------------'-------- finish -------> ending
 */
enum bel_loop_state {
    BEL_LOOP_OPENED,
    BEL_LOOP_LISTENING,
    BEL_LOOP_DRAINING, /* takes no connections, and stops when the last is closed */
    BEL_LOOP_ENDING,   /* all connections are closed; what was under way ends */
};

struct bel_loop {
    struct bel_loop_options options;
    enum bel_loop_state state;
    uv_loop_t uv;
    uv_prepare_t before_poll;
    uv_check_t after_poll;
    uv_idle_t awake; /* while it runs, a poll does not wait */
    uv_async_t woken;
    uv_signal_t signals[2];
    uv_tcp_t listener, doorstep; /* the second for those who come when there is no memory */
    uv_poll_t alarm, http_poll;
    uv_timer_t linger, http_timer, deadline, chore_timer;
    struct bel_http *http;
    struct bel_list connections, active, lingering;
    struct bel_next next;
    uint64_t armed_ns; /* the boot time that the alarm is set to; BEL_NEVER: none */
    uint64_t connection_ids;
    unsigned polls; /* since the last turn */
    int alarm_fd;
    int err;       /* why it ended */
    bool has_news; /* something has come with this poll */
    bool is_woken; /* somebody asked for a turn */
    bool is_http_due, is_chore_due;
    bool is_doorstep_taken;
    char bytes[BEL_LOOP_READ_BYTES]; /* what is read passes through here */
};

/* What a socket does not take at once. */
struct bel_connection_block;

/*
 * The life of a connection. It is freed when its handle is closed and its last request is done,
 * whichever comes last.
 *
 *     open --the client sends no more--> ended --.         .--handle closed--> closed --.
 *       |                                  |     |         |                            v
 *       |--------we send no more-----------|   close --> closing                      freed
 *       v                                  v     ^         |                            ^
 *     shut ----------------------------- close --'         '--last request done--> left-'
 */
enum bel_connection_state {
    BEL_CONNECTION_OPEN,
    BEL_CONNECTION_ENDED,   /* the client sends no more, and is still answered */
    BEL_CONNECTION_SHUT,    /* we send no more, and what comes is thrown away */
    BEL_CONNECTION_CLOSING, /* has no session, and is in no list */
    BEL_CONNECTION_CLOSED,  /* the handle is; some request is under way */
    BEL_CONNECTION_LEFT,    /* no request is under way; the handle is being closed */
};

struct bel_connection {
    uv_tcp_t tcp;
    uv_shutdown_t shutdown;
    struct bel_caller caller; /* what the session submits to */
    struct bel_loop *loop;
    struct bel_session *session; /* NULL from closing on */
    enum bel_connection_state state;
    struct bel_link all, active, lingering;
    struct bel_connection_block *block; /* while it is being written, else NULL */
    struct bel_mono linger_end;
    size_t discarded; /* bytes, since it is shut */
    bool has_more;    /* there may be more to parse */
    bool is_reading;
};

/* Accepts one that waits, or turns it away if there are too many. */
void bel__connection_accept(struct bel_loop *loop, uv_stream_t *listener);

/* Puts it among those that are looked at in this turn. */
void bel__connection_activate(struct bel_connection *connection);

/* Lets it parse and submit. */
void bel__connection_step(struct bel_connection *connection);

/* Writes what it has to say, and sees whether to go on reading or to close it. False if it needs
 * no looking at until something happens. */
bool bel__connection_flush(struct bel_connection *connection);

/* Closes it; what it has under way is withdrawn, or not heard. */
void bel__connection_close(struct bel_connection *connection);

/* Closes those that have lingered long enough. */
void bel__connections_close_lingering(struct bel_loop *loop, struct bel_mono now);

#endif
