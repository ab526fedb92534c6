/* SPDX-License-Identifier: MIT */
#ifndef BEL_PLAN_TZIF_H
#define BEL_PLAN_TZIF_H

/*
 * tzif - a compiled time zone file, as the bytes it is made of. Nothing is copied: a struct
 * tzif points into the file, and the functions below take numbers out of it.
 */

#include "belfry/error.h"

#include <stddef.h>
#include <stdint.h>

enum {
    TZIF_TYPE_BYTES = 6,
    TZIF_OFFSET_MIN = -25 * 3600 + 1, /* as RFC 9636 recommends, both included */
    TZIF_OFFSET_MAX = 26 * 3600 - 1,
};

/* Instants are checked to be no further from 1970 than this, which is before there was an
 * Earth, so that what is computed with them does not overflow. */
#define TZIF_TIME_MAX (INT64_C(1) << 59)

/* A file that has been checked. */
struct tzif {
    const uint8_t *times;   /* `time_count` instants of `time_bytes` each, ascending */
    const uint8_t *indexes; /* the type that begins at each of them */
    const uint8_t *types;
    uint32_t time_count;
    uint32_t type_count; /* at least one */
    uint32_t time_bytes; /* 4 or 8 */
    size_t footer_bytes; /* 0 if there is no rule for after the last instant */
    const char *footer;
};

/* Checks a file. Returns 0 and sets `*out`, which borrows the bytes; or BEL_ECORRUPT. */
BEL_CHECKED int bel__tzif_read(const uint8_t *data, size_t bytes, struct tzif *out);

/* The instant with a number, and the offset from it on. */
int64_t bel__tzif_time(const struct tzif *tzif, uint32_t index);
int32_t bel__tzif_offset(const struct tzif *tzif, uint32_t index);

/* The offset before the first instant. */
int32_t bel__tzif_offset_first(const struct tzif *tzif);

#endif
