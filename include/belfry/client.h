/* SPDX-License-Identifier: MIT */
#ifndef BEL_CLIENT_H
#define BEL_CLIENT_H

/*
 * client - a connection to a server that speaks RESP. Replies arrive in the order of the commands.
 *
 *     struct bel_client_why why;
 *     err = bel_client_connect("127.0.0.1:7878", NULL, &client, &why);
 *     err = bel_client_schedule(client, "mail", "hello", BEL_VIEW("Good morning"), 5000);
 *     if (err) puts(bel_client_error(client)->text);
 *     bel_client_close(client);
 *
 * The usual commands are functions. Any other command is an array of arguments:
 *
 *     const struct bel_value *reply;
 *     err = bel_client_call(client, args, 3, &reply);       GET mail hello
 *     if (reply->type == BEL_VALUE_ERROR) ...               the server refused the command
 *
 * To pipeline commands, call bel_client_send() for each and then bel_client_receive() once for
 * each. Commands are buffered; the buffer is sent when it is large enough and when a call waits for
 * a reply.
 *
 * A call that exceeds the timeout returns BEL_EBUSY. Nothing is lost then: repeat the call and it
 * continues where it stopped. These errors end the connection, and every later call returns the
 * same error: BEL_ECLOSED (the server closed the connection), BEL_EIO (network error), BEL_EINVAL
 * (the bytes received are not a valid reply), BEL_EFULL (the reply is larger than the limit),
 * BEL_ENOMEM. Whether the server has executed the commands without a reply is then unknown.
 *
 * An error reply of the server is not an error of bel_client_call(): the call returns 0 and the
 * reply has the type BEL_VALUE_ERROR.
 *
 * Threads: a client belongs to one thread at a time.
 */

#include "belfry/clock.h"
#include "belfry/declare.h"
#include "belfry/delivery.h"
#include "belfry/error.h"
#include "belfry/value.h"
#include "belfry/view.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

BEL_BEGIN_DECLARATIONS

struct bel_client; /* opaque: owns a socket */

struct bel_client_options {
    struct bel_view user, key; /* for AUTH, if the key is not empty; read only during the call */
    uint32_t timeout_ms;       /* of connecting and of each later call; 0: 30 s */
    unsigned protocol;         /* 3: RESP3, or RESP2 if the server refuses it; else RESP2 */
    size_t request_bytes_max;  /* bytes not yet sent, at most; 0: 128 MiB */
    size_t reply_bytes_max;    /* size of one reply, at most; 0: 128 MiB */
    const struct bel_clock *clock; /* for timeouts; NULL: the system clock */
};

/* Why connecting or a command failed, for people. Never contains a key. */
struct bel_client_why {
    char code[16];  /* code of the server's error reply; empty if there was none */
    char text[240]; /* message, ends in 0 */
};

/*
 * Connects to "host:port", "[::1]:port" or the path of a Unix socket, which contains a slash. The
 * default port is 7878. Sends AUTH if `options` has a key. Looking up a host name takes as long as
 * the system resolver takes; the timeout does not limit it. Returns 0 and sets `*out`; or returns
 * BEL_EINVAL for an invalid address, BEL_ENOTFOUND for an unknown host name, BEL_EIO if no server
 * listens there, BEL_EBUSY for a timeout, BEL_ECLOSED if the server closes the connection or
 * refuses the key, or BEL_ENOMEM. On failure sets `*why` unless `why` is NULL.
 */
BEL_CHECKED int bel_client_connect(const char *address, const struct bel_client_options *options,
                                   struct bel_client **out, struct bel_client_why *why);

/* Like bel_client_connect(), with a connected stream socket. On success the client owns `fd` and
 * closes it; on failure `fd` still belongs to the caller. */
BEL_CHECKED int bel_client_adopt(int fd, const struct bel_client_options *options,
                                 struct bel_client **out, struct bel_client_why *why);

/* Closes a client; NULL is allowed. */
void bel_client_close(struct bel_client *client);

/* Returns the socket, for poll(), or for shutdown() by another thread. */
int bel_client_fd(const struct bel_client *client);

/* Sets the timeout of later calls. 0: they do not wait. */
void bel_client_set_timeout(struct bel_client *client, uint32_t timeout_ms);

/* Returns the number of commands that have no reply yet. */
size_t bel_client_pending(const struct bel_client *client);

/* Sends a command: its name, then its arguments. The command may stay in a buffer until more
 * follow, or until bel_client_flush() or bel_client_receive(). Returns 0 or an error as above.
 * BEL_EFULL (the command is larger than the limit) does not end the connection here. After
 * BEL_EFULL or BEL_EBUSY the command was not sent. */
BEL_CHECKED int bel_client_send(struct bel_client *client, const struct bel_view *args,
                                size_t args_count);

/* Sends everything that is buffered. */
BEL_CHECKED int bel_client_flush(struct bel_client *client);

/* Waits for the reply to the oldest command without one; at least one command must be pending. The
 * reply is valid until the next receive, call or close. */
BEL_CHECKED int bel_client_receive(struct bel_client *client, const struct bel_value **out);

