/* SPDX-License-Identifier: MIT */
#ifndef BEL_TESTS_REDIS_FAKES_H
#define BEL_TESTS_REDIS_FAKES_H

/*
 * Servers of a store and fake servers A, B, ... on the loopback, in the thread of the test. Each of
 * them answers HELLO, CLUSTER SLOTS, SSUBSCRIBE, ROLE and what Sentinels are asked as told, and
 * everything else with the replies that the test has prepared. The time is a variable. The log has,
 * in order, what servers were sent and how calls have ended.
 */

#include "redis/servers/servers.h"
#include "redis/servers/slot.h"

#include "core/entropy.h"
#include "core/units.h"

#include "../check.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    FAKES = 5,
    PEERS_MAX = 16, /* connections of a fake */
    TEXT_BYTES = 4096,
    PATIENCE_S = 120,
    TURNS_MAX = 100000,
    REST_MS = 3, /* without any event: what was sent has arrived, most likely */
    LOOKS_MAX = 2000,
};

struct fake {
    size_t peers_count;
    const char *role; /* "master" or "replica" */
    size_t primary;   /* as a Sentinel says */
    int listener;
    unsigned replicas; /* 0 or 1, as ROLE says */
    int peers[PEERS_MAX];
    uint16_t port;
    bool is_ignorant; /* a Sentinel that knows no primary */
    char input[PEERS_MAX][TEXT_BYTES];
    char replies[TEXT_BYTES]; /* to other commands; each ends in '|'. Empty: +OK */
};

static struct fake fakes[FAKES];
static char map[TEXT_BYTES]; /* the reply to CLUSTER SLOTS; empty: none */
static char text_log[TEXT_BYTES];
static struct bel_servers *servers;
static struct bel_entropy_seeded entropy;
static struct bel_mono now, next;
static unsigned maps; /* that were asked for */

__attribute__((format(printf, 1, 2))) static inline void note(const char *format, ...)
{
    size_t used = strlen(text_log);
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text_log + used, sizeof text_log - used, format, args);
    va_end(args);
}

/* --- Fake servers --- */

/* Listens on a port, or on a free one if it is 0. */
static inline void listen_on(struct fake *fake, uint16_t port)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(port),
                                  .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    socklen_t bytes = sizeof address;
    int yes = 1;
    fake->listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    CHECK(setsockopt(fake->listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0);
    CHECK(bind(fake->listener, (const struct sockaddr *)&address, sizeof address) == 0);
    CHECK(listen(fake->listener, PEERS_MAX) == 0);
    CHECK(getsockname(fake->listener, (struct sockaddr *)&address, &bytes) == 0);
    fake->port = ntohs(address.sin_port);
}

static inline void open_fake(struct fake *fake)
{
    *fake = (struct fake){.role = "master"};
    listen_on(fake, 0);
}

static inline void hang_up(struct fake *fake)
{
    for (size_t i = 0; i < fake->peers_count; i++) {
        if (fake->peers[i] >= 0) (void)close(fake->peers[i]);
    }
    fake->peers_count = 0;
}

/* No connection is accepted any more. */
static inline void die(struct fake *fake)
{
    hang_up(fake);
    if (fake->listener >= 0) (void)close(fake->listener);
    fake->listener = -1;
}

static inline void say(int peer, const char *text)
{
    CHECK(send(peer, text, strlen(text), MSG_NOSIGNAL) == (ssize_t)strlen(text));
}

/* Splits a command, which is complete, into words. Returns where the next one begins; NULL: not
 * complete. */
static inline char *split(char *text, char words[4][64])
{
    char *at = text;
    unsigned long count = at[0] == '*' ? strtoul(at + 1, &at, 10) : 0;
    if (count == 0) return NULL;
    memset(words, 0, (size_t)4 * 64);
    for (unsigned long i = 0; i < count; i++) {
        if (strncmp(at, "\r\n$", 3) != 0) return NULL;
        unsigned long bytes = strtoul(at + 3, &at, 10);
        if (strlen(at) < 2 + bytes + 2) return NULL;
        if (i < 4) (void)snprintf(words[i], 64, "%.*s", (int)bytes, at + 2);
        at += 2 + bytes;
    }
    return strncmp(at, "\r\n", 2) == 0 ? at + 2 : NULL;
}

