/* SPDX-License-Identifier: MIT */
#ifndef BEL_CORE_BASE64_H
#define BEL_CORE_BASE64_H

/*
 * base64 - base64 as in RFC 4648, section 4: three bytes become four characters, and padding is
 * required.
 */

#include "belfry/view.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    BEL_BASE64_BYTES = 3, /* per group */
    BEL_BASE64_CHARS = 4,
};

/* Encodes the first three bytes as one group, or fewer if `count` is 1 or 2; `count` must not be
 * 0. */
void bel__base64_group(const uint8_t *bytes, size_t count, char out[BEL_BASE64_CHARS]);

/* Encodes all bytes. Returns a string that the caller frees, or NULL if memory has run out. */
char *bel__base64_encode(struct bel_view data);

/* Decodes into `out`, which needs three bytes for each four characters and may be the memory of the
 * text. Returns false if the text is not base64; `out` may then be partly written. */
bool bel__base64_decode(struct bel_view text, void *out, size_t *out_bytes);

#endif
