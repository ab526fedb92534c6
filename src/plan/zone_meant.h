/* SPDX-License-Identifier: MIT */
#ifndef BEL_PLAN_ZONE_MEANT_H
#define BEL_PLAN_ZONE_MEANT_H

/*
 * zone_meant - finds the zone that a wrong name means: Berlin and europe/berlin are Europe/Berlin,
 * "new york" is America/New_York. Tries a dozen names, so a server can afford it for each error.
 */

#include "belfry/text.h"
#include "belfry/view.h"
#include "belfry/zone.h"

/* Writes the name of the zone that is meant to `out`. Returns false if none is found. */
bool bel__zone_meant(struct bel_zones *zones, const char *name, size_t bytes,
                     char out[BEL_ZONE_NAME_MAX + 1]);

/* Writes what to type instead of a wrong name to `why->expected`, unless `why` is NULL: a question
 * that names the zone that is meant, or an example. `zones` may be NULL. */
void bel__zone_refuse(struct bel_zones *zones, struct bel_view name, struct bel_text_error *why);

#endif
