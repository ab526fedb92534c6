/* SPDX-License-Identifier: MIT */
#ifndef BEL_TEXT_H
#define BEL_TEXT_H

/*
 * text - the position and the cause of a parse error.
 *
 *     0 25 * * *
 *       ^ an hour from 0 to 23
 *
 * Parsers of this library take a text with its length, which need not end in 0. On failure they
 * leave their output unchanged.
 */

#include <stddef.h>

enum {
    BEL_EXPECTED_BYTES = 96
};

struct bel_text_error {
    size_t position; /* of the first wrong byte; the length if something is missing */
    char expected[BEL_EXPECTED_BYTES]; /* a phrase: "an hour from 0 to 23" */
};

#endif
