/* SPDX-License-Identifier: MIT */
#include "server/key_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    KEY_FILE_BYTES_MAX = 1 << 20,
};

/* Reads an open file to its end. Returns the number of bytes, or -1 and sets errno. */
static ssize_t read_all(int fd, char *out, size_t room)
{
    size_t count = 0;
    ssize_t got = 1;
    while (got > 0 && count < room) {
        got = read(fd, out + count, room - count);
        if (got > 0) count += (size_t)got;
    }
    return got < 0 ? -1 : (ssize_t)count;
}

char *bel__file_read(const char *path, size_t bytes_max, unsigned *mode, size_t *bytes)
{
    struct stat about;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return NULL;
    char *text = malloc(bytes_max + 1);
    ssize_t count = -1;
    if (text == NULL) {
        errno = ENOMEM;
    } else if (fstat(fd, &about) == 0) {
        count = read_all(fd, text, bytes_max + 1);
    }
    int failed = errno;
    (void)close(fd);
    if (count < 0) {
        free(text);
        errno = failed;
        return NULL;
    }
    if (mode != NULL) *mode = about.st_mode;
    *bytes = (size_t)count;
    return text;
}

int bel__key_file_read(const char *path, const struct bel_logger *log, struct bel_keys **keys,
                       struct bel_why *why)
{
    unsigned mode;
    size_t bytes;
    struct stat about;
    if (*keys != NULL && stat(path, &about) == 0 && !S_ISREG(about.st_mode)) {
        return bel__why_say(why, BEL_EINVAL, "expected a regular file"); /* a pipe may block */
    }
    char *text = bel__file_read(path, KEY_FILE_BYTES_MAX, &mode, &bytes);
    if (text == NULL) return bel__why_say(why, BEL_EIO, "%s", strerrordesc_np(errno));
    struct bel_view view = {text, bytes};
    int err;
    if (bytes > KEY_FILE_BYTES_MAX) {
        err = bel__why_say(why, BEL_EINVAL, "expected a file of at most 1 MiB");
    } else if ((mode & S_IWOTH) != 0) {
        err = bel__why_say(why, BEL_EINVAL, "writable by everybody; run chmod o-w");
    } else {
        (void)bel__why_say(why, 0, "out of memory");
        err =
            *keys == NULL ? bel__keys_parse(view, keys, why) : bel__keys_replace(*keys, view, why);
    }
    explicit_bzero(text, bytes);
    free(text);
    if (err == 0 && (mode & S_IROTH) != 0) {
        BEL_LOG(log, BEL_LOG_WARN, "the key file is readable by everybody; run chmod o-r",
                BEL_LOG_TEXT("file", path));
    }
    return err;
}
