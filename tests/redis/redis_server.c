/* SPDX-License-Identifier: MIT */
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

static void run(const struct redis_server *server)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (freopen("/dev/null", "w", stdout) == NULL) _exit(1);
    (void)execlp("redis-server", "redis-server", "--port", "0", "--unixsocket", server->path,
                 "--save", "", "--appendonly", "no", "--dir", server->directory, (char *)NULL);
    _exit(errno == ENOENT ? NO_PROGRAM : 1);
}

static bool accepts(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    CHECK(strlen(path) < sizeof address.sun_path);
    memcpy(address.sun_path, path, strlen(path));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0);
    bool is_open = connect(fd, (struct sockaddr *)&address, sizeof address) == 0;
    CHECK(close(fd) == 0);
    return is_open;
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
