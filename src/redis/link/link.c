/* SPDX-License-Identifier: MIT */

/*
 * The link moves through its states, and connects the parts that do the work:
 *
 *     dial.c       from a name to a socket         lookup.c: names, in a thread
 *     greeting.c   the first commands
 *     exchange.c   calls and replies               stream.c: bytes, tls.c: encrypted ones
 *
 * Each event of the poller is handled for the current state. An error of any part ends in fail(),
 * the only place where a connection is given up: the next address is tried, or the link waits.
 * Callbacks run only while the link is in a state from which it can go on.
 */
#include "redis/link/link.h"

#include "redis/link/dial.h"
#include "redis/link/exchange.h"

#include "core/units.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

struct bel_redis_link {
    struct bel_poll_source source;
    struct bel_redis_link_options options; /* texts are NULL: see `dial` and the next line */
    char *user, *password, *name;
    enum bel_redis_link_state state;
    struct bel_mono deadline;    /* of connecting and greeting, or the end of waiting */
    struct bel_mono attempt_end; /* of this attempt, for all its addresses */
    struct bel_mono silence_end; /* of the handshake; BEL_NEVER: what may be wrong was said */
    struct bel_mono ready_since;
    uint32_t failures; /* attempts and connections that failed, in a row */
    uint64_t connections;
    struct bel_why why, drop_why;
    bool is_wanted, is_opening, is_closing;
    bool is_dropping, is_moved; /* the next flush gives up the connection */
    struct bel_dial dial;
    struct bel_stream stream;
    struct bel_greeting greeting;
    struct bel_exchange exchange;
};

enum {
    SILENCE_MS = 700, /* of a handshake, after which a message says what may be wrong */
};

#define NO_HANDSHAKE                                                                               \
    "TLS: no end of the handshake in time; if this port has no TLS, write redis instead of rediss"

static void receive(struct bel_poll_source *source, struct bel_mono now);
static struct bel_mono flush(struct bel_poll_source *source, struct bel_mono now);

/* Returns `now + ms`, or the last instant. */
static struct bel_mono after(struct bel_mono now, uint64_t ms)
{
    struct bel_mono due;
    return bel_mono_add(now, ms * NS_PER_MS, &due) == 0 ? due : (struct bel_mono){BEL_NEVER - 1};
}

/* --- life --- */

static void push(void *owner, const struct bel_value *message)
{
    struct bel_redis_link *link = owner;
    if (link->options.pushed != NULL) link->options.pushed(link, link->options.owner, message);
}

static struct bel_redis_link_options complete(const struct bel_redis_link_options *given)
{
    struct bel_redis_link_options options = *given;
    if (options.connect_ms == 0) options.connect_ms = BEL_REDIS_CONNECT_MS;
    if (options.call_ms == 0) options.call_ms = BEL_REDIS_CALL_MS;
    if (options.calls_max == 0) options.calls_max = BEL_REDIS_CALLS_MAX;
    if (options.call_bytes_max == 0) options.call_bytes_max = BEL_REDIS_CALL_BYTES_MAX;
    if (options.reply_bytes_max == 0) options.reply_bytes_max = BEL_REDIS_REPLY_BYTES_MAX;
    if (options.reply_values_max == 0) options.reply_values_max = BEL_REDIS_REPLY_VALUES_MAX;
    options.host = options.path = options.user = options.password = options.name = NULL;
    return options;
}

/* Copies a text that may be NULL. Returns 0 or BEL_ENOMEM. */
static int copy_text(const char *text, char **out)
{
    *out = text == NULL ? NULL : strdup(text);
    return text != NULL && *out == NULL ? BEL_ENOMEM : 0;
}

static void free_secret(char *text)
{
    if (text != NULL) explicit_bzero(text, strlen(text));
    free(text);
}

static void free_link(struct bel_redis_link *link)
{
    bel__dial_finish(&link->dial);
    bel__exchange_finish(&link->exchange);
    bel__greeting_finish(&link->greeting);
    free(link->user);
    free_secret(link->password);
    free(link->name);
    free(link);
}

