/* SPDX-License-Identifier: MIT */

/*
 * A zone is read when it is first requested, and kept. Two lists contain it:
 *
 *     current   by name, the results of bel_zones_find()
 *     kept      all zones ever read, because callers may still use them
 *
 * Files are read under the lock: finding a zone is rare, and using it needs no lock.
 *
 * A file has changed if its stamp has. Stamps are those of the targets of symbolic links, so a
 * changed link is detected too. A file that was only touched yields the same zone; then the old
 * zone remains, so that an update of all files does not replace unchanged zones.
 *
 * Names come from users and become paths. A name consists of components between slashes, none of
 * which is empty or begins with a dot, so that no name refers to a parent directory or a hidden
 * file.
 */
#include "core/map.h"
#include "plan/zone.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SYSTEM_FOLDER "/usr/share/zoneinfo"

enum {
    FILE_BYTES_MAX = 1 << 20, /* the largest real files have 4 KB */
};

/* Identifies a version of a file. */
struct stamp {
    dev_t device;
    ino_t inode;
    off_t bytes;
    struct timespec modified;
};

struct kept_zone {
    struct kept_zone *next;
    struct bel_zone *zone;
    struct stamp stamp;
};

struct bel_zones {
    pthread_mutex_t lock;   /* guards the next three */
    struct bel_map current; /* names to struct kept_zone */
    struct kept_zone *kept;
    int changed_count; /* found by a reload that failed, and not yet reported */
    char folder[];
};

static struct stamp stamp_of(const struct stat *status)
{
    return (struct stamp){status->st_dev, status->st_ino, status->st_size, status->st_mtim};
}

static bool is_same_stamp(const struct stamp *a, const struct stamp *b)
{
    return a->device == b->device && a->inode == b->inode && a->bytes == b->bytes &&
           a->modified.tv_sec == b->modified.tv_sec && a->modified.tv_nsec == b->modified.tv_nsec;
}

static bool is_valid_name(const char *name, size_t bytes)
{
    if (bytes == 0 || bytes > BEL_ZONE_NAME_MAX) return false;
    bool at_start = true; /* of a component */
    for (size_t i = 0; i < bytes; i++) {
        if (name[i] == '\0' || (at_start && (name[i] == '/' || name[i] == '.'))) return false;
        at_start = name[i] == '/';
    }
    return !at_start;
}

/* Converts an errno value of reading a zone. */
static int error_of(int system_error)
{
    switch (system_error) {
    case ENOENT:
    case ENOTDIR:
    case ELOOP:
    case ENAMETOOLONG:
        return BEL_EINVAL;
    case ENOMEM:
        return BEL_ENOMEM;
    default:
        return BEL_EIO;
    }
}

/* Reads to the end of a file or of the memory. Returns the number of bytes, or -1. */
static ssize_t read_all(int fd, uint8_t *memory, size_t bytes)
{
    size_t done = 0;
    while (done < bytes) {
        ssize_t got = read(fd, memory + done, bytes - done);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return -1;
        if (got == 0) break;
        done += (size_t)got;
    }
    return (ssize_t)done;
}

/* Creates a zone from an open file. Returns BEL_EIO if the file changes meanwhile. */
static int load_file(int fd, const char *name, struct kept_zone *out)
{
    struct stat before, after;
    if (fstat(fd, &before) != 0) return error_of(errno);
    if (!S_ISREG(before.st_mode)) return BEL_EINVAL;
    out->stamp = stamp_of(&before);
    if (before.st_size > FILE_BYTES_MAX) return BEL_ECORRUPT;

    size_t room = (size_t)before.st_size + 1;
    uint8_t *data = malloc(room);
    if (data == NULL) return BEL_ENOMEM;
    ssize_t bytes = read_all(fd, data, room);
    int err = BEL_EIO;
    if (bytes == before.st_size && fstat(fd, &after) == 0) {
        struct stamp stamp = stamp_of(&after);
        bool calm = is_same_stamp(&stamp, &out->stamp);
        err = calm ? bel__zone_parse(name, data, (size_t)bytes, &out->zone) : BEL_EIO;
    }
    free(data);
    return err;
}

/* Returns the path of a zone's file, which the caller frees, or NULL. */
static char *path_of(const struct bel_zones *zones, const char *name)
{
    size_t folder_bytes = strlen(zones->folder), name_bytes = strlen(name);
    char *path = malloc(folder_bytes + 1 + name_bytes + 1);
    if (path == NULL) return NULL;
    memcpy(path, zones->folder, folder_bytes);
    path[folder_bytes] = '/';
    memcpy(path + folder_bytes + 1, name, name_bytes + 1);
    return path;
}

/* Reads a zone. The stamp is set if the file exists, even if it is damaged. */
static int load(const char *path, const char *name, struct kept_zone *out)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0) return error_of(errno);
    int err = load_file(fd, name, out);
    (void)close(fd);
    return err;
}

