/* SPDX-License-Identifier: MIT */
#ifndef BEL_CORE_SHORTEN_H
#define BEL_CORE_SHORTEN_H

/*
 * shorten - the numbers of a JSON text in as few digits as they need.
 *
 * A library that prints doubles with 17 digits makes 0.10000000000000001 of the 0.1 that somebody
 * wrote. It is the same double, but not the same text, and not the same number for whoever reads
 * decimals: prices, for one.
 *
 *     {"price":19.989999999999998}  ->  {"price":19.99}
 */

/* Shortens what has a point or an exponent, in place, to the first of 15, 16 and 17 digits that
 * reads as the same double. Texts in it stay as they are. It is JSON, and ends in 0. */
void bel__shorten_numbers(char *json);

#endif
