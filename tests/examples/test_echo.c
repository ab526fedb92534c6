/* SPDX-License-Identifier: MIT */

/*
 * The servers in examples/, as processes: started on a free port, talked to, ended with a
 * signal. Nothing sleeps: the test waits for what the server sends or closes.
 *
 *     test_echo SERVER
 */
#include "belfry/clock.h"

#include "../check.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define MS UINT64_C(1000000)

enum {
    PATIENCE_MS = 60000, /* until the test gives up */
    LONG_MS = 600000,    /* a timeout that does not come */
    SHORT_MS = 500,      /* one that does */
    STEP_MS = SHORT_MS / 20,
    ATTEMPTS = 5,
    TEXT_BYTES = 8192,
};

static const char *program;
static pid_t server;
static FILE *output; /* the server's */
static in_port_t port;

static uint64_t now(void)
{
    return bel_clock_boot(bel_clock_system()).ns;
}

static void become_server(int out, unsigned idle_ms, unsigned statistics_ms)
{
    char idle[16], statistics[16];
    (void)snprintf(idle, sizeof idle, "%u", idle_ms);
    (void)snprintf(statistics, sizeof statistics, "%u", statistics_ms);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* if a check fails it does not stay behind */
    CHECK(dup2(out, STDOUT_FILENO) == STDOUT_FILENO);
    (void)execl(program, program, "0", idle, statistics, (char *)NULL);
    CHECK_NOTE("%s cannot be executed", program);
    CHECK(false);
}

static void start(unsigned idle_ms, unsigned statistics_ms)
{
    int ends[2];
    unsigned number = 0;
    CHECK(pipe(ends) == 0);
    (void)alarm(2 * PATIENCE_MS / 1000); /* for what waits without a limit */
    (void)fflush(NULL);
    server = fork();
    CHECK(server >= 0);
    if (server == 0) become_server(ends[1], idle_ms, statistics_ms);
    (void)close(ends[1]);
    output = fdopen(ends[0], "r");
    CHECK(output != NULL);
    CHECK(fscanf(output, "listening on 127.0.0.1:%u", &number) == 1);
    CHECK(number > 0 && number <= UINT16_MAX);
    port = (in_port_t)number;
}

/* Its last words, before it has ended well. */
struct words {
    unsigned connections, lines, idle;
};

static struct words stop(int signal)
{
    struct words last = {0}, words;
    int status = 0;
    CHECK(kill(server, signal) == 0);
    while (fscanf(output, "%u connections, %u lines, %u idle", &words.connections, &words.lines,
                  &words.idle) == 3) {
        last = words;
    }
    CHECK(feof(output));
    (void)fclose(output);
    CHECK(waitpid(server, &status, 0) == server);
    CHECK_NOTE("status of the server: %#x", (unsigned)status);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    return last;
}

static int dial(void)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0);
    CHECK(connect(fd, (struct sockaddr *)&address, sizeof address) == 0);
    return fd;
}

/* Whether there is something to read, or the end, within a time. */
static bool is_ready(int fd, int timeout_ms)
{
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
    int count = poll(&poll_fd, 1, timeout_ms);
    CHECK(count >= 0);
    return count == 1;
}

static bool tell(int fd, const char *text)
{
    return send(fd, text, strlen(text), MSG_NOSIGNAL) == (ssize_t)strlen(text);
}

/* Reads until it has `text`. False if the connection ends before. */
static bool hear(int fd, const char *text)
{
    char heard[TEXT_BYTES];
    size_t used = 0, want = strlen(text);
    CHECK(want <= sizeof heard);
    while (used < want) {
        CHECK(is_ready(fd, PATIENCE_MS));
        ssize_t bytes = recv(fd, heard + used, want - used, 0);
        if (bytes <= 0) return false;
        used += (size_t)bytes;
    }
    CHECK(memcmp(heard, text, want) == 0);
    return true;
}

/* Waits until the server closes. */
static void hear_the_end(int fd)
{
    char byte;
    CHECK(is_ready(fd, PATIENCE_MS));
    ssize_t bytes = recv(fd, &byte, 1, 0);
    CHECK(bytes == 0 || (bytes < 0 && errno == ECONNRESET));
    (void)close(fd);
}

static void whole_lines_come_back(void)
{
    start(LONG_MS, LONG_MS);
    int one = dial(), two = dial();
    CHECK(tell(one, "ding\ndo") && hear(one, "ding\n"));
    CHECK(tell(two, "other\n") && hear(two, "other\n"));
    CHECK(tell(one, "ng\n\n") && hear(one, "dong\n\n"));
    (void)close(one);
    CHECK(tell(two, "last\n") && hear(two, "last\n"));
    (void)close(two);
    struct words last = stop(SIGTERM);
    CHECK_EQ(last.lines, 5);
    CHECK_EQ(last.idle, 0);
}

