/* SPDX-License-Identifier: MIT */

/*
 * The functions have the names of the C library's symbols (pwrite64 where a header renames pwrite),
 * and make system calls directly: calling the C library would end up here again.
 */
#include "shim.h"

#include "../check.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

int shim_open(const char *path, int flags, ...) __asm__("open");
int shim_open64(const char *path, int flags, ...) __asm__("open64");
int shim_openat(int folder, const char *path, int flags, ...) __asm__("openat");
int shim_openat64(int folder, const char *path, int flags, ...) __asm__("openat64");
int shim_mkdir(const char *path, mode_t mode) __asm__("mkdir");
ssize_t shim_write(int file, const void *bytes, size_t count) __asm__("write");
ssize_t shim_pwrite(int file, const void *bytes, size_t count, off_t offset) __asm__("pwrite");
ssize_t shim_pwrite64(int file, const void *bytes, size_t count, off_t offset) __asm__("pwrite64");
ssize_t shim_writev(int file, const struct iovec *pieces, int count) __asm__("writev");
int shim_truncate(int file, off_t bytes) __asm__("ftruncate");
int shim_truncate64(int file, off_t bytes) __asm__("ftruncate64");
int shim_fdatasync(int file) __asm__("fdatasync");
int shim_fsync(int file) __asm__("fsync");
int shim_renameat(int from_folder, const char *from, int to_folder,
                  const char *to) __asm__("renameat");
int shim_rename(const char *from, const char *to) __asm__("rename");
int shim_unlinkat(int folder, const char *path, int flags) __asm__("unlinkat");

