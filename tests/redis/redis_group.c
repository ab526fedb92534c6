/* SPDX-License-Identifier: MIT */

/*
 * Servers are children, each in its own directory as working directory, known by their process ids
 * alone. servers.py says in BEL_TEST_REDIS_SERVER which program they are.
 *
 * Ports are taken from below those that the system gives to outgoing connections, and another
 * program may be faster: a server that ends at its start gets other ports.
 */
#include "redis_group.h"

#include "../check.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    NO_PROGRAM = 127,
    STEP_MS = 20,
    PATIENCE_S = 120,
    SILENCE_MS = 10000, /* of one server */
    STARTS_MAX = 10,
    PORT_MIN = 12000,
    PORT_MAX = 32000,
    PRIMARIES = 3,
    SLOTS = 16384,
    WORDS_MAX = 64,
    WORD_BYTES = 96,
};

static char reply[GROUP_REPLY_BYTES];

/* Ends the test. */
static void give_up(const char *why)
{
    (void)fprintf(stderr, "%s\n", why);
    CHECK(false);
}

static const char *program(void)
{
    const char *found = getenv("BEL_TEST_REDIS_SERVER"); /* NOLINT(concurrency-mt-unsafe) */
    return found != NULL ? found : "redis-server";
}

/* --- Ports and connections --- */

static struct sockaddr_in loopback(uint16_t port)
{
    return (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_port = htons(port),
                                .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
}

static bool is_free(uint16_t port)
{
    struct sockaddr_in address = loopback(port);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0);
    bool has_bound = bind(fd, (const struct sockaddr *)&address, sizeof address) == 0;
    CHECK(close(fd) == 0);
    return has_bound;
}

static uint16_t free_port(void)
{
    static uint32_t next;
    if (next == 0) next = (uint32_t)getpid() * 2654435761U; /* tests that run together differ */
    for (;;) {
        next = next * 1664525U + 1013904223U;
        uint16_t port = (uint16_t)(PORT_MIN + (next >> 8) % (PORT_MAX - PORT_MIN));
        if (is_free(port)) return port;
    }
}

static int try_to_connect(uint16_t port)
{
    struct sockaddr_in address = loopback(port);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0);
    if (connect(fd, (const struct sockaddr *)&address, sizeof address) == 0) return fd;
    CHECK(close(fd) == 0);
    return -1;
}

/* --- Processes --- */

struct words {
    char texts[WORDS_MAX][WORD_BYTES];
    size_t count;
};

__attribute__((format(printf, 2, 3))) static void add(struct words *words, const char *format, ...)
{
    va_list args;
    CHECK(words->count < WORDS_MAX - 1);
    va_start(args, format);
    (void)vsnprintf(words->texts[words->count++], WORD_BYTES, format, args);
    va_end(args);
}

static void add_option(struct words *words, const char *name, const char *value)
{
    add(words, "--%s", name);
    add(words, "%s", value);
}

/* The options of all servers. */
static void add_server(struct words *words, const struct group_server *server, bool is_cluster)
{
    char text[16];
    (void)snprintf(text, sizeof text, "%u", server->port);
    add_option(words, "port", text);
    add_option(words, "bind", "127.0.0.1");
    add_option(words, "dir", server->directory);
    add_option(words, "save", "");
    add_option(words, "appendonly", "no");
    add_option(words, "repl-diskless-sync", "yes");
    add_option(words, "repl-diskless-sync-delay", "0");
    add_option(words, "repl-diskless-load", "swapdb");
    add_option(words, "repl-ping-replica-period", "1");
    if (!is_cluster) return;
    (void)snprintf(text, sizeof text, "%u", server->bus_port);
    add_option(words, "cluster-enabled", "yes");
    add_option(words, "cluster-port", text);
    add_option(words, "cluster-node-timeout", "8000");
    add_option(words, "cluster-require-full-coverage", "no");
    add_option(words, "cluster-allow-replica-migration", "no");
    add_option(words, "cluster-config-file", "nodes.conf");
}

