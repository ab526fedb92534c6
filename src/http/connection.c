/* SPDX-License-Identifier: MIT */

/*
 * A connection reads requests and answers them one after the other, in their order. How it ends:
 *
 *     the client closes its side    complete requests are answered, then it is closed; a claim that
 *                                   waits is withdrawn; an incomplete request is dropped at once
 *     the last response is sent     our side is shut down, and input is discarded until the client
 *                                   closes, within limits. Otherwise the kernel would reset the
 *                                   connection, and the response could be lost
 *     a deadline passes             408 if a part of a request was received
 *
 * Memory: an idle connection has no buffers. Input is bounded by one head and one read; output by a
 * slice, because no slice is made while the last one is not sent. The answer itself is kept until
 * its last slice is made, and counted in the total of all connections; see unread.c.
 */
#include "http/server_state.h"

#include "core/units.h"
#include "core/view.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

enum {
    LINE_BYTES_MAX = 16 << 10,
    HEAD_BYTES_MAX = 48 << 10, /* with the request line */
    HEADERS_MAX = 200,
    IN_BYTES_MAX = 2 * BEL_HTTP_SLICE_BYTES, /* more than a head, and a read */
    OUT_BYTES_MAX = 4 * BEL_HTTP_SLICE_BYTES,
    OUT_BYTES_KEPT = 4096,        /* of a slice that the socket does not accept */
    REQUESTS_MAX = 16,            /* of a connection, in a run */
    DISCARD_BYTES_MAX = 16 << 20, /* while lingering */
    BODY_MS_MAX = 20000,          /* for a body, plus the time for its bytes at this rate: */
    BODY_BYTES_PER_S = 4096,
};

/* In ms. */
static const uint32_t deadlines[BEL_HTTP_DEADLINES] = {
    [BEL_HTTP_DEADLINE_IDLE] = 75000, [BEL_HTTP_DEADLINE_HEAD] = 10000,
    [BEL_HTTP_DEADLINE_BODY] = 1000,  [BEL_HTTP_DEADLINE_DELAY] = 1000,
    [BEL_HTTP_DEADLINE_SEND] = 30000, [BEL_HTTP_DEADLINE_LINGER] = 2000,
};

static const struct bel_http_limits limits = {LINE_BYTES_MAX, HEAD_BYTES_MAX, HEADERS_MAX};

static struct bel_now now_of(const struct bel_http *http)
{
    return *http->site.options.service->now;
}

/* --- lists --- */

static void set_deadline(struct bel_http_connection *connection, enum bel_http_deadline deadline)
{
    struct bel_http *http = connection->http;
    if (connection->deadline != BEL_HTTP_DEADLINE_NONE) bel__link_remove(&connection->timed);
    connection->deadline = deadline;
    if (deadline == BEL_HTTP_DEADLINE_NONE) return;
    assert(deadlines[deadline] > 0);
    connection->deadline_end = now_of(http).real;
    connection->deadline_end.ns += (uint64_t)deadlines[deadline] * NS_PER_MS;
    bel__list_append(&http->deadlines[deadline], &connection->timed);
}

static void make_busy(struct bel_http_connection *connection)
{
    if (bel__link_is_linked(&connection->busy)) return;
    bel__list_append(&connection->http->busy, &connection->busy);
}

static void set_events(struct bel_http_connection *connection, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = connection};
    if (connection->events == events) return;
    connection->events = events;
    (void)epoll_ctl(connection->http->epoll_fd, EPOLL_CTL_MOD, connection->fd, &event);
}

/* Returns how many bytes of a body may be received because of the requests of all connections. */
static size_t body_room(const struct bel_http_connection *connection)
{
    if (connection->state != BEL_HTTP_BODY) return SIZE_MAX;
    return bel__input_share_room(&connection->input, connection->call->body.count);
}

/* Returns how many bytes of the body the client has announced and not sent. */
static size_t missing_of(const struct bel_http_connection *connection)
{
    if (connection->state != BEL_HTTP_BODY || connection->body.is_chunked) return SIZE_MAX;
    return (size_t)connection->body.left;
}

