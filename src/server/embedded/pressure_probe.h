/* SPDX-License-Identifier: MIT */
#ifndef BEL_SERVER_EMBEDDED_PRESSURE_PROBE_H
#define BEL_SERVER_EMBEDDED_PRESSURE_PROBE_H

/*
 * pressure_probe - measures how much of the limits of a server is used: memory, disk, commit
 * latency.
 */

#include "belfry/engine.h"
#include "metrics/commit_window.h"

struct bel_pressure_probe {
    const char *folder;        /* the data directory; NULL: in memory, without a disk */
    struct bel_engine *engine; /* of the data directory, borrowed; or NULL */
    uint64_t memory_limit;     /* in bytes */
    const struct bel_commit_window *commits;
};

void bel__pressure_probe_take(const struct bel_pressure_probe *probe, struct bel_mono now,
                              struct bel_pressure_sample *out);

/* Returns the use of a disk by its blocks, all of one size: `free` blocks are unused, and the
 * server may use `available` of these. `reusable_bytes` inside its own files count as available,
 * too. Of a large disk only the last 16 GiB count. */
struct bel_pressure_use bel__disk_use(uint64_t blocks, uint64_t free, uint64_t available,
                                      uint64_t block_bytes, uint64_t reusable_bytes);

/* Returns half of the RAM, or half of the limit of the process's cgroup if that is less. */
uint64_t bel__memory_limit_default(void);

/* Returns the least memory limit of a cgroup and its parents, in bytes; UINT64_MAX: none, or none
 * that can be read. `membership` is the text of /proc/self/cgroup, `root` the path where cgroups
 * are mounted. */
uint64_t bel__cgroup_limit(const char *membership, const char *root);

#endif