/* Sentinels need a file that they can write. */
static void write_sentinel(const struct redis_group *group, const struct group_server *server)
{
    char path[128];
    (void)snprintf(path, sizeof path, "%s/sentinel.conf", server->directory);
    FILE *file = fopen(path, "we");
    CHECK(file != NULL);
    (void)fprintf(file,
                  "port %u\nbind 127.0.0.1\ndir %s\n"
                  "sentinel monitor belfry 127.0.0.1 %u 2\n"
                  "sentinel down-after-milliseconds belfry 1500\n"
                  "sentinel failover-timeout belfry 2000\n",
                  server->port, server->directory, group->servers[0].port);
    CHECK(fclose(file) == 0);
}

static void run(const struct words *words, const char *directory)
{
    char *arguments[WORDS_MAX + 1];
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    int log = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (log < 0 || dup2(log, 1) < 0 || dup2(log, 2) < 0 || chdir(directory) != 0) _exit(1);
    for (size_t i = 0; i < words->count; i++) {
        arguments[i] = (char *)(uintptr_t)words->texts[i];
    }
    arguments[words->count] = NULL;
    (void)execvp(program(), arguments);
    _exit(errno == ENOENT ? NO_PROGRAM : 1);
}

/* Sets the clock of a server that is about to run in this process. */
static void set_clock(const struct redis_group *group)
{
    char ahead[16];
    (void)snprintf(ahead, sizeof ahead, "%u", group->ahead_s);
    /* NOLINTBEGIN(concurrency-mt-unsafe) */
    if (setenv("BEL_TEST_AHEAD_S", ahead, 1) != 0) _exit(1);
    if (setenv("LD_PRELOAD", group->clock_library, 1) != 0) _exit(1);
    /* NOLINTEND(concurrency-mt-unsafe) */
}

static bool is_sentinel(const struct redis_group *group, size_t index)
{
    return index >= group->count - group->sentinels;
}

static void launch(struct redis_group *group, size_t index)
{
    struct group_server *server = &group->servers[index];
    struct words words = {.count = 0};
    add(&words, "%s", program());
    if (is_sentinel(group, index)) {
        write_sentinel(group, server);
        add(&words, "%s/sentinel.conf", server->directory);
        add(&words, "--sentinel");
    } else {
        add_server(&words, server, group->is_cluster);
    }
    server->pid = fork();
    CHECK(server->pid >= 0);
    if (server->pid == 0 && index == 0 && group->clock_library != NULL) set_clock(group);
    if (server->pid == 0) run(&words, server->directory);
}

/* Waits until a server accepts connections. Returns its exit status if it has ended, or 0. */
static int await_start(struct group_server *server)
{
    int status, fd;
    for (int waited = 0; waited < PATIENCE_S * 1000; waited += STEP_MS) {
        if (waitpid(server->pid, &status, WNOHANG) == server->pid) {
            server->pid = 0;
            return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
        }
        fd = try_to_connect(server->port);
        if (fd >= 0) {
            CHECK(close(fd) == 0);
            return 0;
        }
        (void)poll(NULL, 0, STEP_MS); /* until the port is open */
    }
    give_up("a server does not start");
    return 1;
}

static bool start(struct redis_group *group, size_t index)
{
    struct group_server *server = &group->servers[index];
    (void)snprintf(server->directory, sizeof server->directory, "/tmp/belfry-group-XXXXXX");
    CHECK(mkdtemp(server->directory) != NULL);
    for (int i = 0; i < STARTS_MAX; i++) {
        server->port = free_port();
        server->bus_port = free_port();
        if (server->port == server->bus_port) continue;
        launch(group, index);
        int status = await_start(server);
        if (status == 0) return true;
        if (status == NO_PROGRAM) return false;
    }
    give_up("a server does not start");
    return false;
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    (void)status;
    (void)kind;
    (void)place;
    return remove(path);
}

static void clean(const struct group_server *server)
{
    (void)nftw(server->directory, remove_one, 8, /* NOLINT(concurrency-mt-unsafe) */
               FTW_DEPTH | FTW_PHYS);
}

