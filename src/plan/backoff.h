/* SPDX-License-Identifier: MIT */
#ifndef BEL_PLAN_BACKOFF_H
#define BEL_PLAN_BACKOFF_H

/*
 * Retry policies that earlier versions stored.
 */

#include "belfry/backoff.h"

/* Like bel_backoff_parse(), but a text that is only a number is one delay in milliseconds. */
BEL_CHECKED int bel__backoff_parse_stored(const char *text, size_t bytes, struct bel_backoff *out,
                                          struct bel_text_error *why);

#endif
