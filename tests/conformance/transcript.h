/* SPDX-License-Identifier: MIT */
#ifndef BEL_TESTS_TRANSCRIPT_H
#define BEL_TESTS_TRANSCRIPT_H

/*
 * transcript - the requests to a backend and its replies, one line each, for the reader of a failed
 * test. Times are in ms after an epoch of the test.
 */

#include "heard.h"

#include <stdint.h>
#include <stdio.h>

void transcript_command(FILE *out, const struct bel_command *command, int64_t epoch_ms);
void transcript_reply(FILE *out, const struct heard *heard, int64_t epoch_ms);

/* Prints one timer of a list. */
void transcript_timer(FILE *out, const struct bel_timer *timer, int64_t epoch_ms);

#endif
