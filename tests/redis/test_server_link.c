/* SPDX-License-Identifier: MIT */

/*
 * A link to a real redis-server, with the system's clock: by TCP, by a Unix socket and by TLS. The
 * server is a child of the test, with its files in a temporary folder; it is ended by its process
 * id, and dies with the test. Without redis-server or openssl the test is skipped.
 */
#include "redis/link/command.h"
#include "redis/link/link.h"

#include "belfry/clock.h"

#include "core/entropy.h"
#include "core/units.h"

#include "../check.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    SKIPPED = 77,
    MISSING = 127, /* exit status of a child that could not be started */
    PATIENCE_S = 150,
    PATIENCE_MS = 60000, /* generous, for a busy machine */
    PATH_BYTES = 128,
    PATHS = 16,
    CALLS = 5000,
    STARTS_MAX = 5, /* another program may take a port that was free */
};

static char folder[] = "/tmp/belfry-redis-XXXXXX";
static pid_t server;
static uint16_t port, tls_port;
static struct bel_poller poller;
static struct bel_mono next;

/* --- processes --- */

static const char *path_of(const char *name)
{
    static char paths[PATHS][PATH_BYTES];
    static unsigned used;
    char *path = paths[used++ % PATHS];
    (void)snprintf(path, PATH_BYTES, "%s/%s", folder, name);
    return path;
}

