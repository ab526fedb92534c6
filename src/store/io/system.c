/* SPDX-License-Identifier: MIT */

/*
 * Implements struct bel_io with system calls. Calls interrupted by a signal are repeated, short
 * reads and writes are continued. A failed sync is never repeated: the kernel may have dropped the
 * pages that it could not write, and would report success the second time.
 */
#include "store/io/io.h"

#include "belfry/clock.h"
#include "core/why.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

enum {
    MODE_DIRECTORY = 0700,
    MODE_FILE = 0600,
    FILL_BYTES = 1 << 20,
    NAME_BYTES = 24,
};

static const char lock_name[] = "LOCK";
static const char hidden_end[] = ".unfinished";

struct bel_io_file {
    int fd;
    uint64_t bytes; /* the least that the file has, unless somebody else changes it; a file that
                       two threads use does not grow */
    char name[NAME_BYTES]; /* for messages, maybe shortened */
};

struct system_io {
    struct bel_io io;
    int directory, lock; /* descriptors, or -1 */
    bool is_signed;      /* LOCK has our process id */
    char *made_path;     /* of a directory that open_other() has made; or NULL */
    bool is_hidden;      /* made_path ends in `hidden_end`, which appear() removes */

    pthread_mutex_t mutex; /* protects the next */
    struct bel_why failure;
};

static_assert(offsetof(struct system_io, io) == 0, "a bel_io can be cast to a system_io");

static struct system_io *of(struct bel_io *io)
{
    return (struct system_io *)io;
}

static int code_of(int number)
{
    switch (number) {
    case ENOENT:
        return BEL_ENOTFOUND;
    case ENOSPC:
    case EDQUOT:
        return BEL_EFULL;
    case ENOMEM:
        return BEL_ENOMEM;
    default:
        return BEL_EIO;
    }
}

static int open_at(int directory, const char *name, int flags)
{
    for (;;) {
        int fd = openat(directory, name, flags | O_CLOEXEC, MODE_FILE);
        if (fd >= 0 || errno != EINTR) return fd;
    }
}

static int sync_fd(int fd, bool is_data)
{
    for (;;) {
        if ((is_data ? fdatasync(fd) : fsync(fd)) == 0) return 0;
        if (errno != EINTR) return code_of(errno);
    }
}

/* Takes the flock() of a file or directory. Returns 0, BEL_EBUSY or an error. */
static int take_flock(int fd)
{
    for (;;) {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0) return 0;
        if (errno == EINTR) continue;
        return errno == EWOULDBLOCK ? BEL_EBUSY : code_of(errno);
    }
}

static void unlock(struct bel_io *io)
{
    struct system_io *self = of(io);
    if (self->lock >= 0) {
        if (self->is_signed) (void)!ftruncate(self->lock, 0); /* the id is of no use any more */
        (void)flock(self->lock, LOCK_UN); /* a forked process may have the descriptor, too */
        (void)close(self->lock);
    }
    self->lock = -1;
    self->is_signed = false;
    (void)flock(self->directory, LOCK_UN);
}

/* Opens and locks LOCK. */
static int lock_file(struct system_io *self, int flags)
{
    int fd = open_at(self->directory, lock_name, flags);
    if (fd < 0) return code_of(errno);
    int err = take_flock(fd);
    if (err) {
        (void)close(fd);
        return err;
    }
    self->lock = fd;
    return 0;
}

/* LOCK can be deleted and created anew, the directory cannot: its lock is the one that counts. File
 * systems that cannot lock a directory (NFS) have LOCK alone. */
static int lock(struct bel_io *io)
{
    struct system_io *self = of(io);
    assert(self->lock < 0);
    int err = take_flock(self->directory);
    if (err == BEL_EBUSY) return err;
    err = lock_file(self, O_RDONLY); /* of a process with an earlier version */
    if (err == BEL_ENOTFOUND) return 0;
    if (err) unlock(io);
    return err;
}

/* The id is for a message. A full disk, which cannot take it, is no reason to fail. */
static int sign(struct bel_io *io)
{
    struct system_io *self = of(io);
    char text[32];
    if (self->lock >= 0) { /* opened for reading */
        (void)close(self->lock);
        self->lock = -1;
    }
    int err = lock_file(self, O_RDWR | O_CREAT);
    if (err) return err;
    int bytes = snprintf(text, sizeof text, "%ld\n", (long)getpid());
    self->is_signed = pwrite(self->lock, text, (size_t)bytes, 0) == bytes;
    (void)!ftruncate(self->lock, self->is_signed ? bytes : 0);
    return 0;
}