static inline void reply_scripted(struct fake *fake, int peer, const char *command)
{
    char one[TEXT_BYTES];
    note("%c:%s ", (char)('A' + (fake - fakes)), command);
    char *end = strchr(fake->replies, '|');
    if (end == NULL) {
        say(peer, "+OK\r\n");
        return;
    }
    (void)snprintf(one, sizeof one, "%.*s\r\n", (int)(end - fake->replies), fake->replies);
    memmove(fake->replies, end + 1, strlen(end + 1) + 1);
    if (one[0] != '\r') say(peer, one); /* empty: no reply */
}

static inline void handle(struct fake *fake, int peer, char words[4][64])
{
    char text[256];
    if (strcmp(words[0], "HELLO") == 0) {
        (void)snprintf(text, sizeof text, "%%1\r\n$4\r\nrole\r\n$%zu\r\n%s\r\n", strlen(fake->role),
                       fake->role);
        say(peer, text);
    } else if (strcmp(words[0], "CLUSTER") == 0) {
        maps++;
        if (map[0] != 0) say(peer, map);
    } else if (strcmp(words[0], "ASKING") == 0) {
        note("%c:ASKING ", (char)('A' + (fake - fakes)));
        say(peer, "+OK\r\n");
    } else if (strcmp(words[0], "SSUBSCRIBE") == 0) {
        note("%c:SSUBSCRIBE:%s ", (char)('A' + (fake - fakes)), words[1]);
        (void)snprintf(text, sizeof text, ">3\r\n$10\r\nssubscribe\r\n$%zu\r\n%s\r\n:1\r\n",
                       strlen(words[1]), words[1]);
        say(peer, text);
    } else if (strcmp(words[0], "SUBSCRIBE") == 0) {
        say(peer, ">3\r\n$9\r\nsubscribe\r\n$14\r\n+switch-master\r\n:1\r\n");
    } else if (strcmp(words[0], "SENTINEL") == 0) {
        (void)snprintf(text, sizeof text, "*2\r\n$9\r\n127.0.0.1\r\n$5\r\n%05u\r\n",
                       fakes[fake->primary].port);
        say(peer, fake->is_ignorant ? "_\r\n" : text);
    } else if (strcmp(words[0], "ROLE") == 0) {
        say(peer, strcmp(fake->role, "master") == 0
                      ? fake->replicas == 0 ? "*3\r\n$6\r\nmaster\r\n:1\r\n*0\r\n"
                                            : "*3\r\n$6\r\nmaster\r\n:1\r\n*1\r\n+r\r\n"
                      : "*2\r\n$5\r\nslave\r\n$1\r\nx\r\n");
    } else {
        reply_scripted(fake, peer, words[0]);
    }
}

static inline void serve_peer(struct fake *fake, size_t index)
{
    char words[4][64], *input = fake->input[index];
    size_t used = strlen(input);
    ssize_t got = recv(fake->peers[index], input + used, TEXT_BYTES - 1 - used, MSG_DONTWAIT);
    if (got == 0) { /* the other side has closed: the place stays empty */
        (void)close(fake->peers[index]);
        fake->peers[index] = -1;
    }
    if (got <= 0) return;
    input[used + (size_t)got] = 0;
    for (char *end; (end = split(input, words)) != NULL;) {
        memmove(input, end, strlen(end) + 1);
        handle(fake, fake->peers[index], words);
    }
}

static inline void serve(void)
{
    for (size_t i = 0; i < FAKES; i++) {
        struct fake *fake = &fakes[i];
        int fd = fake->listener < 0 ? -1 : accept4(fake->listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd >= 0) {
            int yes = 1; /* replies leave at once */
            CHECK(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes) == 0);
            CHECK(fake->peers_count < PEERS_MAX);
            fake->input[fake->peers_count][0] = 0;
            fake->peers[fake->peers_count++] = fd;
        }
        for (size_t k = 0; k < fake->peers_count; k++) {
            if (fake->peers[k] >= 0) serve_peer(fake, k);
        }
    }
}

/* --- The test's side --- */

static inline void turn(void)
{
    bel__servers_receive(servers, now);
    serve();
    next = bel__servers_flush(servers, now);
}