/* Starts a program that does not outlive the test; its output goes to a file. */
static pid_t start(const char *const *words)
{
    pid_t parent = getpid(), pid = fork();
    CHECK(pid >= 0);
    if (pid > 0) return pid;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    int log = open(path_of("output"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (getppid() != parent || log < 0 || dup2(log, 1) < 0 || dup2(log, 2) < 0) _exit(1);
    (void)execvp(words[0], (char **)(uintptr_t)words);
    _exit(MISSING);
}

/* Runs a program to its end and returns its exit status. */
static int run(const char *const *words)
{
    int status;
    pid_t pid = start(words);
    CHECK(waitpid(pid, &status, 0) == pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static bool is_missing(const char *program)
{
    if (run((const char *[]){program, "--version", NULL}) != MISSING) return false;
    printf("SKIPPED: there is no %s here\n", program);
    (void)unlink(path_of("output"));
    (void)rmdir(folder);
    return true;
}

static uint16_t free_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    socklen_t bytes = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0 && bind(fd, (const struct sockaddr *)&address, sizeof address) == 0);
    CHECK(getsockname(fd, (struct sockaddr *)&address, &bytes) == 0);
    (void)close(fd);
    return ntohs(address.sin_port);
}

static void make_certificate(void)
{
    const char *words[] = {"openssl",
                           "req",
                           "-x509",
                           "-newkey",
                           "ec",
                           "-pkeyopt",
                           "ec_paramgen_curve:P-256",
                           "-nodes",
                           "-days",
                           "2",
                           "-subj",
                           "/CN=belfry test",
                           "-addext",
                           "subjectAltName=IP:127.0.0.1",
                           "-keyout",
                           path_of("key.pem"),
                           "-out",
                           path_of("cert.pem"),
                           NULL};
    CHECK(run(words) == 0);
}

static void start_server(void)
{
    char ports[2][8];
    port = free_port();
    tls_port = free_port();
    (void)snprintf(ports[0], sizeof ports[0], "%u", (unsigned)port);
    (void)snprintf(ports[1], sizeof ports[1], "%u", (unsigned)tls_port);
    const char *words[] = {"redis-server",
                           "--port",
                           ports[0],
                           "--bind",
                           "127.0.0.1",
                           "--unixsocket",
                           path_of("socket"),
                           "--tls-port",
                           ports[1],
                           "--tls-cert-file",
                           path_of("cert.pem"),
                           "--tls-key-file",
                           path_of("key.pem"),
                           "--tls-ca-cert-file",
                           path_of("cert.pem"),
                           "--tls-auth-clients",
                           "no",
                           "--requirepass",
                           "secret",
                           "--save",
                           "",
                           "--dir",
                           folder,
                           NULL};
    server = start(words);
}

static void stop_server(void)
{
    int status;
    CHECK(server > 0 && kill(server, SIGKILL) == 0);
    CHECK(waitpid(server, &status, 0) == server);
}

static bool is_running(void)
{
    int status;
    return waitpid(server, &status, WNOHANG) == 0;
}

/* --- links --- */

static struct bel_mono now(void)
{
    return bel_clock_mono(bel_clock_system());
}

/* Waits until the poller needs a turn, and takes it. */
static void wait_and_turn(void)
{
    struct pollfd wanted = {.fd = poller.descriptor, .events = POLLIN};
    struct bel_mono at = now();
    uint64_t wait_ms = next.ns > at.ns ? (next.ns - at.ns) / NS_PER_MS + 1 : 0;
    (void)poll(&wanted, 1, wait_ms < PATIENCE_MS ? (int)wait_ms : PATIENCE_MS);
    next = bel__poller_turn(&poller, now());
}

#define RUN_UNTIL(condition)                                                                       \
    for (next = bel__poller_turn(&poller, now()); !(condition);) {                                 \
        wait_and_turn();                                                                           \
    }

static unsigned messages, breaks;

static void pushed(struct bel_redis_link *link, void *owner, const struct bel_value *message)
{
    (void)link;
    (void)owner;
    messages += message->count == 3 && bel_value_is(&message->items[0], "message") &&
                bel_value_is(&message->items[2], "hello");
}

static void changed(struct bel_redis_link *link, void *owner)
{
    (void)owner;
    breaks += bel__redis_link_state(link) != BEL_REDIS_LINK_READY;
}

static struct bel_redis_link *open_link(struct bel_redis_link_options options)
{
    struct bel_redis_link *link;
    options.poller = &poller;
    options.entropy = bel__entropy_system();
    options.connect_ms = options.call_ms = PATIENCE_MS;
    options.pushed = pushed;
    options.changed = changed;
    if (options.password == NULL) options.password = "secret";
    if (options.path == NULL && options.host == NULL) options.host = "127.0.0.1";
    if (options.port == 0) options.port = port;
    options.name = "belfry";
    messages = breaks = 0;
    CHECK(bel__redis_link_open(&options, &link) == 0);
    bel__redis_link_connect(link);
    return link;
}

static struct bel_redis_link *open_ready(struct bel_redis_link_options options)
{
    struct bel_redis_link *link = open_link(options);
    RUN_UNTIL(bel__redis_link_state(link) == BEL_REDIS_LINK_READY);
    return link;
}

/* A call of some words, and its end. */
struct spoken {
    struct bel_redis_call call;
    char command[256];
    bool is_ended;
    int err;
    enum bel_value_type type;
    int64_t number;
    char text[64];
};

static void done(struct bel_redis_call *call, const struct bel_redis_reply *reply)
{
    struct spoken *spoken = BEL_CONTAINER_OF(call, struct spoken, call);
    spoken->is_ended = reply->is_last;
    spoken->err = reply->err;
    if (reply->err) return;
    spoken->type = reply->value->type;
    spoken->number = reply->value->number;
    (void)snprintf(spoken->text, sizeof spoken->text, "%.*s", (int)reply->value->text.bytes,
                   reply->value->text.bytes > 0 ? (const char *)reply->value->text.data : "");
}

static void prepare(struct spoken *spoken, const char *const *words)
{
    struct bel_redis_command command;
    struct bel_buffer buffer;
    size_t count = 0;
    while (words[count] != NULL) {
        count++;
    }
    *spoken = (struct spoken){.call = {.done = done}};
    bel__buffer_init(&buffer, sizeof spoken->command);
    bel__redis_command_begin(&command, &buffer, count);
    for (size_t i = 0; i < count; i++) {
        bel__redis_command_word(&command, words[i]);
    }
    CHECK(bel__redis_command_end(&command) == 0);
    memcpy(spoken->command, bel__buffer_data(&buffer), buffer.count);
    spoken->call.command = (struct bel_view){spoken->command, buffer.count};
    bel__buffer_finish(&buffer);
}

static void send_spoken(struct bel_redis_link *link, struct spoken *spoken)
{
    CHECK(bel__redis_link_send(link, &spoken->call, now()) == 0);
}

/* Sends a command and waits for its end. */
static const struct spoken *ask(struct bel_redis_link *link, const char *const *words)
{
    static struct spoken spoken;
    prepare(&spoken, words);
    send_spoken(link, &spoken);
    RUN_UNTIL(spoken.is_ended);
    return &spoken;
}

#define ASK(link, ...) ask((link), (const char *[]){__VA_ARGS__, NULL})

static void check_echo(struct bel_redis_link *link, const char *word)
{
    const struct spoken *spoken = ASK(link, "ECHO", word);
    CHECK(spoken->err == 0 && strcmp(spoken->text, word) == 0);
}

/* --- cases --- */

/* The link begins to connect before the server listens. */
static void a_link_waits_for_a_server_that_starts(void)
{
    bool is_ready = false;
    for (int i = 0; i < STARTS_MAX && !is_ready; i++) {
        start_server();
        struct bel_redis_link *link = open_link((struct bel_redis_link_options){0});
        RUN_UNTIL(bel__redis_link_state(link) == BEL_REDIS_LINK_READY || !is_running());
        is_ready = bel__redis_link_state(link) == BEL_REDIS_LINK_READY;
        if (is_ready) {
            const struct bel_redis_server *told = bel__redis_link_server(link);
            CHECK(told->is_resp3 && told->version[0] != 0 && strcmp(told->role, "master") == 0);
            CHECK(strcmp(ASK(link, "CLIENT", "GETNAME")->text, "belfry") == 0);
        }
        bel__redis_link_close(link);
    }
    CHECK(is_ready);
}

static void check_order(struct bel_redis_link *link)
{
    static struct spoken calls[CALLS];
    CHECK(ASK(link, "DEL", "n")->err == 0);
    for (int i = 0; i < CALLS; i++) {
        prepare(&calls[i], (const char *[]){"INCR", "n", NULL});
        send_spoken(link, &calls[i]);
    }
    RUN_UNTIL(bel__redis_link_calls(link) == 0);
    for (int i = 0; i < CALLS; i++) {
        CHECK(calls[i].is_ended && calls[i].err == 0);
        CHECK_EQ((uint64_t)calls[i].number, (uint64_t)i + 1);
    }
}

static struct bel_tls *open_tls(void)
{
    struct bel_tls *tls;
    struct bel_why why = {{0}, NULL};
    struct bel_tls_options options = {.ca = path_of("cert.pem")};
    CHECK(bel__tls_open(&options, &tls, &why) == 0);
    return tls;
}

static void replies_come_in_order_by_tcp_unix_socket_and_tls(void)
{
    struct bel_tls *tls = open_tls();
    struct bel_redis_link *links[] = {
        open_ready((struct bel_redis_link_options){0}),
        open_ready((struct bel_redis_link_options){.path = path_of("socket"), .db = 3}),
        open_ready((struct bel_redis_link_options){.port = tls_port, .tls = tls}),
    };
    for (size_t i = 0; i < sizeof links / sizeof links[0]; i++) {
        check_order(links[i]);
        bel__redis_link_close(links[i]);
    }
    bel__tls_close(tls);
}

static void a_certificate_for_another_name_is_refused(void)
{
    struct bel_tls *tls = open_tls();
    struct bel_redis_link *link = open_link(
        (struct bel_redis_link_options){.host = "localhost", .port = tls_port, .tls = tls});
    RUN_UNTIL(bel__redis_link_state(link) == BEL_REDIS_LINK_WAITING);
    CHECK_NOTE("%.200s", bel__redis_link_why(link));
    CHECK(strstr(bel__redis_link_why(link), "not for localhost") != NULL);
    bel__redis_link_close(link);
    bel__tls_close(tls);
}

static void a_wrong_password_is_named_as_the_reason(void)
{
    struct bel_redis_link *link = open_link((struct bel_redis_link_options){.password = "wrong"});
    RUN_UNTIL(bel__redis_link_state(link) == BEL_REDIS_LINK_WAITING);
    CHECK(strstr(bel__redis_link_why(link), "WRONGPASS") != NULL);
    bel__redis_link_close(link);
}

static void messages_of_a_channel_arrive(void)
{
    struct bel_redis_link *link = open_ready((struct bel_redis_link_options){0});
    struct spoken subscribe;
    prepare(&subscribe, (const char *[]){"SUBSCRIBE", "a", "b", NULL});
    subscribe.call.confirmed_by = "subscribe";
    subscribe.call.replies = 2;
    send_spoken(link, &subscribe);
    CHECK_EQ((uint64_t)ASK(link, "PUBLISH", "b", "hello")->number, 1);
    CHECK(subscribe.is_ended && subscribe.err == 0);
    RUN_UNTIL(messages == 1);
    prepare(&subscribe, (const char *[]){"SUBSCRIBE", NULL}); /* an error is its only reply */
    subscribe.call.confirmed_by = "subscribe";
    send_spoken(link, &subscribe);
    check_echo(link, "x");
    CHECK(subscribe.is_ended && subscribe.type == BEL_VALUE_ERROR);
    bel__redis_link_close(link);
}

static void a_killed_connection_comes_back(void)
{
    struct bel_redis_link *link = open_ready((struct bel_redis_link_options){0});
    struct bel_redis_link *other = open_ready((struct bel_redis_link_options){0});
    char id[32];
    const struct spoken *spoken = ASK(link, "CLIENT", "ID");
    (void)snprintf(id, sizeof id, "%" PRId64, spoken->number);
    CHECK_EQ((uint64_t)ASK(other, "CLIENT", "KILL", "ID", id)->number, 1);
    RUN_UNTIL(breaks == 1);
    check_echo(link, "x");
    CHECK_EQ(bel__redis_link_connections(link), 2);
    bel__redis_link_close(link);
    bel__redis_link_close(other);
}

/* The server replies to the first command before it has received all of the second one. */
static void a_call_may_be_larger_than_the_buffers_of_its_socket(void)
{
    enum {
        LARGE_BYTES = 16 << 20
    };
    static char command[LARGE_BYTES + 64];
    struct bel_redis_link *link = open_ready((struct bel_redis_link_options){0});
    struct spoken both = {.call = {.done = done, .replies = 2}};
    int head = snprintf(command, sizeof command,
                        "*1\r\n$4\r\nPING\r\n*2\r\n$6\r\nSTRLEN\r\n$%d\r\n", LARGE_BYTES);
    memset(command + head, 'x', LARGE_BYTES);
    memcpy(command + head + LARGE_BYTES, "\r\n", 3);
    both.call.command = (struct bel_view){command, (size_t)head + LARGE_BYTES + 2};
    send_spoken(link, &both);
    RUN_UNTIL(both.is_ended);
    CHECK_NOTE("%.200s", bel__redis_link_why(link));
    CHECK(both.err == 0 && both.type == BEL_VALUE_NUMBER && both.number == 0);
    CHECK_EQ(bel__redis_link_connections(link), 1);
    bel__redis_link_close(link);
}

/* The server stands still, and later replies to what was asked before. */
static void a_server_that_stands_still_is_given_up(void)
{
    struct bel_redis_link *link = open_ready((struct bel_redis_link_options){0});
    struct spoken late;
    prepare(&late, (const char *[]){"ECHO", "late", NULL});
    late.call.timeout_ms = 100;
    CHECK(kill(server, SIGSTOP) == 0);
    send_spoken(link, &late);
    RUN_UNTIL(late.is_ended);
    CHECK(late.err == BEL_EIO);
    CHECK(strstr(bel__redis_link_why(link), "no reply in time") != NULL);
    CHECK(kill(server, SIGCONT) == 0);
    check_echo(link, "again");
    CHECK_EQ(bel__redis_link_connections(link), 2);
    bel__redis_link_close(link);
}

int main(void)
{
    (void)alarm(PATIENCE_S);
    CHECK(mkdtemp(folder) != NULL);
    if (is_missing("redis-server") || is_missing("openssl")) return SKIPPED;
    make_certificate();
    CHECK(bel__poller_open(&poller) == 0);
    RUN(a_link_waits_for_a_server_that_starts);
    RUN(replies_come_in_order_by_tcp_unix_socket_and_tls);
    RUN(a_certificate_for_another_name_is_refused);
    RUN(a_wrong_password_is_named_as_the_reason);
    RUN(messages_of_a_channel_arrive);
    RUN(a_killed_connection_comes_back);
    RUN(a_call_may_be_larger_than_the_buffers_of_its_socket);
    RUN(a_server_that_stands_still_is_given_up);
    stop_server();
    bel__poller_close(&poller);
    static const char *names[] = {"output", "key.pem", "cert.pem", "socket"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        (void)unlink(path_of(names[i]));
    }
    CHECK(rmdir(folder) == 0);
    return EXIT_SUCCESS;
}