/* Sends a command and waits for its reply. No other command may be pending. */
BEL_CHECKED int bel_client_call(struct bel_client *client, const struct bel_view *args,
                                size_t args_count, const struct bel_value **out);

/*
 * The usual commands as functions. Each sends a command and waits for its reply; no other command
 * may be pending. Topics and ids end in 0.
 *
 *     while (bel_client_claim(client, "mail", 60000, &due) == 0 && due != NULL) {
 *         err = send(due->payload) ? bel_client_ack(client, due)
 *                                  : bel_client_fail(client, due, "the relay is down");
 *         bel_delivery_destroy(due);
 *     }
 *
 * Each returns 0; an error as above; or the error that the server's error reply stands for:
 *
 *     BADARG, ERR       BEL_EINVAL        STALE             BEL_ESTALE
 *     NOTFOUND          BEL_ENOTFOUND     CONFLICT          BEL_ECONFLICT
 *     FULL              BEL_EFULL         NOAUTH, NOPERM    BEL_ECLOSED
 *     any other         BEL_EIO
 *
 * An error reply does not end the connection, and bel_client_error() has its code. A timeout
 * (BEL_EBUSY) ends the connection here, because the reply could arrive later; later calls return
 * BEL_ECLOSED. Whether the server has executed the command is then unknown.
 */

/* Returns why the last of these functions failed. The code is empty if the server sent no error
 * reply; code and text are empty after a success. Valid until the next call. */
const struct bel_client_why *bel_client_error(const struct bel_client *client);

/* Schedules a timer that is due after `delay_ms`. `id` NULL: the server makes one. A timer with the
 * same id is replaced. */
BEL_CHECKED int bel_client_schedule(struct bel_client *client, const char *topic, const char *id,
                                    struct bel_view payload, uint64_t delay_ms);

/* Cancels a timer. Sets `*out_was_there`, unless it is NULL, to whether it was unfinished. */
BEL_CHECKED int bel_client_cancel(struct bel_client *client, const char *topic, const char *id,
                                  bool *out_was_there);

/* Claims a due timer, and waits up to `wait_ms` for one; the timeout begins after that. Sets `*out`
 * to a delivery that the caller destroys, in which each text is followed by a 0 byte; or to NULL if
 * no timer was due. Returns BEL_ENOMEM also if the copy has no memory: the timer is due again when
 * its lease expires. */
BEL_CHECKED int bel_client_claim(struct bel_client *client, const char *topic, uint64_t wait_ms,
                                 struct bel_delivery **out);

/* Reports that the work is done. Returns BEL_ESTALE if the lease has expired. */
BEL_CHECKED int bel_client_ack(struct bel_client *client, const struct bel_delivery *delivery);

/* Reports that the work has failed; the retry policy says when it is tried again. `reason`, for
 * people, may be NULL. Returns BEL_ESTALE if the lease has expired. */
BEL_CHECKED int bel_client_fail(struct bel_client *client, const struct bel_delivery *delivery,
                                const char *reason);

/* Like bel_client_ack(), with a result of up to 64 KiB for GET and, of a task of a job, for the
 * tasks after it. Returns BEL_EINVAL for a larger result, or BEL_EFULL if the results of the job
 * exceed 64 MiB; the lease goes on then. */
BEL_CHECKED int bel_client_ack_result(struct bel_client *client,
                                      const struct bel_delivery *delivery, struct bel_view result);

/* Like bel_client_fail(); the failure also counts for the breaker of the timer's resource. */
BEL_CHECKED int bel_client_fail_resource(struct bel_client *client,
                                         const struct bel_delivery *delivery, const char *reason);

/* Reports that the resource refused the work because of a rate limit, which ends after `delay_ms`;
 * 0: after one minute. Uses up no attempt. Returns BEL_ESTALE if the lease has expired. */
BEL_CHECKED int bel_client_limited(struct bel_client *client, const struct bel_delivery *delivery,
                                   uint64_t delay_ms);

/* Makes a lease end `lease_ms` from now; 0: the lease time of the claim. Returns BEL_ESTALE if the
 * lease has expired. */
BEL_CHECKED int bel_client_extend(struct bel_client *client, const struct bel_delivery *delivery,
                                  uint64_t lease_ms);

/*
 * Commands of jobs as functions, with errors as above. The text of a job is JSON, from
 * belfry/job_builder.h for example. What they set is valid until the next call of the client.
 *
 *     err = bel_client_job_submit(client, text, &submitted);
 *     if (err) puts(bel_client_error(client)->text);
 *     err = bel_client_job_get(client, "nightly", BEL_VIEW(""), &job);
 */

/* The reply to a submitted job: its id, and the tasks and dependencies of the job itself. */
struct bel_client_submitted {
    struct bel_view id;
    uint64_t tasks, edges;
};

