/* SPDX-License-Identifier: MIT */
#ifndef BEL_REDIS_EXAMINE_H
#define BEL_REDIS_EXAMINE_H

/*
 * examine - asks the servers of a store what they are, before anybody relies on them: version,
 * role, eviction, persistence, scripts, replicas, clock. Each finding says what to do.
 *
 *     err = bel__redis_examine(&options, &examination, &why);
 *     if (err == 0 && examination.is_refused) ...           a node must not use this store
 *
 * It blocks: it is for the start of a program. It changes nothing on the servers.
 */

#include "redis/redis.h"

#include "belfry/clock.h"
#include "core/why.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    BEL_FINDINGS_MAX = 32,
    BEL_FINDING_BYTES = 240,
};

struct bel_finding {
    const char *about; /* a word: "version", "eviction" ... */
    char what[BEL_FINDING_BYTES];
    char advice[BEL_FINDING_BYTES]; /* what to do about it */
    bool is_refusal;                /* otherwise it is a warning */
};

struct bel_examination {
    struct bel_finding findings[BEL_FINDINGS_MAX];
    size_t findings_count;
    bool is_refused; /* one of them is a refusal */
    /* Facts; of the server that has the registry of topics, if there are several. */
    size_t primaries;
    char server[64];                                  /* "redis 7.0.15" */
    char eviction[32], appendonly[32], snapshots[64]; /* empty: not known */
    uint64_t replicas;                                /* connected; the fewest of a primary */
    int64_t ahead_ms; /* of the clock of the server, before that of this machine */
};

struct bel_examine_options {
    const struct bel_redis_options *redis; /* borrowed, as are the next two */
    const struct bel_clock *clock;
    void *context;
    uint32_t wait_ms; /* how long to wait for servers that cannot be reached */
    /* Called about once a second while it waits; may be NULL. */
    void (*waiting)(void *context, const char *why);
};

/* Examines the servers. Returns 0 and sets `*out`. Otherwise sets `*why` and returns BEL_EBUSY if
 * they could not be reached in time; BEL_EINVAL if waiting does not help: a wrong password, an
 * untrusted certificate; or BEL_ENOMEM, BEL_EIO or BEL_EUNSUPPORTED if they could not be opened. */
BEL_CHECKED int bel__redis_examine(const struct bel_examine_options *options,
                                   struct bel_examination *out, struct bel_why *why);

#endif