/* Keeps a zone and makes it the current one of its name. On failure the caller still owns it. */
static int keep(struct bel_zones *zones, const struct kept_zone *loaded)
{
    assert(loaded->zone != NULL);
    struct kept_zone *kept = malloc(sizeof *kept);
    if (kept == NULL) return BEL_ENOMEM;
    const char *name = loaded->zone->name;
    int err = bel__map_put(&zones->current, name, strlen(name), (uintptr_t)kept);
    if (err) {
        free(kept);
        return err == BEL_EFULL ? BEL_ENOMEM : err;
    }
    *kept = *loaded;
    kept->next = zones->kept;
    zones->kept = kept;
    return 0;
}

static int load_and_keep(struct bel_zones *zones, const char *name, const struct bel_zone **out)
{
    struct kept_zone loaded = {0};
    char *path = path_of(zones, name);
    if (path == NULL) return BEL_ENOMEM;
    int err = load(path, name, &loaded);
    free(path);
    if (err) return err;
    err = keep(zones, &loaded);
    if (err) {
        bel__zone_destroy(loaded.zone);
        return err;
    }
    *out = loaded.zone;
    return 0;
}

int bel_zones_open(const char *folder, struct bel_zones **out)
{
    assert(out != NULL);
    struct stat status;
    if (folder == NULL) folder = SYSTEM_FOLDER;
    if (stat(folder, &status) != 0 || !S_ISDIR(status.st_mode)) return BEL_EIO;

    size_t folder_bytes = strlen(folder) + 1;
    struct bel_zones *zones = malloc(sizeof *zones + folder_bytes);
    if (zones == NULL) return BEL_ENOMEM;
    *zones = (struct bel_zones){.kept = NULL};
    memcpy(zones->folder, folder, folder_bytes);
    /* No secret is needed: there are only as many names as files. */
    bel__map_init(&zones->current, (struct bel_siphash_key){{0}});
    if (pthread_mutex_init(&zones->lock, NULL) != 0) {
        free(zones);
        return BEL_ENOMEM;
    }
    *out = zones;
    return 0;
}

void bel_zones_close(struct bel_zones *zones)
{
    if (zones == NULL) return;
    bel__map_finish(&zones->current);
    for (struct kept_zone *kept = zones->kept, *next; kept != NULL; kept = next) {
        next = kept->next;
        bel__zone_destroy(kept->zone);
        free(kept);
    }
    (void)pthread_mutex_destroy(&zones->lock);
    free(zones);
}

int bel_zones_find(struct bel_zones *zones, const char *name, size_t bytes,
                   const struct bel_zone **out)
{
    assert(zones != NULL && out != NULL);
    char copy[BEL_ZONE_NAME_MAX + 1] = {0};
    if (!is_valid_name(name, bytes)) return BEL_EINVAL;
    memcpy(copy, name, bytes);
    if (strcmp(copy, "UTC") == 0) {
        *out = bel_zone_utc();
        return 0;
    }

    int err = 0;
    (void)pthread_mutex_lock(&zones->lock);
    const uint64_t *found = bel__map_find(&zones->current, copy, bytes);
    if (found != NULL) {
        *out = ((const struct kept_zone *)(uintptr_t)*found)->zone;
    } else {
        err = load_and_keep(zones, copy, out);
    }
    (void)pthread_mutex_unlock(&zones->lock);
    return err;
}

/* Rereads the file of a zone if it has changed. */
static int reload_one(struct bel_zones *zones, struct kept_zone *old, const char *path)
{
    struct stat status;
    struct kept_zone loaded = {0};
    if (stat(path, &status) == 0) {
        struct stamp stamp = stamp_of(&status);
        if (is_same_stamp(&stamp, &old->stamp)) return 0;
    }
    const char *name = old->zone->name;
    int err = load(path, name, &loaded);
    if (err == BEL_EINVAL) { /* the file does not exist any more */
        zones->changed_count += bel__map_remove(&zones->current, name, strlen(name), NULL);
        return 0;
    }
    if (err == BEL_ECORRUPT) old->stamp = loaded.stamp; /* report it only once */
    if (err) return err;
    if (bel__zone_is_same(old->zone, loaded.zone)) {
        old->stamp = loaded.stamp;
        bel__zone_destroy(loaded.zone);
        return 0;
    }
    err = keep(zones, &loaded);
    if (err) bel__zone_destroy(loaded.zone);
    zones->changed_count += err == 0;
    return err;
}

int bel_zones_reload(struct bel_zones *zones)
{
    assert(zones != NULL);
    int result = 0;
    (void)pthread_mutex_lock(&zones->lock);
    for (uint32_t i = bel__map_count(&zones->current); i-- > 0;) {
        uint64_t value = bel__map_at(&zones->current, i)->value;
        struct kept_zone *old = (struct kept_zone *)(uintptr_t)value;
        char *path = path_of(zones, old->zone->name);
        int err = path == NULL ? BEL_ENOMEM : reload_one(zones, old, path);
        free(path);
        if (result == 0) result = err;
    }
    if (result == 0) {
        result = zones->changed_count;
        zones->changed_count = 0;
    }
    (void)pthread_mutex_unlock(&zones->lock);
    return result;
}
