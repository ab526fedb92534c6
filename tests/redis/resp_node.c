/* SPDX-License-Identifier: MIT */

/*
 * A node that speaks RESP on its standard input and output, for tests in other languages:
 *
 *     resp_node SOCKET NAMESPACE [still]
 *
 * It opens the backend on the Redis server of the socket, and ends when its input does. With
 * `still`, its clock stands still, and it does nothing that it was not asked for.
 */
#include "../check.h"

#include "belfry/backend.h"
#include "core/units.h"
#include "redis/redis.h"
#include "session/session.h"

#include <poll.h>
#include <string.h>
#include <unistd.h>

enum {
    STEP_MS = 1000, /* of a poll, if nothing is to be done before */
    COMMANDS = 64,
};

static struct bel_redis *redis;
static struct bel_session *session;
static struct bel_now now;
static bool is_still; /* the clock */
static bool is_ready; /* there was a reply: the session may go on */

static void be_ready(void *context)
{
    (void)context;
    is_ready = true;
}

static void read_clock(void)
{
    struct bel_now read = bel_clock_now(bel_clock_system());
    if (is_still && now.real.ns != 0) {
        now.real = read.real;
    } else {
        now = read;
    }
}

static void open_all(const char *path, const char *name_space)
{
    static const struct bel_service service = {.now = &now, .payload_bytes_max = 1 << 20};
    struct bel_redis_options options = {.servers.path = path, .is_virtual = is_still};
    (void)snprintf(options.name_space, sizeof options.name_space, "%s", name_space);
    read_clock();
    CHECK(bel__redis_open(&options, now, &redis) == 0);
    struct bel_session_owner owner = {.backend = bel__redis_backend(redis), .ready = be_ready};
    CHECK(bel__session_create(&service, &owner, &session) == 0);
}

static void write_output(void)
{
    struct bel_buffer *output = bel__session_output(session);
    while (output->count > 0) {
        ssize_t written = write(STDOUT_FILENO, bel__buffer_data(output), output->count);
        CHECK(written > 0);
        bel__buffer_consume(output, (size_t)written);
    }
    bel__session_trim(session);
}

/* Reads what has arrived. Returns false at the end of the input. */
static bool read_input(void)
{
    char bytes[4096];
    size_t room = bel__session_room(session);
    ssize_t got = read(STDIN_FILENO, bytes, room < sizeof bytes ? room : sizeof bytes);
    if (got <= 0) return false;
    CHECK(bel__session_receive(session, bytes, (size_t)got) == 0);
    return true;
}

/* Takes a turn. Returns how long the next one may be delayed, in ms. */
static int turn(void)
{
    read_clock();
    is_ready = false;
    bool has_more = bel__session_step(session, COMMANDS);
    struct bel_next next = bel_backend_turn(bel__redis_backend(redis), now);
    write_output();
    uint64_t due_ns = next.due.ns > now.boot.ns ? next.due.ns - now.boot.ns : 0;
    uint64_t wait_ns = next.wait.ns > now.real.ns ? next.wait.ns - now.real.ns : 0;
    uint64_t ms = (due_ns < wait_ns ? due_ns : wait_ns) / NS_PER_MS + 1;
    if (has_more || is_ready || due_ns == 0 || wait_ns == 0) return 0;
    return ms < STEP_MS ? (int)ms : STEP_MS;
}

int main(int argc, char **argv)
{
    CHECK(argc == 3 || argc == 4);
    is_still = argc == 4;
    open_all(argv[1], argv[2]);
    for (bool has_input = true; has_input;) {
        struct pollfd fds[] = {
            {.fd = STDIN_FILENO, .events = bel__session_room(session) > 0 ? POLLIN : 0},
            {.fd = bel_backend_descriptor(bel__redis_backend(redis)), .events = POLLIN}};
        CHECK(poll(fds, 2, turn()) >= 0);
        if (fds[0].revents != 0) has_input = read_input();
    }
    bel__session_destroy(session);
    bel__redis_close(redis);
    return EXIT_SUCCESS;
}