/* Counts the body of the request in the total of all connections. A claim may wait for ever: its
 * body is gone by then. */
static void count_body(struct bel_http_connection *connection)
{
    struct bel_buffer none = {0};
    const struct bel_buffer *body = connection->call != NULL ? &connection->call->body : &none;
    bool is_receiving = connection->state == BEL_HTTP_BODY;
    bool is_running = connection->state == BEL_HTTP_READY || connection->state == BEL_HTTP_RUNNING;
    struct bel_input_state state = {
        .bytes = is_receiving ? body->capacity : 0,
        .running_bytes = is_running ? body->capacity : 0,
        .is_receiving = is_receiving && body->count >= BEL_INPUT_SMALL_BYTES,
        .missing = missing_of(connection),
        .progress = connection->body_bytes,
    };
    bel__input_share_set(&connection->input, &state, now_of(connection->http).real);
    if (!is_receiving) bel__input_share_unblock(&connection->input);
}

/* Counts the answer in the total of all connections. */
static void count_output(struct bel_http_connection *connection)
{
    const struct bel_http_call *call = connection->call;
    size_t bytes = connection->out.capacity;
    if (call != NULL) bytes += bel__http_call_output_bytes(call);
    bel__output_total_recount(connection->http->site.options.service->output_total,
                              &connection->output_bytes, bytes);
}

/* Sets the events that the state of the connection needs. */
static void watch(struct bel_http_connection *connection, bool is_blocked)
{
    uint32_t events = is_blocked ? EPOLLOUT : 0;
    bool has_room =
        connection->in.count < BEL_HTTP_SLICE_BYTES || connection->state == BEL_HTTP_LINGERING;
    if (body_room(connection) == 0) {
        has_room = false;
        bel__input_share_block(&connection->input);
    }
    if (!connection->has_ended && has_room) events |= EPOLLIN;
    if (!connection->is_hung_up && !has_room) events |= EPOLLRDHUP;
    set_events(connection, events);
}

/* --- opening and closing --- */

static const struct bel_input_owner input_owner;

int bel__http_connection_open(struct bel_http *http, int fd, const struct bel_address *address)
{
    struct bel_http_connection *connection = calloc(1, sizeof *connection);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = connection};
    if (connection == NULL || epoll_ctl(http->epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0) {
        free(connection);
        (void)close(fd);
        return connection == NULL ? BEL_ENOMEM : BEL_EIO;
    }
    connection->http = http;
    connection->fd = fd;
    connection->events = EPOLLIN;
    bel__address_print(address, connection->address);
    bel__buffer_init(&connection->in, IN_BYTES_MAX);
    bel__buffer_init(&connection->out, OUT_BYTES_MAX);
    bel__input_share_init(&connection->input, http->site.options.service->input_total,
                          &input_owner);
    bel__list_append(&http->connections, &connection->all);
    bel__list_append(&http->strangers, &connection->stranger);
    set_deadline(connection, BEL_HTTP_DEADLINE_IDLE);
    http->connections_count++;
    http->site.options.metrics->http_clients++;
    http->site.options.metrics->http_accepted++;
    return 0;
}

/* Ends the call of a connection, if there is one. */
static void end_call(struct bel_http_connection *connection, bool is_sent)
{
    struct bel_http_call *call = connection->call;
    connection->call = NULL;
    if (call != NULL) bel__http_call_end(call, is_sent);
}