int bel__redis_link_open(const struct bel_redis_link_options *options, struct bel_redis_link **out)
{
    assert(options->poller != NULL && options->entropy != NULL);
    assert(options->tls == NULL || options->host != NULL);
    struct bel_redis_link *link = calloc(1, sizeof *link);
    if (link == NULL) return BEL_ENOMEM;
    link->options = complete(options);
    link->source.receive = receive;
    link->source.flush = flush;
    bel__stream_init(&link->stream);
    struct bel_exchange_options limits = {.calls_max = link->options.calls_max,
                                          .bytes_max = link->options.call_bytes_max,
                                          .reply_bytes_max = link->options.reply_bytes_max,
                                          .reply_values_max = link->options.reply_values_max};
    bel__exchange_init(&link->exchange, &limits, push, link);

    int err = bel__dial_init(&link->dial, options->host, options->port, options->path);
    if (err == 0) err = copy_text(options->user, &link->user);
    if (err == 0) err = copy_text(options->password, &link->password);
    if (err == 0) err = copy_text(options->name, &link->name);
    struct bel_greeting_options greeting = {
        .user = link->user, .password = link->password, .name = link->name, .db = options->db};
    bel__greeting_init(&link->greeting, &greeting);
    if (err) {
        free_link(link);
        return err;
    }
    bel__poller_add(options->poller, &link->source);
    *out = link;
    return 0;
}

static void close_stream(struct bel_redis_link *link)
{
    (void)!bel__poller_watch(&link->source, -1, 0); /* ending does not fail */
    bel__stream_close(&link->stream);
}

void bel__redis_link_close(struct bel_redis_link *link)
{
    if (link == NULL) return;
    assert(!link->source.poller->is_busy);
    link->is_closing = true;
    close_stream(link);
    bel__exchange_break(&link->exchange, "the connection was closed");
    bel__exchange_close(&link->exchange, "the connection was closed");
    bel__poller_remove(&link->source);
    free_link(link);
}

/* --- failing --- */

static void make_printable(char *text)
{
    for (; *text != 0; text++) {
        if ((unsigned char)*text < ' ' || *text == 0x7f) *text = '?';
    }
}

/* Remembers why the connection or the attempt has failed, with the address. */
static void remember(struct bel_redis_link *link, const char *reason)
{
    const struct bel_dial *dial = &link->dial;
    if (dial->path != NULL) {
        (void)bel__why_say(&link->why, 0, "%s: %s", dial->path, reason);
    } else {
        bool is_six = strchr(dial->host, ':') != NULL;
        (void)bel__why_say(&link->why, 0, is_six ? "[%s]:%u: %s" : "%s:%u: %s", dial->host,
                           (unsigned)dial->port, reason);
    }
    make_printable(link->why.text);
}

/* Waits before the next attempt: a random time, so that many nodes do not come back together. */
static void begin_wait(struct bel_redis_link *link, struct bel_mono now)
{
    uint64_t word, bound_ns = (uint64_t)BEL_REDIS_RETRY_MS_MIN * NS_PER_MS;
    for (uint32_t i = 0; i < link->failures; i++) {
        if (bound_ns >= (uint64_t)BEL_REDIS_RETRY_MS_MAX * NS_PER_MS) break;
        bound_ns *= 2;
    }
    if (bound_ns > (uint64_t)BEL_REDIS_RETRY_MS_MAX * NS_PER_MS) {
        bound_ns = (uint64_t)BEL_REDIS_RETRY_MS_MAX * NS_PER_MS;
    }
    if (bel__entropy_u64(link->options.entropy, &word) != 0) word = bound_ns - 1;
    link->failures++;
    link->state = BEL_REDIS_LINK_WAITING;
    if (bel_mono_add(now, 1 + word % bound_ns, &link->deadline) != 0) {
        link->deadline.ns = BEL_NEVER - 1;
    }
}

