/* SPDX-License-Identifier: MIT */
#ifndef BEL_OVERLAP_H
#define BEL_OVERLAP_H

/*
 * overlap - what happens to an occurrence that comes while the previous one is unfinished.
 */
enum bel_overlap {
    BEL_OVERLAP_SKIP,  /* it is counted and left out */
    BEL_OVERLAP_QUEUE, /* it waits until the previous one has finished */
    BEL_OVERLAP_ALLOW, /* both run at the same time */
};

#endif
