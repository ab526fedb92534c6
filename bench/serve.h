/* SPDX-License-Identifier: MIT */
#ifndef BENCH_SERVE_H
#define BENCH_SERVE_H

/*
 * serve - a load generator for timer servers with different protocols.
 *
 *     serve_load.c    the command line, and the steps that wait for replies (closed loop)
 *     serve_life.c    the step that schedules by the clock (open loop)
 *     serve_crowd.c   additional idle and slow connections
 *     serve_loop.c    sockets and their unanswered requests
 *     serve_belfry.c, serve_redis.c, serve_beanstalkd.c    the protocols; serve_resp.c
 *
 * The loop is the same for all. A protocol only builds requests from prepared parts, and reads from
 * a reply what the next request needs.
 */

#include "harness.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
    SERVE_PAYLOAD_BYTES = 100,
    SERVE_DUE_DIGITS = 19, /* a payload begins with the due time, in ns of the wall clock */
    SERVE_ID_BYTES = 20,   /* length of an id that the client makes */
    SERVE_ID_BYTES_MAX = 31,
    SERVE_BATCH_MAX = 1000,
    SERVE_LEASE_S = 60,
};

#define SERVE_SECOND_NS INT64_C(1000000000)

/* A byte queue: bytes are appended at the end and consumed from the beginning. */
struct serve_buffer {
    char *data;
    size_t used, count, room;
};

enum serve_kind {
    SERVE_SETUP,
    SERVE_SCHEDULE,
    SERVE_CLAIM,
    SERVE_ACK,
    SERVE_CANCEL,
};

/* An unanswered request. */
struct serve_request {
    enum serve_kind kind;
    uint32_t count;  /* most timers of a claim; timers of an ack */
    uint64_t number; /* of the timer, if there is one */
    uint64_t at_ns;  /* monotonic time of the request */
};

struct serve_timer {
    uint64_t number;
    const char *id;   /* NULL: the server generates one */
    int64_t due_ns;   /* wall-clock time */
    int64_t delay_ns; /* from now, for protocols with relative delays; 0: due now */
};

struct serve_delivery {
    const char *token, *payload;
    size_t token_bytes;
};

/* A reply; its pointers are valid until the next reply is read. */
struct serve_answer {
    bool is_refused; /* temporarily: the server is full or not yet started */
    const char *id;  /* of the scheduled timer, if the server returns it */
    size_t id_bytes;
    uint32_t count; /* number of deliveries, or of timers that an ack or a cancel has found */
    struct serve_delivery deliveries[SERVE_BATCH_MAX];
};

struct serve_protocol {
    const char *name;
    bool has_own_ids, has_made_ids;              /* ids of the client; ids of the server */
    bool does_poll;                              /* a claim cannot wait */
    uint32_t workers, batch;                     /* good values for the step life */
    void (*put_setup)(struct serve_buffer *out); /* NULL: no setup request */
    void (*put_schedule)(struct serve_buffer *out, const struct serve_timer *timer);
    void (*put_claim)(struct serve_buffer *out, uint32_t count, uint32_t wait_s);
    void (*put_ack)(struct serve_buffer *out, const struct serve_delivery *deliveries,
                    uint32_t count);
    void (*put_cancel)(struct serve_buffer *out, const char *id, size_t bytes);
    void (*put_noise)(struct serve_buffer *out); /* a request with a long reply; or NULL */
    /* Reads one reply from `data`. Returns its length, or 0 if it is incomplete. */
    size_t (*read)(const char *data, size_t bytes, const struct serve_request *request,
                   struct serve_answer *out);
};

extern const struct serve_protocol serve_belfry, serve_redis, serve_beanstalkd;

/* --- bytes --- */

/* Reserves room for `bytes` more. */
void serve_reserve(struct serve_buffer *buffer, size_t bytes);

static inline void serve_put(struct serve_buffer *buffer, const void *data, size_t bytes)
{
    if (buffer->room - buffer->count < bytes) serve_reserve(buffer, bytes);
    memcpy(buffer->data + buffer->count, data, bytes);
    buffer->count += bytes;
}

/* Appends a string literal. */
#define SERVE_PUT(buffer, text) serve_put(buffer, text, sizeof(text) - 1)