/* Looks for the lock of a directory in the kernel's list. */
static uint64_t find_locker(int directory)
{
    char line[128];
    struct stat info;
    unsigned long long pid = 0, inode;
    unsigned major_number, minor_number;
    FILE *list = fstat(directory, &info) == 0 ? fopen("/proc/locks", "re") : NULL;
    if (list == NULL) return 0;
    while (pid == 0 && fgets(line, sizeof line, list) != NULL) {
        if (sscanf(line, "%*u: FLOCK %*s %*s %llu %x:%x:%llu", &pid, &major_number, &minor_number,
                   &inode) != 4 ||
            inode != info.st_ino || makedev(major_number, minor_number) != info.st_dev) {
            pid = 0;
        }
    }
    (void)fclose(list);
    return pid;
}

/* The kernel knows best, but may number devices otherwise (overlayfs, btrfs). */
static uint64_t holder(struct bel_io *io)
{
    char text[32] = "";
    int directory = of(io)->directory;
    uint64_t pid = find_locker(directory);
    int fd = pid != 0 ? -1 : open_at(directory, lock_name, O_RDONLY);
    if (fd < 0) return pid;
    ssize_t bytes = pread(fd, text, sizeof text - 1, 0);
    (void)close(fd);
    return bytes > 0 ? strtoull(text, NULL, 10) : 0;
}

/* Notes that an operation on a file has failed, and returns `err`. */
static int note_failure(struct bel_io *io, const struct bel_io_file *file, int err,
                        const char *what)
{
    struct system_io *self = of(io);
    if (err != BEL_EIO) return err;
    (void)pthread_mutex_lock(&self->mutex);
    if (self->failure.text[0] == 0) {
        (void)bel__why_system(&self->failure, err, file->name, what);
    }
    (void)pthread_mutex_unlock(&self->mutex);
    return err;
}

/* The text does not change once it is there. */
static const char *failure(struct bel_io *io)
{
    struct system_io *self = of(io);
    (void)pthread_mutex_lock(&self->mutex);
    const char *text = self->failure.text[0] != 0 ? self->failure.text : "";
    (void)pthread_mutex_unlock(&self->mutex);
    return text;
}

static int open_file(struct bel_io *io, const char *name, unsigned how, struct bel_io_file **out)
{
    int flags = O_RDWR | O_NOFOLLOW;
    if (how & BEL_IO_CREATE) flags |= O_CREAT | O_TRUNC;
    if (how & BEL_IO_DIRECT) flags |= O_DIRECT;
    struct bel_io_file *file = malloc(sizeof *file);
    if (file == NULL) return BEL_ENOMEM;
    file->fd = open_at(of(io)->directory, name, flags);
    if (file->fd < 0) {
        bool is_refused = (how & BEL_IO_DIRECT) && errno == EINVAL;
        int err = is_refused ? BEL_EUNSUPPORTED : code_of(errno);
        free(file);
        return err;
    }
    struct stat info;
    file->bytes = fstat(file->fd, &info) == 0 ? (uint64_t)info.st_size : 0;
    (void)snprintf(file->name, sizeof file->name, "%.*s", NAME_BYTES - 1, name);
    *out = file;
    return 0;
}

static void close_file(struct bel_io *io, struct bel_io_file *file)
{
    (void)io;
    (void)close(file->fd);
    free(file);
}

static int size_of(struct bel_io *io, struct bel_io_file *file, uint64_t *out)
{
    struct stat info;
    (void)io;
    if (fstat(file->fd, &info) != 0) return code_of(errno);
    *out = (uint64_t)info.st_size;
    return 0;
}

static int read_file(struct bel_io *io, struct bel_io_file *file, uint64_t offset, void *out,
                     size_t bytes)
{
    (void)io;
    for (size_t done = 0; done < bytes;) {
        ssize_t count = pread(file->fd, (char *)out + done, bytes - done, (off_t)(offset + done));
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return code_of(errno);
        if (count == 0) { /* end of file */
            errno = ENODATA;
            return BEL_EIO;
        }
        done += (size_t)count;
    }
    return 0;
}

static int write_file(struct bel_io *io, struct bel_io_file *file, uint64_t offset,
                      const void *data, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t count =
            pwrite(file->fd, (const char *)data + done, bytes - done, (off_t)(offset + done));
        if (count < 0 && errno == EINTR) continue;
        if (count == 0) errno = EIO;
        if (count <= 0) return note_failure(io, file, code_of(errno), "written");
        done += (size_t)count;
    }
    if (offset + bytes > file->bytes) file->bytes = offset + bytes;
    return 0;
}

