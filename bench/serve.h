/* SPDX-License-Identifier: MIT */
#ifndef BENCH_SERVE_H
#define BENCH_SERVE_H

/*
 * serve - one client for servers of timers, whatever they speak.
 *
 *     serve_load.c    the command line, and steps that wait for answers
 *     serve_life.c    the step that does not: timers come by the clock
 *     serve_crowd.c   connections that are only there, or slow
 *     serve_loop.c    sockets, and what each is waiting to be answered
 *     serve_belfry.c, serve_redis.c, serve_beanstalkd.c    what a request looks like; serve_resp.c
 *
 * The loop is the same for all. A protocol only puts requests together out of pieces that are
 * there before, and reads of an answer what the next request needs.
 */

#include "harness.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
    SERVE_PAYLOAD_BYTES = 100,
    SERVE_DUE_DIGITS = 19, /* a payload begins with when it is due, in ns of the wall clock */
    SERVE_ID_BYTES = 20,   /* of an id that the client makes */
    SERVE_ID_BYTES_MAX = 31,
    SERVE_BATCH_MAX = 1000,
    SERVE_LEASE_S = 60,
};

#define SERVE_SECOND_NS INT64_C(1000000000)

/* Bytes that grow at the end and are used up from the beginning. */
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

/* What was asked and is not yet answered. */
struct serve_request {
    enum serve_kind kind;
    uint32_t count;  /* of a claim, at most; of an ack */
    uint64_t number; /* of the timer, if it is about one */
    uint64_t at_ns;  /* when, by the monotonic clock */
};

struct serve_timer {
    uint64_t number;
    const char *id;   /* NULL: the server makes one */
    int64_t due_ns;   /* of the wall clock */
    int64_t delay_ns; /* from now, for those who count from there; 0: due now */
};

struct serve_delivery {
    const char *token, *payload;
    size_t token_bytes;
};

/* An answer; what it points to is there until the next one is read. */
struct serve_answer {
    bool is_refused; /* for now: full, or not yet started */
    const char *id;  /* of what was scheduled, if the server tells it */
    size_t id_bytes;
    uint32_t count; /* deliveries; or how many an ack or a cancel has found */
    struct serve_delivery deliveries[SERVE_BATCH_MAX];
};

struct serve_protocol {
    const char *name;
    bool has_own_ids, has_made_ids;              /* what a timer can be called by */
    bool does_poll;                              /* a claim does not wait */
    uint32_t workers, batch;                     /* that suit it, where timers come by the clock */
    void (*put_setup)(struct serve_buffer *out); /* NULL: nothing is to be set up */
    void (*put_schedule)(struct serve_buffer *out, const struct serve_timer *timer);
    void (*put_claim)(struct serve_buffer *out, uint32_t count, uint32_t wait_s);
    void (*put_ack)(struct serve_buffer *out, const struct serve_delivery *deliveries,
                    uint32_t count);
    void (*put_cancel)(struct serve_buffer *out, const char *id, size_t bytes);
    void (*put_noise)(struct serve_buffer *out); /* a request with a long answer; or NULL */
    /* Reads one answer from `data`; returns its bytes, or 0 if not all of it is there. */
    size_t (*read)(const char *data, size_t bytes, const struct serve_request *request,
                   struct serve_answer *out);
};

extern const struct serve_protocol serve_belfry, serve_redis, serve_beanstalkd;

/* --- bytes --- */

/* Makes room for `bytes` more. */
void serve_reserve(struct serve_buffer *buffer, size_t bytes);

static inline void serve_put(struct serve_buffer *buffer, const void *data, size_t bytes)
{
    if (buffer->room - buffer->count < bytes) serve_reserve(buffer, bytes);
    memcpy(buffer->data + buffer->count, data, bytes);
    buffer->count += bytes;
}

/* A string that stands in the source. */
#define SERVE_PUT(buffer, text) serve_put(buffer, text, sizeof(text) - 1)