void bel__http_connection_close(struct bel_http_connection *connection)
{
    struct bel_http *http = connection->http;
    if (connection->state == BEL_HTTP_CLOSED) return;
    connection->state = BEL_HTTP_CLOSED;
    bel__input_share_clear(&connection->input);
    set_deadline(connection, BEL_HTTP_DEADLINE_NONE);
    if (bel__link_is_linked(&connection->busy)) bel__link_remove(&connection->busy);
    if (bel__link_is_linked(&connection->stranger)) bel__link_remove(&connection->stranger);
    if (bel__link_is_linked(&connection->crowded)) bel__link_remove(&connection->crowded);
    bel__link_remove(&connection->all);
    connection->next_closed = http->closed;
    http->closed = connection;
    (void)close(connection->fd); /* also leaves the epoll */
    bel__buffer_finish(&connection->in);
    bel__buffer_finish(&connection->out);
    end_call(connection, false);
    count_output(connection);
    assert(http->connections_count > 0);
    http->connections_count--;
    http->site.options.metrics->http_clients--;
}

/* Closes our side and waits until the client has closed its side. */
static void linger(struct bel_http_connection *connection)
{
    if (connection->has_ended || shutdown(connection->fd, SHUT_WR) != 0) {
        bel__http_connection_close(connection);
        return;
    }
    connection->state = BEL_HTTP_LINGERING;
    bel__buffer_finish(&connection->in);
    bel__buffer_finish(&connection->out);
    set_deadline(connection, BEL_HTTP_DEADLINE_LINGER);
    watch(connection, false);
}

/* --- sending --- */

/* Begins to send the answer of the call. */
static void begin_sending(struct bel_http_connection *connection)
{
    struct bel_http_call *call = connection->call;
    struct bel_http_site *site = &connection->http->site;
    assert(call != NULL && call->state == BEL_HTTP_CALL_ANSWERED);
    if (call->page.is_lost) {
        bel__http_connection_close(connection);
        return;
    }
    if (call->is_delayed) {
        call->is_delayed = false;
        connection->state = BEL_HTTP_DELAYED;
        set_deadline(connection, BEL_HTTP_DEADLINE_DELAY);
        return;
    }
    connection->state = BEL_HTTP_SENDING;
    connection->response.terms.is_last |= call->is_last || site->is_draining;
    connection->response.terms.date = now_of(connection->http).wall;
    set_deadline(connection, BEL_HTTP_DEADLINE_NONE);
    bel__metrics_count_http(site->options.metrics, call->page.status);
    if (call->page.code != NULL) bel__metrics_count_error(site->options.metrics, call->page.code);
}

static void end_sending(struct bel_http_connection *connection)
{
    bool is_last = connection->response.terms.is_last;
    connection->response = (struct bel_http_response){0};
    end_call(connection, true);
    bel__buffer_finish(&connection->out);
    if (is_last) {
        linger(connection);
        return;
    }
    connection->state = BEL_HTTP_HEAD;
    connection->scan = (struct bel_http_scan){0};
    if (connection->in.count == 0) bel__buffer_finish(&connection->in);
    bool is_idle = connection->in.count == 0;
    set_deadline(connection, is_idle ? BEL_HTTP_DEADLINE_IDLE : BEL_HTTP_DEADLINE_HEAD);
    watch(connection, false);
}

/* The socket does not accept all, and the connection waits for its client. */
static void block(struct bel_http_connection *connection)
{
    if (connection->deadline == BEL_HTTP_DEADLINE_NONE) {
        set_deadline(connection, BEL_HTTP_DEADLINE_SEND);
    }
    if (connection->blocked.ns == 0) connection->blocked = now_of(connection->http).real;
    bel__buffer_trim(&connection->out, OUT_BYTES_KEPT);
    watch(connection, true);
}

/* The socket has accepted all. */
static void unblock(struct bel_http_connection *connection)
{
    if (connection->blocked.ns == 0) return;
    connection->blocked_ns += now_of(connection->http).real.ns - connection->blocked.ns;
    connection->blocked.ns = 0;
}