/* Append a decimal number, or one with a fixed number of digits. */
void serve_put_number(struct serve_buffer *buffer, uint64_t number);
void serve_put_digits(struct serve_buffer *buffer, uint64_t number, unsigned digits);

/* Appends the payload of a timer. */
void serve_put_payload(struct serve_buffer *buffer, int64_t due_ns);
int64_t serve_read_due(const char *payload);

/* Prints the id of a timer. Ids of successive numbers are in no order. */
void serve_print_id(uint64_t number, char out[SERVE_ID_BYTES]);

/* --- serve_resp.c --- */

/* One piece of a reply. An array is a piece with its length; its items follow. */
struct serve_piece {
    char type;
    int64_t number;   /* an integer; the length of an array or a string, or -1 */
    const char *text; /* of a string or an error */
    size_t bytes;
};

struct serve_reader {
    const char *at, *end;
};

/* Read a piece; skip whole values. Both return false if the reply is incomplete. */
bool serve_read_piece(struct serve_reader *reader, struct serve_piece *out);
bool serve_skip(struct serve_reader *reader, unsigned values);

/* Returns whether an error is temporary: no room, or not yet started. Exits on any other error. */
bool serve_is_refusal(const struct serve_piece *piece);

void serve_put_bulk(struct serve_buffer *buffer, const char *data, size_t bytes);
void serve_put_bulk_number(struct serve_buffer *buffer, uint64_t number);
void serve_put_array(struct serve_buffer *buffer, uint64_t items);
void serve_put_echo(struct serve_buffer *buffer);

/* --- serve_loop.c --- */

struct serve_connection {
    int fd;
    uint32_t index;
    bool is_watched; /* epoll reports when it is writable */
    bool is_polling; /* of a worker: a claim is in flight */
    struct serve_buffer in, out;
    struct serve_request *requests; /* a ring buffer */
    uint32_t first, waiting, requests_room;
};

/* Is called for every reply. It may add requests to the connection, which are sent after it. */
typedef void serve_answered_fn(struct serve_connection *connection,
                               const struct serve_request *request,
                               const struct serve_answer *answer);

extern const struct serve_protocol *serve_protocol;
extern struct serve_connection *serve_connections;
extern uint32_t serve_connections_count;

uint64_t serve_mono_ns(void);
int64_t serve_wall_ns(void);

/* Opens or closes connections until there are `count`. serve_dial() returns -1 if no server
 * listens. */
void serve_connect(uint16_t port, uint32_t count);
int serve_dial(uint16_t port, int receive_bytes);

/* Records a request that was added to the connection's output. */
void serve_expect(struct serve_connection *connection, const struct serve_request *request);

/* Writes as much as the socket accepts; the rest follows when it is writable. */
void serve_flush(struct serve_connection *connection);

/* Waits up to `wait_ns`, and handles the replies that have arrived. */
void serve_turn(uint64_t wait_ns, serve_answered_fn *answered);

/* --- shared by the steps; serve_load.c --- */

struct serve_settings {
    uint64_t port, pid, connections, pipeline, batch, timers, tenths, rate, idle, slow;
    bool has_ids;  /* the client makes the ids */
    bool is_later; /* fill schedules timers that are not due */
};

extern struct serve_settings serve_settings;

struct serve_samples {
    uint32_t *items; /* in a unit of the step's choice */
    size_t count, room;
};

void serve_note(struct serve_samples *samples, uint64_t value);
void serve_sort(struct serve_samples *samples);
double serve_sample(const struct serve_samples *samples, double share); /* after sorting */

/* Connects, and sends the setup request of the protocol. */
void serve_connect_all(uint32_t count);

/* Returns the CPU time of the server, in ns; 0 if its process id is unknown. */
uint64_t serve_server_cpu_ns(void);

void serve_print_begin(const char *step);
void serve_print_number(const char *name, double value);
void serve_print_end(void);

/* --- other steps --- */

void serve_live(void);

/* Open and close the idle and slow connections of the settings. In between serve_crowd_go() must be
 * called often, to serve the slow ones. */
void serve_crowd_gather(void);
void serve_crowd_disperse(void);
void serve_crowd_go(uint64_t now_ns);

#endif
