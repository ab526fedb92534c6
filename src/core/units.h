/* SPDX-License-Identifier: MIT */
#ifndef BEL_CORE_UNITS_H
#define BEL_CORE_UNITS_H

/*
 * units - conversion factors between units of time.
 */

enum {
    NS_PER_US = 1000,
    NS_PER_MS = 1000000,
    NS_PER_S = 1000000000,
    US_PER_MS = 1000,
    MS_PER_S = 1000,
    MS_PER_MINUTE = 60 * 1000,
    MS_PER_HOUR = 60 * 60 * 1000,
};

#endif