/* Sends output. Returns whether all of it was sent; otherwise the connection waits or is closed. */
static bool flush(struct bel_http_connection *connection)
{
    struct bel_buffer *out = &connection->out;
    while (out->count > 0) {
        ssize_t sent = send(connection->fd, bel__buffer_data(out), out->count, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent < 0 && errno == EAGAIN) {
            block(connection);
            return false;
        }
        if (sent < 0) {
            bel__http_connection_close(connection);
            return false;
        }
        bel__buffer_consume(out, (size_t)sent);
        connection->sent_bytes += (uint64_t)sent;
        if (connection->state == BEL_HTTP_SENDING) {
            set_deadline(connection, BEL_HTTP_DEADLINE_NONE);
        }
    }
    unblock(connection);
    watch(connection, false);
    return true;
}

/* Makes a slice, if the last one was sent, and sends. Returns whether the response was sent. */
static bool send_some(struct bel_http_connection *connection)
{
    struct bel_http *http = connection->http;
    struct bel_http_response *response = &connection->response;
    size_t work = 0;
    if (connection->out.count == 0 && !response->is_over) {
        if (http->work >= BEL_HTTP_RUN_BYTES_MAX) {
            make_busy(connection);
            return false;
        }
        int err = bel__http_response_next(response, &connection->call->page, &http->scratch,
                                          &connection->out, &work);
        http->work += work;
        if (err) {
            bel__http_connection_close(connection);
            return false;
        }
        if (response->is_over) bel__json_finish(&connection->call->page.body);
    }
    if (!flush(connection)) return false;
    if (!response->is_over) {
        make_busy(connection); /* other connections are served first */
        return false;
    }
    end_sending(connection);
    return connection->state == BEL_HTTP_HEAD;
}

/* --- receiving --- */

/* Called by the call, within a turn. */
static void on_answered(void *context)
{
    struct bel_http_connection *connection = context;
    count_output(connection);
    make_busy(connection);
}

static struct bel_http_call *create_call(struct bel_http_connection *connection)
{
    struct bel_http_caller caller = {on_answered, connection, &connection->keys_wrong,
                                     connection->address};
    connection->call = bel__http_call_create(&connection->http->site, &caller);
    if (connection->call == NULL) bel__http_connection_close(connection);
    return connection->call;
}

/* Answers a request that is not HTTP as this server understands it, and then closes. */
static void refuse(struct bel_http_connection *connection, const struct bel_http_refusal *refusal)
{
    if (connection->call == NULL && create_call(connection) == NULL) return;
    struct bel_http_call *call = connection->call;
    const char *code = "ERR";
    if (refusal->status == 507) code = "FULL";
    if (refusal->status == 413) code = bel__http_call_large_code(call);
    bel__http_page_finish(&call->page);
    call->page = bel__http_problem_as(refusal->status, code, refusal->text);
    call->state = BEL_HTTP_CALL_ANSWERED;
    connection->response.terms.is_last = true;
    begin_sending(connection);
}

/* Begins to receive the body of a request that was admitted. */
static void begin_body(struct bel_http_connection *connection, const struct bel_http_head *head)
{
    static const char text[] = "HTTP/1.1 100 Continue\r\n\r\n";
    bool has_body = head->headers.is_chunked || head->headers.length > 0;
    connection->state = has_body ? BEL_HTTP_BODY : BEL_HTTP_READY;
    connection->body = bel__http_body_of(&head->headers);
    connection->body_start = now_of(connection->http).real;
    connection->body_bytes = 0;
    set_deadline(connection, has_body ? BEL_HTTP_DEADLINE_BODY : BEL_HTTP_DEADLINE_NONE);
    if (!has_body || !head->headers.expects_continue) return;
    if (bel__buffer_append(&connection->out, text, sizeof text - 1) != 0) {
        bel__http_connection_close(connection);
        return;
    }
    (void)flush(connection);
}

