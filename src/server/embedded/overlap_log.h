/* SPDX-License-Identifier: MIT */
#ifndef BEL_SERVER_EMBEDDED_OVERLAP_LOG_H
#define BEL_SERVER_EMBEDDED_OVERLAP_LOG_H

/*
 * overlap_log - decides which times that the overlap policy has skipped get a line in the log: of a
 * job the first at once, then at most one in a second, with the number since the last line. The
 * table has a fixed size: jobs beyond it get no line until another one has had none for a second.
 */

#include "belfry/clock.h"
#include "belfry/stats.h"

enum {
    BEL_OVERLAP_LOG_JOBS = 64,
};

/* Zero is a valid initial state. The fields are private. */
struct bel_overlap_log {
    struct bel_overlap_log_place {
        char job[BEL_OVERLAP_JOB_BYTES]; /* empty: free */
        struct bel_boot logged;          /* when its last line was written */
        uint64_t in_a_row;               /* of its last note */
        uint64_t skipped;                /* times since its last line */
    } places[BEL_OVERLAP_LOG_JOBS];
};

/* Counts a time that was skipped. Returns for how many times a line is due now, or 0. Times of the
 * same row whose notes were lost are counted. */
uint64_t bel__overlap_log_count(struct bel_overlap_log *log, const struct bel_engine_overlap *note,
                                struct bel_boot now);

#endif
