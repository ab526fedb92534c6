/* SPDX-License-Identifier: MIT */

/*
 * A file is two arrays, cache and platter, and the list of sectors that were written since the
 * last sync, each with what was in the cache right after the write. Putting any selection of
 * them on the platter, in order, gives every mixture of old and new.
 *
 * Names are a table from names to files; the table on the platter is brought up to date from a
 * list of changes in the same way, but as a journal does it: the first ones, without a gap.
 */
#include "disk.h"

#include "../random.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    FILES_MAX = 2048, /* that there have ever been */
    NAMES_MAX = 512,
    CHANGES_MAX = 2000,
    NAME_BYTES = 24,
    HANDLES_MAX = 160,
};

struct sector {
    size_t offset;
    uint8_t bytes[DISK_SECTOR];
};

struct file {
    uint8_t *cache, *platter;
    size_t size, platter_size, capacity; /* capacity is that of both */
    struct sector *sectors;
    size_t sector_count, sector_capacity;
};

struct names {
    char names[NAMES_MAX][NAME_BYTES];
    int files[NAMES_MAX]; /* which one, or -1 */
};

/* A name that gets another file, or none. */
struct change {
    char name[NAME_BYTES];
    int file;
};

struct bel_io_file {
    struct disk *disk;
    int file;
    bool is_direct, is_open;
};

struct disk {
    struct bel_io io;
    struct disk_plan plan;
    uint64_t random_state;
    uint64_t operation_count;
    bool is_down, is_locked;
    struct file files[FILES_MAX];
    int file_count;
    struct names names, platter_names;
    struct change changes[CHANGES_MAX];
    int change_count;
    struct bel_io_file handles[HANDLES_MAX];
    struct disk *other; /* of backups; borrowed, or NULL */
};

static struct disk *of(struct bel_io *io)
{
    return (struct disk *)io;
}

static void *allocate(void *old, size_t bytes)
{
    void *memory = reallocarray(old, bytes, 1); /* not by a function that tests let fail */
    if (memory == NULL) abort();
    return memory;
}

static int fail(int number, int err)
{
    errno = number;
    return err;
}

/* Counts down to something that is planned. True if this is it. */
static bool is_time(uint64_t *left)
{
    return *left > 0 && --*left == 0;
}

bool disk_step(struct disk *disk, bool *out_is_done)
{
    *out_is_done = false;
    if (disk->is_down) return false;
    disk->operation_count++;
    if (!is_time(&disk->plan.crash_in)) {
        *out_is_done = true;
        return true;
    }
    disk->is_down = true;
    *out_is_done = random_below(&disk->random_state, 2) == 0;
    return false;
}

static int find_name(const struct names *names, const char *name)
{
    for (int i = 0; i < NAMES_MAX; i++) {
        if (names->files[i] >= 0 && strcmp(names->names[i], name) == 0) return i;
    }
    return -1;
}

static void set_name(struct names *names, const char *name, int file)
{
    int at = find_name(names, name);
    for (int i = 0; at < 0; i++) {
        assert(i < NAMES_MAX);
        if (names->files[i] < 0) at = i;
    }
    assert(strlen(name) < NAME_BYTES);
    memcpy(names->names[at], name, strlen(name) + 1);
    names->files[at] = file;
}

static void change_name(struct disk *disk, const char *name, int file)
{
    set_name(&disk->names, name, file);
    assert(disk->change_count < CHANGES_MAX);
    struct change *change = &disk->changes[disk->change_count++];
    memcpy(change->name, name, strlen(name) + 1);
    change->file = file;
}

static int lock(struct bel_io *io)
{
    struct disk *disk = of(io);
    if (disk->is_down) return fail(EIO, BEL_EIO);
    if (disk->is_locked) return BEL_EBUSY;
    disk->is_locked = true;
    return 0;
}

static void unlock(struct bel_io *io)
{
    of(io)->is_locked = false;
}

static int new_handle(struct disk *disk, int file, bool is_direct, struct bel_io_file **out)
{
    for (int i = 0; i < HANDLES_MAX; i++) {
        if (disk->handles[i].is_open) continue;
        disk->handles[i] = (struct bel_io_file){disk, file, is_direct, true};
        *out = &disk->handles[i];
        return 0;
    }
    return fail(EMFILE, BEL_EIO);
}

