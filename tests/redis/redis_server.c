/* SPDX-License-Identifier: MIT */

/*
 * The server is a child, in its own directory as working directory. It is known by its process id
 * alone. servers.py says in BEL_TEST_REDIS_SERVER which program it is.
 */
#include "redis_server.h"

#include "../check.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    NO_PROGRAM = 127,
    STEP_MS = 20,
};

static const char *program(void)
{
    const char *found = getenv("BEL_TEST_REDIS_SERVER"); /* NOLINT(concurrency-mt-unsafe) */
    return found != NULL ? found : "redis-server";
}

static void run(const struct redis_server *server)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (freopen("/dev/null", "w", stdout) == NULL || chdir(server->directory) != 0) _exit(1);
    (void)execlp(program(), program(), "--port", "0", "--unixsocket", server->path, "--save", "",
                 "--appendonly", "no", "--dir", server->directory, (char *)NULL);
    _exit(errno == ENOENT ? NO_PROGRAM : 1);
}

/* Returns a connection, or -1. */
static int try_to_connect(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    CHECK(strlen(path) < sizeof address.sun_path);
    memcpy(address.sun_path, path, strlen(path));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0) return fd;
    CHECK(close(fd) == 0);
    return -1;
}

static bool accepts(const char *path)
{
    int fd = try_to_connect(path);
    if (fd >= 0) CHECK(close(fd) == 0);
    return fd >= 0;
}

static void clean(const struct redis_server *server)
{
    (void)unlink(server->path);
    (void)rmdir(server->directory);
}

bool redis_server_start(struct redis_server *server)
{
    int status;
    (void)snprintf(server->directory, sizeof server->directory, "/tmp/belfry-redis-XXXXXX");
    CHECK(mkdtemp(server->directory) != NULL);
    (void)snprintf(server->path, sizeof server->path, "%s/socket", server->directory);
    server->pid = fork();
    CHECK(server->pid >= 0);
    if (server->pid == 0) run(server);
    while (!accepts(server->path)) {
        if (waitpid(server->pid, &status, WNOHANG) == server->pid) {
            clean(server);
            CHECK(WIFEXITED(status) && WEXITSTATUS(status) == NO_PROGRAM);
            return false;
        }
        (void)poll(NULL, 0, STEP_MS); /* until the socket is there */
    }
    return true;
}

void redis_server_stop(struct redis_server *server)
{
    int status;
    CHECK(kill(server->pid, SIGKILL) == 0);
    CHECK(waitpid(server->pid, &status, 0) == server->pid);
    clean(server);
}

/* Reads a reply: a text with its length, or a line. */
void redis_server_ask(const struct redis_server *server, const char *line, char *out, size_t room)
{
    size_t count = 0, wanted = SIZE_MAX;
    int fd = try_to_connect(server->path), head = 0;
    char command[256];
    CHECK(fd >= 0);
    int bytes = snprintf(command, sizeof command, "%s\r\n", line);
    CHECK(send(fd, command, (size_t)bytes, MSG_NOSIGNAL) == bytes);
    while (count < wanted) {
        CHECK(count < room - 1);
        ssize_t got = recv(fd, out + count, room - 1 - count, 0);
        CHECK(got > 0);
        count += (size_t)got;
        out[count] = 0;
        const char *end = strstr(out, "\r\n");
        if (wanted != SIZE_MAX || end == NULL) continue;
        head = (int)(end - out) + 2;
        wanted = out[0] == '$' ? (size_t)head + strtoul(out + 1, NULL, 10) + 2 : (size_t)head;
        if (out[0] != '$') head = 1;
    }
    CHECK(close(fd) == 0);
    memmove(out, out + head, count - (size_t)head + 1);
}

unsigned long redis_server_calls(const struct redis_server *server, const char *command)
{
    static char text[64 << 10];
    char name[64];
    redis_server_ask(server, "INFO commandstats", text, sizeof text);
    (void)snprintf(name, sizeof name, "cmdstat_%s:calls=", command);
    const char *found = strstr(text, name);
    return found == NULL ? 0 : strtoul(found + strlen(name), NULL, 10);
}
