/* SPDX-License-Identifier: MIT */
#ifndef BEL_TEXT_H
#define BEL_TEXT_H

/*
 * text - what is wrong with a text that a parser refused: where, and what was expected.
 *
 *     0 25 * * *
 *       ^ an hour from 0 to 23
 *
 * Parsers of this library take texts with a length, which need not end in 0, and leave
 * what they were to set alone when they refuse.
 */

#include <stddef.h>

enum {
    BEL_EXPECTED_BYTES = 96
};

struct bel_text_error {
    size_t position; /* of the first byte that is wrong; the end if it is missing */
    char expected[BEL_EXPECTED_BYTES]; /* a phrase: "an hour from 0 to 23" */
};

#endif
