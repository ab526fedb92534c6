/* SPDX-License-Identifier: MIT */
#ifndef BEL_COPY_COPY_H
#define BEL_COPY_COPY_H

/*
 * copy - copies all timers of a store to another one, over the interface of backends.
 *
 *     look      read the source: counts, a digest, and what the target cannot hold
 *     write     page by page: LIST in the source, SCHEDULE of whole timers in the target
 *     verify    read the target: the same counts and the same digest
 *     finish    settings and pauses, then the target may be served
 *     remove    with `moves`: delete everything in the source
 *
 * The clocks of both stores stand still, at times at which nothing is due that was not handled
 * before. So nothing happens in them on its own while a copy runs.
 *
 * A copy that was stopped is continued by the next one with the same source: in each topic of the
 * target that is not complete there is a timer with the id BEL_COPY_MARK, which says how far the
 * copy has come.
 */

#include "copy/ask.h"

#include <stdbool.h>
#include <stdint.h>

#define BEL_COPY_MARK "belfry-copy"

enum bel_copy_step {
    BEL_COPY_LOOK,
    BEL_COPY_WRITE,
    BEL_COPY_VERIFY,
    BEL_COPY_REMOVE,
};

struct bel_copy_options {
    const char *source_name;              /* in marks */
    struct bel_copy_store source, target; /* target.backend NULL: it does not exist yet */
    bool merges;                          /* topics of the target may have timers, which are kept */
    bool moves;        /* delete the timers in the source when they are verified */
    bool is_dry;       /* write nothing */
    bool is_forced;    /* servers may be using a store on Redis */
    bool without_jobs; /* leave out jobs, with their tasks */
    bool without_groups, without_resources; /* leave out these names of timers; with resources
                                               their limits */
    bool without_concurrency;               /* leave out this setting of topics */
    void *context;
    /* Tells how far a step is; `total` 0: unknown. NULL: nobody wants to know. */
    void (*progress)(void *context, enum bel_copy_step step, uint64_t done, uint64_t total);
    /* Makes and opens a target that does not exist, and sets `*store`. Returns 0 or an error. Is
     * called only when the source was looked at, and is as it can be copied. */
    int (*make)(void *context, struct bel_copy_store *store, struct bel_why *why);
    /* Moves the clock of a store: the target is complete, and others may work on it from now on; in
     * the source everything has ended. Sets `*store` to the
     * store as it is then, with another clock if others must be told of its topics. Returns 0 or an
     * error. NULL: it stays as it is. */
    int (*thaw)(void *context, struct bel_copy_store *store, struct bel_why *why);
};

struct bel_copy_counts {
    uint64_t topics;
    uint64_t timers;               /* all records: unfinished timers, plans, ended timers */
    uint64_t plans, leased, ended; /* of these */
    uint64_t jobs, tasks, groups, resources, limits,
        settings;     /* that were found and left out: jobs,
                             their tasks, timers with a group, timers with a resource, resources
                             with limits, concurrency */
    uint64_t written; /* by this run */
    uint64_t kept;    /* the target had a timer with the id */
    uint64_t removed; /* from the source */
    uint64_t digest;  /* over all records of the source */
};

/* Copies. Returns 0; BEL_EUNSUPPORTED if the source has what the target cannot hold; BEL_ECONFLICT
 * if a topic of the target has timers, or if source or target have changed meanwhile; or an error
 * of the backends. On an error sets `*why`. `*out` is set as far as it is known. */
BEL_CHECKED int bel__copy(const struct bel_copy_options *options, struct bel_copy_counts *out,
                          struct bel_why *why);

#endif
