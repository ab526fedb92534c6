/* SPDX-License-Identifier: MIT */
#ifndef BEL_REDIS_TOKEN_H
#define BEL_REDIS_TOKEN_H

/*
 * token - the token of a lease. It has everything that a node needs to find the lease: the topic
 * and the id, the place of the timer in its partition, and the secret of the claim.
 */

#include "belfry/timer.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    BEL_TOKEN_PREFIX_BYTES = 8, /* priority and sequence */
    BEL_TOKEN_SECRET_BYTES = 12,
};

struct bel_token {
    uint8_t prefix[BEL_TOKEN_PREFIX_BYTES];
    uint8_t secret[BEL_TOKEN_SECRET_BYTES];
    size_t topic_bytes, id_bytes;
    char topic[BEL_TOPIC_BYTES_MAX], id[BEL_ID_BYTES];
};

/* Prints a token. The topic and the id must be valid. Returns the length. */
size_t bel__lease_token_print(const struct bel_token *token, char out[BEL_TOKEN_BYTES_MAX]);

/* Parses a token. Returns false if the text is not exactly what bel__lease_token_print() prints. */
bool bel__lease_token_parse(struct bel_view text, struct bel_token *out);

#endif
