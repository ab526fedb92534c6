/* SPDX-License-Identifier: MIT */
#ifndef BEL_CLIENT_H
#define BEL_CLIENT_H

/*
 * client - a connection to a server, in RESP: commands go out, replies come back in their order.
 *
 *     struct bel_client_why why;
 *     const struct bel_value *reply;
 *     err = bel_client_connect("127.0.0.1:7878", NULL, &client, &why);
 *     err = bel_client_call(client, args, 4, &reply);       SCHEDULE mail hello ...
 *     if (reply->type == BEL_VALUE_ERROR) ...               the server says no, and why
 *     bel_client_close(client);
 *
 * Or many at once: bel_client_send() for each, then bel_client_receive() as often. What is sent
 * leaves when there is enough of it, and when an answer is waited for.
 *
 * A call takes no longer than the timeout, and then says BEL_EBUSY: nothing is lost, the same call
 * goes on where it was. BEL_ECLOSED: the server has closed. BEL_EIO: the network. BEL_EINVAL: what
 * came is no reply. BEL_EFULL: it is larger than allowed. After any of these four, or BEL_ENOMEM,
 * the connection is over, and every call says the same again. What the server has made of commands
 * that were not answered by then is not known.
 *
 * An error of the server's is no error here but a value.
 *
 * Threads: a client belongs to one thread at a time.
 */

#include "belfry/clock.h"
#include "belfry/error.h"
#include "belfry/view.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(default)

enum bel_value_type {
    BEL_VALUE_NIL,
    BEL_VALUE_STATUS,  /* text: OK */
    BEL_VALUE_ERROR,   /* text: code and message, see bel_value_code() */
    BEL_VALUE_NUMBER,  /* number */
    BEL_VALUE_BOOLEAN, /* number: 0 or 1 */
    BEL_VALUE_DECIMAL, /* text: a number that may have a fraction, or be very large */
    BEL_VALUE_TEXT,    /* text: any bytes */
    BEL_VALUE_LIST,    /* items */
    BEL_VALUE_MAP,     /* items: name, value, name, value; a list where there is only RESP2 */
};

/* A reply, or a part of one. What does not belong to its type is 0. */
struct bel_value {
    enum bel_value_type type;
    int64_t number;
    struct bel_view text;
    const struct bel_value *items;
    size_t count; /* of the items */
};

/* "NOTFOUND" and "there is no such timer" of an error; the code of an error that has none is
 * empty. */
struct bel_view bel_value_code(const struct bel_value *error);
struct bel_view bel_value_message(const struct bel_value *error);

/* The value of a name in a map, or in a list of names and values. NULL if there is none. */
const struct bel_value *bel_value_find(const struct bel_value *map, const char *name);

/* Whether a text or status is this. */
bool bel_value_is(const struct bel_value *value, const char *text);

struct bel_client; /* opaque: it owns a socket */

struct bel_client_options {
    struct bel_view user, key; /* for AUTH, if there is a key; read during the call only */
    uint32_t timeout_ms;       /* of connecting, and of each call; 0: 30 s */
    unsigned protocol;         /* 3: asks for RESP3, and does without if it is refused; else 2 */
    size_t request_bytes_max;  /* unsent; 0: 128 MiB */
    size_t reply_bytes_max;    /* of one; 0: 128 MiB */
    const struct bel_clock *clock; /* for timeouts; NULL: the system's */
};

/* What was wrong, for a person. It never holds a key. */
struct bel_client_why {
    char code[16];  /* of the server's error, if it was the server that refused; else empty */
    char text[240]; /* ends in 0 */
};

/*
 * Connects to "host:port", "[::1]:port", or the path of a socket, which has a slash in it; the port
 * is 7878 if it is not there. Then says who it is, if there is a key. A name is looked up for as
 * long as the system takes. Returns 0 and sets `*out`; or returns BEL_EINVAL for an address that is
 * none, BEL_ENOTFOUND for a name that is not known, BEL_EIO if nobody is there, BEL_EBUSY for a
 * timeout, BEL_ECLOSED if the server closes or refuses the key, BEL_ENOMEM; and says in `*why`,
 * which may be NULL, what it was.
 */
BEL_CHECKED int bel_client_connect(const char *address, const struct bel_client_options *options,
                                   struct bel_client **out, struct bel_client_why *why);

/* Takes over a connected stream socket, which is then closed with the client. Otherwise as above;
 * if it fails the socket is still the caller's. */
BEL_CHECKED int bel_client_adopt(int fd, const struct bel_client_options *options,
                                 struct bel_client **out, struct bel_client_why *why);

/* Closes a client; NULL is allowed. */
void bel_client_close(struct bel_client *client);

/* Its socket: for poll, or for shutdown by another thread. */
int bel_client_fd(const struct bel_client *client);

/* Sets the timeout of the calls that follow. 0: they do not wait. */
void bel_client_set_timeout(struct bel_client *client, uint32_t timeout_ms);

/* How many commands are not answered yet. */
size_t bel_client_pending(const struct bel_client *client);

/* Sends a command: its name and arguments. It may stay here until there is more, or a call to
 * bel_client_flush() or bel_client_receive(). Returns 0, an error as above, or BEL_EFULL if it is
 * larger than allowed: then it was not sent, and nothing is over. BEL_EBUSY: it was not sent. */
BEL_CHECKED int bel_client_send(struct bel_client *client, const struct bel_view *args,
                                size_t args_count);

/* Sends what is left to send. */
BEL_CHECKED int bel_client_flush(struct bel_client *client);

/* Waits for the answer to the oldest command that has none; there must be one. It is good until the
 * next receive, call or close. */
BEL_CHECKED int bel_client_receive(struct bel_client *client, const struct bel_value **out);

/* Sends a command and waits for its answer. Nothing else may be pending. */
BEL_CHECKED int bel_client_call(struct bel_client *client, const struct bel_view *args,
                                size_t args_count, const struct bel_value **out);

#pragma GCC visibility pop
#endif