static inline bool is_at_rest(void)
{
    struct pollfd fds[1 + FAKES * PEERS_MAX] = {
        {.fd = bel__servers_descriptor(servers), .events = POLLIN}};
    nfds_t count = 1;
    if (next.ns <= now.ns) return false;
    for (size_t i = 0; i < FAKES; i++) {
        for (size_t k = 0; k < fakes[i].peers_count; k++) {
            fds[count++] = (struct pollfd){.fd = fakes[i].peers[k], .events = POLLIN};
        }
    }
    return poll(fds, count, REST_MS) == 0;
}

/* Takes turns until nothing is left to do at this time. */
static inline void settle(void)
{
    unsigned turns = 0;
    do {
        turn();
        CHECK(++turns < TURNS_MAX);
    } while (!is_at_rest());
}

static inline void advance(uint64_t ms)
{
    now.ns += ms * NS_PER_MS;
    settle();
}

/* Takes turns until the log is what is wanted. */
static inline void expect(const char *want)
{
    for (unsigned i = 0; i < LOOKS_MAX && strcmp(text_log, want) != 0; i++) {
        if (strncmp(text_log, want, strlen(text_log)) != 0) break;
        settle();
    }
    if (strcmp(text_log, want) != 0) fprintf(stderr, "got  '%s'\nwant '%s'\n", text_log, want);
    CHECK(strcmp(text_log, want) == 0);
    text_log[0] = 0;
}

/* Lets the time pass in small steps until the log has a text. */
static inline void await(const char *text)
{
    for (unsigned i = 0; strstr(text_log, text) == NULL; i++) {
        CHECK(i < 10000);
        advance(10);
    }
}

struct sent {
    struct bel_server_call call;
    char name[16], command[64], why[BEL_WHY_BYTES];
    int err;
};

static inline void done(struct bel_server_call *call, const struct bel_redis_reply *reply)
{
    struct sent *sent = BEL_CONTAINER_OF(call, struct sent, call);
    CHECK(reply->is_last);
    sent->err = reply->err;
    (void)snprintf(sent->why, sizeof sent->why, "%s", reply->why);
    if (reply->err != 0) {
        note("%s!%d ", sent->name, reply->err);
    } else {
        struct bel_view text = reply->value->text;
        note("%s=%.*s ", sent->name, (int)text.bytes, (const char *)text.data);
    }
}

static inline void prepare_call(struct sent *sent, const char *name, uint16_t slot)
{
    *sent = (struct sent){.call = {.slot = slot, .done = done, .timeout_ms = 1000}};
    (void)snprintf(sent->name, sizeof sent->name, "%s", name);
    int bytes =
        snprintf(sent->command, sizeof sent->command, "*1\r\n$%zu\r\n%s\r\n", strlen(name), name);
    sent->call.command = (struct bel_view){sent->command, (size_t)bytes};
}

static inline void send_call(struct sent *sent, const char *name, uint16_t slot)
{
    prepare_call(sent, name, slot);
    CHECK(bel__servers_send(servers, &sent->call, now) == 0);
}

static inline void heard(void *owner, struct bel_view channel, struct bel_view text)
{
    CHECK(owner == &fakes);
    if (channel.bytes == 0) return;
    note("heard:%.*s:%.*s ", (int)channel.bytes, (const char *)channel.data, (int)text.bytes,
         text.bytes > 0 ? (const char *)text.data : "");
}

/* Opens the fakes, and servers with the options. */
static inline void open_fakes(void)
{
    (void)alarm(PATIENCE_S);
    bel__entropy_seed(&entropy, 1);
    now.ns = 1000 * (uint64_t)NS_PER_S;
    for (size_t i = 0; i < FAKES; i++) {
        open_fake(&fakes[i]);
    }
    maps = 0;
    text_log[0] = 0;
}

static inline void open_with(const struct bel_servers_options *options)
{
    struct bel_servers_owner owner = {.owner = &fakes, .entropy = &entropy.entropy, .heard = heard};
    CHECK(bel__servers_open(options, &owner, &servers) == 0);
}

static inline void end(void)
{
    bel__servers_close(servers);
    for (size_t i = 0; i < FAKES; i++) {
        die(&fakes[i]);
    }
}

#endif
