/* SPDX-License-Identifier: MIT */
#ifndef BENCH_VIRTUAL_H
#define BENCH_VIRTUAL_H

/* How far the libraries' clock is ahead of bench_now; see virtual.c. */
enum {
    BENCH_AHEAD_NS = 500,
};

#endif