void group_kill(struct redis_group *group, size_t index)
{
    int status;
    struct group_server *server = &group->servers[index];
    if (server->pid == 0) return;
    CHECK(kill(server->pid, SIGKILL) == 0);
    CHECK(waitpid(server->pid, &status, 0) == server->pid);
    server->pid = 0;
}

void group_restart(struct redis_group *group, size_t index)
{
    launch(group, index);
    CHECK(await_start(&group->servers[index]) == 0);
}

void group_stop(struct redis_group *group)
{
    for (size_t i = 0; i < group->count; i++) {
        group_kill(group, i);
        clean(&group->servers[i]);
    }
}

/* --- Asking --- */

/* Returns the number of bytes of a line, or of a text with its line, at the start of `text`; 0:
 * incomplete. */
static size_t item_bytes(const char *text)
{
    const char *end = strstr(text, "\r\n");
    if (end == NULL) return 0;
    size_t head = (size_t)(end - text) + 2;
    bool has_text = text[0] == '$' && text[1] != '-';
    return has_text ? head + strtoul(text + 1, NULL, 10) + 2 : head;
}

/* The same of the first reply, which may be a list of texts. */
static size_t reply_bytes(const char *text)
{
    size_t bytes = item_bytes(text);
    unsigned long items = text[0] == '*' && bytes > 0 ? strtoul(text + 1, NULL, 10) : 0;
    for (; items > 0; items--) {
        size_t more = bytes <= strlen(text) ? item_bytes(text + bytes) : 0;
        if (more == 0) return 0;
        bytes += more;
    }
    return bytes;
}

/* Reads the reply to a line. Returns false if the server does not answer. */
static bool read_reply(int fd)
{
    struct pollfd poller = {.fd = fd, .events = POLLIN};
    size_t count = 0;
    reply[0] = 0;
    while (reply_bytes(reply) == 0 || count < reply_bytes(reply)) {
        CHECK(count < sizeof reply - 1);
        if (poll(&poller, 1, SILENCE_MS) != 1) return false;
        ssize_t got = recv(fd, reply + count, sizeof reply - 1 - count, 0);
        if (got <= 0) return false;
        count += (size_t)got;
        reply[count] = 0;
    }
    return true;
}

static const char *ask(const struct group_server *server, const char *line)
{
    char command[1024];
    int fd = server->pid == 0 ? -1 : try_to_connect(server->port);
    if (fd < 0) return NULL;
    int bytes = snprintf(command, sizeof command, "%s\r\n", line);
    CHECK(bytes > 0 && (size_t)bytes < sizeof command);
    bool has_reply = send(fd, command, (size_t)bytes, MSG_NOSIGNAL) == bytes && read_reply(fd);
    CHECK(close(fd) == 0);
    if (!has_reply) return NULL;
    if (reply[0] != '$') return reply;
    return strstr(reply, "\r\n") + 2;
}

const char *group_ask(const struct redis_group *group, size_t index, const char *format, ...)
{
    char line[900];
    va_list args;
    va_start(args, format);
    int bytes = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    CHECK(bytes > 0 && (size_t)bytes < sizeof line);
    return ask(&group->servers[index], line);
}

void group_await(const struct redis_group *group, size_t index, const char *line, const char *text)
{
    const char *said = NULL;
    for (int waited = 0; waited < PATIENCE_S * 1000; waited += STEP_MS) {
        said = ask(&group->servers[index], line);
        if (said != NULL && strstr(said, text) != NULL) return;
        (void)poll(NULL, 0, STEP_MS);
    }
    (void)fprintf(stderr, "server %zu, %s: no '%s' in:\n%s\n", index, line, text,
                  said != NULL ? said : "nothing");
    give_up("a server does not come to a state");
}

void group_tell(const struct redis_group *group, size_t index, const char *format, ...)
{
    char line[900];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(line, sizeof line, format, args);
    va_end(args);
    const char *said = ask(&group->servers[index], line);
    if (said == NULL || said[0] == '-') {
        (void)fprintf(stderr, "%s: %s\n", line, said != NULL ? said : "nothing");
    }
    CHECK(said != NULL && said[0] != '-');
}