static void take_head(struct bel_http_connection *connection, struct bel_view bytes)
{
    struct bel_http_head head;
    struct bel_http_refusal refusal;
    struct bel_http_terms *terms = &connection->response.terms;
    connection->response = (struct bel_http_response){.terms = {.minor = 1}};
    if (bel__http_head_parse(bytes, &head, &refusal) != BEL_HTTP_WHOLE) {
        refuse(connection, &refusal);
        return;
    }
    terms->minor = head.minor;
    terms->is_head = bel__view_is(head.method, "HEAD");
    terms->is_last = head.headers.wants_close;
    if (create_call(connection) == NULL) return;
    bool is_admitted = bel__http_call_admit(connection->call, &head);
    if (connection->call->is_known && bel__link_is_linked(&connection->stranger)) {
        bel__link_remove(&connection->stranger);
    }
    if (is_admitted) {
        begin_body(connection, &head);
    } else {
        begin_sending(connection);
    }
}

/* Looks for a complete head in the input. Returns whether the state has changed. */
static bool receive_head(struct bel_http_connection *connection)
{
    struct bel_buffer *in = &connection->in;
    struct bel_http_scan *scan = &connection->scan;
    struct bel_http_refusal refusal;
    struct bel_view data = {bel__buffer_data(in), in->count};
    if (in->count == 0) return false;
    enum bel_http_progress what = bel__http_head_scan(scan, data, &limits, &refusal);
    if (what == BEL_HTTP_MORE) {
        if (connection->deadline == BEL_HTTP_DEADLINE_IDLE) {
            set_deadline(connection, BEL_HTTP_DEADLINE_HEAD);
        }
        return false;
    }
    if (what == BEL_HTTP_REFUSED) {
        connection->response = (struct bel_http_response){.terms = {.minor = 1}};
        refuse(connection, &refusal);
        return true;
    }
    size_t bytes = scan->bytes;
    const char *start = data.data;
    take_head(connection, (struct bel_view){start + scan->start, bytes - scan->start});
    if (connection->state != BEL_HTTP_CLOSED) bel__buffer_consume(in, bytes);
    return true;
}

/* Takes bytes of the body. Returns how many. */
static size_t take_body(struct bel_http_connection *connection, struct bel_view data)
{
    struct bel_http_refusal refusal;
    size_t used;
    enum bel_http_progress what =
        bel__http_body_take(&connection->body, data, &connection->call->body, &used, &refusal);
    connection->body_bytes += used;
    if (what == BEL_HTTP_REFUSED) refuse(connection, &refusal);
    if (what == BEL_HTTP_WHOLE) {
        connection->state = BEL_HTTP_READY;
        set_deadline(connection, BEL_HTTP_DEADLINE_NONE);
    }
    return used;
}

static bool receive_body(struct bel_http_connection *connection)
{
    struct bel_buffer *in = &connection->in;
    if (in->count == 0) return false;
    size_t used = take_body(connection, (struct bel_view){bel__buffer_data(in), in->count});
    if (connection->state == BEL_HTTP_CLOSED) return true;
    bel__buffer_consume(in, used);
    return connection->state != BEL_HTTP_BODY;
}

/* Returns whether a request waits because of the answers of all connections, and adds it to those
 * that do. */
static bool must_wait(struct bel_http_connection *connection)
{
    struct bel_http *http = connection->http;
    if (connection->is_next) return false;
    if (bel__link_is_linked(&connection->crowded)) return true;
    bool do_others = !bel__list_is_empty(&http->crowd);
    if (!bel__http_call_must_wait(connection->call, do_others)) return false;
    bel__list_append(&http->crowd, &connection->crowded);
    return true;
}

/* Executes a complete request. Returns whether it is answered. */
static bool begin(struct bel_http_connection *connection)
{
    struct bel_http *http = connection->http;
    struct bel_http_call *call = connection->call;
    assert(call != NULL);
    if (must_wait(connection)) return false;
    if (!connection->is_next && http->work >= BEL_HTTP_RUN_BYTES_MAX) {
        make_busy(connection);
        return false;
    }
    http->work += call->body.count;
    connection->is_next = false;
    connection->state = BEL_HTTP_RUNNING;
    bel__http_call_begin(call);
    count_output(connection); /* before the next request is looked at */
    if (call->request.command.verb == BEL_VERB_CLAIM) bel__buffer_finish(&call->body);
    if (call->state != BEL_HTTP_CALL_ANSWERED) return false;
    begin_sending(connection);
    return true;
}

