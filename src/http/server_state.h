/* SPDX-License-Identifier: MIT */
#ifndef BEL_HTTP_SERVER_STATE_H
#define BEL_HTTP_SERVER_STATE_H

/*
 * server_state - shared by http.c and connection.c.
 *
 * A connection has one socket, and one call at a time. The socket belongs to the epoll of the
 * server. A connection that has work without an event of its socket is in the list `busy`: a reply
 * arrived, or the limit of work per run was reached.
 */

#include "core/list.h"
#include "http/call.h"
#include "http/response.h"

#include <stdint.h>
#include <sys/socket.h>

/*
 * The lifecycle of a connection:
 *
 *       .--------------------- response sent -----------------------.
 *       v                                                           |
 *     HEAD --head--> BODY --body--> READY --begin--> RUNNING --> SENDING --last--> LINGERING
 *       |              |                                            ^                  |
 *       '--refused-----'--------------------------------------------'                  v
 *                                                 (from every state, on an error)   CLOSED
 *
 * A closed connection is freed at the end of the run, because events may still point to it.
 */
enum bel_http_connection_state {
    BEL_HTTP_HEAD,      /* waits for a request, or receives its head */
    BEL_HTTP_BODY,      /* receives a body */
    BEL_HTTP_READY,     /* the request is complete */
    BEL_HTTP_RUNNING,   /* waits for the backend */
    BEL_HTTP_DELAYED,   /* holds the response back */
    BEL_HTTP_SENDING,   /* makes and sends the response */
    BEL_HTTP_LINGERING, /* our side is closed; input is discarded */
    BEL_HTTP_CLOSED,
};

/* Deadlines. All of a kind have the same length, so a list in order of arrival is in order. */
enum bel_http_deadline {
    BEL_HTTP_DEADLINE_NONE,
    BEL_HTTP_DEADLINE_IDLE,   /* for the first byte of a request */
    BEL_HTTP_DEADLINE_HEAD,   /* from the first byte of a head to its last */
    BEL_HTTP_DEADLINE_BODY,   /* how often the rate of a body is checked */
    BEL_HTTP_DEADLINE_DELAY,  /* how long a response is held back */
    BEL_HTTP_DEADLINE_SEND,   /* for the client to read a part of the response */
    BEL_HTTP_DEADLINE_LINGER, /* for the client to close its side */
    BEL_HTTP_DEADLINES,
};

struct bel_http_connection {
    struct bel_http *http;
    struct bel_link all, busy, timed; /* timed: in the list of its deadline */
    struct bel_link stranger;         /* in `strangers`, until a request is admitted with a key */
    struct bel_link crowded;          /* in `crowd`, while READY */
    struct bel_http_connection *next_closed;
    struct bel_http_call *call; /* from BODY to SENDING */
    struct bel_buffer in, out;  /* received and not parsed; made and not sent */
    struct bel_http_scan scan;
    struct bel_http_body body;
    struct bel_http_response response;
    struct bel_mono deadline_end, body_start;
    uint64_t body_bytes;          /* received of the body, with its framing */
    struct bel_input_share input; /* of the total of all connections */
    size_t output_bytes;          /* counted in the total of all connections */
    uint64_t sent_bytes;          /* that the socket accepted since the last tick; see unread.c */
    uint64_t blocked_ns;          /* in which it did not accept all, since then */
    struct bel_mono blocked;      /* since when it does not accept all; 0: it does */
    size_t discarded;             /* while LINGERING */
    int fd;
    uint32_t events; /* that epoll reports */
    unsigned keys_wrong;
    enum bel_http_connection_state state;
    enum bel_http_deadline deadline;
    bool has_ended;  /* the client sends no more, and everything is received */
    bool is_hung_up; /* the client sends no more */
    bool is_next;    /* the request has waited in `crowd` and goes on */
    char address[BEL_ADDRESS_BYTES];
};

struct bel_http {
    struct bel_http_site site;
    struct bel_list connections, busy;
    struct bel_list strangers; /* without an admitted request yet, in the order of arrival */
    struct bel_list crowd;     /* requests that wait because of the answers of all connections */
    struct bel_http_connection *closed; /* to be freed at the end of the run */
    struct bel_list deadlines[BEL_HTTP_DEADLINES];
    struct bel_buffer scratch; /* for a slice of a response */
    uint32_t connections_count;
    uint64_t work;                /* bytes checked and made in this run */
    struct bel_mono listen_again; /* BEL_NEVER: the listener is active */
    struct bel_mono tick;         /* when the counts of unread.c began */
    int epoll_fd, listener;
    char bytes[BEL_HTTP_SLICE_BYTES]; /* the read buffer */
};

/* Adds an accepted socket, which the connection then owns. Returns 0, or BEL_ENOMEM or BEL_EIO:
 * then the socket is closed. */
BEL_CHECKED int bel__http_connection_open(struct bel_http *http, int fd,
                                          const struct bel_address *address);

/* Handles events of epoll. */
void bel__http_connection_event(struct bel_http_connection *connection, uint32_t events);

/* Goes on with a busy connection. */
void bel__http_connection_step(struct bel_http_connection *connection);

/* Handles a deadline that has passed. */
void bel__http_connection_late(struct bel_http_connection *connection);

/* Executes the first request of `crowd`. */
void bel__http_connection_resume(struct bel_http_connection *connection);

/* Closes a connection, which is freed at the end of the run. */
void bel__http_connection_close(struct bel_http_connection *connection);

/* Returns whether a connection only waits for its client: it has no request, or a part of one, or
 * the client does not read; and there is nothing to read from its socket. */
bool bel__http_connection_is_waiting(const struct bel_http_connection *connection);

/* Returns how long a connection has been idle; it must be. */
uint64_t bel__http_connection_idle_ms(const struct bel_http_connection *connection);

/* Returns whether a request of the connection waits for a reply, or its response to be sent. */
bool bel__http_connection_is_working(const struct bel_http_connection *connection);

#endif
