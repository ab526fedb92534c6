/* SPDX-License-Identifier: MIT */
#ifndef BEL_TESTS_CREW_SERVER_H
#define BEL_TESTS_CREW_SERVER_H

/*
 * crew_server - a thread that simulates the server of a crew: it delivers what a case has queued,
 * lets claims wait if there is nothing, and records all other commands. A case waits for the
 * commands that it expects; an alarm ends a case that waits too long.
 */

#include "core/view.h"
#include "resp/reader.h"

#include "../check.h"

#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    PATIENCE_S = 60,
    CONNECTIONS = 8,
    LINES = 200,
    LINE_BYTES = 300,
    INPUT_BYTES = 64 << 10,
};

struct connection {
    int fd;         /* -1: not connected */
    bool is_closed; /* the other side has closed, not noticed yet */
    size_t bytes;
    unsigned claims; /* deliveries that a claim waits for; 0: no claim waits */
    char lease[16];  /* that the claim gave, or the topic's */
    char input[INPUT_BYTES];
};

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    pthread_t thread;
    char folder[64], path[96];
    int listener, pipe[2];
    struct connection connections[CONNECTIONS];
    unsigned queued, numbered; /* deliveries queued, and made */
    const char *extend_reply, *ack_reply, *claim_start, *claim_end, *topic_lease;
    bool is_old; /* an old server: reports neither leases, correlations nor results */
    bool drops, ends;
    bool is_mute; /* does not reply, and does not notice that others close */
    char lines[LINES][LINE_BYTES];
    unsigned lines_count;
} server = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void answer(struct connection *connection, const char *text)
{
    if (!server.is_mute) (void)send(connection->fd, text, strlen(text), MSG_NOSIGNAL);
}

/* Answers a waiting claim, if there is something to deliver. */
static void deliver(struct connection *connection)
{
    unsigned count = server.queued < connection->claims ? server.queued : connection->claims;
    char text[LINE_BYTES];
    if (count == 0) return;
    (void)snprintf(text, sizeof text, "*%u\r\n", count);
    answer(connection, text);
    for (unsigned i = 0; i < count; i++) {
        unsigned number = ++server.numbered;
        int digits = snprintf(NULL, 0, "%u", number);
        (void)snprintf(text, sizeof text,
                       "*%d\r\n$%d\r\nt%u\r\n$4\r\nmail\r\n$%d\r\ni%u\r\n$5\r\na\r\nbc\r\n:%u\r\n"
                       ":1\r\n*2\r\n$5\r\ncolor\r\n$3\r\nred\r\n",
                       server.is_old ? 7 : 10, digits + 1, number, digits + 1, number,
                       1000 + number);
        answer(connection, text);
        (void)snprintf(text, sizeof text,
                       ":%s\r\n$5\r\norder\r\n*4\r\n$1\r\na\r\n$-1\r\n$1\r\nb\r\n$3\r\n\r\n1\r\n",
                       connection->lease);
        if (!server.is_old) answer(connection, text);
    }
    server.queued -= count;
    connection->claims = 0;
}

/* Returns the value of an option of a claim, or its default. */
static struct bel_view option_of(const struct bel_value *command, const char *name,
                                 const char *unsaid)
{
    for (size_t i = 1; i + 1 < command->count; i++) {
        if (bel__view_is(command->items[i].text, name)) return command->items[i + 1].text;
    }
    return (struct bel_view){unsaid, strlen(unsaid)};
}

static void obey(struct connection *connection, const struct bel_value *command)
{
    char line[LINE_BYTES] = "";
    for (size_t i = 0; i < command->count; i++) {
        size_t used = strlen(line);
        (void)snprintf(line + used, sizeof line - used, "%s%.*s", i > 0 ? " " : "",
                       (int)command->items[i].text.bytes,
                       (const char *)command->items[i].text.data);
    }
    if (strncmp(line, "CLAIM ", 6) == 0) {
        size_t end = strlen(line) - strlen(server.claim_end);
        CHECK(strstr(line, server.claim_start) == line);
        CHECK(strcmp(line + end, server.claim_end) == 0);
        struct bel_view lease = option_of(command, "LEASE", server.topic_lease);
        (void)snprintf(connection->lease, sizeof connection->lease, "%.*s", (int)lease.bytes,
                       (const char *)lease.data);
        connection->claims = (unsigned)strtoul(option_of(command, "COUNT", "0").data, NULL, 10);
    } else if (strncmp(line, "EXTEND", 6) == 0) {
        answer(connection, server.extend_reply);
    } else {
        bool is_fail = strncmp(line, "FAIL", 4) == 0;
        answer(connection, is_fail ? "*2\r\n$4\r\ndead\r\n:0\r\n" : server.ack_reply);
    }
    if (connection->claims == 0 && server.lines_count < LINES) {
        memcpy(server.lines[server.lines_count++], line, sizeof line);
    }
    (void)pthread_cond_broadcast(&server.changed);
}

static void drop(struct connection *connection)
{
    (void)close(connection->fd);
    connection->fd = -1;
    connection->claims = 0;
}

static void hear(struct connection *connection)
{
    ssize_t got = recv(connection->fd, connection->input + connection->bytes,
                       INPUT_BYTES - connection->bytes, MSG_DONTWAIT);
    connection->is_closed = got <= 0;
    if (got <= 0 && !server.is_mute) drop(connection);
    if (got <= 0) return;
    connection->bytes += (size_t)got;
    struct bel_reader reader;
    bel__reader_init(&reader, INPUT_BYTES, 100);
    while (bel__reader_scan(&reader, (uint8_t *)connection->input, connection->bytes) == 0) {
        const struct bel_value *command;
        CHECK(bel__reader_build(&reader, (uint8_t *)connection->input, &command) == 0);
        obey(connection, command);
        connection->bytes -= reader.bytes;
        memmove(connection->input, connection->input + reader.bytes, connection->bytes);
        bel__reader_reset(&reader);
    }
    bel__reader_finish(&reader);
}

