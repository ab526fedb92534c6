/* SPDX-License-Identifier: MIT */
#ifndef BEL_REDIS_FASTSTREAM_TOKEN_H
#define BEL_REDIS_FASTSTREAM_TOKEN_H

/*
 * faststream_token - the token of a lease in a topic of the layout faststream: the topic, and the
 * secret under which the lease is stored. The id may be too long for a token. No such token is one
 * of token.h, or the other way round.
 */

#include "belfry/timer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    BEL_FASTSTREAM_SECRET_BYTES = 14, /* that of the claim, and the number of the delivery */
};

struct bel_faststream_token {
    uint8_t secret[BEL_FASTSTREAM_SECRET_BYTES];
    size_t topic_bytes;
    char topic[BEL_TOPIC_BYTES_MAX];
};

/* Prints a token. Returns the length. */
size_t bel__faststream_token_print(const struct bel_faststream_token *token,
                                   char out[BEL_TOKEN_BYTES_MAX]);

/* Parses a token. Returns false if the text is not exactly what is printed. */
bool bel__faststream_token_parse(struct bel_view text, struct bel_faststream_token *out);

/* Returns whether a text may be such a token: false for all of token.h. */
bool bel__faststream_token_is_likely(struct bel_view text);

#endif
