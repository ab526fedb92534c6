/* SPDX-License-Identifier: MIT */
#ifndef BEL_CORE_SHORTEN_H
#define BEL_CORE_SHORTEN_H

/*
 * shorten - rewrites the numbers of a JSON text with as few digits as they need.
 *
 * A library that prints doubles with 17 digits turns 0.1 into 0.10000000000000001. That is the same
 * double, but not the same decimal number to a reader that uses decimals, for example for prices.
 *
 *     {"price":19.989999999999998}  ->  {"price":19.99}
 */

/* Shortens numbers with a point or an exponent, in place, to the first of 15, 16 or 17 digits that
 * parses as the same double. Strings are not changed. `json` must be JSON and end in 0. */
void bel__shorten_numbers(char *json);

#endif