static int open_file(struct bel_io *io, const char *name, unsigned how, struct bel_io_file **out)
{
    struct disk *disk = of(io);
    bool is_done;
    if (disk->is_down) return fail(EIO, BEL_EIO);
    bool is_direct = (how & BEL_IO_DIRECT) != 0;
    if (is_direct && !disk->plan.has_direct) return fail(EINVAL, BEL_EUNSUPPORTED);
    int at = find_name(&disk->names, name);
    if (at < 0 && !(how & BEL_IO_CREATE)) return fail(ENOENT, BEL_ENOTFOUND);
    if (at >= 0 && !(how & BEL_IO_CREATE)) {
        return new_handle(disk, disk->names.files[at], is_direct, out);
    }
    bool is_up = disk_step(disk, &is_done);
    if (is_done) { /* a new file even if one was there: as good as truncating */
        assert(disk->file_count < FILES_MAX);
        disk->files[disk->file_count] = (struct file){0};
        change_name(disk, name, disk->file_count++);
    }
    if (!is_up) return fail(EIO, BEL_EIO);
    return new_handle(disk, disk->file_count - 1, is_direct, out);
}

static void close_file(struct bel_io *io, struct bel_io_file *handle)
{
    (void)io;
    handle->is_open = false;
}

static int size_of(struct bel_io *io, struct bel_io_file *handle, uint64_t *out)
{
    struct disk *disk = of(io);
    if (disk->is_down) return fail(EIO, BEL_EIO);
    *out = disk->files[handle->file].size;
    return 0;
}

static int read_file(struct bel_io *io, struct bel_io_file *handle, uint64_t offset, void *out,
                     size_t bytes)
{
    struct disk *disk = of(io);
    const struct file *file = &disk->files[handle->file];
    assert(handle->is_open);
    assert(!handle->is_direct || (offset % BEL_IO_BLOCK == 0 && bytes % BEL_IO_BLOCK == 0 &&
                                  (uintptr_t)out % BEL_IO_BLOCK == 0));
    if (disk->is_down) return fail(EIO, BEL_EIO);
    if (offset > file->size || bytes > file->size - offset) return fail(ENODATA, BEL_EIO);
    if (bytes > 0) memcpy(out, file->cache + offset, bytes); /* an empty file has no cache */
    return 0;
}

static void grow(struct file *file, size_t size)
{
    if (size > file->capacity) {
        size_t capacity = (size + DISK_SECTOR - 1) / DISK_SECTOR * DISK_SECTOR;
        file->cache = allocate(file->cache, capacity);
        file->platter = allocate(file->platter, capacity);
        memset(file->cache + file->capacity, 0, capacity - file->capacity);
        memset(file->platter + file->capacity, 0, capacity - file->capacity);
        file->capacity = capacity;
    }
    if (size > file->size) file->size = size;
}

static void note_sector(struct file *file, size_t offset)
{
    if (file->sector_count == file->sector_capacity) {
        file->sector_capacity = 2 * file->sector_capacity + 16;
        file->sectors = allocate(file->sectors, file->sector_capacity * sizeof *file->sectors);
    }
    struct sector *sector = &file->sectors[file->sector_count++];
    sector->offset = offset;
    memcpy(sector->bytes, file->cache + offset, DISK_SECTOR);
}

static void put_sector(struct file *file, const struct sector *sector)
{
    size_t end = sector->offset + DISK_SECTOR;
    memcpy(file->platter + sector->offset, sector->bytes, DISK_SECTOR);
    if (end > file->size) end = file->size;
    if (end > file->platter_size) file->platter_size = end;
}

/* Puts the first sectors of the list on the platter, each with a chance of `in_8` in 8. */
static void put_some(struct disk *disk, struct file *file, uint64_t in_8)
{
    for (size_t i = 0; i < file->sector_count; i++) {
        if (random_below(&disk->random_state, 8) < in_8) put_sector(file, &file->sectors[i]);
    }
    file->sector_count = 0;
}