/* Returns whether a connection was good: then the waits start at the shortest again. */
static bool was_good(const struct bel_redis_link *link, struct bel_mono now)
{
    uint64_t lasted_ns = now.ns > link->ready_since.ns ? now.ns - link->ready_since.ns : 0;
    return link->exchange.replies_count > 0 ||
           lasted_ns >= (uint64_t)BEL_REDIS_RETRY_MS_MAX * NS_PER_MS;
}

/* Begins to connect to the next address. Returns 0, or BEL_EIO if there is none. */
static int connect_next(struct bel_redis_link *link, struct bel_mono now)
{
    struct bel_why why = {{0}, NULL};
    while (bel__dial_left(&link->dial) > 0) {
        uint64_t left_ns = link->attempt_end.ns > now.ns ? link->attempt_end.ns - now.ns : 0;
        uint64_t share_ns = left_ns / bel__dial_left(&link->dial);
        int err = bel__dial_next(&link->dial, &link->stream, &why);
        if (err == 0) {
            err = bel__poller_watch(&link->source, link->stream.fd, EPOLLOUT);
            if (err) (void)bel__why_say(&why, err, "cannot watch a socket");
        }
        if (err == 0) {
            link->state = BEL_REDIS_LINK_CONNECTING;
            link->deadline.ns = now.ns + share_ns;
            return 0;
        }
        close_stream(link);
        remember(link, why.text);
    }
    return BEL_EIO;
}

/* Gives up the connection or the attempt. Tries the next address unless the link was ready. */
static void fail(struct bel_redis_link *link, const char *reason, struct bel_mono now)
{
    bool was_ready = link->state == BEL_REDIS_LINK_READY;
    remember(link, reason);
    struct bel_why why = link->why; /* the next address may fail at once, for another reason */
    if (was_ready && was_good(link, now)) link->failures = 0;
    close_stream(link);
    link->source.is_pending = false;
    link->is_dropping = false;
    if (was_ready || connect_next(link, now) != 0) begin_wait(link, now);
    bel__exchange_break(&link->exchange, why.text);
    if (was_ready && link->options.changed != NULL) {
        link->options.changed(link, link->options.owner);
    }
}

/* --- going on --- */

/* Begins an attempt: the names may have other addresses than before. */
static void begin(struct bel_redis_link *link, struct bel_mono now)
{
    struct bel_why why = {{0}, NULL};
    link->attempt_end = after(now, link->options.connect_ms);
    int err = bel__dial_begin(&link->dial, &why);
    if (err == BEL_EBUSY) {
        link->state = BEL_REDIS_LINK_RESOLVING;
        link->deadline.ns = BEL_NEVER; /* a lookup has an end of its own */
        err = bel__poller_watch(&link->source, bel__dial_descriptor(&link->dial), EPOLLIN);
        if (err == 0) return;
        (void)bel__why_say(&why, err, "cannot watch a lookup");
    }
    if (err == 0 && connect_next(link, now) == 0) return;
    if (err) fail(link, why.text, now);
    if (err == 0) begin_wait(link, now);
}

static void end_lookup(struct bel_redis_link *link, struct bel_mono now)
{
    struct bel_why why = {{0}, NULL};
    (void)!bel__poller_watch(&link->source, -1, 0); /* before the lookup closes its descriptor */
    int err = bel__dial_resolve(&link->dial, &why);
    if (err == BEL_EBUSY) {
        err = bel__poller_watch(&link->source, bel__dial_descriptor(&link->dial), EPOLLIN);
        if (err == 0) return;
        (void)bel__why_say(&why, err, "cannot watch a lookup");
    }
    link->attempt_end = after(now, link->options.connect_ms);
    if (err) {
        fail(link, why.text, now);
    } else if (connect_next(link, now) != 0) {
        begin_wait(link, now);
    }
}

