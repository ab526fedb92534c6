/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_STATE_RESOURCE_ROW_H
#define BEL_ENGINE_STATE_RESOURCE_ROW_H

/*
 * resource_row - the row of a resource: its name, its limits and their state, and the latest
 * reports of a limit.
 */

#include "belfry/error.h"
#include "belfry/view.h"
#include "engine/rows/rows.h"
#include "engine/state/limits.h"

#include <stddef.h>
#include <stdint.h>

enum {
    BEL_REPORTS_MAX = 8,     /* kept with a resource */
    BEL_REPORT_WHO_MAX = 32, /* bytes of a worker's name */
};

/* A report of a limit. */
struct bel_resource_report {
    uint64_t at; /* engine time */
    uint64_t for_ms;
    uint32_t who_bytes;
    char who[BEL_REPORT_WHO_MAX];
};

/* Reports, the newest first. */
struct bel_resource_reports {
    uint32_t count;
    struct bel_resource_report items[BEL_REPORTS_MAX];
};

struct bel_resource_row {
    struct bel_view name; /* a view into the row */
    struct bel_limits limits;
    struct bel_resource_reports reports;
};

/* Adds a report, and drops the oldest if there are too many. */
void bel__reports_add(struct bel_resource_reports *reports, uint64_t at, uint64_t for_ms,
                      struct bel_view who);

/* Drops the reports that are older than an hour. */
void bel__reports_trim(struct bel_resource_reports *reports, uint64_t now);

/* Encodes a row; returns its size in bytes. */
size_t bel__resource_row_write(const struct bel_resource_row *row,
                               uint8_t out[BEL_RESOURCE_ROW_BYTES]);

/* Decodes a row. Returns 0, BEL_ECORRUPT, or BEL_EUNSUPPORTED if a newer version wrote it. */
BEL_CHECKED int bel__resource_row_read(struct bel_view bytes, struct bel_resource_row *out);

#endif