static int write_file(struct bel_io *io, struct bel_io_file *handle, uint64_t offset,
                      const void *data, size_t bytes)
{
    struct disk *disk = of(io);
    struct file *file = &disk->files[handle->file];
    bool is_done;
    assert(handle->is_open);
    assert(!handle->is_direct || (offset % BEL_IO_BLOCK == 0 && bytes % BEL_IO_BLOCK == 0 &&
                                  (uintptr_t)data % BEL_IO_BLOCK == 0));
    bool is_up = disk_step(disk, &is_done);
    if (!is_up && !is_done) return fail(EIO, BEL_EIO);
    if (is_time(&disk->plan.fail_write_in)) return fail(EIO, BEL_EIO);
    if (offset + bytes > file->size) {
        size_t more = offset + bytes - file->size;
        if (more > disk->plan.free_bytes) return fail(ENOSPC, BEL_EFULL);
        disk->plan.free_bytes -= more;
    }
    grow(file, offset + bytes);
    memcpy(file->cache + offset, data, bytes);
    for (size_t at = offset / DISK_SECTOR * DISK_SECTOR; at < offset + bytes; at += DISK_SECTOR) {
        note_sector(file, at);
    }
    return is_up ? 0 : fail(EIO, BEL_EIO);
}

static int fill(struct bel_io *io, struct bel_io_file *handle, uint64_t offset, uint64_t bytes)
{
    void *zeros; /* not by the functions that tests let fail */
    if (posix_memalign(&zeros, BEL_IO_BLOCK, bytes) != 0) abort();
    memset(zeros, 0, bytes);
    int err = write_file(io, handle, offset, zeros, bytes);
    free(zeros);
    return err;
}

static int sync_file(struct bel_io *io, struct bel_io_file *handle)
{
    struct disk *disk = of(io);
    struct file *file = &disk->files[handle->file];
    bool is_done;
    assert(handle->is_open);
    disk->plan.mono_ns += disk->plan.sync_ns;
    bool is_up = disk_step(disk, &is_done);
    if (!is_up && !is_done) return fail(EIO, BEL_EIO);
    if (is_time(&disk->plan.fail_sync_in)) {
        put_some(disk, file, random_below(&disk->random_state, 9));
        return fail(EIO, BEL_EIO);
    }
    put_some(disk, file, 8);
    return is_up ? 0 : fail(EIO, BEL_EIO);
}

static int rename_file(struct bel_io *io, const char *from, const char *to)
{
    struct disk *disk = of(io);
    bool is_done;
    bool is_up = disk_step(disk, &is_done);
    int at = find_name(&disk->names, from);
    if (at < 0) return fail(ENOENT, BEL_ENOTFOUND);
    if (is_done) {
        change_name(disk, to, disk->names.files[at]);
        change_name(disk, from, -1);
    }
    return is_up ? 0 : fail(EIO, BEL_EIO);
}

static int remove_file(struct bel_io *io, const char *name)
{
    struct disk *disk = of(io);
    bool is_done;
    bool is_up = disk_step(disk, &is_done);
    if (find_name(&disk->names, name) < 0) return fail(ENOENT, BEL_ENOTFOUND);
    if (is_done) change_name(disk, name, -1);
    return is_up ? 0 : fail(EIO, BEL_EIO);
}

static void put_changes(struct disk *disk, int count)
{
    for (int i = 0; i < count; i++) {
        set_name(&disk->platter_names, disk->changes[i].name, disk->changes[i].file);
    }
    disk->change_count = 0;
}

static int sync_directory(struct bel_io *io)
{
    struct disk *disk = of(io);
    bool is_done;
    bool is_up = disk_step(disk, &is_done);
    if (is_done) put_changes(disk, disk->change_count);
    return is_up ? 0 : fail(EIO, BEL_EIO);
}

static int list(struct bel_io *io, bel_io_see *see, void *context)
{
    struct disk *disk = of(io);
    if (disk->is_down) return fail(EIO, BEL_EIO);
    for (int i = 0; i < NAMES_MAX; i++) {
        if (disk->names.files[i] >= 0) see(context, disk->names.names[i]);
    }
    return 0;
}

static uint64_t mono_ns(struct bel_io *io)
{
    return of(io)->plan.mono_ns;
}

static void pause_for(struct bel_io *io, uint64_t ns)
{
    (void)io;
    (void)ns;
}