/* The greeting has ended: the owner sends his first calls, then the others follow. */
static void become_ready(struct bel_redis_link *link, struct bel_mono now)
{
    link->state = BEL_REDIS_LINK_READY;
    link->deadline.ns = BEL_NEVER;
    link->ready_since = now;
    link->connections++;
    link->exchange.replies_count = 0; /* the greeting's own do not count */
    if (!link->greeting.server.is_resp3) bel__exchange_refuse_pushes(&link->exchange);
    if (link->options.changed == NULL) return;
    link->is_opening = true;
    link->options.changed(link, link->options.owner);
    link->is_opening = false;
}

/* Sends the next command of the greeting, or ends it. */
static void greet(struct bel_redis_link *link, struct bel_mono now)
{
    struct bel_redis_call *call = bel__greeting_next(&link->greeting);
    if (call != NULL) {
        call->deadline = link->deadline;
        bel__exchange_add(&link->exchange, call);
    } else if (link->greeting.step == BEL_GREETING_FAILED) {
        fail(link, link->greeting.why.text, now);
    } else if (link->greeting.step == BEL_GREETING_READY) {
        become_ready(link, now);
    }
}

static int watch_stream(struct bel_redis_link *link, uint32_t events, struct bel_why *why)
{
    int err = bel__poller_watch(&link->source, link->stream.fd, events);
    return err ? bel__why_say(why, err, "cannot watch a socket") : 0;
}

static void begin_greeting(struct bel_redis_link *link, struct bel_mono now)
{
    struct bel_why why = {{0}, NULL};
    if (watch_stream(link, EPOLLIN, &why) != 0) {
        fail(link, why.text, now);
        return;
    }
    link->state = BEL_REDIS_LINK_GREETING;
    bel__greeting_reset(&link->greeting);
    greet(link, now);
}

static void shake_hands(struct bel_redis_link *link, struct bel_mono now)
{
    struct bel_why why = {{0}, NULL};
    int err = bel__stream_handshake(&link->stream, link->dial.host, &why);
    if (err == 0) {
        begin_greeting(link, now);
        return;
    }
    if (err == BEL_EBUSY) {
        bool wants_write = bel__stream_wants_write(&link->stream);
        err = watch_stream(link, wants_write ? EPOLLOUT : EPOLLIN, &why);
    }
    if (err) fail(link, why.text, now);
}

static void end_connecting(struct bel_redis_link *link, struct bel_mono now)
{
    struct bel_why why = {{0}, NULL};
    const struct bel_tls *tls = link->options.tls;
    int err = bel__stream_connected(&link->stream, &why);
    if (err == 0 && tls != NULL) {
        err = bel__stream_secure(&link->stream, tls, link->dial.host, &why);
    }
    if (err) {
        fail(link, why.text, now);
    } else if (tls != NULL) {
        link->state = BEL_REDIS_LINK_SECURING;
        link->silence_end = after(now, SILENCE_MS);
        shake_hands(link, now);
    } else {
        begin_greeting(link, now);
    }
}

/* The connection has failed. A server that expects TLS hangs up, or replies with an alert, before
 * it has replied to anything. */
static void fail_exchange(struct bel_redis_link *link, const char *reason, struct bel_mono now)
{
    bool may_want_tls = link->state == BEL_REDIS_LINK_GREETING && link->options.tls == NULL &&
                        link->dial.path == NULL && link->greeting.step == BEL_GREETING_HELLO;
    struct bel_why why = {{0}, NULL};
    (void)bel__why_say(&why, 0, "%s%s", reason,
                       may_want_tls ? "; if this port expects TLS, write rediss instead of redis"
                                    : "");
    fail(link, why.text, now);
}

static void exchange(struct bel_redis_link *link, struct bel_mono now)
{
    struct bel_why why = {{0}, NULL};
    int err = bel__exchange_read(&link->exchange, &link->stream, &why);
    link->source.is_pending = link->exchange.is_pending;
    if (link->state == BEL_REDIS_LINK_GREETING && link->greeting.step == BEL_GREETING_FAILED) {
        fail(link, link->greeting.why.text, now); /* even if the server has closed since */
    } else if (err) {
        fail_exchange(link, why.text, now);
    } else if (link->state == BEL_REDIS_LINK_GREETING) {
        greet(link, now);
    }
}

