/* SPDX-License-Identifier: MIT */
#ifndef BEL_TESTS_TRANSCRIPT_H
#define BEL_TESTS_TRANSCRIPT_H

/*
 * transcript - what was asked of a backend and what it answered, a line each, for the reader of
 * a test that failed. Times are in ms after an epoch of the test's.
 */

#include "heard.h"

#include <stdint.h>
#include <stdio.h>

void transcript_command(FILE *out, const struct bel_command *command, int64_t epoch_ms);
void transcript_reply(FILE *out, const struct heard *heard, int64_t epoch_ms);

/* One timer of a list. */
void transcript_timer(FILE *out, const struct bel_timer *timer, int64_t epoch_ms);

#endif
