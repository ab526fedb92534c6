/* SPDX-License-Identifier: MIT */

/*
 * Memory is counted by the parts that hold it (core/memory_use.h). Of the disk the file system
 * knows the free blocks, and the engine what is free inside its own files: they do not shrink when
 * timers end, so without that part a server that had filled its disk would never accept timers
 * again. The latency of commits is measured by the request tracker.
 *
 * A line of /proc/self/cgroup is "0::/path" for cgroups of version 2, and "7:memory:/path" for the
 * controller of version 1. A limit of a parent holds, too, so all of them are read, up to the root:
 *
 *     /sys/fs/cgroup/a/b/memory.max, /sys/fs/cgroup/a/memory.max, /sys/fs/cgroup/memory.max
 */
#include "server/embedded/pressure_probe.h"

#include "core/memory_use.h"
#include "core/parse.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum {
    PATH_BYTES = 1024,
    NUMBER_BYTES = 32,
    MEMBERSHIP_BYTES = 8192,
};

#define DISK_BYTES_MAX (UINT64_C(16) << 30)

struct bel_pressure_use bel__disk_use(uint64_t blocks, uint64_t free, uint64_t available,
                                      uint64_t block_bytes, uint64_t reusable_bytes)
{
    struct bel_pressure_use use = {0};
    uint64_t usable = blocks - free + available;
    if (block_bytes == 0 || free > blocks || usable == 0) {
        use.is_unreadable = true;
        return use;
    }
    uint64_t limit = DISK_BYTES_MAX / block_bytes;
    use.limit = (usable < limit ? usable : limit) * block_bytes;
    uint64_t rest = available < limit ? available * block_bytes : use.limit;
    rest += reusable_bytes < use.limit ? reusable_bytes : use.limit;
    use.used = rest < use.limit ? use.limit - rest : 0;
    return use;
}

static struct bel_pressure_use take_disk(const struct bel_pressure_probe *probe)
{
    struct statvfs disk;
    int failed;
    do {
        failed = statvfs(probe->folder, &disk);
    } while (failed != 0 && errno == EINTR);
    if (failed) return (struct bel_pressure_use){.is_unreadable = true};
    uint64_t reusable = probe->engine == NULL ? 0 : bel_engine_reusable_bytes(probe->engine);
    return bel__disk_use(disk.f_blocks, disk.f_bfree, disk.f_bavail, disk.f_frsize, reusable);
}

void bel__pressure_probe_take(const struct bel_pressure_probe *probe, struct bel_mono now,
                              struct bel_pressure_sample *out)
{
    *out = (struct bel_pressure_sample){
        .memory = {.used = bel__memory_used(), .limit = probe->memory_limit},
        .commit = {.used = bel__commit_window_p99_ms(probe->commits, now),
                   .limit = BEL_COMMIT_LIMIT_MS},
    };
    if (probe->folder != NULL) out->disk = take_disk(probe);
}

/* --- the default limit of memory --- */

/* Reads the beginning of a small file. Returns its bytes, with a 0 after them; 0 if it fails. */
static size_t read_start(const char *path, char *out, size_t room)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0;
    ssize_t bytes = read(fd, out, room - 1);
    (void)close(fd);
    out[bytes > 0 ? bytes : 0] = 0;
    return bytes > 0 ? (size_t)bytes : 0;
}

/* Reads a number that ends with a newline; "max" and everything else is no limit. */
static uint64_t read_limit(const char *path)
{
    char text[NUMBER_BYTES];
    uint64_t limit;
    if (read_start(path, text, sizeof text) == 0) return UINT64_MAX;
    size_t digits = strspn(text, "0123456789");
    return bel__parse_u64(text, digits, 0, UINT64_MAX, &limit) == 0 ? limit : UINT64_MAX;
}

/* Reads the limits of a group, of `bytes` bytes, and of its parents. */
static uint64_t read_limits(const char *root, const char *group, size_t bytes, const char *file)
{
    uint64_t least = UINT64_MAX;
    for (;;) {
        char path[PATH_BYTES];
        while (bytes > 0 && group[bytes - 1] == '/') {
            bytes--;
        }
        int length = snprintf(path, sizeof path, "%s%.*s/%s", root, (int)bytes, group, file);
        uint64_t limit = length > 0 && (size_t)length < sizeof path ? read_limit(path) : UINT64_MAX;
        if (limit < least) least = limit;
        if (bytes == 0) return least;
        while (bytes > 0 && group[bytes - 1] != '/') {
            bytes--;
        }
    }
}

uint64_t bel__cgroup_limit(const char *membership, const char *root)
{
    uint64_t least = UINT64_MAX;
    char memory_root[PATH_BYTES];
    (void)snprintf(memory_root, sizeof memory_root, "%.900s/memory", root);
    for (const char *line = membership; *line != 0;) {
        size_t bytes = strcspn(line, "\n");
        const char *group = memchr(line, '/', bytes);
        if (group != NULL && bytes < PATH_BYTES) {
            size_t group_bytes = bytes - (size_t)(group - line);
            bool is_memory = memmem(line, (size_t)(group - line), ":memory:", 8) != NULL;
            uint64_t limit = UINT64_MAX;
            if (strncmp(line, "0::", 3) == 0) {
                limit = read_limits(root, group, group_bytes, "memory.max");
            } else if (is_memory) {
                limit = read_limits(memory_root, group, group_bytes, "memory.limit_in_bytes");
            }
            if (limit < least) least = limit;
        }
        line += bytes + (line[bytes] == '\n');
    }
    return least;
}

uint64_t bel__memory_limit_default(void)
{
    char membership[MEMBERSHIP_BYTES] = "";
    long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
    uint64_t limit = UINT64_MAX;
    if (pages > 0 && page_bytes > 0) limit = (uint64_t)pages * (uint64_t)page_bytes;
    (void)read_start("/proc/self/cgroup", membership, sizeof membership);
    uint64_t group_limit = bel__cgroup_limit(membership, "/sys/fs/cgroup");
    return (group_limit < limit ? group_limit : limit) / 2;
}