/* --- turns --- */

static void receive(struct bel_poll_source *source, struct bel_mono now)
{
    struct bel_redis_link *link = BEL_CONTAINER_OF(source, struct bel_redis_link, source);
    switch (link->state) {
    case BEL_REDIS_LINK_RESOLVING:
        end_lookup(link, now);
        break;
    case BEL_REDIS_LINK_CONNECTING:
        end_connecting(link, now);
        break;
    case BEL_REDIS_LINK_SECURING:
        shake_hands(link, now);
        break;
    case BEL_REDIS_LINK_GREETING:
    case BEL_REDIS_LINK_READY:
        exchange(link, now);
        break;
    case BEL_REDIS_LINK_IDLE:
    case BEL_REDIS_LINK_WAITING:
        break; /* the event is of a descriptor that was closed since */
    }
}

static bool has_connection(const struct bel_redis_link *link)
{
    return link->state == BEL_REDIS_LINK_GREETING || link->state == BEL_REDIS_LINK_READY;
}

static bool is_connecting(const struct bel_redis_link *link)
{
    return link->state == BEL_REDIS_LINK_CONNECTING || link->state == BEL_REDIS_LINK_SECURING;
}

/* Sends what is queued, and waits for more room if not all of it can be sent. */
static void send_queued(struct bel_redis_link *link, struct bel_mono now)
{
    struct bel_why why = {{0}, NULL};
    bool is_open = link->state == BEL_REDIS_LINK_READY;
    int err = bel__exchange_write(&link->exchange, &link->stream, is_open, &why);
    uint32_t events = err == BEL_EBUSY ? EPOLLIN | EPOLLOUT : EPOLLIN;
    if (err == 0 || err == BEL_EBUSY) err = watch_stream(link, events, &why);
    if (err) fail_exchange(link, why.text, now);
}

/* A server without TLS may wait for the end of what it takes for a command. The message is there
 * before the attempt ends, because the owner may not wait that long. */
static void check_handshake(struct bel_redis_link *link, struct bel_mono now)
{
    if (now.ns >= link->deadline.ns) {
        fail(link, NO_HANDSHAKE, now);
    } else if (now.ns >= link->silence_end.ns) {
        link->silence_end.ns = BEL_NEVER;
        if (link->why.text[0] == 0) remember(link, NO_HANDSHAKE);
    }
}

/* Does what the time demands. */
static void check_time(struct bel_redis_link *link, struct bel_mono now)
{
    bool is_late = bel__exchange_expire(&link->exchange, now);
    bool is_due = now.ns >= link->deadline.ns;
    switch (link->state) {
    case BEL_REDIS_LINK_IDLE:
        if (link->is_wanted) begin(link, now);
        break;
    case BEL_REDIS_LINK_RESOLVING:
        break;
    case BEL_REDIS_LINK_CONNECTING:
        if (is_due) fail(link, "cannot connect in time", now);
        break;
    case BEL_REDIS_LINK_SECURING:
        check_handshake(link, now);
        break;
    case BEL_REDIS_LINK_GREETING:
        if (is_due) fail(link, "no reply to the greeting in time", now);
        break;
    case BEL_REDIS_LINK_READY:
        if (is_late) fail(link, "no reply in time", now);
        break;
    case BEL_REDIS_LINK_WAITING:
        if (is_due) begin(link, now);
        break;
    }
}

/* Gives up the connection because the owner wants that. To another server there is no wait. */
static void drop(struct bel_redis_link *link, struct bel_mono now)
{
    bool is_moved = link->is_moved;
    link->is_dropping = link->is_moved = false;
    if (is_moved) link->failures = 0;
    if (has_connection(link) || (is_moved && is_connecting(link))) {
        fail(link, link->drop_why.text, now);
    }
    if (is_moved && link->state == BEL_REDIS_LINK_WAITING) link->deadline = now;
}