static int fill(struct bel_io *io, struct bel_io_file *file, uint64_t offset, uint64_t bytes)
{
    void *zeros = aligned_alloc(BEL_IO_BLOCK, FILL_BYTES);
    if (zeros == NULL) return BEL_ENOMEM;
    memset(zeros, 0, FILL_BYTES);
    int err = 0;
    for (uint64_t done = 0; done < bytes && err == 0;) {
        uint64_t part = bytes - done < FILL_BYTES ? bytes - done : FILL_BYTES;
        err = write_file(io, file, offset + done, zeros, part);
        done += part;
    }
    free(zeros);
    return err;
}

/* Notes that somebody else has deleted a file or made it shorter, which has lost bytes that were
 * synced. A later write only makes the file longer again, with a hole. */
static int check_whole(struct bel_io *io, const struct bel_io_file *file)
{
    struct system_io *self = of(io);
    struct stat info;
    if (fstat(file->fd, &info) != 0) return note_failure(io, file, code_of(errno), "measured");
    uint64_t bytes = (uint64_t)info.st_size;
    if (info.st_nlink > 0 && bytes >= file->bytes) return 0;
    (void)pthread_mutex_lock(&self->mutex);
    if (self->failure.text[0] == 0 && info.st_nlink == 0) {
        (void)bel__why_say(&self->failure, 0, "%s was deleted by another process", file->name);
    } else if (self->failure.text[0] == 0) {
        (void)bel__why_say(&self->failure, 0,
                           "%s was changed by another process: it has %llu bytes instead of %llu",
                           file->name, (unsigned long long)bytes, (unsigned long long)file->bytes);
    }
    (void)pthread_mutex_unlock(&self->mutex);
    return BEL_EIO;
}

static int sync_file(struct bel_io *io, struct bel_io_file *file)
{
    int err = sync_fd(file->fd, true);
    return err ? note_failure(io, file, err, "synced") : check_whole(io, file);
}

static int rename_file(struct bel_io *io, const char *from, const char *to)
{
    int directory = of(io)->directory;
    return renameat(directory, from, directory, to) == 0 ? 0 : code_of(errno);
}

static int remove_file(struct bel_io *io, const char *name)
{
    return unlinkat(of(io)->directory, name, 0) == 0 ? 0 : code_of(errno);
}

static int sync_directory(struct bel_io *io)
{
    return sync_fd(of(io)->directory, false);
}

static int list(struct bel_io *io, bel_io_see *see, void *context)
{
    int fd = open_at(of(io)->directory, ".", O_RDONLY | O_DIRECTORY);
    if (fd < 0) return code_of(errno);
    DIR *directory = fdopendir(fd);
    if (directory == NULL) {
        int err = code_of(errno);
        (void)close(fd);
        return err;
    }
    for (;;) {
        errno = 0;
        struct dirent *entry = readdir(directory); /* NOLINT(concurrency-mt-unsafe): ours alone */
        if (entry == NULL) break;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        see(context, entry->d_name);
    }
    int err = errno == 0 ? 0 : code_of(errno);
    (void)closedir(directory);
    return err;
}

static int free_bytes(struct bel_io *io, uint64_t *out)
{
    struct statvfs info;
    if (fstatvfs(of(io)->directory, &info) != 0) return code_of(errno);
    *out = (uint64_t)info.f_bavail * info.f_frsize;
    return 0;
}

static uint64_t mono_ns(struct bel_io *io)
{
    (void)io;
    return bel_clock_mono(bel_clock_system()).ns;
}

static void pause_for(struct bel_io *io, uint64_t ns)
{
    struct timespec left = {.tv_sec = (time_t)(ns / 1000000000),
                            .tv_nsec = (long)(ns % 1000000000)};
    (void)io;
    while (nanosleep(&left, &left) != 0 && errno == EINTR) {}
}

static void destroy(struct bel_io *io)
{
    struct system_io *self = of(io);
    unlock(io);
    if (self->directory >= 0) (void)close(self->directory);
    if (self->made_path != NULL) (void)!rmdir(self->made_path); /* fails unless it is empty */
    (void)pthread_mutex_destroy(&self->mutex);
    free(self->made_path);
    free(self);
}

