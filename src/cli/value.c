/* SPDX-License-Identifier: MIT */

#include "cli/value.h"

#include "belfry/zone.h"
#include "cli/cli.h"
#include "cli/duration.h"
#include "cli/local_time.h"
#include "cli/print.h"
#include "cli/zone_hint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int copy(const char *text, char **out)
{
    *out = strdup(text);
    if (*out != NULL) return CLI_OK;
    fprintf(stderr, "belfry: out of memory\n");
    return CLI_FAILED;
}

static int rewrite_duration(const char *value, char **out)
{
    char text[CLI_DURATION_BYTES];
    struct bel_text_error why;
    uint64_t ms;
    if (bel__cli_duration(value, &ms, &why) != 0) {
        return bel__cli_refuse("a duration", value, &why);
    }
    return bel__cli_duration_rewrite(value, text) ? copy(text, out) : CLI_OK;
}

static int rewrite_in_zone(struct bel_zones *zones, const char *value, const char *name, char **out)
{
    const struct bel_zone *zone;
    char text[CLI_LOCAL_TIME_BYTES];
    struct bel_wall now = bel_clock_wall(bel_clock_system());
    int err = bel_zones_find(zones, name, strlen(name), &zone);
    if (err) {
        fprintf(stderr, "belfry: unknown time zone '%s'; give --tz ZONE, e.g. Europe/Berlin\n",
                name);
        return CLI_USAGE;
    }
    err = bel__local_time_rewrite(value, zone, now, text);
    if (err == 0) return copy(text, out);
    fprintf(stderr, "belfry: '%s' is not a date that exists\n", value);
    return CLI_USAGE;
}

/* Rewrites a local time. Without --tz, only somebody at a terminal means the machine's zone: a
 * script may run anywhere. */
static int rewrite_time(const char *value, const char *zone, char **out)
{
    char name[BEL_ZONE_NAME_MAX + 1];
    struct bel_zones *zones;
    if (!bel__local_time_is(value)) return CLI_OK;
    if (zone == NULL && !bel__cli_is_terminal()) {
        fprintf(stderr,
                "belfry: '%s' is a local time; give its zone with --tz, e.g. --tz Europe/Berlin\n",
                value);
        return CLI_USAGE;
    }
    if (zone == NULL) bel__local_time_zone(name);
    int err = bel_zones_open(NULL, &zones);
    if (err) {
        fprintf(stderr, "belfry: cannot open the time zones; install tzdata: %s\n",
                bel_error_text(err));
        return CLI_FAILED;
    }
    int status = rewrite_in_zone(zones, value, zone != NULL ? zone : name, out);
    bel_zones_close(zones);
    return status;
}

int bel__cli_value(enum bel_argument_type type, const char *value, const char *zone, char **out)
{
    struct bel_text_error why;
    *out = NULL;
    switch (type) {
    case BEL_ARGUMENT_DURATION:
        return rewrite_duration(value, out);
    case BEL_ARGUMENT_TIME:
        return rewrite_time(value, zone, out);
    case BEL_ARGUMENT_POLICY:
        if (bel__cli_policy(value, &why) == 0) return CLI_OK;
        return bel__cli_refuse("a retry policy", value, &why);
    case BEL_ARGUMENT_ZONE:
        return bel__zone_hint(value) ? CLI_USAGE : CLI_OK;
    default:
        return CLI_OK;
    }
}
