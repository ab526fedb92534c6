/* SPDX-License-Identifier: MIT */
#ifndef BEL_TESTS_REDIS_RIG_H
#define BEL_TESTS_REDIS_RIG_H

/*
 * A link and a fake server at the other end of a Unix socket, both in the thread of the test. The
 * time is a variable. Sockets of this kind deliver at once, so nothing waits: settle() takes turns
 * until there is nothing left to do at this time.
 */

#include "redis/link/command.h"
#include "redis/link/link.h"

#include "core/entropy.h"
#include "core/units.h"

#include "../check.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    RIG_TURNS_MAX = 100000, /* more means that a link does not come to rest */
    RIG_LOG_BYTES = 4096,
    RIG_PATIENCE_S = 120,
};

#define RIG_HELLO    "*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n"
#define RIG_HELLO_OK "%2\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$6\r\n7.0.15\r\n"

static struct {
    struct bel_poller poller;
    struct bel_entropy_seeded entropy;
    struct bel_redis_link *link;
    struct bel_mono now, next;
    char path[64];
    int listener, server;    /* -1: none */
    char log[RIG_LOG_BYTES]; /* what callbacks have reported, in words */
    void (*on_changed)(void);
} rig;

/* A call whose command and end the log names. */
struct rig_call {
    struct bel_redis_call call;
    char name[16];
    char command[128];
    bool is_ended;
    int err;
    char why[BEL_WHY_BYTES];
};

__attribute__((format(printf, 1, 2))) static inline void rig_note(const char *format, ...)
{
    size_t used = strlen(rig.log);
    va_list args;
    va_start(args, format);
    (void)vsnprintf(rig.log + used, sizeof rig.log - used, format, args);
    va_end(args);
}

/* Prints a value as text: scalars with a letter, items in brackets. */
static inline void rig_print(const struct bel_value *value)
{
    static const char letters[] = "N+-:#,$[[";
    rig_note("%c", letters[value->type]);
    if (value->type == BEL_VALUE_NUMBER || value->type == BEL_VALUE_BOOLEAN) {
        rig_note("%" PRId64, value->number);
    } else if (value->text.bytes > 0) {
        rig_note("%.*s", (int)value->text.bytes, (const char *)value->text.data);
    }
    if (value->type != BEL_VALUE_LIST && value->type != BEL_VALUE_MAP) return;
    for (size_t i = 0; i < value->count; i++) {
        const struct bel_value *item = &value->items[i];
        rig_note(i > 0 ? " %.*s" : "%.*s", (int)item->text.bytes, (const char *)item->text.data);
    }
    rig_note("]");
}

/* Checks and clears the log. */
static inline void rig_expect(const char *want)
{
    if (strcmp(rig.log, want) != 0) fprintf(stderr, "got  '%s'\nwant '%s'\n", rig.log, want);
    CHECK(strcmp(rig.log, want) == 0);
    rig.log[0] = 0;
}

static inline void rig_done(struct bel_redis_call *call, const struct bel_redis_reply *reply)
{
    struct rig_call *mine = BEL_CONTAINER_OF(call, struct rig_call, call);
    CHECK((reply->err == 0) == (reply->value != NULL));
    CHECK(reply->err == 0 || reply->why[0] != 0);
    CHECK(!mine->is_ended);
    rig_note("%s", mine->name);
    if (call->replies > 1) rig_note("/%u", (unsigned)reply->index);
    if (reply->err == 0) rig_print(reply->value);
    if (reply->err != 0) rig_note("!%d", reply->err);
    rig_note(" ");
    mine->is_ended = reply->is_last;
    mine->err = reply->err;
    (void)snprintf(mine->why, sizeof mine->why, "%s", reply->why);
}

static inline void rig_changed(struct bel_redis_link *link, void *owner)
{
    CHECK(owner == &rig && link == rig.link);
    rig_note(bel__redis_link_state(link) == BEL_REDIS_LINK_READY ? "ready " : "broken ");
    if (rig.on_changed != NULL) rig.on_changed();
}

static inline void rig_pushed(struct bel_redis_link *link, void *owner,
                              const struct bel_value *message)
{
    CHECK(owner == &rig && link == rig.link);
    CHECK(message->count > 0);
    rig_note("push");
    rig_print(message);
    rig_note(" ");
}

/* Prepares a call of one command with one argument, its name. */
static inline void rig_prepare(struct rig_call *call, const char *name)
{
    *call = (struct rig_call){.call = {.done = rig_done}};
    (void)snprintf(call->name, sizeof call->name, "%s", name);
    int bytes =
        snprintf(call->command, sizeof call->command, "*1\r\n$%zu\r\n%s\r\n", strlen(name), name);
    call->call.command = (struct bel_view){call->command, (size_t)bytes};
}

static inline int rig_try_send(struct rig_call *call)
{
    return bel__redis_link_send(rig.link, &call->call, rig.now);
}