/* Returns a copy of a path with an end, and without slashes before that. */
static char *copy_path(const char *path, const char *end)
{
    size_t bytes = strlen(path), size = bytes + strlen(end) + 1;
    char *copy = malloc(size);
    while (bytes > 1 && path[bytes - 1] == '/') {
        bytes--;
    }
    if (copy != NULL) (void)snprintf(copy, size, "%.*s%s", (int)bytes, path, end);
    return copy;
}

static int sync_parent(const char *path)
{
    char *copy = copy_path(path, "");
    if (copy == NULL) return BEL_ENOMEM;
    char *slash = strrchr(copy, '/');
    if (slash != NULL) slash[slash == copy] = 0;
    int fd = open_at(AT_FDCWD, slash == NULL ? "." : copy, O_RDONLY | O_DIRECTORY);
    int err = fd < 0 ? code_of(errno) : sync_fd(fd, false);
    if (fd >= 0) (void)close(fd);
    free(copy);
    return err;
}

/* Creates the directory, unless it exists, and syncs its parent. Sets `*out_is_made`. */
static int make_directory(const char *path, bool *out_is_made)
{
    *out_is_made = mkdir(path, MODE_DIRECTORY) == 0;
    if (!*out_is_made) return errno == EEXIST ? 0 : code_of(errno);
    return sync_parent(path);
}

static int appear(struct bel_io *io)
{
    struct system_io *self = of(io);
    if (!self->is_hidden) return 0;
    char *path = copy_path(self->made_path, "");
    if (path == NULL) return BEL_ENOMEM;
    path[strlen(path) - strlen(hidden_end)] = 0;
    int err = rename(self->made_path, path) == 0 ? 0 : code_of(errno);
    if (err) {
        free(path);
        return err == BEL_ENOTFOUND ? BEL_EIO : err;
    }
    free(self->made_path);
    self->made_path = path;
    self->is_hidden = false;
    return sync_parent(path);
}

static int open_hidden(struct bel_io *io, const char *path, struct bel_io **out);
static int open_other(struct bel_io *io, const char *path, struct bel_io **out);

/* Opens a directory. Sets `*out_is_made` to whether it did not exist before. */
static int open_system(const char *path, struct bel_io **out, bool *out_is_made)
{
    static const struct bel_io door = {
        .lock = lock,
        .unlock = unlock,
        .sign = sign,
        .holder = holder,
        .open = open_file,
        .close = close_file,
        .size = size_of,
        .read = read_file,
        .write = write_file,
        .fill = fill,
        .sync = sync_file,
        .rename = rename_file,
        .remove = remove_file,
        .sync_directory = sync_directory,
        .list = list,
        .free_bytes = free_bytes,
        .mono_ns = mono_ns,
        .pause = pause_for,
        .failure = failure,
        .open_other = open_other,
        .open_hidden = open_hidden,
        .appear = appear,
        .destroy = destroy,
    };
    int err = make_directory(path, out_is_made);
    if (err == BEL_ENOTFOUND) err = BEL_EIO; /* the parent directory does not exist */
    if (err) return err;
    struct system_io *self = malloc(sizeof *self);
    if (self == NULL) return BEL_ENOMEM;
    *self = (struct system_io){.io = door, .lock = -1, .mutex = PTHREAD_MUTEX_INITIALIZER};
    self->directory = open_at(AT_FDCWD, path, O_RDONLY | O_DIRECTORY);
    if (self->directory < 0) {
        err = errno == ENOMEM ? BEL_ENOMEM : BEL_EIO;
        free(self);
        return err;
    }
    *out = &self->io;
    return 0;
}

int bel__io_system_open(const char *path, struct bel_io **out)
{
    bool is_made;
    return open_system(path, out, &is_made);
}

static int open_other(struct bel_io *io, const char *path, struct bel_io **out)
{
    bool is_made = false;
    (void)io;
    int err = open_system(path, out, &is_made);
    if (err != 0 || !is_made) return err;
    of(*out)->made_path = strdup(path); /* without memory, an empty directory may stay */
    return 0;
}

static int open_hidden(struct bel_io *io, const char *path, struct bel_io **out)
{
    struct stat info;
    bool is_made;
    if (stat(path, &info) == 0 || errno != ENOENT) return open_other(io, path, out);
    char *hidden = copy_path(path, hidden_end);
    if (hidden == NULL) return BEL_ENOMEM;
    int err = open_system(hidden, out, &is_made);
    if (err) {
        free(hidden);
        return err;
    }
    of(*out)->made_path = hidden;
    of(*out)->is_hidden = true;
    return 0;
}