bool group_key_of(const struct redis_group *group, size_t index, unsigned slot, char *out,
                  size_t room)
{
    const char *said = group_ask(group, index, "CLUSTER GETKEYSINSLOT %u 1", slot);
    CHECK(said != NULL && said[0] == '*');
    if (said[1] == '0') return false;
    const char *text = strstr(strchr(said, '$'), "\r\n") + 2;
    (void)snprintf(out, room, "%.*s", (int)strcspn(text, "\r\n"), text);
    return true;
}

void group_stand_still(const struct redis_group *group, size_t index, bool is_still)
{
    CHECK(kill(group->servers[index].pid, is_still ? SIGSTOP : SIGCONT) == 0);
}

/* --- A Cluster --- */

static void name_of(const struct redis_group *group, size_t index, char out[64])
{
    const char *said = group_ask(group, index, "CLUSTER MYID");
    CHECK(said != NULL);
    size_t bytes = strcspn(said, "\r\n");
    CHECK(bytes < 64);
    memcpy(out, said, bytes);
    out[bytes] = 0;
}

static bool start_all(struct redis_group *group)
{
    for (size_t i = 0; i < group->count; i++) {
        if (start(group, i)) continue;
        group->count = i + 1;
        group_stop(group);
        return false;
    }
    return true;
}

static void meet(const struct redis_group *group)
{
    char known[64];
    (void)snprintf(known, sizeof known, "cluster_known_nodes:%zu", group->count);
    for (unsigned i = 0; i < PRIMARIES; i++) {
        group_tell(group, i, "CLUSTER ADDSLOTSRANGE %u %u", i * SLOTS / PRIMARIES,
                   (i + 1) * SLOTS / PRIMARIES - 1);
        group_tell(group, i, "CLUSTER SET-CONFIG-EPOCH %u", i + 1);
    }
    for (size_t i = 1; i < group->count; i++) {
        group_tell(group, 0, "CLUSTER MEET 127.0.0.1 %u %u", group->servers[i].port,
                   group->servers[i].bus_port);
    }
    for (size_t i = 0; i < group->count; i++) {
        group_await(group, i, "CLUSTER INFO", known);
        group_await(group, i, "CLUSTER INFO", "cluster_state:ok");
    }
}

static void replicate(const struct redis_group *group)
{
    char name[64];
    for (size_t i = 0; i < PRIMARIES; i++) {
        name_of(group, i, name);
        group_tell(group, i + PRIMARIES, "CLUSTER REPLICATE %s", name);
    }
    for (size_t i = 0; i < PRIMARIES; i++) {
        group_await(group, i, "INFO replication", "state=online");
        group_await(group, i + PRIMARIES, "INFO replication", "master_link_status:up");
    }
    for (size_t i = 0; i < group->count; i++) { /* until all know who replicates whom */
        for (;;) {
            const char *at = group_ask(group, i, "CLUSTER NODES");
            size_t count = 0;
            while (at != NULL && (at = strstr(at, "slave ")) != NULL) {
                count++;
                at++;
            }
            if (count == PRIMARIES) break;
            (void)poll(NULL, 0, STEP_MS);
        }
    }
}

bool group_start_cluster(struct redis_group *group, bool has_spare)
{
    *group = (struct redis_group){
        .count = PRIMARIES * 2U + has_spare, .primaries = PRIMARIES, .is_cluster = true};
    if (!start_all(group)) return false;
    (void)snprintf(group->url, sizeof group->url, "redis+cluster://127.0.0.1:%u,127.0.0.1:%u",
                   group->servers[0].port, group->servers[4].port);
    meet(group);
    replicate(group);
    return true;
}

bool group_start_primaries(struct redis_group *group, const char *clock_library, unsigned ahead_s)
{
    *group = (struct redis_group){.count = PRIMARIES,
                                  .primaries = PRIMARIES,
                                  .is_cluster = true,
                                  .clock_library = clock_library,
                                  .ahead_s = ahead_s};
    if (!start_all(group)) return false;
    (void)snprintf(group->url, sizeof group->url, "redis+cluster://127.0.0.1:%u,127.0.0.1:%u",
                   group->servers[0].port, group->servers[1].port);
    meet(group);
    return true;
}

