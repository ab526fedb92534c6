/* SPDX-License-Identifier: MIT */
#ifndef BEL_PLAN_TZIF_H
#define BEL_PLAN_TZIF_H

/*
 * tzif - reads a compiled time zone file. Nothing is copied: a struct tzif points into the file,
 * and the functions below decode its numbers.
 */

#include "belfry/error.h"

#include <stddef.h>
#include <stdint.h>

enum {
    TZIF_TYPE_BYTES = 6,
    TZIF_OFFSET_MIN = -25 * 3600 + 1, /* as RFC 9636 recommends, both included */
    TZIF_OFFSET_MAX = 26 * 3600 - 1,
};

/* Limit of instants in a file, before and after 1970: more than 18 thousand million years, so that
 * arithmetic with them does not overflow. */
#define TZIF_TIME_MAX (INT64_C(1) << 59)

/* A file that has been checked. */
struct tzif {
    const uint8_t *times;   /* `time_count` instants of `time_bytes` each, ascending */
    const uint8_t *indexes; /* the type that begins at each instant */
    const uint8_t *types;
    uint32_t time_count;
    uint32_t type_count; /* at least one */
    uint32_t time_bytes; /* 4 or 8 */
    size_t footer_bytes; /* 0: no rule for the time after the last instant */
    const char *footer;
};

/* Checks a file. Returns 0 and sets `*out`, which borrows the bytes; or returns BEL_ECORRUPT. */
BEL_CHECKED int bel__tzif_read(const uint8_t *data, size_t bytes, struct tzif *out);

/* Return the instant at an index, and the offset from that instant on. */
int64_t bel__tzif_time(const struct tzif *tzif, uint32_t index);
int32_t bel__tzif_offset(const struct tzif *tzif, uint32_t index);

/* Returns the offset before the first instant. */
int32_t bel__tzif_offset_first(const struct tzif *tzif);

#endif