static int free_bytes(struct bel_io *io, uint64_t *out)
{
    *out = of(io)->plan.free_bytes;
    return 0;
}

static int open_other(struct bel_io *io, const char *path, struct bel_io **out)
{
    struct disk *other = of(io)->other;
    return other == NULL ? BEL_EUNSUPPORTED : disk_folder(disk_io(other), path, out);
}

void disk_set_other(struct disk *disk, struct disk *other)
{
    disk->other = other;
}

static void destroy(struct bel_io *io)
{
    disk_destroy(of(io));
}

struct disk *disk_create(uint64_t seed)
{
    struct disk *disk = allocate(NULL, sizeof *disk);
    memset(disk, 0, sizeof *disk);
    disk->io = (struct bel_io){
        .lock = lock,
        .unlock = unlock,
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
        .open_other = open_other,
        .destroy = destroy,
    };
    disk->random_state = seed;
    disk->plan.free_bytes = UINT64_C(1) << 40;
    for (int i = 0; i < NAMES_MAX; i++) {
        disk->names.files[i] = disk->platter_names.files[i] = -1;
    }
    return disk;
}

static void *copy(const void *memory, size_t bytes)
{
    if (bytes == 0) return NULL;
    void *out = allocate(NULL, bytes);
    memcpy(out, memory, bytes);
    return out;
}

struct disk *disk_clone(const struct disk *disk)
{
    struct disk *clone = allocate(NULL, sizeof *clone);
    *clone = *disk;
    for (int i = 0; i < clone->file_count; i++) {
        struct file *file = &clone->files[i];
        file->cache = copy(file->cache, file->capacity);
        file->platter = copy(file->platter, file->capacity);
        file->sectors = copy(file->sectors, file->sector_capacity * sizeof *file->sectors);
    }
    return clone;
}

void disk_destroy(struct disk *disk)
{
    if (disk == NULL) return;
    for (int i = 0; i < disk->file_count; i++) {
        free(disk->files[i].cache);
        free(disk->files[i].platter);
        free(disk->files[i].sectors);
    }
    free(disk);
}

struct bel_io *disk_io(struct disk *disk)
{
    return &disk->io;
}

struct disk_plan *disk_plan(struct disk *disk)
{
    return &disk->plan;
}

uint64_t disk_operation_count(const struct disk *disk)
{
    return disk->operation_count;
}

void disk_stop(struct disk *disk)
{
    disk->is_down = true;
}

bool disk_is_down(const struct disk *disk)
{
    return disk->is_down;
}

void disk_kill(struct disk *disk)
{
    for (int i = 0; i < HANDLES_MAX; i++) {
        disk->handles[i].is_open = false;
    }
    disk->is_down = disk->is_locked = false;
    disk->plan.crash_in = disk->plan.fail_sync_in = disk->plan.fail_write_in = 0;
}

void disk_cut_power(struct disk *disk)
{
    disk_kill(disk);
    uint64_t in_8 = random_below(&disk->random_state, 9);
    for (int i = 0; i < disk->file_count; i++) {
        struct file *file = &disk->files[i];
        put_some(disk, file, in_8);
        if (file->capacity > 0) memcpy(file->cache, file->platter, file->capacity);
        file->size = file->platter_size;
    }
    put_changes(disk, (int)random_below(&disk->random_state, (uint64_t)disk->change_count + 1));
    disk->names = disk->platter_names;
}

static struct file *file_of(const struct disk *disk, const char *name)
{
    int at = find_name(&disk->names, name);
    if (at < 0) return NULL;
    return (struct file *)(uintptr_t)&disk->files[disk->names.files[at]];
}

size_t disk_size(const struct disk *disk, const char *name)
{
    const struct file *file = file_of(disk, name);
    return file == NULL ? 0 : file->size;
}

uint8_t disk_byte(const struct disk *disk, const char *name, size_t offset)
{
    const struct file *file = file_of(disk, name);
    assert(file != NULL && offset < file->size);
    return file->cache[offset];
}

void disk_flip(struct disk *disk, const char *name, size_t offset, uint8_t bits)
{
    struct file *file = file_of(disk, name);
    assert(file != NULL && offset < file->size);
    file->cache[offset] ^= bits;
    file->platter[offset] ^= bits;
}
