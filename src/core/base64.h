/* SPDX-License-Identifier: MIT */
#ifndef BEL_CORE_BASE64_H
#define BEL_CORE_BASE64_H

/*
 * base64 - bytes as text, as RFC 4648 has it in section 4: three bytes are four characters, and
 * padding is needed.
 */

#include "belfry/view.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    BEL_BASE64_BYTES = 3, /* that make a group of */
    BEL_BASE64_CHARS = 4,
};

/* The group of the first three bytes, or of as many as there are: `count` is 1 or more. */
void bel__base64_group(const uint8_t *bytes, size_t count, char out[BEL_BASE64_CHARS]);

/* All of it as a string to be freed; NULL without memory. */
char *bel__base64_encode(struct bel_view data);

/* Decodes into `out`, which has room for three bytes for each four characters and may be where
 * the text is. False if it is not base64; then `out` may have some of it. */
bool bel__base64_decode(struct bel_view text, void *out, size_t *out_bytes);

#endif