/* Returns whether a text such as "0-5460 5470" has a slot. */
static bool has_slot(const char *ranges, unsigned slot)
{
    for (const char *at = ranges; at[0] != 0;) {
        char *end;
        unsigned long first = strtoul(at, &end, 10), last = first;
        if (end == at) return false;
        if (end[0] == '-') last = strtoul(end + 1, &end, 10);
        if (slot >= first && slot <= last) return true;
        at = end;
    }
    return false;
}

/* A line of CLUSTER NODES is: id address flags primary ping pong epoch link ranges. */
static bool has_its_slot(const struct redis_group *group, size_t index, unsigned slot)
{
    char ranges[256] = "";
    const char *said = group_ask(group, index, "CLUSTER NODES");
    const char *own = said == NULL ? NULL : strstr(said, "myself,master");
    if (own == NULL) return false;
    return sscanf(own, "%*s %*s %*s %*s %*s %*s %255[^\r\n]", ranges) == 1 &&
           has_slot(ranges, slot);
}

size_t group_primary_of(const struct redis_group *group, unsigned slot)
{
    for (size_t i = 0; i < group->count; i++) {
        if (has_its_slot(group, i, slot)) return i;
    }
    give_up("no server has the slot");
    return 0;
}

size_t group_take_over(struct redis_group *group, size_t primary)
{
    char text[32];
    (void)snprintf(text, sizeof text, "master_port:%u", group->servers[primary].port);
    for (size_t i = 0; i < group->count; i++) {
        const char *said = group_ask(group, i, "INFO replication");
        if (said == NULL || strstr(said, text) == NULL) continue;
        group_tell(group, i, "CLUSTER FAILOVER TAKEOVER");
        group_await(group, i, "INFO replication", "role:master");
        return i;
    }
    give_up("a primary has no replica");
    return 0;
}

/* --- A primary with replicas --- */

static void follow(const struct redis_group *group, size_t replicas)
{
    char text[64];
    for (size_t i = 1; i <= replicas; i++) {
        group_tell(group, i, "REPLICAOF 127.0.0.1 %u", group->servers[0].port);
    }
    for (size_t i = 1; i <= replicas; i++) {
        group_await(group, i, "INFO replication", "master_link_status:up");
        (void)snprintf(text, sizeof text, "slave%zu:ip=127.0.0.1", i - 1);
        group_await(group, 0, "INFO replication", text);
        (void)snprintf(text, sizeof text, "connected_slaves:%zu", replicas);
        group_await(group, 0, "INFO replication", text);
    }
    group_await(group, 0, "INFO replication", "state=online");
}

bool group_start_replicas(struct redis_group *group, size_t replicas)
{
    *group = (struct redis_group){.count = 1 + replicas, .primaries = 1};
    if (!start_all(group)) return false;
    (void)snprintf(group->url, sizeof group->url, "redis://127.0.0.1:%u", group->servers[0].port);
    follow(group, replicas);
    return true;
}

bool group_start_sentinels(struct redis_group *group)
{
    enum {
        REPLICAS = 2,
        SENTINELS = 3,
    };
    *group = (struct redis_group){
        .count = 1 + REPLICAS + SENTINELS, .primaries = 1, .sentinels = SENTINELS};
    if (!start_all(group)) return false;
    follow(group, REPLICAS);
    const struct group_server *last = &group->servers[1 + REPLICAS];
    (void)snprintf(group->url, sizeof group->url,
                   "redis+sentinel://127.0.0.1:%u,127.0.0.1:%u,127.0.0.1:%u/?master=belfry",
                   last[0].port, last[1].port, last[2].port);
    for (size_t i = 1 + REPLICAS; i < group->count; i++) {
        group_await(group, i, "INFO sentinel", "slaves=2,sentinels=3");
    }
    return true;
}