static void who_stops_sending_hears_all_lines_before_the_end(void)
{
    start(LONG_MS, LONG_MS);
    int fd = dial();
    CHECK(tell(fd, "ding\ndong\nhalf"));
    CHECK(shutdown(fd, SHUT_WR) == 0);
    CHECK(hear(fd, "ding\ndong\n"));
    hear_the_end(fd);
    CHECK_EQ(stop(SIGTERM).lines, 2);
}

static void a_line_that_is_too_long_ends_the_connection(void)
{
    static char text[TEXT_BYTES];
    memset(text, 'x', sizeof text - 1);
    start(LONG_MS, LONG_MS);
    int fd = dial(), other = dial();
    (void)tell(fd, text);
    hear_the_end(fd);
    CHECK(tell(other, "still there\n") && hear(other, "still there\n"));
    (void)close(other);
    CHECK_EQ(stop(SIGTERM).lines, 1);
}

/* One says nothing; the other says something every now and then until the first is closed,
 * and then nothing. False if this machine was too slow for the other to be in time. */
static bool attempt(unsigned *lines)
{
    uint64_t begin = now(), said;
    int idle = dial(), active = dial();
    do {
        said = now();
        if (!tell(active, "here\n") || !hear(active, "here\n")) {
            (void)close(active);
            hear_the_end(idle);
            return false;
        }
        ++*lines;
    } while (!is_ready(idle, STEP_MS));
    hear_the_end(idle);
    CHECK(now() - begin >= SHORT_MS * MS); /* a timer never rings early */
    bool was_in_time = !is_ready(active, 0);
    hear_the_end(active);
    if (!was_in_time) return false;
    CHECK(now() - said >= SHORT_MS * MS);
    return true;
}

static void an_idle_connection_is_closed_and_an_active_one_is_not(void)
{
    unsigned lines = 0, attempts = 0;
    start(SHORT_MS, LONG_MS);
    while (!attempt(&lines)) {
        CHECK(++attempts < ATTEMPTS);
    }
    CHECK(lines > 1);
    struct words last = stop(SIGTERM);
    CHECK(last.lines >= lines);
    CHECK(last.idle >= 2);
}

static void connections_that_end_early_cost_nothing_later(void)
{
    start(SHORT_MS, LONG_MS);
    for (unsigned i = 0; i < 100; i++) {
        int fd = dial();
        CHECK(tell(fd, "short\n") && hear(fd, "short\n"));
        (void)close(fd);
    }
    hear_the_end(dial()); /* by now all the others' times have come, too */
    struct words last = stop(SIGTERM);
    CHECK_EQ(last.lines, 100);
    CHECK_EQ(last.idle, 1);
}

static void statistics_come_again_and_again(void)
{
    unsigned connections, lines, idle;
    start(LONG_MS, STEP_MS);
    int fd = dial();
    CHECK(tell(fd, "one\ntwo\n") && hear(fd, "one\ntwo\n"));
    for (unsigned seen = 0; seen < 3;) {
        CHECK(fscanf(output, "%u connections, %u lines, %u idle", &connections, &lines, &idle) ==
              3);
        seen += connections == 1 && lines == 2 && idle == 0;
    }
    (void)close(fd);
    do {
        CHECK(fscanf(output, "%u connections, %u lines, %u idle", &connections, &lines, &idle) ==
              3);
    } while (connections == 1);
    CHECK_EQ(connections, 0);
    CHECK_EQ(stop(SIGTERM).lines, 2);
}

static void a_signal_ends_it_and_closes_what_is_open(void)
{
    static const int signals[] = {SIGTERM, SIGINT};
    for (unsigned i = 0; i < 2; i++) {
        start(LONG_MS, LONG_MS);
        int idle = dial(), active = dial();
        CHECK(tell(active, "here\n") && hear(active, "here\n"));
        struct words last = stop(signals[i]);
        CHECK_EQ(last.lines, 1);
        CHECK_EQ(last.idle, 0);
        hear_the_end(idle);
        hear_the_end(active);
    }
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    program = argv[1];
    RUN(whole_lines_come_back);
    RUN(who_stops_sending_hears_all_lines_before_the_end);
    RUN(a_line_that_is_too_long_ends_the_connection);
    RUN(an_idle_connection_is_closed_and_an_active_one_is_not);
    RUN(connections_that_end_early_cost_nothing_later);
    RUN(statistics_come_again_and_again);
    RUN(a_signal_ends_it_and_closes_what_is_open);
    return 0;
}