/* A job in a reply. */
struct bel_client_job {
    struct bel_view id, state;      /* the state by its name, "running" for example */
    struct bel_view reason;         /* why the job has failed; may be empty */
    uint64_t progress;              /* percent of the tasks that have ended */
    uint64_t total;                 /* tasks */
    const struct bel_value *tasks;  /* a list; NULL in JOB LIST */
    struct bel_view cursor;         /* for the next tasks; empty: these were the last */
    const struct bel_value *fields; /* all fields of JOB GET, for bel_value_find() */
};

/* A page of jobs; bel_client_job_read() reads an item. */
struct bel_client_jobs {
    const struct bel_value *items;
    size_t count;
    struct bel_view cursor; /* for the next page; empty: this is the last */
};

/* Submit a job, and return when all of it is durable. If a job with this id is known, the first
 * fails with BEL_ECONFLICT and the second replaces the job. `out` may be NULL. */
BEL_CHECKED int bel_client_job_submit(struct bel_client *client, struct bel_view text,
                                      struct bel_client_submitted *out);
BEL_CHECKED int bel_client_job_replace(struct bel_client *client, struct bel_view text,
                                       struct bel_client_submitted *out);

/* Gets a job with up to 1,000 tasks. `cursor` is that of the previous tasks; empty: the first. */
BEL_CHECKED int bel_client_job_get(struct bel_client *client, const char *id,
                                   struct bel_view cursor, struct bel_client_job *out);

/* Lists up to 100 jobs, all or those in one state. `cursor` is that of the previous page; empty:
 * the first. `state` NULL: all. */
BEL_CHECKED int bel_client_job_list(struct bel_client *client, const char *state,
                                    struct bel_view cursor, struct bel_client_jobs *out);

/* Reads a job of a reply. Returns false if the value is not a job. */
bool bel_client_job_read(const struct bel_value *value, struct bel_client_job *out);

/* Cancel, pause or resume a job. Set `*out_changed`, unless it is NULL, to false if the job had
 * ended or was already in that state. */
BEL_CHECKED int bel_client_job_cancel(struct bel_client *client, const char *id, bool *out_changed);
BEL_CHECKED int bel_client_job_pause(struct bel_client *client, const char *id, bool *out_changed);
BEL_CHECKED int bel_client_job_resume(struct bel_client *client, const char *id, bool *out_changed);

/*
 * LIMIT as functions, with errors as above. What they set is valid until the next call.
 *
 *     struct bel_client_limit limit = {.resource = "api", .rate = "10/1s"};
 *     err = bel_client_limit(client, &limit, NULL);
 */

/* Limits to set. Those that are NULL or 0 stay as they are. */
struct bel_client_limit {
    const char *resource;
    const char *rate;     /* "10/1s" */
    uint64_t burst;       /* deliveries at once */
    bool has_concurrency; /* set the next */
    uint64_t concurrency; /* leases at the same time; 0: no limit */
    uint64_t until_ms;    /* deliver nothing for so long; never shortened */
    const char *breaker;  /* failures in a row that open the breaker, "5", or "off" */
    uint64_t breaker_open_ms, breaker_max_ms;
};

/* A resource in a reply. */
struct bel_client_resource {
    struct bel_view name, rate;     /* the rate may be empty */
    uint64_t concurrency;           /* 0: no limit */
    uint64_t running, parked;       /* leases; ready timers that wait for the resource */
    struct bel_wall limited_until;  /* 0: not limited */
    struct bel_view breaker;        /* "closed", "open" or "half_open" */
    uint64_t failures;              /* in a row */
    struct bel_wall breaker_until;  /* of an open breaker; else 0 */
    const struct bel_value *fields; /* all fields of LIMIT, for bel_value_find() */
};

/* A page of resources; bel_client_resource_read() reads an item. */
struct bel_client_resources {
    const struct bel_value *items;
    size_t count;
    struct bel_view cursor; /* for the next page; empty: this is the last */
};

/* Sets limits of a resource, or only shows it if nothing is to be set. `out` may be NULL. */
BEL_CHECKED int bel_client_limit(struct bel_client *client, const struct bel_client_limit *limit,
                                 struct bel_client_resource *out);

/* Ends the time until which a resource is limited, and closes its breaker. Fails if the resource is
 * unknown. `out` may be NULL. */
BEL_CHECKED int bel_client_limit_clear(struct bel_client *client, const char *resource,
                                       struct bel_client_resource *out);

/* Does so for all resources. Sets `*out_limited`, unless it is NULL, to how many were limited. */
BEL_CHECKED int bel_client_limit_clear_all(struct bel_client *client, uint64_t *out_limited);

/* Forgets the limits of a resource. Sets `*out_was_there`, unless it is NULL, to whether there were
 * any. */
BEL_CHECKED int bel_client_limit_delete(struct bel_client *client, const char *resource,
                                        bool *out_was_there);

/* Lists up to 100 resources. `cursor` is that of the previous page; empty: the first. */
BEL_CHECKED int bel_client_limit_list(struct bel_client *client, struct bel_view cursor,
                                      struct bel_client_resources *out);

/* Reads a resource of a reply. Returns false if the value is not a resource. */
bool bel_client_resource_read(const struct bel_value *value, struct bel_client_resource *out);

BEL_END_DECLARATIONS
#endif
