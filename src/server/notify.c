/* SPDX-License-Identifier: MIT */

/*
 * The protocol is a single datagram, so the server need not link libsystemd for it.
 */
#include "server/notify.h"

#include "belfry/error.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int bel__notify(const char *state)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    const char *path = getenv("NOTIFY_SOCKET"); /* NOLINT(concurrency-mt-unsafe): nobody sets it */
    if (path == NULL || path[0] == '\0') return 0;
    size_t bytes = strlen(path);
    if (bytes >= sizeof to.sun_path) {
        errno = ENAMETOOLONG;
        return BEL_EIO;
    }
    memcpy(to.sun_path, path, bytes);
    if (path[0] == '@') to.sun_path[0] = '\0'; /* an abstract socket */
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return BEL_EIO;
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + bytes);
    ssize_t sent = sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&to, size);
    int failed = errno;
    (void)close(fd);
    errno = failed;
    return sent >= 0 ? 0 : BEL_EIO;
}
