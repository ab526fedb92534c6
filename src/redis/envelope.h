/* SPDX-License-Identifier: MIT */
#ifndef BEL_REDIS_ENVELOPE_H
#define BEL_REDIS_ENVELOPE_H

/*
 * envelope - body and headers of a timer as one value, as the Python package
 * faststream-redis-timers writes and reads it.
 *
 *     89 42 49 4E 0D 0A 1A 0A | version 2 = 1 | headers_start 4 = 18 | data_start 4 | headers 2 |
 *     (name bytes 2, name, value bytes 2, value) ... | body
 *
 * Numbers are big-endian. The package writes lengths in characters: an envelope of such lengths is
 * read, never written. Older versions wrote JSON. A value that is none of these is a body without
 * headers, so every value can be read.
 */

#include "belfry/delivery.h"
#include "belfry/error.h"
#include "core/arena.h"

enum {
    BEL_ENVELOPE_TEXT_MAX = UINT16_MAX, /* bytes of a name or a value */
};

struct bel_envelope {
    struct bel_view body;
    const struct bel_header *headers; /* correlation_id, content-type, reply_to, then the others */
    size_t headers_count;
};

/* Puts headers in the order of the package, with the correlation id as the first. A name that
 * occurs again replaces the value of the first. Returns 0, BEL_ENOMEM, or BEL_EINVAL if a name or a
 * value is too long or is not UTF-8. */
BEL_CHECKED int bel__envelope_arrange(struct bel_envelope *envelope, struct bel_view correlation,
                                      const struct bel_header *headers, size_t count,
                                      struct bel_arena *arena);

/* Return the size of an envelope that was arranged; and write it. */
size_t bel__envelope_bytes(const struct bel_envelope *envelope);
void bel__envelope_write(const struct bel_envelope *envelope, uint8_t *out);

/* Reads any value. Texts are views into the value or into the arena. Returns 0 or BEL_ENOMEM. */
BEL_CHECKED int bel__envelope_read(struct bel_view value, struct bel_arena *arena,
                                   struct bel_envelope *out);

#endif