static void welcome(void)
{
    struct connection *connection = server.connections;
    while (connection->fd >= 0) {
        connection++;
    }
    CHECK(connection < server.connections + CONNECTIONS);
    connection->fd = accept(server.listener, NULL, NULL);
    connection->bytes = connection->claims = 0;
    connection->is_closed = false;
}

static void *serve(void *arg)
{
    struct pollfd sets[CONNECTIONS + 2] = {{.fd = server.pipe[0], .events = POLLIN},
                                           {.fd = server.listener, .events = POLLIN}};
    (void)arg;
    (void)pthread_mutex_lock(&server.mutex);
    while (!server.ends) {
        for (int i = 0; i < CONNECTIONS; i++) {
            if (server.drops && server.connections[i].fd >= 0) drop(&server.connections[i]);
            if (server.connections[i].claims > 0) deliver(&server.connections[i]);
            int fd = server.connections[i].is_closed ? -1 : server.connections[i].fd;
            sets[i + 2] = (struct pollfd){.fd = fd, .events = POLLIN};
        }
        server.drops = false;
        (void)pthread_mutex_unlock(&server.mutex);
        (void)poll(sets, CONNECTIONS + 2, -1);
        (void)pthread_mutex_lock(&server.mutex);
        char wakes[16];
        if (sets[0].revents) (void)!read(server.pipe[0], wakes, sizeof wakes);
        for (int i = 0; i < CONNECTIONS; i++) {
            if (sets[i + 2].revents && server.connections[i].fd >= 0) hear(&server.connections[i]);
        }
        if (sets[1].revents) welcome();
    }
    (void)pthread_mutex_unlock(&server.mutex);
    return NULL;
}

static void wake(void)
{
    CHECK(write(server.pipe[1], "", 1) == 1);
}

static void queue(unsigned count)
{
    (void)pthread_mutex_lock(&server.mutex);
    server.queued += count;
    (void)pthread_mutex_unlock(&server.mutex);
    wake();
}

/* Queues a delivery with the id of the first one. */
static inline void queue_again(void)
{
    (void)pthread_mutex_lock(&server.mutex);
    server.numbered = 0;
    (void)pthread_mutex_unlock(&server.mutex);
    queue(1);
}

/* Returns whether a command that starts with `start` was recorded. */
static bool was_told(const char *start)
{
    for (unsigned i = 0; i < server.lines_count; i++) {
        if (strncmp(server.lines[i], start, strlen(start)) == 0) return true;
    }
    return false;
}

static void wait_for(const char *line)
{
    CHECK_NOTE("waits for %s", line);
    (void)pthread_mutex_lock(&server.mutex);
    while (!was_told(line)) {
        (void)pthread_cond_wait(&server.changed, &server.mutex);
    }
    (void)pthread_mutex_unlock(&server.mutex);
}

/* Waits until a claim waits: then all earlier deliveries are reported. */
static inline void wait_for_claim(void)
{
    (void)pthread_mutex_lock(&server.mutex);
    while (server.connections[0].claims == 0 && server.connections[1].claims == 0) {
        (void)pthread_cond_wait(&server.changed, &server.mutex);
    }
    (void)pthread_mutex_unlock(&server.mutex);
}

static inline void drop_all(void)
{
    (void)pthread_mutex_lock(&server.mutex);
    server.drops = true;
    (void)pthread_mutex_unlock(&server.mutex);
    wake();
}

static inline unsigned count_told(const char *start)
{
    unsigned count = 0;
    (void)pthread_mutex_lock(&server.mutex);
    for (unsigned i = 0; i < server.lines_count; i++) {
        count += strncmp(server.lines[i], start, strlen(start)) == 0;
    }
    (void)pthread_mutex_unlock(&server.mutex);
    return count;
}

static void start_server(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)alarm(PATIENCE_S);
    (void)snprintf(server.folder, sizeof server.folder, "/tmp/test_crew.XXXXXX");
    CHECK(mkdtemp(server.folder) != NULL);
    (void)snprintf(server.path, sizeof server.path, "%s/socket", server.folder);
    memcpy(address.sun_path, server.path, sizeof server.path);
    server.listener = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK(bind(server.listener, (struct sockaddr *)&address, sizeof address) == 0);
    CHECK(listen(server.listener, 8) == 0);
    CHECK(pipe(server.pipe) == 0);
    server.ends = server.drops = server.is_mute = false;
    server.is_old = false;
    server.claim_start = "CLAIM mail COUNT ";
    server.claim_end = " WAIT 10000 WORKER tester";
    server.topic_lease = "30000";
    server.queued = server.numbered = server.lines_count = 0;
    server.extend_reply = ":30000\r\n";
    server.ack_reply = ":1\r\n";
    for (int i = 0; i < CONNECTIONS; i++) {
        server.connections[i].fd = -1;
        server.connections[i].claims = 0;
    }
    CHECK(pthread_create(&server.thread, NULL, serve, NULL) == 0);
}

static void stop_server(void)
{
    (void)pthread_mutex_lock(&server.mutex);
    server.ends = true;
    (void)pthread_mutex_unlock(&server.mutex);
    wake();
    CHECK(pthread_join(server.thread, NULL) == 0);
    for (int i = 0; i < CONNECTIONS; i++) {
        if (server.connections[i].fd >= 0) drop(&server.connections[i]);
    }
    (void)close(server.listener);
    (void)close(server.pipe[0]);
    (void)close(server.pipe[1]);
    (void)unlink(server.path);
    (void)rmdir(server.folder);
}

#endif