static struct bel_mono flush(struct bel_poll_source *source, struct bel_mono now)
{
    struct bel_redis_link *link = BEL_CONTAINER_OF(source, struct bel_redis_link, source);
    if (link->is_dropping || link->is_moved) drop(link, now);
    check_time(link, now);
    if (has_connection(link)) send_queued(link, now);

    bool has_time = link->state != BEL_REDIS_LINK_IDLE && link->state != BEL_REDIS_LINK_READY;
    struct bel_mono next = link->exchange.earliest;
    if (has_time && link->deadline.ns < next.ns) next = link->deadline;
    if (link->state == BEL_REDIS_LINK_SECURING && link->silence_end.ns < next.ns) {
        next = link->silence_end;
    }
    if (link->is_dropping || link->is_moved) next = now;
    return next;
}

/* --- calls --- */

void bel__redis_link_connect(struct bel_redis_link *link)
{
    link->is_wanted = true;
    link->source.poller->is_touched = true;
}

int bel__redis_link_send(struct bel_redis_link *link, struct bel_redis_call *call,
                         struct bel_mono now)
{
    assert(call->done != NULL && call->command.bytes > 0);
    assert(!bel__link_is_linked(&call->link));
    if (link->is_closing) return BEL_ECLOSED;
    bool is_resp2 = link->state == BEL_REDIS_LINK_READY && !link->greeting.server.is_resp3;
    if (is_resp2 && call->confirmed_by != NULL) return BEL_EUNSUPPORTED;
    if (!bel__exchange_has_room(&link->exchange, call->command.bytes)) return BEL_EFULL;
    link->is_wanted = true;
    link->source.poller->is_touched = true;
    call->is_bound = link->is_opening;
    call->deadline = after(now, call->timeout_ms != 0 ? call->timeout_ms : link->options.call_ms);
    bel__exchange_add(&link->exchange, call);
    return 0;
}

bool bel__redis_link_withdraw(struct bel_redis_link *link, struct bel_redis_call *call)
{
    return bel__exchange_withdraw(&link->exchange, call);
}

void bel__redis_link_drop(struct bel_redis_link *link, const char *why)
{
    (void)bel__why_say(&link->drop_why, 0, "%s", why);
    link->is_dropping = true;
    link->source.poller->is_touched = true;
}

int bel__redis_link_move(struct bel_redis_link *link, const char *host, uint16_t port)
{
    struct bel_dial dial;
    int err = bel__dial_init(&dial, host, port, NULL);
    if (err) return err;
    if (link->state == BEL_REDIS_LINK_RESOLVING) {
        (void)!bel__poller_watch(&link->source, -1, 0); /* before the lookup is dropped */
        link->state = BEL_REDIS_LINK_WAITING;
    }
    bel__dial_finish(&link->dial);
    link->dial = dial;
    link->is_moved = true;
    link->source.poller->is_touched = true;
    (void)bel__why_say(&link->drop_why, 0, "the link has moved to this server");
    return 0;
}

/* --- looking --- */

enum bel_redis_link_state bel__redis_link_state(const struct bel_redis_link *link)
{
    return link->state;
}

const char *bel__redis_link_why(const struct bel_redis_link *link)
{
    return link->why.text;
}

const struct bel_redis_server *bel__redis_link_server(const struct bel_redis_link *link)
{
    return &link->greeting.server;
}

uint64_t bel__redis_link_connections(const struct bel_redis_link *link)
{
    return link->connections;
}

uint32_t bel__redis_link_calls(const struct bel_redis_link *link)
{
    return link->exchange.calls_count;
}

bool bel__redis_link_valid(const struct bel_redis_link *link)
{
    bool has_stream = link->stream.fd >= 0;
    bool needs_stream = has_connection(link) || is_connecting(link);
    return has_stream == needs_stream && bel__exchange_valid(&link->exchange);
}
