/* SPDX-License-Identifier: MIT */
#ifndef BEL_STORE_TREE_SCRUB_H
#define BEL_STORE_TREE_SCRUB_H

/*
 * scrub - checks all pages of a tree while another process writes to it.
 *
 * A scrub is a registered reader of LMDB: the pages of its snapshot are not reused before it ends.
 * So the file grows by what is written meanwhile. If that becomes too much, the scrub releases its
 * snapshot, takes the latest one and continues with the next row. A scrub with several snapshots
 * cannot tell whether rows are missing or pages are used twice, only that each page is right.
 *
 * Call it in a process that has not inherited anything from one that has the tree open: LMDB's
 * locks belong to a process, and closing a descriptor of the file releases them.
 */

#include "core/why.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bel_scrub_progress {
    uint64_t pages_done, pages; /* of the current snapshot */
    uint64_t rows;
    uint64_t growth_bytes;     /* by which the file has grown during the current snapshot */
    uint64_t growth_bytes_max; /* the most so far, of any snapshot */
    uint64_t snapshots;        /* taken so far */
};

struct bel_scrub_options {
    const char *path;          /* the folder of the tree */
    uint64_t growth_bytes_max; /* release the snapshot when the file has grown by more */
    size_t step_pages;         /* pages between two reports */
    /* Called after each step. A result other than 0 ends the scrub with that result. */
    int (*report)(void *context, const struct bel_scrub_progress *progress);
    void *context;
};

/* Checks a tree. Returns 0; BEL_ECORRUPT or BEL_EUNSUPPORTED, and sets `*why`; the result of
 * `report`; or BEL_ENOTFOUND, BEL_EIO, BEL_ENOMEM, BEL_EFULL if there are too many readers. */
BEL_CHECKED int bel__tree_scrub(const struct bel_scrub_options *options, struct bel_why *why);

#endif
