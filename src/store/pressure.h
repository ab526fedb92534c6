/* SPDX-License-Identifier: MIT */
#ifndef BEL_STORE_PRESSURE_H
#define BEL_STORE_PRESSURE_H

/*
 * pressure - how long a batch waits, so that the active delta is not full before the frozen one
 * has been carried away.
 *
 * While a checkpoint runs, the active delta fills; if it is full first, everything stands still
 * until the checkpoint ends. Rather than that, each batch waits a little from the moment on when
 * the one is ahead of the other:
 *
 *     fill
 *     15/16 |                  .-'
 *           |              .-'
 *           |          .-'      below the line: nobody waits
 *           |      .-'          above: a batch waits its share of the time that is left
 *       1/8 |  .-'
 *           '---------------------> progress of the checkpoint
 *
 * The share is what makes it even: a batch that takes a hundredth of the room that is left
 * waits a hundredth of the time that is left.
 */

#include <stdint.h>

enum {
    BEL_PRESSURE_PROGRESS_MAX = 1000,
};

/* Where things stand when a batch is committed. Fill is in any unit: bytes of a log segment, or
 * of a delta; whichever is fuller decides. */
struct bel_pressure {
    uint64_t fill, fill_max; /* of the active delta, with the batch */
    uint64_t batch;          /* how much of it is the batch */
    unsigned progress;       /* of the checkpoint; BEL_PRESSURE_PROGRESS_MAX if none runs */
    uint64_t elapsed_ns;     /* since it began */
    uint64_t expected_ns;    /* what it would take as a whole, going by the last one; 0: unknown */
};

/* How long to wait before more is let in, in nanoseconds; or until the checkpoint is done, if
 * that is sooner. */
uint64_t bel__pressure_delay_ns(const struct bel_pressure *pressure);

/* How long the checkpoint will take from here on, as far as can be told. */
uint64_t bel__pressure_remaining_ns(const struct bel_pressure *pressure);

#endif