/* Goes on with a request in the backend, if that has answered or the client has hung up. */
static bool end_running(struct bel_http_connection *connection)
{
    struct bel_http_call *call = connection->call;
    assert(call != NULL);
    if (call->state == BEL_HTTP_CALL_ANSWERED) {
        begin_sending(connection);
        return true;
    }
    if (!connection->is_hung_up) return false;
    if (bel__http_call_hang_up(call)) {
        bel__http_connection_close(connection);
        return true;
    }
    if (bel__http_call_is_fresh(call)) make_busy(connection); /* try again after the turn */
    return false;
}

/* Advances by one state. Returns false if the connection waits for something. */
static bool advance(struct bel_http_connection *connection)
{
    switch (connection->state) {
    case BEL_HTTP_HEAD:
        return receive_head(connection);
    case BEL_HTTP_BODY:
        return receive_body(connection);
    case BEL_HTTP_READY:
        return begin(connection);
    case BEL_HTTP_RUNNING:
        return end_running(connection);
    case BEL_HTTP_SENDING:
        return send_some(connection);
    default:
        return false;
    }
}

void bel__http_connection_step(struct bel_http_connection *connection)
{
    unsigned requests = 0;
    while (advance(connection)) {
        if (connection->state == BEL_HTTP_HEAD && ++requests == REQUESTS_MAX) {
            make_busy(connection);
            return;
        }
    }
    bool is_receiving = connection->state == BEL_HTTP_HEAD || connection->state == BEL_HTTP_BODY;
    if (connection->has_ended && is_receiving) bel__http_connection_close(connection);
    if (connection->state == BEL_HTTP_CLOSED) return;
    count_body(connection);
    count_output(connection);
    watch(connection, (connection->events & EPOLLOUT) != 0 && connection->out.count > 0);
}

void bel__http_connection_resume(struct bel_http_connection *connection)
{
    assert(connection->state == BEL_HTTP_READY && bel__link_is_linked(&connection->crowded));
    bel__link_remove(&connection->crowded);
    connection->is_next = true;
    bel__http_connection_step(connection);
}

/* Takes received bytes: of a body directly, otherwise as input. */
static void take_in(struct bel_http_connection *connection, const char *data, size_t bytes)
{
    size_t used = 0;
    if (connection->state == BEL_HTTP_LINGERING) {
        connection->discarded += bytes;
        if (connection->discarded > DISCARD_BYTES_MAX) bel__http_connection_close(connection);
        return;
    }
    if (connection->state == BEL_HTTP_BODY && connection->in.count == 0) {
        used = take_body(connection, (struct bel_view){data, bytes});
        if (connection->state == BEL_HTTP_CLOSED || used == bytes) return;
    }
    if (bel__buffer_append(&connection->in, data + used, bytes - used) != 0) {
        bel__http_connection_close(connection);
    }
}

static void receive(struct bel_http_connection *connection)
{
    struct bel_http *http = connection->http;
    size_t room = body_room(connection);
    if (room == 0) return; /* others were read before: watch() follows */
    if (room > sizeof http->bytes) room = sizeof http->bytes;
    ssize_t got = recv(connection->fd, http->bytes, room, 0);
    if (got > 0) {
        take_in(connection, http->bytes, (size_t)got);
    } else if (got == 0) {
        connection->has_ended = connection->is_hung_up = true;
        if (connection->state == BEL_HTTP_LINGERING) bel__http_connection_close(connection);
    } else if (errno != EAGAIN && errno != EINTR) {
        bel__http_connection_close(connection);
    }
}

void bel__http_connection_event(struct bel_http_connection *connection, uint32_t events)
{
    if (connection->state == BEL_HTTP_CLOSED) return;
    if (events & EPOLLERR) {
        bel__http_connection_close(connection);
        return;
    }
    if (events & EPOLLRDHUP) connection->is_hung_up = true;
    if (events & (EPOLLIN | EPOLLHUP)) receive(connection);
    if (connection->state == BEL_HTTP_CLOSED) return;
    if (connection->state != BEL_HTTP_SENDING && connection->out.count > 0) {
        if (!flush(connection) && connection->state == BEL_HTTP_CLOSED) return;
    }
    bel__http_connection_step(connection);
}