/* A number in decimal: as it is, or with so many digits. */
void serve_put_number(struct serve_buffer *buffer, uint64_t number);
void serve_put_digits(struct serve_buffer *buffer, uint64_t number, unsigned digits);

/* The payload of a timer. */
void serve_put_payload(struct serve_buffer *buffer, int64_t due_ns);
int64_t serve_read_due(const char *payload);

/* The id of a timer; they come in no order. */
void serve_print_id(uint64_t number, char out[SERVE_ID_BYTES]);

/* --- serve_resp.c --- */

/* One piece of an answer: an array is its head, and its items follow. */
struct serve_piece {
    char type;
    int64_t number;   /* of an integer; items of an array; bytes of a string, or -1 */
    const char *text; /* of strings and errors */
    size_t bytes;
};

struct serve_reader {
    const char *at, *end;
};

/* Both return false if not all of it is there. */
bool serve_read_piece(struct serve_reader *reader, struct serve_piece *out);
bool serve_skip(struct serve_reader *reader, unsigned values); /* whole ones */

/* An error is the end, unless it says that there is no room or that it is too early. */
bool serve_is_refusal(const struct serve_piece *piece);

void serve_put_bulk(struct serve_buffer *buffer, const char *data, size_t bytes);
void serve_put_bulk_number(struct serve_buffer *buffer, uint64_t number);
void serve_put_array(struct serve_buffer *buffer, uint64_t items);
void serve_put_echo(struct serve_buffer *buffer);

/* --- serve_loop.c --- */

struct serve_connection {
    int fd;
    uint32_t index;
    bool is_watched; /* until it can be written to */
    bool is_polling; /* of a worker: it has asked and was not answered */
    struct serve_buffer in, out;
    struct serve_request *requests; /* a ring */
    uint32_t first, waiting, requests_room;
};

/* Called for every answer. It may ask more of the same connection, which leaves behind it. */
typedef void serve_answered_fn(struct serve_connection *connection,
                               const struct serve_request *request,
                               const struct serve_answer *answer);

extern const struct serve_protocol *serve_protocol;
extern struct serve_connection *serve_connections;
extern uint32_t serve_connections_count;

uint64_t serve_mono_ns(void);
int64_t serve_wall_ns(void);

/* Connects until there are `count` connections, or ends the last ones; -1 from serve_dial() if
 * nobody listens. */
void serve_connect(uint16_t port, uint32_t count);
int serve_dial(uint16_t port, int receive_bytes);

/* Notes that a request was put into the connection's output. */
void serve_expect(struct serve_connection *connection, const struct serve_request *request);

/* Writes what the socket takes; the rest when it takes more. */
void serve_flush(struct serve_connection *connection);

/* Waits up to `wait_ns`, and reads what has come. */
void serve_turn(uint64_t wait_ns, serve_answered_fn *answered);

/* --- what steps share; serve_load.c --- */

struct serve_settings {
    uint64_t port, pid, connections, pipeline, batch, timers, tenths, rate, idle, slow;
    bool has_ids;  /* that the client makes */
    bool is_later; /* filled with timers that are not due */
};

extern struct serve_settings serve_settings;

struct serve_samples {
    uint32_t *items; /* in the unit of who notes them */
    size_t count, room;
};

void serve_note(struct serve_samples *samples, uint64_t value);
void serve_sort(struct serve_samples *samples);
double serve_sample(const struct serve_samples *samples, double share); /* once sorted */

/* Connects, and says what a server has to be told once. */
void serve_connect_all(uint32_t count);

/* CPU time of the server, in ns; 0 if it is not known. */
uint64_t serve_server_cpu_ns(void);

void serve_print_begin(const char *step);
void serve_print_number(const char *name, double value);
void serve_print_end(void);

/* --- other steps --- */

void serve_live(void);

/* Opens as many idle and slow connections as are set, and ends them; in between the slow ones are
 * kept going by serve_crowd_go(), which is to be called often. */
void serve_crowd_gather(void);
void serve_crowd_disperse(void);
void serve_crowd_go(uint64_t now_ns);

#endif