enum {
    PATH_BYTES = 4096,
    PIECES_BYTES_MAX = 64 << 20,
    META_BYTES = 2 * 4096, /* two pages of LMDB */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char watched[PATH_BYTES]; /* empty: none */
static size_t watched_bytes;
static struct shim_plan plan;
static uint64_t event_count, sync_count;
static bool has_failed;
static struct shim_record record;

static void take_lock(void)
{
    (void)pthread_mutex_lock(&lock);
}

static void give_lock(void)
{
    (void)pthread_mutex_unlock(&lock);
}

/* A process that is forked during a call of another thread must not find the mutex locked. */
__attribute__((constructor)) static void prepare_forks(void)
{
    CHECK(pthread_atfork(take_lock, give_lock, give_lock) == 0);
}

void shim_watch(const char *folder, const struct shim_plan *what)
{
    char parent[PATH_BYTES], real[PATH_BYTES];
    const char *slash = strrchr(folder, '/');
    CHECK(slash != NULL && (size_t)(slash - folder) < sizeof parent);
    (void)snprintf(parent, sizeof parent, "%.*s", (int)(slash - folder), folder);
    CHECK(realpath(parent, real) != NULL);
    CHECK(strlen(real) + strlen(slash) < sizeof watched);
    (void)snprintf(watched, sizeof watched, "%.2000s%.2000s", real, slash);
    watched_bytes = strlen(watched);
    plan = *what;
    event_count = sync_count = 0;
    has_failed = false;
    shim_release_record(&record);
}

void shim_stop(void)
{
    watched[0] = 0;
    watched_bytes = 0;
}

void shim_heal(void)
{
    plan.kill_at = plan.fail_sync_at = plan.full_at = 0;
}

uint64_t shim_event_count(void)
{
    return event_count;
}

bool shim_has_failed(void)
{
    return has_failed;
}

struct shim_record shim_take_record(void)
{
    struct shim_record taken = record;
    record = (struct shim_record){0};
    return taken;
}

void shim_release_record(struct shim_record *what)
{
    for (size_t i = 0; i < what->count; i++) {
        free(what->events[i].data);
    }
    free(what->events);
    *what = (struct shim_record){0};
}

/* --- names of files --- */

/* Sets `out` to the name of a path relative to the folder. Returns false if it is elsewhere. */
static bool name_of_path(const char *path, char out[SHIM_NAME_BYTES])
{
    if (watched_bytes == 0 || strncmp(path, watched, watched_bytes) != 0) return false;
    const char *rest = path + watched_bytes;
    if (rest[0] != 0 && rest[0] != '/') return false;
    if (rest[0] == '/') rest++;
    CHECK(strlen(rest) < SHIM_NAME_BYTES);
    (void)snprintf(out, SHIM_NAME_BYTES, "%s", rest);
    return true;
}

static bool path_of_file(int file, char out[PATH_BYTES])
{
    char link[64];
    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t bytes = readlink(link, out, PATH_BYTES - 1);
    if (bytes < 0) return false;
    out[bytes] = 0;
    return true;
}

static bool name_of_file(int file, char out[SHIM_NAME_BYTES])
{
    char path[PATH_BYTES];
    return watched_bytes > 0 && path_of_file(file, path) && name_of_path(path, out);
}

static bool name_in_folder(int folder, const char *path, char out[SHIM_NAME_BYTES])
{
    char whole[2 * PATH_BYTES] = "";
    if (watched_bytes == 0) return false;
    if (path[0] != '/' && folder != AT_FDCWD) {
        if (!path_of_file(folder, whole)) return false;
        size_t bytes = strlen(whole);
        (void)snprintf(whole + bytes, sizeof whole - bytes, "/%s", path);
    } else {
        (void)snprintf(whole, sizeof whole, "%s", path);
    }
    return name_of_path(whole, out);
}

/* --- events --- */

static struct shim_event *note(enum shim_kind kind, const char *name)
{
    if (!plan.is_recording) return NULL;
    if (record.count == record.room) {
        record.room = 2 * record.room + 64;
        record.events = realloc(record.events, record.room * sizeof *record.events);
        CHECK(record.events != NULL);
    }
    struct shim_event *event = &record.events[record.count++];
    *event = (struct shim_event){.kind = kind};
    (void)snprintf(event->name, sizeof event->name, "%s", name);
    return event;
}

static void note_data(struct shim_event *event, const void *data, size_t bytes)
{
    if (event == NULL) return;
    event->bytes = bytes;
    event->data = malloc(bytes + 1);
    CHECK(event->data != NULL);
    memcpy(event->data, data, bytes);
}

static void die(void)
{
    (void)kill(getpid(), SIGKILL);
    for (;;) {
        (void)pause();
    }
}

/* Counts an event. Returns whether the process is to be killed halfway through it. */
static bool begins_to_die(void)
{
    event_count++;
    if (plan.kill_at == 0 || event_count != plan.kill_at) return false;
    if (plan.when == SHIM_BEFORE) die();
    return true;
}

/* Returns whether the disk is full, and sets errno. Call it after the event was counted. */
static bool is_full(void)
{
    errno = ENOSPC;
    return plan.full_at != 0 && event_count >= plan.full_at;
}

static void count_name_event(void)
{
    if (begins_to_die()) die();
}

void shim_say(const void *data, size_t bytes)
{
    (void)pthread_mutex_lock(&lock);
    note_data(note(SHIM_SAY, ""), data, bytes);
    (void)pthread_mutex_unlock(&lock);
}

/* --- the calls --- */

static int open_counted(int folder, const char *path, int flags, mode_t mode)
{
    struct stat info;
    char name[SHIM_NAME_BYTES];
    bool fails = false;
    (void)pthread_mutex_lock(&lock);
    if ((flags & (O_CREAT | O_TRUNC)) != 0 && name_in_folder(folder, path, name)) {
        bool is_new = fstatat(folder, path, &info, AT_SYMLINK_NOFOLLOW) != 0;
        if (is_new) {
            count_name_event();
            fails = is_full();
            if (!fails) (void)note(SHIM_CREATE, name);
        } else if ((flags & O_TRUNC) != 0) {
            count_name_event();
            (void)note(SHIM_TRUNCATE, name);
        }
    }
    int file = fails ? -1 : (int)syscall(SYS_openat, folder, path, flags, mode);
    (void)pthread_mutex_unlock(&lock);
    return file;
}

#define MODE_OF(flags)                                                                             \
    mode_t mode = 0;                                                                               \
    va_list list;                                                                                  \
    va_start(list, flags);                                                                         \
    if (((flags)&O_CREAT) != 0) mode = va_arg(list, mode_t);                                       \
    va_end(list)

int shim_open(const char *path, int flags, ...)
{
    MODE_OF(flags);
    return open_counted(AT_FDCWD, path, flags, mode);
}

int shim_open64(const char *path, int flags, ...)
{
    MODE_OF(flags);
    return open_counted(AT_FDCWD, path, flags, mode);
}

int shim_openat(int folder, const char *path, int flags, ...)
{
    MODE_OF(flags);
    return open_counted(folder, path, flags, mode);
}

int shim_openat64(int folder, const char *path, int flags, ...)
{
    MODE_OF(flags);
    return open_counted(folder, path, flags, mode);
}

int shim_mkdir(const char *path, mode_t mode)
{
    char name[SHIM_NAME_BYTES];
    (void)pthread_mutex_lock(&lock);
    bool is_ours = name_in_folder(AT_FDCWD, path, name);
    if (is_ours) count_name_event();
    int failed = is_ours && is_full() ? -1 : (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
    if (is_ours && !failed) (void)note(SHIM_FOLDER, name);
    (void)pthread_mutex_unlock(&lock);
    return failed;
}

/* Returns whether a write goes to the two meta pages of the tree, which have their blocks since the
 * tree was made: a full disk has room for it. */
static bool is_of_meta(int file, const char *name, size_t count, off_t offset)
{
    struct stat info;
    return strcmp(name, "tree/data.mdb") == 0 && (uint64_t)offset + count <= META_BYTES &&
           fstat(file, &info) == 0 && info.st_size >= META_BYTES;
}

static ssize_t pwrite_counted(int file, const void *bytes, size_t count, off_t offset)
{
    char name[SHIM_NAME_BYTES];
    (void)pthread_mutex_lock(&lock);
    bool is_ours = name_of_file(file, name);
    if (is_ours && begins_to_die()) {
        size_t half = count / 2 / 512 * 512; /* a multiple of 512, for O_DIRECT */
        if (half == 0 && (fcntl(file, F_GETFL) & O_DIRECT) == 0) half = count / 2;
        (void)syscall(SYS_pwrite64, file, bytes, half, offset);
        die();
    }
    bool fails = is_ours && !is_of_meta(file, name, count, offset) && is_full();
    ssize_t done = fails ? -1 : syscall(SYS_pwrite64, file, bytes, count, offset);
    struct shim_event *event = is_ours && done > 0 ? note(SHIM_WRITE, name) : NULL;
    if (event != NULL) {
        event->offset = (uint64_t)offset;
        event->is_durable = (fcntl(file, F_GETFL) & O_DSYNC) != 0;
        note_data(event, bytes, (size_t)done);
    }
    (void)pthread_mutex_unlock(&lock);
    return done;
}

ssize_t shim_pwrite(int file, const void *bytes, size_t count, off_t offset)
{
    return pwrite_counted(file, bytes, count, offset);
}

ssize_t shim_pwrite64(int file, const void *bytes, size_t count, off_t offset)
{
    return pwrite_counted(file, bytes, count, offset);
}

ssize_t shim_write(int file, const void *bytes, size_t count)
{
    char name[SHIM_NAME_BYTES];
    if (!name_of_file(file, name)) return syscall(SYS_write, file, bytes, count);
    off_t offset = lseek(file, 0, SEEK_CUR);
    ssize_t done = pwrite_counted(file, bytes, count, offset);
    if (done > 0) (void)lseek(file, done, SEEK_CUR);
    return done;
}

ssize_t shim_writev(int file, const struct iovec *pieces, int count)
{
    char name[SHIM_NAME_BYTES];
    if (!name_of_file(file, name)) return syscall(SYS_writev, file, pieces, count);
    size_t bytes = 0;
    for (int i = 0; i < count; i++) {
        bytes += pieces[i].iov_len;
    }
    CHECK(bytes <= PIECES_BYTES_MAX);
    char *whole = malloc(bytes + 1), *at = whole;
    CHECK(whole != NULL);
    for (int i = 0; i < count; i++) {
        memcpy(at, pieces[i].iov_base, pieces[i].iov_len);
        at += pieces[i].iov_len;
    }
    ssize_t done = shim_write(file, whole, bytes);
    free(whole);
    return done;
}

static int truncate_counted(int file, off_t bytes)
{
    char name[SHIM_NAME_BYTES];
    (void)pthread_mutex_lock(&lock);
    bool is_ours = name_of_file(file, name);
    if (is_ours) count_name_event();
    int failed = (int)syscall(SYS_ftruncate, file, bytes);
    struct shim_event *event = is_ours && !failed ? note(SHIM_TRUNCATE, name) : NULL;
    if (event != NULL) event->offset = (uint64_t)bytes;
    (void)pthread_mutex_unlock(&lock);
    return failed;
}

int shim_truncate(int file, off_t bytes)
{
    return truncate_counted(file, bytes);
}

int shim_truncate64(int file, off_t bytes)
{
    return truncate_counted(file, bytes);
}

/* Returns whether this is the sync that is to fail. */
static bool fails_now(const char *name)
{
    bool is_tree = strncmp(name, "tree", 4) == 0;
    if (plan.fail_sync_at == 0 || is_tree != plan.fails_tree) return false;
    if (++sync_count != plan.fail_sync_at) return false;
    has_failed = true;
    return true;
}

static int sync_counted(int file, long number)
{
    char name[SHIM_NAME_BYTES];
    int failed = 0;
    (void)pthread_mutex_lock(&lock);
    bool is_ours = name_of_file(file, name);
    if (is_ours) count_name_event();
    if (is_ours && fails_now(name)) {
        failed = -1;
        errno = EIO;
    } else if (!is_ours || !plan.skips_syncs) {
        failed = (int)syscall(number, file);
    }
    if (is_ours) (void)note(failed ? SHIM_LOSS : SHIM_SYNC, name);
    (void)pthread_mutex_unlock(&lock);
    return failed;
}

int shim_fdatasync(int file)
{
    return sync_counted(file, SYS_fdatasync);
}

int shim_fsync(int file)
{
    return sync_counted(file, SYS_fsync);
}

int shim_renameat(int from_folder, const char *from, int to_folder, const char *to)
{
    char from_name[SHIM_NAME_BYTES], to_name[SHIM_NAME_BYTES];
    (void)pthread_mutex_lock(&lock);
    bool is_ours = name_in_folder(from_folder, from, from_name);
    if (is_ours) {
        CHECK(name_in_folder(to_folder, to, to_name));
        count_name_event();
    }
    int failed = (int)syscall(SYS_renameat2, from_folder, from, to_folder, to, 0);
    struct shim_event *event = is_ours && !failed ? note(SHIM_RENAME, from_name) : NULL;
    if (event != NULL) (void)snprintf(event->to, sizeof event->to, "%s", to_name);
    (void)pthread_mutex_unlock(&lock);
    return failed;
}

int shim_rename(const char *from, const char *to)
{
    return shim_renameat(AT_FDCWD, from, AT_FDCWD, to);
}

int shim_unlinkat(int folder, const char *path, int flags)
{
    char name[SHIM_NAME_BYTES];
    (void)pthread_mutex_lock(&lock);
    struct stat info;
    bool is_ours = name_in_folder(folder, path, name) &&
                   fstatat(folder, path, &info, AT_SYMLINK_NOFOLLOW) == 0;
    if (is_ours) count_name_event();
    int failed = (int)syscall(SYS_unlinkat, folder, path, flags);
    if (is_ours && !failed) (void)note(SHIM_REMOVE, name);
    (void)pthread_mutex_unlock(&lock);
    return failed;
}