/* --- deadlines --- */

/* Returns whether a body is received as fast as it must be. */
static bool is_fast_enough(const struct bel_http_connection *connection)
{
    uint64_t ns = now_of(connection->http).real.ns - connection->body_start.ns;
    uint64_t allowed_s = connection->body_bytes / BODY_BYTES_PER_S;
    return ns <= (uint64_t)BODY_MS_MAX * NS_PER_MS + allowed_s * NS_PER_S;
}

void bel__http_connection_late(struct bel_http_connection *connection)
{
    static const struct bel_http_refusal late = {408, "the request was not received in time"};
    switch (connection->deadline) {
    case BEL_HTTP_DEADLINE_HEAD:
        connection->response = (struct bel_http_response){.terms = {.minor = 1}};
        refuse(connection, &late);
        break;
    case BEL_HTTP_DEADLINE_BODY:
        if (bel__input_share_is_blocked(&connection->input)) { /* this time does not count */
            connection->body_start.ns += (uint64_t)deadlines[BEL_HTTP_DEADLINE_BODY] * NS_PER_MS;
        }
        if (is_fast_enough(connection)) {
            set_deadline(connection, BEL_HTTP_DEADLINE_BODY);
            return;
        }
        refuse(connection, &late);
        break;
    case BEL_HTTP_DEADLINE_DELAY:
        begin_sending(connection);
        break;
    default:
        bel__http_connection_close(connection);
        return;
    }
    if (connection->state != BEL_HTTP_CLOSED) bel__http_connection_step(connection);
}

bool bel__http_connection_is_waiting(const struct bel_http_connection *connection)
{
    char byte;
    if (connection->state == BEL_HTTP_READY || connection->state == BEL_HTTP_RUNNING) return false;
    if (bel__link_is_linked(&connection->busy)) return false;
    return recv(connection->fd, &byte, sizeof byte, MSG_PEEK | MSG_DONTWAIT) <= 0;
}

uint64_t bel__http_connection_idle_ms(const struct bel_http_connection *connection)
{
    assert(connection->deadline == BEL_HTTP_DEADLINE_IDLE);
    uint64_t length_ns = (uint64_t)deadlines[BEL_HTTP_DEADLINE_IDLE] * NS_PER_MS;
    return (now_of(connection->http).real.ns + length_ns - connection->deadline_end.ns) / NS_PER_MS;
}

bool bel__http_connection_is_working(const struct bel_http_connection *connection)
{
    return connection->state >= BEL_HTTP_READY && connection->state <= BEL_HTTP_SENDING;
}

/* --- requests that stand still --- */

static struct bel_http_connection *connection_of(struct bel_input_share *share)
{
    return BEL_CONTAINER_OF(share, struct bel_http_connection, input);
}

static bool has_input(const struct bel_input_share *share)
{
    const struct bel_http_connection *connection =
        BEL_CONTAINER_OF_CONST(share, struct bel_http_connection, input);
    char byte;
    return recv(connection->fd, &byte, sizeof byte, MSG_PEEK | MSG_DONTWAIT) > 0;
}

static void resume(struct bel_input_share *share)
{
    make_busy(connection_of(share));
}

static void expire(struct bel_input_share *share, const char *why)
{
    struct bel_http_connection *connection = connection_of(share);
    const struct bel_http_refusal still = {408, why};
    assert(connection->state == BEL_HTTP_BODY);
    bel__buffer_finish(&connection->call->body);
    refuse(connection, &still);
    if (connection->state == BEL_HTTP_CLOSED) return;
    count_body(connection);
    make_busy(connection);
}

static const struct bel_input_owner input_owner = {has_input, resume, expire};