static inline void rig_send(struct rig_call *call, const char *name)
{
    rig_prepare(call, name);
    CHECK(rig_try_send(call) == 0);
}

static inline bool rig_is_readable(int fd)
{
    struct pollfd poller = {.fd = fd, .events = POLLIN};
    return poll(&poller, 1, 0) == 1;
}

static inline void rig_turn(void)
{
    rig.next = bel__poller_turn(&rig.poller, rig.now);
    if (rig.link != NULL) CHECK(bel__redis_link_valid(rig.link));
}

static inline void rig_settle(void)
{
    unsigned turns = 0;
    do {
        rig_turn();
        CHECK(++turns < RIG_TURNS_MAX);
    } while (rig.next.ns <= rig.now.ns || rig_is_readable(rig.poller.descriptor));
}

static inline void rig_advance(uint64_t ms)
{
    rig.now.ns += ms * NS_PER_MS;
    rig_settle();
}

/* --- the server --- */

static inline void rig_listen(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    rig.listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    CHECK(rig.listener >= 0);
    memcpy(address.sun_path, rig.path, strlen(rig.path) + 1);
    (void)unlink(rig.path);
    CHECK(bind(rig.listener, (const struct sockaddr *)&address, sizeof address) == 0);
    CHECK(listen(rig.listener, 16) == 0);
}

static inline void rig_unlisten(void)
{
    if (rig.listener >= 0) (void)close(rig.listener);
    rig.listener = -1;
    (void)unlink(rig.path);
}

static inline void rig_hang_up(void)
{
    if (rig.server >= 0) (void)close(rig.server);
    rig.server = -1;
}

/* Accepts a connection, which must be there. */
static inline void rig_accept(void)
{
    rig_hang_up();
    rig.server = accept4(rig.listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    CHECK(rig.server >= 0);
}

static inline void rig_say_bytes(const void *data, size_t bytes)
{
    CHECK(send(rig.server, data, bytes, MSG_NOSIGNAL) == (ssize_t)bytes);
}

/* The link sends what it has, the server says something, and the link takes it in. */
static inline void rig_say(const char *text)
{
    rig_settle();
    rig_say_bytes(text, strlen(text));
    rig_settle();
}

/* Checks that the server has heard exactly this, at once. */
static inline void rig_hear(const char *want)
{
    char heard[4096];
    ssize_t got = recv(rig.server, heard, sizeof heard - 1, 0);
    CHECK(got >= 0 || errno == EAGAIN);
    heard[got < 0 ? 0 : got] = 0;
    if (strcmp(heard, want) != 0) fprintf(stderr, "heard '%s'\nwant  '%s'\n", heard, want);
    CHECK(strcmp(heard, want) == 0);
}

/* Accepts a connection and greets it, up to the state ready. */
static inline void rig_greet(void)
{
    rig_accept();
    rig_settle();
    rig_hear(RIG_HELLO);
    rig_say(RIG_HELLO_OK);
    CHECK(bel__redis_link_state(rig.link) == BEL_REDIS_LINK_READY);
}

/* Lets the time pass until the link has made its next attempt to connect. */
static inline void rig_reconnect(void)
{
    CHECK(bel__redis_link_state(rig.link) == BEL_REDIS_LINK_WAITING);
    while (bel__redis_link_state(rig.link) == BEL_REDIS_LINK_WAITING) {
        rig_advance(1);
    }
}

/* --- life --- */

/* Opens a link with options, of which path and callbacks are set here. */
static inline void rig_open(struct bel_redis_link_options options)
{
    (void)alarm(RIG_PATIENCE_S);
    memset(&rig, 0, sizeof rig);
    rig.now.ns = 1000 * (uint64_t)NS_PER_S;
    rig.listener = rig.server = -1;
    (void)snprintf(rig.path, sizeof rig.path, "/tmp/belfry-redis-%d", (int)getpid());
    bel__entropy_seed(&rig.entropy, 1);
    CHECK(bel__poller_open(&rig.poller) == 0);
    options.poller = &rig.poller;
    options.entropy = &rig.entropy.entropy;
    if (options.host == NULL) options.path = rig.path;
    options.owner = &rig;
    options.changed = rig_changed;
    options.pushed = rig_pushed;
    rig_listen();
    CHECK(bel__redis_link_open(&options, &rig.link) == 0);
}

/* Opens a link and greets it. */
static inline void rig_start(void)
{
    rig_open((struct bel_redis_link_options){0});
    bel__redis_link_connect(rig.link);
    rig_settle();
    rig_greet();
    rig_expect("ready ");
}

static inline void rig_close_link(void)
{
    bel__redis_link_close(rig.link);
    rig.link = NULL;
}

static inline void rig_end(void)
{
    if (rig.link != NULL) rig_close_link();
    bel__poller_close(&rig.poller);
    rig_hang_up();
    rig_unlisten();
}

#endif
